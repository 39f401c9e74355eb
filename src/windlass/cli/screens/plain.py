"""Plain lines on a stream: one for each event, with the time in UTC.

Words are right-aligned in one column. No text of an agent can move the cursor. After a minute of
silence a line shows the current state.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self, TextIO

import anyio

from windlass.cli.screens.terminal import BY_WORD, coloured
from windlass.core.events.model import Entry
from windlass.core.state import RunState
from windlass.ports import Activity
from windlass.views.activity import TaskViews, after_activity, after_event, setup_line
from windlass.views.board import heartbeat
from windlass.views.columns import ascii_only
from windlass.views.lines import Line
from windlass.views.story import line_of
from windlass.views.times import time_of_day
from windlass.views.words import duration, one_line

BEAT = timedelta(minutes=1)
"""The longest silence."""
_SHOWN = frozenset({"tool", "retry"})
_INDENT = " " * 22


class PlainScreen:
    def __init__(
        self,
        stream: TextIO,
        *,
        now: Callable[[], datetime],
        colour: bool = False,
        verbose: bool = False,
        quiet: bool = False,
        plain_letters: bool = False,
    ) -> None:
        self._stream = stream
        self._now = now
        self._colour = colour
        self._verbose = verbose
        self._quiet = quiet
        self._ascii = plain_letters
        self._state: RunState | None = None
        self._views: TaskViews = {}
        self._spoke = now()

    def entry(self, entry: Entry, state: RunState) -> None:
        if self._quiet:
            return
        self.remember(entry, state)
        line = line_of(entry.event, state)
        if line is not None:
            self.write(line, stamp(entry.event.at))

    def remember(self, entry: Entry, state: RunState) -> None:
        """Keep the state for the next heartbeat, and print nothing."""
        self._state, self._views = state, after_event(self._views, entry.event, state)

    def activity(self, activity: Activity) -> None:
        """Print a line for each setup command and tool call; agents' words only with --verbose."""
        if self._quiet:
            return
        self._views = after_activity(self._views, activity)
        if activity.kind == "setup":
            self.write(setup_line(activity, self._state), stamp(activity.at or self._now()))
        elif self._verbose or activity.kind in _SHOWN:
            arrow = "→" if activity.kind == "tool" else "·"
            line = f"{activity.task} {arrow} {one_line(activity.text, 120)}"
            self.print(f"{stamp(activity.at or self._now()):9}  {'':>9}  {line}")

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:  # noqa: ARG002
        self.print("")
        for line in lines:
            self.write(line, "")

    def say(self, word: str, text: str) -> None:
        """Print a line that belongs to no event, such as a warning before the run."""
        self.write(Line(word, one_line(text, 1000)), "")

    async def keep(self) -> None:
        """Print a heartbeat after every long silence."""
        while not self._quiet:
            left = self._spoke + BEAT - self._now()
            await anyio.sleep(max(1.0, left.total_seconds()))
            self.beat()

    def beat(self) -> None:
        now = self._now()
        if self._state is not None and now >= self._spoke + BEAT:
            self.write(Line("ALIVE", heartbeat(self._state, self._views, now)), stamp(now))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to restore."""

    def write(self, line: Line, at: str) -> None:
        word = f"{line.word:>9}"
        if self._colour:
            word = coloured(word, BY_WORD.get(line.word, ""))
        took = f" · {duration(line.took)}" if line.took is not None else ""
        self.print(f"{at:9}  {word}  {line.text}{took}")
        for detail in line.details:
            self.print(f"{_INDENT}{detail}")

    def print(self, text: str) -> None:
        self._spoke = self._now()
        shown = text.rstrip()
        self._stream.write((ascii_only(shown) if self._ascii else shown) + "\n")
        self._stream.flush()


def stamp(at: datetime) -> str:
    return time_of_day(at.astimezone(UTC), seconds=True)
