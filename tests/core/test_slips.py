"""Near misses are named with their line and what was meant, in every format (issue 15, line 6)."""

import pytest

from windlass.core.plan import Finding
from windlass.errors import PlanError
from windlass.formats import load

MILESTONE = """\
# Milestone: Hello

## Task 1.1: First

**Acceptance Criteria:**
- [ ] works

"""
TASKFILE = """\
---
id: TASK-1
status: backlog
{key}---

# Do it

{body}
"""
SPEC = """\
---
id: SPEC-1
status: draft
{key}---

# SPEC-1: Something

## {heading}

- [ ] works

## Task Groups

| Group | Tasks | {column} |
|---|---|---|
| G1 | build | - |
"""
SPECKIT = """\
# Tasks: Something

## Phase 1: Setup

- [ ] T001 Create src/a.py
  - **{label}:** it exists

## {phase}: Core

- [ ] T002 Create src/b.py
"""
LAYER_MD = """\
---
id: L1-001
{key}---

# L1-001: Do it

- **{label}:** none

## {heading}

- it works
"""
LAYER_XML = """\
<task{attribute}>
  <meta><id>L1-002</id><{meta}>Do it</{meta}></meta>
  <context><{inner}>works</{inner}></context>
  <{element}>it works</{element}>
</task>
"""
FEATURE = """\
id: FEAT-1
name: Something
{key}tasks:
  - id: TASK-1
    name: One
    {task}
smoke_gates:
  - after_wave: 1
    command: make test
    {gate}
"""


def warnings(path: str, text: str | dict[str, str]) -> list[tuple[str, int, str]]:
    """Each warning: the file, the line, the message with its suggestion."""
    try:
        notes = load(path, text).notes
    except PlanError as error:
        notes = error.findings
    return [(each.path, each.line, each.words) for each in notes if each.severity == "warning"]


class TestMilestone:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("**Depend on:** 1.1", "'depend on' is not read; did you mean '**Depends on:**'?"),
            (
                "**Acceptence Criteria:**",
                "'acceptence criteria' is not read; did you mean '**Acceptance Criteria:**'?",
            ),
            (
                "### Acceptence Criteria",
                "'acceptence criteria' is not read; did you mean '**Acceptance Criteria:**'?",
            ),
            ("**Max turn:** 3", "'max turn' is not read; did you mean '**Max turns:**'?"),
            ("**Complexty:** 3", "'complexty' is not read; did you mean '**Complexity:**'?"),
            (
                "## Tsk 1.2: Second",
                "'Tsk 1.2: Second' is not a task; did you mean 'Task 1.2: Second'?",
            ),
            (
                "### [ ] Taks 2 - b",
                "'[ ] Taks 2 - b' is not a task; did you mean '[ ] Task 2 - b'?",
            ),
            ("## Task1.2: b", "'Task1.2: b' is not a task; did you mean 'Task 1.2: b'?"),
            (
                "##Task 1.2: b",
                "has no space after '#', so it is no heading; write '## Task 1.2: b'",
            ),
            ("Depends on: 1.1", "only a bold label is a field; write '**Depends on:**'"),
            (
                "- Acceptance Criteria:",
                "only a bold label is a field; write '**Acceptance Criteria:**'",
            ),
        ],
    )
    def test_a_near_miss_is_named(self, text: str, words: str):
        assert warnings("p.md", f"{MILESTONE}{text}\n") == [("", 8, words)]

    @pytest.mark.parametrize(
        "text",
        [
            *(
                "**Mode:** x",
                "**State:** x",
                "**Models:** x",
                "**Dependencies:** x",
                "**Notes:** x",
            ),
            *(
                "## Tasks 1-3: all",
                "## Tasks 1.2: all",
                "## Test 1.2: x",
                "## Talk 2: x",
                "## Desk 1:",
            ),
            *(
                "Depends on: the weather",
                "```\n## Tsk 1.2: x\n```",
                "Task1.2: x",
                "# Taskforce 1: x",
            ),
            *("**Success Criteria:** x", "##Tags 1", "## Step 1.2: x"),
        ],
    )
    def test_another_word_is_not_named(self, text: str):
        assert warnings("p.md", f"{MILESTONE}{text}\n") == []

    def test_a_field_below_a_misspelt_task_is_named_too(self):
        text = f"{MILESTONE}## Tsk 1.2: Second\n\n**Depend on:** 1.1\n"
        assert [line for _, line, _ in warnings("p.md", text)] == [8, 10]

    def test_a_plan_of_slips_alone_says_so(self):
        with pytest.raises(PlanError, match=r"^p.md:3: no tasks found; 'Tsk 1: a' is not a task; "):
            load("p.md", "# Plan\n\n## Tsk 1: a\n")


class TestOtherFormats:
    @pytest.mark.parametrize(
        ("key", "body", "found"),
        [
            ("depends_in: x\n", "", (4, "the key 'depends_in' is not read")),
            ("dependsOn: x\n", "", (4, "did you mean 'depends_on'?")),
            (
                "complexty: 3\n",
                "",
                (4, "the key 'complexty' is not read; did you mean 'complexity'?"),
            ),
            ("depends-on: x\n", "", (4, "did you mean 'depends_on'?")),
            ("", "## Acceptence Criteria\n- a", (8, "did you mean 'Acceptance Criteria'?")),
            ("", "**Acceptance Critera:**\n- a", (8, "did you mean 'Acceptance Criteria'?")),
            ("", "**Cheks:** `make`", (8, "'cheks' is not read; did you mean '**Checks:**'?")),
            ("created: 2026\nmodel: x\ntags: [a]\n", "## Acceptance Criteria\n- a", None),
            ("", "**Check:** look", None),
        ],
    )
    def test_a_task_file(self, key: str, body: str, found: tuple[int, str] | None):
        told = warnings("t.md", TASKFILE.format(key=key, body=body))
        if key == "depends_in: x\n" or found is None:
            assert told == []
            return
        ((_, line, words),) = told
        assert line == found[0]
        assert found[1] in words

    def test_a_key_is_no_slip_where_the_right_one_is_there_too(self):
        text = TASKFILE.format(key="titel: a\ntitle: b\n", body="")
        assert warnings("t.md", text) == []

    def test_a_file_of_a_folder_is_named(self):
        texts = {
            "f/1.md": TASKFILE.format(key="complexty: 3\n", body="## Acceptance Criteria\n- a")
        }
        assert [(path, line) for path, line, _ in warnings("f", texts)] == [("f/1.md", 4)]

    @pytest.mark.parametrize(
        ("parts", "found"),
        [
            ({}, []),
            ({"key": "titel: x\n"}, [(4, "the key 'titel' is not read; did you mean 'title'?")]),
            (
                {"heading": "Acceptence Criteria"},
                [(8, "'acceptence criteria' is not read; did you mean '## Acceptance Criteria'?")],
            ),
            ({"heading": "**Acceptance Critera:**"}, []),
            (
                {"column": "Dependancies"},
                [(14, "the column 'dependancies' is not read; did you mean 'Dependencies'?")],
            ),
            ({"column": "Effort"}, []),
        ],
    )
    def test_a_spec(self, parts: dict[str, str], found: list[tuple[int, str]]):
        whole = {"key": "", "heading": "Acceptance Criteria", "column": "Dependencies", **parts}
        told = warnings("s.md", SPEC.format(**whole))
        assert [(line, words) for _, line, words in told] == found

    def test_a_label_of_a_spec(self):
        text = SPEC.format(key="", heading="Goals", column="Wave").replace("| - |", "| 1 |")
        told = warnings("s.md", f"{text}\n**Acceptence Criteria:**\n- a\n")
        assert [line for _, line, _ in told] == [18]

    @pytest.mark.parametrize(
        ("phase", "label", "lines"),
        [
            ("Phase 2", "Acceptance Criteria", []),
            ("Phase 2", "Acceptance", []),
            ("Pahse 2", "Acceptance Criteria", [8]),
            ("Phase 2", "Acceptence", [6]),
            ("Place 2", "Path", []),
        ],
    )
    def test_a_spec_kit_list(self, phase: str, label: str, lines: list[int]):
        told = warnings("tasks.md", SPECKIT.format(phase=phase, label=label))
        assert [line for _, line, _ in told] == lines

    @pytest.mark.parametrize(
        ("parts", "found"),
        [
            ({}, []),
            (
                {"key": "priorty: 1\n"},
                [(3, "the key 'priorty' is not read; did you mean 'priority'?")],
            ),
            (
                {"heading": "Requirments"},
                [(9, "'requirments' is not read; did you mean '## Requirements'?")],
            ),
            (
                {"label": "Depend on"},
                [(7, "'depend on' is not read; did you mean '**Depends on:**'?")],
            ),
            ({"label": "Notes"}, []),
        ],
    )
    def test_a_layers_file(self, parts: dict[str, str], found: list[tuple[int, str]]):
        whole = {"key": "", "heading": "Requirements", "label": "Depends on", **parts}
        told = warnings("f", {"f/1-base/L1-001.md": LAYER_MD.format(**whole)})
        assert [(line, words) for _, line, words in told] == found
        assert all(path == "f/1-base/L1-001.md" for path, _, _ in told)

    @pytest.mark.parametrize(
        ("parts", "words"),
        [
            ({}, None),
            (
                {"element": "requirments"},
                "<requirments> is not read; did you mean '<requirements>'?",
            ),
            ({"meta": "prioritty"}, "<prioritty> is not read; did you mean '<priority>'?"),
            ({"inner": "acceptence-criteria"}, "did you mean '<acceptance-criteria>'?"),
            ({"attribute": ' prioritty="1"'}, "the attribute 'prioritty' is not read"),
            ({"element": "notes"}, None),
        ],
    )
    def test_a_layers_file_in_xml(self, parts: dict[str, str], words: str | None):
        whole = {"attribute": "", "meta": "name", "inner": "requirements", "element": "exports"}
        told = warnings("f", {"f/1-base/L1-002.xml": LAYER_XML.format(**{**whole, **parts})})
        assert [(words or "") in each for _, _, each in told] == [True] * bool(words)

    def test_an_xml_root_that_is_a_slip(self):
        with pytest.raises(PlanError, match=r"<tsk> is not a <task>; did you mean 'task'\?"):
            load("f", {"f/1-base/L1-002.xml": "<tsk></tsk>", "f/1-base/L1-001.md": LAYER_MD})

    def test_a_manifest(self):
        task = LAYER_MD.format(key="", heading="Requirements", label="Depends on")
        manifest = '{\n"titel": "x",\n"tasks": [\n{"id": "L1-001", "depend_on": []}]}'
        texts = {"f/1-base/L1-001.md": task, "f/manifest.json": manifest}
        assert warnings("f", texts) == [
            ("f/manifest.json", 2, "the key 'titel' is not read; did you mean 'title'?"),
            ("f/manifest.json", 4, "the key 'depend_on' is not read; did you mean 'depends_on'?"),
        ]
        both = texts | {"f/manifest.json": '{"titel": "x", "title": "y"}'}
        assert warnings("f", both) == []

    @pytest.mark.parametrize(
        ("parts", "found"),
        [
            ({}, []),
            ({"key": "orchestraton: x\n"}, [(3, "did you mean 'orchestration'?")]),
            ({"task": "complexty: 3"}, [(6, "'complexty' of a task is not read; did you mean")]),
            ({"gate": "expected_exitt: 0"}, [(10, "did you mean 'expected_exit'?")]),
            ({"key": "owner: x\n", "task": "owner: y"}, []),
        ],
    )
    def test_a_feature(self, parts: dict[str, str], found: list[tuple[int, str]]):
        text = FEATURE.format(**{"key": "", "task": "wave: 1", "gate": "name: x", **parts})
        told = warnings("FEAT-1.yaml", text)
        assert [line for _, line, _ in told] == [line for line, _ in found]
        assert all(part in words for (_, part), (_, _, words) in zip(found, told, strict=True))


def errors(path: str, text: str | dict[str, str]) -> list[str]:
    with pytest.raises(PlanError) as refused:
        load(path, text)
    return [f"{each.place}: {each.text}" for each in refused.value.findings]


class TestAllErrorsAtOnce:
    def test_of_a_milestone_with_its_warnings_last(self):
        text = (
            "## Task 1.1: a\n**Complexity:** huge\n**Max turns:** 500\n**Stage:** 1\n**Stage:** 2\n"
            "## Task 1.2: b\n**Depends on:** 1.9\n**Checks:** make\n**Depend on:** 1.1\n"
            "## Task 1.3: c\n**Depends on:** 1.4\n## Task 1.4: d\n**Depends on:** 1.3\n"
        )
        assert errors("p.md", text) == [
            "p.md:2: 'complexity' cannot be 'huge'",
            "p.md:3: 'max turns' cannot be '500'",
            "p.md:5: 'stage' cannot be '2'",
            "p.md:6: task '1.2' depends on '1.9', which is not in the plan",
            "p.md:8: 'checks' cannot be 'make'",
            "p.md:10: tasks wait for each other: 1.3 → 1.4 → 1.3",
            "p.md:9: 'depend on' is not read",
        ]

    def test_the_first_is_the_error_itself(self):
        with pytest.raises(PlanError) as refused:
            load("p.md", "## Task 1: a\n## Task 1: b\n## Task a/b: c\n")
        assert str(refused.value).startswith("p.md:2: task id '1' is already used on line 1; ")
        assert len(refused.value.findings) == 2

    def test_two_cycles_are_two_errors(self):
        rows = "".join(
            f"## Task {a}: x\n**Depends on:** {b}\n" for a, b in ("ab", "ba", "cd", "dc", "ea")
        )
        assert len(errors("p.md", rows)) == 2

    def test_of_a_folder_of_task_files(self):
        texts = {
            "f/1.md": "---\nid: [\nstatus: x\n---\n",
            "f/2.md": "---\nid: ''\nstatus: x\n---\n",
            "f/3.md": "---\nid: T-3\nstatus: x\ncomplexity: huge\ntitle: [a]\n---\n**Checks:** x\n",
        }
        assert [each.split(":")[0] for each in errors("f", texts)] == [
            *("f/1.md", "f/2.md", "f/3.md", "f/3.md", "f/3.md")
        ]

    def test_of_waves(self):
        texts = {
            f"f/{n}.md": f"---\nid: T-{n}\nstatus: x\nwave: {n}\ndepends_on: T-{n + 1}\n---\n"
            for n in range(1, 4)
        }
        assert len(errors("f", texts)) == 2

    def test_of_a_feature(self):
        text = (
            "id: [a]\nname: x\ntasks:\n  - id: T-1\n    complexity: huge\n  - just text\n"
            "  - name: b\n"
            "  - id: T-2\n    file_path: t.md\n  - id: T-3\n    file_path: t.md\n"
            "waves:\n  - [T-1, T-9]\n  - [T-1]\n"
        )
        found = errors("FEAT-1.yaml", {"FEAT-1.yaml": text, "t.md": "# T\n"})
        assert [each.split(": ", 1)[1] for each in found] == [
            "'id' is not one word or sentence",
            "'just text' among the tasks is not a task",
            "'complexity' is not a number from 0 to 10",
            "the task has no id",
            "tasks 'T-2' and 'T-3' have the same file",
            "wave 1 has 'T-9', which is not a task of this feature",
            "task 'T-1' is in waves 1 and 2",
        ]

    def test_of_a_spec(self):
        text = SPEC.format(key="", heading="Goals", column="Wave").replace(
            "| G1 | build | - |",
            "| G1 | build | x | y |\n| - | a | 1 |\n| G2 | | 2 |\n| G3 | c | one |\n",
        )
        assert [each.split(":")[1] for each in errors("s.md", text)] == [
            "16",
            "16",
            "17",
            "18",
            "19",
        ]

    def test_of_a_spec_whose_groups_are_in_the_wrong_waves(self):
        text = SPEC.format(key="", heading="Goals", column="Wave").replace(
            "| Group | Tasks | Wave |\n|---|---|---|\n| G1 | build | - |",
            "| Group | Tasks | Wave | Deps |\n|---|---|---|---|\n"
            "| G1 | a | 1 | G3 |\n| G2 | b | 1 | G3 |\n| G3 | c | 2 | - |",
        )
        assert len(errors("s.md", text)) == 2

    def test_of_a_spec_kit_list(self):
        text = (
            "# Tasks: x\n\n- [ ] T001 a (depends on T009)\n- [ ] T002 b (depends on T003)\n"
            "- [ ] T003 c\n- [ ] TXXX d\n- [ ] T004-T006 e\n\nText\n    - [ ] T007 f\n"
        )
        assert [each.split(":")[1] for each in errors("tasks.md", text)] == [
            "3",
            "4",
            "6",
            "7",
            "10",
        ]

    def test_of_layers(self):
        task = LAYER_MD.format(key="", heading="Requirements", label="Depends on")
        texts = {
            "f/1-base/L1-001.md": task.replace("none", "L2-001"),
            "f/1-base/L1-002.xml": "<task><meta>",
            "f/2-more/L2-001.md": task.replace("L1-001", "L2-001"),
            "f/manifest.json": "{",
        }
        assert [each.split(":")[0] for each in errors("f", texts)] == [
            *("f/1-base/L1-001.md", "f/1-base/L1-002.xml", "f/manifest.json")
        ]

    def test_a_layers_file_without_a_layer(self):
        text = "<task><meta><id>{}</id></meta></task>"
        texts = {f"f/{name}.xml": text.format(name) for name in ("a", "b")}
        assert len(errors("f", texts)) == 2


def test_findings_know_their_place_and_words():
    found = Finding(path="p.md", line=3, text="odd", suggestion="mend it")
    assert (found.place, found.words) == ("p.md:3", "odd; mend it")
    assert Finding(path="p.md", line=0, text="odd").place == "p.md"
    assert Finding(line=1, text="odd").words == "odd"
