"""Between two stages: a finished stage is verified before the next one begins."""

from datetime import datetime

from windlass.core.events import model as e
from windlass.core.scheduler import evidence, stages
from windlass.core.scheduler.gate import Judgement
from windlass.core.state import Phase, RunPhase, RunState
from windlass.core.state.stages import look_at
from windlass.core.state.transitions import IN_TIP


def steps(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Verify the finished stage; then pass it, or follow the policy."""
    stage = stages.unpassed(state)
    if stage is None or state.phase is RunPhase.VERIFYING:
        return ()
    verdict = evidence.stage_verdict(state, stage)
    if look_at(state, stage) is None or verdict.judgement is Judgement.RUN:
        return (
            e.VerificationStarted(
                at=at,
                commit=state.tip,
                tree=state.tip_tree or "",
                checks=verdict.rerun,
                stage=stage,
            ),
        )
    if not troubles(state):
        return (e.StagePassed(at=at, stage=stage, by="verification"),)
    policy = state.settings.policy.stage
    if policy == "go":
        return (e.StagePassed(at=at, stage=stage, by="policy"),)
    if policy == "retry" and not state.looks[stage].retried:
        return retry(state, stage, by="policy", at=at)
    return ()


def troubles(state: RunState) -> tuple[str, ...]:
    """What keeps the finished stage from passing; empty before it is verified."""
    stage = stages.unpassed(state)
    look = look_at(state, stage) if stage is not None else None
    if stage is None or look is None:
        return ()
    verdict = evidence.stage_verdict(state, stage)
    red = verdict.judgement in {Judgement.RETURN, Judgement.ASK}
    return (*look.problems, *((verdict.reason,) if red else ()))


def retry(state: RunState, stage: str, *, by: str, at: datetime) -> tuple[e.Event, ...]:
    """Redo a stage: reopen its merged and abandoned tasks, with its problems as feedback."""
    why = "\n".join(troubles(state)) if stages.unpassed(state) == stage else ""
    tasks = (state.tasks[id_] for id_ in state.index.stages.get(stage, ()))
    again = [task for task in tasks if task.phase in IN_TIP | {Phase.ABANDONED}]
    reopened = (
        e.TaskReopened(
            at=at,
            task=task.id,
            by=by,
            why=why or None,
            may_stand=task.phase is not Phase.STALE,
        )
        for task in again
    )
    return (e.StageRetried(at=at, stage=stage, by=by), *reopened) if again else ()
