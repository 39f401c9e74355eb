"""A plan that is a folder, from what a person typed to what would be recorded.

The dialect is the test's own: whatever dialects there are, a folder reaches them in this way.
"""

import os
from pathlib import Path

import pytest

from desk import Desk
from windlass.app.plans import plan_to_resume, read_plan
from windlass.app.wiring import Project
from windlass.core.plan import Plan, Task
from windlass.errors import PlanError
from windlass.formats import registry
from windlass.formats.dialect import Dialect, Source


def parse(source: Source) -> Plan:
    """Each Markdown file is a task."""
    tasks = tuple(
        Task(id=f"T{number}", title=text.strip(), path=path, line=1)
        for number, (path, text) in enumerate(source.texts.items(), 1)
        if path.endswith(".md")
    )
    return Plan(id="", title="", dialect="folder", path=source.path, tasks=tasks)


FOLDER = Dialect(
    name="folder",
    recognises=lambda source: source.text is None and bool(source.texts),
    parse=parse,
    refers_to=lambda _source: ("tasks/far.md", "../out.md", "tasks/none.md"),
)


@pytest.fixture
def project(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(registry, "DIALECTS", (FOLDER, *registry.DIALECTS))
    desk.write("plans/v1.2/b.md", "second")
    desk.write("plans/v1.2/a.md", "first")
    desk.write("plans/v1.2/logo.json", b"\xff\xd8")
    desk.write("tasks/far.md", "third")
    return Project(desk.repo, dict(os.environ))


@pytest.mark.parametrize("typed", ["plans/v1.2", "plans/v1.2/", "plans/../plans/v1.2"])
def test_its_files_and_those_it_names_are_the_plan(project: Project, typed: str):
    plan = read_plan(project, typed)
    assert (plan.id, plan.path, plan.dialect) == ("v1.2", "plans/v1.2", "folder")
    assert [(task.path, task.title) for task in plan.tasks] == [
        ("plans/v1.2/a.md", "first"),
        ("plans/v1.2/b.md", "second"),
        ("tasks/far.md", "third"),
    ]
    assert [(note.path, note.text) for note in plan.notes] == [
        ("plans/v1.2/logo.json", "the file is not UTF-8 text")
    ]


def test_one_outside_of_the_repository(project: Project, tmp_path: Path):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "a.md").write_text("first")
    plan = read_plan(project, str(folder))
    assert (plan.path, plan.tasks[0].path) == (str(folder), f"{folder}/a.md")


def test_its_run_goes_on_by_path_and_by_id(project: Project):
    from windlass.app.wiring import started
    from windlass.core.settings import Settings

    plan = read_plan(project, "plans/v1.2")
    base = project.git.base(None, plan.id)
    with project.journals.session(plan.id) as session:
        session.note(started("r1", plan, Settings(), base, "checkout"))
    for typed in ("plans/v1.2", "v1.2"):
        assert plan_to_resume(project, typed) == plan
    (project.root / "plans").rename(project.root / "moved")
    assert plan_to_resume(project, "v1.2") == plan
    with pytest.raises(PlanError, match="no such file or plan"):
        plan_to_resume(project, "plans/v1.2")
