"""Waiting for what another process does: look often, and give up loudly.

Patience costs nothing where all is well, and a busy machine is not a broken program.
"""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], timeout: float = 60.0) -> T:
    """The first answer that is true; an AssertionError when there is none in time."""
    deadline = time.monotonic() + timeout
    while not (answer := look()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"not within {timeout} s: {look}")
        time.sleep(0.01)
    return answer
