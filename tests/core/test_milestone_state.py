"""The milestone tool's own state file, field by field."""  # K2

import json
from dataclasses import dataclass, field
from datetime import datetime

from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings, StateFileSettings
from windlass.core.state import RunState, apply
from windlass.formats import project
from windlass.ports import Report
from worlds import World, plan_of, writes


def told(world: World) -> dict:
    files = project(world.state, {"state/p_state.json": "{}"})
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


def test_it_is_written_only_where_something_asks_for_it():
    world = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")})
    world.go()
    assert project(world.state) == {}, "the plan's own format needs no such file"
    there = {"state/p_state.json": "not even JSON"}
    assert list(project(world.state, there)) == list(there), "another tool has one"
    wanted = replace(
        world.state,
        settings=replace(world.state.settings, state_files=StateFileSettings(milestone=True)),
    )
    assert list(project(wanted)) == list(there), "the settings ask for it"
    adopted = e.TaskAdopted(at=world.state.at, task="a", source="state/p_state.json", commit=None)
    first = next(event for event in world.events if isinstance(event, e.RunStarted))
    assert list(project(apply(apply(None, first), adopted))) == list(there), "it was adopted"


@dataclass
class OrchestratorState:
    """As the milestone tool declares it: exactly these fields."""

    milestone_id: str
    plan_path: str
    started_at: datetime
    current_task_index: int = 0
    completed_tasks: list[str] = field(default_factory=list)
    failed_tasks: list[str] = field(default_factory=list)
    task_results: dict[str, dict[str, object]] = field(default_factory=dict)
    e2e_status: str | None = None
    task_attempt_counts: dict[str, int] = field(default_factory=dict)
    task_errors: dict[str, list[str]] = field(default_factory=dict)
    e2e_attempt_count: int = 0
    e2e_errors: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> "OrchestratorState":
        """Any other field is a TypeError here, as it is there."""
        found = json.loads(text)
        return cls(**{**found, "started_at": datetime.fromisoformat(found["started_at"])})


def test_the_milestone_tool_itself_can_load_it_at_every_moment_of_a_run():
    tasks = (Task(id="1.1", title="a"), Task(id="1.2", title="b", depends_on=("1.1",)))
    plays = {"1.1": writes("a", "1"), "1.2": lambda *_: None}
    world = World(plan_of(*tasks), plays, settings=Settings(max_turns=1))
    world.go()
    assert world.state.ended is e.RunEnd.FAILED
    state: RunState | None = None
    loaded = list[OrchestratorState]()
    for event in world.events:
        state = apply(state, event)
        text = project(state, {"state/p_state.json": "{}"})["state/p_state.json"]
        loaded.append(OrchestratorState.read(text or ""))
    assert (loaded[0].milestone_id, loaded[0].completed_tasks) == ("p", [])
    assert loaded[-1].completed_tasks == ["1.1"]
    assert loaded[-1].failed_tasks == ["1.2"]


def test_other_dialects_ask_for_no_such_file():
    world = World(plan_of(Task(id="a", title="a"), dialect="native"), {"a": writes("a", "1")})
    world.go()
    assert project(world.state) == {}


def test_a_secret_that_json_would_write_otherwise_is_taken_out_all_the_same():
    """Redacted as text of JSON, its quotes would hide it."""
    secret = 'pass"word\\1'
    world = World(
        plan_of(Task(id="a", title="a")),
        {"a": lambda *_: Report(summary=f"it is {secret}")},
        settings=Settings(max_turns=1),
    )
    world.go()
    there = {"state/p_state.json": "{}"}
    [text] = project(world.state, there, lambda said: said.replace(secret, "***")).values()
    assert text is not None
    assert "it is ***" in text
    assert "word" not in text.replace("***", "")
