"""What of the host's system folders this user may read and others may not: no box shows it.

Law: a box shows of them what any user of the machine may see. Passwords, keys and their backups are
told by their modes, wherever a distribution puts them, and not by a list. In a box root has no more
rights than an owner has; but it owns them all, which is why only root needs to look.
"""

import os
import stat
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

DEPTH = 16


def private(named: Container[Path], places: Iterable[Path]) -> Iterator[Path]:
    """Give what only root may see in these files and folders; what is named itself is left out."""
    if os.geteuid() != 0:
        return  # who may not read them out here may not in there either
    for place in places:
        if place.is_dir():
            yield from _closed(place, DEPTH, named)


def _closed(folder: Path, depth: int, named: Container[Path]) -> Iterator[Path]:
    for entry in _entries(folder):
        path = Path(entry.path)
        try:
            found = entry.stat(follow_symlinks=False)
        except OSError:  # gone meanwhile
            continue
        if stat.S_ISLNK(found.st_mode) or path in named:
            continue
        is_folder = stat.S_ISDIR(found.st_mode)
        if found.st_mode & (stat.S_IXOTH if is_folder else stat.S_IROTH):
            if is_folder and depth > 1:
                yield from _closed(path, depth - 1, named)
        # What is empty has nothing to hide, and each cover takes its time.
        elif _is_ours(found) and (_entries(path) if is_folder else found.st_size):
            yield path


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _is_ours(found: os.stat_result) -> bool:
    """Whether its owner's rights, or those of its group, are ours without any capability."""
    if found.st_uid == os.geteuid():
        return True
    return found.st_gid in {os.getegid(), *os.getgroups()}
