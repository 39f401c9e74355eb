"""With --json, what a command prints on stdout is JSON: its result, or its error."""

import json
from typing import Any

import jsonschema
import pytest
from click import Command, Context, Group

from desk import Desk
from finished_run import InProcessDesk, finished
from test_schemas import SCHEMAS
from windlass.adapters.locks import PlanLock
from windlass.cli.main import COMMANDS, cli

STREAMS = ("run", "resume", "feature-build")
NO_DATA = {"completion", "demo", "mcp", "schema"}
"""Print no data; their errors are JSON all the same."""


@pytest.fixture
def done(tmp_path) -> InProcessDesk:
    return finished(tmp_path)


def error_of(out: str) -> dict[str, Any]:
    """The error on stdout; of a stream, with the `result` that ends it."""
    lines = [json.loads(line) for line in out.splitlines()]
    if len(lines) == 1:
        holds("error", lines[0])
        return lines[0]["error"]
    *_, error, result = lines
    for line in lines:
        holds("events", line)
    assert (error["type"], result["type"]) == ("error", "result")
    assert result["is_error"] is True
    assert result["exit_code"] == error["error"]["exit"]
    return error["error"]


def holds(name: str, value: Any) -> None:
    jsonschema.validate(value, json.loads((SCHEMAS / f"{name}.json").read_text()))


def failed(desk: Desk, code: int, *args: str, **more: str) -> dict[str, Any]:
    answer = desk.call(*args, "--json", **more)
    assert answer.code == code, answer
    error = error_of(answer.out)
    assert error["exit"] == code
    assert error["what"]
    assert error["where"]
    assert answer.err, "people read it on stderr"
    return error


class TestErrors:
    @pytest.mark.parametrize("command", COMMANDS)
    def test_an_option_that_no_command_has(self, desk: Desk, command: str):
        error = failed(desk, 2, command, "--no-such-option")
        assert "--no-such-option" in error["what"] or command in NO_DATA
        assert error["where"] == f"windlass {command}"
        assert f"windlass {command} --help" in error["cure"]

    @pytest.mark.parametrize("command", COMMANDS)
    def test_every_command_with_data_has_the_option(self, command: str):
        assert isinstance(cli, Group)
        found = cli.get_command(Context(cli), command)
        assert isinstance(found, Command)
        options = {name for param in found.params for name in param.opts}
        assert ("--json" in options) is (command not in NO_DATA)

    def test_a_command_that_does_not_exist(self, desk: Desk):
        error = failed(desk, 2, "rnu")
        assert "rnu" in error["what"]
        assert error["where"] == "windlass"

    def test_a_missing_argument(self, desk: Desk):
        assert "PLAN" in failed(desk, 2, "run")["what"]

    @pytest.mark.parametrize("command", ["plan", "run"])
    def test_a_bad_plan_with_its_line(self, desk: Desk, command: str):
        desk.write("bad.md", "# Plan\n\n## Task a: A\n\n**Depends on:** zzz\n")
        assert failed(desk, 2, command, "bad.md") == {
            "what": "task 'a' depends on 'zzz', which is not in the plan",
            "where": "bad.md:3",
            "cure": "the plan has a",
            "exit": 2,
        }

    def test_a_dry_run_is_one_document(self, desk: Desk):
        answer = desk.call("run", "nope.md", "--dry-run", "--json")
        assert json.loads(answer.out)["error"]["where"] == "nope.md"

    def test_the_other_way_to_ask_for_json_lines(self, desk: Desk):
        answer = desk.call("run", "nope.md", "--display", "json")
        assert error_of(answer.out)["where"] == "nope.md"

    def test_a_wrong_setting_in_the_file_and_in_a_variable(self, desk: Desk):
        desk.write("windlass.toml", "\nagnets = 3\n")
        error = failed(desk, 2, "run", "plan.md")
        assert error["where"] == "windlass.toml:2"
        assert "agnets" in error["what"]
        desk.write("windlass.toml", "")
        error = failed(desk, 2, "run", "plan.md", WINDLASS_AGENTS="many")
        assert error["where"] == "WINDLASS_AGENTS"

    def test_no_key(self, desk: Desk):
        answer = desk.call("run", "plan.md", "--json", without=["ANTHROPIC_API_KEY"])
        assert error_of(answer.out)["where"] == "ANTHROPIC_API_KEY"

    def test_a_run_that_holds_the_lock(self, done: InProcessDesk):
        with PlanLock(done.repo / ".windlass/plans/plan/lock"):
            error = failed(done, 5, "land")
        assert error["where"] == "plan"
        assert "already running" in error["what"]

    def test_a_question_without_a_terminal(self, done: InProcessDesk):
        (done.repo / ".windlass/plans/plan/workspaces/1.1").mkdir(parents=True)
        error = failed(done, 3, "clean", "plan")
        assert "There is no terminal to confirm at" in error["what"]
        assert "--yes" in error["cure"]

    def test_a_file_that_cannot_be_written(self, done: InProcessDesk):
        error = failed(done, 2, "report", "--output", "/nonexistent/folder/report.html")
        assert "/nonexistent" in error["where"] + error["what"]

    def test_a_bug(self, desk: Desk, monkeypatch: pytest.MonkeyPatch):
        def broken(*_: object, **__: object) -> None:
            raise RuntimeError("oops")

        monkeypatch.setattr("windlass.cli.history.history", broken)
        called = InProcessDesk(desk.root)
        error = failed(called, 1, "history")
        assert error["what"] == "a bug in Windlass, RuntimeError: oops"
        assert "WINDLASS_DEBUG=1" in error["cure"]

    def test_an_interruption(self, desk: Desk, monkeypatch: pytest.MonkeyPatch):
        def interrupted(*_: object, **__: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("windlass.cli.history.history", interrupted)
        error = failed(InProcessDesk(desk.root), 4, "history")
        assert error["what"] == "interrupted"
        assert error["where"] == "windlass history"

    def test_without_json_stdout_stays_empty(self, desk: Desk):
        answer = desk.call("plan", "nope.md")
        assert (answer.code, answer.out) == (2, "")

    def test_words_after_two_dashes_are_no_options(self, desk: Desk):
        assert desk.call("answer", "a", "--", "--json").out == ""


class TestResults:
    """A project whose run is over; what each command says of it."""

    def told(self, desk: Desk, *args: str, code: int = 0) -> Any:
        answer = desk.call(*args, "--json")
        assert answer.code == code, answer
        return json.loads(answer.out)

    def test_commands_that_look(self, done: InProcessDesk):
        assert self.told(done, "diff", "1.1")["text"].count("+ok") == 1
        assert self.told(done, "plan", "plan.md", "--diff") == {"edits": []}
        assert self.told(done, "costs")
        assert self.told(done, "history")
        assert self.told(done, "status")["plan"] == "plan"

    def test_commands_that_write_a_file(self, done: InProcessDesk):
        found = self.told(done, "report")
        assert found["format"] == "html"
        assert found["path"].endswith("report.html")
        assert "# " in self.told(done, "report", "--format", "markdown", "-o", "-")["text"]
        found = self.told(done, "bundle")
        assert found["path"].endswith(".zip")
        assert found["files"]

    def test_init(self, desk: Desk):
        error = failed(desk, 3, "init")
        assert "--yes" in error["cure"]
        found = self.told(desk, "init", "--yes")
        assert found["path"].endswith("windlass.toml")
        assert found["proposed"]["text"] == (desk.repo / "windlass.toml").read_text()
        written = self.told(desk, "init", "--claude")["files"]
        assert {each["how"] for each in written} == {"wrote"}

    def test_land(self, done: InProcessDesk):
        found = self.told(done, "land", "plan")
        assert found["branch"] == "main"
        assert found["landed"] == done.git("rev-parse", "main").strip()
        assert found["tasks_left"] == 0

    def test_land_that_is_refused(self, done: InProcessDesk):
        done.write("health.py", "mine\n")
        error = failed(done, 3, "land", "plan")
        assert error["where"] == "main"
        assert error["what"].startswith("main was not moved: ")

    def test_clean(self, done: InProcessDesk):
        [found] = self.told(done, "clean", "plan", "--yes")
        assert found["plan"] == "plan"
        assert found["exit"] == 0
        assert all(item["name"] for item in found["deleted"])

    def test_recover(self, done: InProcessDesk):
        found = self.told(done, "recover", "plan", "--force", "--dry-run")
        assert (found["plan"], found["run"], found["recorded"]) == ("plan", "r1", False)
        assert found["tasks"].keys() == {"1.1", "1.2"}

    def test_adopt(self, desk: Desk):
        desk.write("plan.md", "# P\n\n## Task a: A\n")
        head = desk.git("rev-parse", "HEAD").strip()
        state = {
            "milestone_id": "plan",
            "plan_path": "plan.md",
            "completed_tasks": ["a"],
            "failed_tasks": [],
            "task_results": {"a": {"commit": head}},
        }
        desk.write("old_state.json", json.dumps(state))
        found = self.told(desk, "adopt", "old_state.json", "--plan", "plan.md", "--yes")
        assert found["plan"] == "plan"
        assert [task["id"] for task in found["tasks"] if task["taken"]] == ["a"]

    def test_words_to_a_run_that_failed(self, tmp_path):
        desk = finished(tmp_path, failing="bad")
        assert self.told(desk, "retry", "1.2") == {
            "plan": "plan",
            "live": False,
            "message": "Recorded. To continue: windlass resume plan",
        }
        assert self.told(desk, "reset", "1.2")["plan"] == "plan"
        taken = self.told(desk, "take", "1.2")
        assert taken["task"] == "1.2"
        assert taken["workspace"].endswith("1.2")
        assert self.told(desk, "give", "1.2")["live"] is False
        assert failed(desk, 2, "approve", "1.2")["where"] == "plan:1.2"
        assert failed(desk, 2, "pause", "plan")
        assert failed(desk, 2, "stop", "plan")
        assert failed(desk, 2, "answer", "1.2", "go on")["where"] == "plan:1.2"
        assert self.told(desk, "abort", "plan", "--yes")["live"] is False
