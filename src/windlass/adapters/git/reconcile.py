"""What a dead process left in git, before its run goes on: stale locks, lost pins, lost commits.

Everything here happens under the plan's lock, so whatever carries this plan's name is ours alone.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set

import msgspec

from windlass.adapters.git.layout import Refs
from windlass.adapters.git.store import Store
from windlass.errors import JournalDamaged, RepositoryError
from windlass.state import RunState
from windlass.state.remains import attempt_pins

_ATTEMPT = re.compile(r"/task/(?P<task>[^/]+)/(?P<n>\d+)/")


async def reconcile(store: Store, refs: Refs, state: RunState) -> tuple[str, ...]:
    """Make sure that every commit the journal speaks of is there and pinned, and merges merged.

    The merged tasks for which that was found so are told. However many there are, one call asks
    git for all their commits, and one whether the tip holds their merges.
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
    """The run's pins with what they hold, but for those of which a power loss left the name alone.

    They are let go: nobody may ever ask for them again, and `git fsck` would complain for good.
    Of the settled ones the journal speaks, so that is whole or refused.
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
    """Remove the lock files that a killed git left where only this plan's runs write."""
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
                continue  # nobody knows how far it came when the process ended, or nobody played
            pins = attempt_pins(attempt.n, attempt.start, attempt.onto, attempt.turn)
            for what, commit in pins.items():
                yield refs.attempt(task.id, attempt.n, what), commit
            if attempt.commit != attempt.start and attempt.kind is not None:
                yield refs.attempt(task.id, attempt.n, attempt.kind), attempt.commit
        if task.candidate is not None and task.candidate_commit is not None:
            yield refs.candidate(task.candidate), task.candidate_commit


def _reviews(state: RunState, refs: Refs) -> Iterator[tuple[str, str]]:
    """Every review the journal has, as it is pinned."""
    for task in state.all_tasks:
        for attempt in task.attempts:
            for coaching in attempt.coachings:
                if coaching.review is not None:
                    ref = refs.attempt(task.id, attempt.n, f"verdict-{coaching.k}")
                    yield ref, msgspec.json.encode(coaching.review).decode()


def forgotten_pin(state: RunState, refs: Refs, held: Iterable[str]) -> str | None:
    """A pin is written after its intent; one the journal knows nothing of was forgotten by it."""
    tasks = {task.id: task for task in state.all_tasks}
    for ref in held:
        found = _ATTEMPT.search(ref.removeprefix(refs.root))
        task = tasks.get(found["task"]) if found is not None else None
        if found is not None and (task is None or int(found["n"]) > len(task.attempts)):
            return ref
    return None


def displaced_tip(state: RunState, refs: Refs, held: Mapping[str, str]) -> str | None:
    """Why the tip is not where the journal has it, or was about to move it; a lost one is put back.

    The tip is recorded once it has moved: it may be ahead of the journal by that one move, never
    behind.
    """
    now = held.get(refs.tip)
    if now is None or now in _tips(state):
        return None
    return f"{refs.tip} stands at {now[:10]}, and the journal says {state.tip[:10]}"


def recorded(state: RunState, refs: Refs, *, finished: bool) -> dict[str, str]:
    """Every commit that the journal speaks of and git must have, each with what it is.

    Of a finished run that is what it came to: pins of its attempts may have been cleaned since.
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
    """The merges that the tip is to hold, each with its task; of tasks that are reopened, too."""
    made = ((task.merge_commit or task.merge_before, task.id) for task in state.all_tasks)
    return {commit: task for commit, task in made if commit is not None}


def _forgotten_tip(state: RunState, refs: Refs, held: dict[str, str]) -> str | None:
    """The tip moves after its intent too; where nobody was to move it, the journal forgot that."""
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
    """What is recorded as merged must be in the tip: the run builds on it."""
    merges = _merges(state)
    asked = "".join(f"{commit}\n" for commit in (*merges, f"^{tip}"))
    beyond = await store.trees("rev-list", "--stdin", stdin=asked)
    outside = [commit for commit in beyond.text.splitlines() if commit in merges]
    if outside:
        told = ", ".join(f"{merges[commit]} ({commit[:10]})" for commit in outside)
        raise JournalDamaged(
            f"the journal and git disagree: the tip does not hold the merge of {told}",
            position=0,
            why="the history of the run was rewritten",
        )


async def _refuse_lost_commits(store: Store, state: RunState, expected: dict[str, str]) -> None:
    commits = dict.fromkeys((*expected.values(), *_merges(state), state.tip))
    asked = "".join(f"{commit}\n" for commit in commits)
    answer = await store.trees("cat-file", "--batch-check=%(objecttype) %(objectname)", stdin=asked)
    lost = [line.split()[0] for line in answer.text.splitlines() if line.endswith(" missing")]
    if lost:
        refs = [ref for ref, commit in expected.items() if commit in lost]
        tasks = [
            f"the merge of {task}" for commit, task in _merges(state).items() if commit in lost
        ]
        what = f" ({', '.join((*refs, *tasks))})" if refs or tasks else ""
        raise RepositoryError(
            f"git has lost {', '.join(commit[:10] for commit in lost)}{what}",
            hint="bring the objects back from a copy of the repository, or start anew with "
            "--restart",
        )
