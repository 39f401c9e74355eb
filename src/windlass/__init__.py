"""Windlass hauls a plan of coding tasks to verified, merged commits, and never slips back."""

__version__ = "0.1.0"
