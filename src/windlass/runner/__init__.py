"""The only part that acts: decide, record, do."""

from windlass.runner.loop import Ports, Runner

__all__ = ["Ports", "Runner"]
