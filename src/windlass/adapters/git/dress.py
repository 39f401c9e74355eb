"""What a checkout's `.git` is: a repository of its own, or a link into the user's.

Kind clone: a small repository that shares the user's objects, with one branch, no remotes, no tags;
whoever works there may commit in it, and can wreck only that. Kind worktree: a linked worktree of
the user's repository, at a detached commit, listed by `git worktree list` and locked, so that no
`git worktree prune` takes it. Inside the sandbox its git directory is read-only, so nobody can
commit there. In both Windlass itself never reads what is written here.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from windlass.adapters.files import write_durably
from windlass.adapters.git.excludes import made_by_setup
from windlass.adapters.git.removal import remove
from windlass.adapters.git.store import Store, config_text

PLAYER = "[user]\n\tname = Player\n\temail = player@windlass.invalid\n"
"""Whoever works here may commit; nobody will mistake those commits for the user's."""

BRANCH = "work"
"""The one branch of a clone; there are no remotes and no tags."""

SHOWN = ("HEAD", "info", "packed-refs", "refs", "reftable", "shallow", "worktrees")
"""What a sandbox shows of the user's git directory beside its objects, for linked worktrees: enough
to read history. Not `config`, which may hold passwords, nor hooks."""


class Dress(Protocol):
    """Gives checkouts their `.git`."""

    async def put_on(self, checkout: Path, home: Path, commit: str, index: Path) -> None:
        """A new `.git` that stands at the commit; `home` is where the checkout will be."""
        ...


class Clone:
    """A repository of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def put_on(self, checkout: Path, home: Path, commit: str, index: Path) -> None:  # noqa: ARG002  the port's form
        """Write it by hand: a few small files."""
        await remove(checkout / ".git")
        lists = (self._store.folders.git / "info/exclude", made_by_setup(index))
        held = {
            "HEAD": f"ref: refs/heads/{BRANCH}\n".encode(),
            f"refs/heads/{BRANCH}": f"{commit}\n".encode(),
            "config": (config_text(self._store.origin) + PLAYER).encode(),
            # All of them: git does not follow a relative path in an alternate's own alternates.
            "objects/info/alternates": b"".join(
                os.fsencode(folder) + b"\n" for folder in self._store.origin.objects
            ),
            "info/exclude": b"".join(_content(path) or b"" for path in lists),
            "shallow": _content(self._store.folders.git / "shallow"),
            "index": index.read_bytes(),
        }
        _write(checkout / ".git", {name: text for name, text in held.items() if text is not None})


class Linked:
    """A linked worktree of the user's repository."""

    def __init__(self, store: Store) -> None:
        self._plan = store.folders.plan
        self._home = store.folders.home
        self._worktrees = store.origin.git_dir / "worktrees"

    async def put_on(self, checkout: Path, home: Path, commit: str, index: Path) -> None:
        """Write what `git worktree add --detach --lock` writes; a hook or a filter never runs."""
        await self.take_off(home)
        await remove(checkout / ".git")
        entry = self._new_entry(home)
        self._put(entry / "commondir", "../..\n")
        self._put(entry / "HEAD", f"{commit}\n")
        self._put(entry / "index", index.read_bytes())
        with (checkout / ".git").open("x") as file:  # never through a link that is put there
            file.write(f"gitdir: {entry}\n")

    async def take_off(self, home: Path) -> None:
        """Remove the user's repository's note of it."""
        for entry, there in self._entries():
            if there == home:
                await remove(entry)

    async def move(self, home: Path, new: Path) -> None:
        """Let the note lead to where the worktree was moved."""
        for entry, there in self._entries():
            if there == home:
                self._put(entry / "gitdir", f"{new / '.git'}\n")

    async def tidy(self) -> None:
        """Remove the notes of this plan's worktrees that are none any more, whoever ended them."""
        for entry, there in self._entries():
            if there.is_relative_to(self._home) and not (there / ".git").is_file():
                await remove(entry)

    def make_room(self) -> None:
        """Make the folder of the notes, which a sandbox shows only if it is there."""
        self._worktrees.mkdir(exist_ok=True)

    def _new_entry(self, home: Path) -> Path:
        name, more = f"windlass-{self._plan}-{home.name}", 0
        while True:
            entry = self._worktrees / (f"{name}-{more}" if more else name)
            try:
                entry.mkdir(parents=True)
            except FileExistsError:
                more += 1
                continue
            # In this order: a note that is cut short is one that git's own prune removes.
            self._put(entry / "gitdir", f"{home / '.git'}\n")
            self._put(entry / "locked", f"windlass works on {home.name} of {self._plan} here\n")
            return entry

    def _put(self, path: Path, content: str | bytes) -> None:
        """Write into the user's git directory, which the agent of a linked worktree can reach."""
        write_durably(path, content, inside=self._worktrees.parent, synced=False)

    def _entries(self) -> Iterator[tuple[Path, Path]]:
        """Each note that could be ours, with the folder it speaks of."""
        for entry in sorted(self._worktrees.glob(f"windlass-{self._plan}-*")):
            with contextlib.suppress(OSError):
                text = os.fsdecode((entry / "gitdir").read_bytes()).removesuffix("\n")
                yield entry, Path(text).parent


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _write(dot_git: Path, held: Mapping[str, bytes]) -> None:
    # Strings, for this is done for every checkout, and Paths would take half of its time.
    top = str(dot_git)
    for folder in ("", "/objects", "/objects/info", "/refs", "/refs/heads", "/info"):
        os.mkdir(top + folder)  # noqa: PTH102  as above
    for name, text in held.items():
        with open(f"{top}/{name}", "xb") as file:  # noqa: PTH123  as above
            file.write(text)
