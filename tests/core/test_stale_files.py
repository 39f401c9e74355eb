"""What state files, frontmatter and ticks say of a task that is stale.

And what Windlass itself writes into a plan's files never makes a task stale.
"""

# B7 B10 G9 S2 X2
import json
from pathlib import PurePath

import pytest
from msgspec.structs import replace

import plans
from core import test_layers_state, test_spec_state, test_speckit_state, test_taskfile_state
from windlass.core.events import model as e
from windlass.core.plan import Plan, compare
from windlass.core.state import RunState, apply
from windlass.formats import claims, frontmatter, load, project
from worlds import World, writes

MILESTONE = load("plan.md", plans.plan_text({"1.1": (), "1.2": ("1.1",)}))
LAYERS = test_layers_state.plan_of(
    test_layers_state.task("T1", "1-core"), test_layers_state.task("T2", "1-core")
)


def finished(plan: Plan) -> RunState:
    made = World(plan, {task.id: writes(task.id, "1") for task in plan.tasks})
    made.go()
    assert made.state.ended is e.RunEnd.COMPLETED
    return made.state


def with_stale(state: RunState) -> RunState:
    """The same, once the first task says something else."""
    first, *others = state.plan.tasks
    edited = replace(first, text=f"{first.text}\n\nAnd well.", acceptance_criteria=("well",))
    plan = replace(state.plan, tasks=(edited, *others))
    stale = apply(state, e.PlanRevised(at=state.at, plan=plan))
    assert stale.stale == (first.id,)
    return stale


def told(state: RunState) -> dict:
    [text] = [
        text
        for path, text in project(state, {"state/plan_state.json": "{}"}).items()
        if path.endswith(".json") and text
    ]
    return json.loads(text)


def test_the_milestone_tool_is_not_told_that_it_is_completed():
    state = with_stale(finished(MILESTONE))
    shown = told(state)
    assert shown["completed_tasks"] == ["1.2"]
    assert shown["current_task_index"] == 1
    result = shown["task_results"]["1.1"]
    assert (result["status"], result["error"]) == (
        "needs_human",
        "stale: merged for an older text of the plan",
    )
    claimed = claims("state/plan_state.json", json.dumps(shown))
    assert claimed is not None
    assert [id_ for id_, claim in claimed.tasks.items() if claim.done] == ["1.2"]


def test_the_layers_folder_is_told_that_it_failed_and_why():
    state = with_stale(finished(LAYERS))
    shown = told(state)
    task = shown["tasks"]["T1"]
    assert (task["status"], task["merged_at"]) == ("failed", None)
    assert task["errors"][-1]["message"] == "stale: merged for an older text of the plan"
    assert (shown["status"], shown["completed_at"]) == ("stopped", None)
    assert shown["metrics"]["completed_tasks"] == 1
    assert shown["layers"]["1-core"]["status"] == "in_progress"
    assert [each["status"] for each in shown["merge_queue"]] == ["pending", "merged"]


def test_specflow_is_told_that_it_is_partial_and_of_no_criterion_that_no_one_has_seen():
    whole = finished(test_spec_state.PLAN)
    state = with_stale(whole)
    shown = told(state)
    group = shown["waves"][0]["results"]["G1"]
    assert (group["status"], group["error"]) == (
        "partial",
        "stale: merged for an older text of the plan",
    )
    assert shown["waves"][0]["status"] != "complete"
    assert "well" not in group["criteria_met"]
    assert test_spec_state.LIVE in project(state, {}), "it is not archived as a success"


def test_a_task_file_is_blocked_and_says_why():
    path = "tasks/one.md"
    made = test_taskfile_state.world(test_taskfile_state.review)
    made.agent.coach = None
    made.go()
    plan = replace(made.state.plan, path=path)
    state = replace(made.state, plan=plan)
    text = project(state, {path: test_taskfile_state.TEXT})[path]
    assert text is not None
    assert "\nstatus: in_review" in text
    text = project(with_stale(state), {path: text})[path]
    assert text is not None
    assert "\nstatus: blocked" in text
    found = frontmatter.read(path, text)
    assert found is not None
    assert found.data["feature_build"]["stale"] == "stale: merged for an older text of the plan"
    text = project(state, {path: text})[path]
    assert text is not None
    assert "stale" not in text


def test_the_tick_of_a_stale_task_is_taken_back_and_no_other():
    path, text = test_speckit_state.PATH, test_speckit_state.TEXT
    state = finished(load(path, text))
    ticked = project(state, {path: text})[path]
    assert ticked is not None
    assert "- [X] T001 a\n" in ticked
    stale = with_stale(state)
    shown = project(stale, {path: ticked})[path]
    assert shown == ticked.replace("- [X] T001 a\n", "- [ ] T001 a\n")
    assert project(stale, {path: shown}) == {}
    assert project(state, {path: shown})[path] == ticked, "and given again"
    by_hand = ticked.replace("[X] T001 a", "[x] T001 a")
    assert project(stale, {path: by_hand}) == {}, "which a person may have ticked"


SPECKIT = """\
# Tasks: X

## Phase 1: Setup

- [ ] T001 Write a.py
  - [ ] it runs
- [ ] T002 [P] Write b.py after T001

## Phase 2: Story

- [ ] T003 Write c.py
"""
TASKFILE = """\
---
id: TASK-1
title: One
status: backlog
---
# One

## Acceptance Criteria

- [ ] it works
"""
TEXTS = {"specs/001-x/tasks.md": SPECKIT, "tasks/one.md": TASKFILE}


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: PurePath(path).name)
def test_what_windlass_writes_into_a_plan_makes_no_task_stale(path: str):
    text = TEXTS[path]
    plan = load(path, text)
    made = World(plan, {task.id: writes(task.id, "1") for task in plan.tasks})
    written = set[str]()

    def follow(entry: e.Entry, state: RunState) -> None:
        nonlocal text
        text = project(state, {path: text}).get(path) or text
        written.add(text)
        edits = compare(plan, load(path, text))
        assert not edits.changed
        assert not edits.added
        assert not edits.removed

    made.observers.append(follow)
    made.go()
    assert len(written) > 1
    made.go(revised=load(path, text))
    assert made.state.stale == ()
    assert made.state.ended is e.RunEnd.COMPLETED
