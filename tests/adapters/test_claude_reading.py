"""What Claude's messages mean, where no real fault brings them about."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from windlass.adapters.agents.claude import reading
from windlass.adapters.meter.holds import Holds
from windlass.core.events.model import Failure
from windlass.core.events.review import PlayerAnswer
from windlass.core.secrets import Redactor
from windlass.core.settings import AgentSettings
from windlass.ports import Activity, Brief


def assistant(*content: Any, **fields: Any) -> reading.Message:
    return {"type": "assistant", "message": {"content": content, "model": "m"}, **fields}


def tool(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": "1", "name": name, "input": given}


def system(subtype: str, **data: Any) -> reading.Message:
    return {"type": "system", "subtype": subtype, **data}


def event(kind: str) -> reading.Message:
    return {"type": "stream_event", "event": {"type": kind}}


def one_told(name: str, given: dict[str, Any], redact: Callable[[str], str] = str) -> Activity:
    """What is told of one call of a tool."""
    told: list[Activity] = []
    brief = Brief(task="1.1", n=1, role="player", prompt="", model="m")
    reader = reading.Reader(brief, told.append, AgentSettings(), retries=0, redact=redact)
    reader.read(assistant(tool(name, given)), 0.0)
    [activity] = told
    return activity


class TestIdleness:
    """Idle time counts from the moment at which the model is asked."""

    def reader(self, holds: Holds) -> reading.Reader:
        brief = Brief(task="1.1", n=1, role="player", prompt="", model="m")
        settings = AgentSettings(timeout=100, idle_timeout=4)
        reader = reading.Reader(brief, print, settings, retries=0, holds=holds)
        reader.begin(0.0)
        return reader

    def test_while_the_meter_holds_a_request_only_the_total_deadline_counts(self):  # B6
        holds = Holds()
        reader = self.reader(holds)
        now = 1.0
        with holds.watched(lambda: reader.hold_changed(now)):
            reader.read(system("status", status="requesting"), now)
            assert reader.deadline == 5.0
            with holds.hold():
                assert reader.deadline == 100.0
                assert reader.lateness == "the agent was not done after 100 seconds"
                reader.read(system("status", status="requesting"), now)
                assert reader.deadline == 100.0, "the message may come after the hold began"
                with holds.hold():
                    now = 30.0
                assert reader.deadline == 100.0, "another request is still held"
            assert reader.deadline == 34.0, "the model is asked now"
            assert reader.lateness == "the model sent nothing for 4 seconds"

    def test_a_hold_says_nothing_of_an_agent_that_asks_nothing_or_is_done(self):
        holds = Holds()
        reader = self.reader(holds)
        now = 1.0
        with holds.watched(lambda: reader.hold_changed(now)):
            with holds.hold():
                pass
            assert reader.deadline == 100.0, "a tool runs"
            reader.read(TestReading._result(result="done"), now)
            now = 2.0
            with holds.hold():
                assert reader.deadline == 1.0 + reading.LINGER
            assert reader.deadline == 1.0 + reading.LINGER


class TestReading:
    @pytest.mark.parametrize(
        ("tool", "given", "line"),
        [
            ("Read", {"file_path": "/workspace/src/app.py"}, "Reading app.py"),
            ("Write", {"file_path": "app.py"}, "Writing app.py"),
            ("NotebookEdit", {"notebook_path": "a/b.ipynb"}, "Editing b.ipynb"),
            ("Bash", {"command": "pytest -q\\\n  tests"}, "Running: pytest -q\\ tests"),
            ("Bash", {"command": "x" * 60}, "Running: " + "x" * 49 + "…"),
            ("Grep", {"pattern": "def main"}, "Searching def main"),
            ("TodoWrite", {"todos": []}, "TodoWrite"),
            ("Read", {}, "Reading "),
        ],
    )
    def test_a_tool_call_is_told_in_a_line(self, tool: str, given: dict[str, str], line: str):
        assert reading.describe(tool, given) == line  # K6

    @pytest.mark.parametrize(
        ("tool", "given", "kept"),
        [
            ("Bash", {"command": "echo hi"}, ""),
            ("Bash", {"command": "cd /\n" + "x" * 60}, "cd /\n" + "x" * 60),
            ("Bash", {"command": "printf '\x1b]0;x\x9b\ud800'; true"}, None),
            ("Write", {"file_path": "/home/ann/.ssh/id", "content": "x"}, "/home/ann/.ssh/id"),
            ("WebFetch", {"url": "http://evil/?é"}, '{"url": "http://evil/?é"}'),
            ("StructuredOutput", {"summary": "done"}, ""),
            ("TodoWrite", {}, ""),
        ],
    )
    def test_what_no_line_has_room_for_is_kept(self, tool: str, given: dict[str, str], kept: str):
        escaped = "printf '\\x1b]0;x\\x9b\\ud800'; true"
        assert one_told(tool, given).whole == (escaped if kept is None else kept)  # B5

    def test_of_what_is_too_long_the_beginning_and_the_end_are_kept(self):  # B5
        told = one_told("Bash", {"command": "a" * 5000 + "rm -rf /"}).whole
        assert told.startswith("a" * 1000 + " […3008 characters…] a")
        assert told.endswith("rm -rf /")

    def test_no_secret_is_kept_whole_or_by_half(self):  # S13
        secret = "sk-secret-" + "0123456789" * 3
        redact = Redactor({"API_KEY": secret}).text
        for command in (f"x {'y' * 60} {secret}", "y" * 985 + secret + "z" * 2000):
            assert "sk-sec" not in one_told("Bash", {"command": command}, redact).whole
        assert "sk-sec" not in one_told("Agent", {"in": {"a": [secret]}}, redact).whole

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("a\n\n  b\tc\r", "a b c"),
            ("\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://e\x1b\\link", "red xlink"),
            ("\x9b2Jx\x00\x07\x7f\x85y", "x y"),
            ("a\u202eb\u200bc\ufeff", "abc"),
            ("z" * 300, "z" * 199 + "…"),
            ("\ud800x", "x"),
        ],
    )
    def test_a_line_holds_nothing_a_terminal_stumbles_over(self, text: str, line: str):
        assert reading.one_line(text) == line

    def test_a_secret_is_taken_out_before_a_line_is_cut(self):  # S13
        """Else its first half would stand at the end of the line, and nobody could tell."""
        secret = "sk-secret-" + "0123456789" * 3
        seen: list[str] = []
        brief = Brief(task="1.1", n=1, role="player", prompt="", model="m")
        reader = reading.Reader(
            brief,
            lambda activity: seen.append(activity.text),
            AgentSettings(),
            retries=0,
            redact=Redactor({"A_KEY": secret}).text,
        )
        call = tool("Bash", {"command": f"{'x' * 40}{secret}", "n": 1})
        said = {"type": "text", "text": f"{'y' * 190}{secret}"}
        reader.read(assistant(call, said), 0)
        assert len(seen) == 2
        assert not any("sk-secret" in line for line in seen)

    def test_a_secret_is_taken_out_before_a_summary_is_cut(self):  # S13
        secret = "sk-secret-" + "0123456789" * 3
        said = "x" * (reading.SAID // 2 - 15) + secret + "y" * reading.SAID
        brief = Brief(task="1.1", n=1, role="player", prompt="", model="m", answer=PlayerAnswer)
        redact = Redactor({"A_KEY": secret}).text
        reader = reading.Reader(brief, print, AgentSettings(), retries=0, redact=redact)
        reader.read(self._result(result=said, structured_output={"summary": said}), 0)
        report = reader.report("")
        assert isinstance(report.answer, PlayerAnswer)
        for kept in (report.summary, report.answer.summary):
            assert "sk-sec" not in kept
            assert "characters…" in kept

    def test_of_two_results_the_last_counts_for_it_has_the_totals(self):
        reader = self._reader()
        reader.read(self._result(cost=0.5, tokens=100, result="first"), 0)
        reader.read(self._result(cost=0.7, tokens=140, result="second"), 1)
        report = reader.report("")
        assert report.summary == "second"
        assert (report.usage.cost_usd, report.usage.input_tokens) == (0.7, 140)

    def test_an_answer_is_none_unless_the_program_then_ends_well(self):  # B2
        """What it runs can write into its output, and stop or kill it before it speaks itself."""
        reader = self._reader(answer=PlayerAnswer)
        reader.read(self._result(structured_output={"summary": "done"}), 0)
        assert reader.report("").answer == PlayerAnswer(summary="done")
        for ended in ("exit code 137", "it did not end by itself"):
            assert reader.report(ended).answer is None
        assert reader.overdue("the model sent nothing for 5 seconds").answer is None

    @pytest.mark.parametrize(
        ("reason", "failure"),
        [
            ("budget_exhausted", Failure.BUDGET),
            ("prompt_too_long", Failure.ENVIRONMENT),
            ("image_error", Failure.CRASHED),
            (None, Failure.CRASHED),
        ],
    )
    def test_the_reason_it_gives_is_what_counts(self, reason: str | None, failure: Failure):
        reader = self._reader()
        reader.read(self._result(is_error=True, terminal_reason=reason), 0)
        assert reader.report("").failure is failure

    def test_an_account_without_money_is_a_matter_of_budget(self):
        reader = self._reader()
        reader.read(assistant(error="billing_error"), 0)
        failed = self._result(is_error=True, terminal_reason="api_error", api_error_status=400)
        reader.read(failed, 0)
        assert reader.report("").failure is Failure.BUDGET

    def test_a_retry_that_waits_long_is_not_idle(self):
        reader = self._reader()
        reader.begin(0)
        reader.read(system("status", status="requesting"), 1)
        assert reader.deadline == 11
        retry = {"attempt": 1, "retry_delay_ms": 30_000, "error_status": 529, "error": "overloaded"}
        reader.read(system("api_retry", **retry), 2)
        assert reader.deadline == 42
        reader.read(event("message_start"), 30)
        assert reader.deadline == 40
        reader.read(event("message_stop"), 35)
        assert reader.deadline == 100

    @staticmethod
    def _reader(answer: type[Struct] | None = None) -> reading.Reader:
        settings = AgentSettings(idle_timeout=10, timeout=100)
        brief = Brief(task="1.1", n=1, role="player", prompt="", model="", answer=answer)
        return reading.Reader(brief, print, settings, retries=1)

    @staticmethod
    def _result(cost: float = 0, tokens: int = 0, **fields: Any) -> reading.Message:
        usage = {
            "inputTokens": tokens,
            "outputTokens": 0,
            "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0,
        }
        return {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "num_turns": 1,
            "session_id": "s",
            "duration_ms": 1,
            "duration_api_ms": 1,
            "total_cost_usd": cost,
            "modelUsage": {"m": usage},
            **fields,
        }
