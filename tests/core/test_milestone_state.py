"""The milestone tool's own state file, field by field."""  # K2

import json

from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.formats import project
from windlass.ports import Report
from worlds import World, plan_of, writes


def told(world: World) -> dict:
    files = project(world.state, 42)
    assert list(files) == ["state/p_state.json"]
    return json.loads(files["state/p_state.json"])


def test_a_finished_milestone():
    tasks = (Task(id="1.1", title="a"), Task(id="1.2", title="b", depends_on=("1.1",)))
    world = World(plan_of(*tasks), {"1.1": writes("a", "1"), "1.2": writes("b", "1")})
    world.go()
    state = told(world)
    result = state.pop("task_results")["1.2"]
    assert state == {
        "milestone_id": "p",
        "plan_path": "p.md",
        "started_at": world.state.started_at.isoformat(),
        "current_task_index": 2,
        "completed_tasks": ["1.1", "1.2"],
        "failed_tasks": [],
        "e2e_status": None,
        "task_attempt_counts": {"1.1": 1, "1.2": 1},
        "task_errors": {},
        "e2e_attempt_count": 0,
        "e2e_errors": [],
        "windlass": {"run": "r1", "seq": 42},
    }
    assert result["status"] == "completed"
    assert result["output"] == "did 1.2"
    assert result["cost_usd"] == 0.015
    assert result["error"] is None
    assert result["commit"] == world.state.tip


def test_a_failed_task_says_why():
    world = World(
        plan_of(Task(id="a", title="a")), {"a": lambda *_: None}, settings=Settings(max_turns=1)
    )
    world.go()
    state = told(world)
    assert state["failed_tasks"] == ["a"]
    assert state["task_results"]["a"]["status"] == "failed"
    assert "Nothing was changed" in state["task_errors"]["a"][0]


def test_other_dialects_ask_for_no_such_file():
    world = World(plan_of(Task(id="a", title="a"), dialect="native"), {"a": writes("a", "1")})
    world.go()
    assert project(world.state, 1) == {}


def test_a_secret_that_json_would_write_otherwise_is_taken_out_all_the_same():
    """Redacted as text of JSON, its quotes would hide it."""
    secret = 'pass"word\\1'
    world = World(
        plan_of(Task(id="a", title="a")),
        {"a": lambda *_: Report(summary=f"it is {secret}")},
        settings=Settings(max_turns=1),
    )
    world.go()
    [text] = project(world.state, 1, {}, lambda said: said.replace(secret, "***")).values()
    assert text is not None
    assert "it is ***" in text
    assert "word" not in text.replace("***", "")
