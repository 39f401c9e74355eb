"""Real task files are read as they are written, and written into without harm (G1 G9).

Each number was counted in the document. The documents are not ours, so they are read where
WINDLASS_CORPUS points.
"""

import pytest

from corpus import CORPUS, needs_corpus
from windlass.formats import frontmatter, load
from windlass.formats.dialect import Source
from windlass.formats.taskfile import TASKFILE

pytestmark = needs_corpus

DOCUMENTS = {
    # Its 19 stand under five headings of level 3.
    "TASK-10CB-refactor-template-creation-location-strategy": ("TASK-10CB", 19, 4),
    "TASK-CR-002-trim-inner-claude-md": ("TASK-CR-002", 4, 2),
    "TASK-DOC-BCBB-remove-ux-design-from-github-pages": ("TASK-DOC-BCBB", 9, 4),
    # 'Acceptance Criteria Status' in its report are not criteria.
    "TASK-FIX-7EA8-add-installation-validation-priority-2": ("TASK-FIX-7EA8", 11, 3),
    "TASK-FIX-VL03-absolute-paths-in-protocol": ("TASK-FIX-VL03", 5, 2),
    # AC-004 has four items of its own, which are its text.
    "TASK-FIX-WTBC-honour-cwd-head-in-autobuild-cli": ("TASK-FIX-WTBC", 6, 3),
    "TASK-FP002-009-documentation-feature-plan-reference": ("TASK-FP002-009", 6, 3),
    "TASK-GPS-003-seed-agentic-dataset-factory-artefacts": ("TASK-GPS-003", 3, 1),
    "TASK-INV-0A11": ("TASK-INV-0A11", 3, 5),
    "TASK-NDS-003-improve-error-messages": ("TASK-NDS-003", 4, 2),
    "TASK-REV-DE4F-graphiti-integration-gap-analysis": ("TASK-REV-DE4F", 23, 7),
    "TASK-REV-FBVAL-validate-feature-build-fastapi": ("TASK-REV-FBVAL", 8, 6),
}
DEPENDS = {
    "TASK-FIX-7EA8-add-installation-validation-priority-2": "TASK-FIX-86B2",
    "TASK-FP002-009-documentation-feature-plan-reference": "TASK-FP002-007",
    "TASK-NDS-003-improve-error-messages": "TASK-NDS-001",
}


def source(stem: str, folder: str = "taskfile") -> str:
    return (CORPUS / folder / f"{stem}.md").read_bytes().decode()


def test_no_document_is_left_out():
    assert {path.stem for path in (CORPUS / "taskfile").glob("*.md")} == set(DOCUMENTS)


@pytest.mark.parametrize("stem", DOCUMENTS)
def test_the_task_is_the_documents_own(stem: str):
    plan = load(f"tasks/{stem}.md", source(stem))
    task = plan.tasks[0]
    assert plan.dialect == "taskfile"
    assert (plan.id, len(task.acceptance_criteria), task.complexity) == DOCUMENTS[stem]
    assert task.text in source(stem)
    assert [stem in DEPENDS] * len(plan.notes) == [True] * (stem in DEPENDS)
    assert all(DEPENDS[stem] in note.text for note in plan.notes)


@pytest.mark.parametrize("stem", DOCUMENTS)
def test_only_owned_lines_change(stem: str):
    text = source(stem)
    owned = {"status": "blocked", "feature_build": {"current_turn": 1, "turns": []}}
    result = frontmatter.spliced("t.md", text, owned)
    new = "feature_build:\n  current_turn: 1\n  turns: []\n"
    assert result.count(new) == 1
    before, after = text.split("\n"), result.replace(new, "").split("\n")
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    status = frontmatter.read("t.md", text)
    assert status is not None
    assert changed == [(f"status: {status.data['status']}", "status: blocked")]


@pytest.mark.parametrize("folder", ["not-a-plan", "spec", "milestone"])
def test_others_are_not_recognised(folder: str):
    for path in (CORPUS / folder).glob("*.md"):
        text = path.read_bytes().decode()
        source = Source(path=path.name, texts={path.name: text})
        assert not TASKFILE.recognises(source), path.name
