"""What other tools' state files claim: read without trust, and never a traceback."""  # X11

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.state import Phase, apply
from windlass.formats import claims
from windlass.formats.state_files import Claim, json_object
from windlass.views.story import line_of
from worlds import World, plan_of, writes

MILESTONE = {
    "milestone_id": "m3",
    "plan_path": "plans/m3.md",
    "completed_tasks": ["1.1", "1.2"],
    "failed_tasks": ["1.3"],
    "task_results": {"1.1": {"commit": "abc"}, "1.2": {"status": "completed"}},
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*MILESTONE, "tasks", "waves", "results", "commits", "status"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


def test_the_milestone_tools_state():
    told = claims("state/m3_state.json", json.dumps(MILESTONE))
    assert told is not None
    assert told.plan == "plans/m3.md"
    assert told.tasks == {
        "1.3": Claim(status="failed", done=False),
        "1.1": Claim(status="completed", done=True, commits=("abc",)),
        "1.2": Claim(status="completed", done=True),
    }


def test_a_specs_execution_state():
    done = {"status": "complete", "commits": ["abc1234", 7]}
    waves = [{"id": 1, "results": {"G1": done, "G2": {"status": "partial"}}}, {"id": 2}, "odd"]
    told = claims("x-state.json", json.dumps({"spec_id": "SPEC-1", "waves": waves}))
    assert told is not None
    assert told.plan == ".specflow/specs/SPEC-1.md"
    assert told.tasks == {
        "G1": Claim(status="complete", done=True, commits=("abc1234",)),
        "G2": Claim(status="partial", done=False),
    }


def test_the_layers_execute_state():
    tasks = {
        "L0-001": {"status": "completed", "commits": [{"hash": "abc"}, {"hash": 7}, "odd"]},
        "L1-001": {"status": "failed", "commits": "odd"},
    }
    text = json.dumps({"schema_version": "2.0", "tasks": tasks})
    told = claims("work/tasks/execute-state.json", text)
    assert told is not None
    assert told.plan == "work/tasks"
    assert told.tasks == {
        "L0-001": Claim(status="completed", done=True, commits=("abc",)),
        "L1-001": Claim(status="failed", done=False),
    }


def test_a_task_files_frontmatter():
    told = claims("tasks/T-1.md", "---\nid: T-1\nstatus: in_review\n---\n# T\n")
    assert told is not None
    assert (told.plan, told.tasks) == (
        "tasks/T-1.md",
        {"T-1": Claim(status="in_review", done=True)},
    )
    waiting = claims("tasks/T-1.md", "---\nid: T-1\nstatus: backlog\n---\n")
    assert waiting is not None
    assert not waiting.tasks["T-1"].done


@pytest.mark.parametrize(
    "text",
    ["", "hello", "[]", "{}", "[" * 100_000, '{"plan_path": 1}', "---\nid: 'x\n---\n",
     "---\nid: [a]\nstatus: b\n---\n", '{"completed_tasks": "1.1", "plan_path": ""}'],
)  # fmt: skip
def test_other_texts_claim_nothing(text):
    assert claims("x", text) is None


@given(JSON)
def test_no_json_is_too_odd(value):
    claims("x.json", json.dumps(value))
    json_object(json.dumps(value))


def test_an_adopted_task_is_done_and_what_depends_on_it_may_start():
    a, b = Task(id="a", title="a"), Task(id="b", title="b", depends_on=("a",))
    world = World(plan_of(a, b), {"b": writes("b", "1")})
    start = world.first(None, None)
    state = apply(None, start)
    adopted = e.TaskAdopted(at=start.at, task="a", source="old.json", commit=None)
    after = apply(state, adopted)
    assert after.tasks["a"].phase is Phase.MERGED
    assert after.done == ("a",)
    line = line_of(adopted, after)
    assert line is not None
    assert line.text == "a a · no commit named · by old.json"
    world.journal.append([start, adopted], expected=0)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == [("b", 1)]


def test_a_run_whose_every_task_was_adopted_is_verified_and_done():
    world = World(plan_of(Task(id="a", title="a")), {})
    start = world.first(None, None)
    adopted = e.TaskAdopted(at=start.at, task="a", source="old.json", commit="abc")
    world.journal.append([start, adopted], expected=0)
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    assert world.agent.calls == []
