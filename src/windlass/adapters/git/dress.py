"""What a checkout's `.git` is: a repository of its own, or a link into the user's.

Kind clone: a small repository with one branch, no remotes, no tags; an agent or a person may commit
in it, and can wreck only that. Kind worktree: a linked worktree of the user's repository, at a
detached commit, listed by `git worktree list` and locked, so that no `git worktree prune` takes it.
In both, an agent's checkout shows the objects that its own commits reach (histories.py), and a
person's shows the whole repository. In a box a linked worktree has a small read-only git directory
in place of the user's, so no commit can be made there. Windlass itself never reads what is written
here.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from windlass.adapters.files import write_durably
from windlass.adapters.git.excludes import made_by_setup
from windlass.adapters.git.histories import Histories, Sight
from windlass.adapters.git.layout import history, stand_in, stands_in_for
from windlass.adapters.git.removal import remove
from windlass.adapters.git.store import Store, config_text

PLAYER = "[user]\n\tname = Player\n\temail = player@windlass.invalid\n"
"""Whoever works here may commit; nobody will mistake those commits for the user's."""

BRANCH = "work"
"""The one branch of a clone; there are no remotes and no tags."""


class Dress(Protocol):
    """Gives checkouts their `.git`."""

    async def make_ready(self, commit: str) -> None:
        """Do beforehand what takes time for a checkout of the commit."""
        ...

    async def put_on(
        self, checkout: Path, home: Path, commit: str, index: Path, sight: Sight | None
    ) -> None:
        """A new `.git` that stands at the commit; `home` is where the checkout will be.

        Without `sight` it is for a person, who sees the whole repository.
        """
        ...


class Clone:
    """A repository of its own."""

    def __init__(self, store: Store, histories: Histories) -> None:
        self._store = store
        self._histories = histories

    async def make_ready(self, commit: str) -> None:
        """Pack what the commit reaches."""
        await self._histories.packs(commit)

    async def put_on(
        self,
        checkout: Path,
        home: Path,  # noqa: ARG002  the port's form
        commit: str,
        index: Path,
        sight: Sight | None,
    ) -> None:
        """Write it by hand: a few small files."""
        await remove(checkout / ".git", stand_in(index), stands_in_for(index))
        rest = await _rest(self._store, self._histories, index, sight)
        head = {
            "HEAD": f"ref: refs/heads/{BRANCH}\n".encode(),
            f"refs/heads/{BRANCH}": f"{commit}\n".encode(),
            "config": (config_text(self._store.origin) + PLAYER).encode(),
        }
        _write(checkout / ".git", {**head, **rest})


class Linked:
    """A linked worktree of the user's repository."""

    def __init__(self, store: Store, histories: Histories) -> None:
        self._store = store
        self._histories = histories
        self._notes = Notes(store)

    async def make_ready(self, commit: str) -> None:
        """Pack what the commit reaches."""
        await self._histories.packs(commit)

    async def put_on(
        self, checkout: Path, home: Path, commit: str, index: Path, sight: Sight | None
    ) -> None:
        """Write what `git worktree add --detach --lock` writes; a hook or a filter never runs."""
        await self._notes.take_off(home)
        await remove(checkout / ".git", stand_in(index), stands_in_for(index))
        rest = await _rest(self._store, self._histories, index, sight)
        entry = self._notes.add(home)
        self._notes.put(entry / "commondir", "../..\n")
        self._notes.put(entry / "HEAD", f"{commit}\n")
        self._notes.put(entry / "index", index.read_bytes())
        with (checkout / ".git").open("x") as file:  # never through a link that is put there
            file.write(f"gitdir: {entry}\n")
        if sight is not None:
            stands_in_for(index).write_bytes(os.fsencode(entry))
            head = {
                "HEAD": f"{commit}\n".encode(),
                "config": config_text(self._store.origin).encode(),
            }
            _write(stand_in(index), {**head, **rest})


class Notes:
    """The user's repository's notes of this plan's linked worktrees."""

    def __init__(self, store: Store) -> None:
        self._plan = store.folders.plan
        self._home = store.folders.home
        self._worktrees = store.origin.git_dir / "worktrees"

    async def take_off(self, home: Path) -> None:
        """Remove the note of a worktree."""
        for entry, there in self._entries():
            if there == home:
                await remove(entry)

    async def move(self, home: Path, new: Path) -> None:
        """Let the note lead to where the worktree was moved."""
        for entry, there in self._entries():
            if there == home:
                self.put(entry / "gitdir", f"{new / '.git'}\n")

    async def tidy(self) -> None:
        """Remove the notes of this plan's worktrees that are none any more, whoever ended them."""
        for entry, there in self._entries():
            if there.is_relative_to(self._home) and not (there / ".git").is_file():
                await remove(entry)

    def add(self, home: Path) -> Path:
        """Make a new one for a worktree, and lock it."""
        name, more = f"windlass-{self._plan}-{home.name}", 0
        while True:
            entry = self._worktrees / (f"{name}-{more}" if more else name)
            try:
                entry.mkdir(parents=True)
            except FileExistsError:
                more += 1
                continue
            # In this order: a note that is cut short is one that git's own prune removes.
            self.put(entry / "gitdir", f"{home / '.git'}\n")
            self.put(entry / "locked", f"windlass works on {home.name} of {self._plan} here\n")
            return entry

    def put(self, path: Path, content: str | bytes) -> None:
        """Write into the user's git directory, which the agent of a linked worktree can reach."""
        write_durably(path, content, inside=self._worktrees.parent, synced=False)

    def _entries(self) -> Iterator[tuple[Path, Path]]:
        """Each note that could be ours, with the folder it speaks of."""
        for entry in sorted(self._worktrees.glob(f"windlass-{self._plan}-*")):
            with contextlib.suppress(OSError):
                text = os.fsdecode((entry / "gitdir").read_bytes()).removesuffix("\n")
                yield entry, Path(text).parent


async def _rest(
    store: Store, histories: Histories, index: Path, sight: Sight | None
) -> dict[str, bytes]:
    """What every small git directory has beside its HEAD."""
    objects = store.origin.objects
    shallow = _content(store.folders.git / "shallow")
    if sight is None:
        await remove(history(index))
    else:
        objects = (history(index),)
        await histories.lay(history(index), sight)
        shallow = shallow and await histories.found_in(history(index), shallow)
    lists = (store.folders.git / "info/exclude", made_by_setup(index))
    held = {
        # All of them: git does not follow a relative path in an alternate's own alternates.
        "objects/info/alternates": b"".join(os.fsencode(folder) + b"\n" for folder in objects),
        "info/exclude": b"".join(_content(path) or b"" for path in lists),
        "shallow": shallow,
        "index": index.read_bytes(),
    }
    return {name: text for name, text in held.items() if text}


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
