"""Real specs are read as they are written (S1).

Each number was counted in the document. The documents are not ours, so they are read where
WINDLASS_CORPUS points.
"""

import pytest

from corpus import CORPUS, needs_corpus
from windlass.formats import load, spec
from windlass.formats.dialect import Source

pytestmark = needs_corpus

DOCUMENTS = {
    "SPEC-001": ("Add ready-to-use commands to spec creation recommendations", 4, ()),
    # Its tables of groups are examples in code blocks.
    "SPEC-GSD-B": ("Pre-Computed Waves", 6, (51, 60)),
    "SPEC-SUBAGENT-A": ("Foundation — Auditor Enhancement & Template Changes", 6, (106,)),
}


def source(stem: str) -> str:
    return (CORPUS / "spec" / f"{stem}.md").read_bytes().decode()


def test_no_document_is_left_out():
    assert {path.stem for path in (CORPUS / "spec").glob("*.md")} == set(DOCUMENTS)


@pytest.mark.parametrize("stem", DOCUMENTS)
def test_the_spec_is_one_task(stem: str):
    plan = load(f".specflow/specs/{stem}.md", source(stem))
    [task] = plan.tasks
    title, criteria, examples = DOCUMENTS[stem]
    assert (plan.dialect, plan.id, task.id, plan.title) == ("spec", stem, stem, title)
    assert len(task.acceptance_criteria) == criteria
    assert task.marked_done
    assert plan.stages == ()
    assert tuple(n.line for n in plan.notes if "table of groups" in n.text) == examples
    for history in ("Audit History", "Execution Summary", "Review History", "Completion"):
        assert f"\n## {history}" in source(stem)
        assert f"\n## {history}" not in task.text
    assert "## Constraints" in task.text
    assert "\nid: SPEC" not in task.text


@pytest.mark.parametrize("kind", ["feature", "milestone", "not-a-plan", "taskfile"])
def test_documents_of_other_kinds_are_not_taken_for_specs(kind: str):
    for path in (CORPUS / kind).iterdir():
        text = path.read_text(encoding="utf-8")
        assert not spec.SPEC.recognises(Source(path=path.name, texts={path.name: text})), path
