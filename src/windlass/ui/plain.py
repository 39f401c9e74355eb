"""Plain lines on a stream: one for each thing that happened, stamped in UTC.

Words stand right-aligned in one column, so that the eye finds what it looks for. Colour only where
the stream is a terminal that wants it; nothing an agent says can move the cursor.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import TextIO

from windlass.events.model import Entry
from windlass.ports import Activity
from windlass.state import RunState
from windlass.views.story import Line, line_of
from windlass.views.words import one_line

_COLOURS = {
    "DONE": "32",
    "START": "1",
    "RESUME": "1",
    "RETURNED": "33",
    "ANSWER": "36",
    "GO": "36",
    "CONFLICT": "33",
    "WAIT": "33",
    "FAILED": "31",
    "ABANDONED": "31",
    "BLOCKED": "31",
    "NEEDS YOU": "35",
    "STOP": "33",
    "Summary": "1",
    "Next": "1",
}
_SHOWN = frozenset({"tool", "retry"})


class PlainScreen:
    """Writes the story as it happens."""

    def __init__(self, stream: TextIO, *, colour: bool, verbose: bool, quiet: bool) -> None:
        self._stream = stream
        self._colour = colour
        self._verbose = verbose
        self._quiet = quiet

    def entry(self, entry: Entry, state: RunState) -> None:
        """Tell what happened, if it is worth telling."""
        line = line_of(entry.event, state)
        if line is not None and not self._quiet:
            self._write(line, _stamp(entry.event.at))

    def activity(self, activity: Activity) -> None:
        """Tell what an agent does now: one line for each tool call, its words only on request."""
        if self._quiet or not (self._verbose or activity.kind in _SHOWN):
            return
        arrow = "→" if activity.kind == "tool" else "·"
        self._print(f"{'':9}  {'':>9}  {activity.task} {arrow} {one_line(activity.text, 120)}")

    def closing(self, lines: Iterable[Line]) -> None:
        """The end of the story, and what to do next."""
        self._print("")
        for line in lines:
            self._write(line, "")

    def say(self, word: str, text: str) -> None:
        """A line that no event tells, such as a warning before the run."""
        self._write(Line(word, text), "")

    def _write(self, line: Line, stamp: str) -> None:
        word = f"{line.word:>9}"
        if self._colour and line.word in _COLOURS:
            word = f"\x1b[{_COLOURS[line.word]}m{word}\x1b[0m"
        self._print(f"{stamp:9}  {word}  {line.text}")
        for detail in line.details:
            self._print(f"{'':9}  {'':>9}  {detail}")

    def _print(self, text: str) -> None:
        self._stream.write(text.rstrip() + "\n")
        self._stream.flush()


def _stamp(at: datetime) -> str:
    return f"{at:%H:%M:%S}Z"
