"""One run's pins, workspaces and merges in the user's repository: the Repository port on real git.

The user's checkout, index, HEAD, configuration and hooks are never touched, except when the user
asks to land (landing.py). Nothing is removed that is not pinned.
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import anyio.to_thread
import msgspec

from windlass.adapters.concurrently import together
from windlass.adapters.files import is_folder, remove, remove_durably, write_durably
from windlass.adapters.git.checkout_git_dir import (
    Clone,
    Histories,
    Linked,
    Visible,
    WorktreeEntries,
)
from windlass.adapters.git.checkouts import (
    Checkouts,
    GitThrowaway,
    RunSetup,
    Throwaways,
    is_occupied,
)
from windlass.adapters.git.commits import Commits, Merges, Snapshots, set_identity
from windlass.adapters.git.git import run_uncancelled
from windlass.adapters.git.inspect import UserGit, patches, refuse_unsupported
from windlass.adapters.git.landing import Branches, OwnChanges, no_own_changes
from windlass.adapters.git.layout import (
    HEADS,
    Folders,
    Prepared,
    Refs,
    is_order,
    is_ready,
    note_of,
)
from windlass.adapters.git.paths import made_by_setup
from windlass.adapters.git.pool import Pool
from windlass.adapters.git.reconcile import Deliverables
from windlass.adapters.git.squash import Squashes
from windlass.adapters.git.store import Store, next_order
from windlass.core.exchange import ChangedPaths, Expected
from windlass.core.settings import WorkspaceSettings
from windlass.core.state.remains import attempt_pins
from windlass.errors import GitFailed, RepositoryError, SetupFailed
from windlass.ports import Authorship, Conflict, Merged, Patch, Refused, Seen, Snapshot


class GitRepository:
    def __init__(
        self,
        store: Store,
        refs: Refs,
        *,
        setup: RunSetup,
        settings: WorkspaceSettings,
        environment: Mapping[str, str],
        commits: Commits | None = None,
        notice: Callable[[str], None] = lambda _text: None,
        ours: OwnChanges = no_own_changes,
    ) -> None:
        """`environment` is the one that the user's own git is called with."""
        self._store = store
        self._refs = refs
        self._environment = environment
        self._branches = Branches(store, environment, ours)
        self._setup = setup
        self._notice = notice
        hash_bytes = 20 if store.origin.object_format == "sha1" else 32
        self._pool = Pool(store.folders.pool, hash_bytes=hash_bytes)
        self._histories = Histories(store)
        self._entries = WorktreeEntries(store)
        clone = Clone(store, self._histories)
        git_dirs = Linked(store, self._histories) if settings.kind == "worktree" else clone
        self._checkouts = Checkouts(store, self._pool, git_dirs)
        self.throwaways = Throwaways(store, setup, Checkouts(store, self._pool, clone))
        """Also for the checks of this run's commits."""
        commits = commits or Commits(store, run=refs.run)
        self._merges = Merges(store, commits)
        self._squashes = Squashes(store, refs, self._merges, commits)
        self._snapshots = Snapshots(
            store, self._merges, commits, max_file_bytes=settings.max_file_mb * 1e6
        )
        self._ours: set[str] = set()
        """Tasks whose workspace this process made."""
        self._found: dict[str, str] = {}
        """Pins of an earlier process, until the effect that made them is repeated."""
        self._base = ""
        self._shown = ""
        """The commit to which this process last moved the integration branch."""

    @property
    def _folders(self) -> Folders:
        return self._store.folders

    async def open(self, base: str) -> None:
        """Pin base and tip, and read what an earlier process of this run has pinned."""
        self._base = base
        await self._branches.settle()
        self._found = await self._store.pins(self._refs.root)
        new = {ref: base for ref in (self._refs.base, self._refs.tip) if ref not in self._found}
        if not any(is_order(ref) for ref in self._found):
            new[await next_order(self._store, self._refs)] = base
        if new:
            await self._store.pin(new)
        await self._store.settle()  # the base too, which the user's own git has not synced
        await self._pool.empty()
        await self._histories.open(base)
        await self._entries.prune()

    async def close(self) -> None:
        """Remove what only this process could use."""
        await self._pool.empty()
        await self._histories.close()

    async def prepare(
        self,
        task: str,
        n: int,
        start: str,
        onto: str | None,
        *,
        turn: int | None = None,
        by_person: bool = False,
    ) -> Path:
        held = attempt_pins(n, start, onto, turn)
        pins = {self._refs.attempt(task, n, what): commit for what, commit in held.items()}
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        await self._set_aside_other_runs(task)
        if fresh := not await self.stands(task, start):
            await self._make(task, start, pins)
        else:
            await self._store.pin(pins)
        if by_person and not fresh and self._is_prepared(task, n):
            return workspace  # its `.git` may have commits of theirs
        noted = self._prepared(task)
        # The same merge again would undo what a Player resolved and has not committed.
        has_git_dir = fresh and not by_person
        if onto is not None and (noted is None or (noted.start, noted.onto) != (start, onto)):
            tree, _ = await self._merges.combine(start, onto)
            await self._refill(workspace, tree, index, start)
            has_git_dir = False
        if fresh:
            with contextlib.suppress(*((SetupFailed,) if by_person else ())):
                made = await self._setup(workspace, index, start, task=task)
                has_git_dir = not made and has_git_dir
        if not has_git_dir:
            # Last, because it lists what setup made; an agent's changes to the old one are gone.
            if by_person:
                await self._checkouts.write_git_dir_for_person(workspace, start, index)
            else:
                same = fresh and onto is None
                visible = Visible((start,)) if same else await self._visible(index, start, onto)
                await self._checkouts.write_git_dir(workspace, start, index, visible)
        if by_person:
            self._ours.discard(task)  # they may use it long after it was merged
            set_identity(workspace, self._store.origin.identity)
        # After a power loss a file that the Player did not touch must not be committed empty.
        await self._store.settle()
        note = Prepared(run=self._refs.run, n=n, start=start, onto=onto, by_person=by_person)
        write_durably(self._folders.prepared(task), msgspec.json.encode(note))
        return workspace

    async def _make(self, task: str, start: str, pins: Mapping[str, str]) -> None:
        """Make a new workspace; a folder that is there is moved aside."""
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        if is_folder(workspace):
            await self._move_aside(task, self._prepared(task))
        self._report_lost_workspace(task, start)
        # An older note would make a setup that is cut short look finished.
        remove_durably(self._folders.prepared(task))
        self._ours.discard(task)
        await together(
            partial(self._store.pin, pins),
            partial(self._checkouts.make, workspace, start, index, "players"),
        )
        self._ours.add(task)

    async def _refill(self, workspace: Path, tree: str, index: Path, start: str) -> None:
        try:
            await self._checkouts.fill(workspace, tree, index)
        except GitFailed:
            # A power loss may have damaged the index; its content is known.
            index.unlink(missing_ok=True)
            await self._store.trees("read-tree", start, index=index)
            await self._checkouts.fill(workspace, tree, index)

    async def _visible(self, index: Path, start: str, onto: str | None) -> Visible:
        """What a workspace shows whose files are not just those of its start commit."""
        commits = (start,) if onto is None else (start, onto)
        with contextlib.suppress(GitFailed):  # the next snapshot says what is wrong with the index
            tree = (await self._store.trees("write-tree", index=index)).text
            known = [await self._store.tree_of(commit) for commit in commits]
            return Visible(commits, None if tree in known else tree)
        return Visible(commits)

    async def stands(self, task: str, start: str) -> bool:
        """Whether the workspace is there, with its `.git` or a file that it began with."""
        workspace = self._folders.workspace(task)
        if not is_folder(workspace):
            return False
        try:
            held = set(os.listdir(workspace))  # noqa: PTH208  only the names are needed
        except FileNotFoundError:
            return False
        except OSError:  # it is there, and the snapshot reports what is wrong
            return True
        if ".git" in held and len(held) > 1:
            return True
        began_with = (await self._store.trees("ls-tree", "-z", "--name-only", start)).fields
        return not held.isdisjoint(began_with) if began_with else ".git" in held

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit the workspace's content, or find the commit that a crash left unrecorded."""
        ref, start = self._refs.attempt(author.task, author.n, kind), parents[0]
        pinned = self._found.pop(ref, None)
        made = pinned and await self._snapshots.adopt(pinned, parents, ref)
        if self._is_prepared(author.task, author.n) and await self.stands(author.task, start):
            workspace = self._folders.workspace(author.task)
            index = self._folders.index(author.task)
            try:
                made = made or await self._snapshots.take(author, workspace, index, parents, ref)
                # The next git here may be a person's own, which would run what the agent's
                # configuration and hooks name.
                at = made.commit if isinstance(made, Snapshot) else start
                hand_over = partial(self._checkouts.write_git_dir_for_person, workspace, at, index)
                # Its checks and its Coach need checkouts of that commit.
                pack = partial(self._histories.packs, at)
                after = () if author.by_person else (hand_over,)
                await together(self._store.settle, pack, *after)
            except (GitFailed, OSError):
                if await self.stands(author.task, start):
                    raise  # else it was removed in this moment
            else:
                return made
        if not made:
            # The Player never began here, or a person removed the workspace: nothing is new.
            return Snapshot(commit=start, tree=await self._store.tree_of(start), changed=False)
        await self._store.settle()
        return made

    async def merge(
        self, author: Authorship, candidate: int, commit: str, onto: str
    ) -> Merged | Conflict:
        ref = self._refs.candidate(candidate)
        pinned = self._found.pop(ref, None)
        adopted = pinned and await self._merges.adopt(commit, onto, ref, pinned)
        merged = adopted or await self._merges.build(author, commit, onto, ref)
        await self._store.settle()
        return merged

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip, and the integration branch too unless it is checked out."""
        note = await self._moved(tip, commit)
        await self._store.settle()
        return note

    async def _moved(self, tip: str, commit: str) -> str:
        branch = self._refs.integration
        used = await self._store.in_use(branch)
        if not used and self._shown == tip:
            with contextlib.suppress(GitFailed):
                await self._store.move(self._refs.tip, branch, new=commit, old=tip)
                self._shown = commit
                return ""
        # One of them was moved by someone else, or may have been: move each by itself.
        await self._move_tip(tip, commit)
        if used:
            return f"{_short(branch)} {used} and stays where it is"
        return await self._show(tip, commit)

    async def _move_tip(self, tip: str, commit: str) -> None:
        try:
            await self._store.move(self._refs.tip, new=commit, old=tip)
        except GitFailed:
            now = (await self._store.pins(self._refs.tip)).get(self._refs.tip)
            if now == tip:
                raise  # git itself failed
            if now != commit:
                raise RepositoryError(
                    f"{self._refs.tip} stands at {now}, not at {tip} where this run left it",
                    hint=f"nothing was merged; put it back with `git update-ref {self._refs.tip} "
                    f"{tip}` and resume",
                ) from None

    def throwaway(
        self, commit: str, label: str
    ) -> contextlib.AbstractAsyncContextManager[GitThrowaway]:
        return self.throwaways.checkout(commit, label)

    async def diff(self, old: str, new: str) -> tuple[Patch, ...]:
        return await patches(self._store, old, new)

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        blob = await self._store.text(text)
        await self._store.pin({self._refs.attempt(task, n, what): blob})
        await self._store.settle()

    async def kept(self, task: str, n: int, what: str) -> str | None:
        ref = self._refs.attempt(task, n, what)
        blob = (await self._store.pins(ref)).get(ref)
        return blob and (await self._store.trees("cat-file", "blob", blob)).stdout

    async def release(self, task: str) -> None:
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        if task in self._ours:
            self._ours.discard(task)
            # The pool would bring what a process still writes there to another task.
            room = self._pool.has_room("players")
            if room and not await anyio.to_thread.run_sync(is_occupied, workspace):
                await self._checkouts.give_back(workspace, index, "players")
        await remove(workspace, index.parent)
        await self._entries.remove_entry(workspace)

    async def set_aside(self, task: str, until: int) -> None:
        noted = self._prepared(task) if until else None
        if noted is not None and noted.n <= until and is_folder(self._folders.workspace(task)):
            await self._move_aside(task, noted)

    async def changed(self, pairs: Iterable[tuple[str, str]]) -> ChangedPaths:
        found: dict[tuple[str, str], dict[str, bool]] = {}
        for pair in pairs:
            with contextlib.suppress(GitFailed):  # a lost commit is reported elsewhere
                paths = await self._store.changed_paths(*pair)
                found[pair] = {path: kind == "A" for path, kind in paths.items()}
        return found

    async def verify(self, tip: str, expected: Expected) -> tuple[str, ...]:
        return await Deliverables(self._store, self.throwaways).missing(tip, expected)

    async def look(self, branch: str, tip: str) -> Seen:
        seen = await self._branches.look(branch, tip, self._base)
        if seen.relation == "apart":  # it has commits that no start of a run has looked at
            git = UserGit(self._store.origin.root, self._environment)
            await run_uncancelled(lambda: refuse_unsupported(git, seen.commit))
        return seen

    async def squash(self, tip: str, onto: str) -> Merged | Conflict:
        made = await self._squashes.build(self._base, tip, onto)
        await self._store.settle()
        return made

    async def move_branch(self, branch: str, old: str, new: str) -> None:
        await self._branches.move(branch, old, new)
        await self._store.settle()

    async def _show(self, tip: str, commit: str) -> str:
        """Move the integration branch, unless a person has moved it; a note for people."""
        branch = self._refs.integration
        at = (await self._store.pins(branch)).get(branch, "")
        with contextlib.suppress(GitFailed):
            if at in {"", tip, commit} or await self._is_pinned(at):
                await self._store.move(branch, new=commit, old=at or "0" * len(commit))
                self._shown = commit
                gone = not at and tip != self._base
                return f"{_short(branch)} was gone; it was created again" if gone else ""
        return f"{_short(branch)} was moved by someone else and stays where it is"

    async def _is_pinned(self, commit: str) -> bool:
        """Whether a pin of any run of this plan holds the commit, so that a branch may leave it."""
        plan = self._refs.root.removesuffix(self._refs.run)
        answer = await self._store.refs("for-each-ref", "--count=1", f"--contains={commit}", plan)
        return bool(answer.text)

    def _report_lost_workspace(self, task: str, start: str) -> None:
        noted = self._prepared(task)
        if noted is not None and noted.run == self._refs.run:
            self._notice(
                f"the workspace of {task} was gone; it is made again from {start[:10]}, "
                "its last commit"
            )

    def _is_prepared(self, task: str, n: int) -> bool:
        return is_ready(self._folders, self._refs.run, task, n)

    def _prepared(self, task: str) -> Prepared | None:
        return note_of(self._folders, task)

    async def _set_aside_other_runs(self, task: str) -> None:
        """Rename another run's workspace; a person may still want it."""
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        noted = self._prepared(task)
        ours = noted is not None and noted.run == self._refs.run and index.is_file()
        if not ours and is_folder(workspace):
            await self._move_aside(task, noted)

    async def _move_aside(self, task: str, noted: Prepared | None) -> None:
        workspace, index = self._folders.workspace(task), self._folders.index(task)
        aside = self._folders.kept / f"{task}.{noted.run if noted else 'unfinished'}"
        aside.parent.mkdir(exist_ok=True)
        if noted is None:
            await remove(aside)  # no Player ever worked in either
        while aside.exists():
            aside = aside.with_name(f"{aside.name}+")
        self._ours.discard(task)
        if noted is not None and not noted.by_person and index.is_file():
            # A person must not get the `.git` that a Player could change.
            await self._checkouts.write_git_dir_for_person(workspace, noted.start, index)
        workspace.rename(aside)
        await self._entries.move(workspace, aside)
        if (made := made_by_setup(index)).is_file():
            there = made_by_setup(self._folders.index_aside(aside.name))
            there.parent.mkdir(parents=True, exist_ok=True)
            made.replace(there)
        await remove(index.parent)


def _short(branch: str) -> str:
    return branch.removeprefix(HEADS)
