"""The user's repository as Windlass uses it: its refs for pins, its objects for code.

Two git directories share the user's objects. `refs` is the user's own, and only ever reads and
writes refs there. `trees` is Windlass's, with a configuration of its own, and does everything that
looks into trees.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.clock import SystemClock
from windlass.adapters.files import make_folder, sync_all, write_durably
from windlass.adapters.git.git import Git
from windlass.adapters.git.layout import Folders
from windlass.adapters.git.names import OWN, folded
from windlass.adapters.git.objects import Listed, Objects
from windlass.adapters.git.sessions import Session, Staying
from windlass.adapters.git.worktrees import in_use
from windlass.errors import GitFailed
from windlass.plan.names import told

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
    """What is known of the user's repository once it was looked at."""

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


class Store:
    """Objects and pins."""

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
        self._updates = Staying(self.refs, "update-ref", "--stdin")
        self._tree_of: dict[str, str] = {}

    def open(self, exclude: str) -> None:
        """Make Windlass's own git directory, or make it anew: it holds nothing of its own."""
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

    def close(self) -> None:
        """End the processes that stay; what is asked afterwards starts them again."""
        self._objects.close()
        self._updates.close()

    async def pin(self, new: Mapping[str, str]) -> None:
        """Write pins that are written once; one that holds the same already is left alone."""
        try:
            await self._update(*(f"create {ref} {commit}" for ref, commit in new.items()))
        except GitFailed:
            held = await self.pins(*new)
            missing = {ref: commit for ref, commit in new.items() if ref not in held}
            if missing == new or any(held[ref] != new[ref] for ref in new if ref in held):
                raise
            # After a power loss a part of what was pinned at once may be there.
            if missing:
                await self._update(*(f"create {ref} {commit}" for ref, commit in missing.items()))

    async def settle(self) -> None:
        """Let all that was made here so far outlast a power loss, before anybody is told of it.

        git syncs what it writes, but not the names of it: an object or a ref that was renamed into
        its place may be gone again.
        """
        await anyio.to_thread.run_sync(sync_all, self.origin.git_dir, self.folders.home)

    async def unpin(self, ref: str) -> None:
        """Take back a pin whose objects a gc has taken."""
        await self._update(f"delete {ref}")

    async def move(self, *refs: str, new: str, old: str) -> None:
        """Move refs by compare-and-swap, all or none; raises when somebody else moved one."""
        await self._update(*(f"update {ref} {new} {old}" for ref in refs))

    async def in_use(self, branch: str) -> str:
        """What somebody does with a branch and where, in words; empty when nobody does anything."""
        git_dir = self.origin.git_dir
        if not (git_dir / "reftable").exists():
            return in_use(git_dir, self.origin.root, branch)
        asked = ("for-each-ref", "--format=%(worktreepath)", branch)
        place = (await self.refs(*asked)).text  # such a repository has no files that would tell
        return f"is checked out in {place}" if place else ""

    async def _update(self, *lines: str) -> None:
        """One transaction on refs: all of it, or nothing and GitFailed."""
        text = "\n".join(("start", *lines, "commit", "")).encode()

        def transact(session: Session) -> None:
            session.tell(text)
            for step in ("start", "commit"):
                if (said := session.line()) != f"{step}: ok":
                    raise GitFailed(("update-ref", "--stdin"), -1, f"it answered {said!r}")

        await self._updates.ask(transact)

    async def pins(self, *prefixes: str) -> dict[str, str]:
        """Every ref under these prefixes, with its commit."""
        listed = await self.refs(
            "for-each-ref", "--format=%(refname)%00%(objectname)%00", *prefixes
        )
        fields = [field.strip("\n") for field in listed.stdout.split("\0")][:-1]
        return dict(zip(fields[::2], fields[1::2], strict=True))

    async def is_whole(self, commit: str, beyond: Iterable[str]) -> bool:
        """Whether every object of the commit is there; a concurrent gc may have taken some."""
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
        """The tree of a commit."""
        if commit not in self._tree_of:
            self._tree_of[commit] = (await self._objects.commit(commit)).tree
        return self._tree_of[commit]

    async def parents_of(self, commit: str) -> tuple[str, ...]:
        """What a commit was made onto."""
        return (await self._objects.commit(commit)).parents

    async def changed_paths(self, old: str, new: str) -> dict[str, str]:
        """The paths in which two commits differ, as text that can be told: A, M, T or D each."""
        trees = (await self.tree_of(old), await self.tree_of(new))
        found = await self._objects.changes(*trees)
        return {_told(path): letter for path, letter in found.items()}

    async def listing(
        self, commit: str, leads: Callable[[str], bool] = lambda _folder: True
    ) -> dict[str, Listed]:
        """All files and folders of a commit by their paths as text, in folders that lead somewhere.

        Two names that are no text may look the same; then one of them stands for both.
        """
        tree = await self.tree_of(commit)
        found = await self._objects.listing(tree, lambda path: leads(_told(path)))
        return {_told(entry.path): entry for entry in found}

    async def own(self, *trees: str) -> list[frozenset[Listed]]:
        """What each tree has at its root that is Windlass's own folder to some file system."""
        return [
            frozenset(entry for entry in found if folded(os.fsdecode(entry.path)) == OWN)
            for found in await self._objects.roots(trees)
        ]

    async def contents(self, names: Sequence[str]) -> list[bytes]:
        """What these objects hold; raises where one of them is gone."""
        found = await self._objects.contents(names)
        lost = [name for name, data in zip(names, found, strict=True) if data is None]
        if lost:
            raise GitFailed(("cat-file",), 128, f"{lost[0]} is not there")
        return [data for data in found if data is not None]

    async def text(self, text: str) -> str:
        """Write a text as an object; it is nobody's until it is pinned."""
        return await self._objects.write("blob", text.encode(errors="surrogateescape"))

    async def commit(self, tree: str, parents: Iterable[str], message: str) -> str:
        """Write a commit object of now, in the user's name; it is nobody's until it is pinned."""
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{role} {self._signature(role)}" for role in ("author", "committer")]
        text = "\n".join([*lines, "", message])
        made = await self._objects.write("commit", text.encode(errors="surrogateescape"))
        self._tree_of[made] = tree
        return made

    def _signature(self, role: str) -> str:
        who = f"GIT_{role.upper()}_"
        name, email = self.origin.identity[f"{who}NAME"], self.origin.identity[f"{who}EMAIL"]
        now = SystemClock().now().astimezone()
        return f"{name} <{email}> {int(now.timestamp())} {now:%z}"


def _told(path: bytes) -> str:
    return printable_line(os.fsdecode(path))


def printable_line(text: str) -> str:
    """A path, or what git says with one in it, as one line, whatever the files are called."""
    return told(printable(text))


def printable(text: str) -> str:
    """What git says as text: what it quotes need not be UTF-8, and what is recorded must."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def config_text(origin: Origin) -> str:
    """The configuration of a git directory that Windlass makes: nothing in it runs anything."""
    version = 0 if origin.object_format == "sha1" else 1
    lines = ["[core]", f"\trepositoryformatversion = {version}", "\tbare = false"]
    lines += [f"\t{name.partition('.')[2]} = {value}" for name, value in origin.settings.items()]
    if version:
        lines += ["[extensions]", f"\tobjectFormat = {origin.object_format}"]
    return "\n".join([*lines, ""])
