"""The plan's E2E scenario with the real agent: tried on the tip, mended, or put to a person."""

import json

import pytest

import plans
from windlass.testing.model.script import Book, Call, Script
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

ONE = {"a": ()}
SCENARIO = "\n## E2E Test Scenario\n\n```bash\ncat hello.txt  # expect: hello\n```\n"
TRY = Call("Bash", {"command": "cat hello.txt", "description": "Try it"})
FAILS = reviewing(
    TRY,
    decision="feedback",
    summary="The first step fails.",
    test_results={"passed": False, "failures": ["cat hello.txt"]},
    evidence=[{"criterion": 1, "met": False, "evidence": "cat: hello.txt: No such file"}],
    issues=[{"severity": "must_fix", "category": "e2e", "description": "hello.txt is missing"}],
)


def files() -> dict[str, str]:
    given = plans.files(ONE, state_file=True)
    return {**given, "plan.md": given["plan.md"] + SCENARIO}


def book(text: str = "hello\n", **tries: Script) -> Book:
    mend = playing(write("hello.txt", text), summary="Wrote hello.txt.")
    given = plans.book(ONE).scripts
    told = {f"Role: E2E|Turn: {turn[1:]}\n": script for turn, script in tries.items()}
    return Book(scripts={**given, "Role: Player|Task: e2e\n": mend, **told})


def milestone(play) -> dict:
    return json.loads((play.repo / "state/plan_state.json").read_text())


def test_a_scenario_that_holds(stage):  # K11
    play = stage(files(), book(t0=reviewing(TRY)))
    code, _, err = play.run("run", "plan.md", "--e2e")
    assert code == 0, err
    assert play.merges() == ["a"]
    assert "everything is merged: tried on" in err
    assert milestone(play)["e2e_status"] == "passed"


def test_what_fails_is_mended_tried_again_and_merged(stage):  # K11
    play = stage(files(), book(t0=FAILS, t1=reviewing(TRY)))
    code, _, err = play.run("run", "plan.md", "--e2e")
    assert code == 0, err
    assert play.merges() == ["a", "e2e"]
    assert play.git("show", "windlass/plan/integration:hello.txt") == "hello\n"
    told = milestone(play)
    assert (told["e2e_status"], told["e2e_attempt_count"]) == ("passed", 2)
    assert "hello.txt is missing" in told["e2e_errors"][0]
    assert told["completed_tasks"] == ["a"]


def test_what_cannot_be_mended_is_put_to_a_person_with_all_tasks_kept(stage):  # K11
    play = stage(files(), book("helo\n", t0=FAILS, t1=FAILS))
    code, _, err = play.run("run", "plan.md", "--e2e", "--max-turns", "1")
    assert code == 3, err
    assert play.merges() == ["a"]
    assert "the scenario still fails after 1 repair: " in err
    assert milestone(play)["e2e_status"] == "needs_human"
    play.replace_book(book(t2=reviewing(TRY)))
    code, _, err = play.run("resume", "plan.md", "--e2e")
    assert code == 0, err
    assert play.merges() == ["a", "e2e"]
