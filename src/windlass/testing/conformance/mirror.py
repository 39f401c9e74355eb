"""What every mirror of a journal promises. Subclass the contract, provide the mirror, run it.

    class TestMine(MirrorContract):
        async def make(self, records): return MyMirror(records)
        async def reopen(self, mirror, records): return MyMirror.over(mirror.storage, records)
        async def stored(self, mirror): return mirror.storage

Each test's name is the promise.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from windlass.errors import JournalDamaged
from windlass.testing.conformance.repository import promise

Records: TypeAlias = Callable[[int], Sequence[bytes]]


class Mirror(Protocol):
    """A copy of a journal beside the pins."""

    async def open(self, *, begun: bool) -> None:
        """Continue from the stored copy. Raises JournalDamaged if the journal is behind it."""
        ...

    async def flush(self) -> None:
        """Copy every new record."""
        ...


def record(number: int) -> bytes:
    """An encoded record, with unusual characters."""
    return f'{{"n":{number},"said":"# ü\\\\n 12"}}'.encode()


class MirrorContract:
    """The promises. A subclass provides `make`, `reopen` and `stored`."""

    async def make(self, records: Records) -> Mirror:
        """A mirror of the journal with these records."""
        raise NotImplementedError

    async def reopen(self, mirror: Mirror, records: Records) -> Mirror:
        """Open the same storage again, as a later process would."""
        raise NotImplementedError

    async def stored(self, mirror: Mirror) -> list[bytes]:
        """The records that the mirror holds."""
        raise NotImplementedError

    @promise
    async def test_what_is_recorded_is_copied_byte_for_byte_and_in_order(self) -> None:
        """Across flushes, and across processes."""
        journal: list[bytes] = []
        mirror = await self.make(lambda after: journal[after:])
        await mirror.open(begun=True)
        for count in (1, 2, 40):
            journal += [record(len(journal) + n) for n in range(count)]
            await mirror.flush()
            assert await self.stored(mirror) == journal
        again = await self.reopen(mirror, lambda after: journal[after:])
        await again.open(begun=True)
        journal.append(record(99))
        await again.flush()
        assert await self.stored(again) == journal

    @promise
    async def test_a_run_that_never_begins_leaves_no_mirror(self) -> None:
        """The facts that are in the journal before the run's first one belong to other runs."""
        journal = [record(1)]
        mirror = await self.make(lambda after: journal[after:])
        await mirror.open(begun=False)
        await mirror.flush()
        assert await self.stored(mirror) == []
        journal.append(record(2))
        await mirror.flush()
        assert await self.stored(mirror) == journal

    @promise
    async def test_a_journal_that_is_behind_its_mirror_is_refused(self) -> None:
        """It was cut short, or is an old copy."""
        journal = [record(n) for n in range(5)]
        mirror = await self.make(lambda after: journal[after:])
        await mirror.open(begun=True)
        await mirror.flush()
        for other in (journal[:3], [*journal[:3], record(7), record(8), record(9)]):
            again = await self.reopen(mirror, lambda after, other=other: other[after:])
            refused = False
            try:
                await again.open(begun=True)
            except JournalDamaged:
                refused = True
            assert refused
        assert await self.stored(mirror) == journal

    @promise
    async def test_a_journal_that_is_ahead_of_its_mirror_continues(self) -> None:
        """A process may end before it copied every record."""
        journal = [record(n) for n in range(3)]
        mirror = await self.make(lambda after: journal[after:])
        await mirror.open(begun=True)
        await mirror.flush()
        journal += [record(n) for n in range(3, 9)]
        again = await self.reopen(mirror, lambda after: journal[after:])
        await again.open(begun=True)
        await again.flush()
        assert await self.stored(again) == journal
