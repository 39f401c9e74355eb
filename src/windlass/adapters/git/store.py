"""Objects and pins in the user's repository.

Objects are read and written through git processes that stay alive; this parses their answers. Pins
are refs: written once, moved only by compare-and-swap, and synced before anything relies on them.
The order of a plan's runs is counted in their pins. No clock decides which run is the newest.
"""

import hashlib
import os
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.clock import SystemClock
from windlass.adapters.files import make_folder, sync_all, write_durably
from windlass.adapters.git.git import TIMEOUT, Git, PersistentGit, Session
from windlass.adapters.git.layout import Folders, Refs, in_use, orders
from windlass.adapters.git.paths import OWN, as_any_file_system
from windlass.core.plan.names import escaped
from windlass.errors import GitFailed

_AT_ONCE = 40
"""Requests that fit into any pipe before the first answer is read."""
_TREE, _PLAIN, _GITLINK = 0o040000, 0o100000, 0o160000
_KIND = 0o170000

Kind: TypeAlias = Literal["blob", "commit", "tree"]
_WRITTEN: tuple[Kind, ...] = get_args(Kind)

Entries: TypeAlias = Mapping[bytes, tuple[int, str]]
"""A tree: mode and id by name."""
_NOTHING: Entries = {}


class Commit(Struct, frozen=True):
    tree: str
    parents: tuple[str, ...]
    message: bytes = b""
    date: str = ""
    """When it was committed: seconds and time zone, as git writes them."""


class Listed(NamedTuple):
    """One entry of a tree, with its whole path."""

    path: bytes
    mode: int
    id: str

    @property
    def is_plain(self) -> bool:
        """Whether it is a file: no folder, link or submodule."""
        return self.mode & _KIND == _PLAIN


class _TreeAndOlds(Struct, frozen=True):
    """A tree, and the trees at the same path in commits that are known to be whole."""

    new: str
    olds: list[str]


class Objects:
    """Reads and writes objects in the user's object folders."""

    def __init__(self, trees: Git, folders: Sequence[Path], *, id_bytes: int) -> None:
        self._id_bytes = id_bytes
        packs = tuple(folder / "pack" for folder in folders)

        def packs_now() -> object:
            return tuple(map(_names, packs))

        self._git = PersistentGit(trees, "cat-file", "--batch-command", version=packs_now)
        how = ("hash-object", "-w", "--no-filters", "--stdin-paths", "-t")
        self._writers = {
            kind: PersistentGit(trees, *how, kind, version=packs_now) for kind in _WRITTEN
        }
        self._drafts = trees.git_dir

    def close(self) -> None:
        """End the git processes."""
        for process in (self._git, *self._writers.values()):
            process.close()

    async def write(self, kind: Kind, content: bytes) -> str:
        """Write an object, unless it exists; git refuses content that is not of that kind."""

        def written(session: Session) -> str:
            # One request at a time, in git's own folder: one file name will do, without quotes.
            (self._drafts / kind).write_bytes(content)
            session.send(f"{kind}\n".encode())
            return session.line()

        return await self._writers[kind].ask(written)

    async def commit(self, commit: str) -> Commit:
        """Read a commit; raises GitFailed when there is none."""
        return await self._git.ask(lambda session: _commit(session, commit))

    async def is_whole(self, commit: str, beyond: Sequence[str]) -> bool | None:
        """Whether every object exists that the commit has and its parents do not.

        None if it has parents that are not in `beyond`: the caller must check those too.
        """
        return await self._git.ask(lambda session: self._is_whole(session, commit, beyond))

    async def changes(self, old: str, new: str) -> dict[bytes, str]:
        """The paths in which two trees differ, in git's order, each with A, M, T or D."""
        found = await self._git.ask(lambda session: dict(self._changes(session, old, new)))
        return dict(sorted(found.items()))

    async def listing(self, tree: str, leads: Callable[[bytes], bool]) -> list[Listed]:
        """All entries of a tree, below its root only in folders for which `leads` is true."""
        return await self._git.ask(lambda session: list(self._listing(session, tree, leads)))

    async def roots(self, trees: Sequence[str]) -> list[list[Listed]]:
        """The entries at the root of each of these trees."""

        def listed(session: Session) -> list[list[Listed]]:
            return [list(self._listing(session, tree, lambda _path: False)) for tree in trees]

        return await self._git.ask(listed)

    async def contents(self, names: Sequence[str]) -> list[bytes | None]:
        """The content of these objects; None for one that is missing."""
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
        level = [_TreeAndOlds(made.tree, [held.tree for held in known])]
        while level:
            trees = self._trees(session, (name for one in level for name in (one.new, *one.olds)))
            if any(one.new not in trees for one in level):
                return False
            unknown = [item for one in level for item in _unknown(one, trees)]
            files = {new: None for new, mode, _ in unknown if mode not in {_TREE, _GITLINK}}
            if not _are_there(session, list(files)):
                return False
            level = [_TreeAndOlds(new, olds) for new, mode, olds in unknown if mode == _TREE]
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
        """The entries of those of these trees that exist."""
        wanted = list(dict.fromkeys(names))
        found = zip(wanted, _contents(session, wanted), strict=True)
        return {name: _entries(data, self._id_bytes) for name, data in found if data is not None}


class _Missing(GitFailed):
    def __init__(self, name: str) -> None:
        super().__init__(("cat-file", "--batch-command"), 128, f"{name} does not exist")


def _unknown(
    one: _TreeAndOlds, trees: Mapping[str, Entries]
) -> Iterator[tuple[str, int, list[str]]]:
    """The entries of a tree that no old one has: id, mode, and the old trees of that name."""
    known = [trees[old] for old in one.olds if old in trees]
    held = {item for entries in known for _, item in entries.values()}
    for name, (mode, item) in trees[one.new].items():
        if item not in held:
            olds = (_subtree(entries.get(name)) for entries in known)
            yield item, mode, [old for old in olds if old is not None]


def _letter(a: tuple[int, str] | None, b: tuple[int, str] | None) -> str | None:
    """How a file changed; None where neither side is a file."""
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
    head, _, message = data.partition(b"\n\n")
    lines = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    [tree] = (value.decode() for key, value in lines if key == b"tree")
    parents = (value.decode() for key, value in lines if key == b"parent")
    dates = (b" ".join(value.rsplit(b" ", 2)[1:]) for key, value in lines if key == b"committer")
    return Commit(tree, tuple(parents), message, next(dates, b"").decode())


def _contents(session: Session, names: Sequence[str]) -> Iterator[bytes | None]:
    for size in _sizes(session, "contents", names):
        yield None if size is None else session.exactly(size + 1)[:-1]


def _are_there(session: Session, names: Sequence[str]) -> bool:
    return None not in list(_sizes(session, "info", names))


def _sizes(session: Session, command: str, names: Sequence[str]) -> Iterator[int | None]:
    for i in range(0, len(names), _AT_ONCE):
        asked = names[i : i + _AT_ONCE]
        session.send("".join(f"{command} {name}\n" for name in asked).encode())
        for _ in asked:
            answer = session.line()
            yield None if answer.endswith(" missing") else int(answer.rpartition(" ")[2])


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


HELD_SETTINGS = (
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
)
"""Settings of the user's repository that say how files are written, and run nothing."""


class Origin(Struct, frozen=True, kw_only=True):
    """The user's repository, as `inspect.locate` found it."""

    root: Path
    """The main worktree."""
    git_dir: Path
    """The common git directory."""
    objects: tuple[Path, ...]
    """Its object folders: its own first, then those it borrows from."""
    object_format: str
    identity: Mapping[str, str]
    """GIT_AUTHOR_… and GIT_COMMITTER_… of the user."""
    settings: Mapping[str, str]
    """Those of HELD_SETTINGS that are set."""
    excludes: tuple[str, ...]
    """The user's own exclude patterns."""

    @property
    def has_reftable(self) -> bool:
        """Whether refs are in a reftable, which only git can read and write, and not in files."""
        return (self.git_dir / "reftable").exists()


class Store:
    """Objects and pins of one plan."""

    def __init__(self, origin: Origin, folders: Folders) -> None:
        self.origin = origin
        self.folders = folders
        ceiling = origin.root.parent
        self.refs = Git(origin.git_dir, ceiling=ceiling)
        self.trees = Git(
            folders.git,
            ceiling=ceiling,
            environment={
                "GIT_OBJECT_DIRECTORY": str(origin.objects[0]),
                **origin.identity,
            },
        )
        self._objects = Objects(
            self.trees, origin.objects, id_bytes=20 if origin.object_format == "sha1" else 32
        )
        self._updates = PersistentGit(self.refs, "update-ref", "--stdin")
        self.carrier: Callable[[tuple[str, ...]], Awaitable[None]] = self.transact
        """Runs a transaction on refs; the journal's mirror adds its own ref to each."""
        self._tree_of: dict[str, str] = {}

    def open(self, exclude: str) -> None:
        """Write Windlass's own git directory; it holds nothing that a rewrite could lose."""
        home = self.folders.git
        for folder in (home / "refs" / "heads", home / "objects", home / "info"):
            make_folder(folder)
        write_durably(home / "HEAD", "ref: refs/heads/none\n")
        write_durably(home / "config", config_text(self.origin))
        write_durably(home / "info" / "exclude", exclude)
        shallow = self.origin.git_dir / "shallow"
        if shallow.exists():
            write_durably(home / "shallow", shallow.read_bytes())
        else:
            (home / "shallow").unlink(missing_ok=True)  # the user has fetched the rest since

    def git_on(self, objects: Path, borrowed: Iterable[Path] = (), timeout: float = TIMEOUT) -> Git:
        """Windlass's git with another object folder, which also reads the borrowed ones."""
        return Git(
            self.folders.git,
            ceiling=self.origin.root.parent,
            environment={
                "GIT_OBJECT_DIRECTORY": str(objects),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(
                    quoted(str(folder)) for folder in borrowed
                ),
            },
            timeout=timeout,
        )

    def close(self) -> None:
        """End the git processes; later requests start them again."""
        self._objects.close()
        self._updates.close()

    async def pin(self, new: Mapping[str, str]) -> None:
        """Write new pins; one that already has the same commit is left alone."""
        try:
            await self._update(*(f"create {ref} {commit}" for ref, commit in new.items()))
        except GitFailed:
            held = await self.pins(*new)
            missing = {ref: commit for ref, commit in new.items() if ref not in held}
            if missing == new or any(held[ref] != new[ref] for ref in new if ref in held):
                raise
            # A power loss may have kept only some of the pins of one transaction.
            if missing:
                await self._update(*(f"create {ref} {commit}" for ref, commit in missing.items()))

    async def settle(self) -> None:
        """Make everything written so far survive a power loss, before it is recorded.

        Git syncs the files that it writes, but not their folders: after a power loss, an object or
        a ref that was renamed into place may be gone.
        """
        await anyio.to_thread.run_sync(sync_all, self.origin.git_dir, self.folders.home)

    async def unpin(self, ref: str) -> None:
        """Remove a pin whose objects a gc has removed."""
        await self._update(f"delete {ref}")

    async def move(self, *refs: str, new: str, old: str) -> None:
        """Move refs by compare-and-swap, all or none; raises if one is not at `old`."""
        await self._update(*(f"update {ref} {new} {old}" for ref in refs))

    async def in_use(self, branch: str) -> str:
        """Which checkout uses the branch and how, in words; empty when none does."""
        if not self.origin.has_reftable:
            return in_use(self.origin.git_dir, self.origin.root, branch)
        asked = ("for-each-ref", "--format=%(worktreepath)", branch)
        place = (await self.refs(*asked)).text  # with a reftable there are no files to read
        return f"is checked out in {place}" if place else ""

    async def is_ancestor(self, commit: str, other: str) -> bool:
        """Whether `other` is `commit`, or descends from it."""
        asked = ("merge-base", "--is-ancestor", commit, other)
        return (await self.trees(*asked, ok=(0, 1))).code == 0

    async def _update(self, *lines: str) -> None:
        await self.carrier(lines)

    async def transact(self, lines: tuple[str, ...]) -> None:
        """One transaction on refs, in this order: all of it, or nothing and GitFailed."""
        text = "\n".join(("start", *lines, "commit", "")).encode()

        def transact(session: Session) -> None:
            session.send(text)
            for step in ("start", "commit"):
                if (answer := session.line()) != f"{step}: ok":
                    raise GitFailed(("update-ref", "--stdin"), -1, f"it answered {answer!r}")

        await self._updates.ask(transact)

    async def pins(self, *prefixes: str) -> dict[str, str]:
        """Every ref under these prefixes, with its commit."""
        listed = await self.refs(
            "for-each-ref", "--format=%(refname)%00%(objectname)%00", *prefixes
        )
        fields = [field.strip("\n") for field in listed.stdout.split("\0")][:-1]
        return dict(zip(fields[::2], fields[1::2], strict=True))

    async def is_whole(self, commit: str, beyond: Iterable[str]) -> bool:
        """Whether every object of the commit exists; a concurrent gc may have removed some."""
        known = tuple(beyond)
        try:
            whole = await self._objects.is_whole(commit, known)
            if whole is None:
                stop = (f"^{name}" for name in known)
                await self.trees("rev-list", "--objects", "--quiet", commit, *stop)
        except GitFailed:
            return False
        return whole is not False

    async def tree_of(self, commit: str) -> str:
        if commit not in self._tree_of:
            self._tree_of[commit] = (await self._objects.commit(commit)).tree
        return self._tree_of[commit]

    async def parents_of(self, commit: str) -> tuple[str, ...]:
        return (await self._objects.commit(commit)).parents

    async def changed_paths(self, old: str, new: str) -> dict[str, str]:
        """The paths in which two commits differ, as printable text, each with A, M, T or D."""
        trees = (await self.tree_of(old), await self.tree_of(new))
        found = await self._objects.changes(*trees)
        return {_path_text(path): letter for path, letter in found.items()}

    async def changed_in_tree(self, old: str, new: str) -> list[str]:
        """The paths in which two trees differ, as printable text."""
        return [_path_text(path) for path in await self._objects.changes(old, new)]

    async def listing(
        self, commit: str, leads: Callable[[str], bool] = lambda _folder: True
    ) -> dict[str, Listed]:
        """All files and folders of a commit by printable path, in folders where `leads` is true.

        Two names that are not UTF-8 may print alike; then only one of them is listed.
        """
        tree = await self.tree_of(commit)
        found = await self._objects.listing(tree, lambda path: leads(_path_text(path)))
        return {_path_text(entry.path): entry for entry in found}

    async def own(self, *trees: str) -> list[frozenset[Listed]]:
        """The root entries of each tree that some file system takes for Windlass's own folder."""
        return [
            frozenset(
                entry for entry in found if as_any_file_system(os.fsdecode(entry.path)) == OWN
            )
            for found in await self._objects.roots(trees)
        ]

    async def contents(self, names: Sequence[str]) -> list[bytes]:
        """The content of these objects; raises where one is missing."""
        found = await self._objects.contents(names)
        lost = [name for name, data in zip(names, found, strict=True) if data is None]
        if lost:
            raise GitFailed(("cat-file",), 128, f"{lost[0]} does not exist")
        return [data for data in found if data is not None]

    async def message_of(self, commit: str) -> bytes:
        return (await self._objects.commit(commit)).message

    async def read_commit(self, commit: str) -> Commit:
        return await self._objects.commit(commit)

    async def text(self, text: str) -> str:
        """Write a text as an object; gc may remove it until it is pinned."""
        return await self._objects.write("blob", text.encode(errors="surrogateescape"))

    async def commit(
        self, tree: str, parents: Iterable[str], message: str, *, date: str = ""
    ) -> str:
        """Write a commit in the user's name, dated now or `date`; gc may remove it until pinned."""
        text = message.encode(errors="surrogateescape")
        content = self._commit_text(tree, parents, text, date)
        made = await self._objects.write("commit", content)
        self._tree_of[made] = tree
        return made

    def note(self, parents: Iterable[str], message: bytes) -> str:
        """Write a commit without files, durably, and without git: every pin may need one."""
        empty = self._write_loose("tree", b"")
        return self._write_loose("commit", self._commit_text(empty, parents, message))

    async def line_of(self, commit: str) -> list[str]:
        """A commit and its ancestors by first parents, the oldest first. Raises GitFailed."""
        return (await self.trees("rev-list", "--first-parent", "--reverse", commit)).text.split()

    async def every_commit(self) -> list[str]:
        """Every existing commit object, reachable or not."""
        listed = await self.trees("cat-file", "--batch-all-objects", "--batch-check")
        kinds = (line.split(" ") for line in listed.text.splitlines())
        return [name for name, kind, *_ in kinds if kind == "commit"]

    def _write_loose(self, kind: Kind, content: bytes) -> str:
        data = b"%s %d\0" % (kind.encode(), len(content)) + content
        name = hashlib.new(self.origin.object_format, data).hexdigest()
        folder = self.origin.objects[0]
        path = folder / name[:2] / name[2:]
        if not path.exists():
            make_folder(path.parent, inside=folder)
            write_durably(path, zlib.compress(data, 1), inside=folder, mode=0o444)
        return name

    def _commit_text(
        self, tree: str, parents: Iterable[str], message: bytes, date: str = ""
    ) -> bytes:
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{role} {self._signature(role, date)}" for role in ("author", "committer")]
        return "\n".join([*lines, "", ""]).encode(errors="surrogateescape") + message

    def _signature(self, role: str, date: str) -> str:
        who = f"GIT_{role.upper()}_"
        name, email = self.origin.identity[f"{who}NAME"], self.origin.identity[f"{who}EMAIL"]
        now = SystemClock().now().astimezone()
        return f"{name} <{email}> {date or f'{int(now.timestamp())} {now:%z}'}"


def quoted(text: str) -> str:
    """The text in quotes, as in git's configuration and lists of folders."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _path_text(path: bytes) -> str:
    return printable_line(os.fsdecode(path))


def printable_line(text: str) -> str:
    """A path, or a message of git with paths in it, as one printable line."""
    return escaped(printable(text))


def printable(text: str) -> str:
    """Git's output as valid UTF-8, which records need; the paths in it may be anything."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def config_text(origin: Origin) -> str:
    """The configuration of a git directory that Windlass makes; it runs no program."""
    version = 0 if origin.object_format == "sha1" else 1
    lines = ["[core]", f"\trepositoryformatversion = {version}", "\tbare = false"]
    lines += [f"\t{name.partition('.')[2]} = {value}" for name, value in origin.settings.items()]
    if version:
        lines += ["[extensions]", f"\tobjectFormat = {origin.object_format}"]
    return "\n".join([*lines, ""])


async def next_order(store: Store, refs: Refs) -> str:
    """The pin that makes this run the newest of its plan. The caller holds the plan's lock."""
    known = await _orders(store, refs)
    return refs.order(max(known.values(), default=0) + 1)


async def is_newest(store: Store, refs: Refs) -> bool:
    """Whether the run's position is above that of every other run of its plan."""
    known = await _orders(store, refs)
    return known.pop(refs.run, 0) > max(known.values(), default=0)


async def _orders(store: Store, refs: Refs) -> dict[str, int]:
    return orders(await store.pins(f"refs/windlass/{refs.plan}/"), refs.plan)
