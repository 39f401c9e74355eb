"""What programs are given is what the published schemas promise."""

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec.json import encode
from msgspec.structs import replace

from windlass.cli.screens.jsonl import JsonScreen
from windlass.core.events import model as e
from windlass.core.events.review import Review
from windlass.core.plan import Plan, Stage, Task
from windlass.core.state import RunState, apply
from windlass.formats import project
from windlass.ports import Brief
from windlass.testing.agents import approval
from windlass.views.progress import progress
from worlds import World, plan_of, writes

SCHEMAS = Path(__file__).parents[1] / "docs/schemas"
A = Task(id="a", title="a", stage="1")
B = Task(id="b", title="b", depends_on=("a",), stage="2")


def holds(name: str, told: Any) -> None:
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(told, schema)


def ran(dialect: str = "milestone", path: str = "p.md") -> World:
    """A run with a turn sent back by a check, and one task after another."""
    stages = (Stage(name="1"), Stage(name="2"))
    plan: Plan = replace(plan_of(A, B), dialect=dialect, path=path, stages=stages)

    def improves(_n: int, turn: int, files: dict[str, str]) -> None:
        files["a"] = "RED" if turn == 1 else "GREEN"

    world = World(
        plan,
        {"a": improves, "b": writes("b", "1")},
        rule=lambda _c, files: files.get("a") != "RED",
    )
    world.go()
    assert world.state.ended is e.RunEnd.COMPLETED
    return world


def test_the_status():
    holds("status", json.loads(encode(progress(ran().state, 7))))


@pytest.mark.parametrize(
    ("name", "dialect", "path"),
    [
        ("milestone-state", "milestone", "p.md"),
        ("spec-state", "spec", "p.md"),
        ("execute-state", "layers", "tasks"),
    ],
)
def test_the_state_files(name, dialect, path):
    """At every step of a run."""
    state: RunState | None = None
    there = {"state/p_state.json": "{}"}
    for event in ran(dialect, path).events:
        state = apply(state, event)
        for text in project(state, there).values():
            if text is not None:
                holds(name, json.loads(text))


def test_every_line_of_a_run():
    stream = io.StringIO()
    screen = JsonScreen(stream)
    state: RunState | None = None
    for seq, event in enumerate(ran().events, 1):
        state = apply(state, event)
        screen.entry(e.Entry(seq=seq, event=event), state)
    assert state is not None
    screen.result(state, seq)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert {"init", "CoachAnswered", "TurnReturned", "result"} <= {line["type"] for line in lines}
    for line in lines:
        holds("events", line)


def test_a_review():
    brief = Brief(task="a", n=1, role="coach", prompt="", model="m", criteria=("it works",))
    review: Review = approval(brief)
    holds("review", json.loads(encode(review)))


def test_what_is_wrong_is_seen():
    told = json.loads(encode(progress(ran().state, 7)))
    del told["metrics"]
    with pytest.raises(jsonschema.ValidationError):
        holds("status", told)
