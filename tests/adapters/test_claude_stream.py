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

from windlass.adapters.agents import claude
from windlass.adapters.sandbox.plain import Plain
from windlass.ports import Activity, Brief, Report
from windlass.settings import AgentSettings

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
    ) -> Report:
        program = self._path / "claude"
        program.write_text(PROGRAM.replace("STAYS", str(stays)))
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


class TestTooMuch:
    def test_of_one_that_has_just_ended_is_its_failure(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ):
        async def late(*_: object) -> str:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1)
            return "it took too much"

        monkeypatch.setattr(claude, "overrun", late)
        report = world.hear(result())
        assert report.message == "the agent was ended: it took too much"
