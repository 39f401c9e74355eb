"""The milestone dialect, rule by rule (K1, B10), and the way from text to plan for any text."""

import re
from collections.abc import Callable
from contextlib import suppress
from textwrap import dedent
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from windlass.core.plan import Plan, Task
from windlass.errors import PlanError
from windlass.formats import DIALECTS, load, markdown, milestone, plan_id

FRAGMENTS = [
    "# [x] Task 4 (d): e",
    "# Task 1: a", "## Task b - c", "Task 3: u", "# E2E", "# M", "---", "===", "```", "~~~x", "> ",
    "- ", "  - ", "1. ", "\t", "    ", "<!--", "-->", "**Depends on:**", "**Checks:** ",
    "**Files:** ", "**Acceptance Criteria:**", "### Acceptance Criteria", "**Stage:** 1",
    "**Complexity:** 7", "`a`", "1", "b, 3", "none", "(", ")", ",", "", "\n", "\n\n", "a: b",
]  # fmt: skip


def plan(text: str, path: str = "plans/m1.md") -> Plan:
    return load(path, dedent(text))


def task(body: str, *, others: str = "") -> Task:
    """The task 1.1 of a plan in which this stands under its heading."""
    return plan(f"## Task 1.1: First\n{dedent(body)}\n{others}").task("1.1")


def refusal(text: str, **options: str) -> str:
    with pytest.raises(PlanError) as caught:
        load("plans/m1.md", dedent(text), **options)
    said = str(caught.value)
    assert "\n" not in said
    return said


def notes(of: Plan) -> dict[int, str]:
    return {note.line: note.text for note in of.notes}


class TestHeadings:
    """K1: a task is a heading; ids such as 3a.1 occur."""

    @pytest.mark.parametrize("level", range(1, 7))
    def test_a_task_is_a_heading_of_any_level(self, level: int):
        found = plan(f"{'#' * level} Task 1.1: Do it")

        assert [(each.id, each.title, each.line) for each in found.tasks] == [("1.1", "Do it", 1)]

    @pytest.mark.parametrize("separator", [":", " : ", ": ", " - ", " – ", " — ", "  -  ", "："])  # noqa: RUF001
    def test_the_title_follows_a_colon_or_a_dash(self, separator: str):
        (found,) = plan(f"## Task T-04{separator}Do it").tasks

        assert (found.id, found.title) == ("T-04", "Do it")

    @pytest.mark.parametrize("name", ["1.1", "3a.1", "10", "T-04", "setup", "_x"])
    def test_ids_of_every_kind_occur(self, name: str):
        assert plan(f"## Task {name}: x").tasks[0].id == name

    @pytest.mark.parametrize(
        ("heading", "title"),
        [
            ("## Task 1.1: Create `A: b` class", "Create `A: b` class"),
            ("## Task 1.1: Closed ##", "Closed"),
            ("## TASK 1.1: loud", "loud"),
            ("## **Task 1.1: bold**", "bold"),
            ("## **Task 1.1**: half bold", "half bold"),
            ("## Task 1.1", ""),
            ("Task 1.1: underlined\n--------------------", "underlined"),
            ("Task 1.1: underlined\n====================", "underlined"),
        ],
    )
    def test_the_title_is_kept_as_written(self, heading: str, title: str):
        (found,) = plan(heading).tasks

        assert (found.id, found.title) == ("1.1", title)

    @pytest.mark.parametrize(
        ("heading", "title", "done"),
        [
            ("## Task 1.1 (REVISED): Do it", "Do it (REVISED)", False),
            ("## Task 1.1(api) - Do it", "Do it (api)", False),
            ("## Task 1.1 [P]: Do it", "Do it [P]", False),
            ("## Task 1.1 [x]: Do it", "Do it [x]", True),
            ("## [ ] Task 1.1: Do it", "Do it", False),
            ("## [x] Task 1.1: Do it", "Do it", True),
            ("## [X] **Task 1.1: Do it**", "Do it", True),
            ("## ✅ Task 1.1: Do it", "Do it", True),
            ("## ⚠️ Task 1.1", "", False),
            ("[x] Task 1.1: Do it\r---", "Do it", True),
        ],
    )
    def test_marks_and_asides_hide_no_task(self, heading: str, title: str, *, done: bool):
        (found,) = plan(heading).tasks

        assert (found.id, found.title, found.marked_done) == ("1.1", title, done)

    @pytest.mark.parametrize(
        "heading",
        [
            "## Task Groups", "## Task Summary: all", "## Task:", "## Tasks 1: x", "## Task",
            "## Task Context: TASK-001", "## 🎯 Task Goals: all", "## Task Force (new): x",
        ],
    )  # fmt: skip
    def test_a_heading_about_tasks_is_no_task(self, heading: str):
        found = plan(f"{heading}\n\n## Task 1.1: Real\n")

        assert [each.id for each in found.tasks] == ["1.1"]
        assert found.notes == ()

    @pytest.mark.parametrize(
        "heading", ["## Task 1.2 Missing", "## Task 1.2. Dot", "## Task 1.2 (aside)"]
    )
    def test_what_is_nearly_a_task_is_noted(self, heading: str):
        found = plan(f"## Task 1.1: Real\n{heading}\n")

        assert [each.id for each in found.tasks] == ["1.1"]
        assert "looks like a task, but no ':'" in notes(found)[2]

    @pytest.mark.parametrize(
        "heading", ["## Task: noid", "### **Task:** noid", "## [x] Task : noid"]
    )
    def test_a_task_without_an_id_is_noted(self, heading: str):
        found = plan(f"## Task 1.1: Real\n{heading}\n")

        assert [each.id for each in found.tasks] == ["1.1"]
        assert notes(found) == {2: "looks like a task, but it has no id: write 'Task 1.1: …'"}

    def test_a_task_that_is_struck_out_is_none(self):
        found = plan("## Task 1.1: Real\n## ~~Task 1.2: Gone~~ → Task 2.4\n")

        assert [each.id for each in found.tasks] == ["1.1"]
        assert notes(found) == {2: "looks like a task, but is struck out"}

    @pytest.mark.parametrize("name", ["../../x", "-rf", "a/b", "x.lock", "."])
    def test_an_unsafe_id_is_refused_with_its_line(self, name: str):
        assert refusal(f"# P\n\n## Task {name}: evil").startswith(
            f"plans/m1.md:3: task id {name!r}"
        )


class TestNotTasks:
    """K1: what stands in code, quotations or comments is no task, and is said to have been seen."""

    @pytest.mark.parametrize(
        ("around", "where"),
        [
            ("```markdown\n{}\n```", "code block"),
            ("~~~\n{}\n~~~", "code block"),
            ("````\n```\n{}\n```\n````", "code block"),
            ("text\n\n    {}", "indented code"),
            ("text\n    {}", "paragraph"),
            ("<!--\n{}\n-->", "HTML"),
            ("<pre>\n{}\n</pre>", "HTML"),
            ("> {}", "quotation"),
            ("- {}", "list"),
            ("1. text\n\n   {}", "list"),
            ("- ```\n  {}\n  ```", "list"),
        ],
    )
    def test_a_task_that_markdown_does_not_take_for_a_heading_is_none(
        self, around: str, where: str
    ):
        found = plan("## Task 1.1: Real\n\n" + around.format("## Task 2.1: Example") + "\n")

        assert [each.id for each in found.tasks] == ["1.1"]
        (note,) = found.notes
        assert note.text.startswith(f"looks like a task, but is in the {where} that begins on")
        assert "Task 2.1" in around.format("## Task 2.1: Example").split("\n")[note.line - 3]

    def test_an_unclosed_code_block_hides_all_that_follows(self):
        found = plan("## Task 1: a\n```\n## Task 2: b\n## Task 3: c\n")

        assert sorted(notes(found)) == [3, 4]

    def test_fences_inside_a_fence_are_named_as_the_likely_fault(self):
        found = plan("## Task 1: a\n```markdown\n```bash\n## Task 2: b\n```\n")

        assert "needs a longer fence" in notes(found)[4]

    def test_frontmatter_is_no_markdown(self):
        found = plan("---\ndesign: x\n# c\n## Task 9: no\n---\n\n# T\n\n## Task 1: yes\n")

        assert [(each.id, each.line) for each in found.tasks] == [("1", 9)]
        assert "the frontmatter that begins on line 1" in notes(found)[4]

    @pytest.mark.parametrize(
        "top",
        ["---\n\n# T\n", "---\n# T\n", "---\n\na: b\n", "---\n**A:** b\n", "---\n", "--- x\n"],
    )
    def test_a_separator_at_the_top_is_no_frontmatter(self, top: str):
        found = plan(f"{top}\n## Task 1: yes\n\n---\n")

        assert [each.id for each in found.tasks] == ["1"]

    @pytest.mark.parametrize("top", ["---\n---\n", "---\na: b\n...\n", "\ufeff---\na: b\n---\n"])
    def test_frontmatter_ends_where_yaml_does(self, top: str):
        assert plan(f"{top}# T\n## Task 1: yes\n").title == "T"

    def test_frontmatter_that_never_ends_is_none(self):
        assert [each.id for each in plan("---\na: b\n\n## Task 1: yes\n").tasks] == ["1"]


class TestSections:
    """K1: a task's text is the author's own, and its section is its own."""

    def test_the_text_is_the_source_under_the_heading(self):
        body = "Some *text*.\n\n```python\n# Task\nx = 1\n\n```\n- a\n  - b\n\n\t- c"

        assert task(f"\n{body}\n\n---\n\n", others="## Task 1.2: Next").text == body

    @pytest.mark.parametrize(
        "end", ["## Next", "# Next", "### Task 1.2: deeper", "\nTask 2: u\n---"]
    )
    def test_a_section_ends_at_a_heading_as_high_or_at_any_task(self, end: str):
        found = task("mine", others=f"{end}\nnot mine\n")

        assert found.text == "mine"

    def test_a_deeper_heading_stays_inside(self):
        assert task("### Notes\nmine", others="## End").text == "### Notes\nmine"

    def test_a_paragraph_that_runs_into_a_separator_is_no_heading(self):
        found = task("**File:** `a.py`\n---\n\nMore.\n---\n", others="## Task 1.2: b")

        assert found.files == ("a.py",)
        assert found.text == "**File:** `a.py`\n---\n\nMore."

    @pytest.mark.parametrize("rule", ["---", "***", "_ _ _", "  ---  ", "-----"])
    def test_separators_at_the_end_are_not_text(self, rule: str):
        assert task(f"mine\n\n{rule}\n\n{rule}\n").text == "mine"

    def test_an_empty_section_has_no_text(self):
        assert task("\n---\n").text == ""

    @pytest.mark.parametrize("newline", ["\r\n", "\r"])
    def test_line_ends_of_other_systems_change_nothing(self, newline: str):
        text = "---\na: b\n---\n# T\n\n## Task 1: x\n\n**File:** `a`\nmore\n\n- [ ] c\n"

        assert load("p.md", text.replace("\n", newline)) == load("p.md", text)

    def test_only_markdowns_own_line_ends_end_a_line(self):
        found = plan("## Task 1: a\u2028b\x0cc\n\nx\x85y\n")

        assert (found.tasks[0].title, found.tasks[0].text) == ("a\u2028b\x0cc", "x\x85y")


class TestFiles:
    @pytest.mark.parametrize(
        "label", ["**File:**", "**File(s):**", "**Files:**", "**File**:", "__File:__"]
    )
    def test_labels_are_spelt_in_many_ways(self, label: str):
        assert task(f"{label} `a.py`\n**Type:** CODING").files == ("a.py",)

    @pytest.mark.parametrize(
        ("value", "files"),
        [
            ("`a.py`, `b.py`", ("a.py", "b.py")),
            ("a.py, b.py", ("a.py", "b.py")),
            ("`a.py` (new), b.py (modify, maybe)", ("a.py", "b.py")),
            ("`a.py` (was `old.py`)", ("a.py",)),
            ("`app/(group)/page.tsx`", ("app/(group)/page.tsx",)),
            ("a.py - the module", ("a.py",)),
            ("`a.py`,\n`b.py`", ("a.py", "b.py")),
            ("`a.py`\nThis is `prose`.", ("a.py",)),
            ("`a.py`\n- not a file", ("a.py",)),
            ("`a.py`, etc.", ("a.py",)),
            ("`src/*.py`; Makefile", ("src/*.py", "Makefile")),
            ("`a.py`, `a.py`", ("a.py",)),
            ("`a.py` (unclosed", ("a.py",)),
            ("N/A (research task)", ()),
            ("The skill (managed, somewhere)", ()),
            ("", ()),
            ("\n- `a.py` (DELETE)\n- b.py\n- Environment variables", ("a.py", "b.py")),
            ("\n\n- [ ] `a.py`\n  with `more`\n", ("a.py",)),
            ("\n`a.py`\n`b.py`", ("a.py", "b.py")),
        ],
    )
    def test_paths_are_read_from_the_line_or_the_list_below(
        self, value: str, files: tuple[str, ...]
    ):
        assert task(f"**Files:** {value}").files == files

    def test_two_fields_add_up(self):
        assert task("**File:** `a`\n\n**Files:** `b`").files == ("a", "b")


class TestDependencies:
    """K1: in order, unless the task's own section says otherwise."""

    def order(self, text: str) -> dict[str, tuple[str, ...]]:
        return {each.id: each.depends_on for each in plan(text).tasks}

    def test_a_task_depends_on_the_one_before_it(self):
        assert self.order("# Task 1: a\n# Task 2: b\n# Task 3: c") == {
            "1": (),
            "2": ("1",),
            "3": ("2",),
        }

    @pytest.mark.parametrize(
        ("value", "ids"),
        [
            ("1.1", ("1.1",)),
            ("1.1, 1.2", ("1.1", "1.2")),
            ("Task 1.1, Task 1.2", ("1.1", "1.2")),
            ("Tasks 1.1 and 1.2", ("1.1", "1.2")),
            ("1.1, and 1.2.", ("1.1", "1.2")),
            ("1.1; t-03 & 1.2", ("1.1", "T-03", "1.2")),
            ("`1.1` or #1.2", ("1.1", "1.2")),
            ("[Task 1.1](#task-11)", ("1.1",)),
            ("1.1 (schema, tables), 1.2", ("1.1", "1.2")),
            ("1.1,\n1.2", ("1.1", "1.2")),
            ("\n1.1\n1.2", ("1.1", "1.2")),
            ("\n- Task 1.1\n- `1.2`", ("1.1", "1.2")),
            ("1.1, 1.1", ("1.1",)),
            ("none", ()),
            ("None.", ()),
            ("None (first task)", ()),
            ("nothing", ()),
            ("N/A", ()),
            ("—", ()),
        ],
    )
    def test_ids_are_named_in_many_ways(self, value: str, ids: tuple[str, ...]):
        found = plan(
            f"# Task 1.1: a\n# Task 1.2: b\n# Task T-03: c\n# Task 4: d\n**Depends on:** {value}\n"
        )

        assert found.task("4").depends_on == ids
        assert found.notes == ()

    @pytest.mark.parametrize("label", ["**depends on:**", "**Depends On**:", "**depends_on:**"])
    def test_the_labels_case_and_spelling_do_not_matter(self, label: str):
        assert self.order(f"# Task 1: a\n# Task 2: b\n{label} none") == {"1": (), "2": ()}

    def test_the_value_may_be_bold_too(self):
        assert self.order("# Task 1: a\n# Task 2: b\n**Depends on: none**")["2"] == ()

    @pytest.mark.parametrize("value", ["9.9", "Task 9.9 (schema)", "M1", "1.1–1.3"])  # noqa: RUF001
    def test_an_id_of_no_task_is_refused(self, value: str):
        said = refusal(f"# Task 1.1: a\n# Task 2: b\n**Depends on:** {value}")

        assert said.startswith("plans/m1.md:2: task '2' depends on '")
        assert said.endswith("the plan has 1.1, 2")

    @pytest.mark.parametrize(
        "value", ["M1 (Operations Persistence)", "all previous tasks", "(later)"]
    )
    def test_prose_is_noted_and_the_task_keeps_its_place(self, value: str):
        found = plan(f"# Task 1: a\n# Task 2: b\n**Depends on:** {value}\n")

        assert found.task("2").depends_on == ("1",)
        assert repr(value) in notes(found)[3]

    def test_prose_beside_an_id_is_noted_and_the_id_counts(self):
        found = plan(
            "# Task 1: a\n# Task 2: b\n# Task 3: c\n**Depends on:** 1 through 2, the rest\nx\n"
        )

        assert found.task("3").depends_on == ("1",)
        assert [note.line for note in found.notes] == [4, 4, 4]

    def test_an_empty_field_is_refused(self):
        assert refusal("# Task 1: a\n**Depends on:**\n") == (
            "plans/m1.md:2: 'depends on' has no value; "
            "write the ids of tasks, such as '1.1, 1.2', or 'none'"
        )

    def test_outside_a_task_it_is_noted_only(self):
        found = plan(
            "# M\n**Depends on:** M1\n\n## Task 1: a\n\n## Task 2: b\n\n## End\n**Depends on:** M2"
        )

        assert [each.depends_on for each in found.tasks] == [(), ("1",)]
        assert sorted(notes(found)) == [2, 9]

    def test_without_bold_it_is_noted_only(self):
        found = plan("# Task 1: a\n# Task 2: b\ntext\nDepends on: none\n\n- x\n- Depends on: none")

        assert found.task("2").depends_on == ("1",)
        assert sorted(notes(found)) == [4, 7]

    def test_a_cycle_is_refused_with_its_way(self):
        said = refusal("# Task a: x\n**Depends on:** b\n# Task b: y\n")

        assert "plans/m1.md:1: tasks wait for each other: a → b → a" in said

    def test_fields_may_be_items_of_a_list(self):
        found = task(
            """
            - **File:** `a.py`
            - **Depends on:** none
            - **Checks:**
              - `true`
            - **Acceptance Criteria:**
              - [ ] one
              - [ ] two
            - **Complexity:** 3
            """
        )

        assert (found.files, found.checks, found.complexity) == (("a.py",), ("true",), 3)
        assert found.acceptance_criteria == ("one", "two")

    def test_a_list_under_a_label_has_no_fields(self):
        found = task("**Implementation Notes:**\n- **Model:** the user's table\n")

        assert found.model is None


class TestStages:
    """A plan with stages runs by its stages."""

    def test_a_task_waits_for_all_of_the_stage_before(self):
        found = plan(
            """
            # Task a: x
            **Stage:** one
            # Task b: x
            **Stage:** one
            # Task c: x
            **Stage:** two
            # Task d: x
            **Stage:** two
            **Depends on:** a
            # Task e: x
            **Stage:** one
            """
        )

        assert {each.id: (each.stage, each.depends_on) for each in found.tasks} == {
            "a": ("one", ()),
            "b": ("one", ()),
            "c": ("two", ("a", "b", "e")),
            "d": ("two", ("a",)),
            "e": ("one", ()),
        }

    def test_a_task_without_a_stage_joins_the_one_before_it(self):
        found = plan("# Task a: x\n# Task b: x\n**Stage:** 2\n# Task c: x\n")

        assert [(each.stage, each.depends_on) for each in found.tasks] == [
            (None, ()),
            ("2", ("a",)),
            ("2", ("a",)),
        ]
        assert "joins '2'" in notes(found)[4]


class TestChecks:
    """B10: checks are commands in backticks, on the line or as a list."""

    @pytest.mark.parametrize(
        ("value", "commands"),
        [
            ("`pytest -q`, `ruff check .`", ("pytest -q", "ruff check .")),
            ("must pass: `make`", ("make",)),
            ("``echo `date` ``", ("echo `date`",)),
            (
                "\n- `pytest -q` is green\n- make lint\n- [ ] `a` and `b`",
                ("pytest -q", "make lint", "a", "b"),
            ),
            ("\n\n1. make\n2. make test", ("make", "make test")),
            ("all of these:\n- `make`\n- and be careful", ("make",)),
            ("`make`\n- `make test`", ("make", "make test")),
            ("\n- `make`\n  more about it", ("make",)),
            ("`make`,\n`make test`", ("make", "make test")),
            ("none", ()),
            ("None (documentation)", ()),
        ],
    )
    def test_commands_are_read(self, value: str, commands: tuple[str, ...]):
        assert task(f"**Checks:** {value}").checks == commands

    @pytest.mark.parametrize("value", ["", "run the tests", "\n\n```bash\nmake\n```"])
    def test_what_cannot_be_a_command_is_refused_not_dropped(self, value: str):
        said = refusal(f"# Task 1: a\n\n**Checks:** {value}\n")

        assert said.startswith("plans/m1.md:3: 'checks' ")
        assert said.endswith("write each command in backticks, on the line or as a list, or 'none'")

    def test_a_command_of_several_lines_is_refused(self):
        said = refusal("# Task 1: a\n**Checks:**\n- `make`\n- a\n  - b\n")

        assert said.endswith("write 'a' in backticks, or without lines below it")

    def test_prose_below_a_command_is_noted(self):
        found = plan("# Task 1: a\n**Checks:** `make`\n- and be careful\n")

        assert found.tasks[0].checks == ("make",)
        assert "'and be careful' below 'Checks'" in notes(found)[2]

    def test_before_the_first_task_they_are_the_plans(self):
        found = plan(
            """
            # M
            **Checks:** `make`

            ## E2E Test
            **Checks:**
            - the page loads

            ## Task 1: a
            **Checks:** `true`

            ## Verification
            **Checks:** `late`
            """
        )

        assert (found.checks, found.tasks[0].checks) == (("make",), ("true",))
        assert "before the first task only" in notes(found)[13]


class TestScalars:
    def test_every_field_is_read(self):
        found = task(
            """
            **Complexity:** 7
            **Stage:** `core`
            **Model:** `claude-opus-4-5[1m]`
            **Max turns:** 3
            **Absent checks:** Skip
            **Removes tests:** yes
            """
        )

        assert (found.complexity, found.stage, found.model) == (7, "core", "claude-opus-4-5[1m]")
        assert (found.max_turns, found.skip_absent) == (3, True)
        assert found.removes_tests

    def test_a_field_that_is_not_there_says_nothing(self):
        found = task("**Type:** CODING")

        assert found == Task(id="1.1", title="First", text="**Type:** CODING", line=1)

    @pytest.mark.parametrize(
        ("value", "removes"),
        [
            ("yes", True),
            ("`tests/test_old.py`", True),
            ("\n- tests/test_old.py\n- tests/test_older.py", True),
            ("no", False),
            ("None.", False),
            ("\n- none", False),
        ],
    )
    def test_a_task_says_whether_tests_go_away(self, value: str, *, removes: bool):
        assert task(f"**Removes tests:** {value}").removes_tests is removes

    @pytest.mark.parametrize(
        "value",
        [
            "7", "7/10", "7 / 10", "7 (many files)", "7.", "\n7", "7\nprose", "High (7)",
            "Medium-high (7/10)",
        ],
    )  # fmt: skip
    def test_complexity_is_a_number_of_ten(self, value: str):
        assert task(f"**Complexity:** {value}").complexity == 7

    @pytest.mark.parametrize(
        ("field", "cure"),
        [
            ("Complexity:** banana", "a number from 0 to 10"),
            ("Complexity:** 11", "a number from 0 to 10"),
            ("Complexity:** 7/8", "a number from 0 to 10"),
            ("Complexity:** Medium (8-16 hours)", "a number from 0 to 10"),
            ("Complexity:** -1", "a number from 0 to 10"),
            ("Complexity:** \u0667", "a number from 0 to 10"),
            ("Complexity:**", "a number from 0 to 10"),
            ("Max turns:** 0", "a number from 1 to 100"),
            ("Max turns:** 2.5", "a number from 1 to 100"),
            ("Model:** --dangerous", "a model's name"),
            ("Model:** the best one", "a model's name"),
            ("Stage:**", "a name, such as '2'"),
            ("Absent checks:** maybe", "'skip'"),
            ("Removes tests:**", "'yes', or the tests to remove, or 'no'"),
        ],
    )
    def test_a_bad_value_is_refused_with_its_line_and_the_cure(self, field: str, cure: str):
        said = refusal(f"# Task 1: a\n\n**{field}\n")

        assert said.startswith("plans/m1.md:3: '")
        assert said.endswith(f"; write {cure}")

    def test_a_field_that_stands_twice_is_refused(self):
        said = refusal("# Task 1: a\n**Complexity:** 3\n**Complexity:** 4\n")

        assert said == (
            "plans/m1.md:3: 'complexity' cannot be '4'; write it once; line 2 has it already"
        )


class TestCriteria:
    @pytest.mark.parametrize(
        "listed",
        [
            "- [ ] a\n- [x] b",
            "- a\n- b",
            "* a\n* b",
            "1. a\n2. b",
            "1) [X] a\n2) b",
            "\n  - a\n\n  - b",
        ],
    )
    @pytest.mark.parametrize(
        "label",
        [
            "**Acceptance Criteria:**",
            "**Acceptance criteria**:",
            "**Acceptance Criteria**：",  # noqa: RUF001
            "### Acceptance Criteria",
            "### Acceptance Criteria:\n",
        ],
    )
    def test_every_item_of_a_list_under_the_label_is_one(self, label: str, listed: str):
        assert task(f"{label}\n{listed}\n").acceptance_criteria == ("a", "b")

    def test_what_an_item_holds_is_a_part_of_it(self):
        found = task(
            """
            **Acceptance Criteria:**
            - [ ] It answers:
              - fast
                - very
              - right

              ```json
              {"a":
                1}
              ```
            - [ ] tabs
            \t- kept
            - lazy
            line
            -
            """
        )

        assert found.acceptance_criteria == (
            'It answers:\n- fast\n  - very\n- right\n\n```json\n{"a":\n  1}\n```',
            "tabs\n  - kept",
            "lazy\nline",
        )

    def test_a_numbered_items_lines_are_moved_left_by_its_marker(self):
        found = task("**Acceptance Criteria:**\n\n10. a\n    - b\n11.      code\n")

        assert found.acceptance_criteria == ("a\n- b", "code")

    def test_lists_belong_to_it_up_to_the_next_label_heading_or_separator(self):
        found = task(
            """
            **Acceptance Criteria:**

            Functional:
            - a

            *Other:*
            1. b

            **Integration Tests (by category):**
            - no

            ### Acceptance Criteria

            #### Deeper
            - c

            ---
            - no
            """
        )

        assert found.acceptance_criteria == ("a", "b", "c")

    @pytest.mark.parametrize("after", ["### Notes", "**Unit Tests** (`x`):", "---", "**Notes:** x"])
    def test_what_ends_it(self, after: str):
        assert task(f"**Acceptance Criteria:**\n- a\n\n{after}\n- no\n").acceptance_criteria == (
            "a",
        )

    @pytest.mark.parametrize(
        "prose", ["**Acceptance Criteria:** It works.", "### Acceptance Criteria\n\nIt works.\n"]
    )
    def test_prose_is_one_criterion(self, prose: str):
        assert task(prose).acceptance_criteria == ("It works.",)

    @pytest.mark.parametrize(
        "body", ["", "- a list", "**Acceptance Criteria:**", "**Unit Tests:**\n- [ ] a"]
    )
    def test_a_task_may_have_none(self, body: str):
        assert task(body).acceptance_criteria == ()

    def test_success_criteria_are_noted_where_there_are_no_others(self):
        found = plan("# Task 1: a\n**Success Criteria:**\n- [ ] b\n")

        assert found.tasks[0].acceptance_criteria == ()
        assert "'Success Criteria' are not read" in notes(found)[2]

    def test_outside_a_task_they_are_noted(self):
        found = plan(
            "# M\n**Acceptance Criteria:**\n- a\n\n## Task 1: b\n\n## Acceptance Criteria\n- c\n"
        )

        assert found.tasks[0].acceptance_criteria == ()
        assert sorted(notes(found)) == [2, 7]

    def test_criteria_behind_the_end_of_a_task_are_noted_with_where_it_ends(self):
        found = plan("""\
            **Acceptance Criteria:**
            - early
            ### Task 1.1: First
            ## Not deeper than the task
            **Acceptance Criteria:**
            - late
            ### Task 1.2: Second
            """)

        assert [each.acceptance_criteria for each in found.tasks] == [(), ()]
        assert notes(found) == {
            1: "'Acceptance Criteria' are read in tasks only",
            5: "'Acceptance Criteria' are read in tasks only; task 1.1 ends at line 4",
        }


class TestPlan:
    @pytest.mark.parametrize(
        ("text", "title"),
        [
            ("# Milestone: Orchestrator Health Check", "Orchestrator Health Check"),
            ("# Milestone 3: Task Loop", "Milestone 3: Task Loop"),
            ("# Milestone:", "Milestone:"),
            ("# My Milestone: x", "My Milestone: x"),
            ("Two\nlines\n=====", "Two lines"),
            ("# The `x` *plan*", "The `x` *plan*"),
            ("Underlined\n==========", "Underlined"),
            ("## Not level 1", "m1"),
            ("", "m1"),
        ],
    )
    def test_the_title_is_the_first_heading_of_level_one(self, text: str, title: str):
        assert plan(f"{text}\n\n## Task 1: a\n\n# Appendix\n").title == title

    def test_a_task_is_no_title(self):
        assert plan("# Task 1: a\n# After").title == "m1"

    @pytest.mark.parametrize(
        "heading", ["E2E Test", "E2E Validation", "e2e scenario", "End-to-End Test"]
    )
    @pytest.mark.parametrize("after", [True, False])
    def test_the_scenario_is_a_section_of_the_plan(self, heading: str, *, after: bool):
        section = f"## {heading}\n\n```bash\n# Task\n```\n### Deeper\nx\n\n---\n\n"
        tasks = "## Task 1: a\nmine\n\n"
        found = plan("# M\n\n" + (tasks + section if after else section + tasks) + "## End\n")

        assert found.e2e == "```bash\n# Task\n```\n### Deeper\nx"
        assert found.tasks[0].text == "mine"
        assert found.notes == ()

    def test_a_scenario_may_stand_deeper_under_another_heading(self):
        assert (
            plan("## Task 1: a\n\n## Verification\n### E2E Test\nrun\n### Checklist\n").e2e == "run"
        )

    def test_a_scenario_inside_a_task_is_the_tasks_own(self):
        found = plan("## Task 1: a\n\n### E2E Test\nrun\n")

        assert (found.e2e, found.tasks[0].text) == (None, "### E2E Test\nrun")
        assert "inside a task" in notes(found)[3]

    def test_of_several_the_first_that_says_something_counts(self):
        found = plan(
            "# E2E\n\n# E2E Test\nrun\n## E2E part\nmore\n\n# E2E Notes\nno\n\n# Task 1: a\n"
        )

        assert found.e2e == "run\n## E2E part\nmore"
        assert sorted(notes(found)) == [3, 8]

    def test_there_may_be_none(self):
        assert plan("## Task 1: a\n## Task 2: E2E\n").e2e is None

    def test_notes_come_in_the_order_of_their_lines(self):
        found = plan(
            "**Depends on:** M1\n\n```\n# Task 9: x\n```\n# Task 1: a\n**Success Criteria:** x\n"
        )

        assert [note.line for note in found.notes] == [1, 4, 7]


class TestLoad:
    def test_the_dialect_is_recognised(self):
        found = plan("## Task 1: a", "docs/My plan.md")

        assert (found.dialect, found.id, found.path) == ("milestone", "My-plan", "docs/My plan.md")

    def test_the_dialect_may_be_named(self):
        assert load("a.txt", "## Task 1: a", dialect="milestone").dialect == "milestone"

    def test_a_dialect_that_does_not_exist_is_refused_with_those_that_do(self):
        said = refusal("## Task 1: a", dialect="latin")

        known = ", ".join(each.name for each in DIALECTS)
        assert said == f"plans/m1.md: there is no dialect 'latin'; the dialects are {known}"

    def test_names_of_dialects_are_unique(self):
        assert len({each.name for each in DIALECTS}) == len(DIALECTS)

    def test_a_plan_without_headings_is_told_what_a_plan_looks_like(self):
        assert refusal("just text").startswith(
            "plans/m1.md: no tasks found; a plan is Markdown with"
        )

    @pytest.mark.parametrize("options", [{}, {"dialect": "milestone"}])
    def test_a_plan_without_tasks_is_refused(self, options: dict[str, str]):
        said = refusal("# Title\n\n**Depends on:** M1\n\n## E2E\nx\n## E2E\ny\n", **options)

        assert said.startswith("plans/m1.md: no tasks found; a task is a heading")

    def test_where_all_tasks_are_code_the_first_is_shown(self):
        said = refusal("# Title\n```\n## Task 1: a\n```\n")

        assert said == (
            "plans/m1.md:3: no tasks found; this line looks like a task, "
            "but is in the code block that begins on line 2"
        )

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "plans/m1.md: the file is empty"),
            ("\ufeff \n\t\n", "plans/m1.md: the file is empty"),
            ("## Task 1: a\n\0", "plans/m1.md:2: the file is not text: it has a NUL byte"),
            ("## Task 1: a\r\r\udc80", "plans/m1.md:3: the file is not UTF-8 text"),
            ("## Task 1: a\n" + "x" * 1_000_001, "plans/m1.md:2: the file is no plan: a line has"),
            ("## Task 1: a\n" * 800_000, "plans/m1.md: the file is too long"),
        ],
    )
    def test_what_is_no_text_is_refused_before_it_is_read(self, text: str, said: str):
        assert refusal(text).startswith(said)

    def test_a_quotation_that_is_too_long_leaves_the_cure_in_sight(self):
        said = refusal(f"## Task {'x' * 1000}: a")

        assert said.startswith("plans/m1.md:1: task id 'xxx")
        assert " … " in said
        assert "xxx' cannot name a ref and a folder; an id is letters" in said
        assert len(said) < 700

    def test_a_long_list_that_is_no_plan_is_refused_without_parsing_it(self):
        began = process_time()
        said = refusal("- [ ] item\n" * 99_000)

        assert said.startswith("plans/m1.md: no tasks found")
        assert process_time() - began < 2

    def test_a_line_of_a_million_characters_is_read(self):
        assert task("x" * 1_000_000).text == "x" * 1_000_000

    @given(st.text())
    @example("- \t\n\n\t- x")
    def test_any_text_is_a_plan_or_refused(self, text: str):
        with suppress(PlanError):
            assert load("p.md", text).tasks

    @settings(max_examples=300)
    @given(
        st.lists(
            st.sampled_from(FRAGMENTS) | st.text(max_size=4),
            max_size=40,
        ),
        st.sampled_from(["\n", " ", ""]),
    )
    def test_any_heap_of_markdown_is_a_plan_or_refused(self, pieces: list[str], glue: str):
        text = glue.join(pieces)
        try:
            found = load("p.md", text)
        except PlanError:
            return
        assert milestone.has_task(text)
        lines = markdown.split_lines(text)
        for each in found.tasks:
            assert 1 <= each.line <= len(lines)
            assert "Task" in lines[each.line - 1]
            assert each.text in "\n".join(lines)

    def test_two_thousand_tasks_take_no_longer_than_three_times_the_parser(self):
        body = "**File:** `a`\n**Checks:** `b`\n\nText.\n\n**Acceptance Criteria:**\n- [ ] c\n- d\n"
        text = "\n".join(f"## Task {number}: t\n\n{body}" for number in range(2000))
        parser = MarkdownIt("commonmark")

        def seconds(work: Callable[[], object]) -> float:
            start = process_time()
            work()
            return process_time() - start

        assert len(load("p.md", text).tasks) == 2000
        mine = min(seconds(lambda: load("p.md", text)) for _ in range(3))
        its_own = min(seconds(lambda: parser.parse(text)) for _ in range(3))
        assert mine < 3 * its_own


class TestPlanId:
    @pytest.mark.parametrize(
        ("path", "expected"),
        [
            ("docs/health_check.md", "health_check"),
            ("C:\\plans\\a b.md", "a-b"),
            ("plan", "plan"),
            ("a.b.md", "a.b"),
            ("tasks/", "tasks"),
            (".md", "md"),
            ("..md", "md"),
            ("-rf.md", "rf"),
            ("x.lock.md", "x"),
            ("x.lock.LOCK.-.md", "x"),
            ("a..b.md", "a.b"),
            ("été.md", "t"),
            ("计划.md", "plan"),
            ("", "plan"),
            ("x" * 70 + ".md", "x" * 64),
        ],
    )
    def test_a_files_stem_is_made_safe(self, path: str, expected: str):
        assert plan_id(path, None) == expected

    def test_a_declared_id_wins(self):
        assert plan_id("a.md", "FEAT-12 x") == "FEAT-12-x"

    @given(st.text(), st.none() | st.text())
    @example("x.lock.", None)
    @example("a" * 60 + ".lock.md", None)
    def test_any_id_is_safe_and_stays_as_it_is(self, path: str, declared: str | None):
        safe = plan_id(path, declared)

        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", safe)
        assert ".." not in safe
        assert not safe.casefold().endswith((".", ".lock"))
        assert plan_id("other.md", safe) == safe


# A plan that is written as the dialect says is read as it was meant.

IDS = st.from_regex(
    r"[A-Za-z0-9_][A-Za-z0-9_-]{0,5}(\.[A-Za-z0-9_-]{1,4})?", fullmatch=True
).filter(
    lambda each: (
        milestone.has_task(f"# Task {each}: x")
        and each.casefold() not in {"none", "nothing", "na", "and", "or"}
        and not each.casefold().endswith(".lock")
    )
)
WORDS = st.from_regex(r"[A-Za-z]([A-Za-z0-9 `:,.()'\"/-]{0,30}[A-Za-z0-9])?", fullmatch=True)


@st.composite
def written(draw: st.DrawFn) -> tuple[str, list[Task]]:
    """A plan's text, and the tasks it is meant to have."""
    ids = draw(st.lists(IDS, min_size=1, max_size=6, unique_by=str.casefold))
    pieces = [draw(st.sampled_from(["", "---\na: b\n---\n", "\ufeff"])), f"# {draw(WORDS)}\n\n"]
    tasks: list[Task] = []
    for index, name in enumerate(ids):
        title = draw(WORDS)
        criteria = draw(st.lists(WORDS, max_size=4))
        deps = draw(
            st.none() | st.lists(st.sampled_from(ids[:index]), unique=True) if index else st.none()
        )
        lines = [draw(WORDS), ""]
        if deps is not None:
            lines += [f"**Depends on:** {', '.join(deps) or 'none'}", ""]
        if draw(st.booleans()):
            lines += ["```", f"## Task {name}: an example", "**Depends on:** nobody", "```", ""]
        if criteria:
            box = draw(st.sampled_from(["- ", "- [ ] ", "* [x] ", "1. "]))
            lines += ["**Acceptance Criteria:**", "", *(box + each for each in criteria), ""]
        body = "\n".join(lines).rstrip()
        end = draw(st.sampled_from(["\n\n", "\n\n---\n\n", "\n\n## Notes\n\nnothing\n\n"]))
        pieces.append(
            f"{draw(st.sampled_from(['##', '##', '###']))} Task {name}: {title}\n{body}{end}"
        )
        tasks.append(
            Task(
                id=name,
                title=title,
                text=body,
                acceptance_criteria=tuple(criteria),
                depends_on=tuple(deps)
                if deps is not None
                else tuple(ids[max(0, index - 1) : index]),
            )
        )
    return "".join(pieces), tasks


@settings(max_examples=200)
@given(written())
def test_a_well_formed_plan_is_read_as_it_was_meant(case: tuple[str, list[Task]]):
    text, meant = case

    found = load("p.md", text)

    seen = [
        Task(
            id=each.id,
            title=each.title,
            text=each.text,
            acceptance_criteria=each.acceptance_criteria,
            depends_on=each.depends_on,
        )
        for each in found.tasks
    ]
    assert seen == meant
