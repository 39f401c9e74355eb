"""The only part that acts: decide, record, do."""

from windlass.runner.effects import lend
from windlass.runner.loop import Runner
from windlass.runner.surroundings import Ports

__all__ = ["Ports", "Runner", "lend"]
