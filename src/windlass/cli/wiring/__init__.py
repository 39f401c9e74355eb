"""The only place that picks adapters: which part serves which port, and where things lie.

Nothing is decided here that the core could decide.
"""

from windlass.cli.wiring.facts import ended, newest, now, resumed, started
from windlass.cli.wiring.outside import Outside
from windlass.cli.wiring.project import Project, WritableJournal
from windlass.cli.wiring.telling import tell
from windlass.cli.wiring.world import World

__all__ = [
    "Outside",
    "Project",
    "World",
    "WritableJournal",
    "ended",
    "newest",
    "now",
    "resumed",
    "started",
    "tell",
]
