"""SpecFlow's own state files, field by field as the seed has them (S2 S7 S11 S12)."""

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from windlass.core.events.review import CriterionEvidence, Review, TestResults
from windlass.core.events.values import RunEnd
from windlass.core.plan import Plan, with_scenario
from windlass.core.settings import Settings
from windlass.core.state import RunState, TaskState, fold
from windlass.formats import load, project, writes
from windlass.formats.spec.state import with_row
from worlds import World
from worlds import writes as writing

LIVE = ".specflow/execution/SPEC-7-state.json"
ARCHIVED = ".specflow/execution/archive/SPEC-7-state.json"
STATE = ".specflow/STATE.md"

SPEC = """\
---
id: SPEC-7
---
# Handlers

## Task Groups

| Group | Wave | Tasks | Dependencies |
|-------|------|-------|--------------|
| G1 | 1 | Criterion 1 | — |
| G2 | 2 | Criterion 2 | G1 |
| G3 | 2 | Criterion 3 | G1 |
| G4 | 2 | Criterion 4 | G1 |
| G5 | 3 | Criterion 5 | G2, G3, G4 |
"""
PLAN = load("SPEC-7.md", SPEC)
PLAYS = {f"G{n}": writing(f"src/{n}.ts", "x") for n in range(1, 6)}
PLAYS["G4"] = writing("README", "changed")


def met(*_args) -> Review:
    evidence = (CriterionEvidence(criterion=1, met=True, evidence="seen"),)
    passed = TestResults(passed=True)
    return Review(decision="approve", summary="", test_results=passed, evidence=evidence)


def world(plan: Plan = PLAN, plays=PLAYS, coach=met, **settings) -> World:
    settings = Settings(**{"checks": ("test",), "agents": 3, **settings})
    return World(plan, plays, coach=coach, settings=settings)


def told(state: RunState, path: str = LIVE, redact=str) -> dict:
    files = project(state, {}, redact)
    assert files[path] is not None
    return json.loads(files[path])


def words(state: RunState) -> dict[str, str]:
    waves = told(state)["waves"]
    return {group: made["status"] for wave in waves for group, made in wave["results"].items()}


def until(made: World, holds) -> RunState:
    """The state after the first fact with which that holds."""
    for count in range(1, len(made.events) + 1):
        state = fold(made.events[:count])
        if state is not None and holds(state):
            return state
    raise AssertionError("it never held")


def test_a_run_that_mirrors_the_seeds_example():
    made = world()
    made.go()

    # As in the seed: G3 is the one that is still at work, and G5 has to wait for it.
    third = until(made, lambda state: state.tasks["G3"].status == "verifying").tasks["G3"]
    tasks = {**made.state.tasks, "G3": third, "G5": TaskState(id="G5")}
    state = replace(made.state, tasks=tasks, ended=None)
    got = told(state)
    assert list(got) == [
        "spec_id",
        "mode",
        "started",
        "waves",
        "commits",
        "last_checkpoint",
    ]
    assert (got["spec_id"], got["mode"]) == ("SPEC-7", "orchestrated")
    assert got["started"] == f"{state.started_at:%Y-%m-%dT%H:%M:%SZ}"
    one, two, three = got["waves"]
    assert [list(wave) for wave in got["waves"]] == [["id", "groups", "status", "results"]] * 3
    assert (one["id"], one["groups"], one["status"]) == (1, ["G1"], "complete")
    assert (two["id"], two["groups"], two["status"]) == (2, ["G2", "G3", "G4"], "in_progress")
    assert three == {"id": 3, "groups": ["G5"], "status": "pending", "results": {}}
    commits = [
        commit[:7]
        for attempt in made.state.tasks["G1"].attempts
        for commit in (attempt.commit, made.state.tasks["G1"].merge_commit)
    ]
    assert one["results"]["G1"] == {
        "status": "complete",
        "commits": commits,
        "files_created": ["src/1.ts"],
        "files_modified": [],
        "criteria_met": ["Criterion 1"],
        "deviations": [],
        "error": None,
    }
    assert two["results"]["G3"]["status"] == "running"
    assert two["results"]["G3"]["commits"] == []
    assert two["results"]["G4"]["files_created"] == []
    assert two["results"]["G4"]["files_modified"] == ["README"]
    each = [result["commits"] for wave in (one, two) for result in wave["results"].values()]
    assert got["commits"] == [commit for commits in each for commit in commits]


def test_the_file_is_there_from_the_start_and_archived_in_the_end():
    made = world()
    made.go()
    assert writes(PLAN) == (LIVE, ARCHIVED, STATE)
    first = fold(made.events[:1])
    assert first is not None
    got = told(first)
    assert [wave["status"] for wave in got["waves"]] == ["pending"] * 3
    assert got["started"] == got["last_checkpoint"]
    assert got["commits"] == []

    files = project(made.state)
    assert files[LIVE] is None
    assert set(files) == {LIVE, ARCHIVED}
    got = told(made.state, ARCHIVED)
    assert [wave["status"] for wave in got["waves"]] == ["complete"] * 3
    ended = made.state.tasks["G5"].merged_at
    assert got["last_checkpoint"] == f"{ended:%Y-%m-%dT%H:%M:%SZ}"
    assert files[ARCHIVED].startswith('{\n  "spec_id": "SPEC-7",\n')


def test_the_words_of_a_failure():  # S11
    made = world(plays={**PLAYS, "G3": lambda *_: None}, max_turns=1)
    made.go()
    state = made.state
    assert state.ended is RunEnd.FAILED
    assert words(state) | {"G5": "blocked"} == {
        "G1": "complete",
        "G2": "complete",
        "G3": "failed",
        "G4": "complete",
        "G5": "blocked",
    }
    _, two, three = told(state)["waves"]
    assert (two["status"], three["status"]) == ("failed", "failed")
    assert "G3" in two["results"]
    assert two["results"]["G3"]["error"]
    assert three["results"]["G5"]["status"] == "blocked"


def test_what_an_interrupted_run_leaves():
    made = world()
    names = made.go().names
    made = world()
    made.go(crash_at=names.index("agent:during") + 1)
    playing = made.state
    assert words(playing)["G1"] == "running"
    stopped = replace(playing, ended=RunEnd.STOPPED)
    assert told(stopped)["waves"][0]["status"] == "pending"
    attempt = replace(playing.tasks["G1"].last, changed=True, created=("a",), files=("a", "b"))
    task = replace(playing.tasks["G1"], attempts=(attempt,), question="which?")
    stopped = replace(stopped, tasks={**playing.tasks, "G1": task})
    result = told(stopped)["waves"][0]["results"]["G1"]
    assert (result["status"], result["error"]) == ("partial", "which?")
    assert (result["files_created"], result["files_modified"]) == (["a"], ["b"])
    assert told(stopped)["waves"][0]["status"] == "in_progress"


def test_a_group_that_waits_for_a_person_is_blocked():
    complex_ = replace(PLAN, tasks=(replace(PLAN.tasks[0], complexity=8), *PLAN.tasks[1:]))
    made = world(complex_)
    made.go()
    assert words(made.state) == {"G1": "blocked"}
    result = told(made.state)["waves"][0]["results"]["G1"]
    assert result["error"] == made.state.tasks["G1"].question


def test_criteria_beyond_the_spec_and_no_review_meet_nothing():
    def odd(*_args) -> Review:
        seen = CriterionEvidence(criterion=9, met=True, evidence="?")
        return replace(met(), evidence=(*met().evidence, seen))

    made = world(coach=odd)
    made.go()
    got = told(made.state, ARCHIVED)
    assert got["waves"][0]["results"]["G1"]["criteria_met"] == ["Criterion 1"]


def test_what_the_run_says_is_redacted_and_a_scenario_is_no_group():
    made = world(with_scenario(replace(PLAN, e2e="try it")))
    made.go()
    got = told(made.state, ARCHIVED, lambda text: text.replace("src/1.ts", "***"))
    assert got["waves"][0]["results"]["G1"]["files_created"] == ["***"]
    assert [wave["groups"] for wave in got["waves"]] == [["G1"], ["G2", "G3", "G4"], ["G5"]]


def test_single_mode_keeps_no_state():
    plan = load("s.md", "---\nid: SPEC-7\n---\n# All of it\n")
    made = world(plan, {"SPEC-7": writing("a", "1")}, coach=None)
    made.go()
    assert writes(plan) == ()
    assert project(made.state, {STATE: TABLE}) == {}


# STATE.md

TABLE = """\
# STATE

## Queue

| Spec ID | Mode | Progress | Last Updated |
|---------|------|----------|--------------|
| SPEC-7 | no | no | no |

## Execution Status

Track orchestrated execution progress:

| Spec ID | Mode | Progress | Last Updated |
|---------|------|----------|--------------|
| SPEC-6 | orchestrated | Complete | — |

**Status indicators:**
- more
"""
ROW = ("SPEC-7", "orchestrated", "Wave 2/3 (67%)", "2026-01-23 14:45")
LINE = "| SPEC-7 | orchestrated | Wave 2/3 (67%) | 2026-01-23 14:45 |"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_row_is_added_and_then_changed(end):  # S12
    text = TABLE.replace("\n", end)
    added = with_row(text, ROW)
    assert added == text.replace(f"| — |{end}", f"| — |{end}{LINE}{end}")
    assert with_row(added, ROW) == added
    later = with_row(added, (*ROW[:2], "Complete", "2026-01-24 01:02"))
    assert later == added.replace("Wave 2/3 (67%)", "Complete").replace("23 14:45", "24 01:02")


def test_a_row_keeps_what_is_not_its_business():
    head = "## Execution Status\n|Note|Spec|Mode|Progress|Last Updated|\n|-|-|-|-|-|\n"
    text = head + "|mine | **spec-7** |x|y|z|\nmore | SPEC-8 | a | b | c"
    made = with_row(text, ROW)
    changed = "|mine | **spec-7** | orchestrated | Wave 2/3 (67%) | 2026-01-23 14:45 |\n"
    assert made == text.replace("|mine | **spec-7** |x|y|z|\n", changed)
    assert with_row(text, ("SPEC-9", *ROW[1:])) == (
        f"{text}\n| — | SPEC-9 | orchestrated | Wave 2/3 (67%) | 2026-01-23 14:45 |"
    )
    short = with_row(head + "a | SPEC-7", ROW)
    assert short == head + "a | SPEC-7| orchestrated | Wave 2/3 (67%) | 2026-01-23 14:45 "


def test_an_empty_table_gets_its_first_row():
    text = "## Execution Status\n\n| Spec | Mode | Progress | Updated |\n|-|-|-|-|\n"
    assert with_row(text, ROW) == text + LINE + "\n"
    assert with_row(text[:-1], ROW) == text + LINE


@pytest.mark.parametrize(
    "text",
    [
        "# STATE\n",
        "## Execution Status\n\nNothing yet.\n",
        "## Execution Status\n\n| Spec | Mode |\n|-|-|\n",
        f"```\n{TABLE}\n```\n",
        TABLE + "x" * 1_000_001,
    ],
)
def test_a_file_without_such_a_table_is_left_alone(text):
    assert with_row(text, ROW) == text


@given(
    st.lists(st.sampled_from([*TABLE.splitlines(), LINE, "", "|", "a | b", "\ufeff"]), max_size=25)
)
def test_every_other_byte_is_as_it_was(lines):
    text = "\n".join(lines)
    made = with_row(text, ROW)
    before, now = text.split("\n"), made.split("\n")
    if len(now) == len(before):
        assert sum(old != new for old, new in zip(before, now, strict=True)) <= 1
    else:
        # The same line may stand elsewhere, too: the one that came is where they begin to differ.
        pairs = enumerate(zip(before, now, strict=False))
        at = next((i for i, (old, new) in pairs if old != new), len(before))
        assert now.pop(at) == LINE
        assert now == before
    assert with_row(made, ROW) == made


@pytest.mark.parametrize(
    ("ended", "progress"),
    [
        (None, "Wave 1/3 (33%)"),
        (RunEnd.STOPPED, "Paused"),
        (RunEnd.LIMIT, "Paused"),
        (RunEnd.NEEDS_HUMAN, "Paused"),
        (RunEnd.FAILED, "Failed (Wave 2)"),
        (RunEnd.ABANDONED, "Failed (Wave 2)"),
    ],
)
def test_the_words_for_progress(ended, progress):
    made = world()
    made.go()
    state = until(made, lambda state: state.merged == ("G1",))
    shown = project(replace(state, ended=ended), {STATE: TABLE})[STATE]
    assert shown is not None
    at = state.tasks["G1"].merged_at
    assert at is not None
    row = f"| SPEC-7 | orchestrated | {progress} | {at.astimezone(UTC):%Y-%m-%d %H:%M} |\n"
    assert row in shown


def test_progress_when_all_waves_are_complete():
    made = world()
    made.go()
    shown = project(made.state, {STATE: TABLE})[STATE]
    assert shown is not None
    assert "| SPEC-7 | orchestrated | Complete |" in shown
    red = project(replace(made.state, ended=RunEnd.FAILED), {STATE: TABLE})[STATE]
    assert red is not None
    assert "Failed (Wave 3)" in red
