"""The person whom a use case may ask. A face brings one; without one nothing is asked."""

from collections.abc import Sequence
from typing import Protocol

from windlass.core.state import RunState
from windlass.views.steps import Choice


class Person(Protocol):
    """Answers questions while a use case waits."""

    def choose(self, before: RunState, offered: Sequence[Choice]) -> Choice:
        """Choose how an unfinished run goes on; the first is the usual way."""
        ...

    def allow(self, what: str, question: str) -> bool:
        """Say yes or no to what is not done without a person's word."""
        ...
