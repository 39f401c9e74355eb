"""Concurrent work, and the failure to report.

Law: the caller gets the exception that failed, not an exception group; its cause stays with it,
because the disk's error is found there.
"""

from collections.abc import Callable, Coroutine
from typing import Any

import anyio


async def together(*works: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run all of these concurrently."""
    try:
        async with anyio.create_task_group() as group:
            for work in works:
                group.start_soon(work)
    except ExceptionGroup as failures:
        failure = first_of(failures)
        raise failure from failure.__cause__


def first_of(failure: Exception) -> Exception:
    """The first failure; the others follow from its cancellation."""
    while isinstance(failure, ExceptionGroup):
        failure = failure.exceptions[0]  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return failure  # pyright: ignore[reportUnknownVariableType]
