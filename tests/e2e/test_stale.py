"""A merged task whose text is edited is not done: the real command line and the real program."""

import json

import pytest

import plans
from e2e.test_meanwhile import Listening, slow
from waiting import eventually

pytestmark = pytest.mark.e2e

TASKS = {"1.1": (), "1.2": ("1.1",)}
CHECK = "grep -q ONE 1.1.txt"


def edit(play) -> None:
    """A new criterion and a new check for the task that is merged; the check is false."""
    plan = play.repo / "plan.md"
    new = f"- [ ] 1.1.txt is there\n- [ ] 1.1.txt says ONE\n\n**Checks:** `{CHECK}`\n"
    plan.write_text(plan.read_text().replace("- [ ] 1.1.txt is there\n", new))


def status(play) -> dict:
    code, out, err = play.run("status", "plan", "--json")
    assert code == 0, err
    return json.loads(out)


def tip_passes(play) -> bool:
    """Whether the new check is true of what was merged."""
    shown = play.git("show", "windlass/plan/integration:1.1.txt")
    return "ONE" in shown


def test_a_new_check_of_a_merged_task_is_never_passed_over(stage):  # B7
    play = stage(plans.files(TASKS, state_file=True), plans.book(TASKS))
    main = play.git("rev-parse", "main")
    assert play.run("run", "plan.md", "--task", "1.1")[0] == 0
    edit(play)

    code, _, said = play.run("resume", "plan")
    assert code == 3, said
    assert "1 stale, 1 completed" in said
    assert f"`{CHECK}` fails" in said
    assert not tip_passes(play)
    told = status(play)
    assert told["status"] == "needs_human"
    assert told["tasks"]["1.1"]["status"] == "stale"
    assert told["tasks"]["1.1"]["stale"]["checks"] == {CHECK: "fail"}
    assert told["tasks"]["1.2"]["status"] == "completed"
    kept = json.loads((play.repo / "state/plan_state.json").read_text())
    assert kept["completed_tasks"] == ["1.2"]
    assert kept["task_results"]["1.1"]["status"] == "needs_human"

    for command in (("land", "plan"), ("land", "plan", "--yes"), ("pr", "plan")):
        code, _, said = play.run(*command)
        assert code == 3, said
        cures = ("windlass retry plan:1.1", "windlass approve plan:1.1", "restore the old text")
        assert all(cure in said for cure in ("1.1 is stale", *cures))
    assert play.git("rev-parse", "main") == main

    # A person may accept the text, but no check turns green by that.
    code, out, said = play.run("approve", "1.1")
    assert code == 0, said
    assert f"`{CHECK}` fails on the tip; the run is not complete before the tip passes it." in out
    code, _, said = play.run("resume", "plan")
    assert code == 3, said
    assert f"the tip does not pass: `{CHECK}` fails" in said
    assert play.run("land", "plan")[0] == 3
    assert play.git("rev-parse", "main") == main

    play.git("checkout", "--quiet", "--", "plan.md")
    code, _, said = play.run("resume", "plan")
    assert code == 0, said
    assert play.run("land", "plan")[0] == 0
    assert play.git("rev-parse", "main") != main


def test_an_edit_of_a_merged_task_in_a_live_run_is_seen_before_it_ends(stage):  # B7
    play = stage(plans.files(TASKS), plans.book(TASKS, **{"1.2": slow("1.2", 5)}))
    main = play.git("rev-parse", "main")
    with play.windlass("run", "plan.md", "--land") as process:
        run = Listening(process)
        eventually(lambda: play.conversations("1.2"), timeout=60)
        edit(play)
        code, said = run.end()
    assert code == 3, said
    assert "1.1 is stale" in said
    assert status(play)["tasks"]["1.1"]["status"] == "stale"
    assert play.git("rev-parse", "main") == main
