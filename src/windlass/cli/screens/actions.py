"""Plain lines for GitHub Actions: details in groups, failures as annotations.

Law: only Windlass sends commands to the runner. In text of agents, plans and checks, no line begins
with `::` or contains `##[`, which the runner would obey.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TextIO

from windlass.cli.screens.plain import PlainScreen
from windlass.core.events import model as e
from windlass.core.state import RunState
from windlass.views.cost import column, task_cost
from windlass.views.lines import Line
from windlass.views.progress import progress
from windlass.views.words import markdown_text, one_line

_LINE = re.compile(r"^(.*?):(\d+)(?::\d+)?$")
_MOST = 10
"""Annotations of one failure; the runner shows no more for a step."""
_CELL = 300


class ActionsScreen(PlainScreen):
    def __init__(
        self,
        stream: TextIO,
        *,
        now: Callable[[], datetime],
        verbose: bool,
        quiet: bool,
        summary: str | None = None,
    ) -> None:
        """`summary` is the file of the job's summary page, if there is one."""
        super().__init__(stream, now=now, verbose=verbose, quiet=quiet)
        self._summary = summary

    def entry(self, entry: e.Entry, state: RunState) -> None:
        super().entry(entry, state)
        if isinstance(entry.event, e.TaskAbandoned):
            for command in errors(entry.event, state):
                self.command(command)

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:
        """Print the last lines, and write the summary page of the job."""
        super().closing(state, seq, lines)
        if not self._summary:
            return
        rows = [
            (
                f"{id_} {state.specs[id_].title}",
                task.status.replace("_", " "),
                str(task.turns),
                column(task_cost(state, state.tasks[id_])),
            )
            for id_, task in progress(state, seq).tasks.items()
        ]
        # A summary that cannot be written does not fail the run.
        with (
            suppress(OSError),
            Path(self._summary).open("a", encoding="utf-8", errors="replace") as file,
        ):
            file.write(summary(state, lines, rows))

    def write(self, line: Line, at: str) -> None:
        if not line.details or not at:
            super().write(line, at)
            return
        self.command(f"::group::{data(f'{at} {line.word} {line.text}')}")
        for detail in line.details:
            self.print(f"  {detail}")
        self.command("::endgroup::")

    def print(self, text: str) -> None:
        super().print(defused(text))

    def command(self, text: str) -> None:
        """Send a command to the runner."""
        super().print(text)


def errors(event: e.TaskAbandoned, state: RunState) -> list[str]:
    """The annotations of an abandoned task: its must_fix issues, or the reason."""
    title = f"{event.task} {one_line(state.specs[event.task].title, 60)}"
    attempts = state.tasks[event.task].attempts
    reviews = [c.review for a in attempts for c in a.coachings if c.review is not None]
    found = [i for r in reviews[-1:] for i in r.issues if i.severity == "must_fix"]
    lines = [_error(title, one_line(issue.description, 500), issue.file) for issue in found]
    return lines[:_MOST] or [_error(title, one_line(event.reason, 500), None)]


def _error(title: str, text: str, file: str | None) -> str:
    where = ""
    if file and (name := one_line(file, 300)):
        split = _LINE.match(name)
        path, line = split.groups() if split else (name, None)
        where = f"file={_property(path)},{f'line={line},' if line else ''}"
    return f"::error {where}title={_property(title)}::{data(text)}"


def data(text: str) -> str:
    """Text escaped for the part after the second `::`."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return data(text).replace(":", "%3A").replace(",", "%2C")


def defused(text: str) -> str:
    """The line, changed so that the runner sees no command in it."""
    safe = text.replace("##[", "# #[")
    return re.sub(r"^(\s*)::", r"\1: :", safe)


def summary(state: RunState, lines: Iterable[Line], rows: Iterable[tuple[str, ...]]) -> str:
    """The end of a run in Markdown, for the summary page of the job."""
    table = ["| task | status | turns | cost |", "|---|---|---|---|"]
    table += [f"| {' | '.join(markdown_text(cell, _CELL) for cell in row)} |" for row in rows]
    items = [f"- **{line.word}** {markdown_text(line.text, _CELL)}" for line in lines]
    return "\n".join([f"## {markdown_text(state.plan.title, _CELL)}", "", *items, "", *table, ""])
