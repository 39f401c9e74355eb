"""What an agent can leave in a folder that stops or misleads every git that looks at it.

A pipe that is called as one of git's own files makes git wait until somebody writes to it, which is
for ever; and of a folder that it may not open, git only warns, and goes on as if it were empty.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from windlass.adapters.git.excludes import FOLDERS


def snares(folder: Path) -> Iterator[Path]:
    """Such pipes and links, and folders that cannot be read; by-products are nobody's concern."""
    folders = [str(folder)]
    while folders:
        path = folders.pop()
        if not os.access(path, os.R_OK | os.X_OK):
            yield Path(path)
            continue
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name == ".git" or entry.name in FOLDERS:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.startswith(".git") and _stops_git(entry):
                    yield Path(entry.path)


def disarm(folder: Path) -> None:
    """Remove them, and open what is closed, where Windlass is about to write files itself."""
    for snare in snares(folder):
        if is_folder(snare):
            snare.chmod(0o700)
            disarm(snare)
        else:
            snare.unlink()


def is_folder(path: Path) -> bool:
    """Whether a snare is a folder."""
    try:
        return path.is_dir() and not path.is_symlink()
    except OSError:  # too long a path to ask about; only folders nest so deep
        return True


def _stops_git(entry: os.DirEntry[str]) -> bool:
    if entry.is_symlink():
        return entry.name == ".gitmodules"  # the one that git follows, to wherever it leads
    return not entry.is_file()
