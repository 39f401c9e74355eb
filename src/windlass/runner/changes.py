"""A change as a Coach sees it: whole where it fits, else cut file by file. Pure.

Law: every file gets a fair share of the space. A small diff is shown whole beside a huge one. What
is left out is listed file by file, so that an approval can be asked for evidence about exactly
those files. A very large change goes to several Coaches: each is shown another part of the rest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from windlass.ports import Patch
from windlass.views.quotation import LONGEST

MOST_PARTS = 4
"""Coaches that review what the first one was not shown; the first must read the rest itself."""

MOST_NAMED = 40
"""Files that one Coach is asked about by name; if there are more, their folders are named."""

_LISTED = LONGEST // 4
"""Characters for the list of changed files."""

_LEAST = 200
"""A share of fewer characters shows nothing useful."""

_LONGEST_PATH = 1_000
_PAGE = LONGEST - 2 * _LONGEST_PATH
"""Characters of one file's diff in one part."""

_READ_ALONE = LONGEST // 2
"""Characters that the first Coach can be expected to read in its checkout."""

_EVERY = "every file"
"""The name for all of them if they lie in too many folders."""


class Piece(Struct, frozen=True, kw_only=True):
    """What was left out of one file's diff, or a page of that."""

    path: str
    text: str


class Part(Struct, frozen=True, kw_only=True):
    """What one further Coach reviews."""

    text: str
    files: tuple[str, ...]
    """The names that its evidence must have."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file that is not shown in full."""

    path: str
    missing: int
    """Characters of its diff that are left out."""
    of: int
    why: str = ""
    """Why no line of it can be shown; empty where one can."""


class View(Struct, frozen=True, kw_only=True):
    """A change as the first Coach sees it, and what the others are shown."""

    text: str
    left_out: tuple[str, ...] = ()
    """A line for each file that is not shown in full, with how much is missing."""
    unread: tuple[str, ...] = ()
    """Those of them that the first Coach must read itself, and name in its evidence."""
    parts: tuple[Part, ...] = ()

    @property
    def unshown(self) -> tuple[str, ...]:
        """All names that evidence must have, of any Coach."""
        named = (*self.unread, *(name for part in self.parts for name in part.files))
        return tuple(dict.fromkeys(named))


def view_of(patches: Sequence[Patch]) -> View:
    """The change, cut to the space in a prompt."""
    if not patches:
        return View(text="")
    listing = _listing(patches)
    shares = _fair_shares([len(p.text) + 1 for p in patches], LONGEST - len(listing) - 2)
    fitted = [_fitted(patch, share) for patch, share in zip(patches, shares, strict=True)]
    cut = list(zip(patches, (missing for _, missing in fitted), strict=True))
    # A deleted file has nothing to read, and a binary one has no lines.
    pieces = [
        Piece(path=patch.path, text=missing)
        for patch, missing in cut
        if missing and not (patch.gone or patch.opaque)
    ]
    parts, rest = _parts(pieces)
    opaque = [patch.path for patch in patches if patch.opaque and not patch.gone]
    return View(
        text="\n".join((listing, "", *(text for text, _ in fitted if text))),
        left_out=_left_out_lines([_left_out(*each) for each in cut if each[0].opaque or each[1]]),
        unread=named((*opaque, *rest)),
        parts=parts,
    )


def _left_out(patch: Patch, missing: str) -> LeftOut:
    why = patch.what if patch.opaque else ""
    return LeftOut(path=patch.path, missing=len(missing), of=len(patch.text), why=why)


def _left_out_lines(cut: Sequence[LeftOut]) -> tuple[str, ...]:
    """A line for each file; for each folder where that would be too long."""
    lines = tuple(
        f"{each.path}: {each.why}, so that its content is not shown"
        if each.why
        else f"{each.path}: {each.missing:,} of {each.of:,} characters are left out"
        for each in cut
    )
    if sum(len(line) for line in lines) <= _LISTED:
        return lines
    missing = {each.path: each.missing for each in cut}
    return tuple(
        f"{name}: {plural(len(paths))}, {sum(missing[path] for path in paths):,} characters"
        for name, paths in _grouped(tuple(missing), MOST_NAMED).items()
    )


def _listing(patches: Sequence[Patch]) -> str:
    """Every file by its name, or by its folder if there are very many."""
    lines = [f"{patch.path} ({patch.what})" for patch in patches]
    if sum(len(line) + 1 for line in lines) > _LISTED:
        paths = [patch.path for patch in patches]
        groups = _grouped(paths, MOST_NAMED)
        lines = [f"{name} ({plural(len(members))})" for name, members in groups.items()]
    head = f"{plural(len(patches))} changed:"
    return "\n".join((head, *lines))[:_LISTED]


def plural(files: int) -> str:
    return f"{files:,} file" if files == 1 else f"{files:,} files"


def _fair_shares(sizes: Sequence[int], room: int) -> list[int]:
    """The space of each: what it needs, if that is less than an even share of the space left.

    If an even share would be too small to be useful, the smallest are shown whole, the others not.
    """
    shares = [0] * len(sizes)
    left, waiting = room, len(sizes)
    crowded = room // len(sizes) < _LEAST
    for size, index in sorted((size, index) for index, size in enumerate(sizes)):
        shares[index] = min(size, left if crowded else left // waiting)
        left -= shares[index]
        waiting -= 1
    return shares


def _fitted(patch: Patch, share: int) -> tuple[str, str]:
    """The part of a file's diff that is shown, and the part that is not."""
    if len(patch.text) < share:
        return patch.text, ""
    path = patch.path[:_LONGEST_PATH]
    if share < _LEAST + 2 * len(path):
        return "", patch.text
    mark = "\n[… {:,} characters of {} are left out here …]\n"
    half = (share - len(mark) - len(path) - 20) // 2
    begin = _line_before(patch.text, half)
    end = _line_after(patch.text, len(patch.text) - half)
    missing = patch.text[begin:end]
    shown = patch.text[:begin] + mark.format(len(missing), path) + patch.text[end:]
    return shown, missing


def _line_before(text: str, at: int) -> int:
    """The end of the last line before an offset; the offset itself in a very long line."""
    return text.rfind("\n", at // 2, at) + 1 or at


def _line_after(text: str, at: int) -> int:
    """The start of the next line after an offset; the offset itself in a very long line."""
    return text.find("\n", at, (at + len(text)) // 2) + 1 or at


def _parts(pieces: Sequence[Piece]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """The parts for further Coaches, and the files that the first one must read itself."""
    paths = tuple(piece.path for piece in pieces)
    if sum(len(piece.text) for piece in pieces) <= _READ_ALONE:
        return (), paths
    packed: list[list[Piece]] = [[]]
    used, complete = 0, set[str]()
    # The smallest first: so one huge file exceeds the limit, and not all files after it.
    for piece in sorted(pieces, key=lambda piece: len(piece.text)):
        for page in _pages(piece):
            size = len(_headed(page)) + 1
            if used + size > LONGEST:
                packed.append([])
                used = 0
            packed[-1].append(page)
            used += size
        if len(packed) <= MOST_PARTS:
            complete.add(piece.path)
    parts = tuple(_part(pages) for pages in packed[:MOST_PARTS])
    return parts, tuple(path for path in paths if path not in complete)


def _pages(piece: Piece) -> Iterator[Piece]:
    """The piece in pages of limited length."""
    rest = piece.text
    while len(rest) > _PAGE:
        end = _line_before(rest, _PAGE)
        yield replace(piece, text=rest[:end])
        rest = rest[end:]
    yield replace(piece, text=rest)


def _headed(page: Piece) -> str:
    return f"[… of the diff of {page.path[:_LONGEST_PATH]} …]\n{page.text}"


def _part(pages: Sequence[Piece]) -> Part:
    text = "\n".join(map(_headed, pages))
    return Part(text=text, files=named(page.path for page in pages))


def named(paths: Iterable[str]) -> tuple[str, ...]:
    """The names to ask for: those of the files or, if there are too many, of folders."""
    return tuple(_grouped(tuple(dict.fromkeys(paths)), MOST_NAMED))


def _grouped(paths: Sequence[str], most: int) -> Mapping[str, list[str]]:
    """Paths grouped under at most `most` names: their own, or folders as deep as possible."""
    deepest = max((path.count("/") for path in paths), default=0)
    groups = {path: [path] for path in paths}
    for depth in range(deepest, -1, -1):
        if len(groups) <= most:
            break
        groups = _at(paths, depth)
    return groups if len(groups) <= most else {_EVERY: list(paths)}


def _at(paths: Sequence[str], depth: int) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for path in paths:
        folders = path.split("/")
        name = "/".join(folders[:depth]) + "/" if len(folders) > depth > 0 else path
        groups.setdefault(name, []).append(path)
    return groups
