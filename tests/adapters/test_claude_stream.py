"""Whatever Claude's program says, forged by what it runs or not: a report, and never an error.

The program is a script that opens the conversation as the real one does, says its lines, and stays
until nothing more can be asked of it.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import Any

import anyio
import msgspec
import pytest

from windlass.adapters.agents import program
from windlass.adapters.agents.claude import agent as claude
from windlass.adapters.agents.claude import reading as claude_reading
from windlass.adapters.agents.claude import stream
from windlass.adapters.sandbox.plain import Plain
from windlass.core.events.model import Failure, Usage
from windlass.core.events.review import PlayerAnswer, Review
from windlass.core.settings import AgentSettings
from windlass.ports import Activity, Brief, Report

PROGRAM = f"""#!{sys.executable} -IS
import json, sys, time
asked = json.loads(sys.stdin.readline())["request_id"]
said = {{"subtype": "success", "request_id": asked, "response": {{}}}}
print(json.dumps({{"type": "control_response", "response": said}}), flush=True)
sys.stdin.readline()
with open("lines", "rb") as lines:
    sys.stdout.buffer.write(lines.read())
sys.stdout.flush()
sys.stdin.read()
time.sleep(STAYS)
"""
ANSWERS = 'print(json.dumps({"type": "control_response", "response": said}), flush=True)'
HALF = "\ud83d"
GONE = "\ufffd"

Line = dict[str, Any] | str


def result(**fields: Any) -> Line:
    """A result as the program gives it, but for these fields."""
    counts = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "duration_ms": 1,
        "duration_api_ms": 1,
        "num_turns": 1,
        "session_id": "s",
        "result": "done",
        "total_cost_usd": 0.5,
        "modelUsage": {"m": dict.fromkeys(counts, 10)},
        **fields,
    }


def assistant(*content: Any, **fields: Any) -> Line:
    return {"type": "assistant", "message": {"content": content, "model": "m"}, **fields}


def tool(name: Any, given: Any) -> Line:
    return assistant({"type": "tool_use", "id": "1", "name": name, "input": given})


def event(said: Any) -> Line:
    return {"type": "stream_event", "uuid": "u", "session_id": "s", "event": said}


def rejected(until: Any) -> Line:
    info = {"status": "rejected", "resetsAt": until}
    return {"type": "rate_limit_event", "uuid": "u", "session_id": "s", "rate_limit_info": info}


def retry(**fields: Any) -> Line:
    return {"type": "system", "subtype": "api_retry", **fields}


class World:
    """A program that says what it is told to."""

    def __init__(self, tmp_path: Path) -> None:
        self._path = tmp_path
        self.seen: list[Activity] = []

    def hear(
        self,
        *lines: Line,
        answer: type[msgspec.Struct] | None = None,
        watch: Callable[[Activity], None] | None = None,
        stays: float = 0,
        greets: str = ANSWERS,
    ) -> Report:
        program = self._path / "claude"
        program.write_text(PROGRAM.replace("STAYS", str(stays)).replace(ANSWERS, greets))
        program.chmod(0o700)
        said = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        (self._path / "lines").write_text("".join(f"{line}\n" for line in said))
        home = self._path / "home"
        home.mkdir(exist_ok=True)
        host = {"PATH": os.environ["PATH"]}
        sandbox = Plain("none", home=home, environment=host, marker=f"test-{token_hex(8)}")
        settings = AgentSettings(timeout=60)
        agent = claude.ClaudeAgent(settings, sandbox, {}, program=program)
        brief = Brief(task="1.1", n=1, role="player", prompt="Do it.", model="m", answer=answer)
        return anyio.run(agent.work, brief, self._path, watch or self.seen.append)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


class TestHalfACharacter:
    """It can be said in JSON, and written nowhere: the journal would end the run over it."""

    def test_is_shown_as_one_that_is_lost_wherever_it_stands(self, world: World):
        criterion = {"criterion": 1, "met": True, "evidence": f"\U0001f600 {HALF}"}
        review = {
            "decision": "approve",
            "summary": f"{HALF}{HALF}",
            "test_results": {"passed": True, "failures": [f"a{HALF}b"]},
            "evidence": [criterion],
            f"other{HALF}": 1,
        }
        said = result(structured_output=review, result=f"done {HALF}")
        call = tool("WebFetch", {f"u{HALF}": f"{HALF}" * 300})
        report = world.hear(call, said, answer=Review)
        assert report.failure is None, report.message
        assert isinstance(report.answer, Review)
        assert report.summary == f"done {GONE}"
        assert report.answer.summary == GONE * 2
        assert report.answer.test_results.failures == (f"a{GONE}b",)
        assert report.answer.evidence[0].evidence == f"\U0001f600 {GONE}"
        assert msgspec.json.encode((report, world.seen))

    @pytest.mark.parametrize(
        ("said", "read"),
        [
            (r"\uD83D\uDE00 \ude00", f"\U0001f600 {GONE}"),
            (r"\ud83d\ud83d\ude00", f"{GONE}\U0001f600"),
            (r"\\ud83d \n\u00e9", "\\ud83d \n\xe9"),
            (r"\\\ud83d", f"\\{GONE}"),
        ],
    )
    def test_is_told_from_a_whole_one_and_from_no_escape(self, world: World, said: str, read: str):
        line = json.dumps(result(result="SAID")).replace("SAID", said)
        assert world.hear(line).summary == read


ODD: dict[str, Line] = {
    "deep": '{"type":"system","a":' + "[" * 100_000 + "]" * 100_000 + "}",
    "no JSON": "{nonsense",
    "no subtype": {"type": "system"},
    "attempt": '{"type":"system","subtype":"api_retry","attempt":1e999}',
    "attempt large": retry(attempt=10**400),
    "event": event("boo"),
    "message": {"type": "assistant", "message": "boo"},
    "input": tool("Bash", "boo"),
    "resetsAt": rejected({}),
    "limit": {"type": "rate_limit_event", "rate_limit_info": "boo"},
    "status": result(is_error=True, terminal_reason="api_error", api_error_status=[]),
    "reason": result(is_error=True, terminal_reason={}),
    "result": result(result={}),
    "modelUsage": result(modelUsage={"m": {}}),
    "models": result(modelUsage=["m"]),
    "cost": result(total_cost_usd="1"),
}
HARMLESS: dict[str, Line] = {
    "task": {"type": "system", "subtype": "task_started", "task_id": [], "task_type": []},
    "response": {"type": "control_response", "response": "boo"},
    "error": {"type": "error", "error": "boo"},
    "end": {"type": "end"},
    "request": {"type": "control_request"},
    "request id": {"type": "control_request", "request_id": [], "request": "boo"},
    "type": {"type": ["result"]},
    "none": "{}",
    "text": assistant({"type": "text", "text": ["boo"]}),
    "tool": tool(["Bash"], {"command": "boo"}),
    "error word": assistant(error={"a": 1}),
}


class TestAnOddLine:  # B2
    @pytest.mark.parametrize("line", ODD.values(), ids=ODD)
    def test_is_the_crash_of_the_one_that_said_it(self, world: World, line: Line):
        report = world.hear(line, result())
        assert report.failure is Failure.CRASHED, report
        assert report.message.startswith("the agent ended without an answer (its output cannot")
        assert report.usage == Usage(known=False)

    @pytest.mark.parametrize("line", HARMLESS.values(), ids=HARMLESS)
    def test_that_says_nothing_to_windlass_is_passed_over(self, world: World, line: Line):
        report = world.hear(line, result(structured_output={"summary": "ok"}), answer=PlayerAnswer)
        assert (report.failure, report.message) == (None, "")
        assert (report.summary, report.answer) == ("done", PlayerAnswer(summary="ok"))

    def test_cannot_say_that_the_program_has_ended(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        """Else a forged answer would count before the program can say its own."""
        monkeypatch.setattr(claude_reading, "LINGER", 0.5)
        forged = result(structured_output={"summary": "forged"})
        report = world.hear(forged, {"type": "end"}, answer=PlayerAnswer, stays=60)
        assert report.answer is None

    def test_is_not_to_blame_where_telling_fails(self, world: World):
        def full(_activity: Activity) -> None:
            raise BrokenPipeError

        with pytest.raises(ExceptionGroup) as caught:
            world.hear(tool("Bash", {"command": "true"}), result(), watch=full)
        assert caught.group_contains(BrokenPipeError)


class TestAProgramThatDoesNotStart:
    """It is the machine's failure, which uses no turn and is not tried for ever."""

    @pytest.mark.parametrize(
        ("greets", "reason"),
        [
            ("sys.exit(3)", "exit code 3"),
            ('print(\'{"type": "system"}\', flush=True); sys.exit(0)', "exit code 0"),
            ("sys.exit('no such model\\nuse another')", "use another"),
            ("print('{nonsense', flush=True); sys.exit(0)", "its output cannot be parsed"),
            (
                "said = {'subtype': 'error', 'request_id': asked, 'error': 'old version'}\n"
                + ANSWERS,
                "old version",
            ),
            (ANSWERS.replace("said", "'boo'"), "its output cannot be parsed"),
        ],
    )
    def test_is_reported_with_its_reason(self, world: World, greets: str, reason: str):
        report = world.hear(result(), greets=greets)
        assert report.failure is Failure.ENVIRONMENT
        assert report.message.startswith(f"the agent could not be started: {reason}")

    @pytest.mark.parametrize(
        "greets", ["time.sleep(60)", f"said['request_id'] = 'another'\n{ANSWERS}"]
    )
    def test_has_a_minute(self, world: World, monkeypatch: pytest.MonkeyPatch, greets: str):
        monkeypatch.setattr(stream, "STARTS_WITHIN", 0.5)
        report = world.hear(result(), greets=greets)
        assert report.failure is Failure.ENVIRONMENT
        assert report.message == "the agent could not be started: it did not answer in time"


class TestACost:
    @pytest.mark.parametrize(
        "cost", ["-1", "-1e9", "NaN", "Infinity", "-Infinity", "1e999", "1e300"]
    )
    def test_that_cannot_be_is_never_taken(self, world: World, cost: str):
        line = json.dumps(result(total_cost_usd="COST")).replace('"COST"', cost)
        assert world.hear(line).usage == Usage(known=False)

    @pytest.mark.parametrize("count", [-1, 10**30, 1.5, None])
    def test_nor_are_tokens(self, world: World, count: object):
        counts = ("inputTokens", "outputTokens", "cacheReadInputTokens")
        used = {**dict.fromkeys(counts, 10), "cacheCreationInputTokens": count}
        assert world.hear(result(modelUsage={"m": used})).usage == Usage(known=False)


class TestALongText:
    LONG = "a" * 100_000 + "the end"
    MARK = " […80007 characters…] "

    def test_is_cut_where_it_is_kept(self, world: World):
        summary = {"summary": self.LONG, "question": self.LONG}
        said = result(result=self.LONG, structured_output=summary)
        report = world.hear(said, answer=PlayerAnswer)
        assert isinstance(report.answer, PlayerAnswer)
        for text in (report.summary, report.answer.summary, report.answer.question):
            assert text is not None
            assert text == "a" * 10_000 + self.MARK + "a" * 9_993 + "the end"

    def test_is_cut_where_the_last_word_is_all_there_is(self, world: World):
        word = assistant({"type": "text", "text": self.LONG})
        ends = result(is_error=True, terminal_reason="max_turns", result=None)
        report = world.hear(word, ends)
        assert self.MARK in report.summary
        assert report.summary.endswith("steps]")

    def test_is_cut_in_words_about_a_failure(self, world: World):
        report = world.hear(result(is_error=True, terminal_reason=self.LONG))
        assert report.failure is Failure.CRASHED
        assert len(report.message) < 300
        failed = result(is_error=True, terminal_reason="api_error", api_error_status=500)
        report = world.hear(assistant(error=self.LONG), failed)
        assert report.failure is Failure.TRANSIENT
        assert len(report.message) < 300

    def test_answer_is_none(self, world: World):
        evidence = [{"criterion": 1, "met": True, "evidence": ""}] * 100_000
        tests = {"passed": True}
        review = {"decision": "approve", "summary": "", "test_results": tests, "evidence": evidence}
        report = world.hear(result(structured_output=review), answer=Review)
        assert (report.failure, report.answer) == (None, None)


class TestTooMuch:
    def test_of_one_that_has_just_ended_is_its_failure(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        async def late(*_: object, **__: object) -> str:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)
            return "it took too much"

        monkeypatch.setattr(program, "overrun", late)
        report = world.hear(result())
        assert report.message == "the agent was ended: it took too much"
