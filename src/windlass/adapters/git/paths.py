"""Paths in a checkout that git or a file system may read in a harmful way.

Names: some file systems ignore case, drop invisible characters or a dot at the end. Two names here
may be one name there, so names are compared as the least careful file system reads them.

Traps: an agent can leave files that stop or mislead git. A pipe with the name of a file that git
reads makes git wait for ever. A `.git` inside leads git elsewhere. Large rule files fill its
memory. A folder that git cannot open looks empty to it. Every folder is searched, whatever its
name. Git itself decides which folders it ignores, and is asked only when all folders above are
clear.

Excludes: by-products that never enter a snapshot unless the base tracks them. The results of a
setup are excluded in that checkout alone.
"""

import os
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal, NamedTuple, TypeAlias

from windlass.core.other_tools import OWN_SETTINGS
from windlass.errors import ConfigError

OWN = ".windlass"
"""Windlass's own folder, at the root of the user's checkout."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | {
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
}
"""Invisible characters beside Unicode's category of formats; together they cover git's own list."""

_SHORT = re.compile(r"(git|gitmod|gitatt|gitign|windla)~[1-9][0-9]*")
_LONG = {
    "git": ".git",
    "gitmod": ".gitmodules",
    "gitatt": ".gitattributes",
    "gitign": ".gitignore",
    "windla": OWN,
}
"""Windows also gives a file a short name, which leaves out the dot."""


def as_any_file_system(name: str) -> str:
    """A common form of all names that some file system takes for the same."""
    if not name.isascii():
        decomposed = unicodedata.normalize("NFD", name)
        name = "".join(mark for mark in decomposed if not _is_unseen(mark))
    # On Windows a colon begins the name of a stream of the file, and a backslash is a slash.
    name = re.split(r"[:\\]", name, maxsplit=1)[0].casefold().rstrip(". ")
    short = _SHORT.fullmatch(name)
    return _LONG[short[1]] if short is not None else name


def _is_unseen(mark: str) -> bool:
    return mark in _UNSEEN or unicodedata.category(mark) == "Cf"


RULES = frozenset({".gitattributes", ".gitignore", ".gitmodules"})
"""Files that git reads in every folder."""

MOST_RULES = 2**20
"""How many bytes of them a folder and all above it may have together."""


Kind: TypeAlias = Literal["closed", "no file", "repository", "too large"]


class Trap(NamedTuple):
    """A path in the searched folder that stops or misleads git."""

    path: PurePath
    kind: Kind

    @property
    def place(self) -> PurePath:
        """The folder in which git would meet it."""
        return self.path if self.kind == "closed" else self.path.parent


def find_traps(folder: Path) -> Iterator[Trap]:
    """All traps below the folder, without those in its own `.git`."""
    # Strings, because a Path for each entry is slow in a large tree.
    top, folders = str(folder), [("", 0)]
    while folders:
        inner, size = folders.pop()
        if not os.access(f"{top}/{inner}", os.R_OK | os.X_OK):
            yield Trap(PurePath(inner), "closed")
            continue
        below: list[str] = []
        with os.scandir(f"{top}/{inner}") as entries:
            for entry in entries:
                name = _git_name(entry.name)
                own = not inner and entry.name == ".git"
                if name != ".git" and entry.is_dir(follow_symlinks=False):
                    below.append(f"{inner}/{entry.name}" if inner else entry.name)
                elif name:
                    if name in RULES:
                        size += entry.stat(follow_symlinks=False).st_size
                    if (kind := _kind(entry, name, size)) and not own:
                        yield Trap(PurePath(inner, entry.name), kind)
        folders += [(name, size) for name in below]


async def first_trap(
    found: Iterable[Trap], ignored_of: Callable[[list[str]], Awaitable[set[str]]]
) -> Trap | None:
    """The first trap that git would meet; `ignored_of` returns which of some folders it ignores."""
    left = sorted(found, key=lambda trap: len(trap.place.parts))
    while left:
        depth = len(left[0].place.parts)
        level = [trap for trap in left if len(trap.place.parts) == depth]
        ways = {str(way): None for trap in level for way in _folders_to(trap)}
        ignored = await ignored_of(list(ways)) if depth else set[str]()
        left = [trap for trap in left if ignored.isdisjoint(map(str, _folders_to(trap)))]
        if left and left[0] in level:
            return left[0]
    return None


def remove_traps(folder: Path) -> None:
    """Remove traps and open closed folders, before Windlass itself writes files there.

    Repositories stay: git then reads only tracked files.
    """
    for trap in find_traps(folder):
        path = folder / trap.path
        if trap.kind == "closed":
            path.chmod(0o700)
            remove_traps(path)
        elif trap.kind != "repository":
            path.unlink()


def _folders_to(trap: Trap) -> Iterator[PurePath]:
    """The folders that git passes, including the place itself."""
    yield trap.place
    yield from trap.place.parents[:-1]


def _git_name(name: str) -> str:
    """Git's own name for it, if some file system takes it for one of git's files; else empty."""
    if name[0] != "." and name.isascii() and "~" not in name:
        return ""
    return plain if (plain := as_any_file_system(name)).startswith(".git") else ""


def _kind(entry: os.DirEntry[str], name: str, size: int) -> Kind | None:
    """How it traps git, if it does; `size` is that of all rule files up to this one."""
    if name == ".git":
        return "repository"
    if entry.is_symlink():
        return "no file" if name == ".gitmodules" else None  # git follows that link
    if not entry.is_file():
        return "no file"
    return "too large" if name in RULES and size > MOST_RULES else None


FOLDERS = frozenset({
    ".gradle",
    ".hypothesis",
    ".mypy_cache",
    ".nox",
    ".npm",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    ".windlass",
    "__pycache__",
    "htmlcov",
    "node_modules",
})  # fmt: skip
"""Names that are by-products everywhere, as a folder or as a link to one."""

FILES = (
    "*.py[co]", "*.egg-info", ".coverage", ".coverage.*", ".DS_Store",
    OWN_SETTINGS, ".yarn/cache/", "venv/",
)  # fmt: skip
"""Patterns for other by-products."""


def excludes(*, keep: Iterable[str], user: Iterable[str]) -> str:
    """The exclude file for every checkout: by-products, kept folders, the user's patterns."""
    kept = (f"/{folder.strip('/')}/" for folder in keep)
    return "\n".join([*sorted(FOLDERS), *FILES, *kept, *user, ""])


def kept_folders(keep: Iterable[str]) -> tuple[str, ...]:
    """The folders that `keep` names; raises for one that is not inside a checkout."""
    return tuple(_inner(folder) for folder in keep)


def _inner(folder: str) -> str:
    path = PurePosixPath(folder.strip("/"))
    if not path.parts or ".." in path.parts or path.parts[0] == ".git":
        raise ConfigError(
            f"[workspace] keep names {folder!r}, which is not a folder inside a checkout",
            hint='name folders such as ".venv" or "web/node_modules"',
        )
    return str(path)


def made_by_setup(index: Path) -> Path:
    """The exclude file of one checkout, beside its index: the results of its setup.

    The tree decides what is in it, so it is used for no other checkout.
    """
    return index.with_name("made-by-setup")


def exclude_pattern(path: str) -> str:
    """A pattern that matches the path, and hardly anything else."""
    return "/" + "".join(_escaped(character) for character in path)


def _escaped(character: str) -> str:
    # A pattern is a line of text: "any one byte" matches a byte that cannot be in it.
    if character in "\r\n" or "\udc80" <= character <= "\udcff":
        return "?"
    return f"\\{character}" if character in "\\*?[]!# " else character
