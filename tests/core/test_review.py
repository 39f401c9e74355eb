"""The Coach's answer as a schema, and the lines that people read of it."""  # G5

import msgspec
import pytest

from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer, Review, schema
from windlass.core.plan import Task
from windlass.ports import Report
from windlass.views.closing import closing
from windlass.views.story import line_of
from worlds import NOON, World, plan_of, writes


def test_the_schema_is_one_piece_and_names_every_field_of_the_seed():
    told = schema(Review)
    assert "$ref" not in msgspec.json.encode(told).decode()
    assert told["type"] == "object"
    assert {"decision", "summary", "test_results", "issues", "feedback"} <= told[
        "properties"
    ].keys()
    issue = told["properties"]["issues"]["items"]["properties"]
    assert issue.keys() == {"severity", "category", "description", "file", "suggestion"}
    results = told["properties"]["test_results"]["properties"]
    assert results.keys() == {"passed", "coverage", "failures"}
    assert schema(PlayerAnswer)["required"] == ["summary"]


def test_what_does_not_fit_is_no_review():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"decision": "APPROVE"}, Review)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(None, Review)


def told(world: World, kind: type) -> list[str]:
    state = world.state
    lines = [line_of(event, state) for event in world.events if isinstance(event, kind)]
    return [" ".join((line.word, line.text, *line.details)) for line in lines if line is not None]


def test_a_failed_coach_is_told():
    left = [Report(summary="approved!")]
    world = World(
        plan_of(Task(id="a", title="A")),
        {"a": writes("a", "1")},
        coach=lambda *_: left.pop() if left else None,
    )
    world.go()
    why = "it gave no answer that fits the schema"
    assert told(world, e.CoachFailed) == [
        f"FAILED a A · the Coach, inconclusive · turn 1 goes on {why}"
    ]


def test_what_a_coach_changed_is_told():
    def coach(_task: str, _turn: int, files: dict[str, str]) -> None:
        files["README"] = "owned"

    world = World(plan_of(Task(id="a", title="A")), {"a": writes("a", "1")}, coach=coach)
    world.go()
    [line] = told(world, e.CoachAnswered)
    assert "it changed README in its own checkout; that does not count" in line


def test_what_people_say_is_told_and_how_to_say_it():
    complex_task = Task(id="c", title="C", complexity=8)
    world = World(plan_of(complex_task), {"c": writes("c", "1")})
    world.go()
    lines = closing(world.state, plan="p.md", workspaces="ws")
    assert any("windlass approve p:c" in detail for line in lines for detail in line.details)
    state = world.state
    passed = line_of(e.CheckpointPassed(at=NOON, task="c", by="a person"), state)
    answered = line_of(e.Answered(at=NOON, task="c", text="yes", by="a person"), state)
    assert passed is not None
    assert passed.text == "c C · approved by a person"
    assert answered is not None
    assert answered.text == "c C · yes"


def test_how_to_answer_a_question_is_told():
    world = World(
        plan_of(Task(id="a", title="A")),
        {"a": lambda *_: Report(answer=PlayerAnswer(summary="s", question="which?"))},
    )
    world.go()
    lines = closing(world.state, plan="p.md", workspaces="ws")
    assert any('windlass answer p:a "…"' in detail for line in lines for detail in line.details)
