"""Files of the user's checkout, and files that a person names for Windlass to write."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from windlass.adapters.files import (
    make_folder,
    read_plainly,
    refuse_unsafe,
    remove_unfinished,
    write_durably,
)
from windlass.adapters.git import inspect
from windlass.adapters.plan_files import PlanFiles
from windlass.errors import BadInput
from windlass.formats import CONTINUE_HERE

MAX_BYTES = 1_000_000
"""Larger files say nothing about how a project is proven."""


class CheckoutFiles:
    """The files of the user's checkout: read as they are, written only when the user says so."""

    def __init__(self, root: Path, git_dir: Path, git: inspect.UserGit) -> None:
        self._root = root
        self._git_dir = git_dir
        self._git = git

    def listed(self) -> list[str]:
        """Every file of the checkout that is tracked or could be: nothing that git ignores."""
        which = ("--cached", "--others", "--exclude-standard")
        answer = self._git.ask("-C", str(self._root), "ls-files", "-z", *which)
        return sorted(set(answer.fields))

    def texts(self) -> Mapping[str, str]:
        """Those files as texts."""
        return _Texts(self._root, self.listed())

    def read(self, name: str) -> str | None:
        """A small text file of the user's checkout; None for whatever else is there, or nothing."""
        return read_plainly(self._root / name, inside=self._root)

    def is_free(self, name: str) -> bool:
        """Whether a file could be made there: nothing is in its place, and no link on the way."""
        if os.path.lexists(self._root / name):
            return False
        try:
            refuse_unsafe(self._root / name, inside=self._root)
        except OSError:
            return False
        return True

    def write(self, name: str, text: str) -> None:
        """Put a file into the user's checkout, which only happens at their word."""
        path = self._root / name
        if path.parent != self._root:
            make_folder(path.parent, inside=self._root)
        # What a kill leaves unfinished lies in the git directory, until the next time.
        remove_unfinished(self._git_dir)
        write_durably(path, text, inside=self._root, by_way_of=self._git_dir)

    def write_named(self, path: Path, data: bytes, *, own: bool) -> None:
        """Write a file that a person named; only Windlass's own folders are made for it."""
        if own:
            make_folder(path.parent, inside=self._root)
        else:
            refuse_without_folder(path)
        write_named(self._root, path, data)

    def continue_here(self) -> dict[str, str]:
        """What is there of the files that say where a paused run stands, by their paths."""
        found = (
            (path, read_plainly(self._root / path, inside=self._root)) for path in CONTINUE_HERE
        )
        return {path: text for path, text in found if text is not None}

    def plan_files(self) -> PlanFiles:
        """One reading of a plan's files."""
        return PlanFiles(self._root)


class _Texts(Mapping[str, str]):
    """Texts by their paths below the root; one that cannot be read, or is too large, is empty."""

    def __init__(self, root: Path, paths: list[str]) -> None:
        self._root = root
        self._paths = dict.fromkeys(paths)

    def __getitem__(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        file = self._root / path
        try:
            small = file.is_file() and file.stat().st_size <= MAX_BYTES
            return file.read_text(encoding="utf-8", errors="replace") if small else ""
        except OSError:
            return ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


def write_named(root: Path | None, path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file that a person named; in the repository, never through a link.

    Outside of it, links, pipes and devices are the person's own: what a task can have committed is
    in the repository.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder", hint="name a file")
    path = Path(os.path.abspath(path))  # noqa: PTH100  what a link makes of `..` must not count
    for folder in reversed(path.parents):
        real = Path(os.path.realpath(folder))
        if root is not None and real.is_relative_to(root):
            write_durably(real / path.relative_to(folder), data, inside=root, mode=mode)
            return
    if path.exists() and not path.is_file():
        # A pipe or a device, which must not be replaced by a file.
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)
        return
    target = Path(os.path.realpath(path))
    within = root if root is not None and target.is_relative_to(root) else None
    write_durably(target, data, inside=within, mode=mode)


def refuse_without_folder(path: Path) -> None:
    """No folder of the user's is made on the way to a file that they name: it may be misspelt."""
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100  as above
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}", hint="make it, or name another")
