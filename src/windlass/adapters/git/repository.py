"""One run's pins, workspaces and merges in the user's repository: the Repository port on real git.

The user's checkout, index, HEAD, configuration and hooks are never touched. Nothing is removed that
is not pinned.
"""

import contextlib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from windlass.adapters.files import write_durably
from windlass.adapters.git.checkouts import Checkouts, remove
from windlass.adapters.git.layout import Folders, Refs
from windlass.adapters.git.merges import Merges
from windlass.adapters.git.snapshots import Snapshots
from windlass.adapters.git.store import Store, printable
from windlass.adapters.git.throwaways import Furnish, GitThrowaway, Throwaways
from windlass.errors import GitFailed, RepositoryError
from windlass.ports import Authorship, Conflict, Merged, Refused, Snapshot


class Prepared(Struct, frozen=True, kw_only=True):
    """What a workspace was last made ready for; written once it is."""

    run: str
    n: int
    start: str
    onto: str | None


class GitRepository:
    """Real git behind the port."""

    def __init__(
        self, store: Store, refs: Refs, *, furnish: Furnish, max_file_bytes: float
    ) -> None:
        self._store = store
        self._refs = refs
        self._furnish = furnish
        self._throwaways = Throwaways(store, furnish)
        self._checkouts = Checkouts(store)
        self._merges = Merges(store, run=refs.run)
        self._snapshots = Snapshots(
            store, self._merges, run=refs.run, max_file_bytes=max_file_bytes
        )
        self._found: dict[str, str] = {}
        """Pins of an earlier process, until what they hold is asked for again."""

    @property
    def _folders(self) -> Folders:
        return self._store.folders

    async def open(self, base: str) -> None:
        """Pin base and tip, and see what an earlier process of this run has pinned already."""
        self._found = await self._store.pins(self._refs.root)
        new = {ref: base for ref in (self._refs.base, self._refs.tip) if ref not in self._found}
        if new:
            await self._store.pin(new)

    async def prepare(self, task: str, n: int, start: str, onto: str | None) -> Path:
        """The task's workspace, at `start` unless it is there already; `onto` merged into it."""
        await self._store.pin({self._refs.attempt(task, n, "start"): start})
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        await self._set_aside_what_is_not_ours(task)
        fresh = not _is_folder(workspace)
        if fresh:
            # An older note would make a setup that is cut short look finished.
            self._folders.prepared(task).unlink(missing_ok=True)
            await self._checkouts.make(workspace, start, index)
        noted = self._prepared(task)
        # The same merge again would undo what a Player settled and could not get committed.
        if onto is not None and (noted is None or (noted.start, noted.onto) != (start, onto)):
            tree, _ = await self._merges.combine(start, onto)
            await self._checkouts.fill(workspace, tree, index)
        if fresh:
            await self._furnish(workspace, index)
        # Last, for it knows by now what setup made; and what an agent made of it is gone.
        await self._checkouts.dress(workspace, start, index)
        note = Prepared(run=self._refs.run, n=n, start=start, onto=onto)
        write_durably(self._folders.prepared(task), msgspec.json.encode(note))
        return workspace

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit what the workspace holds, or find the commit that a crash left unrecorded."""
        ref = self._refs.attempt(author.task, author.n, kind)
        pinned = self._found.pop(ref, None)
        if pinned is not None:
            adopted = await self._snapshots.adopt(pinned, parents, ref)
            if adopted is not None:
                return adopted
        workspace = self._folders.workspace(author.task)
        noted = self._prepared(author.task)
        begun = noted is not None and (noted.run, noted.n) == (self._refs.run, author.n)
        if not begun or not _is_folder(workspace):
            # The Player never began here, or a person took the workspace away: nothing is new.
            start = parents[0]
            return Snapshot(commit=start, tree=await self._store.tree_of(start), changed=False)
        return await self._snapshots.take(
            author, workspace, self._folders.index(author.task), parents, ref
        )

    async def merge(
        self, author: Authorship, candidate: int, commit: str, tip: str
    ) -> Merged | Conflict:
        """Merge the commit onto the tip in memory and pin the result as a candidate."""
        ref = self._refs.candidate(candidate)
        pinned = self._found.pop(ref, None)
        adopted = pinned and await self._merges.adopt(commit, tip, ref, pinned)
        return adopted or await self._merges.build(author, commit, tip, ref)

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip, and let the integration branch follow where nobody has it checked out."""
        try:
            await self._store.move(self._refs.tip, commit, tip)
        except GitFailed:
            now = (await self._store.pins(self._refs.tip)).get(self._refs.tip)
            if now == tip:
                raise  # nobody moved it: git could not
            if now != commit:
                raise RepositoryError(
                    f"{self._refs.tip} stands at {now}, not at {tip} where this run left it",
                    hint=f"nothing was merged; put it back with `git update-ref {self._refs.tip} "
                    f"{tip}` and resume",
                ) from None
        return await self._show(tip, commit)

    def throwaway(
        self, commit: str, label: str
    ) -> contextlib.AbstractAsyncContextManager[GitThrowaway]:
        """A checkout of the commit for as long as the block lasts. Raises SetupFailed."""
        return self._throwaways.lend(commit, label)

    async def diff(self, old: str, new: str) -> str:
        """What changed between two commits, as text."""
        asked = ("--stat", "--patch", "--no-color", "--no-ext-diff", "--no-textconv")
        answer = await self._store.trees("diff-tree", "-r", *asked, old, new)
        return printable(answer.stdout)

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        """Pin a text beside the commits of the n-th start of a task's Player."""
        blob = await self._store.trees("hash-object", "-w", "--stdin", stdin=text)
        await self._store.pin({self._refs.attempt(task, n, what): blob.text})

    async def kept(self, task: str, n: int, what: str) -> str | None:
        """The text that was pinned so, if any."""
        ref = self._refs.attempt(task, n, what)
        blob = (await self._store.pins(ref)).get(ref)
        return None if blob is None else (await self._store.trees("cat-file", "blob", blob)).stdout

    async def release(self, task: str) -> None:
        """Let a merged task's workspace go."""
        await remove(self._folders.workspace(task))
        await remove(self._folders.index(task).parent)

    async def _show(self, tip: str, commit: str) -> str:
        """Move the integration branch, unless a person has it or has moved it."""
        branch = self._refs.integration
        name = branch.removeprefix("refs/heads/")
        listed = await self._store.refs(
            "for-each-ref", "--format=%(objectname)%00%(worktreepath)", branch
        )
        at, _, checked_out = listed.text.partition("\0")
        if checked_out:
            return f"{name} is checked out in {checked_out} and stays where it is"
        with contextlib.suppress(GitFailed):
            if at in {"", tip, commit} or await self._is_pinned(at):
                await self._store.move(branch, commit, at or "0" * len(commit))
                return ""
        return f"{name} was moved by somebody else and stays where it is"

    async def _is_pinned(self, commit: str) -> bool:
        """Whether a pin of this plan, of any run, holds the commit: a branch may leave it then."""
        plan = self._refs.root.removesuffix(self._refs.run)
        answer = await self._store.refs("for-each-ref", "--count=1", f"--contains={commit}", plan)
        return bool(answer.text)

    def _prepared(self, task: str) -> Prepared | None:
        try:
            return msgspec.json.decode(self._folders.prepared(task).read_bytes(), type=Prepared)
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    async def _set_aside_what_is_not_ours(self, task: str) -> None:
        """Keep another run's workspace under another name; a person may still want it."""
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        noted = self._prepared(task)
        ours = noted is not None and noted.run == self._refs.run and index.is_file()
        if ours or not _is_folder(workspace):
            return
        aside = self._folders.home / "kept" / f"{task}.{noted.run if noted else 'unfinished'}"
        aside.parent.mkdir(exist_ok=True)
        if noted is None:
            await remove(aside)  # no Player ever worked in either
        while aside.exists():
            aside = aside.with_name(f"{aside.name}+")
        workspace.rename(aside)
        await remove(index.parent)


def _is_folder(path: Path) -> bool:
    """Whether it is there; a link is not followed, for who knows where it leads."""
    return path.is_dir() and not path.is_symlink()
