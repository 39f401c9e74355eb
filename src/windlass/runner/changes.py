"""A change as a Coach gets to see it: whole where it fits, else cut file by file. Pure.

Law: every file has a fair share of the room. A small change is shown whole beside a huge one, and
what is left out is told file by file, so that an approval can be asked for evidence about exactly
that. A very large change goes to several Coaches: each is shown another part of what was left out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from windlass.ports import Patch
from windlass.views.quotation import LONGEST

MOST_PARTS = 4
"""Coaches that look at what the first one was not shown; what is beyond has to be read by it."""

MOST_NAMED = 40
"""Files that one Coach is asked about by name; where there are more, their folders stand for them.
"""

_LISTED = LONGEST // 4
"""Characters for the list of what changed."""

_LEAST = 200
"""A share of fewer characters shows nothing that could be understood."""

_LONGEST_PATH = 1_000
_PAGE = LONGEST - 2 * _LONGEST_PATH
"""Characters of one file's diff in one part."""

_READ_ALONE = LONGEST // 2
"""Characters that the first Coach can be expected to read by itself in its checkout."""


_EVERY = "every file"
"""What stands for all of them where they lie in too many folders."""


class Piece(Struct, frozen=True, kw_only=True):
    """What was left out of one file, or a part of that."""

    path: str
    text: str


class Part(Struct, frozen=True, kw_only=True):
    """What one more Coach looks at."""

    text: str
    files: tuple[str, ...]
    """What its evidence must name."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """A file that is not shown in full."""

    path: str
    missing: int
    """Characters of its diff."""
    of: int
    why: str = ""
    """Why no line of it could be shown, where that is so."""


class View(Struct, frozen=True, kw_only=True):
    """A change as it is shown."""

    text: str
    left_out: tuple[str, ...] = ()
    """A line for each file that is not shown in full, and how much of it is missing."""
    unread: tuple[str, ...] = ()
    """What of that the first Coach has to read itself, by the names its evidence must have."""
    parts: tuple[Part, ...] = ()

    @property
    def unshown(self) -> tuple[str, ...]:
        """All that evidence must name, from any Coach."""
        named = (*self.unread, *(name for part in self.parts for name in part.files))
        return tuple(dict.fromkeys(named))


def view_of(patches: Sequence[Patch]) -> View:
    """The change within the room there is in a prompt."""
    if not patches:
        return View(text="")
    listing = _listing(patches)
    shares = _fair_shares([len(p.text) + 1 for p in patches], LONGEST - len(listing) - 2)
    fitted = [_fitted(patch, share) for patch, share in zip(patches, shares, strict=True)]
    cut = list(zip(patches, (missing for _, missing in fitted), strict=True))
    # Of a file that is gone there is nothing to read, and of a binary one there are no lines.
    pieces = [
        Piece(path=patch.path, text=missing)
        for patch, missing in cut
        if missing and not (patch.gone or patch.opaque)
    ]
    parts, rest = _parts(pieces)
    opaque = [patch.path for patch in patches if patch.opaque and not patch.gone]
    return View(
        text="\n".join((listing, "", *(text for text, _ in fitted if text))),
        left_out=_told([_left_out(*each) for each in cut if each[0].opaque or each[1]]),
        unread=named((*opaque, *rest)),
        parts=parts,
    )


def _left_out(patch: Patch, missing: str) -> LeftOut:
    why = patch.what if patch.opaque else ""
    return LeftOut(path=patch.path, missing=len(missing), of=len(patch.text), why=why)


def _told(cut: Sequence[LeftOut]) -> tuple[str, ...]:
    """File by file; folder by folder where that would be a book."""
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
    """Every file by its name, or by its folder where there are very many."""
    lines = [f"{patch.path} ({patch.what})" for patch in patches]
    if sum(len(line) + 1 for line in lines) > _LISTED:
        paths = [patch.path for patch in patches]
        groups = _grouped(paths, MOST_NAMED)
        lines = [f"{name} ({plural(len(members))})" for name, members in groups.items()]
    head = f"{plural(len(patches))} changed:"
    return "\n".join((head, *lines))[:_LISTED]


def plural(files: int) -> str:
    """So many files, in words."""
    return f"{files:,} file" if files == 1 else f"{files:,} files"


def _fair_shares(sizes: Sequence[int], room: int) -> list[int]:
    """How much each gets: what it needs where that is less than an even share of what is left.

    Where an even share would show nothing of any, the smallest are shown whole and the others not.
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
    """What of a file's diff is shown, and what is not."""
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
    said = mark.format(len(missing), path)
    return f"{patch.text[:begin]}{said}{patch.text[end:]}", missing


def _line_before(text: str, at: int) -> int:
    """The end of the last line before a place; the place itself in a very long line."""
    return text.rfind("\n", at // 2, at) + 1 or at


def _line_after(text: str, at: int) -> int:
    """The begin of the next line after a place; the place itself in a very long line."""
    return text.find("\n", at, (at + len(text)) // 2) + 1 or at


def _parts(pieces: Sequence[Piece]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """What further Coaches look at, and the files that the first one must read itself."""
    paths = tuple(piece.path for piece in pieces)
    if sum(len(piece.text) for piece in pieces) <= _READ_ALONE:
        return (), paths
    packed: list[list[Piece]] = [[]]
    used, complete = 0, set[str]()
    # The smallest first: of few huge files one is beyond the bound, and not all of them.
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
    """The piece in as many as its length needs."""
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
    """The names to ask for: each file's, or where there are too many those of folders."""
    return tuple(_grouped(tuple(dict.fromkeys(paths)), MOST_NAMED))


def _grouped(paths: Sequence[str], most: int) -> Mapping[str, list[str]]:
    """Paths under at most so many names: their own, or folders as deep as possible."""
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
