"""Processes that Windlass starts: what they may take, and how they end."""
