"""Sockets of the host that have a name in the file system: behind each of them somebody answers.

A network of its own keeps a box from none of them: whoever sees the name may call. Most lie in
`/run` and folders for temporary files, which are the box's own; the rest is asked of the kernel.
"""

import stat
from collections.abc import Iterator
from pathlib import Path

_TABLE = Path("/proc/net/unix")
_COLUMNS = 8
"""The last of a line is the name, where it has one."""


def sockets() -> Iterator[Path]:
    """Give those that are there now; one bound by a name that leads from no root is not found."""
    try:
        lines = _TABLE.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    names = {line.split(maxsplit=_COLUMNS - 1)[-1] for line in lines if " /" in line}
    for path in map(Path, sorted(names)):
        try:
            if stat.S_ISSOCK(path.stat().st_mode):
                yield path.resolve()
        except OSError:  # gone, or of another mount namespace
            continue
