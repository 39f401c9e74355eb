"""What each intent means in the world: one effect per `…Started` fact, its outcome as facts.

A merge, once recorded, also lets the task's workspace go; nothing is recorded of that.

Law: an effect may be repeated. After a crash the same intent is decided again, and what the first
try made is found by its pin, or made once more without harm.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

from msgspec import Struct

from windlass.errors import SetupFailed
from windlass.events import model as e
from windlass.ports import (
    Agent,
    Authorship,
    Brief,
    Checks,
    Clock,
    Conflict,
    Inbox,
    Journal,
    Refused,
    Report,
    Repository,
    Watch,
)
from windlass.runner.briefs import player_prompt
from windlass.runner.shutdown import stop_signals
from windlass.state import RunState


class Ports(Struct, frozen=True, kw_only=True):
    """The world, as this run has it."""

    journal: Journal
    agent: Agent
    repository: Repository
    checks: Checks
    clock: Clock
    inbox: Inbox
    watch: Watch
    roll: Callable[[], float] = random.random  # noqa: S311  nothing is secret about a wait
    """A number between 0 and 1, for waits that must not come in step."""
    signals: Callable[[], AsyncIterator[str]] = stop_signals
    """The names of signals that ask the run to stop."""


class Effects:
    """Carries intents out through the ports."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        # Each takes the intent of its own type; the table is what keeps the pairs right.
        self._table: dict[type[e.Event], Callable[[Any, RunState], Awaitable[Sequence[e.Event]]]]
        self._table = {
            e.BaselineStarted: self._baseline,
            e.PlayerStarted: self._play,
            e.SnapshotStarted: self._save,
            e.ChecksStarted: self._check,
            e.WaitStarted: self._wait,
            e.MergeStarted: self._merge,
            e.TipMoveStarted: self._move_tip,
            e.TaskMerged: self._release,
            e.VerificationStarted: self._verify,
        }

    def has(self, event: e.Event) -> bool:
        """Whether this fact announces an effect."""
        return type(event) in self._table

    async def carry_out(self, intent: e.Event, state: RunState) -> Sequence[e.Event]:
        """Do it, and say what came of it."""
        return await self._table[type(intent)](intent, state)

    def can_be_dropped(self, intent: e.Event) -> bool:
        """Whether a stop ends this effect at once; the others are short and are waited for."""
        return isinstance(
            intent,
            e.BaselineStarted
            | e.PlayerStarted
            | e.ChecksStarted
            | e.WaitStarted
            | e.VerificationStarted,
        )

    def dropped(self, intent: e.Event) -> Sequence[e.Event]:
        """What is known of an effect that a stop cut short."""
        if not isinstance(intent, e.PlayerStarted):
            return ()
        report = Report(
            failure=e.Failure.INTERRUPTED, message="stopped", usage=e.Usage(known=False)
        )
        return (self._failed(intent, report),)

    async def _baseline(self, intent: e.BaselineStarted, _state: RunState) -> Sequence[e.Event]:
        results = await self._ports.checks.run(intent.commit, intent.checks, "base")
        return (
            e.BaselineFinished(at=self._ports.clock.now(), commit=intent.commit, results=results),
        )

    async def _play(self, intent: e.PlayerStarted, state: RunState) -> Sequence[e.Event]:
        try:
            workspace = await self._ports.repository.prepare(
                intent.task, intent.n, intent.start, intent.onto
            )
        except SetupFailed as failure:
            report = Report(failure=e.Failure.ENVIRONMENT, message=str(failure))
            return (self._failed(intent, report),)
        spec = state.specs[intent.task]
        brief = Brief(
            task=intent.task,
            n=intent.n,
            role="player",
            prompt=player_prompt(state, intent),
            model=spec.model or state.settings.model,
        )
        report = await self._ports.agent.work(brief, workspace, self._ports.watch)
        if report.failure is not None:
            return (self._failed(intent, report),)
        return (
            e.PlayerFinished(
                at=self._ports.clock.now(),
                task=intent.task,
                n=intent.n,
                summary=report.summary,
                usage=report.usage,
                model=brief.model,
            ),
        )

    def _failed(self, intent: e.PlayerStarted, report: Report) -> e.PlayerFailed:
        return e.PlayerFailed(
            at=self._ports.clock.now(),
            task=intent.task,
            n=intent.n,
            failure=report.failure or e.Failure.CRASHED,
            message=report.message,
            usage=report.usage,
            retry_at=report.retry_at,
            jitter=self._ports.roll(),
        )

    async def _save(self, intent: e.SnapshotStarted, state: RunState) -> Sequence[e.Event]:
        attempt = state.tasks[intent.task].last
        parents = (attempt.start,) if attempt.onto is None else (attempt.start, attempt.onto)
        made = await self._ports.repository.snapshot(
            _authorship(state, intent.task), intent.kind, parents
        )
        now = self._ports.clock.now()
        if isinstance(made, Refused):
            return (e.SnapshotRefused(at=now, task=intent.task, n=intent.n, reason=made.reason),)
        return (
            e.SnapshotTaken(
                at=now,
                task=intent.task,
                n=intent.n,
                kind=intent.kind,
                commit=made.commit,
                tree=made.tree,
                changed=made.changed,
                files=made.files,
            ),
        )

    async def _check(self, intent: e.ChecksStarted, state: RunState) -> Sequence[e.Event]:
        attempt = state.tasks[intent.task].last
        merging = "" if attempt.commit == intent.commit else "-merged"
        log = f"{intent.task}-{attempt.n}{merging}"
        results = await self._ports.checks.run(intent.commit, intent.checks, log)
        return (
            e.ChecksFinished(
                at=self._ports.clock.now(),
                task=intent.task,
                commit=intent.commit,
                tree=intent.tree,
                results=results,
            ),
        )

    async def _wait(self, intent: e.WaitStarted, _state: RunState) -> Sequence[e.Event]:
        await self._ports.clock.sleep_until(intent.until)
        return (e.TimerFired(at=self._ports.clock.now(), task=intent.task),)

    async def _merge(self, intent: e.MergeStarted, state: RunState) -> Sequence[e.Event]:
        made = await self._ports.repository.merge(
            _authorship(state, intent.task), intent.candidate, intent.commit, intent.tip
        )
        now = self._ports.clock.now()
        if isinstance(made, Conflict):
            return (
                e.MergeConflicted(
                    at=now,
                    task=intent.task,
                    candidate=intent.candidate,
                    files=made.files,
                    detail=made.detail,
                ),
            )
        return (
            e.MergeBuilt(
                at=now,
                task=intent.task,
                candidate=intent.candidate,
                commit=made.commit,
                tree=made.tree,
            ),
        )

    async def _move_tip(self, intent: e.TipMoveStarted, _state: RunState) -> Sequence[e.Event]:
        note = await self._ports.repository.move_tip(intent.tip, intent.commit)
        return (
            e.TaskMerged(
                at=self._ports.clock.now(),
                task=intent.task,
                candidate=intent.candidate,
                commit=intent.commit,
                note=note,
            ),
        )

    async def _release(self, merged: e.TaskMerged, _state: RunState) -> Sequence[e.Event]:
        await self._ports.repository.release(merged.task)
        return ()

    async def _verify(self, intent: e.VerificationStarted, _state: RunState) -> Sequence[e.Event]:
        results = await self._ports.checks.run(intent.commit, intent.checks, "tip")
        return (
            e.VerificationFinished(
                at=self._ports.clock.now(),
                commit=intent.commit,
                tree=intent.tree,
                results=results,
            ),
        )


def _authorship(state: RunState, task_id: str) -> Authorship:
    attempt = state.tasks[task_id].last
    return Authorship(
        task=task_id, title=state.specs[task_id].title, n=attempt.n, turn=attempt.turn
    )
