"""The effects: one for each intent. An effect acts through the ports and returns facts.

Law: an effect may be repeated. After a crash the same intent is carried out again; the effect finds
the first result by its pin, or makes it again without harm. An effect sees only its intent, and
nothing else of the run.
"""

from typing import TypeAlias, assert_never

from msgspec.structs import replace

from windlass.core import intents as i
from windlass.core.events import model as e
from windlass.core.exchange import Authorship
from windlass.core.scheduler.deliverables import changed_in, cut_short, expected_after, in_full
from windlass.errors import RepositoryError
from windlass.ports import Conflict, Merged, Refused, Report, Repository
from windlass.runner.agents import Agents
from windlass.runner.context import Ports

Facts: TypeAlias = tuple[e.Event, ...]


class Effects:
    """Carries out intents through the ports."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._agents = Agents(ports)

    async def carry_out(self, intent: i.Intent) -> Facts:  # noqa: C901, PLR0912  one arm each
        """Do it, and return the outcome; empty where there is nothing to record."""
        match intent:
            case i.CheckBase():
                return await self._check_base(intent)
            case i.Play():
                return (await self._agents.play(intent),)
            case i.SaveWork():
                return await self._save(intent)
            case i.RunChecks():
                return await self._check(intent)
            case i.Review():
                return (await self._agents.review(intent),)
            case i.WaitUntil():
                await self._ports.clock.sleep_until(intent.until)
                return (e.TimerFired(at=self._ports.clock.now(), task=intent.task),)
            case i.BuildMerge():
                return await self._merge(intent)
            case i.MoveTip():
                return await self._move_tip(intent)
            case i.ReleaseWorkspace():
                await self._ports.repository.release(intent.task)
                return ()
            case i.LendWorkspace():
                await lend(self._ports.repository, intent)
                return ()
            case i.VerifyTip():
                return await self._verify(intent)
            case i.LookAtBranch():
                return await self._look(intent)
            case i.BuildBaseMerge():
                return await self._merge_base(intent)
            case i.Squash():
                made = await self._ports.repository.squash(intent.tip, intent.base)
                return self._onto_base(intent.candidate, made)
            case i.MoveBranch():
                return await self._move_branch(intent)
            case i.LookAtPlan():
                raise AssertionError("the loop reads the plan itself")
            case _:
                assert_never(intent)

    def cancelled(self, intent: i.Intent) -> Facts:
        """The outcome of an effect that a stop cancelled."""
        if not isinstance(intent, i.Play):
            return ()
        usage = e.Usage(known=self._ports.metered)
        report = Report(failure=e.Failure.INTERRUPTED, message="stopped", usage=usage)
        return (self._agents.failed(intent, report),)

    async def _check_base(self, intent: i.CheckBase) -> Facts:
        results = await self._ports.checks.run(intent.commit, intent.checks, "base")
        now = self._ports.clock.now()
        return (e.BaselineFinished(at=now, commit=intent.commit, results=results),)

    async def _save(self, intent: i.SaveWork) -> Facts:
        author = self._clean(intent.author)
        made = await self._ports.repository.snapshot(author, intent.kind, intent.parents)
        now = self._ports.clock.now()
        if isinstance(made, Refused):
            reason = made.reason
            return (e.SnapshotRefused(at=now, task=author.task, n=author.n, reason=reason),)
        taken = e.SnapshotTaken(
            at=now,
            task=author.task,
            n=author.n,
            kind=intent.kind,
            commit=made.commit,
            tree=made.tree,
            changed=made.changed,
            files=made.files,
            created=made.created,
            deleted=made.deleted,
        )
        return (taken,)

    async def _check(self, intent: i.RunChecks) -> Facts:
        results = await self._ports.checks.run(intent.commit, intent.checks, intent.log)
        finished = e.ChecksFinished(
            at=self._ports.clock.now(),
            task=intent.task,
            commit=intent.commit,
            tree=intent.tree,
            results=results,
        )
        return (finished,)

    async def _merge(self, intent: i.BuildMerge) -> Facts:
        author, candidate = self._clean(intent.author), intent.candidate
        made = await self._ports.repository.merge(author, candidate, intent.commit, intent.onto)
        now, task = self._ports.clock.now(), author.task
        if isinstance(made, Conflict):
            files, detail = made.files, made.detail
            return (
                e.MergeConflicted(
                    at=now, task=task, candidate=candidate, files=files, detail=detail
                ),
            )
        commit, tree = made.commit, made.tree
        return (e.MergeBuilt(at=now, task=task, candidate=candidate, commit=commit, tree=tree),)

    async def _move_tip(self, intent: i.MoveTip) -> Facts:
        note = await self._ports.repository.move_tip(intent.tip, intent.commit)
        now = self._ports.clock.now()
        return tuple(
            e.TaskMerged(
                at=now,
                task=merging.task,
                candidate=merging.candidate,
                commit=merging.commit,
                tip=intent.commit,
                note=note if merging is intent.batch[-1] else "",
            )
            for merging in intent.batch
        )

    async def _verify(self, intent: i.VerifyTip) -> Facts:
        problems: tuple[str, ...] = ()
        if intent.work is not None:
            repository = self._ports.repository
            work = in_full(intent.work, await repository.changed(cut_short(intent.work)))
            problems = await repository.verify(intent.commit, expected_after(work))
            problems += await self._ports.checks.parse(intent.commit, changed_in(work))
        results = await self._ports.checks.run(intent.commit, intent.checks, "tip")
        finished = e.VerificationFinished(
            at=self._ports.clock.now(),
            commit=intent.commit,
            tree=intent.tree,
            results=results,
            stage=intent.stage,
            problems=problems,
        )
        return (finished,)

    async def _look(self, intent: i.LookAtBranch) -> Facts:
        try:
            seen = await self._ports.repository.look(intent.branch, intent.tip)
        except RepositoryError as refusal:
            now = self._ports.clock.now()
            return (e.LandRefused(at=now, branch=intent.branch, reason=str(refusal)),)
        found = e.BaseSeen(
            at=self._ports.clock.now(),
            branch=intent.branch,
            commit=seen.commit,
            relation=seen.relation,
            rewound=seen.rewound,
            squashed=seen.squashed,
        )
        return (found,)

    async def _merge_base(self, intent: i.BuildBaseMerge) -> Facts:
        author, candidate = self._clean(intent.author), intent.candidate
        made = await self._ports.repository.merge(author, candidate, intent.tip, intent.base)
        return self._onto_base(candidate, made)

    def _onto_base(self, candidate: int, made: Merged | Conflict) -> Facts:
        now = self._ports.clock.now()
        if isinstance(made, Conflict):
            files, detail = made.files, made.detail
            return (e.BaseMergeConflicted(at=now, candidate=candidate, files=files, detail=detail),)
        return (e.BaseMergeBuilt(at=now, candidate=candidate, commit=made.commit, tree=made.tree),)

    async def _move_branch(self, intent: i.MoveBranch) -> Facts:
        try:
            await self._ports.repository.move_branch(intent.branch, intent.old, intent.new)
        except RepositoryError as refusal:
            now = self._ports.clock.now()
            return (e.LandRefused(at=now, branch=intent.branch, reason=str(refusal)),)
        return (e.Landed(at=self._ports.clock.now(), branch=intent.branch, commit=intent.new),)

    def _clean(self, author: Authorship) -> Authorship:
        """Remove secrets from what goes into a commit message, which others may fetch."""
        redact = self._ports.redact
        return replace(author, title=redact(author.title), summary=redact(author.summary))


async def lend(repository: Repository, intent: i.LendWorkspace) -> None:
    """Prepare the workspace for a person, who sees there if the setup fails."""
    await repository.set_aside(intent.task, intent.begun_after)
    await repository.prepare(
        intent.task, intent.n, intent.start, intent.onto, turn=intent.turn, by_person=True
    )
