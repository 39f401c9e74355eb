"""What cannot be undone or is public asks first, and the answer is no unless a person says yes."""

from pathlib import Path

import pytest

import plans
import windlass
from cli.test_resting import at_terminal
from desk import Desk
from quick import quick_run
from windlass.app.wiring import Project
from windlass.core.events import model as e
from windlass.core.settings import Settings, StateFileSettings
from windlass.core.state import Phase, RunState
from windlass.errors import Unanswered
from windlass.testing.agents import ScriptedAgent

TASKS = {"1.1": (), "1.2": ("1.1",)}
DONE = {"1.1": {"1.txt": "1\n"}, "1.2": {"2.txt": "2\n"}}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.build({"plan.md": plans.plan_text(TASKS), "README.md": "hello\n"})
    return made


@pytest.fixture
def failed(desk: Desk) -> Desk:
    quick_run(
        desk.repo, ScriptedAgent({"1.1": DONE["1.1"]}, default={}), settings=Settings(max_turns=1)
    )
    return desk


@pytest.fixture
def merged(desk: Desk) -> Desk:
    assert quick_run(desk.repo, ScriptedAgent(DONE)).ended == "completed"
    return desk


def last(desk: Desk) -> RunState:
    state = Project(desk.repo, desk.environment).journals.last_run("plan")
    assert state is not None
    return state


class TestAbort:
    def test_it_names_the_run_and_what_is_kept_and_enter_says_no(self, failed: Desk):
        before = failed.everything()
        code, said = at_terminal(failed, "\n", "abort")
        assert "Run r1 of plan (Files, plan.md) is failed: 1 of 2 tasks merged" in said
        assert "it cannot be resumed" in said
        assert "stays on windlass/plan/integration" in said
        assert "Abort this run? [y/N]: " in said
        assert "nothing was changed" in said
        assert code == 4
        assert failed.everything() == before

    def test_yes_aborts_it(self, failed: Desk):
        assert at_terminal(failed, "y\n", "abort", "plan")[0] == 0
        assert last(failed).ended is e.RunEnd.ABORTED

    def test_without_a_terminal_it_names_the_command(self, failed: Desk):
        answer = failed.call("abort")
        assert answer.code == 3
        assert "run `windlass abort plan --yes`" in answer.err
        assert last(failed).ended is e.RunEnd.FAILED
        assert failed.call("abort", "--yes").code == 0

    def test_a_program_confirms_it_by_a_field(self, failed: Desk):
        project = Project(failed.repo, failed.environment)
        with pytest.raises(Unanswered, match="windlass abort plan --yes"):
            windlass.abort(project)
        assert not windlass.abort(project, confirmed=True).live


class TestRetry:
    def test_of_a_merged_task_it_says_what_is_done_again(self, merged: Desk):
        before = merged.everything()
        code, said = at_terminal(merged, "\n", "retry", "1.1")
        assert "1.1 Write 1.1.txt is merged as " in said
        assert "1.2, which build on it, stay as merged" in said
        assert "`windlass retry plan:1.1 --undo` takes this back" in said
        assert "Redo 1 merged task? [y/N]: " in said
        assert (code, merged.everything()) == (4, before)
        answer = merged.call("retry", "1.1")
        assert answer.code == 3
        assert "run `windlass retry plan:1.1 --yes`" in answer.err

    def test_an_abandoned_one_is_retried_unasked(self, failed: Desk):
        assert failed.call("retry", "1.2").code == 0

    def test_it_is_undone_until_the_redo_is_merged(self, merged: Desk):
        whole = last(merged)
        assert merged.call("retry", "1.2", "--undo").code == 2
        assert merged.call("retry", "1.2", "--yes").code == 0
        lazy = ScriptedAgent({}, default={})
        quick_run(merged.repo, lazy, settings=Settings(max_turns=1))
        redo = last(merged)
        if redo.tasks["1.2"].phase is not Phase.MERGED:  # the old merge may stand
            assert merged.call("retry", "1.2", "--undo").code == 0
        assert last(merged).tasks["1.2"].merge_commit == whole.tasks["1.2"].merge_commit
        assert merged.call("retry", "1.2", "--yes").code == 0
        broken = ScriptedAgent({"1.2": {"broken": "2\n"}})
        settings = Settings(max_turns=1, checks=("test ! -e broken",))
        assert quick_run(merged.repo, broken, settings=settings).ended == "failed"
        assert last(merged).tasks["1.2"].phase is Phase.ABANDONED
        answer = merged.call("retry", "1.2", "--undo")
        assert answer.code == 0, answer.err
        state = last(merged)
        assert state.tasks["1.2"].merge_commit == whole.tasks["1.2"].merge_commit
        undone = [fact for fact in _facts(merged) if isinstance(fact, e.RedoUndone)]
        assert undone[-1].by == "Ada"
        done = quick_run(merged.repo, ScriptedAgent({}))
        assert done.ended == "completed", done.reason
        assert done.tip == whole.tip
        answer = merged.call("retry", "1.2", "--undo")
        assert answer.code == 2
        assert "no retry of merged work is open" in answer.err


def _facts(desk: Desk) -> list[e.Event]:
    project = Project(desk.repo, desk.environment)
    return [entry.event for entry in project.journals.entries("plan")]


def test_an_explicit_restart_is_asked_about_at_a_terminal_only(failed: Desk):  # S4
    before = failed.everything()
    code, said = at_terminal(failed, "n\n", "run", "plan.md", "--restart")
    assert "Leave this run and start a new one? [y/N]: " in said
    assert (code, failed.everything()) == (4, before)


def test_a_journal_that_is_not_lost_is_replaced_only_if_a_person_agrees(failed: Desk):
    before = failed.everything()
    code, said = at_terminal(failed, "\n", "recover", "plan", "--force")
    assert "Replace it? [y/N]: " in said
    assert (code, failed.everything()) == (4, before)
    assert failed.call("recover", "plan", "--force", "--yes").code == 0


def test_uncommitted_changes_are_named_before_a_landing(merged: Desk):
    (merged.repo / "README.md").write_text("mine\n")
    main = merged.git("rev-parse", "main")
    code, said = at_terminal(merged, "\n", "land", "plan")
    assert "main is checked out, and README.md has uncommitted changes" in said
    assert "Move main now? [y/N]: " in said
    assert code == 4
    assert merged.git("rev-parse", "main") == main
    assert at_terminal(merged, "y\n", "land", "plan")[0] == 0
    assert (merged.repo / "README.md").read_text() == "mine\n"


def test_a_pull_request_is_public_and_asked_about(merged: Desk):
    code, said = at_terminal(merged, "\n", "pr", "plan")
    assert "pushes windlass/plan/integration to your remote" in said
    assert "open a pull request into main? [y/N]: " in said
    assert code == 4


FILE = "state/plan_state.json"


class TestStateFile:
    def test_a_plan_leaves_none_behind_unless_it_is_asked_for(self, merged: Desk):  # K2
        assert merged.git("status", "--short") == ""
        assert not (merged.repo / "state").exists()

    def test_clean_removes_what_windlass_wrote_and_its_empty_folder(self, desk: Desk):
        settings = Settings(state_files=StateFileSettings(milestone=True))
        quick_run(desk.repo, ScriptedAgent(DONE), settings=settings)
        assert (desk.repo / FILE).exists()
        answer = desk.call("clean", "--yes")
        assert f"delete  {FILE} · a state file, as Windlass wrote it" in answer.out
        assert not (desk.repo / "state").exists()
        assert desk.call("run", "plan.md").code == 0, "the run is complete, and stays so"

    def test_it_stays_while_the_run_may_go_on(self, desk: Desk):
        settings = Settings(max_turns=1, state_files=StateFileSettings(milestone=True))
        quick_run(desk.repo, ScriptedAgent({"1.1": DONE["1.1"]}, default={}), settings=settings)
        assert f"keep    {FILE} · the run is not finished" in desk.call("clean", "--yes").out
        assert (desk.repo / FILE).exists()

    @pytest.mark.parametrize("how", ["edited", "tracked"])
    def test_what_another_tool_or_git_has_stays(self, desk: Desk, how: str):
        settings = Settings(state_files=StateFileSettings(milestone=True))
        quick_run(desk.repo, ScriptedAgent(DONE), settings=settings)
        if how == "edited":
            (desk.repo / FILE).write_text('{"mine": 1}\n')
        else:
            desk.git("add", FILE)
        why = "another tool wrote or changed it" if how == "edited" else "git tracks it"
        assert f"keep    {FILE} · {why}" in desk.call("clean", "--yes").out
        assert (desk.repo / FILE).exists()

    def test_a_file_of_another_tool_is_kept_up_to_date_and_copied_first(self, desk: Desk):
        theirs = '{"completed_tasks": ["0.9"]}\n'
        (desk.repo / "state").mkdir()
        (desk.repo / FILE).write_text(theirs)
        quick_run(desk.repo, ScriptedAgent(DONE))
        assert '"1.2"' in (desk.repo / FILE).read_text()
        copy = desk.repo / ".windlass/plans/plan/runs/r1/plan_state.json.before"
        assert copy.read_text() == theirs
        quick_run(desk.repo, ScriptedAgent(DONE), run="r2", anew=True)
        second = copy.parents[1] / "r2/plan_state.json.before"
        assert not second.exists(), "that one was Windlass's own"

    def test_after_adopt_it_is_written(self, merged: Desk):  # X11
        commit = merged.git("rev-parse", "HEAD").strip()
        other = merged.repo / "old.json"
        claim = f'{{"1.1": {{"commit": "{commit}"}}}}'
        text = f'{{"plan_path": "plan.md", "completed_tasks": ["1.1"], "task_results": {claim}}}'
        other.write_text(text)
        assert merged.call("adopt", "old.json", "--yes").code == 0
        run = last(merged).run
        assert quick_run(merged.repo, ScriptedAgent(DONE), run=run).ended == "completed"
        assert (merged.repo / FILE).exists()
