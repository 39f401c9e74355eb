"""A journal in memory. It keeps bytes, so that only what can be written down gets in."""

from collections.abc import Iterator, Sequence

from windlass.core.events import codec
from windlass.core.events.model import Entry, Event
from windlass.core.secrets import Redactor
from windlass.errors import JournalConflict


class MemoryJournal:
    """A journal that ends with the process; two over the same `storage` are one journal."""

    def __init__(
        self, redactor: Redactor | None = None, *, storage: list[bytes] | None = None
    ) -> None:
        self._redactor = redactor or Redactor({})
        self.storage = [] if storage is None else storage
        """What a disk would hold: one payload for each entry."""

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        """Keep the events after position `expected`, or refuse; return them as stored."""
        if not events:
            return ()
        if self.last != expected:
            raise JournalConflict(
                f"another writer was here: the journal ends at {self.last}, not at {expected};"
                " nothing was appended"
            )
        # Whole or not at all: every event is written down before the first is kept.
        self.storage += [codec.encode(self._redactor.event(event)) for event in events]
        return tuple(self.read(expected))

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Every entry after that position."""
        return iter(
            [
                Entry(seq=seq, event=codec.decode(payload))
                for seq, payload in enumerate(self.storage[after:], start=after + 1)
            ]
        )

    def records(self, after: int = 0) -> list[bytes]:
        """Every record after that position."""
        return self.storage[after:]

    @property
    def last(self) -> int:
        """The position of the newest entry, 0 when there is none."""
        return len(self.storage)
