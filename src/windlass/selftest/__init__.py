"""Whole runs under faults, on any machine: a place, a server that starts them, a judge, sweeps."""
