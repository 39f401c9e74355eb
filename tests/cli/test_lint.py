"""Plans are linted: slips, gaps and all errors at once, before anything is spent.

Issue 15, line 6. With the real command line.
"""

import json

import pytest

from desk import Desk
from scripted_run import plan as plan_of
from scripted_run import scripted_run

SLIPS = """\
# Milestone: Hello

## Task 1.1: Say hello

**Complexity:** 8

**Acceptence Criteria:**
- [ ] it says hello

## Tsk 1.2: Say bye

**Depend on:** 1.1
"""
BROKEN = """\
# Milestone: Hello

## Task 1.1: Say hello

**Complexity:** huge

## Tsk 1.2: Say bye

## Task 1.3: Wave

**Depends on:** 1.2
"""


def test_slips_are_named_with_file_and_line_and_what_was_meant(desk: Desk):
    desk.write("docs/hello.md", SLIPS)
    answer = desk.call("plan", "docs/hello.md")
    assert (answer.code, answer.err) == (0, "")
    shown = " ".join(answer.out.split())
    for words in (
        (
            "docs/hello.md:7: 'acceptence criteria' is not read; did you mean"
            " '**Acceptance Criteria:**'?"
        ),
        "docs/hello.md:10: 'Tsk 1.2: Say bye' is not a task; did you mean 'Task 1.2: Say bye'?",
        "docs/hello.md:12: 'depend on' is not read; did you mean '**Depends on:**'?",
        "docs/hello.md:3: task 1.1 has no acceptance criteria",
        "docs/hello.md:3: task 1.1 has no checks",
        "before 1.1: complexity 7 or more",
    ):
        assert words in shown
    told = json.loads(desk.call("run", "docs/hello.md", "--dry-run", "--json").out)
    assert [(each["line"], each["severity"]) for each in told["findings"]] == [
        *((7, "warning"), (10, "warning"), (12, "warning"), (3, "warning"), (3, "warning"))
    ]
    assert told["findings"][0]["suggestion"] == "did you mean '**Acceptance Criteria:**'?"
    assert told["asks"] == ["1.1"]


@pytest.mark.parametrize("command", [["plan"], ["run"], ["run", "--dry-run"]])
def test_all_errors_of_a_plan_are_printed_and_then_its_slips(desk: Desk, command: list[str]):
    desk.write("docs/hello.md", BROKEN)
    answer = desk.call(*command, "docs/hello.md")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines()[-3:] == [
        "windlass: docs/hello.md:5: 'complexity' cannot be 'huge'; write a number from 0 to 10",
        (
            "windlass: docs/hello.md:9: task '1.3' depends on '1.2', which is not in the plan;"
            " the plan has 1.1, 1.3"
        ),
        (
            "windlass: docs/hello.md:7: warning: 'Tsk 1.2: Say bye' is not a task;"
            " did you mean 'Task 1.2: Say bye'?"
        ),
    ]


def test_programs_read_all_of_them_too(desk: Desk):
    desk.write("docs/hello.md", BROKEN)
    answer = desk.call("plan", "docs/hello.md", "--json")
    told = json.loads(answer.out)["error"]
    assert (answer.code, told["where"], told["exit"]) == (2, "docs/hello.md:5", 2)
    assert [(each["line"], each["severity"]) for each in told["findings"]] == [
        *((5, "error"), (9, "error"), (7, "warning"))
    ]
    desk.write("docs/hello.md", "## Task 1: a\n**Complexity:** huge\n")
    alone = json.loads(desk.call("plan", "docs/hello.md", "--json").out)["error"]
    assert "findings" not in alone


def test_of_very_many_errors_some_are_printed(desk: Desk):
    tasks = "".join(f"## Task {n}: x\n**Complexity:** huge\n" for n in range(50))
    desk.write("many.md", tasks)
    lines = desk.call("plan", "many.md").err.splitlines()
    assert len(lines) == 32
    assert lines[-1] == "windlass: and 19 more in the plan"


def test_a_run_begins_with_the_warnings_in_short(desk: Desk):
    slips = "".join(f"**Max turn:** {n}\n\n" for n in range(3))
    desk.write("plan.md", f"{plan_of('a')}\n{slips}")
    with scripted_run(desk, "plan.md", "--sandbox", "none") as process:
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    warned = [line.split("WARNING  ")[1] for line in (out + err).splitlines() if "WARNING" in line]
    first = len(plan_of("a").splitlines()) + 2
    words = "'max turn' is not read; did you mean '**Max turns:**'?"
    assert warned[:4] == [
        *(f"plan.md:{first + 2 * n}: {words}" for n in range(3)),
        "1 more in the plan: windlass plan plan.md",
    ]


def test_what_past_runs_took_is_the_estimate_of_the_next(desk: Desk):
    desk.write("plan.md", plan_of("a", "b", "c"))
    assert "Estimate\n  none yet: it takes 3 tasks" in desk.call("plan", "plan.md").out
    with scripted_run(desk, "plan.md", "--sandbox", "none") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    desk.write("next.md", plan_of("d", "e"))
    shown = desk.call("plan", "next.md").out
    # A Player and a Coach cost 0.25 each, and both tasks take both.
    assert "Estimate\n  $1.00 to $1.00, " in shown
    assert "from 3 tasks merged here: the middle half of them" in shown
    told = json.loads(desk.call("plan", "next.md", "--json").out)["forecast"]
    assert (told["tasks"], told["usd"]) == (3, {"low": 1.0, "high": 1.0})
    assert 0 < told["seconds"]["low"] <= told["seconds"]["high"]


def test_a_journal_that_cannot_be_read_is_left_out_of_the_estimate(desk: Desk):
    broken = desk.repo / ".windlass" / "plans" / "other" / "journal.db"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"this is no journal" * 100)
    answer = desk.call("plan", "plan.md")
    assert answer.code == 0, answer.err
    assert "none yet" in answer.out
