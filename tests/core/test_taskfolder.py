"""A folder of task files is a plan of several tasks (G1 G14)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.plan import Plan
from windlass.errors import PlanError
from windlass.formats import load, writes
from windlass.formats.dialect import Source
from windlass.formats.taskfile import TASKFOLDER


def task(task_id: str, front: str = "", body: str = "# T\n") -> str:
    return f"---\nid: {task_id}\ntitle: Title of {task_id}\nstatus: backlog\n{front}---\n{body}"


FOLDER = {
    "d/README.md": "# Read me\n",
    "d/TASK-10-last.md": task("TASK-10", "wave: 2\ndepends_on: task-2\nparallel_group: x\n"),
    "d/TASK-2-first.md": task("TASK-2", "wave: 1\ndependencies: [OTHER-1, none]\ncomplexity: 7\n"),
    "d/TASK-2-completion-report.md": task("TASK-2"),
    "d/sub/TASK-3.md": task("TASK-3", "parallel_group: wave2-1\nblocked_by:\n- TASK-2 (first)\n"),
    "d/FEAT-1.yaml": "id: FEAT-1\n",
    "d/guide.md": "---\nname: no task\n---\n",
}


def notes(plan: Plan) -> list[str]:
    return [f"{note.path}:{note.line}: {note.text}" for note in plan.notes]


def test_the_whole_folder():
    plan = load("d", FOLDER)
    assert (plan.id, plan.title, plan.dialect, plan.path) == ("d", "d", "taskfolder", "d")
    assert [task.id for task in plan.tasks] == ["TASK-2", "TASK-10", "TASK-3"], "2 before 10"
    first, last, inner = plan.tasks
    assert (first.title, first.complexity, first.path) == (
        "Title of TASK-2",
        7,
        "d/TASK-2-first.md",
    )
    assert (first.text, first.line, first.depends_on) == ("# T", 1, ())
    assert (last.depends_on, last.stage) == (("TASK-2",), "2")
    assert (inner.depends_on, inner.stage) == (("TASK-2",), "2")
    assert [stage.name for stage in plan.stages] == ["1", "2"]
    assert writes(plan) == ("d/TASK-2-first.md", "d/TASK-10-last.md", "d/sub/TASK-3.md")
    assert sorted(notes(plan)) == [
        "d/FEAT-1.yaml:1: is not Markdown, so it is not a task here",
        "d/README.md:1: has no frontmatter, so it is not a task here",
        (
            "d/TASK-2-completion-report.md:1: "
            "is about task TASK-2, whose file is d/TASK-2-first.md, so it is not a task here"
        ),
        ("d/TASK-2-first.md:6: depends on 'OTHER-1', which is not in this folder: ignored"),
        "d/guide.md:1: has no task's frontmatter, so it is not a task here",
    ]


def test_without_waves_there_are_no_stages():
    plan = load("d", {"d/a.md": task("A", "wave: soon\n"), "d/b.md": task("B", "wave: N/A\n")})
    assert plan.stages == ()
    assert [task.stage for task in plan.tasks] == [None, None]
    assert notes(plan) == ["d/a.md:5: 'wave' has no number, so it is not a wave"]


@pytest.mark.parametrize(
    ("said", "stage"),
    [("3", "3"), ("03", "3"), ("3.5", "3.5"), ("wave-2", "2"), ("x-fix-wave1-2", "1"), ("2A", "2"),
     ("'Wave 4'", "4"), ("1.0", "1")],
)  # fmt: skip
def test_a_wave_in_every_spelling(said, stage):
    plan = load("d", {"d/a.md": task("A", f"wave: {said}\n")})
    assert plan.tasks[0].stage == stage


def test_waves_are_ordered_as_numbers():
    files = {f"d/{n}.md": task(f"T{n}", f"wave: {n}\n") for n in ("10", "2", "3.5", "3")}
    assert [stage.name for stage in load("d", files).stages] == ["2", "3", "3.5", "10"]


def test_done_by_the_word_of_another_tool():
    words = {"completed": True, "Done": True, "review-complete": True, "backlog": False,
             "in_review": False, "superseded": False}  # fmt: skip
    for word, done in words.items():
        text = task("A").replace("status: backlog", f"status: {word}")
        assert load("d", {"d/a.md": text}).tasks[0].marked_done is done


def test_a_dependency_may_be_spelt_as_the_file_is_or_have_an_aside():
    files = {
        "d/001.md": "---\nname: One\nstatus: open\ndepends_on: []\n---\n",
        "d/002.md": "---\nname: Two\nstatus: open\ndepends_on: [1]\nparallel: true\n---\n",
        "d/TASK-A-9-words-after.md": "---\nstatus: open\ndependencies:\n- 002 # why\n---\n# Nine\n",
        "d/plain.md": "---\nstatus: open\ndependencies: '#001, TASK-A-9'\n---\n",
        "d/epic.md": "---\nname: Epic\nstatus: open\n---\n",
        "d/z.md": task("Z", "dependencies: [plain.md, {id: 002}, {x: y}, [q], '0']\n"),
    }
    plan = load("d", files)
    found = {task.id: (task.title, task.depends_on) for task in plan.tasks}
    assert found == {
        "001": ("One", ()),
        "002": ("Two", ("001",)),
        "TASK-A-9": ("Nine", ("002",)),
        "plain": ("plain", ("001", "TASK-A-9")),
        "Z": ("Title of Z", ("plain", "002")),
    }
    assert "d/001.md:1: has no id; the name of the file makes it 001" in notes(plan)
    assert any("depends on '0'" in note for note in notes(plan))


def test_what_blocks_another_is_noted_where_the_other_does_not_say_so():
    files = {
        "d/a.md": task("A", "blocks: [B, C, elsewhere]\n"),
        "d/b.md": task("B", "depends_on: [A]\n"),
        "d/c.md": task("C"),
    }
    assert notes(load("d", files)) == ["d/a.md:5: 'blocks' is not read: write 'depends_on: A' in C"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"d/a.md": task("A"), "d/b.md": task("a")},
            "d/b.md:1: task id 'a' is already used in d/a",
        ),
        ({"d/a.md": task("A", "depends_on: B\n"), "d/b.md": task("B", "depends_on: A\n")}, "A → B"),
        ({"d/a.md": task("../x")}, "d/a.md:1: task id '../x' cannot"),
        ({"d/a.md": task("A", "complexity: much\n")}, "d/a.md:5: 'complexity' is not a number"),
        ({"d/a.md": task("'A")}, "d/a.md:3: the frontmatter is not YAML"),
        (
            {"d/a.md": task("A", "wave: 1\ndepends_on: B\n"), "d/b.md": task("B", "wave: 2\n")},
            "d/a.md:1: task 'A' of wave 1 depends on 'B' of wave 2",
        ),
        ({"d/README.md": "# R\n", "d/x.md": "---\nx: 'y\n---\n"}, "d: no tasks found; a folder is"),
        ({f"d/{n}.md": task(f"T{n}") for n in range(10_001)}, "d: more than 10,000 files"),
    ],
)
def test_what_cannot_be_used_says_where(files, why):
    with pytest.raises(PlanError) as refused:
        load("d", files)
    assert why in str(refused.value)


def test_a_broken_frontmatter_of_something_else_is_no_task():
    files = {"d/a.md": task("A"), "d/x.md": "---\nx: 'y\n---\n"}
    assert notes(load("d", files)) == ["d/x.md:1: has no frontmatter, so it is not a task here"]


@pytest.mark.parametrize(
    ("texts", "meant"),
    [
        (FOLDER, True),
        ({"d": task("A")}, False),
        ({"d/a.md": "---\nid: 'A\nstatus: x\n---\n"}, True),
        ({"d/a.txt": task("A")}, False),
        ({"d/2-feature/L2-001-x.md": task("L2-001")}, False),
        ({"d/README.md": "# R\n"}, False),
        ({"d/SPEC-1.md": task("SPEC-1")}, False),
    ],
)
def test_it_is_known_by_what_it_contains(texts, meant):
    assert TASKFOLDER.recognises(Source(path="d", texts=texts)) is meant


KEYS = st.sampled_from(
    ["id: A\n", "id: B\n", "task_id: C\n", "title: t\n", "status: open\n", "wave: 2\n", "wave: x\n",
     "depends_on: [A, B]\n", "dependencies: B\n", "blocks: [A]\n", "complexity: 3\n", "? x\n", "'",
     "acceptance_criteria: [a]\n", "parallel_group: wave1\n", "files: [a.py]\n", "- a\n", "\t\n"]
)  # fmt: skip
BODIES = st.sampled_from(
    ["", "# T\n## Acceptance Criteria\n- a\n", "**Checks:** `x`\n", "|a|\n|-|\n"]
)


@given(
    st.dictionaries(
        st.sampled_from(["d/a.md", "d/b.md", "d/report.md", "d/1.md", "d/x.yaml"]),
        st.tuples(st.lists(KEYS, max_size=8), BODIES),
        min_size=1,
    )
)
def test_any_heap_of_files_is_a_plan_or_refused(heap):
    files = {path: f"---\n{''.join(keys)}---\n{body}" for path, (keys, body) in heap.items()}
    try:
        plan = load("d", files)
    except PlanError:
        return
    assert plan.tasks
    assert {note.path for note in plan.notes} | {t.path for t in plan.tasks} >= set(files)
