"""Runs Players and Coaches, and turns their reports into facts."""

from pathlib import PurePath

import msgspec
from msgspec.structs import replace

from windlass.core import intents as i
from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer, Review
from windlass.core.plan.names import some
from windlass.core.scheduler.gate import unnamed
from windlass.core.scheduler.reviews import combined, settles
from windlass.core.secrets import redacted
from windlass.errors import SetupFailed
from windlass.ports import Brief, Report, Watch
from windlass.runner.briefs import coach_prompt, part_prompt, player_prompt
from windlass.runner.changes import View, view_of
from windlass.runner.context import Ports

_NAMED = 5
"""How many of the missing names a message lists."""

_TAKEN_AWAY = "its workspace was taken away while it worked"


class Agents:
    """Players and Coaches, each a fresh context."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports

    async def play(self, intent: i.Play) -> e.Event:
        """Run a Player in the task's workspace."""
        repository = self._ports.repository
        # A task that was reset starts from the tip. What is left in its old workspace does not
        # belong to it, and may not be pinned.
        await repository.set_aside(intent.task, intent.begun_after)
        try:
            workspace = await repository.prepare(
                intent.task, intent.n, intent.start, intent.onto, turn=intent.turn
            )
        except SetupFailed as failure:
            return self.failed(intent, _setup_failed(failure))
        brief = Brief(
            task=intent.task,
            n=intent.n,
            role="player",
            prompt=self._ports.redact(player_prompt(intent, self._ports.instructions)),
            model=intent.model,
            model_source=intent.model_source,
            turn=intent.turn,
            criteria=self._clean(intent.criteria),
            checks=self._clean(intent.checks),
            feedback=self._ports.redact(intent.feedback or ""),
            answer=PlayerAnswer,
        )
        report = await self._run(brief, workspace)
        if report.failure is None and not await repository.stands(intent.task, intent.start):
            report = replace(report, failure=e.Failure.ENVIRONMENT, message=_TAKEN_AWAY)
        if report.failure is not None:
            return self.failed(intent, report)
        answer = report.answer if isinstance(report.answer, PlayerAnswer) else None
        return e.PlayerFinished(
            at=self._ports.clock.now(),
            task=intent.task,
            n=intent.n,
            # A Player may answer in prose; only a Coach must follow the schema.
            summary=answer.summary if answer is not None else report.summary,
            usage=report.usage,
            model=brief.model,
            question=answer.question if answer is not None else None,
        )

    async def review(self, intent: i.Review) -> e.Event:
        """Run a Coach in a throwaway checkout of exactly the commit."""
        view = await self._view(intent)
        if (earlier := await self._pinned_answer(intent, view)) is not None:
            return earlier
        repository, label = self._ports.repository, f"{intent.task}-{intent.n}-coach-{intent.k}"
        try:
            async with repository.throwaway(intent.commit, label) as place:
                report = await self._ask(intent, view, place.path)
                touched = await place.touched()
                verdict = _verdict(report)
                if verdict is not None:
                    # At once: it is paid for, and removing the checkout may take long.
                    await self._pin(intent, verdict)
        except SetupFailed as failure:
            return self._coach_failed(intent, _setup_failed(failure))
        if verdict is None:
            return self._coach_failed(intent, report)
        return self._answered(intent, verdict, report.usage, intent.model, touched, view)

    async def _view(self, intent: i.Review) -> View:
        """The change as the Coach sees it."""
        patches = await self._ports.repository.diff(intent.base, intent.commit)
        redact = self._ports.redact
        # Redacted before it is cut: half a secret cannot be recognised.
        return view_of([replace(p, path=redact(p.path), text=redact(p.text)) for p in patches])

    async def _ask(self, intent: i.Review, view: View, place: PurePath) -> Report:
        """The Coach's report. For a very large change, the combined report of several Coaches."""
        instructions, doubted = self._ports.instructions, self._clean(intent.doubted)
        asked = [
            (coach_prompt(intent, view, instructions), (*view.unread, *doubted)),
            *(
                (part_prompt(intent, part, f"{k} of {len(view.parts)}", instructions), part.files)
                for k, part in enumerate(view.parts, start=1)
            ),
        ]
        reviews: list[Review] = []
        usage = e.Usage()
        for prompt, names in asked:
            brief = Brief(
                task=intent.task,
                n=intent.n,
                role="coach",
                prompt=self._ports.redact(prompt),
                model=intent.model,
                model_source=intent.model_source,
                turn=intent.turn,
                criteria=self._clean(intent.criteria),
                checks=self._clean(tuple(command for command, _ in intent.checks)),
                names=names,
                answer=Review,
            )
            report = await self._run(brief, place)
            usage += report.usage
            review = _verdict(report)
            if review is None:
                return replace(report, usage=usage)
            reviews.append(review)
            if settles(review):
                break
        whole = combined(reviews)
        if missing := unnamed(whole, (*view.unshown, *doubted)):
            return Report(failure=e.Failure.INCONCLUSIVE, message=_unproven(missing), usage=usage)
        return Report(answer=whole, usage=usage)

    async def _pin(self, intent: i.Review, verdict: Review) -> None:
        repository = self._ports.repository
        if intent.is_tip:
            # No Player started from the tip, so no other pin names the commit of this verdict.
            await repository.keep(intent.task, intent.n, "tip", intent.commit)
        text = msgspec.json.encode(verdict).decode()
        await repository.keep(intent.task, intent.n, f"verdict-{intent.k}", text)

    def _clean(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self._ports.redact, texts))

    async def _run(self, brief: Brief, place: PurePath) -> Report:
        """Run an agent. Its report goes to the journal and into git, so secrets are removed."""
        report = await self._ports.agent.work(brief, place, self._watch(brief))
        return redacted(report, self._ports.redact)

    def _watch(self, brief: Brief) -> Watch:
        """Adds the role and the start to each activity: it may be shown after the next starts."""
        return lambda activity: self._ports.watch(replace(activity, role=brief.role, n=brief.n))

    async def _pinned_answer(self, intent: i.Review, view: View) -> e.Event | None:
        """The answer that an earlier process pinned and did not record; it is paid for."""
        if intent.earlier is None:
            return None
        text = await self._ports.repository.kept(intent.task, intent.n, intent.earlier)
        if text is None:
            return None
        review = msgspec.json.decode(text, type=Review)
        return self._answered(intent, review, e.Usage(), "", (), view)

    def _answered(
        self,
        intent: i.Review,
        review: Review,
        usage: e.Usage,
        model: str,
        touched: tuple[str, ...],
        view: View,
    ) -> e.CoachAnswered:
        return e.CoachAnswered(
            at=self._ports.clock.now(),
            task=intent.task,
            n=intent.n,
            k=intent.k,
            commit=intent.commit,
            review=review,
            usage=usage,
            model=model,
            touched=touched,
            unshown=view.unshown,
        )

    def _coach_failed(self, intent: i.Review, report: Report) -> e.CoachFailed:
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
            setup=report.setup,
            unreached=report.unreached,
            lasting=report.lasting,
        )

    def failed(self, intent: i.Play, report: Report) -> e.PlayerFailed:
        return e.PlayerFailed(
            at=self._ports.clock.now(),
            task=intent.task,
            n=intent.n,
            failure=report.failure or e.Failure.CRASHED,
            message=report.message,
            usage=report.usage,
            retry_at=report.retry_at,
            jitter=self._ports.roll(),
            setup=report.setup,
            unreached=report.unreached,
            lasting=report.lasting,
        )


def _verdict(report: Report) -> Review | None:
    """The Coach's answer; None if it failed or did not follow the schema."""
    return report.answer if report.failure is None and isinstance(report.answer, Review) else None


def _unproven(missing: tuple[str, ...]) -> str:
    names = some(missing, _NAMED)
    return f"it approved without evidence for what it was asked about: {names}"


def _setup_failed(failure: SetupFailed) -> Report:
    """The report of an agent that could not start because its checkout could not be set up."""
    return Report(
        failure=e.Failure.ENVIRONMENT, message=str(failure), setup=e.SetupFailure.of(failure)
    )
