"""`windlass mcp`, asked by the official client over a real pipe."""

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from desk import Desk
from finished_run import InProcessDesk, finished
from windlass.adapters.journal.inbox import FileInbox
from windlass.adapters.locks import PlanLock
from windlass.app.wiring.installation import how_to_add
from windlass.core.events import model as e
from windlass.core.events.review import PlayerAnswer
from windlass.core.plan import Task
from windlass.ports import Report
from worlds import NOON, World, plan_of, writes

LOOKING = {"status", "task", "log", "diff", "costs", "wait"}
ACTING = {"answer", "approve", "retry", "pause", "stop"}

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def served(desk: Desk, *options: str, **more: str) -> AsyncGenerator[Client]:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "windlass", "mcp", *options],
        env={**desk.environment, **more},
        cwd=desk.repo,
    )
    async with Client(server) as client:
        yield client


async def told(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    try:
        result = await client.call_tool(tool, arguments)
    except Exception as error:  # noqa: BLE001  a client may refuse by itself
        return str(error)
    assert result.is_error, result
    text = result.content[0].text
    assert "Traceback" not in text
    return text


@pytest.fixture
def done(tmp_path: Path) -> InProcessDesk:
    return finished(tmp_path, failing="bad")


@pytest.fixture
def asking(tmp_path: Path) -> "Asked":
    return asked(tmp_path)


@pytest.fixture
def silent(tmp_path: Path) -> "Asked":
    return asked(tmp_path, question="")


async def test_every_tool_tells_of_a_real_run_and_changes_nothing(done: InProcessDesk):
    before = done.everything()
    async with served(done, SOME_TOKEN="octocat-is-a-secret") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == LOOKING
        for tool in tools.values():
            assert tool.annotations is not None
            assert tool.annotations.read_only_hint

        [run] = (await told(client, "status"))["runs"]
        assert (run["status"], run["live"], run["plan"]) == ("failed", False, "plan")
        assert run["tasks"]["1.1"]["status"] == "completed"
        assert "windlass resume plan --retry" in run["next_commands"]
        assert await told(client, "status", plan="plan.md") == {"runs": [run]}

        task = await told(client, "task", task="plan:1.2")
        assert (task["status"], task["title"]) == ("abandoned", "Document it")
        assert task["starts"][0]["checks"][0]["outcome"] == "fail"

        whole = await told(client, "log")
        assert whole["lines"][0]["word"] == "START"
        first = await told(client, "log", limit=2)
        assert first["more"]
        rest = await told(client, "log", since=first["next"])
        assert first["lines"] + rest["lines"] == whole["lines"]
        mine = await told(client, "log", task="1.2")
        assert all("1.2" in line["text"] for line in mine["lines"])

        diff = await told(client, "diff", task="1.1")
        assert "+ok" in diff["diff"]
        assert not diff["cut"]
        assert "+ok" not in (await told(client, "diff", task="1.1", form="stat"))["diff"]

        costs = await told(client, "costs")
        assert costs["total"]["cost_usd"] == pytest.approx(0.03)
        assert set(costs["role"]) == {"player", "coach"}

        # It is over: there is nothing to wait for.
        over = await told(client, "wait", seconds=500)
        assert (over["changed"], over["status"]) == (False, "failed")
        news = await told(client, "wait", since=0, seconds=500)
        assert news["changed"]
        assert news["lines"] == whole["lines"]
    assert done.everything() == before


@pytest.mark.parametrize("options", [(), ("--allow-actions",)])
async def test_hostile_arguments_are_refused_and_it_goes_on(
    done: InProcessDesk, options: tuple[str, ...]
):
    secret = done.home / "secret.md"
    secret.write_text("# Milestone: X\n\n## Task 9.9: hush\n")
    names = [
        "../../home/secret.md", str(secret), "--repo=/", "-x", "plan\x00", "", ":", "plan:",
        "ü" * 9, "$(touch owned)", "plan:1.1\nplan:1.2", "x" * 100_000, "refs/heads/main",
    ]  # fmt: skip
    before = done.everything()
    async with served(done, *options) as client:
        for name in names:
            for tool, key in [("status", "plan"), ("task", "task"), ("diff", "task")]:
                said = await refused(client, tool, **{key: name})
                assert "hush" not in said
                assert len(said) < 3000
        for wrong in (
            {"since": -1},
            {"limit": 0},
            {"limit": 10**9},
            {"since": "x"},
            {"plan": {"a": 1}},
        ):
            await refused(client, "log", **wrong)
        await refused(client, "wait", seconds=1e9)
        await refused(client, "diff", task="1.1", form="--output=owned")
        for tool in ACTING if not options else {"run", "land", "clean", "abort"}:
            await refused(client, tool, task="1.2", text="x", plan="plan")
        assert (await told(client, "status"))["runs"]
    assert done.everything() == before


async def test_actions_do_what_the_commands_do(asking: "Asked"):
    desk = asking
    async with served(desk, "--allow-actions") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == LOOKING | ACTING
        assert not any(tools[name].annotations.read_only_hint for name in ACTING)
        [run] = (await told(client, "status"))["runs"]
        assert run["needs"] == [{"task": "a", "status": "needs_human", "asks": "Which colour?"}]
        assert "is empty" in await refused(client, "answer", task="a", text=" ")
        assert "longer than" in await refused(client, "answer", task="a", text="x" * 20_001)
        assert "cannot be approved" in await refused(client, "approve", task="a")
        assert "cannot be retried" in await refused(client, "retry", task="a")
        said = await told(client, "answer", task="a", text='"blue" $(x)\nplease')
        recorded = "Recorded. To continue: windlass resume p"
        assert said == {"plan": "p", "live": False, "message": recorded}
        assert "no run of 'p' is in progress" in await refused(client, "stop")
        log = await told(client, "log")
        assert log["lines"][-1]["word"] == "ANSWER"
        with PlanLock(desk.repo / ".windlass/plans/p/lock"):
            for tool, arguments in [("pause", {"now": True}), ("pause", {}), ("stop", {})]:
                assert "Asked the run of p" in (await told(client, tool, **arguments))["message"]
    inbox = FileInbox(desk.repo / ".windlass/plans/p/inbox")
    assert [message.command for message, _ in inbox.take()] == ["pause_now", "pause", "stop"]


async def test_merged_work_is_redone_only_if_the_caller_says_that_the_person_agreed(
    done: InProcessDesk,
):
    async with served(done, "--allow-actions") as client:
        before = done.everything()
        assert "windlass retry plan:1.1 --yes" in await refused(client, "retry", task="1.1")
        assert done.everything() == before
        said = await told(client, "retry", task="1.1", confirmed=True)
        assert said["message"].startswith("Recorded.")


async def test_waiting_ends_when_something_happens_or_the_time_is_up(silent: "Asked"):
    desk = silent
    with PlanLock(desk.repo / ".windlass/plans/p/lock"):
        async with served(desk) as client:
            quiet = await told(client, "wait", seconds=0.2)
            assert (quiet["changed"], quiet["live"]) == (False, True)
            results: list[dict[str, Any]] = []

            async def wait() -> None:
                results.append(await told(client, "wait", seconds=100, since=quiet["seq"]))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(wait)
                # Beside the server, as a live run would.
                desk.go_on("p", [e.StopRequested(at=NOON, by="windlass stop")])
    assert results[0]["changed"]
    assert [line["word"] for line in results[0]["lines"]] == ["STOP"]


async def test_without_the_extra_it_says_what_to_install(done: InProcessDesk, tmp_path: Path):
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "mcp.py").write_text("raise ModuleNotFoundError('no', name='mcp')\n")
    plain = Desk(done.root)
    answer = await anyio.to_thread.run_sync(
        lambda: plain.call("mcp", PYTHONPATH=str(tmp_path / "without"))
    )
    assert answer.code == 2
    assert answer.err == (
        "windlass: the MCP server needs a package that is not installed: mcp;"
        f" install it: {how_to_add('mcp')}\n"
    )


class Asked(InProcessDesk):
    def go_on(self, plan_id: str, events: list[e.Event]) -> None:
        from windlass.adapters.journal.sqlite import SqliteJournal
        from windlass.core.secrets import Redactor

        path = self.repo / ".windlass" / "plans" / plan_id / "journal.db"
        with SqliteJournal.open(path, Redactor({})) as journal:
            journal.append(events, expected=journal.last)


def asked(root: Path, question: str = "Which colour?") -> Asked:
    """A run that was left by its process, in which a task asks something, if anything."""
    asks = Report(answer=PlayerAnswer(summary="", question=question or None))
    play = (lambda *_: asks) if question else writes("a", "x")
    world = World(plan_of(Task(id="a", title="First")), {"a": play})
    world.go()
    events = world.events
    if not question:
        begun = next(n for n, event in enumerate(events) if isinstance(event, e.PlayerStarted))
        events = events[: begun + 1]
    desk = Asked(root)
    desk.build({"README.md": "hello\n"})
    desk.record("p", events)
    return desk


def test_help_does_not_import_it():
    import subprocess

    script = (
        "import sys; from windlass.cli.main import call; call(['--help']);"
        "sys.exit(any(name.split('.')[0] in ('mcp', 'pydantic') for name in sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0
