"""What happens between two stages: the one that is done is looked at before the next begins."""

from datetime import datetime

from windlass.core.events import model as e
from windlass.core.scheduler import evidence, stages
from windlass.core.scheduler.gate import Judgement
from windlass.core.state import Phase, RunPhase, RunState
from windlass.core.state.stages import look_at
from windlass.core.state.transitions import IN_TIP


def steps(state: RunState, at: datetime) -> tuple[e.Event, ...]:
    """Look at the stage that is done; let the next begin, or do what the policy says."""
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
    """What keeps the stage that was looked at from passing; none before it was looked at."""
    stage = stages.unpassed(state)
    look = look_at(state, stage) if stage is not None else None
    if stage is None or look is None:
        return ()
    verdict = evidence.stage_verdict(state, stage)
    red = verdict.judgement in {Judgement.RETURN, Judgement.ASK}
    return (*look.problems, *((verdict.reason,) if red else ()))


def retry(state: RunState, stage: str, *, by: str, at: datetime) -> tuple[e.Event, ...]:
    """A stage once more: all its tasks that are done or given up, told what was wrong."""
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
