"""Commands to a run, and resuming it, called from Python: requests and results are typed."""

from pathlib import Path

import pytest

import plans
import windlass
from desk import Desk
from quick import ENVIRONMENT, quick_run
from windlass.core.events.model import Failure, RunEnd
from windlass.errors import BadInput
from windlass.testing.agents import Play, ScriptedAgent

STUCK = Play(edits={"half.txt": "half"}, failure=Failure.AUTH, message="no key")
PARTS = {"1.1": {"1.1.txt": "1"}, "1.2": {"1.2.txt": "2"}, "1.3": {"1.3.txt": "3"}}


@pytest.fixture
def project(tmp_path: Path) -> windlass.Project:
    """1.1 is merged, 1.2 has met a failure that stopped the run."""
    desk = Desk(tmp_path)
    desk.build({"plan.md": plans.plan_text(plans.SEQUENCE)})
    quick_run(desk.repo, ScriptedAgent({**PARTS, "1.2": STUCK}))
    return windlass.Project(desk.repo, {**ENVIRONMENT, "ANTHROPIC_API_KEY": "dummy-key"})


def test_a_command_says_whether_a_live_run_has_it(project: windlass.Project):
    delivery = windlass.reset(project, "1.2")
    assert (delivery.plan, delivery.live) == ("plan", False)
    assert delivery.message == "Recorded. To continue: windlass resume plan"
    with pytest.raises(BadInput, match="the answer is empty"):
        windlass.answer(project, "1.2", "  ")
    with pytest.raises(BadInput, match="name the task"):
        windlass.give(project)
    ended = windlass.abort(project, confirmed=True)
    assert (ended.plan, ended.live) == ("plan", False)
    state = project.journals.last_run("plan")
    assert state is not None
    assert (state.ended, state.reason) == (RunEnd.ABORTED, "aborted by windlass abort")


def test_resume_without_a_name_continues_the_only_unfinished_run(project: windlass.Project):
    request = windlass.RunRequest(
        typed="plan",
        settings=windlass.RunSettings(sandbox="none", max_turns=2),
        agent=ScriptedAgent(PARTS),
        yes=True,
    )
    result = windlass.resume(project, request=request)
    assert (result.exit_code, result.state.done) == (0, ("1.1", "1.2", "1.3"))
    assert result.state.settings.max_turns == 2
    again = windlass.run(project, result.state.plan, windlass.RunRequest(typed="plan.md"))
    assert again.was_complete
