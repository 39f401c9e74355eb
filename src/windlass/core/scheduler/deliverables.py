"""What a finished stage should have left: merges, files, and the pinned work of lost tasks."""

from collections import Counter

from msgspec.structs import replace

from windlass.core.exchange import (
    MAX_LISTED,
    ChangedPaths,
    Expected,
    MergedWork,
    StageWork,
    WorkStep,
)
from windlass.core.state import Phase, RunState, TaskState


def work_of(state: RunState, stage: str) -> StageWork:
    """The merged work that the run knows of when this stage is done."""
    here = state.index.stages.get(stage, ())
    tasks = (task for task in state.tasks.values() if task.phase is Phase.MERGED and task.counted)
    lost = (state.tasks[id_] for id_ in here if state.tasks[id_].phase is Phase.ABANDONED)
    return StageWork(
        merged=tuple(_merged(state, task, in_stage=task.id in here) for task in tasks),
        kept={task.id: task.head for task in lost if task.head is not None},
    )


def cut_short(work: StageWork) -> tuple[tuple[str, str], ...]:
    """Start and commit of each attempt whose list of changed files may be cut off."""
    steps = (step for task in work.merged for step in task.steps)
    return tuple(
        (step.start, step.commit)
        for step in steps
        if step.commit is not None and len(step.files) >= MAX_LISTED
    )


def in_full(work: StageWork, changes: ChangedPaths) -> StageWork:
    """The work with all its changed files, as read from git.

    A file that was cut off the list may be one that another task removed on purpose.
    """

    def whole(step: WorkStep) -> WorkStep:
        paths = changes.get((step.start, step.commit or ""))
        if paths is None:
            return step
        created = tuple(path for path, is_new in paths.items() if is_new)
        return replace(step, files=tuple(paths), created=created)

    merged = (replace(task, steps=tuple(map(whole, task.steps))) for task in work.merged)
    return replace(work, merged=tuple(merged))


def expected_after(work: StageWork) -> Expected:
    """What to look for in the tip after the stage."""
    touched = Counter(path for task in work.merged for path in set(_changed(task)))
    return Expected(
        merges={
            task.task: (task.merge, task.approved) for task in work.merged if task.merge is not None
        },
        # A file that another task changed too may have been removed on purpose.
        files={
            path: task.task
            for task in work.merged
            if task.in_stage
            for path in (*_made(task), *task.creates)
            if touched[path] <= 1
        },
        kept=work.kept,
    )


def changed_in(work: StageWork) -> tuple[str, ...]:
    here = (task for task in work.merged if task.in_stage)
    return tuple(dict.fromkeys(path for task in here for path in _changed(task)))


def _merged(state: RunState, task: TaskState, *, in_stage: bool) -> MergedWork:
    return MergedWork(
        task=task.id,
        merge=task.merge_commit,
        approved=_approved(task),
        steps=tuple(
            WorkStep(
                start=attempt.start,
                commit=attempt.commit,
                files=attempt.files,
                created=attempt.created,
            )
            for attempt in task.counted[task.begun_after :]
        ),
        creates=state.specs[task.id].creates,
        in_stage=in_stage,
    )


def _approved(task: TaskState) -> str:
    """The approved commit; the merge itself for a scenario on the tip or a standing merge."""
    if not task.last.is_tip:
        for attempt in reversed(task.counted):
            if attempt.commit not in {None, attempt.start}:
                return attempt.commit or ""
    return task.merge_commit or ""


def _made(task: MergedWork) -> set[str]:
    """Files that the task created and did not change again."""
    made: set[str] = set()
    for step in task.steps:
        made = (made - set(step.files)) | set(step.created)
    return made


def _changed(task: MergedWork) -> tuple[str, ...]:
    return tuple(path for step in task.steps for path in step.files)
