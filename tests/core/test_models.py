"""Each agent's model, and what named it: a message about a wrong one names both."""

from typing import Any

import pytest
from msgspec.structs import replace

from windlass.core.events import model as e
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import RunState, fold
from windlass.core.state.quota import coach_model_source, player_model_source
from worlds import World, plan_of

FILE = e.Configured("model", '"m"', "windlass.toml")
VARIABLE = e.Configured("model", '"m"', "WINDLASS_MODEL")


def state(
    task: dict[str, Any], configured: tuple[e.Configured, ...] | None, **set_: str
) -> RunState:
    plan = replace(plan_of(Task(id="a", title="A", **task)), path="p.md")
    world = World(plan, {}, settings=Settings(**{"model": "m", **set_}))
    first = world.first(None, None)
    assert isinstance(first, e.RunStarted)
    found = fold([replace(first, configured=configured)])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("configured", "source"),
    [
        (None, ""),
        ((), ""),
        ((FILE,), "windlass.toml"),
        ((FILE, VARIABLE), "WINDLASS_MODEL"),
        ((replace(FILE, value='"other"'),), ""),
    ],
    ids=["older journal", "option or default", "file", "variable", "an option over the file"],
)
def test_the_setting_of_both_agents(configured: tuple[e.Configured, ...] | None, source: str):
    run = state({}, configured)
    assert player_model_source(run, "a") == source
    assert coach_model_source(run) == source


def test_the_tasks_own_model_with_its_line():
    assert player_model_source(state({"model": "x", "line": 7}, (FILE,)), "a") == (
        "**Model:** of task a, p.md:7"
    )
    assert player_model_source(state({"model": "x", "path": "t.md"}, ()), "a") == (
        "**Model:** of task a, t.md"
    )


def test_the_coachs_own_model():
    said = e.Configured("coach_model", '"c"', "windlass.toml")
    assert coach_model_source(state({}, (FILE, said), coach_model="c")) == "windlass.toml"
    assert coach_model_source(state({}, (FILE,), coach_model="c")) == "option --coach-model"
