"""The screen of a run, and one that shows nothing."""

from collections.abc import Sequence
from typing import Protocol, Self

from windlass.core.events.model import Entry
from windlass.core.state import RunState
from windlass.ports import Activity
from windlass.views.lines import Line


class Screen(Protocol):
    """Shows a run and its end; restores the terminal afterwards."""

    def entry(self, entry: Entry, state: RunState) -> None:
        """Show an event; `state` is the state after it."""
        ...

    def remember(self, entry: Entry, state: RunState) -> None:
        """Take in an earlier event without showing it."""
        ...

    def activity(self, activity: Activity) -> None:
        """Show what an agent does now."""
        ...

    def say(self, word: str, text: str) -> None:
        """Show a line that belongs to no event, such as a warning before the run."""
        ...

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:
        """Show the end of the run and the next commands; `seq` is the journal's last position."""
        ...

    async def keep(self) -> None:
        """Keep clocks current, until cancelled."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class NoScreen:
    """Shows nothing."""

    def entry(self, entry: Entry, state: RunState) -> None:
        """Nothing."""

    def remember(self, entry: Entry, state: RunState) -> None:
        """Nothing."""

    def activity(self, activity: Activity) -> None:
        """Nothing."""

    def say(self, word: str, text: str) -> None:
        """Nothing."""

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:
        """Nothing."""

    async def keep(self) -> None:
        """Nothing."""

    def __enter__(self) -> Self:
        """Nothing to prepare."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to restore."""
