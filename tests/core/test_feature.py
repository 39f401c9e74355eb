"""A feature's YAML is a plan: tasks, the files they stand in, waves and smoke gates (G14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.plan import Plan, Stage
from windlass.errors import PlanError
from windlass.formats import DIALECTS, feature, load, refers_to, writes
from windlass.formats.dialect import Source

FEATURE = """\
# ## Task 1.1: a comment is no heading
id: FEAT-1
name: Log in
description: 'All of it'
status: planned
tasks:
- id: TASK-A
  name: First
  file_path: tasks/backlog/login/TASK-A-first.md
  complexity: 3
  dependencies: []
  status: completed
- id: TASK-B
  name: Second
  file_path: ./tasks/backlog/login/TASK-B.md
  dependencies:
  - task-a
  status: pending
  description: do the second
  requires_infrastructure: [redis]
smoke_gates:
  after_wave: [1, 3]
  command: |
    set -e
    make smoke
  expected_exit: 0
  timeout: 60
orchestration:
  parallel_groups:
  - - TASK-A
  - - TASK-B
scenarios:
  one: {verifier: hurl}
"""
FILE = """\
---
id: TASK-A
title: not this
status: backlog
complexity: 8
depends_on: [TASK-Z]
---
# Body

## Acceptance Criteria
- [ ] it works

**Checks:** `make a`
"""


def files(**texts: str) -> dict[str, str]:
    return {"f.yaml": FEATURE, "tasks/backlog/login/TASK-A-first.md": FILE, **texts}


def yaml(tasks: str, more: str = "") -> str:
    return f"id: FEAT-1\nname: x\ntasks:\n{tasks}{more}"


def notes(plan: Plan) -> list[str]:
    return [f"{note.path}:{note.line}: {note.text}" for note in plan.notes]


def test_the_whole_feature():
    plan = load("f.yaml", files())
    assert (plan.id, plan.title, plan.dialect) == ("FEAT-1", "Log in", "feature")
    a, b = plan.tasks
    assert (a.id, a.title, a.stage, a.depends_on) == ("TASK-A", "First", "1", ())
    assert a.text == FILE.split("---\n")[2].strip()
    assert (a.acceptance_criteria, a.checks) == (("it works",), ("make a",))
    assert (a.complexity, a.marked_done) == (3, True)
    assert (a.path, a.line) == ("tasks/backlog/login/TASK-A-first.md", 1)
    assert (b.id, b.stage, b.depends_on) == ("TASK-B", "2", ("TASK-A",))
    assert b.text == "Second\n\ndo the second\n\nIt is a part of this feature: All of it"
    assert (b.path, b.line, b.marked_done, b.acceptance_criteria) == ("", 13, False, ())
    assert plan.stages == (Stage(name="1", checks=("set -e\nmake smoke",)), Stage(name="2"))
    assert writes(plan) == (a.path,)
    assert notes(plan) == [
        ":15: tasks/backlog/login/TASK-B.md does not exist, so the text here is used",
        ":20: 'requires_infrastructure' of a task is not read",
        ":22: the smoke gate after wave '3' is not kept: there is no such wave",
        ":27: 'timeout' of a smoke gate is not read; it is a check like any other",
        ":32: 'scenarios' is not read",
        f"{a.path}:6: depends on 'TASK-Z', which the feature does not say: ignored",
    ]


def test_it_refers_to_files_below_the_repository_only():
    paths = refers_to("f.yaml", {"f.yaml": FEATURE})
    assert paths[0] == "tasks/backlog/login/TASK-A-first.md"
    assert "tasks/completed/TASK-A-first.md" in paths, "it may have been moved there"
    assert "tasks/in_review/login/TASK-B.md" in paths
    for path in (
        "../x.md", "/x.md", "a/../b.md", ".git/x.md", "a//b.md", "x.env", "a\\b.md", "~/.ssh/id",
        '"a\\u0001.md"', "x" * 600 + ".md", "[a]", "",
    ):  # fmt: skip
        text = yaml(f"- id: A\n  file_path: {path}\n")
        assert refers_to("f.yaml", {"f.yaml": text}) == ()
        plan = load("f.yaml", {"f.yaml": text, path: "secret"})
        assert plan.tasks[0].path == ""
        assert "secret" not in plan.tasks[0].text
        assert len(plan.notes) == 1
    assert refers_to("f.yaml", {"f.yaml": yaml("- id: 'A\n")}) == ()
    assert refers_to("f.yaml", {"f.yaml": "id: FEAT-1\ntasks: none\n"}) == ()


def test_a_file_that_was_moved_is_found():
    moved = {"f.yaml": FEATURE, "tasks/in_review/TASK-A-first.md": FILE}
    plan = load("f.yaml", moved)
    assert plan.tasks[0].path == "tasks/in_review/TASK-A-first.md"
    assert "was moved to tasks/in_review/TASK-A-first.md" in plan.notes[0].text


def test_a_file_without_a_frontmatter_or_with_a_broken_one_is_still_the_tasks_text():
    bare = load("f.yaml", files(**{"tasks/backlog/login/TASK-B.md": "## Acceptance criteria\n- x"}))
    assert bare.tasks[1].acceptance_criteria == ("x",)
    broken = "---\nid: 'x\n---\n# B\n## Acceptance criteria\n- y\n"
    plan = load("f.yaml", files(**{"tasks/backlog/login/TASK-B.md": broken}))
    assert plan.tasks[1].acceptance_criteria == ("y",)
    assert plan.tasks[1].text.startswith("# B")
    assert "the frontmatter cannot be read" in notes(plan)[-1]


def test_what_the_file_says_otherwise_is_noted():
    other = FILE.replace("id: TASK-A", "id: TASK-Q")
    plan = load("f.yaml", files(**{"tasks/backlog/login/TASK-A-first.md": other}))
    assert plan.tasks[0].id == "TASK-A"
    assert any("calls this task TASK-A, not TASK-Q" in note for note in notes(plan))


@pytest.mark.parametrize(
    ("waves", "stages"),
    [
        ("waves:\n  wave_1:\n    tasks: [A]\n  wave_2:\n    tasks: [B]\n", ["1", "2"]),
        ("waves:\n- wave: 2\n  tasks: [A]\n- wave: 4\n  tasks: [B]\n", ["2", "4"]),
        ("waves:\n  first: [A]\n  then: [B]\n", ["1", "2"]),
        ("orchestration:\n  waves: [[A], [{id: b}]]\n", ["1", "2"]),
        ("parallel_groups: [A, B]\n", ["1", "2"]),
        ("parallel_groups: [[A, B], []]\n", ["1", "1"]),
        ("parallel_groups: [[], [A], [B]]\n", ["2", "3"]),
        ("orchestration:\n  parallel_groups: []\n", [None, None]),
        ("orchestration: none\n", [None, None]),
        ("parallel_groups: A, B\n", ["1", "1"]),
    ],
)
def test_waves_in_every_form(waves, stages):
    plan = load("f.yaml", yaml("- id: A\n- id: B\n", waves))
    assert [task.stage for task in plan.tasks] == stages
    names = sorted({stage for stage in stages if stage})
    assert [stage.name for stage in plan.stages] == names


def test_tasks_may_name_their_waves_themselves_and_one_may_not():
    tasks = "- {id: A, wave: 1}\n- {id: B, wave: wave-2}\n- {id: C, dependencies: [B]}\n- id: D\n"
    plan = load("f.yaml", yaml(tasks + "- {id: E, depends_on: 'C, D'}\n"))
    assert [task.stage for task in plan.tasks] == ["1", "2", "2", "1", "2"]
    assert plan.tasks[4].depends_on == ("C", "D")
    assert [n.text for n in plan.notes if "wave" in n.text] == [
        "names no wave, so it joins wave 2",
        "names no wave, so it joins wave 1",
        "names no wave, so it joins wave 2",
    ]


def test_of_two_lists_of_waves_one_is_read():
    plan = load("f.yaml", yaml("- id: A\n", "parallel_groups: [[A]]\nwaves: [[A]]\n"))
    assert "these waves are not read; those on line 5 are" in notes(plan)[1]


GATED = "- id: A\n- id: B\n"
WAVES = "parallel_groups: [[A], [B]]\n"


@pytest.mark.parametrize(
    ("gates", "checks"),
    [
        ("{after_wave: all, command: x}", [("x",), ("x",)]),
        ("{after_wave: 2, command: x, expected_exit: 0}", [(), ("x",)]),
        ("[{after_wave: 1, command: x}, {after_waves: [1], command: y}]", [("x", "y"), ()]),
    ],
)
def test_smoke_gates(gates, checks):
    plan = load("f.yaml", yaml(GATED, WAVES + f"smoke_gates: {gates}\n"))
    assert [stage.checks for stage in plan.stages] == checks


@pytest.mark.parametrize(
    ("gates", "why"),
    [
        ("{after_wave: 1, command: x, expected_exit: 3}", "it expects the exit code 3"),
        ("{after_wave: 1, command: x, expected_exit: [0]}", "it expects the exit code"),
        ("{after_wave: 1}", "it has no command"),
        ("{after_wave: 1, command: ' '}", "it has no command"),
        ("{after_wave: 1, command: [x]}", "it has no command"),
        ("{command: x}", "it does not say after which wave"),
        ("{after_wave: 7, command: x}", "there is no such wave"),
        ("{after_wave: [[1]], command: x}", "there is no such wave"),
        ("make smoke", "has no 'command'"),
    ],
)
def test_a_gate_that_cannot_be_kept_is_noted(gates, why):
    plan = load("f.yaml", yaml(GATED, WAVES + f"smoke_gates: {gates}\n"))
    assert not any(stage.checks for stage in plan.stages)
    assert any(why in note.text and note.line == 7 for note in plan.notes)


def test_gates_without_waves_are_noted():
    plan = load("f.yaml", yaml(GATED, "smoke_gates: {after_wave: all, command: x}\n"))
    assert plan.stages == ()
    assert any("there is no such wave" in note.text for note in plan.notes)


def test_criteria_and_work_by_hand_in_the_yaml_itself():
    task = "- {id: A, acceptance_criteria: [a, ' ', b], implementation_mode: manual}\n"
    plan = load("f.yaml", yaml(task + "- {id: B, acceptance_criteria: c}\n"))
    assert [task.acceptance_criteria for task in plan.tasks] == [("a", "b"), ("c",)]
    assert any("manual" in note.text for note in plan.notes)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (yaml("- id: A\n- id: a\n"), "f.yaml:5: task id 'a' is already used on line 4"),
        (yaml("- id: ../../x\n"), "f.yaml:4: task id '../../x' cannot"),
        (yaml("- id: -rf\n"), "cannot name a ref"),
        (yaml("- id: A\n  dependencies: [Z]\n"), "depends on 'Z', which is not in the plan"),
        (yaml("- id: A\n  dependencies: [B]\n- {id: B, dependencies: [A]}\n"), "wait for each"),
        (yaml("- name: A\n"), "f.yaml:4: the task has no id"),
        (yaml("- id: [A]\n"), "f.yaml:4: 'id' is not one word"),
        (yaml("- A\n", "waves: []\n"), "f.yaml:3: 'A' among the tasks is not a task"),
        ("id: FEAT-1\ntasks: none\n", "f.yaml:2: 'tasks' is not a list"),
        ("id: FEAT-1\ntasks: []\n", "no tasks found"),
        (yaml("- {id: A, complexity: 11}\n"), "f.yaml:4: 'complexity' is not a number"),
        (yaml("- {id: A, complexity: much}\n"), "'complexity' is not a number from 0 to 10"),
        (yaml("- id: A\n", "waves: [[A, Z]]\n"), "f.yaml:5: wave 1 has 'Z', which is not a task"),
        (yaml("- id: A\n", "waves: [[A], [A]]\n"), "task 'A' is in waves 1 and 2"),
        (
            yaml("- {id: A, dependencies: [B]}\n- id: B\n", "waves: [[A], [B]]\n"),
            "f.yaml:4: task 'A' of wave 1 depends on 'B' of wave 2",
        ),
        (
            yaml(
                "- {id: A, dependencies: [B]}\n- {id: B, dependencies: [A]}\n- {id: C, wave: 1}\n"
            ),
            "tasks wait for each other",
        ),
        (yaml("- id: A\n  id: B\n"), "f.yaml:5: the file has the key 'id' twice"),
        (yaml("- &a {id: A}\n- *a\n"), "an anchor or an alias"),
        (yaml("- id: A\n  x: " + "[" * 900), "nested more than 20 deep"),
        (yaml("- id: 'A\n"), "the file is not YAML"),
        (yaml("- id: A\n", "---\nid: B\n"), "more than one YAML document"),
        (yaml("".join(f"- id: T{n}\n" for n in range(20_001))), "more than 10,000 tasks"),
        (yaml("- id: A\n", "x: [" + ("a," * 50 + "\n") * 2_001), "more than 100,000 values"),
        (yaml("- id: A\n", "x: |\n" + " aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n" * 70_000), "2,000,000"),
    ],
)
def test_what_cannot_be_used_says_where(text, why):
    with pytest.raises(PlanError) as refused:
        load("f.yaml", text)
    assert why in str(refused.value)


def test_without_keys_there_is_no_feature():
    with pytest.raises(PlanError, match=r"f\.yaml:1: the file has no keys"):
        load("f.yaml", "# a comment\n", dialect="feature")


def test_a_dependency_that_both_declare_needs_no_word():
    own = FILE.replace("id: TASK-A", "id: TASK-B").replace("TASK-Z", "TASK-A")
    plan = load("f.yaml", files(**{"tasks/backlog/login/TASK-B.md": own}))
    assert plan.tasks[1].depends_on == ("TASK-A",)
    assert not any(note.path == "tasks/backlog/login/TASK-B.md" for note in plan.notes)


def test_two_tasks_cannot_stand_in_one_file():
    text = yaml("- {id: A, file_path: a.md}\n- {id: B, file_path: a.md}\n")
    with pytest.raises(PlanError, match="tasks 'A' and 'B' have the same file"):
        load("f.yaml", {"f.yaml": text, "a.md": "# A"})


def test_a_document_may_begin_with_its_mark():
    assert load("f.yaml", "---\n" + FEATURE).id == "FEAT-1"
    assert load("f.yml", "feature_id: FEAT-2\ntasks:\n- id: A\n").id == "FEAT-2"


@pytest.mark.parametrize(
    ("path", "text", "meant"),
    [
        ("f.yaml", FEATURE, True),
        ("no-suffix", FEATURE, True),
        ("f.md", FEATURE, True),
        ("f.md", f"# Doc\n\n```yaml\n{FEATURE}```\n", False),
        ("f.md", f"---\n{FEATURE}---\n# Body\n", False),
        ("Taskfile.yml", "version: '3'\ntasks:\n  build:\n    id: x\n", False),
        ("play.yaml", "id: site\ntasks:\n- name: x\n", False),
        ("f.yaml", yaml("- id: 'A\n"), True),
        ("f.md", yaml("- id: 'A\n"), False),
        ("f.md", "id: FEAT-1\ntasks: none\n", False),
    ],
)
def test_it_is_known_by_what_it_contains(path, text, meant):
    assert feature.recognises(Source(path=path, texts={path: text})) is meant
    if meant:
        found = next(
            each for each in DIALECTS if each.recognises(Source(path=path, texts={path: text}))
        )
        assert found.name == "feature", "the first to know it"


def test_a_folder_is_no_feature():
    assert not feature.recognises(Source(path="d", texts={"d/f.yaml": FEATURE}))


FRAGMENTS = st.sampled_from(
    ["id: FEAT-1\n", "tasks:\n", "- id: A\n", "- id: B\n", "  file_path: a.md\n", "  wave: 2\n",
     "  dependencies: [A]\n", "waves:\n", "- [A]\n", "  wave_1: [A]\n", "smoke_gates:\n",
     "  after_wave: all\n", "  command: x\n", "orchestration:\n", "  parallel_groups:\n",
     "  - - A\n", "    - B\n", "? x\n", "&a ", "*a", "'", '"', "{", "}", "[", "]", "\t", "---\n",
     "  status: done\n", "  complexity: 5/10\n", "- {id: C, complexity: 3}\n", "  x: |\n", "\n"]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=24), st.sampled_from(["f.yaml", "f.md"]))
def test_any_heap_of_fragments_is_a_plan_or_refused(parts, path):
    text = "id: FEAT-9\ntasks:\n" + "".join(parts)
    refers_to(path, {path: text})
    try:
        plan = load(path, {path: text, "a.md": FILE})
    except PlanError:
        return
    assert plan.tasks
