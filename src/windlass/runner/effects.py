"""What each intent means in the world: one effect per `…Started` fact, its outcome as facts.

A merge, once recorded, also lets the task's workspace go; nothing is recorded of that.

Law: an effect may be repeated. After a crash the same intent is decided again, and what the first
try made is found by its pin, or made once more without harm.
"""

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from windlass.errors import SetupFailed
from windlass.events import model as e
from windlass.events.review import PlayerAnswer, Review
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
from windlass.runner.briefs import coach_prompt, player_prompt
from windlass.runner.shutdown import stop_signals
from windlass.scheduler.quota import coach_model, player_model
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
    metered: bool = False
    """Whether every request of an agent passes the meter."""
    redact: Callable[[str], str] = str
    """Takes secrets out of what agents are told."""
    said: Mapping[str, str] = {}
    """What the project says to agents, by file: its own instructions, its CLAUDE.md."""
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
            e.CoachStarted: self._coach,
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
            | e.CoachStarted
            | e.WaitStarted
            | e.VerificationStarted,
        )

    def dropped(self, intent: e.Event) -> Sequence[e.Event]:
        """What is known of an effect that a stop cut short."""
        if not isinstance(intent, e.PlayerStarted):
            return ()
        report = Report(
            failure=e.Failure.INTERRUPTED,
            message="stopped",
            usage=e.Usage(known=self._ports.metered),
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
        brief = Brief(
            task=intent.task,
            n=intent.n,
            role="player",
            prompt=self._ports.redact(player_prompt(state, intent, self._ports.said)),
            model=player_model(state, intent.task),
            answer=PlayerAnswer,
        )
        report = await self._ports.agent.work(brief, workspace, self._ports.watch)
        if report.failure is not None:
            return (self._failed(intent, report),)
        said = report.answer if isinstance(report.answer, PlayerAnswer) else None
        return (
            e.PlayerFinished(
                at=self._ports.clock.now(),
                task=intent.task,
                n=intent.n,
                # A Player that answers in prose has still worked; only a Coach must fit the schema.
                summary=said.summary if said is not None else report.summary,
                usage=report.usage,
                model=brief.model,
                question=said.question if said is not None else None,
            ),
        )

    async def _coach(self, intent: e.CoachStarted, state: RunState) -> Sequence[e.Event]:
        attempt = state.tasks[intent.task].last
        if (answered := await self._answered_before(intent, state)) is not None:
            return (answered,)
        label = f"{intent.task}-{intent.n}-coach-{intent.k}"
        try:
            async with self._ports.repository.throwaway(intent.commit, label) as place:
                diff = await self._ports.repository.diff(attempt.start, intent.commit)
                brief = Brief(
                    task=intent.task,
                    n=intent.n,
                    role="coach",
                    prompt=self._ports.redact(coach_prompt(state, intent, diff, self._ports.said)),
                    model=coach_model(state),
                    answer=Review,
                )
                report = await self._ports.agent.work(brief, place.path, self._ports.watch)
                touched = await place.touched()
        except SetupFailed as failure:
            report = Report(failure=e.Failure.ENVIRONMENT, message=str(failure))
            return (self._coach_failed(intent, report),)
        if report.failure is not None or not isinstance(report.answer, Review):
            return (self._coach_failed(intent, report),)
        what = f"verdict-{intent.k}"
        text = msgspec.json.encode(report.answer).decode()
        await self._ports.repository.keep(intent.task, intent.n, what, text)
        return (
            e.CoachAnswered(
                at=self._ports.clock.now(),
                task=intent.task,
                n=intent.n,
                k=intent.k,
                commit=intent.commit,
                review=report.answer,
                usage=report.usage,
                model=brief.model,
                touched=touched,
            ),
        )

    async def _answered_before(
        self, intent: e.CoachStarted, state: RunState
    ) -> e.CoachAnswered | None:
        """The answer that an earlier process pinned and had no time to record: it is paid for."""
        before = state.tasks[intent.task].last.coachings[:-1]
        if not before or before[-1].commit != intent.commit:
            return None
        text = await self._ports.repository.kept(intent.task, intent.n, f"verdict-{before[-1].k}")
        if text is None:
            return None
        return e.CoachAnswered(
            at=self._ports.clock.now(),
            task=intent.task,
            n=intent.n,
            k=intent.k,
            commit=intent.commit,
            review=msgspec.json.decode(text, type=Review),
            usage=e.Usage(),
        )

    def _coach_failed(self, intent: e.CoachStarted, report: Report) -> e.CoachFailed:
        return e.CoachFailed(
            at=self._ports.clock.now(),
            task=intent.task,
            n=intent.n,
            k=intent.k,
            failure=report.failure or e.Failure.INCONCLUSIVE,
            message=report.message or "it gave no answer that fits the schema",
            usage=report.usage,
            retry_at=report.retry_at,
            jitter=self._ports.roll(),
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
                created=made.created,
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
