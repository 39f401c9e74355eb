"""Every real document is read by the dialect it was written in, or refused with the reason."""

import pytest

from corpus import CORPUS, needs_corpus
from windlass.errors import PlanError
from windlass.formats import load

pytestmark = needs_corpus


@pytest.mark.parametrize("kind", ["feature", "milestone", "spec", "taskfile"])
def test_each_is_taken_by_its_own_dialect(kind: str):
    documents = [path for path in (CORPUS / kind).iterdir() if path.suffix != ".json"]
    assert documents
    for path in documents:
        plan = load(f"{kind}/{path.name}", path.read_bytes().decode())
        assert plan.dialect == kind, path.name
        assert len({task.id.casefold() for task in plan.tasks}) == len(plan.tasks) > 0


def test_what_is_no_plan_is_refused_with_a_word_that_says_why():
    documents = sorted((CORPUS / "not-a-plan").iterdir())
    assert documents
    for path in documents:
        with pytest.raises(PlanError) as refused:
            load(path.name, path.read_bytes().decode())
        said = str(refused.value)
        assert said.startswith(path.name)
        assert "no tasks found" in said
        assert "a task is a heading" in said or "this line" in said, said
        assert "\n" not in said
