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
Health check (plan, milestone): 2 tasks

  1.1  Add the endpoint
      plan.md:3 · first · 2 criteria
      files: src/health.py
      checks: python3 -m pytest -q

  1.2  Document it
      plan.md:13 · after 1.1 · 1 criterion

The longest way through is 2 tasks.
""")


def test_notes_stages_and_checks_of_the_plan(desk: Desk):
    desk.write("docs/orders.md", STAGED)
    answer = desk.call("plan", "docs/orders.md")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == snapshot("""\
Orders (orders, milestone): 2 tasks

  2.1  Store orders
      docs/orders.md:5 · first · 1 criterion
      files: src/store.py, tests/test_store.py

  2.2  Show orders with a title so long that nobody would want to read all o…
      docs/orders.md:13 · after 2.1 · 0 criteria

The longest way through is 2 tasks.
Every task: make test
It has an E2E scenario, which is tried with --e2e.
docs/orders.md:19: passed over: only a bold label is a field: write '**Depends on:**'
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
    }


def test_the_contract_names_every_field(desk: Desk):
    told = json.loads(desk.call("plan", "plan.md", "--json").out)
    assert list(told) == ["schema", "id", "title", "dialect", "base", "tasks", "e2e"]
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
    assert "\n      docs/orders.md:5 · first" in desk.call("plan", "orders.md").out


def test_a_plan_outside_of_the_repository(desk: Desk):
    (desk.root / "orders.md").write_text(STAGED)
    answer = desk.call("plan", str(desk.root / "orders.md"))
    assert answer.code == 0
    assert f"{desk.root}/orders.md:5" in answer.out


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
    assert (answer.code, answer.out) == (2, "")
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
