"""Work that is done at once, and what its failure is called.

Law: whoever waits is told what failed, not that something in a group did; and what that was caused
by stays with it, for there the disk's own word is found.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio


async def together(*works: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Do what does not wait for each other at once."""
    try:
        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(work)
    except ExceptionGroup as failures:
        failure = first_of(failures)
        raise failure from failure.__cause__


def first_of(failure: Exception) -> Exception:
    """The one that says why; the others are what that tore down."""
    while isinstance(failure, ExceptionGroup):
        failure = failure.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return failure  # pyright: ignore[reportUnknownVariableType]
