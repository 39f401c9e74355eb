"""Screens: they read views and nothing else."""
