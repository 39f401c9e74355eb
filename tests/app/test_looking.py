"""The use cases that only look, called from Python: typed values, and not a word printed."""

from contextlib import aclosing
from pathlib import Path

import pytest

from finished_run import InProcessDesk
from windlass.app.costs import Costs, costs
from windlass.app.diff import diff
from windlass.app.doctor import diagnosis_lines, doctor
from windlass.app.follow import Fact, follow
from windlass.app.history import history
from windlass.app.log import LogRequest, follow_log, log
from windlass.app.plan import plan, plan_edits, plan_summary
from windlass.app.report import render, report, write_report
from windlass.app.status import needs_of, status
from windlass.app.wiring import Project
from windlass.core.events import model as e
from windlass.errors import BadInput, PlanError

pytestmark = pytest.mark.usefixtures("silent")


@pytest.fixture
def silent(capfd: pytest.CaptureFixture[str]):
    """An app function prints nothing: that is a face's work."""
    yield
    assert capfd.readouterr() == ("", "")


def test_a_plan_is_read_and_summed_up(project: Project):
    found = plan(project, "plan.md")
    assert [task.id for task in found.tasks] == ["1.1", "1.2"]
    summary = plan_summary(project, found)
    assert (summary.id, summary.base) == ("plan", "main")
    assert [task.title for task in summary.tasks] == ["Add the endpoint", "Document it"]
    assert plan_edits(project, "plan.md") == ()
    with pytest.raises(BadInput, match="name the plan"):
        plan(project)
    with pytest.raises(PlanError, match="no such file or plan"):
        plan(project, "other.md")


def test_an_edit_of_a_plan_is_a_line(done: InProcessDesk, project: Project):
    text = (done.repo / "plan.md").read_text()
    (done.repo / "plan.md").write_text(text.replace("Document it", "Describe it"))
    assert any("1.2" in line for line in plan_edits(project, "plan.md"))


def test_how_a_run_stands(project: Project):
    (found,) = status(project)
    assert status(project, "plan.md") == (found,)
    assert found.pid is None
    assert found.state is not None
    assert found.note == ""
    assert (found.progress.plan, found.progress.metrics.completed) == ("plan", 2)
    assert found.progress.seq == project.journals.entries("plan")[-1].seq
    assert "windlass land plan" in [step.command for step in found.steps]
    assert needs_of(found.state) == ()
    with pytest.raises(PlanError):
        status(project, "other.md")


def test_a_damaged_journal_leaves_what_the_state_file_says(done: InProcessDesk):  # R7
    journal = done.repo / ".windlass/plans/plan/journal.db"
    journal.write_bytes(b"this is no database" * 100)
    (found,) = status(Project(done.repo, done.environment), "plan")
    assert found.state is None
    assert found.progress.metrics.completed == 2
    assert found.note.startswith("from state.json, because ")


@pytest.mark.anyio
async def test_a_run_is_followed_to_its_end_fact_by_fact(project: Project):
    entries = project.journals.entries("plan")
    async with aclosing(follow(project)) as seen:
        found = [each async for each in seen]
    facts = [each for each in found if isinstance(each, Fact)]
    assert [each.entry for each in facts] == entries
    assert facts[-1].state == project.journals.last_run("plan")
    async with aclosing(follow(project, "plan", activity=False)) as seen:
        assert all([isinstance(each, Fact) async for each in seen])


@pytest.mark.anyio
async def test_a_log_is_narrowed_down_and_followed(project: Project):
    whole = log(project)
    assert (whole.plan, whole.last) == ("plan", project.journals.entries("plan")[-1].seq)
    assert [each.entry for each in whole.lines] == project.journals.entries("plan")
    request = LogRequest(tasks=("1.1",), kinds=("TaskApproved", "DONE"), turns=(1,))
    lines = log(project, request).lines
    assert {type(each.entry.event) for each in lines} >= {e.TaskApproved, e.TaskMerged}
    async with aclosing(follow_log(project, request)) as seen:
        assert tuple([each async for each in seen]) == lines
    assert log(project, LogRequest(after=whole.last)).lines == ()
    assert log(project, LogRequest(since=lines[0].entry.event.at)).lines[0].entry == (
        next(x for x in project.journals.entries("plan") if x.event.at >= lines[0].entry.event.at)
    )


def test_a_log_of_what_there_is_not_is_refused(project: Project):
    with pytest.raises(BadInput, match="has no task '9'"):
        log(project, LogRequest(plan="plan", tasks=("9",)))
    with pytest.raises(BadInput, match="unknown kind 'FOO'"):
        log(project, LogRequest(kinds=("FOO",)))


def test_past_runs_and_what_they_cost(done: InProcessDesk, project: Project):
    (only,) = history(project).runs
    assert (only.plan, only.run, only.completed) == ("plan", "r1", 2)
    found = costs(project, "plan")
    assert found.total.cost_usd == sum(each.cost_usd for each in found.by("task").values())
    assert Costs(()).total.cost_usd == 0
    with pytest.raises(BadInput, match="no run 'r9'"):
        costs(project, run="r9")
    broken = done.repo / ".windlass/plans/broken/journal.db"
    broken.parent.mkdir()
    broken.write_bytes(b"no database")
    seen = history(project)
    assert seen.runs == (only,)
    assert list(seen.unreadable) == ["broken"]


def test_a_report_is_a_value_a_text_and_a_file(
    done: InProcessDesk, project: Project, tmp_path: Path
):
    found = report(project)
    assert (found.plan.id, found.run) == ("plan", "r1")
    assert render(found).startswith("<!doctype html>")
    assert render(found, "markdown").startswith("# ")
    own = write_report(project)
    assert own == done.repo / ".windlass/plans/plan/runs/r1/report.html"
    assert own.read_text().startswith("<!doctype html>")
    named = write_report(project, "plan", form="markdown", output=tmp_path / "out.md")
    assert named.read_text().startswith("# ")
    with pytest.raises(BadInput, match="there is no folder"):
        write_report(project, output=tmp_path / "none" / "out.html")


def test_what_a_task_changed(project: Project):
    found = diff(project, "1.1")
    assert (found.plan, found.task) == ("plan", "1.1")
    assert "+ok" in found.text
    assert "+ok" not in diff(project, "plan:1.1", stat=True).text
    whole = diff(project)
    assert (whole.plan, whole.task) == ("plan", ""), "without a name it is the whole run"
    assert "+ok" in whole.text


def test_a_diagnosis_holds_no_secret(done: InProcessDesk, tmp_path: Path):
    secret = "canary-0123456789abcdef"
    environment = {**done.environment, "MY_TOKEN": secret, "WINDLASS_CHECKS": f"curl {secret}"}
    found = doctor(done.repo, environment)
    assert {each.area for each in found.findings} >= {"machine", "repository", "plans"}
    checks = next(each for each in found.settings if each.key == "checks")
    assert checks.value == ["curl [redacted MY_TOKEN]"]
    text = "\n".join(diagnosis_lines(found, width=80))
    assert "Repository" in text
    assert secret not in text
    assert not doctor(tmp_path / "home", environment).usable, "there is no repository"
