"""Reads a plan that a person named: a file, or the files of a folder.

Every limit applies before anything is parsed: bytes, files, depth. Only plain files are opened, and
none through a link that leads out of both the folder and the repository.

In a folder, a file that may hold tasks and cannot be read is refused: skipping it might lose a
task. JSON other than a manifest holds no tasks, so an unreadable JSON file is noted and skipped; so
is an empty file.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from windlass.core.plan import Finding
from windlass.errors import PlanError

MAX_FILE = 10_000_000
"""Bytes of one file."""
MAX_TOTAL = 20_000_000
"""Bytes of all files together."""
MAX_ASIDE = 1_000_000
"""Bytes of a JSON file that holds no tasks; a longer one is no manifest."""
MAX_FILES = 5_000
MAX_ENTRIES = 100_000
"""Entries of any kind in the folder; beyond this, listing stops."""
MAX_DEPTH = 16

KINDS = (".md", ".markdown", ".xml", ".yaml", ".yml")
"""File endings that may hold tasks."""
_ASIDE = (".json",)
_MANIFEST = "manifest.json"
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv"})
"""Folders that are not the plan's, in addition to those that begin with a dot."""
_NEVER = frozenset({".git", ".windlass"})
_SMALLER = "name the plan's own file, or the folder that holds nothing else"


class PlanFiles:
    """One reading: texts by path, and notes on skipped files."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))
        self._read: set[str] = set()
        self._bytes = 0
        self.texts: dict[str, str] = {}
        """Relative to the repository if inside it. Bytes that are not UTF-8 are kept as surrogates,
        so that the format can name their line."""
        self.notes: list[Finding] = []

    def read(self, path: Path, shown: str) -> None:
        """Read the file or folder; `shown` is its path in messages and in the plan."""
        if not path.is_dir():
            self._keep(shown, _bytes(path, shown, MAX_FILE))
            return
        real = Path(os.path.realpath(path))
        links: list[tuple[Path, str]] = []
        for found, name in sorted(_listed(real, shown)):
            if found.is_symlink():
                links.append((found, name))
            else:
                self._take(found, name)
        for link, name in links:
            self._follow(link, name, real)
        if not self.texts:
            cure = f"a plan's files end in {', '.join(KINDS)}"
            raise PlanError("no file in this folder can be a plan", path=shown, hint=cure)

    def read_also(self, names: Iterable[str]) -> None:
        """Read further files that the plan names, below the repository, if they exist.

        One that may not be read is treated as missing, and the format says so.
        """
        for name in dict.fromkeys(names):
            parts = name.split("/")
            fit = name.lower().endswith(KINDS) and name.isprintable() and _NEVER.isdisjoint(parts)
            if not fit or {"", ".", ".."} & set(parts) or name in self.texts:
                continue
            real = Path(os.path.realpath(self._root / name))
            if not real.is_relative_to(self._root):
                raise _leads_out(name)
            # Path.exists raises for a name that is too long.
            if os.path.exists(real) and not real.is_dir():  # noqa: PTH110
                self._keep(name, _bytes(real, name, MAX_FILE))

    def _take(self, path: Path, name: str) -> None:
        """Keep a file of a folder, refuse it, or note why it is skipped."""
        if _may_hold_tasks(name):
            data = _bytes(path, name, MAX_FILE)
            if data.strip():
                self._keep(name, data)
            else:
                self._note(name, "the file is empty")
            self._read.add(os.path.realpath(path))
            return
        try:
            data = _bytes(path, name, MAX_ASIDE)
            data.decode()
        except PlanError as error:
            self._note(name, error.message.removeprefix(f"{name}: "))
        except UnicodeDecodeError:
            self._note(name, "the file is not UTF-8 text")
        else:
            if b"\0" in data:
                self._note(name, "the file is not text: it has a NUL byte")
            elif data.strip():
                self._keep(name, data)

    def _follow(self, link: Path, name: str, folder: Path) -> None:
        """Keep the file that a link leads to, unless it is read already."""
        try:
            target = self._leads_to(link, name, folder)
        except PlanError as error:
            if _may_hold_tasks(name):
                raise
            self._note(name, error.message.removeprefix(f"{name}: "))
            return
        if target is not None and target.is_dir():
            self._note(name, "a link to a folder is not followed; it might lead in circles")
        elif target is not None and str(target) not in self._read:
            self._take(target, name)

    def _leads_to(self, link: Path, name: str, folder: Path) -> Path | None:
        """The target of a link; None for a broken link without a plan's file ending."""
        try:
            target = Path(os.path.realpath(link, strict=True))
        except OSError:
            if not name.lower().endswith((*KINDS, *_ASIDE)):
                return None
            cure = "put the file itself there, or remove the link"
            raise PlanError("the link leads nowhere", path=name, hint=cure) from None
        if target.is_dir() or any(map(target.is_relative_to, (folder, self._root))):
            return target
        raise _leads_out(name)

    def _keep(self, name: str, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > MAX_TOTAL:
            raise PlanError(_more_than(MAX_TOTAL, "in all"), path=name, hint=_SMALLER)
        _refuse_beyond(len(self.texts) + 1, MAX_FILES, "files", name)
        self.texts[name] = data.decode("utf-8", errors="surrogateescape")

    def _note(self, name: str, why: str) -> None:
        self.notes.append(Finding(line=0, text=why, path=name))


def _listed(folder: Path, shown: str) -> Iterator[tuple[Path, str]]:
    """The files below the folder that may matter, each with its name for messages."""
    below = [(folder, "" if shown == "." else f"{shown}/", 1)]
    files = entries = 0
    while below:
        here, prefix, depth = below.pop()
        _refuse_beyond(depth, MAX_DEPTH, "folders within each other", shown)
        for entry in _entries(here, prefix or shown):
            entries += 1
            _refuse_beyond(entries, MAX_ENTRIES, "files and folders", shown)
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                below.append((Path(entry.path), f"{name}/", depth + 1))
            elif _is_of_interest(entry):
                files += 1
                _refuse_beyond(files, MAX_FILES, "files", shown)
                _refuse_odd(name)
                yield Path(entry.path), name


def _entries(folder: Path, shown: str) -> Iterator[os.DirEntry[str]]:
    """The folder's entries, without hidden and skipped ones."""
    try:
        with os.scandir(folder) as scanned:
            for entry in scanned:
                if not entry.name.startswith(".") and entry.name not in _SKIPPED:
                    yield entry
    except OSError as error:
        raise PlanError(error.strerror or str(error), path=shown) from None


def _refuse_beyond(count: int, most: int, what: str, shown: str) -> None:
    if count > most:
        raise PlanError(f"more than {most:,} {what}", path=shown, hint=_SMALLER)


def _is_of_interest(entry: os.DirEntry[str]) -> bool:
    if entry.name.lower().endswith((*KINDS, *_ASIDE)):
        return True
    # A link to a folder is noted. `entry.is_dir` would raise for a link to itself.
    return entry.is_symlink() and os.path.isdir(entry.path)  # noqa: PTH112


def _may_hold_tasks(name: str) -> bool:
    return name.lower().endswith(KINDS) or name.rpartition("/")[2] == _MANIFEST


def _leads_out(name: str) -> PlanError:
    cure = "put the file itself there"
    return PlanError("the link leads out of the repository", path=name, hint=cure)


def _refuse_odd(name: str) -> None:
    if not name.isprintable():
        # The name is recorded and shown; surrogates cannot even be written.
        raise PlanError("the file's name is not plain text", path=name, hint="rename it")


def _bytes(path: Path, shown: str, most: int) -> bytes:
    """The content of a plain file, up to a limit."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise PlanError("not a plain file", path=shown, hint="name a file or a folder")
        # It may have become a pipe since; opening that would block.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            # st_size may be wrong (/proc); what is read is not.
            big = os.fstat(fd).st_size > most
            data = b"" if big else file.read(most + 1)
    except OSError as error:
        raise PlanError(error.strerror or str(error), path=shown) from None
    if big or len(data) > most:
        raise PlanError(_more_than(most), path=shown, hint="split the plan into a folder of files")
    return data


def _more_than(count: int, where: str = "") -> str:
    return f"more than {count // 1_000_000} MB {where}".rstrip()
