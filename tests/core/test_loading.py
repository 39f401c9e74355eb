"""From texts to a plan, whatever the dialect: what is too long is refused before it is parsed."""

import pytest

from windlass.core.plan import Plan, Task
from windlass.errors import PlanError
from windlass.formats import load, refers_to, registry
from windlass.formats.dialect import Dialect, Source

TASK = "## Task 1: One\n"


def parse(source: Source) -> Plan:
    """Each file of the folder is a task."""
    tasks = tuple(
        Task(id=f"T{number}", title=text.strip(), path=path, line=1)
        for number, (path, text) in enumerate(source.texts.items(), 1)
    )
    return Plan(id="", title="", dialect="folder", path=source.path, tasks=tasks)


FOLDER = Dialect(
    name="folder",
    recognises=lambda source: source.text is None and bool(source.texts),
    parse=parse,
    refers_to=lambda source: tuple(
        text.partition("see ")[2].strip() for text in source.texts.values() if "see " in text
    ),
)


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "DIALECTS", (FOLDER, *registry.DIALECTS))


class TestTooLong:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (TASK + "- a\n" * 100_000, "a.md: the file is too long: .* 100,000 lines; "),
            (TASK * 10_001, "a.md: the file is too long: .* more than 10,000 headings; "),
        ],
    )
    def test_a_file(self, text: str, said: str):
        for understand in (load, refers_to):
            with pytest.raises(PlanError, match=said):
                understand("a.md", {"a.md": text})

    def test_files_together(self):
        texts = {f"p/{number}.md": "a\n" * 90_000 for number in range(6)}
        with pytest.raises(PlanError, match=r"^p: more than 500,000 lines in all; "):
            load("p", texts)


class TestYaml:
    @pytest.mark.parametrize("name", ["FEAT-x.yaml", "p.YML"])
    def test_one_that_is_broken_off_says_where(self, name: str):
        with pytest.raises(PlanError, match=rf"^{name}:2: the file is not YAML: expected "):
            load(name, "id: F\ntasks: [")

    def test_one_that_is_no_plan_says_what_a_plan_is(self):
        with pytest.raises(PlanError, match=r"^p.yaml: no tasks found; a plan is "):
            load("p.yaml", "key: value\n")


class TestFolder:
    def test_one_that_is_no_plan_names_those_in_it(self):
        texts = {f"p/{number}.md": TASK for number in range(5)}
        with pytest.raises(PlanError, match=r"whole is no plan; .*: p/0.md, p/1.md, p/2.md$"):
            load("p", texts)

    def test_one_without_any_plan_says_what_a_plan_is(self):
        with pytest.raises(PlanError, match=r"^p: no tasks found; a folder is a plan "):
            load("p", {"p/a.md": "hello"})

    @pytest.mark.usefixtures("folders")
    @pytest.mark.parametrize(
        ("path", "plan_id"), [("plans/v1.2", "v1.2"), ("a.b/", "a.b"), (".", "plan")]
    )
    def test_its_name_is_the_plans_id_dots_and_all(self, path: str, plan_id: str):
        plan = load(path, {"x/a.md": "hello"})
        assert (plan.id, plan.title, plan.path) == (plan_id, plan_id, path)

    @pytest.mark.usefixtures("folders")
    def test_what_a_plan_refers_to_is_asked_of_its_dialect(self):
        texts = {"p/a.md": "see tasks/b.md"}
        assert refers_to("p", texts) == ("tasks/b.md",)
        assert refers_to("p", texts, dialect="milestone") == ()
        assert refers_to("a.md", {"a.md": "see b.md"}) == ()
