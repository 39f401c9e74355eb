"""What changed between two commits, file by file, as git shows it.

Law: every entry that differs is named, and none speaks for another: binary files, renames, modes
and submodules too. What git does not show as text says so.
"""

import re
from collections.abc import Iterator

from windlass.adapters.git.store import Store, printable, printable_line
from windlass.ports import Patch

_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--full-index", "-M")
_SECTION = re.compile(r"(?m)^(?=diff --git )")
_BINARY = re.compile(r"(?m)^Binary files .* differ$")
_GITLINK = "160000"
_LINK = "120000"
_WORDS = {"A": "new", "D": "deleted", "M": "changed", "T": "of another type", "R": "renamed"}


async def patches(store: Store, old: str, new: str) -> tuple[Patch, ...]:
    """One for each entry that differs, in git's order."""
    raw = await store.trees("diff-tree", "-r", "--raw", "-z", *_PLAIN, old, new)
    whole = await store.trees("diff-tree", "-r", "--patch", *_PLAIN, old, new)
    # A line of a hunk begins with a blank, a sign or a backslash: only git itself can begin so.
    sections = iter([part for part in _SECTION.split(printable(whole.stdout)) if part])
    return tuple(_patch(entry, sections) for entry in _entries(raw.fields))


def _entries(fields: list[str]) -> Iterator[tuple[str, str, str, str, str]]:
    """Old mode, new mode, status, path and what it was called before."""
    told = iter(fields)
    for meta in told:
        before, after, _, _, status = meta.removeprefix(":").split(" ")
        first = next(told)
        path = next(told) if status[0] in "RC" else first
        yield before, after, status[0], path, first if path != first else ""


def _patch(entry: tuple[str, str, str, str, str], sections: Iterator[str]) -> Patch:
    before, after, status, path, was = entry
    # What becomes a link, or was one, is shown as deleted and as new.
    text = "".join(next(sections, "") for _ in range(2 if status == "T" else 1))
    words = [_WORDS.get(status, "changed") + (f" from {printable_line(was)}" if was else "")]
    if "0" * 6 not in (before, after) and before != after:
        words.append(f"mode {before} to {after}")
    elif status == "A" and after != "100644":
        words.append("a link" if after == _LINK else f"mode {after}")
    binary = _BINARY.search(text) is not None and "\n@@" not in text
    submodule = _GITLINK in (before, after)
    words += ["a submodule"] if submodule else ["binary"] if binary else []
    return Patch(
        path=printable_line(path),
        what=", ".join(words),
        text=text.rstrip("\n"),
        gone=status == "D",
        opaque=binary or submodule,
    )
