"""The work of a task: the Player starts that build on each other."""

from windlass.core.plan import Task
from windlass.core.plan.judges import is_test
from windlass.core.state.model import Attempt, TaskState


def attempts_of_work(task: TaskState) -> list[Attempt]:
    """The newest attempt and those it builds on, newest first."""
    work = [task.last]
    for attempt in reversed(task.attempts[:-1]):
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


def removes_tests(spec: Task, task: TaskState) -> bool:
    """Whether the plan removes tests: it says so, or names a test file that the work deletes."""
    if spec.removes_tests or not task.attempts:
        return spec.removes_tests
    gone = {path for attempt in attempts_of_work(task) for path in attempt.deleted}
    return any(is_test(path) for path in gone & set(spec.files))
