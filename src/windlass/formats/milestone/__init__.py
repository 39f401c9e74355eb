"""The milestone format: `## Task 1.1: Title` headings, and `state/<milestone>_state.json`."""

from windlass.formats.dialect import Dialect
from windlass.formats.milestone import reader, state
from windlass.formats.milestone.reader import has_task

__all__ = ["MILESTONE", "has_task"]

MILESTONE = Dialect(
    name=reader.name,
    recognises=reader.recognises,
    parse=reader.parse,
    writes=state.writes,
    project=state.project,
    claims=state.claims,
)
