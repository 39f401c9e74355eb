"""The only place that picks adapters: which part serves which port, and where things lie.

Nothing is decided here that the core could decide.
"""

from windlass.app.wiring.facts import ended, newest, now, resumed, started, taken_over
from windlass.app.wiring.observers import Outside
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import tell
from windlass.app.wiring.world import World

__all__ = [
    "Outside",
    "Project",
    "World",
    "ended",
    "newest",
    "now",
    "resumed",
    "started",
    "taken_over",
    "tell",
]
