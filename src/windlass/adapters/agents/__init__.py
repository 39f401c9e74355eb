"""Coding agents: a module or package for each vendor, and what serves them all."""
