"""What the meter knows of an agent's requests while the agent works.

Law: while a request is held until money is free, its model was not asked. So an agent's idle time
does not count then; its total deadline does.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager


class Holds:
    """The requests of one agent that the meter holds, and why the last one got no answer."""

    def __init__(self) -> None:
        self._requests = 0
        self._changed: Callable[[], None] = lambda: None
        self.unreached = ""
        """Why the provider could not be reached; empty once it has answered."""

    @property
    def any(self) -> bool:
        return self._requests > 0

    @contextmanager
    def hold(self) -> Generator[None]:
        """Count a request as held until the end of the block."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def watched(self, changed: Callable[[], None]) -> Generator[None]:
        """Call this when the first request is held and when the last is released, in the block."""
        before, self._changed = self._changed, changed
        try:
            yield
        finally:
            self._changed = before

    def _count(self, more: int) -> None:
        was, self._requests = self.any, self._requests + more
        if self.any is not was:
            self._changed()
