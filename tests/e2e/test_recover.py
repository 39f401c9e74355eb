"""Killed, and its journal thrown away: with the real agent program, git alone brings it back."""

# X10

import json
import shutil

import pytest

import plans

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "moment",
    [
        "a → ",
        pytest.param("COACH  a Write a.txt · approve", marks=pytest.mark.sweep),
        pytest.param("DONE  a", marks=pytest.mark.sweep),
        "COACH  b Write b.txt · approve",
        pytest.param("DONE  c", marks=pytest.mark.sweep),
        pytest.param("CHECKS  d Write d.txt · 1 pass", marks=pytest.mark.sweep),
    ],
)
def test_a_run_killed_anywhere_is_recovered_and_goes_on(stage, moment: str):
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND))
    code, said = play.killed_at(moment, "run", "plan.md", "--agents", "2")
    assert code != 0, said
    assert play.none_left()
    had = play.git("for-each-ref", "refs/windlass")
    done = {line.split()[2] for line in said.splitlines() if "DONE  " in line}
    played = {task: play.conversations(task) for task in plans.DIAMOND}
    reviewed = {task: play.reviews(task) for task in plans.DIAMOND}
    shutil.rmtree(play.repo / ".windlass")

    code, out, err = play.run("recover")
    assert code == 0, err
    assert "windlass resume plan" in out
    assert play.git("for-each-ref", "refs/windlass") == had, "what is pinned stays as it is"
    code, _, err = play.run("resume", "plan", "--agents", "2")
    assert code == 0, err
    assert sorted(play.merges()) == ["a", "b", "c", "d"], "each is merged once"
    for task in done:
        assert play.conversations(task) == played[task], "nothing merged is done again"
        assert play.reviews(task) == reviewed[task]
    if "approve" in moment:
        task = moment.split()[1]
        assert play.conversations(task) == played[task], "what was approved is not played again"
        assert play.reviews(task) == reviewed[task], "nor reviewed: its verdict is pinned"
    for task in plans.DIAMOND:
        assert play.git("show", f"windlass/plan/integration:{task}.txt") == f"by {task}\n"
    told = json.loads(play.run("status", "plan", "--json")[1])
    assert told["status"] == "completed"
