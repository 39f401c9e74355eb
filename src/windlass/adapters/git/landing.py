"""Landing: the user's own branch moves forward to the tip, and its checkout follows.

Law: this is the one place that writes to the user's branch and files, and only when the user asked
for it. Where the branch is checked out, git writes the files as `git merge --ff-only` would: a
dirty file in the way stops it before anything is changed. A file that differs only by the state
that Windlass wrote into it is restored first. A landing that was cut short, at any point, is undone
or completed by the next one (`landing_record.py`).

A landing may write only files that are clean. A file that is changed, staged, hidden from git or
untracked is the user's and never listed; git refuses to write it, or leaves it alone.
"""

import contextlib
import os
import signal
import stat
from collections.abc import (
    AsyncGenerator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import anyio.to_thread
from msgspec.structs import replace

from windlass.adapters.clock import SystemClock
from windlass.adapters.files import is_folder, sync_all
from windlass.adapters.git.git import SUBMODULE, Output, run_user_git
from windlass.adapters.git.landing_record import Intent, LandingFolder, LandingTarget, Rollback
from windlass.adapters.git.layout import HEADS, MOST_LINKS, in_progress, worktrees
from windlass.adapters.git.squash import landed_in
from windlass.adapters.git.store import Origin, Store, printable
from windlass.adapters.locks import exclusively
from windlass.errors import Busy, GitFailed, RepositoryError
from windlass.ports import Seen

_TRACKED = "H"
"""How `git ls-files -v` marks a file that git compares with the checkout."""


class WritableFiles:
    """The files that a landing may write, as they are now, and the folders that it makes."""

    def __init__(self, root: Path, paths: Iterable[str] = (), made: Iterable[str] = ()) -> None:
        self._root = root
        self.paths = tuple(paths)
        self.made = tuple(made)
        self._before = {path: _stamp(root / path) for path in self.paths}

    def is_changed(self) -> bool:
        return any(_stamp(self._root / path) != was for path, was in self._before.items())

    def with_paths(self, paths: Sequence[str]) -> "WritableFiles":
        more = WritableFiles(self._root, dict.fromkeys((*self.paths, *paths)), self.made)
        more._before |= self._before
        return more


def _changes(fields: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Each path of a raw diff, and whether it was added."""
    for entry, path in zip(fields[::2], fields[1::2], strict=True):
        before, after, *_, kind = entry.removeprefix(":").split()
        if SUBMODULE not in {before, after}:
            yield path, kind == "A"


def _missing(root: Path, paths: Iterable[str]) -> set[str]:
    """The folders above these files that do not exist."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return {folder for folder in folders - {"."} if not is_folder(root / folder)}


def _is_taken(path: Path) -> bool:
    """Whether something is there; git replaces a folder by a file if nothing else is in it."""
    return os.path.lexists(path) and not is_folder(path)


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (stat.S_IFMT(found.st_mode), found.st_ino, found.st_size, found.st_mtime_ns)


_TRIES = 3
_IN_THE_WAY = ("would be overwritten", "would be removed", "would lose untracked", "not uptodate")
"""What git says about files that it would overwrite."""
_OWN = ("-c", "core.splitIndex=false")
"""The shared part of a split index would be left in the landing's git directory."""
_LOCK = "landing"
"""The file below `.windlass` that the one landing of a repository locks, and its git."""


OwnChanges: TypeAlias = Callable[[Path, str], Coroutine[Any, Any, Sequence[str]]]
"""The files of a checkout that differ from its commit by what Windlass wrote into them alone."""


async def no_own_changes(_checkout: Path, _commit: str) -> Sequence[str]:
    return ()


def unfinished_landings(origin: Origin) -> list[tuple[LandingFolder, Path]]:
    """The landings that are running or have died, each with its checkout."""
    homes = (
        (LandingFolder(own, origin.git_dir), place)
        for own, place in worktrees(origin.git_dir, origin.root)
    )
    return [(home, place) for home, place in homes if home.is_there()]


class Branches:
    """Finds the user's branches, and moves them forward."""

    def __init__(
        self, store: Store, environment: Mapping[str, str], ours: OwnChanges = no_own_changes
    ) -> None:
        self._store = store
        self._environment = environment
        """The user's own, because their configuration applies in their checkout."""
        self._ours = ours

    async def look(self, branch: str, tip: str, base: str) -> Seen:
        """Where the branch stands, how the tip relates to it, and whether it has the base."""
        await self.settle()
        _, commit = await self._found(branch)
        if not commit:
            return Seen(commit="", relation="gone")
        if await self._store.is_ancestor(tip, commit):
            return Seen(commit=commit, relation="holds")
        part = await landed_in(self._store, base, tip, commit)
        if part.is_all:
            return Seen(commit=commit, relation="holds", squashed=True)
        behind = await self._store.is_ancestor(commit, tip)
        rewound = commit != base and not await self._store.is_ancestor(base, commit)
        return Seen(
            commit=commit,
            relation="behind" if behind else "apart",
            rewound=rewound,
            squashed=part.has_squashed,
        )

    async def move(self, branch: str, old: str, new: str) -> None:
        """Move the branch from one commit to the next, or raise with nothing changed."""
        await self.settle()
        ref, now = await self._found(branch)
        if now == new:
            return
        if now != old:
            raise _stands_elsewhere(branch, now, old)
        origin = self._store.origin
        if busy := in_progress(origin.git_dir, origin.root, ref):
            raise RepositoryError(
                f"{branch} {busy}", hint="let git finish that, then `windlass land`"
            )
        checkouts = await self._checkouts(ref)
        if len(checkouts) > 1:
            places = " and ".join(str(path) for path in checkouts)
            raise RepositoryError(
                f"{branch} is checked out in {places}, and only one of them could follow",
                hint="leave it checked out in one, then `windlass land`",
            )
        if origin.has_reftable:
            await self._moved_by_git(ref, old, new, checkouts)
        elif checkouts:
            await self._fast_forward(checkouts[0], ref, old, new)
        else:
            await self._update(ref, old, new)
        _, moved = await self._found(branch)
        if moved != new:  # another git moved it in the same moment
            raise _stands_elsewhere(branch, moved, new)

    async def _found(self, branch: str) -> tuple[str, str]:
        """The ref that the name stands for, symbolic refs followed, and its commit or ""."""
        ref = f"{HEADS}{branch}"
        for _ in range(MOST_LINKS):
            listed = await self._store.refs(
                "for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", ref
            )
            # Refs below a folder of that name are listed as well.
            lines = (line.split("\0") for line in listed.stdout.split("\n"))
            found = next((line for line in lines if line[0] == ref), None)
            if found is None:
                return ref, ""
            if not found[2]:
                return ref, found[1]
            ref = found[2]
        return ref, ""

    async def _checkouts(self, ref: str) -> list[Path]:
        """The user's checkouts of the branch that exist."""
        listed = await self._store.refs("worktree", "list", "--porcelain", "-z")
        places: list[Path] = []
        for i, entry in enumerate(listed.stdout.split("\0\0")):
            lines = entry.split("\0")
            # For the first, git lists its git directory.
            first = lines[0].removeprefix("worktree ")
            place = self._store.origin.root if i == 0 else Path(first)
            if f"branch {ref}" not in lines:
                continue
            if place.is_dir():
                places.append(place)
            elif any(line.startswith("locked") for line in lines):
                raise RepositoryError(
                    f"{place}, where {ref.removeprefix(HEADS)} is checked out, cannot be reached",
                    hint="bring it back, or `git worktree unlock` it; then `windlass land`",
                )
        return places

    async def settle(self) -> None:
        """Undo or complete every landing that was cut short, of any plan."""
        if found := unfinished_landings(self._store.origin):
            async with self._alone() as held:
                for home, place in found:
                    await self._settle_one(self._target(home, place, held))

    def _target(self, home: LandingFolder, place: Path, held: int) -> LandingTarget:
        return LandingTarget(self._store, self._environment, home, place, held)

    async def _settle_one(self, target: LandingTarget) -> None:
        home = target.home
        if not home.is_there():
            return
        intent = home.read()
        if intent is not None and intent.files and target.place.is_dir():
            now = await self._stands(intent.ref)
            if intent.written and home.holds_index() and now in {intent.old, intent.new}:
                await self._finish(home, intent)
                return
            # A swapped index belongs to the files; where the lock on it is gone, a person has
            # continued from there.
            if not (intent.written and home.is_swapped()):
                await Rollback(target).run(intent)
        if intent is not None:
            home.unlock_ref(intent)
            if not intent.files and await self._stands(intent.ref) == intent.new:
                home.log(intent)
        home.leave()

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[int]:
        """Be the only landing; raises Busy while another one or its git is running."""
        busy = Busy(
            "another landing is running in this repository, or its git still is",
            hint="wait until it ends, then `windlass land`",
        )
        one = exclusively(self._store.folders.root / _LOCK, busy)
        held = await anyio.to_thread.run_sync(one.__enter__)
        try:
            yield held
        finally:
            one.__exit__(None, None, None)

    async def _stands(self, ref: str) -> str:
        return (await self._store.pins(ref)).get(ref, "")

    async def _update(self, ref: str, old: str, new: str) -> None:
        """Move a ref that is checked out nowhere, if it is where it was."""
        origin = self._store.origin
        home = LandingFolder(origin.git_dir, origin.git_dir)
        async with self._alone() as held:
            await self._settle_one(self._target(home, origin.root, held))
            intent = self._intent(ref, old, new, files=False)
            home.begin(intent)
            await self._finish(home, intent)

    async def _finish(self, home: LandingFolder, intent: Intent) -> None:
        """Bring index, branch and reflogs to the new commit; repeatable from any point."""
        if intent.files:
            home.swap_index()
        await anyio.to_thread.run_sync(home.lock_ref, intent)
        # Under its lock no other process moves it.
        if (now := await self._stands(intent.ref)) == intent.old:
            home.move_ref(intent)
        home.unlock_ref(intent)
        if now in {intent.old, intent.new}:
            home.log(intent)
        home.leave()

    def _intent(self, ref: str, old: str, new: str, *, files: bool) -> Intent:
        who = self._store.origin.identity
        now = SystemClock().now().astimezone()
        name, email = who["GIT_COMMITTER_NAME"], who["GIT_COMMITTER_EMAIL"]
        line = f"{old} {new} {name} <{email}> {now.timestamp():.0f} {now:%z}\twindlass land"
        return Intent(ref=ref, old=old, new=new, line=line, files=files, logged=True)

    async def _fast_forward(self, checkout: Path, ref: str, old: str, new: str) -> None:
        """Let git write the files from the landing's own git directory; then index and branch."""
        asked = ("rev-parse", "--absolute-git-dir")
        own = Path((await run_user_git(*asked, cwd=checkout, environment=self._environment)).text)
        home = LandingFolder(own, self._store.origin.git_dir)
        async with self._alone() as held:
            target = self._target(home, checkout, held)
            await self._settle_one(target)
            move = Move(target)
            try:
                await move.prepare(self._intent(ref, old, new, files=True))
                failure = await move.refused()
                # More than once: Windlass may have written its state again meanwhile.
                for _ in range(_TRIES):
                    if failure is None or not (paths := await self._ours(checkout, old)):
                        break
                    await move.remove_own_text(paths)
                    failure = await move.refused()
                if failure is not None:
                    raise _not_moved(checkout, failure)
                intent = await move.written()
            except (OSError, GitFailed, RepositoryError):
                # What cannot be undone now is undone by the next landing.
                with contextlib.suppress(OSError, GitFailed):
                    await move.undo()
                raise
            await self._finish(home, intent)

    async def _moved_by_git(self, ref: str, old: str, new: str, checkouts: list[Path]) -> None:
        """Move the branch by the user's own git, with its own locks."""
        try:
            if not checkouts:
                asked = ("update-ref", "-m", "windlass land", "--create-reflog", ref, new, old)
                root = self._store.origin.root
                await run_user_git(*asked, cwd=root, environment=self._environment)
            else:
                reflog = {"GIT_REFLOG_ACTION": "windlass land"}
                within = {**self._environment, **reflog}
                await run_user_git(*_forward(new), cwd=checkouts[0], environment=within)
        except GitFailed as failure:
            raise _not_moved(checkouts[0] if checkouts else None, failure) from failure


class Move:
    """One landing in a checkout, until all of its files are in place."""

    def __init__(self, target: LandingTarget) -> None:
        self._target = target
        self._home = target.home
        self._place = target.place
        self._within = {
            "GIT_DIR": str(self._home.at),
            "GIT_COMMON_DIR": str(self._home.common),
            "GIT_WORK_TREE": str(self._place),
        }
        self._intent: Intent | None = None
        self._writable = WritableFiles(self._place)

    async def prepare(self, intent: Intent) -> None:
        """Lock the index, and record what may be written."""
        await anyio.to_thread.run_sync(self._home.lock_index)
        self._home.make_git_dir(intent.old)
        self._within |= await self._configured()
        writable = await self._find_writable(intent.old, intent.new)
        logged = await self._git("config", "core.logAllRefUpdates", ok=(0, 1))
        intent = replace(intent, logged=logged.text.lower() not in {"false", "no", "off", "0"})
        self._home.begin(intent, writable.paths, writable.made)
        self._intent, self._writable = intent, writable

    async def _find_writable(self, old: str, new: str) -> WritableFiles:
        """The files that differ between two commits and are clean."""
        await self._git("update-index", "-q", "--refresh", ok=(0, 1))
        dirty = await self._git("diff-files", "--name-only", "-z")
        staged = await self._git("diff-index", "--cached", "--name-only", "-z", old)
        listed = await self._git("ls-files", "-v", "-z")
        marked = (line.split(" ", 1) for line in listed.fields)
        hidden = (path for mark, path in marked if mark != _TRACKED)
        theirs = {*dirty.fields, *staged.fields, *hidden}
        raw = ("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
        changes = dict(_changes((await self._target.store.trees(*raw)).fields))
        paths = [
            path
            for path, added in changes.items()
            if path not in theirs and not (added and _is_taken(self._place / path))
        ]
        added = [path for path in paths if changes[path]]
        return WritableFiles(self._place, paths, sorted(_missing(self._place, added)))

    async def refused(self) -> GitFailed | None:
        """Let git write the files; why it refused, or None."""
        try:
            await self._git(*_forward(self._started.new))
        except GitFailed as failure:
            return failure
        return None

    async def remove_own_text(self, paths: Sequence[str]) -> None:
        """Restore files that differ only by what Windlass wrote into them.

        Not in the index: what the user staged stops the landing.
        """
        self._writable = self._writable.with_paths(paths)
        self._home.begin(self._started, self._writable.paths, self._writable.made)
        asked = ("restore", "--quiet", "--worktree", "--source=HEAD", "--")
        await self._git(*asked, *paths, within={"GIT_LITERAL_PATHSPECS": "1"})

    async def written(self) -> Intent:
        """Sync what git wrote, and record that all files are written."""
        await anyio.to_thread.run_sync(sync_all, self._place, self._home.own)
        intent = replace(self._started, written=True)
        self._home.begin(intent, self._writable.paths, self._writable.made)
        return intent

    async def undo(self) -> None:
        """Leave the checkout as it was found."""
        if not self._home.is_there():
            return
        if self._intent is not None and self._writable.is_changed():
            await Rollback(self._target).run(self._intent)
        self._home.leave()

    @property
    def _started(self) -> Intent:
        if self._intent is None:
            raise AssertionError("the landing was not prepared")
        return self._intent

    async def _configured(self) -> dict[str, str]:
        """The user's configuration, where git would not find all of it from the new git directory.

        A part may be included for the branch, or for exactly the checkout's git directory.
        """
        asked = ("config", "--list", "--null")
        here = await self._target.git(*_OWN, *asked, within={})
        if here.stdout == (await self._git(*asked)).stdout:
            return {}
        variables = {"GIT_CONFIG_COUNT": str(len(here.fields))}
        for i, field in enumerate(here.fields):
            name, given, value = field.partition("\n")
            variables[f"GIT_CONFIG_KEY_{i}"] = name
            variables[f"GIT_CONFIG_VALUE_{i}"] = value if given else "true"
        return variables

    async def _git(
        self, *args: str, ok: Sequence[int] = (0,), within: Mapping[str, str] | None = None
    ) -> Output:
        """Run the user's own git in their checkout, with the landing's git directory."""
        within = {**self._within, **(within or {})}
        return await self._target.git(*_OWN, *args, within=within, ok=ok)


def _forward(commit: str) -> tuple[str, ...]:
    return (
        *("merge", "--ff-only", "--quiet"),
        # Against the user's configuration: the branch moves forward, or stays.
        *("--no-squash", "--no-autostash", "--no-stat"),
        "--no-overwrite-ignore",  # an ignored file is the user's, too
        commit,
    )


def _not_moved(checkout: Path | None, failure: GitFailed) -> RepositoryError:
    in_the_way = any(text in failure.stderr for text in _IN_THE_WAY)
    where = f" in {checkout}" if checkout is not None else ""
    cure = "commit, stash or move what is in the way" if in_the_way else "settle that"
    return RepositoryError(
        f"git did not move it{where}: {_git_message(failure)}",
        hint=f"{cure}, then `windlass land`",
    )


def _git_message(failure: GitFailed) -> str:
    """Git's message without its advice, or how it ended without one."""
    lines = [line for line in failure.stderr.splitlines() if line.strip()]
    kept = [line.strip() for line in lines if not line.startswith(("hint:", "Aborting", "Please"))]
    if kept:
        return printable(" ".join(kept).removeprefix("error: ").removeprefix("fatal: "))
    if failure.code < 0:
        with contextlib.suppress(ValueError):
            return f"it was killed by {signal.Signals(-failure.code).name}"
    return f"it failed with {failure.code} and no message"


def _stands_elsewhere(branch: str, now: str, expected: str) -> RepositoryError:
    return RepositoryError(
        f"{branch} now stands at {now[:10] or 'nothing'}, not at {expected[:10]}",
        hint="run `windlass land` again",
    )
