"""Checkouts of exactly one commit, each a small repository of its own that shares the objects.

The `.git` inside belongs to whoever works there and is never trusted: it is made anew for every
use, and Windlass looks at the files through its own git directory and an index kept elsewhere.
"""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import anyio.to_thread

from windlass.adapters.git.snares import disarm
from windlass.adapters.git.store import Store, config_text

PLAYER = "[user]\n\tname = Player\n\temail = player@windlass.invalid\n"
"""Whoever works here may commit; nobody will mistake those commits for the user's."""

BRANCH = "work"
"""The one branch of a checkout; there are no remotes and no tags."""


class Checkouts:
    """Makes and removes checkouts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def make(self, path: Path, commit: str, index: Path) -> None:
        """A fresh checkout at `path`, whole or not at all."""
        building = path.with_name(f".{path.name}.building")
        await remove(building)
        await remove(path)
        building.mkdir(parents=True)
        index.parent.mkdir(parents=True, exist_ok=True)
        index.unlink(missing_ok=True)
        await self.fill(building, commit, index)
        await self.dress(building, commit, index)
        building.rename(path)

    async def fill(self, path: Path, treeish: str, index: Path) -> None:
        """Make the tracked files of a checkout those of a tree, whatever they are now."""
        await anyio.to_thread.run_sync(disarm, path)
        await self._store.trees("read-tree", "-u", "--reset", treeish, work_tree=path, index=index)

    async def restore(self, path: Path, index: Path) -> None:
        """Make the tracked files of a checkout those of its index again."""
        await anyio.to_thread.run_sync(disarm, path)
        await self._store.trees("checkout-index", "--all", "--force", work_tree=path, index=index)

    async def dress(self, path: Path, commit: str, index: Path) -> None:
        """Give the checkout a new `.git` that stands at the commit, and throw the old one away."""
        dot_git = path / ".git"
        await remove(dot_git)
        for folder in ("objects/info", "refs/heads", "info"):
            (dot_git / folder).mkdir(parents=True)
        (dot_git / "HEAD").write_text(f"ref: refs/heads/{BRANCH}\n")
        (dot_git / "refs/heads" / BRANCH).write_text(f"{commit}\n")
        (dot_git / "config").write_text(config_text(self._store.origin) + PLAYER)
        # All of them: git does not follow a relative path in an alternate's own alternates.
        alternates = "".join(f"{folder}\n" for folder in self._store.origin.objects)
        (dot_git / "objects/info/alternates").write_text(alternates)
        shutil.copyfile(self._store.folders.git / "info/exclude", dot_git / "info/exclude")
        shallow = self._store.folders.git / "shallow"
        if shallow.exists():
            shutil.copyfile(shallow, dot_git / "shallow")
        shutil.copyfile(index, dot_git / "index")


async def remove(path: Path) -> None:
    """Remove what is Windlass's own, links not followed, whatever an agent made of it."""
    if path.is_dir() and not path.is_symlink():
        await anyio.to_thread.run_sync(_remove_tree, path)
    else:
        path.unlink(missing_ok=True)


def _remove_tree(path: Path) -> None:
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
