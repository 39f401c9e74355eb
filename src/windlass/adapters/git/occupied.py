"""Whether somebody still stands in a folder: a person's shell or editor, in a workspace they took.

What they write there after the task is merged must not end up in another task's workspace.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def is_occupied(folder: Path) -> bool:
    """Whether a process works there, or has a file of it open; where nobody can tell, none has."""
    around = f"{os.path.realpath(folder)}/"
    return any(f"{place}/".startswith(around) for place in _places())


def _places() -> Iterator[str]:
    """Every working folder and open file that this user may know of."""
    with suppress(OSError):
        for pid in os.listdir("/proc"):  # noqa: PTH208  a Path each costs as much again
            if pid.isdigit():
                yield from _places_of(f"/proc/{pid}")


def _places_of(process: str) -> Iterator[str]:
    with suppress(OSError):
        yield os.readlink(f"{process}/cwd")  # noqa: PTH115  as above
        for fd in os.listdir(f"{process}/fd"):  # noqa: PTH208  as above
            with suppress(OSError):
                yield os.readlink(f"{process}/fd/{fd}")  # noqa: PTH115  as above
