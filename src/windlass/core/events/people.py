"""Facts about questions to people, and what people answer and do."""

from windlass.core.events.fact import Fact
from windlass.core.plan import Task


class HelpNeeded(Fact, frozen=True, kw_only=True):
    """The task cannot continue without a person."""

    task: str
    question: str


class CheckpointPassed(Fact, frozen=True, kw_only=True):
    """A person let a task start that is too complex to start without approval."""

    task: str
    by: str


class Answered(Fact, frozen=True, kw_only=True):
    """A person answered a task's question; the next Player gets the answer."""

    task: str
    text: str
    by: str


class TaskAdopted(Fact, frozen=True, kw_only=True):
    """Another tool says it did the task before this run began, and a person accepted that."""

    task: str
    source: str
    """The state file that says so."""
    commit: str | None
    """The commit that the tool names, which the base holds; None if it names none."""


class TaskAccepted(Fact, frozen=True, kw_only=True):
    """A person accepted a stale task: its merge, made for an older text, is good for this one."""

    task: str
    by: str
    spec: Task
    """The accepted text; with any other text the task is stale again."""


class TaskReopened(Fact, frozen=True, kw_only=True):
    """A merged or abandoned task is to be redone."""

    task: str
    by: str
    why: str | None = None
    """Feedback for the next Player, where a problem is known."""
    may_stand: bool = False
    """Whether the earlier merge stands if the task needs no change."""


class MergeStands(Fact, frozen=True, kw_only=True):
    """A reopened task needed no change; its earlier merge stands."""

    task: str
    commit: str
    """The earlier merge."""


class TaskReset(Fact, frozen=True, kw_only=True):
    """A person reset the task: it starts again from the tip, and its old work stays pinned."""

    task: str
    by: str


class TaskResetUndone(Fact, frozen=True, kw_only=True):
    """A person took the reset back before the task started again; it is where it was."""

    task: str
    by: str


class RedoUndone(Fact, frozen=True, kw_only=True):
    """A person took a retry back before the redo was merged; the earlier merge counts again."""

    task: str
    by: str


class HelpAwaited(Fact, frozen=True, kw_only=True):
    """Nothing can continue without a person, and one is present: the run waits for an answer."""

    reason: str


class BaseAccepted(Fact, frozen=True, kw_only=True):
    """A person let the run continue although the base itself does not pass its checks."""

    by: str


class TaskTaken(Fact, frozen=True, kw_only=True):
    """A person works on the task in its workspace, instead of a Player."""

    task: str
    n: int
    turn: int
    start: str
    onto: str | None
    by: str


class TaskGiven(Fact, frozen=True, kw_only=True):
    """The person handed the workspace back; its content is judged like a Player's work."""

    task: str
    n: int
    summary: str
    by: str
