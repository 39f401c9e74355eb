"""Coding agents: a module or package for each vendor, and the code that they share."""
