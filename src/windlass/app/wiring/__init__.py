"""The only package that picks adapters. It decides nothing that the core could decide."""

from windlass.app.wiring.facts import (
    LOCAL_TIME,
    ended,
    last_run_state,
    now,
    resumed,
    resumed_unchanged,
    started,
)
from windlass.app.wiring.observers import Observers
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import write_state_files
from windlass.app.wiring.world import World

__all__ = [
    "LOCAL_TIME",
    "Observers",
    "Project",
    "World",
    "ended",
    "last_run_state",
    "now",
    "resumed",
    "resumed_unchanged",
    "started",
    "write_state_files",
]
