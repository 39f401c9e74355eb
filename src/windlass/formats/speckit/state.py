"""The boxes of a spec-kit list: Windlass ticks the box of a merged task and changes nothing else.

A projection: Windlass never reads it back as state. It writes one character of the user's file for
each merged task. It removes the tick of a stale task, because that is no longer true, and no other
tick, because a person may have set it.
"""

import re
from collections.abc import Mapping

from windlass.core.state import RunState
from windlass.formats.dialect import Projection
from windlass.formats.speckit.listing import ID, Listing
from windlass.formats.state_files import Redact

_TICK = "X"
_NEWLINE = re.compile(r"\r\n?|\n")


def _boxes(marks: str) -> re.Pattern[str]:
    return re.compile(
        rf"\ufeff?(?:[ \t]*(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]+)+\[(?P<box>[{marks}])\][ \t]*"
        rf"[*_`\[(]*(?P<id>{ID})"
    )


_OPEN, _TICKED = _boxes(" ~/!?>"), _boxes(_TICK)


def project(state: RunState, texts: Mapping[str, str], _redact: Redact) -> Projection:
    """The list with the boxes of merged tasks ticked; empty where nothing changes."""
    path = state.plan.path
    merged = {task.id for task in state.tasks.values() if task.status == "completed"}
    stale = set(state.stale)
    if path not in texts or not merged | stale:
        return {}
    ticked = _marked(texts[path], merged, _OPEN, _TICK)
    ticked = _marked(ticked, stale, _TICKED, " ")
    return {} if ticked == texts[path] else {path: ticked}


def _marked(text: str, ids: set[str], boxes: re.Pattern[str], mark: str) -> str:
    """The text with that mark in the matching boxes of these tasks."""
    starts = [0, *(newline.end() for newline in _NEWLINE.finditer(text))]
    lines = {
        number: found for number, at in enumerate(starts, 1) if (found := boxes.match(text, at))
    }
    if ids.isdisjoint(found["id"] for found in lines.values()):
        return text  # the common case, without parsing
    chars = list(text)
    left = set(ids)
    for entry in Listing(text).chosen()[0]:
        found = lines.get(entry.at)
        # If an id appears twice, the plan has the first.
        if entry.line.id in left and found is not None:
            chars[found.start("box")] = mark
        left.discard(entry.line.id)
    return "".join(chars)
