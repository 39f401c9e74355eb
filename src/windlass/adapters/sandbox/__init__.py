"""Walls around agents, setup and checks, one file per level."""

from windlass.adapters.sandbox.box import Box, Sandbox

__all__ = ["Box", "Sandbox"]
