"""What each intent means in the world: one effect per `…Started` fact, its outcome as facts.

A merge, once recorded, also lets the task's workspace go, and a task that a person takes gets one;
nothing is recorded of that.

Law: an effect may be repeated. After a crash the same intent is decided again, and what the first
try made is found by its pin, or made once more without harm.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from windlass.events import model as e
from windlass.plan import digest_of
from windlass.ports import Authorship, Conflict, Refused, Report, Repository
from windlass.runner.agents import Agents
from windlass.runner.landings import Landings
from windlass.runner.surroundings import Ports
from windlass.scheduler.deliverables import changed_in, cut_short, expected_after, in_full
from windlass.state import RunState, TaskState

Outcome: TypeAlias = e.Event | tuple[e.Event, ...] | None
"""What came of an effect: a fact, several that are true at once, or nothing to record."""

_DROPPED_AT_ONCE = (
    e.BaselineStarted,
    e.PlayerStarted,
    e.ChecksStarted,
    e.CoachStarted,
    e.WaitStarted,
    e.VerificationStarted,
)
"""Effects that a stop ends at once; the others are short and are waited for."""


class Effects:
    """Carries intents out through the ports."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._agents = Agents(ports)
        # Each takes the intent of its own type; the table is what keeps the pairs right.
        self._table: dict[type[e.Event], Callable[[Any, RunState], Awaitable[Outcome]]] = {
            e.BaselineStarted: self._baseline,
            e.PlayerStarted: self._agents.play,
            e.SnapshotStarted: self._save,
            e.ChecksStarted: self._check,
            e.CoachStarted: self._agents.coach,
            e.WaitStarted: self._wait,
            e.MergeStarted: self._merge,
            e.TipMoveStarted: self._move_tip,
            e.TaskMerged: self._release,
            e.MergeStands: self._release,
            e.TaskTaken: self._lend,
            e.VerificationStarted: self._verify,
            **Landings(ports).table,
        }

    def has(self, event: e.Event) -> bool:
        """Whether this fact announces an effect."""
        return type(event) in self._table

    async def carry_out(self, intent: e.Event, state: RunState) -> tuple[e.Event, ...]:
        """Do it, and say what came of it."""
        happened = await self._table[type(intent)](intent, state)
        if happened is None:
            return ()
        return happened if isinstance(happened, tuple) else (happened,)

    def can_be_dropped(self, intent: e.Event) -> bool:
        """Whether a stop ends this effect at once."""
        return isinstance(intent, _DROPPED_AT_ONCE)

    def dropped(self, intent: e.Event) -> tuple[e.Event, ...]:
        """What is known of an effect that a stop cut short."""
        if not isinstance(intent, e.PlayerStarted):
            return ()
        usage = e.Usage(known=self._ports.metered)
        report = Report(failure=e.Failure.INTERRUPTED, message="stopped", usage=usage)
        return (self._agents.failed(intent, report),)

    async def _baseline(self, intent: e.BaselineStarted, _state: RunState) -> e.Event:
        results = await self._ports.checks.run(intent.commit, intent.checks, "base")
        now = self._ports.clock.now()
        return e.BaselineFinished(at=now, commit=intent.commit, results=results)

    async def _save(self, intent: e.SnapshotStarted, state: RunState) -> e.Event:
        attempt = state.tasks[intent.task].last
        parents = (attempt.start,) if attempt.onto is None else (attempt.start, attempt.onto)
        author = self._authorship(state, intent.task)
        made = await self._ports.repository.snapshot(author, intent.kind, parents)
        now = self._ports.clock.now()
        if isinstance(made, Refused):
            return e.SnapshotRefused(at=now, task=intent.task, n=intent.n, reason=made.reason)
        return e.SnapshotTaken(
            at=now,
            task=intent.task,
            n=intent.n,
            kind=intent.kind,
            commit=made.commit,
            tree=made.tree,
            changed=made.changed,
            files=made.files,
            created=made.created,
            deleted=made.deleted,
        )

    async def _check(self, intent: e.ChecksStarted, state: RunState) -> e.Event:
        attempt = state.tasks[intent.task].last
        merging = "" if attempt.commit == intent.commit else "-merged"
        log = f"{intent.task}-{attempt.n}{merging}"
        results = await self._ports.checks.run(intent.commit, intent.checks, log)
        return e.ChecksFinished(
            at=self._ports.clock.now(),
            task=intent.task,
            commit=intent.commit,
            tree=intent.tree,
            results=results,
        )

    async def _wait(self, intent: e.WaitStarted, _state: RunState) -> e.Event:
        await self._ports.clock.sleep_until(intent.until)
        return e.TimerFired(at=self._ports.clock.now(), task=intent.task)

    async def _merge(self, intent: e.MergeStarted, state: RunState) -> e.Event:
        author = self._authorship(state, intent.task)
        made = await self._ports.repository.merge(
            author, intent.candidate, intent.commit, intent.onto
        )
        now = self._ports.clock.now()
        if isinstance(made, Conflict):
            return e.MergeConflicted(
                at=now,
                task=intent.task,
                candidate=intent.candidate,
                files=made.files,
                detail=made.detail,
            )
        return e.MergeBuilt(
            at=now,
            task=intent.task,
            candidate=intent.candidate,
            commit=made.commit,
            tree=made.tree,
        )

    async def _move_tip(self, intent: e.TipMoveStarted, state: RunState) -> tuple[e.Event, ...]:
        note = await self._ports.repository.move_tip(intent.tip, intent.commit)
        now = self._ports.clock.now()
        moved = [state.tasks[id_] for id_ in intent.tasks]
        return tuple(
            e.TaskMerged(
                at=now,
                task=task.id,
                candidate=task.candidate or 0,
                commit=task.candidate_commit or "",
                tip=intent.commit,
                note=note if task is moved[-1] else "",
            )
            for task in moved
        )

    def _authorship(self, state: RunState, task_id: str) -> Authorship:
        attempt = state.tasks[task_id].last
        return Authorship(
            task=task_id,
            # It becomes the message of a commit, which others may fetch.
            title=self._ports.redact(state.specs[task_id].title),
            n=attempt.n,
            turn=attempt.turn,
            by_person=attempt.by is not None,
            text=digest_of(state.specs[task_id]),
        )

    async def _release(self, merged: e.TaskMerged | e.MergeStands, _state: RunState) -> None:
        await self._ports.repository.release(merged.task)

    async def _lend(self, taken: e.TaskTaken, state: RunState) -> None:
        await lend(self._ports.repository, taken, state.tasks[taken.task])

    async def _verify(self, intent: e.VerificationStarted, state: RunState) -> e.Event:
        problems: tuple[str, ...] = ()
        if intent.stage is not None:
            repository = self._ports.repository
            state = in_full(state, await repository.changed(cut_short(state)))
            expected = expected_after(state, intent.stage)
            problems = await repository.verify(intent.commit, expected)
            paths = changed_in(state, intent.stage)
            problems += await self._ports.checks.parse(intent.commit, paths)
        results = await self._ports.checks.run(intent.commit, intent.checks, "tip")
        return e.VerificationFinished(
            at=self._ports.clock.now(),
            commit=intent.commit,
            tree=intent.tree,
            results=results,
            stage=intent.stage,
            problems=problems,
        )


async def lend(repository: Repository, taken: e.TaskTaken, task: TaskState) -> None:
    """The workspace for a person; what setup cannot do there they will see for themselves."""
    await repository.set_aside(taken.task, task.begun_after)
    await repository.prepare(
        taken.task, taken.n, taken.start, taken.onto, turn=taken.turn, by_person=True
    )
