"""What a stage should have left behind: merges, files, and nothing that no commit holds."""

from collections import Counter

from msgspec.structs import replace

from windlass.ports import MAX_LISTED, ChangedPaths, Expected
from windlass.state import Phase, RunState, TaskState
from windlass.state.model import Attempt


def cut_short(state: RunState) -> tuple[tuple[str, str], ...]:
    """Start and commit of each attempt that may have changed more than is recorded of it."""
    attempts = (attempt for task in state.tasks.values() for attempt in task.attempts)
    return tuple(
        (attempt.start, attempt.commit)
        for attempt in attempts
        if attempt.commit is not None and len(attempt.files) >= MAX_LISTED
    )


def in_full(state: RunState, changes: ChangedPaths) -> RunState:
    """The state with all that its attempts have changed, where git was asked for it.

    What was cut off may be a file that somebody removed for a good reason.
    """

    def whole(attempt: Attempt) -> Attempt:
        paths = changes.get((attempt.start, attempt.commit or ""))
        if paths is None:
            return attempt
        created = tuple(path for path, is_new in paths.items() if is_new)
        return replace(attempt, files=tuple(paths), created=created)

    tasks = {
        id_: replace(task, attempts=tuple(map(whole, task.attempts)))
        for id_, task in state.tasks.items()
    }
    return replace(state, tasks=tasks)


def expected_after(state: RunState, stage: str) -> Expected:
    """What to look for in the tip once the stage is done."""
    merged = _merged(state, tuple(state.tasks))
    touched = Counter(path for task in merged for path in set(_changed(task)))
    here = state.index.stages.get(stage, ())
    lost = (state.tasks[id_] for id_ in here if state.tasks[id_].phase is Phase.ABANDONED)
    return Expected(
        merges={
            task.id: (task.merge_commit, _approved(task))
            for task in merged
            if task.merge_commit is not None
        },
        # What somebody else has changed too may be gone for a good reason.
        files={
            path: task.id
            for task in _merged(state, here)
            for path in (*_made(task), *state.specs[task.id].creates)
            if touched[path] <= 1
        },
        kept={task.id: task.head for task in lost if task.head is not None},
    )


def changed_in(state: RunState, stage: str) -> tuple[str, ...]:
    """The files that the stage's merged tasks have changed."""
    merged = _merged(state, state.index.stages.get(stage, ()))
    return tuple(dict.fromkeys(path for task in merged for path in _changed(task)))


def _merged(state: RunState, ids: tuple[str, ...]) -> list[TaskState]:
    """Those that are merged, by this run."""
    tasks = (state.tasks[id_] for id_ in ids)
    return [task for task in tasks if task.phase is Phase.MERGED and task.attempts]


def _approved(task: TaskState) -> str:
    """The commit that was let through; where one was tried as the tip, or stands, that is it."""
    if not task.last.is_tip:
        for attempt in reversed(task.attempts):
            if attempt.commit not in {None, attempt.start}:
                return attempt.commit or ""
    return task.merge_commit or ""


def _made(task: TaskState) -> set[str]:
    """Files that the task made and did not touch again."""
    made: set[str] = set()
    for attempt in task.attempts[task.begun_after :]:
        made = (made - set(attempt.files)) | set(attempt.created)
    return made


def _changed(task: TaskState) -> tuple[str, ...]:
    return tuple(path for attempt in task.attempts[task.begun_after :] for path in attempt.files)
