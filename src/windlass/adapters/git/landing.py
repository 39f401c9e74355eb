"""Landing: the user's own branch moves forward to the tip, and its checkout follows.

Law: this is the one place that writes to the user's branch and files, and only at their word. Where
the branch is checked out, git writes the files as `git merge --ff-only` would: a dirty file in the
way stops it before anything is changed. A file that is dirty only by the state that Windlass wrote
into it makes way. A landing that was cut short, at any point, is undone or completed by the next
one (`landing_record.py`).

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
from typing import Any, Protocol, TypeAlias

import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.clock import SystemClock
from windlass.adapters.files import is_folder, sync_all
from windlass.adapters.git.git import SUBMODULE, Output, run_user_git
from windlass.adapters.git.landing_record import Intent, LandingFolder, Rollback
from windlass.adapters.git.layout import in_progress, worktrees
from windlass.adapters.git.store import Origin, Store, printable
from windlass.adapters.locks import exclusively
from windlass.errors import Busy, GitFailed, RepositoryError
from windlass.ports import Seen

_FIELDS = 2
_PLAIN = "H"
"""How git marks a file of the index that it looks at and that is checked out."""


class AskGit(Protocol):
    """The user's own git in the checkout, with an index of its own."""

    async def __call__(self, *args: str, ok: Sequence[int] = (0,)) -> Output:
        """Run it, and return its answer."""
        ...


class WritableFiles:
    """The files that a landing may write, and the folders that it makes for them."""

    def __init__(self, root: Path, paths: Iterable[str], made: Iterable[str]) -> None:
        """Remember how each of them is now."""
        self._root = root
        self.paths = tuple(paths)
        self.made = tuple(made)
        self._before = {path: _stamp(root / path) for path in self.paths}

    def is_changed(self) -> bool:
        """Whether any of them is not as it was."""
        return any(_stamp(self._root / path) != was for path, was in self._before.items())

    def with_paths(self, paths: Sequence[str]) -> "WritableFiles":
        """The same, with more files."""
        more = WritableFiles(self._root, dict.fromkeys((*self.paths, *paths)), self.made)
        more._before |= self._before
        return more


class _Change(Struct, frozen=True):
    path: str
    added: bool


async def writable_files(
    store: Store, git: AskGit, root: Path, old: str, new: str
) -> WritableFiles:
    """The files that differ between two commits and are clean."""
    await git("update-index", "-q", "--refresh", ok=(0, 1))
    dirty = set((await git("diff-files", "--name-only", "-z")).fields)
    staged = set((await git("diff-index", "--cached", "--name-only", "-z", old)).fields)
    marked = (line.split(" ", 1) for line in (await git("ls-files", "-v", "-z")).fields)
    hidden = {path for tag, path in marked if tag != _PLAIN}
    theirs = dirty | staged | hidden
    told = await store.trees("diff-tree", "-r", "-z", "--raw", "--no-renames", old, new)
    changes = list(_changes(told.fields))
    paths = [
        change.path
        for change in changes
        if change.path not in theirs and not (change.added and _is_taken(root / change.path))
    ]
    added = {change.path for change in changes if change.added}
    return WritableFiles(root, paths, sorted(_missing(root, added & set(paths))))


def _changes(fields: Sequence[str]) -> Iterator[_Change]:
    for told, path in zip(fields[::_FIELDS], fields[1::_FIELDS], strict=True):
        before, after, *_, kind = told.removeprefix(":").split()
        if SUBMODULE not in {before, after}:
            yield _Change(path, added=kind == "A")


def _missing(root: Path, paths: Iterable[str]) -> set[str]:
    """The folders above these files that are not there."""
    folders = {str(folder) for path in paths for folder in PurePosixPath(path).parents}
    return {folder for folder in folders - {"."} if not is_folder(root / folder)}


def _is_taken(path: Path) -> bool:
    """Whether something is there; a folder makes way for a file if git finds nothing else in it."""
    return os.path.lexists(path) and not is_folder(path)


def _stamp(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (stat.S_IFMT(found.st_mode), found.st_ino, found.st_size, found.st_mtime_ns)


_HEADS = "refs/heads/"
_TRIES = 3
_IN_THE_WAY = ("would be overwritten", "would be removed", "would lose untracked", "not uptodate")
"""What git says of files that it would spoil."""
_DEEPEST = 5
"""How many symbolic refs in a row are followed; git's own bound."""
_OWN = ("-c", "core.splitIndex=false")
"""The shared part of a split index would be left in the landing's git directory."""
_LOCK = "landing"
"""Below `.windlass`: held by the one landing of a repository, and by its git."""


OwnChanges: TypeAlias = Callable[[Path, str], Coroutine[Any, Any, Sequence[str]]]
"""The files of a checkout that differ from its commit by what Windlass wrote into them alone."""


async def no_own_changes(_checkout: Path, _commit: str) -> Sequence[str]:
    """Of who writes into no file."""
    return ()


def unfinished_landings(origin: Origin) -> list[tuple[LandingFolder, Path]]:
    """The landings that go on or have died, each with the checkout that it is about."""
    homes = (
        (LandingFolder(own, origin.git_dir), place)
        for own, place in worktrees(origin.git_dir, origin.root)
    )
    return [(home, place) for home, place in homes if home.is_there()]


class Branches:
    """Looks at branches of the user's, and moves them forward."""

    def __init__(
        self,
        store: Store,
        environment: Mapping[str, str],
        ours: OwnChanges = no_own_changes,
    ) -> None:
        self._store = store
        self._environment = environment
        """The user's own, for their configuration holds in their checkout."""
        self._ours = ours

    async def look(self, branch: str, tip: str, base: str) -> Seen:
        """Where it stands, how the tip stands to it, and whether it still holds the base."""
        await self.settle()
        _, commit = await self._found(branch)
        if not commit:
            return Seen(commit="", relation="gone")
        if await self._store.is_ancestor(tip, commit):
            return Seen(commit=commit, relation="holds")
        behind = await self._store.is_ancestor(commit, tip)
        rewound = commit != base and not await self._store.is_ancestor(base, commit)
        return Seen(commit=commit, relation="behind" if behind else "apart", rewound=rewound)

    async def move(self, branch: str, old: str, new: str) -> None:
        """Move it from one commit to the next, or raise with nothing changed."""
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
        if moved != new:  # somebody switched or moved it in the very moment
            raise _stands_elsewhere(branch, moved, new)

    async def _found(self, branch: str) -> tuple[str, str]:
        """The ref that the name stands for in the end, and its commit; empty where it is gone."""
        ref = f"{_HEADS}{branch}"
        for _ in range(_DEEPEST):
            listed = await self._store.refs(
                "for-each-ref", "--format=%(refname)%00%(objectname)%00%(symref)", ref
            )
            # What lies below a folder of that name is listed as well.
            lines = (line.split("\0") for line in listed.stdout.split("\n"))
            found = next((line for line in lines if line[0] == ref), None)
            if found is None:
                return ref, ""
            if not found[2]:
                return ref, found[1]
            ref = found[2]
        return ref, ""

    async def _checkouts(self, ref: str) -> list[Path]:
        """The user's checkouts of the branch that are there."""
        listed = await self._store.refs("worktree", "list", "--porcelain", "-z")
        places: list[Path] = []
        for i, entry in enumerate(listed.stdout.split("\0\0")):
            lines = entry.split("\0")
            # Of the first, git knows only where its own folder is.
            first = lines[0].removeprefix("worktree ")
            place = self._store.origin.root if i == 0 else Path(first)
            if f"branch {ref}" not in lines:
                continue
            if place.is_dir():
                places.append(place)
            elif any(line.startswith("locked") for line in lines):
                raise RepositoryError(
                    f"{place}, where {ref.removeprefix(_HEADS)} is checked out, cannot be reached",
                    hint="bring it back, or `git worktree unlock` it; then `windlass land`",
                )
        return places

    async def settle(self) -> None:
        """Take back or complete what landings have left that were cut short, of any plan."""
        if not (found := unfinished_landings(self._store.origin)):
            return
        async with self._alone() as held:
            for home, place in found:
                await self._settled(home, place, held)

    async def _settled(self, home: LandingFolder, place: Path, held: int) -> None:
        intent = home.read()
        if intent is not None and intent.files and place.is_dir():
            now = await self._stands(intent.ref)
            if intent.written and home.holds_index() and now in {intent.old, intent.new}:
                await self._finish(home, intent)
                return
            # An index that was swapped belongs to the files; where the lock on it is gone, a
            # person has gone on from there.
            if not (intent.written and home.is_swapped()):
                await Rollback(self._store, self._environment, home, place, (held,)).run(intent)
        if intent is not None:
            home.unlock_ref(intent)
            if not intent.files and await self._stands(intent.ref) == intent.new:
                home.log(intent)
        home.leave()

    @asynccontextmanager
    async def _alone(self) -> AsyncGenerator[int]:
        """Be the only landing, with all that died ended."""
        busy = Busy(
            "another landing goes on in this repository, or its git does",
            hint="wait for its end, then `windlass land`",
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
        """Nobody has it checked out: the ref alone moves, if it is where it was."""
        common = self._store.origin.git_dir
        home = LandingFolder(common, common)
        async with self._alone() as held:
            if home.is_there():
                await self._settled(home, self._store.origin.root, held)
            intent = self._intent(ref, old, new, files=False, logged=True)
            home.begin(intent)
            await self._finish(home, intent)

    async def _finish(self, home: LandingFolder, intent: Intent) -> None:
        """Bring index, branch and reflogs to the new commit; may be done again from any point."""
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

    def _intent(self, ref: str, old: str, new: str, *, files: bool, logged: bool) -> Intent:
        who = self._store.origin.identity
        now = SystemClock().now().astimezone()
        name, email = who["GIT_COMMITTER_NAME"], who["GIT_COMMITTER_EMAIL"]
        line = f"{old} {new} {name} <{email}> {now.timestamp():.0f} {now:%z}\twindlass land"
        return Intent(ref=ref, old=old, new=new, line=line, files=files, logged=logged)

    async def _fast_forward(self, checkout: Path, ref: str, old: str, new: str) -> None:
        """Let git write the files from a git directory of the landing's own; then all follows."""
        asked = ("rev-parse", "--absolute-git-dir")
        own = Path((await run_user_git(*asked, cwd=checkout, environment=self._environment)).text)
        home = LandingFolder(own, self._store.origin.git_dir)
        async with self._alone() as held:
            if home.is_there():
                await self._settled(home, checkout, held)
            move = Move(self._store, self._environment, home, checkout, held)
            try:
                await move.prepare(self._intent(ref, old, new, files=True, logged=True))
                failure = await move.refused()
                # More than once: what was taken out of a file may have been written again.
                for _ in range(_TRIES):
                    if failure is None or not (paths := await self._ours(checkout, old)):
                        break
                    await move.remove_own_text(paths)
                    failure = await move.refused()
                if failure is not None:
                    raise _not_moved(checkout, failure)
                intent = await move.written()
            except (OSError, GitFailed, RepositoryError):
                # What cannot be taken back now is taken back by the next landing.
                with contextlib.suppress(OSError, GitFailed):
                    await move.undo()
                raise
            await self._finish(home, intent)

    async def _moved_by_git(self, ref: str, old: str, new: str, checkouts: list[Path]) -> None:
        """As the user's own git would, with its own locks."""
        said = ("-m", "windlass land", "--create-reflog")
        try:
            if not checkouts:
                asked = ("update-ref", *said, ref, new, old)
                root = self._store.origin.root
                await run_user_git(*asked, cwd=root, environment=self._environment)
            else:
                reflog = {"GIT_REFLOG_ACTION": "windlass land"}
                within = {**self._environment, **reflog}
                await run_user_git(*_forward(new), cwd=checkouts[0], environment=within)
        except GitFailed as failure:
            raise _not_moved(checkouts[0] if checkouts else None, failure) from failure


class Move:
    """One landing in a checkout, up to the moment when all of its files are in their place."""

    def __init__(
        self,
        store: Store,
        environment: Mapping[str, str],
        home: LandingFolder,
        place: Path,
        held: int,
    ) -> None:
        self._store = store
        self._environment = environment
        self._home = home
        self._place = place
        self._held = held
        self._within = {
            "GIT_DIR": str(home.at),
            "GIT_COMMON_DIR": str(home.common),
            "GIT_WORK_TREE": str(place),
        }
        self._intent: Intent | None = None
        self._writable = WritableFiles(place, (), ())

    async def prepare(self, intent: Intent) -> None:
        """Lock the index, and put on record what may be written."""
        await anyio.to_thread.run_sync(self._home.lock_index)
        self._home.make_git_dir(intent.old)
        self._within |= await self._configured()
        writable = await writable_files(self._store, self._git, self._place, intent.old, intent.new)
        logged = await self._git("config", "core.logAllRefUpdates", ok=(0, 1))
        intent = replace(intent, logged=logged.text.lower() not in {"false", "no", "off", "0"})
        self._home.begin(intent, writable.paths, writable.made)
        self._intent, self._writable = intent, writable

    async def refused(self) -> GitFailed | None:
        """What git says against it; None when the files are written."""
        try:
            await self._git(*_forward(self._started.new))
        except GitFailed as failure:
            return failure
        return None

    async def remove_own_text(self, paths: Sequence[str]) -> None:
        """Take Windlass's own words out of files.

        Not in the index: what the user has put there is theirs, and stops the landing.
        """
        self._writable = self._writable.with_paths(paths)
        self._home.begin(self._started, self._writable.paths, self._writable.made)
        asked = ("restore", "--quiet", "--worktree", "--source=HEAD", "--")
        await self._git(*asked, *paths, within={"GIT_LITERAL_PATHSPECS": "1"})

    async def written(self) -> Intent:
        """Make what git wrote outlast a power loss, and put on record that all of it is there."""
        await anyio.to_thread.run_sync(sync_all, self._place, self._home.own)
        intent = replace(self._started, written=True)
        self._home.begin(intent, self._writable.paths, self._writable.made)
        return intent

    async def undo(self) -> None:
        """Leave the checkout as it was found."""
        if not self._home.is_there():
            return
        if self._intent is not None and self._writable.is_changed():
            back = Rollback(self._store, self._environment, self._home, self._place, (self._held,))
            await back.run(self._intent)
        self._home.leave()

    @property
    def _started(self) -> Intent:
        if self._intent is None:
            raise AssertionError("a landing begins with its intent")
        return self._intent

    async def _configured(self) -> dict[str, str]:
        """The user's configuration where this git directory alone would not lead to all of it.

        A part of it may be included for the branch, or for exactly the checkout's git directory.
        """
        asked = ("config", "--list", "--null")
        here = await run_user_git(*_OWN, *asked, cwd=self._place, environment=self._environment)
        if here.stdout == (await self._git(*asked)).stdout:
            return {}
        told: dict[str, str] = {"GIT_CONFIG_COUNT": str(len(here.fields))}
        for i, field in enumerate(here.fields):
            name, given, value = field.partition("\n")
            told[f"GIT_CONFIG_KEY_{i}"] = name
            told[f"GIT_CONFIG_VALUE_{i}"] = value if given else "true"
        return told

    async def _git(
        self,
        *args: str,
        ok: Sequence[int] = (0,),
        within: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> Output:
        """The user's own git in their checkout, with the landing's git directory."""
        return await run_user_git(
            *_OWN,
            *args,
            cwd=self._place,
            environment=self._environment,
            within={**self._within, **(within or {})},
            stdin=stdin,
            held=(self._held,),
            ok=ok,
        )


def _forward(commit: str) -> tuple[str, ...]:
    return (
        "merge",
        "--ff-only",
        "--quiet",
        # Whatever the user is used to: theirs is a branch that goes forward, or stays.
        *("--no-squash", "--no-autostash", "--no-stat"),
        "--no-overwrite-ignore",  # an ignored file is the user's, too
        commit,
    )


def _not_moved(checkout: Path | None, failure: GitFailed) -> RepositoryError:
    in_the_way = any(said in failure.stderr for said in _IN_THE_WAY)
    where = f" in {checkout}" if checkout is not None else ""
    cure = "commit, stash or move what is in the way" if in_the_way else "settle that"
    return RepositoryError(
        f"git did not move it{where}: {_git_message(failure)}",
        hint=f"{cure}, then `windlass land`",
    )


def _git_message(failure: GitFailed) -> str:
    """What git said, without its advice on what to do next."""
    lines = [line for line in failure.stderr.splitlines() if line.strip()]
    said = [line.strip() for line in lines if not line.startswith(("hint:", "Aborting", "Please"))]
    if not said:
        return _ended(failure.code)
    return printable(" ".join(said).removeprefix("error: ").removeprefix("fatal: "))


def _ended(code: int) -> str:
    """How a git ended that said nothing."""
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"it was ended by {signal.Signals(-code).name}"
    return f"it ended with {code} and said nothing"


def _stands_elsewhere(branch: str, now: str, expected: str) -> RepositoryError:
    return RepositoryError(
        f"{branch} stands at {now[:10] or 'nothing'} by now, not at {expected[:10]}",
        hint="`windlass land` looks again",
    )
