"""`windlass status --json` and the run's state.json: one schema, which other programs read.

Also a past run in one line, for `windlass history`.
"""

from datetime import datetime

from msgspec import UNSET, Struct, UnsetType

from windlass.core.events.model import Failure, Outcome
from windlass.core.plan import digest_of
from windlass.core.state import RunState, TaskState
from windlass.core.state.stretches import run_seconds
from windlass.core.state.work import turn_limit
from windlass.views.activity import unreached, waits_for
from windlass.views.cost import Cost, run_cost, task_cost
from windlass.views.lines import tally
from windlass.views.outcome import (
    STALE_BECAUSE,
    accepted_line,
    checks_on_tip,
    run_status,
    task_statuses,
)


class Stale(Struct, frozen=True, kw_only=True):
    """Why a merged task is not completed."""

    why: str
    checks: dict[str, str]
    """Each check of the new text with its result on the tip: pass, fail, or why it is absent;
    not_run before it has run."""


class Accepted(Struct, frozen=True, kw_only=True):
    """A person accepted the merged work for the plan's current text."""

    by: str
    at: datetime
    text: str
    """A digest of the text that was accepted."""


class TaskProgress(Struct, frozen=True, kw_only=True):
    """One task."""

    status: str
    turns: int
    commits: tuple[str, ...]
    merged: str | None
    """The merge commit that brought the task in."""
    cost_usd: float
    """What is used up: spent and estimated."""
    feedback: str | None
    waits_for: Failure | None = None
    """The failure after which the next agent must wait."""
    waits_until: datetime | None = None
    waits_because: str | UnsetType = UNSET
    """Why the provider cannot be reached; only if the task waits for that."""
    stale: Stale | UnsetType = UNSET
    """Only if the status is stale."""
    accepted: Accepted | UnsetType = UNSET
    """Only if a person accepted the merged work for the plan's current text."""
    spent_usd: float = 0.0
    """The cost of answered requests."""
    estimated_usd: float = 0.0
    """The estimated cost of requests whose answer was never seen whole."""
    reserved_usd: float = 0.0
    """The expected cost of requests in flight."""
    reserved_most_usd: float = 0.0
    """The highest cost that they can have."""


class Metrics(Struct, frozen=True, kw_only=True):
    """Totals, all derived."""

    tasks: int
    completed: int
    turns: int
    returned: int
    merges: int
    checks: dict[str, int]
    cost_usd: float
    """What is used up: spent and estimated."""
    cost_known: bool
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    resumes: int
    elapsed_seconds: float
    spent_usd: float = 0.0
    """The cost of answered requests."""
    estimated_usd: float = 0.0
    """The estimated cost of requests whose answer was never seen whole."""
    reserved_usd: float = 0.0
    """The expected cost of requests in flight."""
    reserved_most_usd: float = 0.0
    """The highest cost that they can have: it decides what may still start."""

    @property
    def cost(self) -> Cost:
        """The amounts without the rest."""
        return Cost(
            cost_usd=self.cost_usd,
            spent_usd=self.spent_usd,
            estimated_usd=self.estimated_usd,
            reserved_usd=self.reserved_usd,
            reserved_most_usd=self.reserved_most_usd,
            known=self.cost_known,
        )


class Progress(Struct, frozen=True, kw_only=True):
    """A run."""

    schema: int
    seq: int
    """The journal position this was made from."""
    run: str
    plan: str
    status: str
    reason: str
    base: str
    base_branch: str | None
    integration: str
    tip: str
    sandbox: str
    tasks: dict[str, TaskProgress]
    metrics: Metrics


def progress(state: RunState, seq: int) -> Progress:
    """The progress as of a journal position."""
    words = task_statuses(state)
    return Progress(
        schema=1,
        seq=seq,
        run=state.run,
        plan=state.plan.id,
        status=run_status(state),
        reason=state.reason,
        base=state.base,
        base_branch=state.base_branch,
        integration=integration_branch(state),
        tip=state.tip,
        sandbox=state.sandbox,
        tasks={task.id: _task(state, task, words[task.id]) for task in state.tasks.values()},
        metrics=_metrics(state),
    )


def landed_at(state: RunState) -> str | None:
    """The commit that the base branch was moved to, if it was."""
    return state.landing.landed if state.landing is not None else None


def checks_line(state: RunState) -> str:
    """`3 pass 1 fail`: all results; where only the base was checked, those of the base."""
    counts = _metrics(state).checks
    line = " ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    if not line and state.baseline:
        return f"{tally(state.baseline)} on the base"
    return line or "none"


def integration_branch(state: RunState) -> str:
    """The branch that shows the merged work."""
    return f"windlass/{state.plan.id}/integration"


def turns_used(task: TaskState) -> int:
    """How many turns a task has begun; conflict rounds and repetitions are not turns."""
    return task.last.turn if task.counted else 0


def turns_allowed(state: RunState, task: TaskState) -> int:
    """The task's last turn before it is abandoned; a reopened task gets as many again."""
    return turn_limit(state, task.id) + task.first_turn - 1


def commits_of(task: TaskState) -> tuple[str, ...]:
    """The snapshots of a task, or the commit that another tool claimed for it."""
    snapshots = (attempt.commit for attempt in task.counted if attempt.kind == "snapshot")
    adopted = (task.merge_commit,) if not task.counted else ()
    return tuple(dict.fromkeys(c for c in (*snapshots, *adopted) if c is not None))


def _task(state: RunState, task: TaskState, status: str) -> TaskProgress:
    waiting, cost = waits_for(task), task_cost(state, task)
    accepted = task.accepted if accepted_line(state, task.id) else None
    return TaskProgress(
        status=status,
        turns=turns_used(task),
        commits=commits_of(task),
        merged=task.merge_commit,
        cost_usd=cost.cost_usd,
        spent_usd=cost.spent_usd,
        estimated_usd=cost.estimated_usd,
        reserved_usd=cost.reserved_usd,
        reserved_most_usd=cost.reserved_most_usd,
        feedback=task.question or task.feedback,
        waits_for=waiting,
        waits_until=task.wait_until if waiting is not None else None,
        waits_because=(waiting is not None and unreached(task)) or UNSET,
        stale=Stale(why=STALE_BECAUSE, checks=checks_on_tip(state, task.id))
        if state.is_stale(task.id)
        else UNSET,
        accepted=Accepted(by=accepted.by, at=accepted.at, text=digest_of(accepted.spec))
        if accepted is not None
        else UNSET,
    )


def _metrics(state: RunState) -> Metrics:
    tasks = state.tasks.values()
    cost = run_cost(state)
    results = [r for of_tree in state.evidence.values() for r in of_tree.values()]
    return Metrics(
        tasks=len(state.tasks),
        completed=len(state.done),
        turns=sum(turns_used(task) for task in tasks),
        returned=sum(a.feedback is not None for task in tasks for a in task.attempts),
        merges=state.merges,
        checks={o.value: sum(r.outcome is o for r in results) for o in Outcome},
        cost_usd=cost.cost_usd,
        cost_known=cost.known,
        spent_usd=cost.spent_usd,
        estimated_usd=cost.estimated_usd,
        reserved_usd=cost.reserved_usd,
        reserved_most_usd=cost.reserved_most_usd,
        input_tokens=cost.input_tokens,
        output_tokens=cost.output_tokens,
        cached_tokens=cost.cached_tokens,
        resumes=state.resumes,
        elapsed_seconds=round(run_seconds(state), 3),
    )


class Past(Struct, frozen=True, kw_only=True):
    """One run."""

    plan: str
    run: str
    started_at: datetime
    ended_at: datetime | None
    status: str
    reason: str
    tasks: int
    completed: int
    turns: int
    elapsed_seconds: float
    cost_usd: float
    cost_known: bool
    spent_usd: float
    estimated_usd: float
    reserved_usd: float
    reserved_most_usd: float
    tip: str
    landed: str | None
    """The commit that the base branch was moved to by a landing."""

    @property
    def cost(self) -> Cost:
        """The amounts without the rest."""
        return Cost(
            cost_usd=self.cost_usd,
            spent_usd=self.spent_usd,
            estimated_usd=self.estimated_usd,
            reserved_usd=self.reserved_usd,
            reserved_most_usd=self.reserved_most_usd,
            known=self.cost_known,
        )


def past(state: RunState) -> Past:
    """A run as of the end of its journal."""
    metrics = progress(state, 0).metrics
    return Past(
        plan=state.plan.id,
        run=state.run,
        started_at=state.started_at,
        ended_at=state.ended_at,
        status=run_status(state),
        reason=state.reason,
        tasks=metrics.tasks,
        completed=metrics.completed,
        turns=metrics.turns,
        elapsed_seconds=metrics.elapsed_seconds,
        cost_usd=metrics.cost_usd,
        cost_known=metrics.cost_known,
        spent_usd=metrics.spent_usd,
        estimated_usd=metrics.estimated_usd,
        reserved_usd=metrics.reserved_usd,
        reserved_most_usd=metrics.reserved_most_usd,
        tip=state.tip,
        landed=landed_at(state),
    )
