"""Wait for another process: poll often, and fail with an error after a timeout.

The timeout is long, because a busy machine is not a broken program.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], timeout: float = 60.0) -> T:
    """The first true result of `look`; raises AssertionError after the timeout."""
    deadline = time.monotonic() + timeout
    while not (answer := look()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout} s: {look}")
        time.sleep(0.01)
    return answer
