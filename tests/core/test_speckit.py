"""spec-kit's tasks.md: which lines are tasks, and what each says (B10)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.plan import Plan
from windlass.errors import PlanError
from windlass.formats import DIALECTS, load, markdown, refers_to, speckit, writes
from windlass.formats.dialect import Source

PATH = "specs/001-photo-albums/tasks.md"
TASKS = """\
---
description: "Task list"
---

# Tasks: Photo Albums

**Input**: Design documents from `/specs/001-photo-albums/`
**Prerequisites**: plan.md (required), spec.md, contracts/

## Format: `[ID] [P?] [Story] Description`

- **[P]**: Can run in parallel
- Sample: `- [ ] T999 [P] [US1] Sample`

<!--
- [ ] T998 sample
-->

## Phase 1: Setup (Shared Infrastructure)

**Purpose**: A project that builds

- [x] T001 Create the structure in src/ and `tests/`
- [X] T002 [P] Configure linting in pyproject.toml

---

## Phase 2: User Story 1 - Albums (Priority: P1) 🎯 MVP

**Goal**: People see their albums

**Independent Test**: Open the page

### Tests for User Story 1 ⚠️

> **NOTE: Write these tests FIRST**

- [ ] T003 [P] [US1] Contract test in tests/contract/test_albums.py
- [ ] T004 [P] [US1] Journey in tests/integration/test_albums.py

### Implementation for User Story 1

- [ ] T005 [P] [US1] Album model in `src/models/album.py`
  - fields: name, date
  - [ ] names are unique
    - also when case is ignored
  - [ ] dates are kept
- [ ] T006 [US1] Album service in src/services/album.py (depends on T005)

**Checkpoint**: Story 1 works alone

## Dependencies & Execution Order

- T003 blocks T006
- User stories can run in parallel after T001
- [ ] T005 once more

## Parallel Example

```bash
- [ ] T997 in code
```
"""


def read(text: str, path: str = "tasks.md", **more: str) -> Plan:
    return load(path, {path: text, **more})


def phase(*lines: str) -> str:
    return "\n".join(["# Tasks: X", "", "## Phase 1: Setup", "", *lines, ""])


def notes(plan: Plan) -> dict[int, str]:
    return {note.line: note.text for note in plan.notes}


def test_the_whole_list():
    plan = load(PATH, TASKS)
    assert (plan.id, plan.title, plan.dialect) == ("001-photo-albums", "Photo Albums", "speckit")
    assert [task.id for task in plan.tasks] == ["T001", "T002", "T003", "T004", "T005", "T006"]
    assert [task.title for task in plan.tasks][1:3] == [
        "Configure linting in pyproject.toml",
        "Contract test in tests/contract/test_albums.py",
    ]
    assert [task.marked_done for task in plan.tasks] == [True, True, False, False, False, False]
    assert [stage.name for stage in plan.stages] == [
        "Phase 1: Setup (Shared Infrastructure)",
        "Phase 2: User Story 1 - Albums (Priority: P1) 🎯 MVP",
    ]
    assert [task.stage == plan.stages[1].name for task in plan.tasks] == [False] * 2 + [True] * 4
    assert [task.depends_on for task in plan.tasks] == [
        (), ("T001",), (), (), ("T003", "T004"), ("T005",),
    ]  # fmt: skip
    assert [task.files for task in plan.tasks] == [
        ("src/", "tests/"),
        ("pyproject.toml",),
        ("tests/contract/test_albums.py",),
        ("tests/integration/test_albums.py",),
        ("src/models/album.py",),
        ("src/services/album.py",),
    ]
    assert plan.task("T005").acceptance_criteria == (
        "names are unique\n- also when case is ignored",
        "dates are kept",
    )
    assert (
        plan.task("T005").line
        == TASKS.split("\n").index("- [ ] T005 [P] [US1] Album model in `src/models/album.py`") + 1
    )
    assert list(notes(plan).values()) == [
        "looks like a task, but is in HTML",
        "is about an order, but is not certain enough: ignored",
        "names 'T005' again, so it is not a task of its own",
        "looks like a task, but is in a code block",
    ]
    assert writes(plan) == (PATH,)


def test_a_task_tells_the_phases_goal_and_the_documents():
    task = load(PATH, TASKS).task("T005")
    assert task.text.startswith("T005 [P] [US1] Album model in `src/models/album.py`\n- fields:")
    for words in (
        "## The task's phase: Phase 2: User Story 1 - Albums",
        "It is one of: Implementation for User Story 1",
        "**Goal**: People see their albums",
        "**Independent Test**: Open the page",
        "**Checkpoint**: Story 1 works alone",
        "- specs/001-photo-albums/spec.md\n- specs/001-photo-albums/plan.md\n",
        "- specs/001-photo-albums/contracts/",
    ):
        assert words in task.text
    assert "T006" not in task.text
    folder = "specs/001-photo-albums/"
    there = {folder + leaf: "x" for leaf in ("plan.md", "contracts/api.yaml", "notes.md")}
    told = read(TASKS, PATH, **there).task("T005").text
    assert told.endswith(f"- {folder}contracts/api.yaml\n- {folder}plan.md")
    many = {f"{folder}contracts/{n:02}.yaml": "x" for n in range(22)}
    assert read(TASKS, PATH, **many).task("T005").text.endswith("/19.yaml\n- and 2 more")
    assert "documents" not in read(phase("- [ ] T1 a")).tasks[0].text


def test_what_a_phase_says_is_cut_where_it_is_long():
    plan = read(phase("word " * 2_000, "", "- [ ] T1 a", "- [ ] T2 b"))
    assert all(3_000 < len(task.text) < 3_200 for task in plan.tasks)
    assert plan.tasks[0].text.endswith("word …")


def test_ticking_a_box_changes_nothing_else_of_the_task():
    """Else every resumed run would be told that its plan has changed."""
    ticked = load(PATH, TASKS.replace("- [ ] T005 [P]", "- [X] T005 [P]"))
    before, after = load(PATH, TASKS).task("T005"), ticked.task("T005")
    assert after.marked_done
    assert (after.text, after.title, after.depends_on) == (
        before.text, before.title, before.depends_on,
    )  # fmt: skip


def test_the_documents_that_belong_to_it():
    text = TASKS + "\nSee contracts/api.yaml and ./contracts/v1/b.json, not x/contracts/c.yaml\n"
    folder = "specs/001-photo-albums/"
    assert refers_to(PATH, {PATH: text}) == tuple(
        folder + leaf
        for leaf in (
            "spec.md", "plan.md", "research.md", "data-model.md", "quickstart.md",
            "contracts/api.yaml", "contracts/v1/b.json",
        )
    )  # fmt: skip
    assert "plan.md" not in refers_to("plan.md", {"plan.md": text})
    assert speckit.SPECKIT.refers_to(Source(path="x", texts={})) == ()


def test_a_folder_with_one_list_at_its_top():
    folder = "specs/001-photo-albums"
    texts = {f"{folder}/tasks.md": TASKS, f"{folder}/plan.md": "# P\n", f"{folder}/a/tasks.md": "x"}
    for path in (folder, folder + "/"):
        plan = load(path, texts)
        assert (plan.id, plan.path, len(plan.tasks)) == ("001-photo-albums", PATH, 6)
    assert load(".", {"tasks.md": TASKS}).id == "plan"
    with pytest.raises(PlanError, match=r"specs: the folder as a whole is no plan; name a file"):
        load("specs", texts)
    with pytest.raises(PlanError, match=r"exactly one tasks\.md"):
        load("specs", texts, dialect="speckit")


def test_the_plans_name():
    assert load("a/My-List.md", TASKS).id == "My-List"
    assert load("tasks.md", TASKS).id == "tasks"
    for heading, title in (
        ("Tasks: A: b", "A: b"),
        ("Implementation Tasks — A", "A"),
        ("Task List - A", "A"),
        ("Photo Tasks", "Photo Tasks"),
        ("Tasks", "Tasks"),
    ):
        assert read(f"# {heading}\n\n- [ ] T001 a\n").title == title
    assert read("- [ ] T001 [P] a\n", "x/f1/tasks.md").title == "f1"


@pytest.mark.parametrize(
    ("line", "task_id", "title"),
    [
        ("* [ ] T001 a", "T001", "a"),
        ("1. [ ] T001: a", "T001", "a"),
        ("- [ ] **T001** [P] a", "T001", "a"),
        ("- [ ] **T001 [P] [US1]** a", "T001", "a"),
        ("- [ ] **T001: Short** then more", "T001", "Short then more"),
        ("- [ ] [T001] [P] [US1] a", "T001", "a"),
        ("- [ ] `T001` a", "T001", "a"),
        ("- [x] ✅ T001 a", "T001", "a"),
        ("- [ ] T001a a", "T001a", "a"),
        ("- [ ] T-001 - a", "T-001", "a"),
        ("- [ ] T001.2 a", "T001.2", "a"),
        ("- [ ] T010_real a", "T010_real", "a"),
        ("- [ ] T001 [SETUP] a", "T001", "[SETUP] a"),
        ("- [ ] T001 [a link](b.md) a", "T001", "[a link](b.md) a"),
        ("- [ ] T001 [Story] a", "T001", "a"),
        ("- [ ] T001 " + "[P]" * 13 + " a", "T001", "[P] a"),
        ("- [ ] T001", "T001", "T001"),
        ("- [ ]T001 a", "T001", "a"),
        ("- [] T001 a", "T001", "a"),
        ("- [ ] T001 Do one thing.\n  And then, " + "more " * 30, "T001", "Do one thing"),
        ("- [ ] T001 " + "word " * 30, "T001", "word " * 20 + "…"),
    ],
)
def test_spellings_of_a_task(line: str, task_id: str, title: str):
    task = read(phase(line)).tasks[0]
    assert (task.id, task.title) == (task_id, title)
    assert not task.text.startswith("[ ")


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("in `src/a.py`, src/b.ts. And (lib/c.go)", ("src/a.py", "src/b.ts", "lib/c.go")),
        ("in app/(public)/[slug]/page.tsx", ("app/(public)/[slug]/page.tsx",)),
        ("with Node.js and/or GET /api/users from https://x.org/a.md", ()),
        ("in `src/a/b` but `email/password`", ("src/a/b",)),
        ("in `./src/{a,b}.py` and ../x.py", ("src/{a,b}.py",)),
        ("（package.json：dev/build）", ("package.json",)),  # noqa: RUF001
        ("see example.com/a.md, `React.FC` and `tests/...`", ()),
        ("per plan.md, README.md", ("README.md",)),
        ("in - / . ./", ()),
    ],
)
def test_paths_are_told_from_words(line: str, paths: tuple[str, ...]):
    assert read(phase(f"- [ ] T001 {line}")).tasks[0].files == paths


def test_parts_of_a_task_are_its_criteria():
    plan = read(phase("- [ ] T010 Models", "  - [ ] T010a User", "  - [ ] T010.1 Album",
                      "- [ ] T011 [P] b (depends on T010a)"))  # fmt: skip
    assert [task.id for task in plan.tasks] == ["T010", "T011"]
    assert plan.task("T010").acceptance_criteria == ("T010a User", "T010.1 Album")
    assert notes(plan)[6] == "'T010a' is a part of 'T010' and one of its criteria"


def test_a_task_inside_another_is_its_own():
    text = phase("- [ ] T010 a", "  - [ ] T0101 b", "    more", "  - [ ] of T010",
                 "- group", "  - [ ] T012 c")  # fmt: skip
    plan = read(text)
    assert [task.id for task in plan.tasks] == ["T010", "T0101", "T012"]
    assert plan.task("T010").text.split("\n\n")[0] == "T010 a\n- [ ] of T010"
    assert plan.task("T010").acceptance_criteria == ("of T010",)
    assert plan.task("T0101").text.split("\n\n")[0] == "T0101 b\nmore"


def test_labelled_criteria():
    plan = read(phase("- [ ] T1 a", "  - **Acceptance**: it works", "  - **Acceptance Criteria**:",
                      "    - one", "    - two", "  - **Acceptance**: none",
                      "  ```", "  - [ ] T5 code", "  ```"))  # fmt: skip
    assert plan.tasks[0].acceptance_criteria == ("it works", "one", "two")
    assert notes(plan)[12] == "looks like a task, but is in a code block"


HEADINGS = """\
# Tasks: Headings

## Phase 1: Setup

### T001 [P] Install ✅
**Files**: `go.mod`
**Acceptance**: it builds

### T002: Configure
- [ ] it starts
- [ ] T002a also twice
- [ ] T009 is its own

#### Notes
**Dependencies**: T001

### T003-T004 are not here
## Notes
### T007 is only told
"""


def test_headings_may_be_tasks():
    plan = read(HEADINGS)
    assert [task.id for task in plan.tasks] == ["T001", "T002", "T009"]
    one, two, _ = plan.tasks
    assert (one.marked_done, one.files, one.acceptance_criteria) == (
        True,
        ("go.mod",),
        ("it builds",),
    )
    assert two.acceptance_criteria == ("it starts", "T002a also twice")
    assert (two.marked_done, two.depends_on) == (False, ("T001",))
    assert two.text.startswith("T002: Configure\n\n- [ ] it starts\n")
    assert notes(plan)[19] == "looks like a task, but is in a section about tasks"


def test_a_heading_with_the_id_of_a_box_says_more_of_it():
    plan = read(
        phase("- [ ] T001 a", "", "## Details", "### T001 a", "In b/c.py", "- [ ] it works")
    )
    [task] = plan.tasks
    assert task.text.startswith("T001 a\n\nT001 a\n\nIn b/c.py")
    assert (task.files, task.acceptance_criteria) == (("b/c.py",), ("it works",))


def test_lists_without_boxes():
    plan = read(
        phase("- T001 [P] a", "- T002 b", "- T003-T004 c", "", "## Dependencies", "- T001 x")
    )
    assert [task.id for task in plan.tasks] == ["T001", "T002"]
    assert not plan.tasks[0].marked_done


def test_what_was_dropped_is_no_task():
    plan = read(phase("- [ ] ~~T001 a~~", "- [-] T002 b", "- [~] T003 c",
                      "- [ ] T004 (depends on T002)", "- [~] T004-T005 told"))  # fmt: skip
    assert [task.id for task in plan.tasks] == ["T003", "T004"]
    assert notes(plan) == {
        5: "'T001' is struck out or dropped, so it is not a task",
        6: "'T002' is struck out or dropped, so it is not a task",
        7: "'T003': its box says '~', which counts as 'not done'",
        9: "is about several tasks, so it is not a task of its own",
    }


def test_boxes_without_an_id_are_noted_where_tasks_are():
    plan = read(phase("- [ ] T001 a", "- [ ] no id", "", "## Validation Checklist",
                      "- [ ] all done", "- [ ] TXXX b"))  # fmt: skip
    assert notes(plan) == {6: "has a box but no id such as T012, so it is not a task"}
    plain = read(phase("- [ ] T001 a", "- T002 b", "- T001 c", "", "## Notes", "- T003 d"))
    assert notes(plain) == {6: "names 'T002' but has no box, so it is not a task"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (["- [ ] T001 a", "- [ ] TXXX [P] a"], ":6: a task has a placeholder for an id"),
        (["- [ ] T001 a", "", "## Phase 2", "    - [ ] T003 c"], ":8: looks like"),
        (["- [ ] T001 a", "", "text", "-[ ] T002 b"], ":8: looks like a task, but is code"),
        (["- [ ] T001 a", "- [ ] T002-T003 b"], ":6: a line names several tasks"),
        (["- [ ] T001 a", "- [ ] T001 b"], ":6: task id 'T001' is already used on line 5"),
        (["- [ ] T001 a (depends on T009)"], ":5: 'T001' depends on 'T009', which is not a task"),
        (["- [ ] T001 (depends on T002)", "- [ ] T002 b"], ":5: 'T001' depends on 'T002', which"),
        (["- [ ] T" + "1" * 70 + " a"], "cannot name a ref"),
    ],
)  # fmt: skip
def test_what_would_be_lost_is_refused(lines: list[str], why: str):
    with pytest.raises(PlanError) as refused:
        read(phase(*lines))
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("path", "text", "meant"),
    [
        ("any.md", TASKS, True),
        ("any.md", "\ufeff" + TASKS.replace("\n", "\r\n"), True),
        ("any.md", "# Tasks\n- [ ] T001 a\n", True),
        ("any.md", "# X\n- [ ] T001 [US1] a\n", True),
        ("any.md", "# X\n- [ ] T001 a\n", False),
        ("tasks.md", "# X\n- [ ] T001 a\n", True),
        ("tasks.md", "# X\n- [ ] 1.1 a\n", False),
        ("tasks.md", "# X\n```\n- [ ] T001 a\n```\n", False),
        ("any.md", "# X\n## Phase 1\n### T001 a\n", False),
        ("any.md", "# Tasks\n## Phase 1\n### T001 a\n", True),
        ("any.md", "# Tasks\n## Task Notes\n- [ ] T001 a\n## Phase 1\n- [ ] T002 b\n", True),
        ("tasks.md", "# X\n## Task 1.1: a\n- [ ] T001 a\n", False),
        ("tasks.md", "---\nid: a\nstatus: x\n---\n- [ ] T001 a\n", False),
    ],
)
def test_it_is_known_by_what_it_contains(path: str, text: str, *, meant: bool):
    assert speckit.SPECKIT.recognises(Source(path=path, texts={path: text})) is meant
    chosen = next(
        (each for each in DIALECTS if each.recognises(Source(path=path, texts={path: text}))), None
    )
    assert (chosen is not None and chosen.name == "speckit") is meant


def test_phases_that_are_called_otherwise():
    text = "# Tasks\n- [ ] T1 a\n## Backend\n### x\n- [ ] T2 b\n## Backend\n- [ ] T3 c\n"
    plan = read(text)
    assert [stage.name for stage in plan.stages] == ["Tasks", "Backend", "Backend (2)"]
    assert [task.stage for task in plan.tasks] == ["Tasks", "Backend", "Backend (2)"]
    inner = read(
        "# T\n## Phase 3\n- [ ] T1 a\n### Phase 3.1\n- [ ] T2 [P] b\n### c\n- [ ] T3 [P] d\n"
    )
    assert [task.stage for task in inner.tasks] == ["Phase 3", "Phase 3.1", "Phase 3"]
    bare = read("# Tasks\n- [ ] T1 a\n- [ ] T2 b\n")
    assert (bare.stages, bare.tasks[0].stage, bare.tasks[1].depends_on) == ((), None, ("T1",))


def test_too_many_are_refused_before_they_are_read():
    with pytest.raises(PlanError, match="more than 10,000 tasks"):
        read("# Tasks\n\n" + "".join(f"- [ ] T{n:05} a\n" for n in range(20_000)))


FRAGMENTS = st.sampled_from([
    "# Tasks: X", "## Phase 1: a", "### Tests", "## Dependencies", "## Phase N", "- [ ] T001 a",
    "- [x] T002 [P] [US1] b in `src/a.py`", "  - [ ] T001a c", "    - [ ] T003 d", "- [-] T004 e",
    "- [ ] T005-T009 f", "- [ ] TXXX g", "### T010 [P] h", "```", "<!--", "-->",
    "> - [ ] T011 i", "---",
    "- T001 before T002", "- T001 → T002, T003", "(depends on T001-T003)", "**Acceptance**: x",
    "\t",
    "1. [ ] T012 j",
    "2. [ ] T013 k", "- [ ]", "- [ ] **T014", "text", "", "", "T001", "[", "`", "(",
])  # fmt: skip


@given(
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=12)), max_size=25),
    st.sampled_from(["\n", "\r\n", " "]),
)
def test_whatever_the_text_it_is_a_plan_or_a_plain_refusal(pieces: list[str], glue: str):
    try:
        plan = load("f/tasks.md", glue.join(pieces), dialect="speckit")
    except PlanError:
        return
    stages = [stage.name for stage in plan.stages]
    assert len(set(stages)) == len(stages)
    assert {task.stage for task in plan.tasks} <= {None, *stages}
    rank = {task.id: stages.index(task.stage) if task.stage else 0 for task in plan.tasks}
    assert all(rank[dep] <= rank[task.id] for task in plan.tasks for dep in task.depends_on)


@given(st.text(alphabet="`a \n,", max_size=30).filter(lambda line: "``" not in line))
def test_plain_backticks_are_read_as_the_parser_reads_them(line: str):
    """A longer run at the end sends the whole line to the parser, which must say the same."""
    plain = [(code, text.strip()) for code, text in markdown.segments(line.strip())]
    parsed = [(code, text.strip()) for code, text in markdown.segments(line.strip() + "\n``")]
    assert [each for each in plain if each[1]] == [
        (code, kept) for code, text in parsed if (kept := text.removesuffix("``").strip())
    ]
