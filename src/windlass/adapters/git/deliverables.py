"""Whether git holds what a stage should have left: merges, files, and nothing uncommitted.

However many tasks there are, one call tells of all their commits whether the tip holds them; all
else is read through the git that stays.
"""

import contextlib
from collections.abc import Iterable
from pathlib import PurePosixPath

import anyio.to_thread

from windlass.adapters.git.excludes import made_by_setup
from windlass.adapters.git.snares import snares
from windlass.adapters.git.store import Store, printable_line
from windlass.adapters.git.throwaways import Throwaways
from windlass.errors import GitFailed
from windlass.ports import Expected

_TOLD = 3
"""How many paths of a workspace are told."""


class Deliverables:
    """Looks for what should be there."""

    def __init__(self, store: Store, throwaways: Throwaways) -> None:
        self._store = store
        self._throwaways = throwaways

    async def missing(self, tip: str, expected: Expected) -> tuple[str, ...]:
        """A line for each thing that is not as it should be."""
        return (
            *await self._unmerged(tip, expected),
            *await self._absent(tip, expected),
            *await self._uncommitted(expected),
        )

    async def _unmerged(self, tip: str, expected: Expected) -> list[str]:
        commits = sorted({commit for made in expected.merges.values() for commit in made})
        if not commits:
            return []
        parents = await self._parents(commits)
        beyond = await self._beyond(commits, tip)
        lines: list[str] = []
        for task, (merge, approved) in expected.merges.items():
            gone = [commit for commit in {merge, approved} if commit not in parents]
            outside = [commit for commit in {merge, approved} if commit in beyond]
            lines += [f"{task}: git has lost commit {commit[:10]}" for commit in gone]
            lines += [f"{task}: commit {commit[:10]} is not in the tip" for commit in outside]
            # What was approved as it stood on the tip was never merged: it is that commit.
            if not gone and approved != merge and approved not in parents[merge][1:]:
                told = f"merge {merge[:10]} is not of {approved[:10]}, which was approved"
                lines.append(f"{task}: {told}")
        return lines

    async def _parents(self, commits: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The parents of those that git has."""
        found: dict[str, tuple[str, ...]] = {}
        for commit in commits:
            with contextlib.suppress(GitFailed):
                found[commit] = await self._store.parents_of(commit)
        return found

    async def _beyond(self, commits: Iterable[str], tip: str) -> set[str]:
        """Those of the commits, and of what they lead to, that the tip does not hold."""
        asked = "".join(f"{commit}\n" for commit in (*commits, f"^{tip}"))
        answer = await self._store.trees("rev-list", "--ignore-missing", "--stdin", stdin=asked)
        return set(answer.text.splitlines())

    async def _absent(self, tip: str, expected: Expected) -> list[str]:
        if not expected.files:
            return []
        wanted = {path: printable_line(path.rstrip("/")) for path in expected.files}
        folders = {str(f) for path in wanted.values() for f in PurePosixPath(path).parents}
        # A plan may as well name a folder.
        there = await self._store.listing(tip, folders.__contains__)
        absent = [path for path, plain in wanted.items() if plain not in there]
        ignored = await self._ignored(tip, absent) if absent else set[str]()
        return [
            f"{expected.files[path]}: {printable_line(path)} is not there"
            for path in absent
            if path not in ignored
        ]

    async def _ignored(self, tip: str, paths: list[str]) -> set[str]:
        """Those that no commit is to hold, by the project's own rules or as by-products."""
        # A path that leads outside is none of the project's, and git answers nothing after one.
        told = "".join(f"./{path}\0" for path in paths if _is_inside(path))
        rules = self._throwaways.excerpt(tip, "ignored", _is_gitignore)
        async with rules as excerpt:
            answer = await self._store.trees(
                *("check-ignore", "--no-index", "-z", "--stdin"),
                stdin=told,
                work_tree=excerpt.path,
                ok=(0, 1, 128),  # what it does not take for a path is not ignored
            )
        return {path.removeprefix("./") for path in answer.fields}

    async def _uncommitted(self, expected: Expected) -> list[str]:
        """Work of tasks that were given up, which somebody changed since it was pinned."""
        dirty: list[str] = []
        for task in expected.kept:
            place, index = self._store.folders.workspace(task), self._store.folders.index(task)
            if not place.is_dir() or place.is_symlink() or not index.is_file():
                continue
            if any(await anyio.to_thread.run_sync(lambda place=place: list(snares(place)))):
                dirty.append(f"{task}: its workspace holds what git cannot look at")
                continue
            which = ("--others", "--modified", "--deleted", "--exclude-standard")
            made = made_by_setup(index)
            listed = await self._store.trees(
                *("ls-files", "-z", *which), work_tree=place, index=index, excludes=made
            )
            if listed.fields:
                paths = dict.fromkeys(printable_line(path) for path in listed.fields)
                named = ", ".join(tuple(paths)[:_TOLD])
                dirty.append(f"{task}: its workspace holds what no commit does: {named}")
        return dirty


def _is_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts


def _is_gitignore(path: str) -> bool:
    return PurePosixPath(path).name == ".gitignore"
