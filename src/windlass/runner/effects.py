"""What each intent means in the world: one effect per `…Started` fact, its outcome a fact.

A merge, once recorded, also lets the task's workspace go; nothing is recorded of that.

Law: an effect may be repeated. After a crash the same intent is decided again, and what the first
try made is found by its pin, or made once more without harm.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from windlass.events import model as e
from windlass.ports import Authorship, Conflict, Refused, Report
from windlass.runner.agents import Agents
from windlass.runner.surroundings import Ports
from windlass.state import RunState

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
        self._table: dict[type[e.Event], Callable[[Any, RunState], Awaitable[e.Event | None]]] = {
            e.BaselineStarted: self._baseline,
            e.PlayerStarted: self._agents.play,
            e.SnapshotStarted: self._save,
            e.ChecksStarted: self._check,
            e.CoachStarted: self._agents.coach,
            e.WaitStarted: self._wait,
            e.MergeStarted: self._merge,
            e.TipMoveStarted: self._move_tip,
            e.TaskMerged: self._release,
            e.VerificationStarted: self._verify,
        }

    def has(self, event: e.Event) -> bool:
        """Whether this fact announces an effect."""
        return type(event) in self._table

    async def carry_out(self, intent: e.Event, state: RunState) -> e.Event | None:
        """Do it, and say what came of it."""
        return await self._table[type(intent)](intent, state)

    def can_be_dropped(self, intent: e.Event) -> bool:
        """Whether a stop ends this effect at once."""
        return isinstance(intent, _DROPPED_AT_ONCE)

    def dropped(self, intent: e.Event) -> e.Event | None:
        """What is known of an effect that a stop cut short."""
        if not isinstance(intent, e.PlayerStarted):
            return None
        usage = e.Usage(known=self._ports.metered)
        report = Report(failure=e.Failure.INTERRUPTED, message="stopped", usage=usage)
        return self._agents.failed(intent, report)

    async def _baseline(self, intent: e.BaselineStarted, _state: RunState) -> e.Event:
        results = await self._ports.checks.run(intent.commit, intent.checks, "base")
        now = self._ports.clock.now()
        return e.BaselineFinished(at=now, commit=intent.commit, results=results)

    async def _save(self, intent: e.SnapshotStarted, state: RunState) -> e.Event:
        attempt = state.tasks[intent.task].last
        parents = (attempt.start,) if attempt.onto is None else (attempt.start, attempt.onto)
        author = _authorship(state, intent.task)
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
        author = _authorship(state, intent.task)
        made = await self._ports.repository.merge(
            author, intent.candidate, intent.commit, intent.tip
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

    async def _move_tip(self, intent: e.TipMoveStarted, _state: RunState) -> e.Event:
        note = await self._ports.repository.move_tip(intent.tip, intent.commit)
        return e.TaskMerged(
            at=self._ports.clock.now(),
            task=intent.task,
            candidate=intent.candidate,
            commit=intent.commit,
            note=note,
        )

    async def _release(self, merged: e.TaskMerged, _state: RunState) -> None:
        await self._ports.repository.release(merged.task)

    async def _verify(self, intent: e.VerificationStarted, _state: RunState) -> e.Event:
        results = await self._ports.checks.run(intent.commit, intent.checks, "tip")
        return e.VerificationFinished(
            at=self._ports.clock.now(), commit=intent.commit, tree=intent.tree, results=results
        )


def _authorship(state: RunState, task_id: str) -> Authorship:
    attempt = state.tasks[task_id].last
    return Authorship(
        task=task_id, title=state.specs[task_id].title, n=attempt.n, turn=attempt.turn
    )
