"""One run's commits, pins and workspaces in memory, with points to crash at.

To the runner it behaves like real git; merges are three-way, by whole files.
"""

import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import PurePath, PurePosixPath
from typing import Literal

import anyio.lowlevel
from msgspec import Struct

from windlass.core.events.segments import Mark, refuse_other
from windlass.core.exchange import MAX_LISTED, ChangedPaths, Expected
from windlass.core.state.remains import attempt_pins
from windlass.errors import RepositoryError
from windlass.ports import Authorship, Conflict, Merged, Patch, Refused, Seen, Snapshot

Files = Mapping[str, str]
_SQUASHED = "squash of "


class Crashed(BaseException):
    """The process is dead; only the test that asked for the crash may catch this."""


class CrashPoints:
    """Counts the points at which a process can die, and dies at one of them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.reached = 0
        self.names: list[str] = []

    def reach(self, name: str) -> None:
        """Count this point, and die if it is the chosen one."""
        self.reached += 1
        self.names.append(name)
        if self.at is not None and self.reached >= self.at:  # a dead process does nothing more
            raise Crashed(name)


class Commit(Struct, frozen=True):
    """A commit of the memory repository."""

    tree: str
    parents: tuple[str, ...]
    message: str


class MemoryThrowaway(Struct, frozen=True):
    """A checkout whose changes are discarded."""

    path: PurePath
    before: Files
    now: Files

    async def touched(self) -> tuple[str, ...]:
        """The files of the commit that were changed or removed."""
        return tuple(path for path in self.before if self.now.get(path) != self.before[path])


class MemoryMirror:
    """The mirror of a journal in memory, next to the pins of a memory repository."""

    def __init__(self, records: Callable[[int], Sequence[bytes]] = lambda _after: ()) -> None:
        self.records = records
        self.stored: list[bytes] = []
        """The records that a repository would hold."""
        self._least = 0

    async def open(self, *, begun: bool) -> None:
        """Continue from the stored copy; raises JournalDamaged if the journal is behind it."""
        records = self.records(0)
        self._least = 0 if begun else len(records) + 1
        refuse_other("p", records, Mark().after(self.stored))

    async def flush(self) -> None:
        """Copy every new record."""
        self.copy()

    def copy(self) -> None:
        """Copy every new record, in one step with a pin."""
        records = self.records(0)
        if len(records) >= self._least:
            self.stored = list(records)


class MemoryRepository:
    """One run's commits, pins and workspaces; three-way merges by whole files."""

    def __init__(self, base: Files, points: CrashPoints | None = None) -> None:
        self.points = points or CrashPoints()
        self.trees: dict[str, Files] = {}
        self.commits: dict[str, Commit] = {}
        self.pins: dict[str, str] = {}
        self.mirror = MemoryMirror()
        """The journal's records up to the last pin or flush."""
        self.workspaces: dict[str, dict[str, str]] = {}
        self.prepared: dict[str, tuple[int, str, str | None]] = {}
        """The n, start and onto for which each workspace was last prepared."""
        self.handwork: dict[str, str] = {}
        """The last commit that a person made in each workspace."""
        self.kept_aside: list[tuple[str, dict[str, str]]] = []
        """Workspaces of tasks that started over."""
        self.base = self._commit(base, (), "base")
        self.tip = self.base
        self.branches = {"main": self.base}
        """The user's branches."""
        self.dirty: set[str] = set()
        """Branches whose checkout has uncommitted changes."""

    async def prepare(
        self,
        task: str,
        n: int,
        start: str,
        onto: str | None,
        *,
        turn: int | None = None,
        by_person: bool = False,
    ) -> PurePath:
        """Make the task's workspace, a dictionary with the task's name as its path."""
        self.points.reach("prepare:before")
        pins = attempt_pins(n, start, onto, turn)
        self._pin({f"task/{task}/{n}/{what}": commit for what, commit in pins.items()})
        await anyio.lowlevel.checkpoint()
        # A workspace that was never prepared to the end was left half made by a crash.
        fresh = task not in self.prepared or not await self.stands(task, start)
        if by_person and not fresh and self.prepared.get(task, (0,))[0] == n:
            return PurePosixPath(task)
        self.handwork.pop(task, None)
        if fresh:
            self.workspaces[task] = dict(self.files(start))
        # To repeat the same merge would undo what a Player resolved and could not commit.
        if onto is not None and (fresh or self.prepared.get(task, ())[1:] != (start, onto)):
            self.workspaces[task] = self._combined(start, onto)[0]
        self.points.reach("prepare:during")
        self.prepared[task] = n, start, onto
        self.points.reach("prepare:after")
        return PurePosixPath(task)

    async def stands(self, task: str, start: str) -> bool:
        """Whether there is a workspace that is not emptied."""
        return task in self.workspaces and bool(self.workspaces[task] or not self.files(start))

    async def snapshot(
        self, author: Authorship, kind: Literal["snapshot", "partial"], parents: tuple[str, ...]
    ) -> Snapshot | Refused:
        """Commit the workspace, or find the commit that was not recorded before a crash."""
        self.points.reach("snapshot:before")
        await anyio.lowlevel.checkpoint()
        pin = f"task/{author.task}/{author.n}/{kind}"
        if pin in self.pins:
            return self._snapshot(self.pins[pin], parents)
        never_began = self.prepared.get(author.task, (0,))[0] != author.n
        if never_began or not await self.stands(author.task, parents[0]):
            return self._snapshot(parents[0], parents)
        files = self.workspaces[author.task]
        if "FORBIDDEN" in files:
            return Refused(reason="FORBIDDEN must not be committed")
        commit, onto = parents[0], parents
        if author.by_person and author.task in self.handwork:
            onto = (self.handwork[author.task], *parents[1:])
        if onto != (commit,) or files != self.files(commit):
            commit = self._commit(files, onto, f"{author.task} {author.turn}")
            self._pin({pin: commit})
        self.points.reach("snapshot:after")
        return self._snapshot(commit, parents)

    async def merge(
        self, author: Authorship, candidate: int, commit: str, onto: str
    ) -> Merged | Conflict:
        """Merge by whole files; a file that both sides changed differently is a conflict."""
        self.points.reach("merge:before")
        await anyio.lowlevel.checkpoint()
        files, conflicts = self._combined(onto, commit)
        if conflicts:
            return Conflict(files=conflicts, detail=", ".join(conflicts))
        made = self._commit(files, (onto, commit), f"merge {author.task} {candidate}")
        self._pin({f"candidate/{candidate}": made})
        self.points.reach("merge:after")
        return Merged(commit=made, tree=self.commits[made].tree)

    async def move_tip(self, tip: str, commit: str) -> str:
        """Move the tip by compare-and-swap; a repeated move succeeds."""
        self.points.reach("move_tip:before")
        if self.tip != commit:
            if self.tip != tip:
                raise RepositoryError(f"the tip is at {self.tip}, not at {tip}")
            self._pin({})
            self.tip = commit
        self.points.reach("move_tip:after")
        return ""

    @asynccontextmanager
    async def throwaway(self, commit: str, label: str) -> AsyncGenerator[MemoryThrowaway]:
        """A checkout with the label as its path, until the block ends."""
        self.points.reach("throwaway:before")
        self.workspaces[label] = dict(self.files(commit))
        try:
            yield MemoryThrowaway(PurePosixPath(label), self.files(commit), self.workspaces[label])
        finally:
            self.workspaces.pop(label, None)

    async def diff(self, old: str, new: str) -> tuple[Patch, ...]:
        """A patch for each changed file, with its new content as the text."""
        before, after = self.files(old), self.files(new)
        return tuple(
            Patch(
                path=path,
                what="deleted" if path not in after else "changed" if path in before else "new",
                text=f"+++ {path}\n{after.get(path, '')}",
                gone=path not in after,
            )
            for path in self._differing(old, new)
        )

    async def keep(self, task: str, n: int, what: str, text: str) -> None:
        """Store the text under its pin."""
        self.points.reach("keep:before")
        self._pin({f"task/{task}/{n}/{what}": text})
        self.points.reach("keep:after")

    async def kept(self, task: str, n: int, what: str) -> str | None:
        """The text under its pin."""
        return self.pins.get(f"task/{task}/{n}/{what}")

    async def release(self, task: str) -> None:
        """Remove the workspace."""
        self.workspaces.pop(task, None)

    async def set_aside(self, task: str, until: int) -> None:
        """Keep the workspace under another name."""
        older = task in self.prepared and self.prepared[task][0] <= until
        if older and task in self.workspaces:
            self.points.reach("set_aside:before")
            del self.prepared[task]
            self.kept_aside.append((task, self.workspaces.pop(task)))

    async def changed(self, pairs: Iterable[tuple[str, str]]) -> ChangedPaths:
        """The paths that differ between commits, and whether each is new."""
        self.points.reach("changed:before")
        return {
            (old, new): {path: path not in self.files(old) for path in self._differing(old, new)}
            for old, new in pairs
            if {old, new} <= self.commits.keys()
        }

    async def verify(self, tip: str, expected: Expected) -> tuple[str, ...]:
        """What is missing in the tip, a line each."""
        self.points.reach("verify:before")
        await anyio.lowlevel.checkpoint()
        inside, files = set(self.ancestry(tip)), self.files(tip)
        lost = [
            f"{id_}: not merged"
            for id_, (merge, approved) in expected.merges.items()
            if not inside.issuperset({merge, approved})
            or approved not in {merge, *self.commits[merge].parents[1:]}
        ]
        gone = [f"{id_}: {path} gone" for path, id_ in expected.files.items() if path not in files]
        dirty = [
            f"{id_}: uncommitted"
            for id_, head in expected.kept.items()
            if self.workspaces.get(id_, self.files(head)) != self.files(head)
        ]
        return (*lost, *gone, *dirty)

    async def look(self, branch: str, tip: str) -> Seen:
        """The commit of a branch, and its relation to the tip."""
        self.points.reach("look:before")
        await anyio.lowlevel.checkpoint()
        commit = self.branches.get(branch)
        if commit is None:
            return Seen(commit="", relation="gone")
        if tip in self.ancestry(commit):
            return Seen(commit=commit, relation="holds")
        left = self._lacking(tip, commit)
        squashed = left != self._unmerged(tip, commit)
        if not left:
            return Seen(commit=commit, relation="holds", squashed=True)
        behind = commit in self.ancestry(tip)
        rewound = self.base not in self.ancestry(commit)
        relation = "behind" if behind else "apart"
        return Seen(commit=commit, relation=relation, rewound=rewound, squashed=squashed)

    async def squash(self, tip: str, onto: str) -> Merged | Conflict:
        """Write a commit for each merge that `onto` lacks; its message names the merge."""
        self.points.reach("squash:before")
        await anyio.lowlevel.checkpoint()
        at = onto if self.base in self.ancestry(onto) else self.base
        left = self._lacking(tip, onto)
        known = [self.base, *(merge for merge in self._chain(tip) if merge not in left)][-1]
        for merge in left:
            files, conflicts = self._combined(onto, merge, known)
            if conflicts:
                return Conflict(files=conflicts, detail=", ".join(conflicts))
            at = self._commit(files, (at,), f"{_SQUASHED}{merge}")
        self._pin({f"squash/{onto}-{tip}": at})
        self.points.reach("squash:after")
        return Merged(commit=at, tree=self.commits[at].tree)

    def _chain(self, tip: str) -> list[str]:
        """The merges from the base to the tip, the oldest first."""
        chain: list[str] = []
        while tip != self.base:
            chain.insert(0, tip)
            tip = self.commits[tip].parents[0]
        return chain

    def _unmerged(self, tip: str, commit: str) -> list[str]:
        """The merges that are no ancestors of the commit."""
        held = set(self.ancestry(commit))
        return [merge for merge in self._chain(tip) if merge not in held]

    def _lacking(self, tip: str, commit: str) -> list[str]:
        """The merges that the commit has neither as they are nor squashed."""
        messages = {self.commits[each].message for each in self.ancestry(commit)}
        unmerged = self._unmerged(tip, commit)
        return [merge for merge in unmerged if f"{_SQUASHED}{merge}" not in messages]

    async def move_branch(self, branch: str, old: str, new: str) -> None:
        """Move a branch forward by compare-and-swap; a dirty one stays."""
        self.points.reach("move_branch:before")
        now = self.branches.get(branch)
        if now != new:
            if now != old or branch in self.dirty:
                raise RepositoryError(f"{branch} is at {now}, or is dirty")
            self.branches[branch] = new
        self.points.reach("move_branch:after")

    def commit_in(self, task: str, message: str) -> str:
        """Commit the workspace as a person would."""
        onto = self.handwork.get(task) or self.prepared[task][1]
        self.handwork[task] = self._commit(self.workspaces[task], (onto,), message)
        return self.handwork[task]

    def files(self, commit: str) -> Files:
        """The files of a commit."""
        return self.trees[self.commits[commit].tree]

    def _pin(self, new: Files) -> None:
        """Write pins, in one step with the mirror of every fact before them."""
        self.mirror.copy()
        self.pins |= new

    def _snapshot(self, commit: str, parents: tuple[str, ...]) -> Snapshot:
        old, changed = self.files(parents[0]), self._differing(parents[0], commit)
        files = changed[:MAX_LISTED]
        return Snapshot(
            commit=commit,
            tree=self.commits[commit].tree,
            changed=bool(changed),
            files=files,
            created=tuple(path for path in files if path not in old),
            deleted=tuple(path for path in files if path not in self.files(commit)),
        )

    def _differing(self, old: str, new: str) -> tuple[str, ...]:
        before, after = self.files(old), self.files(new)
        paths = (path for path in {**before, **after} if before.get(path) != after.get(path))
        return tuple(sorted(paths))

    def _commit(self, files: Files, parents: tuple[str, ...], message: str) -> str:
        tree = _digest(sorted(files.items()))
        self.trees[tree] = dict(files)
        made = Commit(tree, parents, message)
        name = _digest((made.tree, made.parents, made.message))
        self.commits[name] = made
        return name

    def _combined(
        self, ours: str, theirs: str, common: str | None = None
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        ancestor = self.files(common or self._common_ancestor(ours, theirs))
        left, right = self.files(ours), self.files(theirs)
        files: dict[str, str] = {}
        conflicts: list[str] = []
        for path in sorted({*ancestor, *left, *right}):
            a, b, c = ancestor.get(path), left.get(path), right.get(path)
            merged = c if a == b else b
            if a not in {b, c} and b != c:
                conflicts.append(path)
                merged = f"<<<<<<<\n{b}\n=======\n{c}\n>>>>>>>"
            if merged is not None:
                files[path] = merged
        return files, tuple(conflicts)

    def _common_ancestor(self, ours: str, theirs: str) -> str:
        reachable = set(self.ancestry(ours))
        return next(commit for commit in self.ancestry(theirs) if commit in reachable)

    def ancestry(self, commit: str) -> list[str]:
        """The commit and its ancestors, nearest first."""
        order = [commit]
        for name in order:
            order.extend(parent for parent in self.commits[name].parents if parent not in order)
        return order


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:40]
