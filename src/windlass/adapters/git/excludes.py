"""What never enters a snapshot unless the base tracks it, or tasks would conflict over a .pyc.

Law: what holds for every checkout is said by Windlass, the configuration or the user; what a tree's
own setup made is left out of snapshots of that very checkout, and of no other.
"""

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from windlass.errors import ConfigError

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
"""Names that are a by-product wherever they stand, as a folder or as a link to one."""

FILES = (
    "*.py[co]",
    "*.egg-info",
    ".coverage",
    ".coverage.*",
    ".DS_Store",
    ".claude/settings.local.json",
    ".yarn/cache/",
    "venv/",
)
"""Patterns for the rest."""


def excludes(*, keep: Iterable[str], user: Iterable[str]) -> str:
    """The exclude file for every checkout: known by-products, kept folders, the user's own."""
    kept = (f"/{folder.strip('/')}/" for folder in keep)
    return "\n".join([*sorted(FOLDERS), *FILES, *kept, *user, ""])


def kept_folders(keep: Iterable[str]) -> tuple[str, ...]:
    """Folders inside a checkout, as the configuration names them; raises for one that is none."""
    return tuple(_inner(folder) for folder in keep)


def _inner(folder: str) -> str:
    path = PurePosixPath(folder.strip("/"))
    if not path.parts or ".." in path.parts or path.parts[0] == ".git":
        raise ConfigError(
            f"[workspace] keep names {folder!r}, which is no folder inside a checkout",
            hint='name folders such as ".venv" or "web/node_modules"',
        )
    return str(path)


def made_by_setup(index: Path) -> Path:
    """The exclude file of one checkout alone, beside its index: what setup made in it.

    It may be anything that its tree says, so nobody else's work is ever measured by it.
    """
    return index.with_name("made-by-setup")


def literal(path: str) -> str:
    """A path as a pattern that matches it, and hardly anything else."""
    return "/" + "".join(_escaped(character) for character in path)


def _escaped(character: str) -> str:
    # A pattern is a line of text: what cannot stand in one is matched by "any one byte".
    if character in "\r\n" or "\udc80" <= character <= "\udcff":
        return "?"
    return f"\\{character}" if character in "\\*?[]!# " else character
