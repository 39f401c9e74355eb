"""The work of a task: the Player starts that build on each other."""

from windlass.core.plan import Task
from windlass.core.plan.judges import is_test
from windlass.core.state.model import Attempt, RunState, TaskState


def attempts_of_work(task: TaskState) -> list[Attempt]:
    """The newest attempt and those it builds on, newest first."""
    work = [task.last]
    for attempt in reversed(task.counted[:-1]):
        if attempt.commit != work[-1].start:
            break
        work.append(attempt)
    return work


def base_of_work(task: TaskState) -> str:
    """The commit to compare the task's whole work with, over all its turns.

    Returned work is already in the next turn's start, and must be reviewed again.
    """
    work = attempts_of_work(task)
    onto = next((attempt.onto for attempt in work if attempt.onto is not None), None)
    return onto or work[-1].start


def change_of(task: TaskState) -> tuple[str, str] | None:
    """The commits to compare for what a task changed; None if it has changed nothing yet.

    For a merged task those of its merge, so that nothing counts that other tasks merged meanwhile.
    """
    merge = task.merge_commit
    if merge is not None:
        onto = task.candidate_onto if merge == task.candidate_commit else None
        return (onto, merge) if onto is not None else None
    head = task.head
    if head is None or not task.counted[task.begun_after :]:
        return None
    base = base_of_work(task)
    return (base, head) if head != base else None


def turn_limit(state: RunState, task_id: str) -> int:
    """How many turns the task gets before it is abandoned, and again each time it is reopened."""
    return state.specs[task_id].max_turns or state.settings.max_turns


def removes_tests(spec: Task, task: TaskState) -> bool:
    """Whether the plan removes tests: it says so, or names a test file that the work deletes."""
    if spec.removes_tests or not task.attempts:
        return spec.removes_tests
    gone = {path for attempt in attempts_of_work(task) for path in attempt.deleted}
    return any(is_test(path) for path in gone & set(spec.files))
