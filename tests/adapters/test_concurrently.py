"""What is done at once, and what its failure is called."""

import errno

import anyio
import pytest

from windlass.adapters.concurrently import together
from windlass.errors import JournalUnwritable

pytestmark = pytest.mark.anyio


async def test_both_are_done_and_neither_waits_for_the_other():
    came, done = anyio.Event(), list[str]()

    async def first() -> None:
        await came.wait()
        done.append("first")

    async def second() -> None:
        done.append("second")
        came.set()

    await together(first, second)
    assert done == ["second", "first"]


async def test_what_failed_is_raised_as_it_is_with_its_cause():
    """The disk's own word is in the cause."""

    async def fails() -> None:
        raise JournalUnwritable("no", hint="mend it") from OSError(errno.EROFS, "read-only")

    with pytest.raises(JournalUnwritable, match="no") as caught:
        await together(fails, anyio.sleep_forever)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.EROFS
