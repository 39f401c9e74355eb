"""What a folder of Windlass's holds that no pin holds, and letting it go once all of it is pinned.

Law: nothing is removed here but by-products and what a pinned commit has, byte for byte.
"""

import secrets
import shutil
from pathlib import Path

import anyio.to_thread
from msgspec import Struct

from windlass.adapters.files import fsync_dir, write_durably
from windlass.adapters.git.dress import Notes
from windlass.adapters.git.excludes import excludes, made_by_setup
from windlass.adapters.git.layout import Refs, is_order
from windlass.adapters.git.merges import Merges
from windlass.adapters.git.removal import remove
from windlass.adapters.git.snapshots import Snapshots
from windlass.adapters.git.store import Store, printable_line
from windlass.adapters.git.unpinning import release, remove_pins
from windlass.errors import GitFailed
from windlass.ports import Authorship, Refused

_WORK = ".cleaning-"
_GONE = ".gone"
_TITLE = "What was left in its workspace"


def is_half_gone(folder: Path) -> bool:
    """Whether a folder is what a removal has left that was cut short."""
    return folder.name.startswith(".") and folder.name.endswith(_GONE)


class Held(Struct, frozen=True, kw_only=True):
    """What a workspace holds."""

    tree: str = ""
    pinned: bool = False
    """Whether a pin of the plan has exactly that."""
    loose: tuple[str, ...] = ()
    """Files that the project's own rules keep out of every commit, and that are no by-products."""
    refused: str = ""
    """Why it cannot be told, or committed."""


class Cleaning:
    """Looks at folders of one plan, pins what they hold, and removes them."""

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
        """What is a by-product everywhere, and not only to the user."""
        return self._work / "by-products"

    async def close(self) -> None:
        """Leave nothing behind."""
        await remove(self._work)
        self._store.close()

    async def look(self, folder: Path, refs: Refs, parent: str, own: Path) -> Held:
        """What the folder holds beside its `.git`; `parent` is the commit it was last known as.

        `own` is its index, beside which stands what setup made in it.
        """
        index, made = self._index, made_by_setup(self._index)
        noted = made_by_setup(own)
        made.write_bytes(noted.read_bytes() if noted.is_file() else b"")
        try:
            tree = await self._snapshots(refs.run).tree(folder, index, parent)
            if isinstance(tree, Refused):
                return Held(refused=tree.reason)
            # What is left now is what git does not take.
            known = (f"--exclude-from={path}" for path in (self._known, made))
            asked = ("ls-files", "-z", "--others", *known)
            loose = (await self._store.trees(*asked, work_tree=folder, index=index)).fields
            listed = await self._store.refs(
                "for-each-ref", "--format=%(tree)", f"refs/windlass/{refs.plan}/"
            )
        except GitFailed as failure:
            return Held(refused=failure.message)
        pinned = tree in listed.text.split()
        return Held(tree=tree, pinned=pinned, loose=tuple(printable_line(path) for path in loose))

    async def save(self, folder: Path, refs: Refs, task: str, parent: str, ref: str) -> None:
        """Commit what the folder held when it was last looked at, and pin it, or raise."""
        await self._store.trees("read-tree", parent, index=self._index)
        author = Authorship(task=task, title=_TITLE, n=0, turn=0)
        made = await self._snapshots(refs.run).take(author, folder, self._index, (parent,), ref)
        if isinstance(made, Refused):
            raise GitFailed(("add",), 1, made.reason)
        await self._store.settle()  # before the folder goes, which may be the only other copy

    async def remove(self, folder: Path) -> None:
        """Let a folder go, links not followed: all of it at once, for a part could be mistaken."""
        aside = folder
        if folder.is_dir() and not folder.is_symlink() and not is_half_gone(folder):
            aside = folder.with_name(f".{folder.name}{_GONE}")
            await remove(aside)
            folder.rename(aside)
            fsync_dir(folder.parent)  # nothing of it goes before the whole has gone
        await remove(aside)
        await Notes(self._store).take_off(folder)

    async def pins_in_branches(self, refs: Refs, tip: str) -> dict[str, str]:
        """The run's pins that a branch of the user's holds with its tip; base, tip, order stay."""
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
        """Take these pins away, each only if it stands where it was seen."""
        if not (self._store.origin.git_dir / "reftable").exists():
            await anyio.to_thread.run_sync(remove_pins, self._store.origin.git_dir, pins)
            return
        lines = "".join(f"delete {ref} {at}\n" for ref, at in pins.items())
        await self._store.refs("update-ref", "--stdin", stdin=lines)

    def _snapshots(self, run: str) -> Snapshots:
        merges = Merges(self._store, run=run)
        return Snapshots(self._store, merges, run=run, max_file_bytes=self._max_file_bytes)
