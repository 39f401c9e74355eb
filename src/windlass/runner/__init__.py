"""The local runner: it drives the engine, and is the only part that acts."""

from windlass.runner.context import Ports
from windlass.runner.effects import lend
from windlass.runner.loop import Runner
from windlass.runner.session import Observer, Session

__all__ = ["Observer", "Ports", "Runner", "Session", "lend"]
