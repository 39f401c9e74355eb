"""The person whom a use case may ask, if there is one."""

from collections.abc import Sequence
from typing import Protocol

from windlass.core.state import RunState
from windlass.views.steps import Choice


class Person(Protocol):
    """Answers questions while a use case waits."""

    def choose(self, before: RunState, offered: Sequence[Choice]) -> Choice:
        """Choose what to do with an unfinished run; the first choice is the usual one."""
        ...

    def allow(self, what: str, question: str) -> bool:
        """Allow something that needs a person's consent."""
        ...
