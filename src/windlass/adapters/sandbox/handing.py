"""Files that a box is given through descriptors, so that none of them ever lies on a disk.

Bubblewrap reads each to its end, so every start has files of its own, in memory.
"""

import os
from typing import Self


class Handed:
    """The files of one start; closed when the block is left."""

    def __init__(self) -> None:
        self._numbers: list[int] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close them: the process that was started has its own."""
        while self._numbers:
            os.close(self._numbers.pop())

    @property
    def numbers(self) -> tuple[int, ...]:
        """Give the descriptors that bubblewrap must inherit."""
        return tuple(self._numbers)

    def file(self, path: str, text: str) -> tuple[str, ...]:
        """Give the arguments that show a text as a file that cannot be written or moved."""
        return ("--ro-bind-data", self._number(text.encode()), path)

    def filter(self, program: bytes) -> tuple[str, ...]:
        """Give the arguments that lay a filter of calls around the box, where there is one."""
        return ("--seccomp", self._number(program)) if program else ()

    def _number(self, content: bytes) -> str:
        number = os.memfd_create("windlass")
        self._numbers.append(number)
        os.write(number, content)
        os.lseek(number, 0, os.SEEK_SET)
        return str(number)
