"""Whether git holds what it should: all that the journal records, and what a stage must leave.

Before a run is resumed, stale locks are removed, lost pins are written again, and lost commits are
refused. This happens under the plan's lock, so everything with this plan's name belongs to the
caller. For any number of tasks, one call of git lists the commits that the tip does not hold.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import PurePosixPath

import anyio.to_thread
import msgspec

from windlass.adapters.files import is_folder
from windlass.adapters.git.checkouts import Throwaways
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.paths import find_traps, made_by_setup
from windlass.adapters.git.store import Store, printable_line
from windlass.core.exchange import Expected
from windlass.core.state import RunState
from windlass.core.state.remains import attempt_pins
from windlass.errors import GitFailed, JournalDamaged, RepositoryError

_ATTEMPT = re.compile(r"/task/(?P<task>[^/]+)/(?P<n>\d+)/")


async def reconcile(store: Store, refs: Refs, state: RunState) -> tuple[str, ...]:
    """Check that every commit in the journal exists and is pinned, and that the tip has all merges.

    Returns the merged tasks that this covers.
    """
    expected = dict(_expected(state, refs))
    held = await _held(store, refs, state, {refs.tip, *expected})
    _refuse_forgetful_journal(state, refs, held)
    await _refuse_lost_commits(store, state, expected)
    if (why := displaced_tip(state, refs, held)) is not None:
        raise JournalDamaged(
            f"the journal and git disagree: {why}",
            position=0,
            why=f"`git update-ref {refs.tip} {state.tip}` puts it back",
        )
    await _refuse_unmerged(store, state, held.get(refs.tip, state.tip))
    # The tip may be ahead of the journal by one move; one that is gone was where the journal says.
    lost = {r: c for r, c in (*expected.items(), (refs.tip, state.tip)) if r not in held}
    for ref, text in _reviews(state, refs):
        if ref not in held:
            lost[ref] = await store.text(text)
    if lost:
        await store.pin(lost)
    for ref, commit in expected.items():
        if held.get(ref, commit) != commit:
            raise RepositoryError(
                f"{ref} stands at {held[ref][:10]}, and the journal says {commit[:10]}",
                hint=f"put it back: git update-ref {ref} {commit}",
            )
    return state.in_tip


async def _held(store: Store, refs: Refs, state: RunState, settled: Set[str]) -> dict[str, str]:
    """The run's pins, without those whose objects a power loss has taken.

    Those are removed: they may never be asked for again, and `git fsck` would always complain.
    The settled ones are in the journal; the caller refuses what they have lost.
    """
    pins = await store.pins(refs.root)
    doubtful = {ref: name for ref, name in pins.items() if ref not in settled}

    async def are_whole(names: Iterable[str]) -> bool:
        wanted = "\n".join((*names, f"^{state.base}", f"^{state.tip}", ""))
        asked = ("rev-list", "--objects", "--quiet", "--stdin")
        return (await store.trees(*asked, stdin=wanted, ok=(0, 128))).code == 0

    if await are_whole(doubtful.values()):
        return pins
    for ref, name in doubtful.items():
        if not await are_whole([name]):
            await store.unpin(ref)
            del pins[ref]
    return pins


def remove_stale_locks(store: Store, refs: Refs) -> None:
    """Remove the lock files of killed gits, where only this plan's runs write."""
    git_dir = store.origin.git_dir
    ours = (
        store.folders.home / "private",
        store.folders.git,
        git_dir / "refs" / "windlass" / refs.plan,
        git_dir / "refs" / "heads" / "windlass" / refs.plan,
    )
    for folder in ours:
        for lock in folder.rglob("*.lock"):
            lock.unlink(missing_ok=True)


def _expected(state: RunState, refs: Refs) -> Iterator[tuple[str, str]]:
    """Every pin whose effect the journal records as done; the tip is compared when it moves."""
    yield refs.base, state.base
    for task in state.all_tasks:
        for attempt in task.attempts:
            if attempt.commit is None or attempt.is_tip:
                continue  # it may have been cut short anywhere, or no Player worked on it
            pins = attempt_pins(attempt.n, attempt.start, attempt.onto, attempt.turn)
            for what, commit in pins.items():
                yield refs.attempt(task.id, attempt.n, what), commit
            if attempt.commit != attempt.start and attempt.kind is not None:
                yield refs.attempt(task.id, attempt.n, attempt.kind), attempt.commit
        if task.candidate is not None and task.candidate_commit is not None:
            yield refs.candidate(task.candidate), task.candidate_commit


def _reviews(state: RunState, refs: Refs) -> Iterator[tuple[str, str]]:
    """Every review in the journal, as it is pinned."""
    for task in state.all_tasks:
        for attempt in task.attempts:
            for coaching in attempt.coachings:
                if coaching.review is not None:
                    ref = refs.attempt(task.id, attempt.n, f"verdict-{coaching.k}")
                    yield ref, msgspec.json.encode(coaching.review).decode()


def forgotten_pin(state: RunState, refs: Refs, held: Iterable[str]) -> str | None:
    """A pin that is not in the journal. A pin is written after its intent: the journal lost it."""
    tasks = {task.id: task for task in state.all_tasks}
    for ref in held:
        found = _ATTEMPT.search(ref.removeprefix(refs.root))
        task = tasks.get(found["task"]) if found is not None else None
        if found is not None and (task is None or int(found["n"]) > len(task.attempts)):
            return ref
    return None


def displaced_tip(state: RunState, refs: Refs, held: Mapping[str, str]) -> str | None:
    """Why the tip is not where the journal has it; None for a lost tip, which is put back.

    A move is recorded after it was made: the tip may be ahead of the journal by that one move,
    never behind.
    """
    now = held.get(refs.tip)
    if now is None or now in _tips(state):
        return None
    return f"{refs.tip} stands at {now[:10]}, and the journal says {state.tip[:10]}"


def recorded(state: RunState, refs: Refs, *, finished: bool) -> dict[str, str]:
    """Every commit in the journal that git must have, each with what it is.

    For a finished run only its result: pins of its attempts may have been cleaned since.
    """
    found = {commit: f"the merge of {task}" for commit, task in _merges(state).items()}
    found.setdefault(state.tip, "the tip")
    found.setdefault(state.base, "the base")
    for ref, commit in () if finished else _expected(state, refs):
        found.setdefault(commit, ref)
    return found


def _tips(state: RunState) -> set[str | None]:
    moving = (task.candidate_commit for task in state.all_tasks if task.moving_as is not None)
    return {state.tip, *moving}


def _merges(state: RunState) -> dict[str, str]:
    """The merges that the tip must hold, each with its task; reopened tasks included."""
    made = ((task.merge_commit or task.merge_before, task.id) for task in state.all_tasks)
    return {commit: task for commit, task in made if commit is not None}


def _forgotten_tip(state: RunState, refs: Refs, held: dict[str, str]) -> str | None:
    """The tip, if no intent in the journal explains where it is."""
    known = {None, state.base, *_tips(state), *_merges(state)}
    return None if held.get(refs.tip) in known else refs.tip


def _refuse_forgetful_journal(state: RunState, refs: Refs, held: dict[str, str]) -> None:
    ref = forgotten_pin(state, refs, held) or _forgotten_tip(state, refs, held)
    if ref is not None:
        raise JournalDamaged(
            f"the journal is behind git: it knows nothing of {ref}",
            position=0,
            why="it was cut short or restored from an old copy",
        )


async def _refuse_unmerged(store: Store, state: RunState, tip: str) -> None:
    """Every recorded merge must be in the tip: the run builds on it."""
    merges = _merges(state)
    beyond = await _beyond(store, merges, tip)
    outside = ", ".join(f"{merges[c]} ({c[:10]})" for c in merges if c in beyond)
    if outside:
        raise JournalDamaged(
            f"the journal and git disagree: the tip does not hold the merge of {outside}",
            position=0,
            why="the history of the run was rewritten",
        )


async def _beyond(store: Store, commits: Iterable[str], tip: str, *how: str) -> set[str]:
    """Those of the commits and their ancestors that the tip does not hold."""
    asked = "".join(f"{commit}\n" for commit in (*commits, f"^{tip}"))
    return set((await store.trees("rev-list", *how, "--stdin", stdin=asked)).text.splitlines())


async def _refuse_lost_commits(store: Store, state: RunState, expected: dict[str, str]) -> None:
    merges = _merges(state)
    commits = dict.fromkeys((*expected.values(), *merges, state.tip))
    asked = "".join(f"{commit}\n" for commit in commits)
    answer = await store.trees("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=asked)
    lost = [line.split()[0] for line in answer.text.splitlines() if line.endswith(" missing")]
    if lost:
        refs = [ref for ref, commit in expected.items() if commit in lost]
        refs += [f"the merge of {task}" for commit, task in merges.items() if commit in lost]
        what = f" ({', '.join(refs)})" if refs else ""
        raise RepositoryError(
            f"git has lost {', '.join(commit[:10] for commit in lost)}{what}",
            hint="restore the objects from a copy of the repository, or start again with --restart",
        )


_MOST_NAMED = 3
"""How many paths of a workspace are named."""


class Deliverables:
    """Finds what a stage should have left and has not."""

    def __init__(self, store: Store, throwaways: Throwaways) -> None:
        self._store = store
        self._throwaways = throwaways

    async def missing(self, tip: str, expected: Expected) -> tuple[str, ...]:
        """A line for each merge, file or workspace that is not as expected."""
        return (
            *await self._unmerged(tip, expected),
            *await self._absent(tip, expected),
            *await self._uncommitted(expected),
        )

    async def _unmerged(self, tip: str, expected: Expected) -> list[str]:
        commits = sorted({commit for made in expected.merges.values() for commit in made})
        if not commits:
            return []
        parents = await self._parents(commits)
        beyond = await _beyond(self._store, commits, tip, "--ignore-missing")
        lines: list[str] = []
        for task, (merge, approved) in expected.merges.items():
            gone = [commit for commit in {merge, approved} if commit not in parents]
            outside = [commit for commit in {merge, approved} if commit in beyond]
            lines += [f"{task}: git has lost commit {commit[:10]}" for commit in gone]
            lines += [f"{task}: commit {commit[:10]} is not in the tip" for commit in outside]
            # A commit that was approved while it was the tip needed no merge.
            if not gone and approved != merge and approved not in parents[merge][1:]:
                was = f"merge {merge[:10]} is not of {approved[:10]}, which was approved"
                lines.append(f"{task}: {was}")
        return lines

    async def _parents(self, commits: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The parents of those commits that git has."""
        found: dict[str, tuple[str, ...]] = {}
        for commit in commits:
            with contextlib.suppress(GitFailed):
                found[commit] = await self._store.parents_of(commit)
        return found

    async def _absent(self, tip: str, expected: Expected) -> list[str]:
        if not expected.files:
            return []
        wanted = {path: printable_line(path.rstrip("/")) for path in expected.files}
        folders = {str(f) for path in wanted.values() for f in PurePosixPath(path).parents}
        # Folders included: a plan may name one.
        there = await self._store.listing(tip, folders.__contains__)
        absent = [path for path, plain in wanted.items() if plain not in there]
        ignored = await self._ignored(tip, absent) if absent else set[str]()
        return [
            f"{expected.files[path]}: {printable_line(path)} is not there"
            for path in absent
            if path not in ignored
        ]

    async def _ignored(self, tip: str, paths: list[str]) -> set[str]:
        """Those that never enter a commit, by the project's own rules or as by-products."""
        # Not paths outside of the project: git would stop at the first of them.
        asked = "".join(f"./{path}\0" for path in paths if _is_inside(path))
        rules = self._throwaways.excerpt(tip, "ignored", _is_gitignore)
        async with rules as excerpt:
            answer = await self._store.trees(
                *("check-ignore", "--no-index", "-z", "--stdin"),
                stdin=asked,
                work_tree=excerpt.path,
                ok=(0, 1, 128),  # a path that git does not accept is not ignored
            )
        return {path.removeprefix("./") for path in answer.fields}

    async def _uncommitted(self, expected: Expected) -> list[str]:
        """Workspaces of abandoned tasks that were changed since they were pinned."""
        dirty: list[str] = []
        for task in expected.kept:
            place, index = self._store.folders.workspace(task), self._store.folders.index(task)
            if not is_folder(place) or not index.is_file():
                continue
            if any(await anyio.to_thread.run_sync(lambda place=place: list(find_traps(place)))):
                dirty.append(f"{task}: its workspace has files that git cannot read")
                continue
            which = ("--others", "--modified", "--deleted", "--exclude-standard")
            made = made_by_setup(index)
            listed = await self._store.trees(
                *("ls-files", "-z", *which), work_tree=place, index=index, excludes=made
            )
            if listed.fields:
                paths = dict.fromkeys(printable_line(path) for path in listed.fields)
                named = ", ".join(tuple(paths)[:_MOST_NAMED])
                dirty.append(f"{task}: its workspace has changes that are in no commit: {named}")
        return dirty


def _is_inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in PurePosixPath(path).parts


def _is_gitignore(path: str) -> bool:
    return PurePosixPath(path).name == ".gitignore"
