"""What a stage should have left behind: merges, files, and nothing that no commit holds."""

from collections import Counter

from windlass.ports import Expected
from windlass.state import Phase, RunState, TaskState


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
