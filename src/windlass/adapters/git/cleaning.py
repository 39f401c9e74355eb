"""Removal of workspaces and pins: what a folder holds that no pin has is found and pinned first.

Law 1: only by-products are removed, and files that a pinned commit has byte for byte.
Law 2: git deletes a ref under a lock on the list of all packed refs, and a killed git leaves that
lock, empty, in the user's way. So Windlass removes pins itself: each lock is created together with
its content, by which it is found again. Only pins are removed, and only where they stand at the
commit that was seen.
"""

import os
import secrets
import shutil
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.files import (
    fsync_dir,
    is_folder,
    make_folder,
    read_plainly,
    remove,
    remove_durably,
    write_durably,
)
from windlass.adapters.git.checkout_git_dir import WorktreeEntries
from windlass.adapters.git.commits import Commits, Merges, Snapshots
from windlass.adapters.git.landing_record import take_lock
from windlass.adapters.git.layout import Refs, is_order
from windlass.adapters.git.paths import excludes, made_by_setup
from windlass.adapters.git.store import Store, printable_line
from windlass.errors import GitFailed
from windlass.ports import Authorship, Refused

_PATIENCE = 5.0
_HOME = "windlass-unpin"


def remove_pins(git_dir: Path, pins: Mapping[str, str]) -> None:
    """Remove these pins, each if it stands at that commit."""
    packed = git_dir / "packed-refs"
    with _locked(git_dir, packed):
        lines = _lines(packed)
        kept = list(_without(lines, pins))
        for ref, commit in pins.items():
            path = git_dir / ref
            if read_plainly(path) == f"{commit}\n":
                with _locked(git_dir, path):
                    if read_plainly(path) == f"{commit}\n":
                        path.unlink()
                        fsync_dir(path.parent)
        if kept != lines:
            # A packed ref that another git moved since has a file of its own, which wins.
            write_durably(packed, b"".join(kept), by_way_of=git_dir / _HOME)
    release(git_dir)


def release(git_dir: Path) -> None:
    """Remove the locks of a process that was killed while it removed pins."""
    home = git_dir / _HOME
    if not home.is_dir():
        return
    for note in home.glob("*.lock-of"):
        token, lock = home / note.stem, Path(os.fsdecode(note.read_bytes()))
        held = read_plainly(token)
        if held and read_plainly(lock) == held:
            remove_durably(lock)
        remove_durably(token)
        remove_durably(note)
    for left in home.iterdir():
        left.unlink()
    home.rmdir()


@contextmanager
def _locked(git_dir: Path, path: Path) -> Generator[None]:
    """Keep every other git from a file; the lock is noted first, to be found after a crash."""
    home, name = git_dir / _HOME, secrets.token_hex(8)
    token, note = home / name, home / f"{name}.lock-of"
    lock = path.with_name(f"{path.name}.lock")
    make_folder(home)
    write_durably(token, f"windlass clean {secrets.token_hex(16)}\n")
    write_durably(note, os.fsencode(lock))
    take_lock(token, lock, _PATIENCE)
    fsync_dir(lock.parent)
    try:
        yield
    finally:
        remove_durably(lock)
        remove_durably(note)
        remove_durably(token)


def _without(lines: list[bytes], pins: Mapping[str, str]) -> Iterator[bytes]:
    """The lines without those of these pins, and without the commit behind a pinned tag."""
    gone = {b"%s %s" % (commit.encode(), os.fsencode(ref)) for ref, commit in pins.items()}
    skipping = False
    for line in lines:
        if line.startswith(b"^") and skipping:
            continue
        skipping = line.rstrip() in gone
        if not skipping:
            yield line


def _lines(packed: Path) -> list[bytes]:
    try:
        return packed.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []


_WORK = ".cleaning-"
_GONE = ".gone"
_TITLE = "What was left in its workspace"


def is_partly_removed(folder: Path) -> bool:
    """Whether a folder is the rest of a removal that was cut short."""
    return folder.name.startswith(".") and folder.name.endswith(_GONE)


class WorkspaceContents(Struct, frozen=True, kw_only=True):
    tree: str = ""
    pinned: bool = False
    """Whether a pin of the plan has exactly this tree."""
    loose: tuple[str, ...] = ()
    """Files that the project's own rules exclude from commits, and that are no by-products."""
    refused: str = ""
    """Why the content cannot be read or committed."""


class Cleaning:
    """Reads folders of one plan, pins what they hold, and removes them."""

    def __init__(self, store: Store, *, max_file_bytes: float, keep: tuple[str, ...]) -> None:
        self._store = store
        self._max_file_bytes = max_file_bytes
        self._work = store.folders.home / "private" / f"{_WORK}{secrets.token_hex(4)}"
        release(store.origin.git_dir)
        store.open(excludes(keep=keep, user=store.origin.excludes))
        for left in self._work.parent.glob(f"{_WORK}*"):  # of a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        self._work.mkdir(parents=True)
        write_durably(self._known, excludes(keep=keep, user=()))

    @property
    def _index(self) -> Path:
        return self._work / "index"

    @property
    def _known(self) -> Path:
        """The exclude file with by-products for everyone, without the user's own patterns."""
        return self._work / "by-products"

    async def close(self) -> None:
        await remove(self._work)
        self._store.close()

    async def look(self, folder: Path, refs: Refs, parent: str, own: Path) -> WorkspaceContents:
        """What the folder holds beside its `.git`; `parent` is its last known commit.

        `own` is its index, next to which is the list of what setup made in it.
        """
        index, made = self._index, made_by_setup(self._index)
        noted = made_by_setup(own)
        made.write_bytes(noted.read_bytes() if noted.is_file() else b"")
        try:
            tree = await self._snapshots(refs.run).tree(folder, index, parent)
            if isinstance(tree, Refused):
                return WorkspaceContents(refused=tree.reason)
            # All other files are in the index now: these are those that git ignores.
            known = (f"--exclude-from={path}" for path in (self._known, made))
            asked = ("ls-files", "-z", "--others", *known)
            loose = (await self._store.trees(*asked, work_tree=folder, index=index)).fields
            listed = await self._store.refs(
                "for-each-ref", "--format=%(tree)", f"refs/windlass/{refs.plan}/"
            )
        except GitFailed as failure:
            return WorkspaceContents(refused=failure.message)
        pinned = tree in listed.text.split()
        return WorkspaceContents(
            tree=tree, pinned=pinned, loose=tuple(printable_line(path) for path in loose)
        )

    async def save(self, folder: Path, refs: Refs, task: str, parent: str, ref: str) -> None:
        """Commit what the folder holds, and pin it, or raise."""
        await self._store.trees("read-tree", parent, index=self._index)
        author = Authorship(task=task, title=_TITLE, n=0, turn=0)
        made = await self._snapshots(refs.run).take(author, folder, self._index, (parent,), ref)
        if isinstance(made, Refused):
            raise GitFailed(("add",), 1, made.reason)
        await self._store.settle()  # before the folder is removed, maybe the only other copy

    async def remove(self, folder: Path) -> None:
        """Remove a folder, links not followed. Renamed first: a rest must not look whole."""
        aside = folder
        if is_folder(folder) and not is_partly_removed(folder):
            aside = folder.with_name(f".{folder.name}{_GONE}")
            await remove(aside)
            folder.rename(aside)
            fsync_dir(folder.parent)  # the rename must be durable before a part is removed
        await remove(aside)
        await WorktreeEntries(self._store).remove_entry(folder)

    async def pins_in_branches(self, refs: Refs, tip: str) -> dict[str, str]:
        """The run's pins that a user's branch with the tip reaches; base, tip, order stay."""
        heads = await self._store.refs(
            "for-each-ref", "--format=%(refname)", f"--contains={tip}", "refs/heads/"
        )
        ours = "refs/heads/windlass/"
        theirs = [name for name in heads.text.splitlines() if not name.startswith(ours)]
        if not theirs:
            return {}
        listed = await self._store.refs(
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            f"--merged={theirs[0]}",
            f"{refs.root}/",
        )
        pins = dict(line.split(" ") for line in listed.text.splitlines())
        stay = {refs.base, refs.tip, *filter(is_order, pins)}
        return {ref: at for ref, at in pins.items() if ref not in stay}

    async def unpin(self, pins: dict[str, str]) -> None:
        """Remove these pins, each only if it stands where it was seen."""
        if not self._store.origin.has_reftable:
            await anyio.to_thread.run_sync(remove_pins, self._store.origin.git_dir, pins)
            return
        lines = "".join(f"delete {ref} {at}\n" for ref, at in pins.items())
        await self._store.refs("update-ref", "--stdin", stdin=lines)

    def _snapshots(self, run: str) -> Snapshots:
        commits = Commits(self._store, run=run)
        merges = Merges(self._store, commits)
        return Snapshots(self._store, merges, commits, max_file_bytes=self._max_file_bytes)
