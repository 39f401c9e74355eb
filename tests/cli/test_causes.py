"""When something fails, every place in which a person looks names the cause."""  # B16

import json
import os
import pty
import subprocess
import sys

import pytest

from desk import Answer, Desk
from formats import SPECKIT
from quick import quick_run
from scripted_run import plan, scripted_run
from windlass.core.events.model import Failure
from windlass.core.settings import Settings
from windlass.testing.agents import ScriptedAgent

PLAN = plan("Add it", "Test it")
RED_TEST = """\
import unittest

class Cart(unittest.TestCase):
    def test_total(self):
        self.assertEqual(sum([1, 2]), 4)

    def test_empty(self):
        pass
"""
NOISE = "for n in $(seq 3000); do echo compiling part $n; done; "
UNITTEST = "python3 -m unittest"


def made(tmp_path, files: dict[str, str], toml: str) -> Desk:
    desk = Desk(tmp_path)
    desk.build({"plan.md": PLAN, "windlass.toml": toml, **files})
    return desk


def run(desk: Desk, *args: str, plan: str = "plan.md", **more: str) -> Answer:
    """`windlass run` to its end, with a scripted agent."""
    with scripted_run(desk, plan, *args, **more) as process:
        out, err = process.communicate(timeout=90)
    return Answer(process.returncode, out, err)


def everywhere(desk: Desk, ended: Answer) -> dict[str, str]:
    """All places in which a person looks for the cause."""
    log, status = desk.call("log", "plan"), desk.call("status", "plan")
    assert log.code == status.code == 0
    _, _, end = ended.err.partition("\n\n")
    return {"screen": ended.err, "end": end, "log": log.out, "status": status.out}


def test_a_setup_that_fails_at_the_base_is_named_everywhere(tmp_path):
    setup = '[workspace]\nsetup = ["echo one", "uv-that-is-missing sync"]\n'
    desk = made(tmp_path, {}, f'checks = ["true", "test -e plan.md"]\n{setup}')
    ended = run(desk)
    assert ended.code == 3
    for place, text in everywhere(desk, ended).items():
        assert "setup command `uv-that-is-missing sync` failed with exit code 127" in text, place
        assert "uv-that-is-missing: not found" in text, place
        assert "`test -e plan.md` did not run" in text, place
    assert "SETUP  base · `echo one` runs\n" in ended.err
    assert "SETUP  base · `echo one` · " in ended.err
    facts = desk.call("log", "plan", "--json", "--kind", "BaselineFinished").out
    failed = json.loads(facts)["event"]["results"][0]["setup"]
    assert (failed["command"], failed["exit_code"]) == ("uv-that-is-missing sync", 127)
    assert "not found" in failed["output"]


def test_a_program_that_is_missing_is_named_everywhere(tmp_path):
    desk = made(tmp_path, {}, 'checks = ["mocha-that-is-missing --reporter spec"]\n')
    ended = run(desk)
    assert ended.code == 3
    for place, text in everywhere(desk, ended).items():
        assert "`mocha-that-is-missing --reporter spec` unable to start · exit code 127" in text
        assert "mocha-that-is-missing: not found" in text, place


def test_a_red_base_shows_what_was_red(tmp_path):
    desk = made(tmp_path, {"test_cart.py": RED_TEST}, f"checks = ['{NOISE}{UNITTEST}']\n")
    ended = run(desk)
    assert ended.code == 3
    for place, text in everywhere(desk, ended).items():
        assert "FAIL: test_total (test_cart.Cart" in text, place
        assert "compiling part" not in text.replace("echo compiling part", ""), place
    assert "AssertionError: 3 != 4" in desk.call("log", "plan").out
    assert "checks 1 fail on the base" in ended.err
    again = desk.call("run", "plan.md")
    assert again.code == 3
    assert "the base itself does not pass" in again.err
    assert "windlass resume plan.md --red-base go" in again.err
    assert "FAIL: test_total" in asked_on_a_terminal(desk)


def asked_on_a_terminal(desk: Desk, *args: str) -> str:
    """What `windlass run` asks at a terminal about a run that is not finished."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "windlass", "run", "plan.md", *args]
    process = subprocess.Popen(
        command, cwd=desk.repo, env=desk.environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    with os.fdopen(ours, "rb+", buffering=0) as terminal:
        while b"What now?" not in said:
            said += terminal.read(4096)
        process.kill()
        process.wait(30)
    return said.decode(errors="replace")


def test_a_setup_that_fails_in_a_workspace_is_named_everywhere(tmp_path):
    """The base has nothing to check, so the Player's workspace is the first to be set up."""
    desk = made(tmp_path, {}, '[workspace]\nsetup = ["npm-that-is-missing ci"]\n')
    ended = run(desk)
    assert ended.code == 3
    for place, text in everywhere(desk, ended).items():
        assert "setup command `npm-that-is-missing ci` failed with exit code 127" in text, place
        assert "npm-that-is-missing: not found" in text, place
        assert "no turn used" not in text, place
    assert "FAILED  1.1 Add it · environment · turn 1 goes on" in ended.err
    task = desk.call("status", "plan:1.1")
    assert task.code == 0
    assert "npm-that-is-missing: not found" in task.out


APART = PLAN.replace("**Acceptance", "**Depends on:** none\n\n**Acceptance")
FAILING = "{ echo no disk; exit 9; }"


@pytest.mark.parametrize(
    ("checks", "setup"),
    [
        pytest.param("", f"test ! -e 1.1.txt || {FAILING}", id="of the Coach"),
        pytest.param('"true"', f"test ! -e 1.1.txt || {FAILING}", id="of the checks"),
        pytest.param('"true"', f"test ! -e 1.1.txt -o ! -e 1.2.txt || {FAILING}", id="of a merge"),
    ],
)
def test_a_setup_that_fails_in_another_checkout_is_named_too(tmp_path, checks: str, setup: str):
    toml = f'checks = [{checks}]\n[workspace]\nsetup = ["{setup}"]\n'
    desk = made(tmp_path, {"plan.md": APART}, toml)
    ended = run(desk, "--agents", "2")
    assert ended.code == 3, ended.err
    for place, text in everywhere(desk, ended).items():
        assert "failed with exit code 9" in text, place
        assert "no disk" in text, place


def test_a_failed_check_is_shown_from_where_it_matters(tmp_path):
    """To the Player, in the log, in the status of the task, in the report and at the end."""
    desk = made(tmp_path, {"test_cart.py": RED_TEST.replace("4)", "3)")}, "")
    agent = ScriptedAgent({"1.1": {"test_cart.py": RED_TEST}, "1.2": {"b": ""}})
    checks = (f"{NOISE}{UNITTEST}",)
    quick_run(desk.repo, agent, settings=Settings(checks=checks, max_turns=2))
    second = next(brief for brief in agent.briefs if brief.turn == 2)
    headline, rule, first, *_ = second.feedback.splitlines()
    assert headline.endswith("failed with exit code 1.")
    assert set(rule.strip()) == {"="}
    assert first.strip().startswith("FAIL: test_total")
    assert "compiling part 2999" not in second.feedback
    assert "AssertionError: 3 != 4" in second.prompt
    shown = {
        "log": desk.call("log", "plan:1.1").out,
        "task": desk.call("status", "plan:1.1").out,
        "report": desk.call("report", "plan", "--output", "-").out,
    }
    for place, text in shown.items():
        assert "AssertionError: 3 != 4" in text, place
        assert "compiling part 2999" not in text, place
    logs = desk.repo.glob(".windlass/plans/plan/runs/*/logs/1.1-1.log")
    assert any("compiling part 2999" in path.read_text() for path in logs), "the log has all of it"


LONG = "\n".join(["What is done:", *(f"- part {n} of the work" for n in range(40)), "The last."])


def test_a_question_and_a_summary_are_whole_in_log_status_and_end(tmp_path):
    desk = made(tmp_path, {}, "")
    ended = run(desk, FAIL="1.1", SAYS=LONG)
    assert ended.code == 3
    screen, _, end = ended.err.partition("\n\n")
    assert "… 36 more lines: windlass log plan:1.1" in screen
    assert "The last." not in screen
    assert "The last." in end
    assert "The last." in desk.call("log", "plan").out
    assert "The last." in desk.call("status", "plan:1.1").out
    overview = desk.call("status", "plan").out
    assert "more lines: windlass status plan:1.1" in overview


def test_a_summary_that_the_screen_folds_is_whole_at_the_end(tmp_path):
    desk = made(tmp_path, {}, "")
    ended = run(desk, SUMMARY=LONG)
    assert ended.code == 0
    screen, _, end = ended.err.partition("\n\n")
    assert "more lines: windlass log plan:1.1" in screen
    assert "The last." not in screen
    assert end.count("The last.") == 2
    assert "The last." in desk.call("log", "plan").out
    assert "The last." in desk.call("status", "1.2").out


def test_status_of_a_task_names_what_it_does_not_know(tmp_path):
    desk = made(tmp_path, {}, "")
    assert run(desk).code == 0
    missing = desk.call("status", "plan:9.9")
    assert missing.code == 2
    assert "9.9" in missing.err
    shown = json.loads(desk.call("status", "plan:1.1", "--json").out)
    assert shown["status"] == "completed"


def test_another_limit_of_turns_is_said_as_it_will_be(tmp_path):
    """`another 2 turns` is never followed by 5: the question knows the settings of the resume."""
    desk = made(tmp_path, {}, 'checks = ["test ! -e 1.1.txt"]\n')
    assert run(desk, "--max-turns", "2").code == 1
    assert "give 1.1 another 2 turns" in asked_on_a_terminal(desk)
    assert "give 1.1 another 3 turns" in asked_on_a_terminal(desk, "--max-turns", "3")
    again = run(desk, "--retry", "--yes", "--max-turns", "3")
    assert "1.1 Add it · turn 3/5" in again.err


def test_an_agent_that_fails_uses_no_turn_and_says_so_in_one_way(tmp_path):
    desk = made(tmp_path, {}, "")
    ended = run(desk, FAIL="1.1", SAYS="no")
    assert f"1.1 Add it · {Failure.STALLED} · turn 1 goes on" in ended.err
    assert "turn 1 " in desk.call("status", "plan").out
    assert "no turn used" not in ended.err + desk.call("log", "plan").out


def test_work_of_windlass_is_not_called_another_tools(tmp_path):
    desk, tasks = Desk(tmp_path), "specs/001/tasks.md"
    desk.build({tasks: SPECKIT.replace("[ ] T002", "[x] T002"), "windlass.toml": ""})
    first = run(desk, plan=tasks)
    assert first.code == 0, first.err
    assert "1 task marked as done will be done again; `windlass adopt` takes" in first.err
    assert "[X] T001" in (desk.repo / tasks).read_text(), "Windlass has ticked it"
    again = run(desk, "--restart", plan=tasks)
    assert again.code == 0
    assert "2 tasks that run " in again.err
    assert "adopt" not in again.err
    assert "another tool" not in again.err + desk.call("plan", tasks).out
