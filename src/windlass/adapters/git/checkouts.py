"""Checkouts of exactly one commit, each a small repository of its own that shares the objects.

The `.git` inside belongs to whoever works there and is never trusted: it is made anew for every
use, and Windlass looks at the files through its own git directory and an index kept elsewhere.
"""

import shutil
from pathlib import Path

import anyio.to_thread

from windlass.adapters.git.store import Store, config_text

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
        self.dress(building, commit, index)
        building.rename(path)

    async def fill(self, path: Path, treeish: str, index: Path) -> None:
        """Make the tracked files of a checkout those of a tree, whatever they are now."""
        await self._store.trees("read-tree", "-u", "--reset", treeish, work_tree=path, index=index)

    def dress(self, path: Path, commit: str, index: Path) -> None:
        """Give the checkout a new `.git` that stands at the commit, and throw the old one away."""
        dot_git = path / ".git"
        if dot_git.is_symlink() or dot_git.is_file():
            dot_git.unlink()
        elif dot_git.exists():
            shutil.rmtree(dot_git)
        for folder in ("objects/info", "refs/heads", "info"):
            (dot_git / folder).mkdir(parents=True)
        (dot_git / "HEAD").write_text(f"ref: refs/heads/{BRANCH}\n")
        (dot_git / "refs/heads" / BRANCH).write_text(f"{commit}\n")
        (dot_git / "config").write_text(config_text(self._store.origin))
        alternate = self._store.origin.objects[0]
        (dot_git / "objects/info/alternates").write_text(f"{alternate}\n")
        shutil.copyfile(self._store.folders.git / "info/exclude", dot_git / "info/exclude")
        shallow = self._store.folders.git / "shallow"
        if shallow.exists():
            shutil.copyfile(shallow, dot_git / "shallow")
        shutil.copyfile(index, dot_git / "index")


async def remove(path: Path) -> None:
    """Remove a folder of Windlass's own, links in it not followed, whatever modes agents set."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        await anyio.to_thread.run_sync(_remove_tree, path)


def _remove_tree(path: Path) -> None:
    try:
        shutil.rmtree(path)
    except PermissionError:
        # A folder an agent made read-only keeps its entries from being removed.
        for folder in [path, *(p for p in path.rglob("*") if p.is_dir() and not p.is_symlink())]:
            folder.chmod(0o700)
        shutil.rmtree(path)
