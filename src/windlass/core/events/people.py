"""Facts about what people are asked, and what they say and do."""

from windlass.core.events.fact import Fact
from windlass.core.plan import Task


class HelpNeeded(Fact, frozen=True, kw_only=True):
    """The task cannot go on without a person."""

    task: str
    question: str


class CheckpointPassed(Fact, frozen=True, kw_only=True):
    """A person let a task start that is too complex to start unasked."""

    task: str
    by: str


class Answered(Fact, frozen=True, kw_only=True):
    """A person answered what a task needed help with; the next Player is told."""

    task: str
    text: str
    by: str


class TaskAdopted(Fact, frozen=True, kw_only=True):
    """Another tool had done the task before this run began, and a person took its word for it."""

    task: str
    source: str
    """Whose word: the state file that says so."""
    commit: str | None
    """The commit that git has and the base holds; None where none was named."""


class TaskAccepted(Fact, frozen=True, kw_only=True):
    """A person accepted a stale task: what was merged for an older text will do for this one."""

    task: str
    by: str
    spec: Task
    """The text that the person accepted it for; for any other text the task is stale again."""


class TaskReopened(Fact, frozen=True, kw_only=True):
    """The task is to be done once more that was merged or abandoned."""

    task: str
    by: str
    why: str | None = None
    """What the next Player is to answer, where something is known to be wrong."""
    may_stand: bool = False
    """Where nobody finds anything to change, what was merged before stands."""


class MergeStands(Fact, frozen=True, kw_only=True):
    """A task that was to be done once more needed no change: what was merged before stands."""

    task: str
    commit: str
    """That merge."""


class TaskReset(Fact, frozen=True, kw_only=True):
    """A person wants the task to begin anew from the tip; all that was done for it stays pinned."""

    task: str
    by: str


class TaskResetUndone(Fact, frozen=True, kw_only=True):
    """The person thought better of it before anybody had begun: the task is where it was."""

    task: str
    by: str


class TaskTaken(Fact, frozen=True, kw_only=True):
    """A person works on the task in its workspace, in a Player's place."""

    task: str
    n: int
    turn: int
    start: str
    onto: str | None
    by: str


class TaskGiven(Fact, frozen=True, kw_only=True):
    """The person handed the workspace back; what it holds is judged like a Player's work."""

    task: str
    n: int
    summary: str
    by: str
