"""The values of a plan, the same for every dialect. No rules."""

from msgspec import Struct

from windlass.findings import Finding


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One unit of work with its acceptance criteria."""

    id: str
    title: str
    text: str = ""
    """Everything in the plan about the task, as Markdown; the Player reads exactly this."""
    acceptance_criteria: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Paths that the plan names for the task: a hint, never a restriction."""
    creates: tuple[str, ...] = ()
    """Those of them that must exist when the task is done."""
    checks: tuple[str, ...] = ()
    """Commands that prove this task, in addition to the plan's and the project's."""
    skip_absent: bool = False
    """`**Absent checks:** skip`: a check that collects nothing does not block this task."""
    removes_tests: bool = False
    """`**Removes tests:**`: fewer tests are intended, and the Coach is asked about them."""
    complexity: int | None = None
    stage: str | None = None
    model: str | None = None
    max_turns: int | None = None
    scenario: bool = False
    """Whether it is the E2E scenario, which begins with a review of the tip, not with a Player."""
    marked_done: bool = False
    """The plan's text marks it as done. A claim: only `windlass adopt` reads it."""
    path: str = ""
    """The task's file, if it is not the plan's own."""
    line: int = 0
    """The first line of the task in its file, for messages."""


class Stage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tasks that a plan groups between barriers: a wave or a layer."""

    name: str
    checks: tuple[str, ...] = ()
    """Commands that must pass on the tip when the stage is done."""


class Plan(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Tasks with order."""

    id: str
    """Safe in a ref and as a folder name."""
    title: str
    dialect: str
    path: str
    """The plan's file, relative to the repository if it is inside."""
    tasks: tuple[Task, ...]
    stages: tuple[Stage, ...] = ()
    """The stages in order, if the plan requires barriers between them."""
    stops_on_failure: bool = False
    """Whether the run stops when a task is abandoned; else only its dependents are blocked."""
    checks: tuple[str, ...] = ()
    """Commands that prove every task of this plan."""
    e2e: str | None = None
    """The text of the end-to-end scenario."""
    notes: tuple[Finding, ...] = ()
    """What is odd in its files, and what was not used."""

    @property
    def paths(self) -> tuple[str, ...]:
        """Its file or folder, and the files of its tasks."""
        return (self.path, *(task.path for task in self.tasks if task.path))

    def task(self, task_id: str) -> Task:
        """The task of that id, which must be in the plan."""
        return next(task for task in self.tasks if task.id == task_id)
