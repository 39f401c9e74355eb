"""The agent without a model keeps the promises of every agent; tests/e2e has the real one."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from windlass.core.events.model import Failure
from windlass.ports import Agent, Brief
from windlass.testing.agents import Play, ScriptedAgent
from windlass.testing.conformance.agent import AgentContract, brief, ignore_activity


class TestScriptedAgent(AgentContract):
    failures = tuple(Failure)

    @asynccontextmanager
    async def make(self, play: Play) -> AsyncGenerator[Agent]:
        yield ScriptedAgent({"1.1": play})


class TestParts:
    def test_each_start_has_its_part_and_the_last_one_stays(self, tmp_path: Path):
        agent = ScriptedAgent({"1.1": ({"a": "1"}, {"a": "2", "b": "x"}, {"b": None})})
        assert [self._files(agent, tmp_path, n) for n in (1, 2, 3, 4)] == [
            {"a": "1"},
            {"a": "2", "b": "x"},
            {"a": "2"},
            {"a": "2"},
        ]
        assert [asked.n for asked in agent.briefs] == [1, 2, 3, 4]

    def test_a_part_can_be_made_up_on_the_spot(self, tmp_path: Path):
        def part(asked: Brief, workspace: Path) -> Play:
            return Play(edits={f"{asked.task}.txt": workspace.name})

        assert self._files(ScriptedAgent({}, default=part), tmp_path, 1) == {
            "1.1.txt": tmp_path.name
        }

    def test_it_can_break_its_promise(self, tmp_path: Path):
        agent = ScriptedAgent({"1.1": Play(edits={"a": "1"}, raises=OSError("gone"))})
        with pytest.raises(OSError, match="gone"):
            self._files(agent, tmp_path, 1)
        assert agent.busy == 0

    @staticmethod
    def _files(agent: ScriptedAgent, workspace: Path, n: int) -> dict[str, str]:
        asked = Brief(task="1.1", n=n, role="player", prompt=brief().prompt, model="m")
        anyio.run(agent.work, asked, workspace, ignore_activity)
        return {file.name: file.read_text() for file in sorted(workspace.iterdir())}
