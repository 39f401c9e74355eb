"""What a task's file says of its run, field by field as the seed has it (G9 G11)."""

import pytest
from msgspec.structs import replace

from windlass.core.events.review import CriterionEvidence, Issue, Review, TestResults
from windlass.core.events.values import RunEnd
from windlass.core.plan import Task
from windlass.core.settings import Settings
from windlass.core.state import RunState, fold
from windlass.formats import frontmatter, project
from windlass.ports import Report
from worlds import World, plan_of, writes

TEXT = """\
---
id: TASK-1
status: backlog  # or blocked, in_review
---
# Body --- with dashes

---
token: hunter2
"""
TASK = Task(id="TASK-1", title="One", acceptance_criteria=("it works",))
SEEN = (CriterionEvidence(criterion=1, met=True, evidence="seen"),)


def review(**more) -> Review:
    passed = TestResults(passed=True)
    return Review(
        **{"decision": "approve", "summary": "", "test_results": passed, "evidence": SEEN, **more}
    )


def feedback(said: str) -> Review:
    issue = Issue(severity="must_fix", category="bug", description=said)
    return review(decision="feedback", issues=(issue,), feedback=said)


def world(coach, *, task: Task = TASK, max_turns: int = 5) -> World:
    def play(_n: int, turn: int, files: dict[str, str]) -> Report:
        files["a"] = f"turn {turn}"
        return Report(summary=f"did {turn} with hunter2 " + "x" * (600 if turn == 2 else 0))

    settings = Settings(checks=("test",), max_turns=max_turns)
    return World(plan_of(task, dialect="taskfile"), {task.id: play}, coach=coach, settings=settings)


def shown(state: RunState, redact=str) -> dict:
    made = project(state, {"p.md": TEXT}, redact)["p.md"]
    assert frontmatter.body(made) == frontmatter.body(TEXT)
    assert "  # or blocked, in_review\n" in made
    found = frontmatter.read("p.md", made)
    assert found is not None
    return found.data


def test_every_field_of_the_seeds_example():
    made = world(lambda _task, turn, _files: feedback("Missing edge") if turn == 1 else review())
    made.go()
    data = shown(made.state, lambda text: text.replace("hunter2", "***"))

    assert list(data) == ["id", "status", "feature_build"]
    assert data["status"] == "in_review"
    build = data["feature_build"]
    seeds = ["current_turn", "max_turns", "worktree_path", "started_at", "turns"]
    assert list(build) == seeds
    assert (build["current_turn"], build["max_turns"]) == ("2", "5")
    assert build["worktree_path"] == ".windlass/plans/p/workspaces/TASK-1"
    first, second = made.state.tasks["TASK-1"].attempts
    assert build["started_at"] == f"{first.started_at:%Y-%m-%dT%H:%M:%SZ}"
    one, two = build["turns"]
    fields = ["turn", "player_summary", "coach_decision", "feedback", "timestamp"]
    assert list(one) == list(two) == fields
    assert one["turn"] == "1"
    assert one["player_summary"].strip() == "did 1 with ***"
    assert one["coach_decision"] == "feedback"
    assert "Missing edge" in one["feedback"]
    assert one["timestamp"] == f"{first.finished_at:%Y-%m-%dT%H:%M:%SZ}"
    assert two["coach_decision"] == "approve"
    assert two["feedback"] is None
    assert len(two["player_summary"]) == 500
    assert two["player_summary"].endswith("x…")
    assert two["timestamp"] == f"{second.finished_at:%Y-%m-%dT%H:%M:%SZ}"


def test_the_word_at_every_step():
    made = world(lambda *_: None)
    made.go()
    words = []
    for count in range(1, len(made.events) + 1):
        state = fold(made.events[:count])
        assert state is not None
        texts = project(state, {"p.md": TEXT})
        word = shown(state)["status"] if texts else "untouched"
        words += [word] if words[-1:] != [word] else []
    assert words == ["untouched", "in_progress", "in_review"]


def test_without_approval_it_is_blocked():
    made = world(lambda _task, turn, _files: feedback(f"no {turn}"), max_turns=2)
    made.go()
    data = shown(made.state)
    assert made.state.ended is RunEnd.FAILED
    assert data["status"] == "blocked"
    assert [turn["coach_decision"] for turn in data["feature_build"]["turns"]] == ["feedback"] * 2


def test_red_checks_are_no_decision_of_the_coach():
    made = World(
        plan_of(TASK, dialect="taskfile"),
        {"TASK-1": writes("a", "1")},
        rule=lambda _command, files: "a" not in files,
        settings=Settings(checks=("test",), max_turns=1),
    )
    made.go()
    [turn] = shown(made.state)["feature_build"]["turns"]
    assert turn["coach_decision"] is None
    assert turn["feedback"]


def test_a_task_that_waits_for_a_person_before_its_first_turn():  # G8
    made = world(lambda *_: None, task=Task(id="TASK-1", title="One", complexity=8, max_turns=3))
    made.go()
    data = shown(made.state)
    assert data["status"] == "blocked"
    build = data["feature_build"]
    assert (build["current_turn"], build["max_turns"], build["turns"]) == ("0", "3", [])
    assert build["worktree_path"] is None


@pytest.mark.parametrize(
    ("ended", "word"),
    [
        (None, "in_progress"),
        (RunEnd.STOPPED, "in_progress"),
        (RunEnd.FAILED, "blocked"),
        (RunEnd.NEEDS_HUMAN, "blocked"),
        (RunEnd.COMPLETED, "in_review"),
    ],
)
def test_merged_is_no_success_until_the_run_is_one(ended, word):
    made = world(lambda *_: None)
    made.go()
    assert shown(replace(made.state, ended=ended))["status"] == word


def test_an_interrupted_player_is_no_turn_of_its_own():  # G10
    made = world(lambda *_: None)
    names = made.go().names
    made = world(lambda *_: None)
    made.go(crash_at=names.index("agent:during") + 1)
    made.go()
    assert [attempt.n for attempt in made.state.tasks["TASK-1"].attempts] == [1, 2]
    assert [t["turn"] for t in shown(made.state)["feature_build"]["turns"]] == ["1"]


def test_a_new_position_alone_is_no_news():
    made = world(lambda *_: review())
    made.go()
    text = project(made.state, {"p.md": TEXT})["p.md"]
    assert project(made.state, {"p.md": text}) == {}
    edited = text.replace("current_turn: 1", "current_turn: 9")
    assert project(made.state, {"p.md": edited})["p.md"] == text


def test_a_file_that_is_gone_or_broken_is_left_alone():
    made = world(lambda *_: None)
    made.go()
    assert project(made.state) == {}
    assert project(made.state, {"p.md": "---\nid: 'half\n---\n"}) == {}
