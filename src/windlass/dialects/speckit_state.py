"""The boxes of a spec-kit list: when a task is merged its box is ticked, and nothing else changes.

A projection: it is never read back as state. One character of the user's file is written for each
merged task. The tick of a stale task is taken back, for what it says is not true; no other is, for
a person may have ticked it.
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


def _boxes(marks: str) -> re.Pattern[str]:
    return re.compile(
        rf"\ufeff?(?:[ \t]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]+)+\[(?P<box>[{marks}])\][ \t]*"
        rf"[*_`\[(]*(?P<id>{ID})"
    )


_OPEN, _TICKED = _boxes(" ~/!?>"), _boxes(_TICK)


def project(state: RunState, _seq: int, texts: Mapping[str, str], _redact: Redact) -> Projection:
    """The list with the boxes of merged tasks ticked; nothing where nothing is new."""
    path = state.plan.path
    merged = {task.id for task in state.tasks.values() if task.status == _DONE}
    stale = set(state.stale)
    if path not in texts or not merged | stale:
        return {}
    ticked = _marked(texts[path], merged, _OPEN, _TICK)
    ticked = _marked(ticked, stale, _TICKED, " ")
    return {} if ticked == texts[path] else {path: ticked}


def _marked(text: str, ids: set[str], boxes: re.Pattern[str], mark: str) -> str:
    """The text with that mark in such boxes of these tasks."""
    starts = [0, *(newline.end() for newline in _NEWLINE.finditer(text))]
    lines = {
        number: found for number, at in enumerate(starts, 1) if (found := boxes.match(text, at))
    }
    if ids.isdisjoint(found["id"] for found in lines.values()):
        return text  # which is so most of the time, and spares the reading
    chars = list(text)
    left = set(ids)
    for entry in Listing(text).chosen()[0]:
        found = lines.get(entry.at)
        # Should an id stand there twice by now, the first is the one that the plan had.
        if entry.line.id in left and found is not None:
            chars[found.start("box")] = mark
        left.discard(entry.line.id)
    return "".join(chars)
