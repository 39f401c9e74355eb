"""The user's repository as Windlass uses it: its refs for pins, its objects for code.

Two git directories share the user's objects. `refs` is the user's own, and only ever reads and
writes refs there. `trees` is Windlass's, with a configuration of its own, and does everything that
looks into trees.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from windlass.adapters.files import make_folder, write_durably
from windlass.adapters.git.git import Git
from windlass.adapters.git.layout import Folders
from windlass.errors import GitFailed

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

    async def pin(self, new: Mapping[str, str]) -> None:
        """Write pins that are written once; one that holds the same already is left alone."""
        lines = "".join(f"create {ref} {commit}\n" for ref, commit in new.items())
        try:
            await self.refs("update-ref", "--stdin", stdin=lines)
        except GitFailed:
            held = await self.pins(*new)
            if any(held.get(ref) != commit for ref, commit in new.items()):
                raise

    async def unpin(self, ref: str) -> None:
        """Take back a pin whose objects a gc has taken."""
        await self.refs("update-ref", "-d", ref)

    async def move(self, ref: str, new: str, old: str) -> None:
        """Move a ref by compare-and-swap; raises when somebody else moved it."""
        await self.refs("update-ref", "--stdin", stdin=f"update {ref} {new} {old}\n")

    async def pins(self, *prefixes: str) -> dict[str, str]:
        """Every ref under these prefixes, with its commit."""
        listed = await self.refs(
            "for-each-ref", "--format=%(refname)%00%(objectname)%00", *prefixes
        )
        fields = [field.strip("\n") for field in listed.stdout.split("\0")][:-1]
        return dict(zip(fields[::2], fields[1::2], strict=True))

    async def is_whole(self, commit: str, beyond: Iterable[str]) -> bool:
        """Whether every object of the commit is there; a concurrent gc may have taken some."""
        stop = [f"^{known}" for known in beyond]
        try:
            await self.trees("rev-list", "--objects", "--quiet", commit, *stop)
        except GitFailed:
            return False
        return True

    async def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        if commit not in self._tree_of:
            answer = await self.trees("rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
            self._tree_of[commit] = answer.text
        return self._tree_of[commit]

    async def parents_of(self, commit: str) -> tuple[str, ...]:
        """What a commit was made onto."""
        answer = await self.trees("rev-list", "--parents", "--max-count=1", commit)
        return tuple(answer.text.split()[1:])

    async def changed_paths(self, old: str, new: str) -> dict[str, str]:
        """The paths in which two commits differ, as text that can be told: A, M, T or D each."""
        answer = await self.trees(
            "diff-tree", "-r", "-z", "--name-status", "--no-renames", "--no-ext-diff", old, new
        )
        letters, paths = answer.fields[::2], answer.fields[1::2]
        return {printable(path): letter for letter, path in zip(letters, paths, strict=True)}

    async def commit(self, tree: str, parents: Iterable[str], message: str) -> str:
        """Write a commit object; it is nobody's until it is pinned."""
        args = [part for parent in parents for part in ("-p", parent)]
        made = await self.trees("commit-tree", tree, *args, stdin=message)
        self._tree_of[made.text] = tree
        return made.text


def printable(path: str) -> str:
    """A path as text: names in a tree need not be UTF-8, and what is recorded must."""
    return path.encode(errors="surrogateescape").decode(errors="replace")


def config_text(origin: Origin) -> str:
    """The configuration of a git directory that Windlass makes: nothing in it runs anything."""
    version = 0 if origin.object_format == "sha1" else 1
    lines = ["[core]", f"\trepositoryformatversion = {version}", "\tbare = false"]
    lines += [f"\t{name.partition('.')[2]} = {value}" for name, value in origin.settings.items()]
    if version:
        lines += ["[extensions]", f"\tobjectFormat = {origin.object_format}"]
    return "\n".join([*lines, ""])
