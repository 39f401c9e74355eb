"""The stages of a run, and the verification of each finished one."""

from collections.abc import Mapping

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.state.model import RunState, StageLook


def barriers(state: RunState) -> tuple[str, ...]:
    """The names of the stages that wait for each other, in order."""
    if state.plan.stages:
        return tuple(stage.name for stage in state.plan.stages)
    if not state.settings.barrier:
        return ()
    return tuple(name for name in state.index.unsettled if name)


def merges_of(state: RunState, stage: str) -> tuple[str, ...]:
    """The merge commits of a stage's tasks, in the plan's order."""
    tasks = (state.tasks[id_] for id_ in state.index.stages.get(stage, ()))
    return tuple(task.merge_commit for task in tasks if task.merge_commit is not None)


def look_at(state: RunState, stage: str) -> StageLook | None:
    """The verification of a stage, unless one of its tasks was merged since."""
    look = state.looks.get(stage)
    fresh = look is not None and look.merged and look.merged == merges_of(state, stage)
    return look if fresh else None


def looked_at_again(looks: Mapping[str, StageLook]) -> Mapping[str, StageLook]:
    """After a resume, stages that have not passed are verified again: they may be fixed."""
    return {
        stage: look if look.passed_by is not None else replace(look, merged=())
        for stage, look in looks.items()
    }


def stage_looked_at(state: RunState, event: e.VerificationFinished) -> RunState:
    """The run with the verification of its stage, if the fact is about a stage."""
    if event.stage is None:
        return state
    retried = event.stage in state.looks and state.looks[event.stage].retried
    merged = merges_of(state, event.stage)
    look = StageLook(merged=merged, problems=event.problems, retried=retried)
    return replace(state, looks={**state.looks, event.stage: look})


def stage_settled(state: RunState, event: e.StagePassed | e.StageRetried) -> RunState:
    """The run after a stage passed or is to be redone; a run that had ended can be resumed."""
    if isinstance(event, e.StagePassed):
        before = state.looks.get(event.stage, StageLook(merged=()))
        look = replace(before, merged=merges_of(state, event.stage), passed_by=event.by)
        reason = f"stage {event.stage} was passed by {event.by}"
    else:
        look = StageLook(merged=(), retried=True)
        reason = f"stage {event.stage} is to be redone"
    after = replace(state, looks={**state.looks, event.stage: look})
    if state.ended is None:
        return after
    return replace(after, ended=e.RunEnd.STOPPED, reason=reason)
