"""What a plan is, whatever dialect it was written in. Values only; no rule lives here."""

from msgspec import Struct


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One unit of work with its acceptance criteria."""

    id: str
    title: str
    text: str = ""
    """All the plan says about the task, as Markdown; the Player reads exactly this."""
    acceptance_criteria: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Paths the plan says the task is about; a hint, never a fence."""
    creates: tuple[str, ...] = ()
    """Those of them that the plan says are to be there when the task is done."""
    checks: tuple[str, ...] = ()
    """Commands that prove this task, beside the plan's and the project's."""
    skip_absent: bool = False
    """`**Absent checks:** skip`: a check that collects nothing does not hold this task up."""
    removes_tests: bool = False
    """`**Removes tests:**`: fewer tests are meant, and the Coach is asked about them."""
    complexity: int | None = None
    stage: str | None = None
    model: str | None = None
    max_turns: int | None = None
    scenario: bool = False
    """It is the plan's E2E scenario: it begins with a review of the tip, not with a Player."""
    marked_done: bool = False
    """The plan's text marks it as done. A claim: `windlass adopt` looks at it, nobody else."""
    path: str = ""
    """The file it stands in, where that is not the plan's own."""
    line: int = 0
    """Where the task begins in its file, for messages."""


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something in the plan's files that was seen and not used, and why."""

    line: int
    text: str
    path: str = ""
    """The file, where that is not the plan's own."""


class Stage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tasks that a plan groups between barriers: a wave or a layer."""

    name: str
    checks: tuple[str, ...] = ()
    """Commands that must pass on the tip once the stage is done."""


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tasks with order."""

    id: str
    """Safe as a part of a ref and as a folder's name."""
    title: str
    dialect: str
    path: str
    """The plan's file, relative to the repository where it lies inside."""
    tasks: tuple[Task, ...]
    stages: tuple[Stage, ...] = ()
    """The stages in order, where the plan asks for a barrier between them."""
    stops_on_failure: bool = False
    """Its users expect everything to stop when one task is abandoned; else its dependents do."""
    checks: tuple[str, ...] = ()
    """Commands that prove every task of this plan."""
    e2e: str | None = None
    """The end-to-end scenario, as the plan tells it."""
    notes: tuple[Note, ...] = ()

    def task(self, task_id: str) -> Task:
        """The task of that id, which must be one of the plan's."""
        return next(task for task in self.tasks if task.id == task_id)
