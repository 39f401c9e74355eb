"""continue-here: where a paused run stands and how it goes on, for people.

Law: only the two lines that name plan and run are ever read back, as a pointer; all else comes
from the journal.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from windlass.events.model import RunEnd
from windlass.state import Phase, RunState
from windlass.views.progress import commits_of, integration_branch
from windlass.views.tree import position, tree
from windlass.views.words import one_line

_LINE = re.compile(r"^(Plan|Run): (\S+)[ \t]*\r?$", re.MULTILINE)


class Pointer(Struct, frozen=True):
    """The run that such a file is about."""

    plan: str
    run: str


def continue_here(state: RunState, seq: int, redact: Callable[[str], str] = str) -> str | None:
    """The file's text; None where the run is not paused, and there is to be no such file."""
    if state.ended is not RunEnd.PAUSED:
        return None
    told = [
        f"Execution paused at {position(state)}.",
        "",
        f"Plan: {state.plan.id}",
        f"Run: {state.run}",
        f"File: {one_line(state.plan.path, 500)}",
        f"Commits: {commits_done(state)} completed",
        f"Branch: {integration_branch(state)}",
        f"Journal: {seq}",
        "",
        "Progress:",
        *(redact(line) for line in tree(state)),
        "",
        "To resume: windlass resume",
    ]
    return "\n".join(told) + "\n"


def commits_done(state: RunState) -> int:
    """How many commits the merged tasks are made of."""
    merged = (task for task in state.tasks.values() if task.phase is Phase.MERGED)
    return sum(len(commits_of(task)) for task in merged)


def pointer(text: str) -> Pointer | None:
    """The run that the text names, if it is such a file."""
    found: dict[str, str] = {}
    for line in _LINE.finditer(text):
        found.setdefault(line[1], line[2])
    return Pointer(found["Plan"], found["Run"]) if found.keys() == {"Plan", "Run"} else None
