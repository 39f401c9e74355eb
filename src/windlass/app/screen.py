"""What shows a run while it goes on, and the screen that shows nothing."""

from collections.abc import Sequence
from typing import Protocol, Self

from windlass.core.events.model import Entry
from windlass.core.state import RunState
from windlass.ports import Activity
from windlass.views.lines import Line


class Screen(Protocol):
    """Shows a run while it goes on, and its end; leaves the terminal as it was."""

    def entry(self, entry: Entry, state: RunState) -> None:
        """Tell what happened, given the state it led to."""
        ...

    def remember(self, entry: Entry, state: RunState) -> None:
        """Take note of what happened before anyone looked."""
        ...

    def activity(self, activity: Activity) -> None:
        """Tell what an agent does now."""
        ...

    def say(self, word: str, text: str) -> None:
        """A line that no event tells, such as a warning before the run."""
        ...

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:
        """The end of the story, at that position of the journal, and what to do next."""
        ...

    async def keep(self) -> None:
        """Show that time passes, until cancelled."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class NoScreen:
    """Shows nothing; what goes wrong is an error all the same."""

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
