"""`windlass plan`: what people read and what programs read."""

import json

import pytest
from inline_snapshot import snapshot

from desk import Desk

LONG = "Show orders with a title so long that nobody would want to read all of it here"
STAGED = f"""\
# Milestone: Orders

**Checks:** `make test`

## Task 2.1: Store orders

**Stage:** 1
**Files:** `src/store.py`, `tests/test_store.py`

**Acceptance Criteria:**
- [ ] Orders survive a restart

## Task 2.2: {LONG}

**Stage:** 2
**Depends on:** 2.1
**Max turns:** 2

Depends on: nobody reads this

## E2E Scenario

Order something, restart, look at it.
"""


def test_what_people_read(desk: Desk):
    answer = desk.call("plan", "plan.md")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == snapshot("""\
Health check
  plan.md
  dialect milestone · id plan
  2 tasks · 3 criteria

  1.1  Add the endpoint
       needs nothing · 2 criteria · complexity 3 · line 3
       files   src/health.py
       checks  python3 -m pytest -q

  1.2  Document it
       after 1.1 · 1 criterion · line 13

Order
  ○ starts at once · ● waits for all that its line leads up to

  ○  1.1  Add the endpoint
  ●  1.2  Document it

Critical path: 2 of 2 tasks, one after the other
  1.1 → 1.2

Estimate
  none yet: it takes 3 tasks that were merged here, and so far there are none

Warnings
  plan.md:13:
    task 1.2 has no checks, so only the Coach decides whether the work is right;
    set `checks` in windlass.toml; `windlass init` proposes them
""")


def test_notes_stages_and_checks_of_the_plan(desk: Desk):
    desk.write("docs/orders.md", STAGED)
    answer = desk.call("plan", "docs/orders.md")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == snapshot("""\
Orders
  docs/orders.md
  dialect milestone · id orders
  2 tasks · 2 stages · 1 criterion

Stage 1 · 1 task

  2.1  Store orders
       needs nothing · 1 criterion · line 5
       files   src/store.py, tests/test_store.py

Stage 2 · 1 task

  2.2  Show orders with a title so long that nobody would want to read all of i…
       after 2.1 · no criteria · at most 2 turns · line 13

Order
  ○ starts at once · ● waits for all that its line leads up to

     stage 1
  ○  2.1  Store orders
  │  stage 2
  ●  2.2  Show orders with a title so long that nobody would want to read all o…

Critical path: 2 of 2 tasks, one after the other
  2.1 → 2.2

Every task must pass
  make test

It has an E2E scenario; --e2e runs it.

A run stops and asks
  if a check fails on the base: start all the same? (policy.red_base)

Estimate
  none yet: it takes 3 tasks that were merged here, and so far there are none

Passed over
  docs/orders.md:19: only a bold label is a field: write '**Depends on:**'

Warnings
  docs/orders.md:13:
    task 2.2 has no acceptance criteria, so the Coach has only the text to judge
    by; list what must be true when the task is done
""")


def test_what_programs_read(desk: Desk):
    desk.write("docs/orders.md", STAGED)
    answer = desk.call("plan", "docs/orders.md", "--json")
    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == {
        "schema": 1,
        "id": "orders",
        "title": "Orders",
        "dialect": "milestone",
        "base": "main",
        "tasks": [
            {
                "id": "2.1",
                "title": "Store orders",
                "stage": "1",
                "depends_on": [],
                "acceptance_criteria": ["Orders survive a restart"],
                "files": ["src/store.py", "tests/test_store.py"],
                "checks": [],
                "complexity": None,
            },
            {
                "id": "2.2",
                "title": LONG,
                "stage": "2",
                "depends_on": ["2.1"],
                "acceptance_criteria": [],
                "files": [],
                "checks": [],
                "complexity": None,
            },
        ],
        "e2e": "Order something, restart, look at it.",
        "findings": [
            {
                "path": "docs/orders.md",
                "line": 19,
                "severity": "note",
                "message": "only a bold label is a field: write '**Depends on:**'",
                "suggestion": "",
            },
            {
                "path": "docs/orders.md",
                "line": 13,
                "severity": "warning",
                "message": "task 2.2 has no acceptance criteria, so the Coach has only the text"
                " to judge by",
                "suggestion": "list what must be true when the task is done",
            },
        ],
        "asks": [],
        "forecast": {"tasks": 0, "seconds": None, "usd": None},
    }


def test_the_contract_names_every_field(desk: Desk):
    told = json.loads(desk.call("plan", "plan.md", "--json").out)
    assert list(told) == [
        *("schema", "id", "title", "dialect", "base", "tasks", "e2e"),
        *("findings", "asks", "forecast"),
    ]
    assert list(told["forecast"]) == ["tasks", "seconds", "usd"]
    assert list(told["tasks"][0]) == [
        "id",
        "title",
        "stage",
        "depends_on",
        "acceptance_criteria",
        "files",
        "checks",
        "complexity",
    ]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_dry_run_is_the_same(desk: Desk, more: list[str]):
    before = desk.everything()
    dry = desk.call("run", "plan.md", "--dry-run", *more, without=["ANTHROPIC_API_KEY"])
    assert dry == desk.call("plan", "plan.md", *more)
    assert desk.everything() == before


def test_a_plan_is_named_from_where_one_stands_and_shown_from_the_root(desk: Desk):
    desk.write("docs/orders.md", STAGED)
    desk.directory = desk.repo / "docs"
    assert "\n  docs/orders.md\n" in desk.call("plan", "orders.md").out


def test_a_plan_outside_of_the_repository(desk: Desk):
    (desk.root / "orders.md").write_text(STAGED)
    answer = desk.call("plan", str(desk.root / "orders.md"))
    assert answer.code == 0
    assert f"\n  {desk.root}/orders.md:19:\n" in answer.out


def test_another_repository_can_be_named(desk: Desk):
    desk.directory = desk.root
    assert desk.call("plan", "plan.md", "--repo", "repo").code == 0


def test_the_base_of_a_detached_head_is_its_commit(desk: Desk):
    desk.git("checkout", "--quiet", "--detach")
    told = json.loads(desk.call("plan", "plan.md", "--json").out)
    assert told["base"] == desk.git("rev-parse", "HEAD").strip()


def test_the_base_is_the_one_that_is_set(desk: Desk):
    desk.git("branch", "develop")
    desk.write("windlass.toml", 'base = "develop"\n')
    assert json.loads(desk.call("plan", "plan.md", "--json").out)["base"] == "develop"


def test_json_of_a_plan_needs_a_base(desk: Desk):
    """The file alone can be understood; where it would be run cannot, and is said."""
    desk.git("update-ref", "-d", "HEAD")
    assert desk.call("plan", "plan.md").code == 0
    answer = desk.call("plan", "plan.md", "--json")
    assert answer.code == 2
    assert json.loads(answer.out)["error"]["what"] == "this repository has no commit yet"
    assert answer.err == snapshot(
        "windlass: this repository has no commit yet; make a first one: git commit --allow-empty\n"
    )


def test_a_plans_text_cannot_move_the_cursor(desk: Desk):
    bell = "\x1b[2J\x07\x9b31m"
    desk.write(
        "bad.md",
        f"# Plan {bell}\n\n**Checks:** `all {bell}`\n\n"
        f"## Task 1: Title {bell}\n\n**File:** `a{bell}`\n**Checks:** `one {bell}`\n"
        f"**Depends on:** none, see {bell}\n",
    )
    answer = desk.call("plan", "bad.md")
    assert answer.code == 0
    assert not set(answer.out) & {"\x1b", "\x07", "\x9b"}


def test_every_criterion_is_shown_where_asked_for(desk: Desk):
    told = desk.call("plan", "plan.md", "--verbose").out
    assert "  1. GET /health answers 200\n       2. The answer is JSON\n" in told
    assert desk.call("run", "plan.md", "--dry-run", "--verbose").out == told


class TestDialect:
    def test_it_can_be_named(self, desk: Desk):
        desk.write("both.md", "---\nid: T-1\nstatus: backlog\n---\n\n## Task 1: One\n")
        assert "dialect milestone · id both" in desk.call("plan", "both.md").out
        named = desk.call("plan", "both.md", "--dialect", "taskfile")
        assert "dialect taskfile · id T-1" in named.out

    @pytest.mark.parametrize("command", ["plan", "run"])
    def test_one_that_nobody_speaks_is_refused(self, desk: Desk, command: str):
        answer = desk.call(command, "plan.md", "--dialect", "klingon")
        assert answer.code == 2
        assert answer.err.startswith(
            "windlass: plan.md: there is no dialect 'klingon'; the dialects are "
        )


class TestFolders:
    """What a folder's plan is, the dialects say; here is what they are given of it."""

    def test_a_folder_that_is_no_plan_names_the_plans_in_it(self, desk: Desk):
        desk.write("docs/orders.md", STAGED)
        desk.write("docs/notes.md", "# Notes\n\nNothing to do.\n")
        answer = desk.call("plan", "docs")
        assert answer == (
            2,
            "",
            "windlass: docs: the folder as a whole is no plan; name a file in it: docs/orders.md\n",
        )

    def test_a_folder_without_any(self, desk: Desk):
        desk.write("docs/logo.png", b"\x89PNG")
        assert desk.call("plan", "docs").err == (
            "windlass: docs: no file in this folder can be a plan;"
            " a plan's files end in .md, .markdown, .xml, .yaml, .yml\n"
        )
