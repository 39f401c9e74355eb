"""Specs with Task Groups are plans, whatever they look like otherwise (S1)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.plan import Plan
from windlass.errors import PlanError
from windlass.formats import DIALECTS, load, spec, writes
from windlass.formats.dialect import Source

HEAD = "---\nid: SPEC-7\nstatus: draft\n---\n\n# SPEC-7: Partition handlers\n\n"
BODY = """\
## Context

Why it is so.

## Requirements

Handlers for `topics`.

## Acceptance Criteria

1. **Types exist**: as exported
2. All tests pass
   - also the slow ones

## Implementation Tasks

### Task Groups

| Group | Wave | Tasks | Dependencies | Est. Context |
|-------|------|-------|--------------|--------------|
| G1 | 1 | Create `src/types.ts` interfaces | — | ~15% |
| G2 | 2 | Create partition-handler | G1 | ~20% |
| G3 | 2 | Create topic-handler | G1 | ~20% |
| G4 | 3 | Wire handlers | G2, G3 | ~25% |

### Execution Plan

| Wave | Groups | Parallel? | Workers |
|------|--------|-----------|---------|
| 1 | G1 | No | 1 |
| 2 | G2, G3 | Yes | 2 |
| 3 | G4 | No | 1 |

---

## Audit History

### Audit v1
Use more groups.
"""


def read(text: str) -> Plan:
    return load("specs/SPEC-7.md", text)


def grouped(*rows: str, header: str = "Group | Wave | Tasks | Dependencies", more: str = "") -> str:
    delimiter = "|" + "-|" * (header.count("|") + 1)
    table = "\n".join(f"| {row} |" for row in rows)
    return f"{HEAD}## Task Groups\n\n| {header} |\n{delimiter}\n{table}\n\n{more}"


def after(text: str) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends_on for task in read(text).tasks}


def said(text: str) -> list[str]:
    return [f"{note.line}: {note.text}" for note in read(text).notes]


def test_each_group_is_a_task_and_each_wave_a_stage():
    plan = read(HEAD + BODY)
    assert (plan.id, plan.title, plan.dialect) == ("SPEC-7", "Partition handlers", "spec")
    assert [(task.id, task.stage, task.depends_on, task.line) for task in plan.tasks] == [
        ("G1", "1", (), 28),
        ("G2", "2", ("G1",), 29),
        ("G3", "2", ("G1",), 30),
        ("G4", "3", ("G2", "G3"), 31),
    ]
    assert [stage.name for stage in plan.stages] == ["1", "2", "3"]
    assert plan.task("G2").title == "Create partition-handler"
    assert plan.task("G1").files == ("src/types.ts",)
    assert [note.text for note in plan.notes] == ["'Audit History' is a report: not read"]


def test_a_group_is_told_its_row_and_the_spec_but_not_what_was():
    text = read(HEAD + BODY).task("G2").text
    assert text.startswith("Group G2 of SPEC-7 (Partition handlers), wave 2 of 3.")
    assert "- **Tasks:** Create partition-handler\n- **Dependencies:** G1\n" in text
    assert "**Est. Context:** ~20%" in text
    assert "Handlers for `topics`." in text
    assert "| G4 | 3 | Wire handlers |" in text, "what others do, so that it is left to them"
    assert "Use more groups" not in text
    assert "status: draft" not in text
    assert not text.endswith("---")


def test_overall_criteria_bind_the_group_that_comes_last():
    plan = read(HEAD + BODY)
    assert plan.task("G1").acceptance_criteria == ("Create `src/types.ts` interfaces",)
    assert plan.task("G4").acceptance_criteria == (
        "Wire handlers",
        "**Types exist**: as exported",
        "All tests pass\n- also the slow ones",
    )


def test_several_last_groups_are_bound_as_far_as_their_part_goes():
    criteria = "## Acceptance Criteria\n\n- All is green\n"
    plan = read(grouped("G1 | 1 | a | -", "G2 | 2 | b | G1", "G3 | 2 | c | G1", more=criteria))
    for task in plan.tasks[1:]:
        assert task.acceptance_criteria[1] == "As far as this group's part goes: All is green"
    plan = read(grouped("G1 | 1 | a | -", "G2 | 1 | b | G1", more=criteria))
    assert plan.task("G2").acceptance_criteria == ("b", "All is green")
    assert plan.task("G1").acceptance_criteria == ("a",)


def test_criteria_go_to_the_groups_that_the_spec_assigns_them_to():
    criteria = """\
## 5. Acceptance Criteria

- G1: by label
- **G1, G3** — by labels
- at its end (G2)
- [G3] in brackets
- of all

### Group G2: its own
- by heading

### Structural
- of all too
"""
    rows = ("G1 | 1 | a | -", "G2 | 1 | b | -", "G3 | 1 | c | -", "G4 | 2 | d | G1")
    plan = read(grouped(*rows, more=criteria))
    got = {task.id: task.acceptance_criteria[1:] for task in plan.tasks}
    assert got["G1"] == ("G1: by label", "**G1, G3** — by labels")
    assert got["G2"] == ("at its end (G2)", "by heading")
    assert got["G3"] == ("**G1, G3** — by labels", "[G3] in brackets")
    assert got["G4"] == ("of all", "of all too")


def test_criteria_go_to_the_groups_that_name_their_numbers():
    criteria = "## Acceptance Criteria\n\n- one\n- two\n- three\n- AC7: seven\n"
    header = "Group | Tasks | Depends on | AC"
    rows = ("G1 | a | - | 1-2", "G2 | b (AC3, AC-99) | - | ", "G3 | c | G1, G2 | AC7")
    plan = read(grouped(*rows, header=header, more=criteria))
    assert [task.acceptance_criteria[1:] for task in plan.tasks] == [
        ("one", "two"),
        ("three",),
        ("AC7: seven",),
    ]


def test_labelled_criteria_are_whole():
    criteria = """\
## Acceptance Criteria

### AC1: Put
Given a, when b:
- c

### Others
- d

**AC2: Remove**
- e

**AC3: Batch**

```
f
```

---
closing words
"""
    [task] = read(HEAD + criteria).tasks
    assert task.acceptance_criteria == (
        "AC1: Put\nGiven a, when b:\n- c",
        "d",
        "**AC2: Remove**\n- e",
        "**AC3: Batch**\n\n```\nf\n```",
    )


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ("## Acceptance Criteria\n\nIt works.\nAlways.\n", ("It works.\nAlways.",)),
        ("## Acceptance Criteria\n\n| # | What |\n|-|-|\n| 1 | it works |\n", ("1 | it works",)),
        ("**Acceptance Criteria:**\n\n- [ ] a\n- [x] b\n", ("a", "b")),
        ("## Acceptance Criteria\n", ()),
        ("## Acceptance Criteria\n\n**AC1: a**\n- b\n", ("**AC1: a**\n- b",)),
        ("## Acceptance Criteria\n\n-\n- a\n", ("a",)),
        ("### Acceptance Criteria Status\n- [x] a\n", ()),
        ("## Execution Summary\n### Acceptance Criteria\n- [x] a\n", ()),
    ],
)
def test_criteria_of_a_spec_without_groups(criteria, expected):
    assert read(HEAD + criteria).tasks[0].acceptance_criteria == expected


def test_a_group_may_have_a_section_of_its_own():
    more = """\
## Details

### G1: Types and logic (no async)

Only for G1.

**Acceptance Criteria:**
- strict

### Group G2

#### G2: inner

#### Acceptance Criteria
- fast

## Acceptance Criteria
- whole
"""
    plan = read(grouped("G1 | 1 | a | -", "G2 | 2 | | G1", more=more))
    one, two = plan.tasks
    assert one.title == "Types and logic"
    assert "Only for G1." in one.text
    assert "Only for G1." not in two.text
    assert one.acceptance_criteria == ("a", "strict")
    assert two.acceptance_criteria == ("fast", "whole")
    assert two.title == "G2"


def test_without_waves_they_follow_from_dependencies():
    header = "Dependencies | Est. Context | Tasks | Group"
    rows = ("G2, G3 | ~1% | d | G4", "- | ~1% | a | G1", "G1 | ~1% | b | G2", "None | ~1% | c | G3")
    plan = read(grouped(*rows, header=header))
    assert {task.id: task.stage for task in plan.tasks} == {
        "G1": "1",
        "G2": "2",
        "G3": "1",
        "G4": "3",
    }
    assert [stage.name for stage in plan.stages] == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("--", ()),
        ("**G1**, `G2`", ("G1", "G2")),
        ("g1 & G2 (imports, of G3)", ("G1", "G2")),
        ("G1-G3", ("G1", "G2", "G3")),
        ("G1–3", ("G1", "G2", "G3")),  # noqa: RUF001
        ("Wave 1", ("G1", "G2")),
        ("all of wave 02", ("G3",)),
        ("all", ("G1", "G2", "G3", "G4")),
        ("Group G1 and Group G3", ("G1", "G3")),
        ("SPEC-6, G2", ("G2",)),
        ("the types of G1", ("G1",)),
        ("some prose here", ()),
        ("G4", ("G4-S1", "G4-S2")),
    ],
)
def test_how_dependencies_are_written(cell, expected):
    header = "Group | Wave | Segment | Tasks | Dependencies"
    rows = ("G1 | 1 | - | a | -", "**G2** | Wave 1 | | b |", "G3 (x) | 2 | -- | c | G1", cell)
    if cell == "G4":
        segments = ("G4 | 3 | S1 | x | G1", "G4 | 3 | S2 | x | G4-S1")
        assert after(grouped(*rows[:3], *segments, "G5 | 4 | | y | G4", header=header))["G5"] == (
            "G4-S1",
            "G4-S2",
        )
        return
    rows = (*rows[:3], "G4 | 3 | | x | G1", f"G5 | 4 | | d | {cell}")
    assert after(grouped(*rows, header=header))["G5"] == expected


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (["G1 | 2 | a | -", "G2 | 1 | b | G1"], "13: group 'G2' is in wave 1 and depends on 'G1'"),
        (["G1 | 1 | a | G9"], "12: task 'G1' depends on 'G9', which is not in the plan"),
        (["G1 | 1 | a | G1-G9"], "depends on 'G1-G9'"),
        (["G1 | 1 | a | G1"], "wait for each other"),
        (["G1 | first | a | -"], "12: the wave cannot be 'first'"),
        (["G1 | 1 | a | -", "G2 | | a | -"], "13: the row has no wave"),
        (["G1 | 1 | a | -", "G1 | 1 | b | -"], "13: task id 'G1' is already used on line 12"),
        (["G1 | 1 | a | -", "g1 | 2 | b | -"], "13: task id 'g1' is already used"),
        (["| 1 | a | -"], "12: the row has no group"),
        (["G1 | 1 | a | - | b"], "12: the row has 5 cells, and the table 4 columns"),
        (["G1 | 1 | | -"], "12: group 'G1' has no tasks"),
        (["../../x | 1 | a | -"], "12: task id '../../x' cannot name"),
        (["-rf | 1 | a | -"], "12: task id '-rf' cannot name"),
        (["a/b | 1 | a | -"], "12: task id 'a/b' cannot name"),
    ],
)
def test_what_cannot_be_used_says_where(rows, why):
    with pytest.raises(PlanError) as refused:
        read(grouped(*rows))
    assert why in str(refused.value)


def test_what_is_seen_and_not_used_is_noted():
    rows = ("G1: Types | 1 | a | SPEC-3", "G2 | 1 | b | G1, the rest of it", "G3 | 2 | c")
    text = grouped(*rows, "**Total** | | | ", "— | — | — | —")
    text = text.replace("status: draft", "status: split\ndepends_on: [SPEC-1, SPEC-2]")
    plan = read(text)
    assert [task.id for task in plan.tasks] == ["G1", "G2", "G3"]
    assert plan.tasks[0].title == "Types"
    told = "\n".join(said(text))
    assert "4: depends on SPEC-1, SPEC-2, which is ignored: a spec is a plan by itself" in told
    assert "3: says that the spec was split" in told
    assert "13: depends on SPEC-3, which is not a group of this spec" in told
    assert "14: depends on G1 of the same wave 1" in told
    assert "14: of the dependencies 'the rest of it' nothing names a group" in told
    assert "15: has fewer cells" in told
    assert "16: 'Total' is a sum" in told


def test_an_execution_plan_that_disagrees_is_noted():
    plan = "### Execution Plan\n\n```\nWave 1 (parallel): G1, G2\nWave 2: G3\n```\n"
    rows = ("G1 | 1 | a | -", "G2 | 2 | b | G1", "G3 | 2 | c | -", "G4 | 3 | d | -")
    assert said(grouped(*rows, more=plan)) == [
        "17: does not name G4",
        "20: puts G2 into wave 1; its Task Groups say 2, which counts",
    ]
    table = (
        "### Execution Plan\n\n| Wave | Groups/Segments |\n|-|-|\n| 1 | G1 |\n| 3 | G2 |\n| x | |\n"
    )
    assert said(grouped(*rows[:2], more=table)) == [
        "20: puts G2 into wave 3; its Task Groups say 2, which counts"
    ]
    assert said(grouped(*rows, more="### Execution Plan\n\nNothing to say.\n")) == []


def test_groups_are_the_tables_that_say_who_waits_for_whom():
    budget = "## Budget\n\n| Group | Wave | Tasks |\n|-|-|-|\n| G1 | 1 | a |\n"
    text = grouped("G1 | 1 | a | -", more=budget)
    assert "16: a table of groups without a column of dependencies: not read" in said(text)
    second = "## Pass 2\n\n| Group | Tasks | Deps |\n|-|-|-|\n| G2 | b | G1 |\n"
    assert [
        task.id
        for task in read(grouped("G1 | a | -", header="Group|Tasks|Deps", more=second)).tasks
    ] == [
        "G1",
        "G2",
    ]
    only = grouped("G1 | 1 | a", "G2 | 2 | b", header="Group | Wave | Tasks")
    assert after(only) == {"G1": (), "G2": ()}


def test_without_groups_the_spec_is_one_task():
    hidden = "```\n| Group | Tasks | Dependencies |\n|-|-|-|\n| G1 | a | - |\n```\n"
    quoted = "> | Group | Wave | Tasks |\n> | a group | b |\n"
    proposed = "## Audit History\n\n| Group | Tasks | Dependencies |\n|-|-|-|\n| G1 | a | - |\n"
    text = HEAD + hidden + quoted + "\n### G1: Types\n\nmore\n\n" + proposed
    plan = read(text)
    [task] = plan.tasks
    assert (task.id, task.title, task.stage, plan.stages) == (
        "SPEC-7",
        "Partition handlers",
        None,
        (),
    )
    assert "### G1: Types\n\nmore" in task.text
    assert task.text.startswith("# SPEC-7: Partition handlers")
    assert "Audit" not in task.text
    assert writes(plan) == ()
    assert said(text) == [
        "9: looks like a table of groups, but is in the code block that begins on line 8",
        "16: looks like a group, but only a table of Task Groups makes groups",
        "20: 'Audit History' is a report: not read",
        "22: groups that an audit proposed are not read; the spec's own text has none",
    ]


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("# SPEC: Waves\n\n---\nid: SPEC-7\n---\n", "Waves"),
        ("# SPEC-7 — Waves\n\n```yaml\nid: SPEC-7\nstatus: draft\n```\n", "Waves"),
        ("> **SPLIT:** see\n> others\n\n---\nid: SPEC-7\n---\n# Waves\n", "Waves"),
        ("\ufeff---\r\nid: 'SPEC-7'\r\ntitle: All of it\r\n---\r\n# Waves\r\n", "All of it"),
        ("---\nid: SPEC-7\n---\nno heading\n", "SPEC-7"),
    ],
)
def test_the_frontmatter_may_stand_below_the_title(head, title):
    plan = read(head)
    assert (plan.id, plan.title) == ("SPEC-7", title)
    assert "id:" not in plan.tasks[0].text


@pytest.mark.parametrize("status", ["done", "Complete", "completed"])
def test_what_is_marked_as_done_is_a_claim(status):
    text = HEAD.replace("draft", status)
    assert read(text).tasks[0].marked_done
    assert all(task.marked_done for task in read(text + BODY).tasks)


def test_rows_may_be_marked_as_done():
    header = "Group | Wave | Tasks | Dependencies | Status"
    rows = ("✅ G1 | 1 | a | - |", "[x] G2 | 1 | b | - |", "[ ] G3 | 1 | c | - |")
    plan = read(grouped(*rows, "G4 | 1 | d | - | Done", "G5 | 1 | e | - | open", header=header))
    assert [(task.id, task.marked_done) for task in plan.tasks] == [
        ("G1", True),
        ("G2", True),
        ("G3", False),
        ("G4", True),
        ("G5", False),
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (HEAD, True),
        ("---\nid: TASK-7\nstatus: x\n---\n", False),
        ("---\nparent: SPEC-7\n---\n", False),
        ("# T\n\nid: SPEC-7\n", False),
        ("# T\n\n```\nid: SPEC-7\n", False),
        ("# only\n", False),
        (HEAD + "## Task 1.1: Milestones have these\n", False),
        (HEAD + "## Task 1.1: but\n\n" + BODY, True),
    ],
)
def test_it_is_known_by_what_it_contains(text, meant):
    source = Source(path="any.md", texts={"any.md": text})
    assert spec.SPEC.recognises(source) is meant
    assert (
        not any(each.recognises(source) for each in DIALECTS if each.name != "spec")
        or not meant
        or "Task 1.1" in text
    )
    assert not spec.SPEC.recognises(Source(path="folder", texts={"folder/a.md": text}))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("# T\n", "1: there is no frontmatter"),
        ("# T\n\n---\na: 1\na: 2\n---\n", "5: the frontmatter has the key 'a' twice"),
        ("# T\n\n---\na: 1\n---\n", "3: the spec has no id"),
        ("---\nid: [SPEC-1]\n---\n", "2: the spec has no id"),
        ("---\nid: SPEC-../x\n---\n", "task id 'SPEC-../x' cannot name"),
    ],
)
def test_a_head_that_cannot_be_used_says_where(text, why):
    with pytest.raises(PlanError) as refused:
        load("s.md", text, dialect="spec")
    assert f"s.md:{why}" in str(refused.value) or why in str(refused.value)


def test_an_id_used_twice_is_refused_without_waves_too():
    rows = ("G1 | a | -", "G2 | b | G1", "G2 | c | G1", "G3 | d | G2")
    with pytest.raises(PlanError, match="14: task id 'G2' is already used on line 13"):
        read(grouped(*rows, header="Group | Tasks | Dependencies"))


def test_a_long_title_is_cut():
    assert len(read(grouped(f"G1 | 1 | {'word ' * 50}| -")).tasks[0].title) == 100


def test_thousands_of_groups_are_read_at_once():
    rows = [f"G{n} | {n // 100} | do it | G{n - 100 if n > 199 else 0}" for n in range(100, 2100)]
    rows.insert(0, "G0 | 0 | first | -")
    start = time.process_time()
    plan = read(grouped(*rows))
    assert time.process_time() - start < 2
    assert len(plan.tasks) == 2001
    assert "| G7" not in plan.tasks[5].text, "with so many, the others' rows are left out"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (grouped(*(f"G{n} | 1 | a | -" for n in range(20_000))), "more than 10,000 tasks"),
        (grouped(*(f"G{n} | {n} | a | all" for n in range(1_000))), "more than 100,000 dep"),
        (grouped(*(f"G{n} | {n} | a | G0-G999999" for n in range(3_000))), "not in the plan"),
        (grouped(*(f"G{n} | 1 | a | -" for n in range(99)), more="x" * 999_000), "too long to be"),
        (HEAD + "x: " + "[" * 900, None),
        (HEAD + ("| a " * 1000 + "|\n") * 200, None),
    ],
)
def test_too_much_is_refused_at_once(text, why):
    start = time.process_time()
    if why:
        with pytest.raises(PlanError, match=why):
            read(text)
    else:
        read(text)
    assert time.process_time() - start < 2


PIECES = st.sampled_from([
    *BODY.splitlines(), "| Group | Tasks | Dependencies |", "|-|-|-|", "| G1 | a | G2-G4 |",
    "| G2 | 1 |", "| a | b | c | d | e | f |", "---", "```", "> x", "- G2: y", "### G2: z",
    "## Acceptance Criteria", "**AC1: q**", "**Acceptance Criteria:**", "## Execution Plan",
    "Wave 1: G1", "id: SPEC-1", "|", "\\|", "| | |", "# t", "", "    code", "\t", "1. a (G1, G2)",
])  # fmt: skip


@given(st.lists(PIECES, max_size=40), st.booleans())
def test_whatever_the_text_there_is_a_plan_or_a_word(lines, headed):
    text = (HEAD if headed else "") + "\n".join(lines)
    try:
        plan = load("s.md", text or "x", dialect="spec")
    except PlanError:
        return
    assert len({task.id for task in plan.tasks}) == len(plan.tasks)
    assert {task.stage for task in plan.tasks if task.stage} == {
        stage.name for stage in plan.stages
    }


@given(st.integers(0, len(BODY)), st.integers(0, 40), st.text("|-G1234 ,:\n#`*([", max_size=6))
def test_a_mutated_spec_is_a_plan_or_a_word(at, length, new):
    told = ""
    try:
        read(HEAD + BODY[:at] + new + BODY[at + length :])
    except PlanError as refused:
        told = str(refused)
    assert "\n" not in told
