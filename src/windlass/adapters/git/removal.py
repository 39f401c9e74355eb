"""Removing what is Windlass's own, whatever an agent made of it: links are never followed."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import anyio.to_thread


async def remove(*paths: Path) -> None:
    """Remove files, links and folders; none is as good as gone."""
    full = [path for path in paths if not _is_gone_at_once(path)]
    if full:
        await anyio.to_thread.run_sync(remove_here, *full)


def remove_here(*paths: Path) -> None:
    """The same, for a thread that has time."""
    for path in paths:
        if not _is_gone_at_once(path):
            remove_tree(path)


def _is_gone_at_once(path: Path) -> bool:
    """Remove all but a folder that holds something, which takes its time."""
    if path.is_dir() and not path.is_symlink():
        try:
            path.rmdir()
        except OSError:
            return False
    else:
        path.unlink(missing_ok=True)
    return True


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it."""
    try:
        shutil.rmtree(path)
    except (PermissionError, RecursionError):
        # A folder made read-only keeps its entries; one made very deep is too much for Python.
        _open_up(path)
        subprocess.run(["rm", "-rf", "--", path], check=True)


def _open_up(path: Path) -> None:
    """Make every folder one that can be entered and emptied, the outer before the inner."""
    folders = [str(path)]
    while folders:
        # Beyond the longest path there is nothing to do here, and rm finds its own way.
        with contextlib.suppress(OSError):
            folder = folders.pop()
            os.chmod(folder, 0o700)  # noqa: PTH101  a Path a folder is slow in a deep tree
            with os.scandir(folder) as entries:
                folders += [e.path for e in entries if e.is_dir(follow_symlinks=False)]
