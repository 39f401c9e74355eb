"""What every mirror of a journal promises. Subclass the contract, bring the mirror, run it.

    class TestMine(MirrorContract):
        async def make(self, records): return MyMirror(records)
        async def reopen(self, mirror, records): return MyMirror.over(mirror.storage, records)
        async def stored(self, mirror): return mirror.storage

Each test's name is the promise.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Protocol, TypeAlias, TypeVar

import anyio

from windlass.errors import JournalDamaged

Records: TypeAlias = Callable[[int], Sequence[bytes]]
C = TypeVar("C", bound="MirrorContract")


class Mirror(Protocol):
    """A copy of a journal beside the pins."""

    async def open(self, *, begun: bool) -> None:
        """Go on from what is there. Raises JournalDamaged where the journal is behind it."""
        ...

    async def flush(self) -> None:
        """Copy what is recorded."""
        ...


def promise(scenario: Callable[[C], Awaitable[None]]) -> Callable[[C], None]:
    """A scenario as a test that any test runner can call."""

    @wraps(scenario)
    def test(self: C) -> None:
        anyio.run(scenario, self)

    return test


def record(number: int) -> bytes:
    """A record as a journal holds it, with any character in it."""
    return f'{{"n":{number},"said":"# ü\\\\n 12"}}'.encode()


class MirrorContract:
    """The promises; `make`, `reopen` and `stored` are the subclass's to bring."""

    async def make(self, records: Records) -> Mirror:
        """A mirror of the journal that gives these records."""
        raise NotImplementedError

    async def reopen(self, mirror: Mirror, records: Records) -> Mirror:
        """Another mirror over what that one stored, as a later process makes it."""
        raise NotImplementedError

    async def stored(self, mirror: Mirror) -> list[bytes]:
        """The records that it gives back."""
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
        """What is in the journal before its first fact is of other runs."""
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
    async def test_a_journal_that_is_ahead_of_its_mirror_goes_on(self) -> None:
        """A process may end before it has copied everything."""
        journal = [record(n) for n in range(3)]
        mirror = await self.make(lambda after: journal[after:])
        await mirror.open(begun=True)
        await mirror.flush()
        journal += [record(n) for n in range(3, 9)]
        again = await self.reopen(mirror, lambda after: journal[after:])
        await again.open(begun=True)
        await again.flush()
        assert await self.stored(again) == journal
