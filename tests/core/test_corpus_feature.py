"""Real features are read as they are written (G14).

Each number was counted in the document. The documents are not ours, so they are read where
WINDLASS_CORPUS points. None of their tasks' own files lies there.
"""

import pytest

from corpus import CORPUS, needs_corpus
from windlass.core.plan import Plan
from windlass.formats import DIALECTS, load, refers_to
from windlass.formats.dialect import Source

pytestmark = needs_corpus

# Tasks, how many in each wave, dependencies in all, and tasks marked as done.
DOCUMENTS = {
    "FEAT-0D1C": (6, [1, 2, 1, 2], 10, 0),
    "FEAT-9DDE": (2, [1, 1], 1, 2),
    # Its waves stand in a mapping of their own; task 006 waits for 004 of its own wave.
    "FEAT-CD4C": (9, [3, 3, 2, 1], 7, 9),
    "FEAT-FD8D": (1, [1], 0, 1),
    "FEAT-FMT": (8, [2, 4, 1, 1], 9, 8),
    "FEAT-OBSC": (6, [2, 2, 1, 1], 4, 6),
}
GATED = {"FEAT-0D1C": ["3", "4"], "FEAT-9DDE": ["1", "2"]}


def text(stem: str) -> str:
    return (CORPUS / "feature" / f"{stem}.yaml").read_bytes().decode()


def read(stem: str) -> Plan:
    return load(f".guardkit/features/{stem}.yaml", text(stem))


def test_no_document_is_left_out():
    assert {path.stem for path in (CORPUS / "feature").glob("*")} == set(DOCUMENTS)


@pytest.mark.parametrize("stem", DOCUMENTS)
def test_the_tasks_are_the_documents_own(stem: str):
    plan = read(stem)
    assert (plan.dialect, plan.id) == ("feature", stem)
    stages = [sum(task.stage == stage.name for task in plan.tasks) for stage in plan.stages]
    depends = sum(len(task.depends_on) for task in plan.tasks)
    done = sum(task.marked_done for task in plan.tasks)
    assert (len(plan.tasks), stages, depends, done) == DOCUMENTS[stem]
    assert [stage.name for stage in plan.stages] == [str(n + 1) for n in range(len(stages))]
    assert [stage.name for stage in plan.stages if stage.checks] == GATED.get(stem, [])
    lines = text(stem).split("\n")
    for task in plan.tasks:
        assert lines[task.line - 1] == f"- id: {task.id}"
        assert task.text.startswith(task.title)
    gone = [note for note in plan.notes if "does not exist" in note.text]
    assert len(gone) == len(plan.tasks)


@pytest.mark.parametrize("stem", DOCUMENTS)
def test_it_refers_to_every_file_that_it_names(stem: str):
    path = f"{stem}.yaml"
    named = [line.split(": ")[1] for line in text(stem).split("\n") if "  file_path: " in line]
    assert len(named) == DOCUMENTS[stem][0]
    assert set(named) <= set(refers_to(path, {path: text(stem)}))


def test_a_tasks_own_file_is_read_where_it_is_there():
    own = "tasks/backlog/uptime-endpoint/TASK-UPT-001-add-uptime-endpoint.md"
    body = (CORPUS / "taskfile" / "TASK-INV-0A11.md").read_bytes().decode()
    plan = load("f.yaml", {"f.yaml": text("FEAT-FD8D"), own: body})
    [task] = plan.tasks
    assert (task.id, task.title, task.path) == ("TASK-UPT-001", "Add GET /uptime endpoint", own)
    assert (len(task.acceptance_criteria), task.complexity) == (3, 3)
    assert any("not TASK-INV-0A11" in note.text for note in plan.notes)


def test_the_task_files_together_are_a_folder():
    paths = sorted((CORPUS / "taskfile").glob("*.md"))
    plan = load("taskfile", {f"taskfile/{path.name}": path.read_bytes().decode() for path in paths})
    assert plan.dialect == "taskfolder"
    assert len(plan.tasks) == len(paths)
    by_wave = {task.id: task.stage for task in plan.tasks}
    assert by_wave["TASK-FP002-009"] == "4"
    assert by_wave["TASK-NDS-003"] == "2", "by its parallel_group"
    assert [stage.name for stage in plan.stages] == ["1", "2", "4"]
    unbound = [note.text for note in plan.notes if "depends on" in note.text]
    assert len(unbound) == 3
    assert not any(task.depends_on for task in plan.tasks)


@pytest.mark.parametrize("folder", ["not-a-plan", "spec", "milestone", "taskfile"])
def test_others_are_not_recognised(folder: str):
    known = {each.name: each for each in DIALECTS}
    paths = sorted((CORPUS / folder).iterdir())
    texts = {f"{folder}/{path.name}": path.read_bytes().decode() for path in paths}
    for path, each in texts.items():
        assert not known["feature"].recognises(Source(path=path, texts={path: each})), path
    if folder != "taskfile":
        assert not known["taskfolder"].recognises(Source(path=folder, texts=texts))
