"""What of the host's system folders this user may read and others may not: no box shows it.

Law: a box shows of them what any user of the machine may see. Passwords, keys and their backups are
told by their modes, wherever a distribution puts them, and not by a list. In a box root has no more
rights than an owner has; but it owns them all, which is why only root needs to look.
"""

import os
import stat
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

FOLDERS = {Path("/etc"): 16, Path("/var"): 3}
"""Where to look, and how deep: deeper in /var are many files, and few that are closed alone."""


def private(named: Container[Path], folders: Mapping[Path, int] = FOLDERS) -> Iterator[Path]:
    """Give what only root may see; below what is named by somebody nobody looks."""
    if os.geteuid() != 0:
        return  # who may not read them out here may not in there either
    for folder, depth in folders.items():
        yield from _closed(folder, depth, named)


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
