"""Objects, read and written through gits that stay; and the proof that every one is there.

Law: a proof rests on what lies on the disk now. A git that stays keeps the packs open that it has
found, also one that a gc has removed since, so it is started anew whenever the packs are others.
What it does not find in those it knows it looks for again by itself.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from windlass.adapters.git.git import Git
from windlass.adapters.git.sessions import Session, Staying
from windlass.errors import GitFailed

_AT_ONCE = 40
"""Requests that any pipe takes while the answer to the first is not read yet."""
_TREE, _PLAIN, _GITLINK = 0o040000, 0o100000, 0o160000
_KIND = 0o170000

Kind: TypeAlias = Literal["blob", "commit"]
_WRITTEN: tuple[Kind, ...] = get_args(Kind)

Entries: TypeAlias = Mapping[bytes, tuple[int, str]]
"""A tree: mode and id by name."""
_NOTHING: Entries = {}


class Commit(Struct, frozen=True):
    """What a commit says of itself."""

    tree: str
    parents: tuple[str, ...]


class Listed(NamedTuple):
    """One entry of a tree, with its whole path."""

    path: bytes
    mode: int
    id: str

    @property
    def is_plain(self) -> bool:
        """Whether it is a file: no folder, link or submodule."""
        return self.mode & _KIND == _PLAIN


class _Beside(Struct, frozen=True):
    """A tree, and those at the same path in commits that are known to be whole."""

    new: str
    olds: list[str]


class Objects:
    """What is in the user's object folders."""

    def __init__(self, trees: Git, folders: Sequence[Path], *, id_bytes: int) -> None:
        self._id_bytes = id_bytes
        packs = tuple(folder / "pack" for folder in folders)

        def sight() -> object:
            return tuple(map(_names, packs))

        self._git = Staying(trees, "cat-file", "--batch-command", sight=sight)
        as_it_is = ("--no-filters", "--stdin-paths")
        self._writers = {
            kind: Staying(trees, "hash-object", "-w", *as_it_is, "-t", kind, sight=sight)
            for kind in _WRITTEN
        }
        self._drafts = trees.git_dir

    def close(self) -> None:
        """End the gits that stay."""
        for staying in (self._git, *self._writers.values()):
            staying.close()

    async def write(self, kind: Kind, content: bytes) -> str:
        """Make an object, unless there is one; git refuses what is none of that kind."""

        def written(session: Session) -> str:
            # One request at a time, from where git stands: one name will do, and needs no quotes.
            (self._drafts / kind).write_bytes(content)
            session.tell(f"{kind}\n".encode())
            return session.line()

        return await self._writers[kind].ask(written)

    async def commit(self, commit: str) -> Commit:
        """A commit; raises GitFailed when there is none."""
        return await self._git.ask(lambda session: _commit(session, commit))

    async def is_whole(self, commit: str, beyond: Sequence[str]) -> bool | None:
        """Whether every object is there that a commit has and none of its parents; or None.

        None: it has other parents than these, and somebody has to look at those too.
        """
        return await self._git.ask(lambda session: self._is_whole(session, commit, beyond))

    async def changes(self, old: str, new: str) -> dict[bytes, str]:
        """The paths in which two trees differ, in git's order: A, M, T or D each."""
        found = await self._git.ask(lambda session: dict(self._changes(session, old, new)))
        return dict(sorted(found.items()))

    async def listing(self, tree: str, leads: Callable[[bytes], bool]) -> list[Listed]:
        """All that is in a tree, but only in those of its folders that lead somewhere."""
        return await self._git.ask(lambda session: list(self._listing(session, tree, leads)))

    async def roots(self, trees: Sequence[str]) -> list[list[Listed]]:
        """All that is at the root of each of these trees."""

        def listed(session: Session) -> list[list[Listed]]:
            return [list(self._listing(session, tree, lambda _path: False)) for tree in trees]

        return await self._git.ask(listed)

    async def contents(self, names: Sequence[str]) -> list[bytes | None]:
        """What these objects hold; None for one that is not there."""
        return await self._git.ask(lambda session: list(_contents(session, names)))

    def _listing(
        self, session: Session, tree: str, leads: Callable[[bytes], bool]
    ) -> Iterator[Listed]:
        level = {b"": tree}
        while level:
            trees = self._trees(session, level.values())
            below: dict[bytes, str] = {}
            for folder, name in level.items():
                if name not in trees:
                    raise _Missing(name)
                for entry, (mode, item) in trees[name].items():
                    path = folder + entry
                    yield Listed(path, mode, item)
                    if mode == _TREE and leads(path):
                        below[path + b"/"] = item
            level = below

    def _is_whole(self, session: Session, commit: str, beyond: Sequence[str]) -> bool | None:
        try:
            made, *known = (_commit(session, name) for name in (commit, *beyond))
        except _Missing:
            return False
        if not set(made.parents) <= set(beyond):
            return None
        level = [_Beside(made.tree, [held.tree for held in known])]
        while level:
            trees = self._trees(session, (name for one in level for name in (one.new, *one.olds)))
            if any(one.new not in trees for one in level):
                return False
            unknown = [item for one in level for item in _unknown(one, trees)]
            files = {new: None for new, mode, _ in unknown if mode not in {_TREE, _GITLINK}}
            if not _are_there(session, list(files)):
                return False
            level = [_Beside(new, olds) for new, mode, olds in unknown if mode == _TREE]
        return True

    def _changes(self, session: Session, old: str, new: str) -> Iterator[tuple[bytes, str]]:
        level: list[tuple[bytes, str | None, str | None]] = [(b"", old, new)]
        while level:
            pairs, level = level, []
            sides = [side for _, *both in pairs for side in both if side is not None]
            trees = self._trees(session, sides)
            if lost := [side for side in sides if side not in trees]:
                raise _Missing(lost[0])
            for folder, before, after in pairs:
                ours = trees[before] if before else _NOTHING
                theirs = trees[after] if after else _NOTHING
                for name in {name for name, _ in ours.items() ^ theirs.items()}:
                    a, b = ours.get(name), theirs.get(name)
                    if letter := _letter(a, b):
                        yield folder + name, letter
                    if (below := (_subtree(a), _subtree(b))) != (None, None):
                        level.append((folder + name + b"/", *below))

    def _trees(self, session: Session, names: Iterable[str]) -> dict[str, Entries]:
        """Those that are there."""
        wanted = list(dict.fromkeys(names))
        found = zip(wanted, _contents(session, wanted), strict=True)
        return {name: _entries(data, self._id_bytes) for name, data in found if data is not None}


class _Missing(GitFailed):
    """An object that is not there."""

    def __init__(self, name: str) -> None:
        super().__init__(("cat-file", "--batch-command"), 128, f"{name} is not there")


def _unknown(one: _Beside, trees: Mapping[str, Entries]) -> Iterator[tuple[str, int, list[str]]]:
    """What is in a tree and in none of those beside it: id, mode, and the trees of that name."""
    beside = [trees[old] for old in one.olds if old in trees]
    held = {item for entries in beside for _, item in entries.values()}
    for name, (mode, item) in trees[one.new].items():
        if item not in held:
            olds = (_subtree(entries.get(name)) for entries in beside)
            yield item, mode, [old for old in olds if old is not None]


def _letter(a: tuple[int, str] | None, b: tuple[int, str] | None) -> str | None:
    """What became of a file; None where there was none and is none, but a folder perhaps."""
    before, after = (side if side is not None and side[0] != _TREE else None for side in (a, b))
    if before is None or after is None:
        return "D" if before else "A" if after else None
    return "M" if before[0] & _KIND == after[0] & _KIND else "T"


def _subtree(entry: tuple[int, str] | None) -> str | None:
    return entry[1] if entry is not None and entry[0] == _TREE else None


def _commit(session: Session, name: str) -> Commit:
    [data] = _contents(session, [name])
    if data is None:
        raise _Missing(name)
    said = [line.split(b" ", 1) for line in data.partition(b"\n\n")[0].split(b"\n")]
    [tree] = (value.decode() for key, *rest in said if key == b"tree" for value in rest)
    parents = (value.decode() for key, *rest in said if key == b"parent" for value in rest)
    return Commit(tree, tuple(parents))


def _contents(session: Session, names: Sequence[str]) -> Iterator[bytes | None]:
    for size in _sizes(session, "contents", names):
        yield None if size is None else session.exactly(size + 1)[:-1]


def _are_there(session: Session, names: Sequence[str]) -> bool:
    return None not in list(_sizes(session, "info", names))


def _sizes(session: Session, command: str, names: Sequence[str]) -> Iterator[int | None]:
    for i in range(0, len(names), _AT_ONCE):
        asked = names[i : i + _AT_ONCE]
        session.tell("".join(f"{command} {name}\n" for name in asked).encode())
        for _ in asked:
            said = session.line()
            yield None if said.endswith(" missing") else int(said.rpartition(" ")[2])


def _entries(data: bytes, id_bytes: int) -> Entries:
    entries: dict[bytes, tuple[int, str]] = {}
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        mode, _, name = data[at:end].partition(b" ")
        at = end + 1 + id_bytes
        entries[name] = int(mode, 8), data[end + 1 : at].hex()
    return entries


def _names(folder: Path) -> frozenset[str]:
    try:
        with os.scandir(folder) as entries:
            return frozenset(entry.name for entry in entries)
    except FileNotFoundError:
        return frozenset()
