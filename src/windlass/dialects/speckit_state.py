"""The boxes of a spec-kit list: when a task is merged its box is ticked, and nothing else changes.

A projection: it is never read back as state. One character of the user's file is written for each
merged task, and none is ever taken back, for a person may have ticked it.
"""

import re
from collections.abc import Mapping

from windlass.dialects.dialect import Projection, Redact
from windlass.dialects.speckit_line import ID
from windlass.dialects.speckit_list import Listing
from windlass.state import RunState

_DONE = "completed"
_TICK = "X"
_NEWLINE = re.compile(r"\r\n?|\n")
_OPEN = re.compile(
    r"\ufeff?(?:[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)+\[(?P<box>[ ~/!?>])\][ \t]*"
    rf"[*_`\[(]*(?P<id>{ID})"
)


def project(state: RunState, _seq: int, texts: Mapping[str, str], _redact: Redact) -> Projection:
    """The list with the boxes of merged tasks ticked; nothing where nothing is new."""
    path = state.plan.path
    merged = {task.id for task in state.tasks.values() if task.status == _DONE}
    if path not in texts or not merged:
        return {}
    ticked = _ticked(texts[path], merged)
    return {} if ticked == texts[path] else {path: ticked}


def _ticked(text: str, merged: set[str]) -> str:
    starts = [0, *(newline.end() for newline in _NEWLINE.finditer(text))]
    lines = {
        number: found for number, at in enumerate(starts, 1) if (found := _OPEN.match(text, at))
    }
    if merged.isdisjoint(found["id"] for found in lines.values()):
        return text  # which is so most of the time, and spares the reading
    chars = list(text)
    left = set(merged)
    for entry in Listing(text).chosen()[0]:
        found = lines.get(entry.at)
        # Should an id stand there twice by now, the first is the one that the plan had.
        if entry.line.id in left and found is not None:
            chars[found.start("box")] = _TICK
        left.discard(entry.line.id)
    return "".join(chars)
