"""The stages of a run, and what was seen when they were done."""

from collections.abc import Mapping
from typing import Any, assert_never

from msgspec.structs import replace

from windlass.events import model as e
from windlass.state.model import RunState, StageLook


def barriers(state: RunState) -> tuple[str, ...]:
    """The names of the stages that wait for each other, in order; none where nothing does."""
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
    """What was seen of a stage, if that still holds: another merge, and it is looked at again."""
    look = state.looks.get(stage)
    fresh = look is not None and look.merged and look.merged == merges_of(state, stage)
    return look if fresh else None


def looked_at_again(looks: Mapping[str, StageLook]) -> Mapping[str, StageLook]:
    """What was seen, once a person resumes: a stage that was not let pass may be mended by now."""
    return {
        stage: look if look.passed_by is not None else replace(look, merged=())
        for stage, look in looks.items()
    }


def stage_changes(
    state: RunState, event: e.VerificationFinished | e.StagePassed | e.StageRetried
) -> dict[str, Any]:
    """What the fact changes in what is known of its stage."""
    if event.stage is None:
        return {}
    before = state.looks.get(event.stage, StageLook(merged=()))
    merged = merges_of(state, event.stage)
    reason = ""
    match event:
        case e.StagePassed():
            look = replace(before, merged=merged, passed_by=event.by)
            reason = f"stage {event.stage} was let pass by {event.by}"
        case e.StageRetried():
            look = StageLook(merged=(), retried=True)
            reason = f"stage {event.stage} is to be done once more"
        case e.VerificationFinished():
            look = StageLook(merged=merged, problems=event.problems, retried=before.retried)
        case _:
            assert_never(event)
    # A word for a run that has ended lets it be resumed, and is why it rests from then on.
    woken = state.ended is not None and bool(reason)
    ended = {"ended": e.RunEnd.STOPPED, "reason": reason} if woken else {}
    return {"looks": {**state.looks, event.stage: look}, **ended}
