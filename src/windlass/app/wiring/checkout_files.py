"""Files of the user's checkout, and files that a person tells Windlass to write."""

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
"""Larger files are not read to detect a project's tools."""


class CheckoutFiles:
    """Reads the files of the user's checkout; writes one only when the user asks for it."""

    def __init__(self, root: Path, git_dir: Path, git: inspect.UserGit) -> None:
        self._root = root
        self._git_dir = git_dir
        self._git = git

    def listed(self) -> list[str]:
        """The tracked and untracked files of the checkout, without ignored ones."""
        which = ("--cached", "--others", "--exclude-standard")
        answer = self._git.ask("-C", str(self._root), "ls-files", "-z", *which)
        return sorted(set(answer.fields))

    def texts(self) -> Mapping[str, str]:
        """The texts of those files, by path; read when accessed."""
        return _Texts(self._root, self.listed())

    def read(self, name: str) -> str | None:
        """A small text file of the user's checkout; None if there is none."""
        return read_plainly(self._root / name, inside=self._root)

    def is_free(self, name: str) -> bool:
        """Whether a file can be created there: the path is free, and no folder of it is a link."""
        if os.path.lexists(self._root / name):
            return False
        try:
            refuse_unsafe(self._root / name, inside=self._root)
        except OSError:
            return False
        return True

    def write(self, name: str, text: str) -> None:
        """Write a file of the user's checkout."""
        path = self._root / name
        if path.parent != self._root:
            make_folder(path.parent, inside=self._root)
        # After a kill, the unfinished file is in the git directory; the next call removes it.
        remove_unfinished(self._git_dir)
        write_durably(path, text, inside=self._root, by_way_of=self._git_dir)

    def write_named(self, path: Path, data: bytes, *, own: bool) -> None:
        """Write a file that a person named; create its folder only if it is Windlass's own."""
        if own:
            make_folder(path.parent, inside=self._root)
        else:
            refuse_without_folder(path)
        write_named(self._root, path, data)

    def continue_here(self) -> dict[str, str]:
        """The texts of the continue-here files that exist, by path."""
        found = (
            (path, read_plainly(self._root / path, inside=self._root)) for path in CONTINUE_HERE
        )
        return {path: text for path, text in found if text is not None}

    def plan_files(self) -> PlanFiles:
        return PlanFiles(self._root)


class _Texts(Mapping[str, str]):
    """Texts by path below the root; empty if a file is too large or cannot be read."""

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
    """Write a file that a person named; inside the repository, never through a link.

    A task can have committed a link there. Outside of the repository, links, pipes and devices are
    the person's own.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder", hint="name a file")
    path = Path(os.path.abspath(path))  # noqa: PTH100  `..` is resolved without following links
    for folder in reversed(path.parents):
        real = Path(os.path.realpath(folder))
        if root is not None and real.is_relative_to(root):
            write_durably(real / path.relative_to(folder), data, inside=root, mode=mode)
            return
    if path.exists() and not path.is_file():
        # A pipe or a device must not be replaced by a file.
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)
        return
    target = Path(os.path.realpath(path))
    within = root if root is not None and target.is_relative_to(root) else None
    write_durably(target, data, inside=within, mode=mode)


def refuse_without_folder(path: Path) -> None:
    """Raise if the folder of a file does not exist: Windlass creates none, it may be misspelt."""
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100  as above
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}", hint="create it, or name another")
