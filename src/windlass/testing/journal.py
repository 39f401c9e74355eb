"""A journal in memory. It keeps bytes, so it accepts only events that can be encoded."""

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
        """The encoded entries, as a disk would hold them."""

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        """Append the events after position `expected`, or refuse; returns them as stored."""
        if not events:
            return ()
        if self.last != expected:
            raise JournalConflict(
                f"another writer was here: the journal ends at {self.last}, not at {expected};"
                " nothing was appended"
            )
        # All or none: every event is encoded before the first is stored.
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

    def restore(self, records: Sequence[bytes]) -> None:
        """Fill an empty journal with the records of a lost one, or refuse."""
        if self.last:
            raise JournalConflict(f"the journal has {self.last} entries; nothing was restored")
        self.storage += records

    @property
    def last(self) -> int:
        """The position of the newest entry; 0 if there is none."""
        return len(self.storage)
