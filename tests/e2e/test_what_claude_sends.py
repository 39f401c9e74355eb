"""What the real program sends passes the meter unharmed, and nothing is sent that is not listed.

The lists below are what the bundled program sent when they were written. A new version that sends
more fails here: look whether what is new has a price, then add it to the meter's lists and here.
"""

import base64
import os
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from relay import RelayedRequest, relaying
from windlass.adapters.agents.claude import VENDOR, find_program
from windlass.adapters.agents.claude.agent import ClaudeAgent
from windlass.adapters.agents.metered import MeteredAgent
from windlass.adapters.meter.proxy import Meter
from windlass.adapters.meter.wire.anthropic import ANTHROPIC
from windlass.adapters.meter.wire.anthropic.headers import BETAS
from windlass.adapters.sandbox.plain import Plain
from windlass.core.events.model import Failure, Usage
from windlass.core.events.review import PlayerAnswer
from windlass.core.settings import AgentSettings
from windlass.core.state.budget import No
from windlass.ports import Ask, Brief, Held, Report
from windlass.testing.model import Answer, Block, Book, Call, Say, Script, Step, Think, Tokens
from windlass.testing.model.server import ModelServer

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.anyio,
    pytest.mark.skipif(find_program() is None, reason="the Claude CLI is not installed"),
]

LEFT_OUT = {"fallback-credit-2026-06-01"}
"""Features that the program asks for and that are not passed on; it does well without them."""

HEADERS = {
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
    "x-api-key",
    "x-app",
    "x-claude-code-agent-id",
    "x-claude-code-parent-agent-id",
    "x-claude-code-session-id",
    "x-stainless-arch",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
}

FIELDS = {
    "context_management.edits{clear_thinking_20251015}.keep",
    "max_tokens",
    "messages.content",
    "messages.content{text}.cache_control{ephemeral}",
    "messages.content{text}.text",
    "messages.content{thinking}.signature",
    "messages.content{thinking}.thinking",
    "messages.content{tool_result}.cache_control{ephemeral}",
    "messages.content{tool_result}.content",
    "messages.content{tool_result}.content{document}.source{base64}.data",
    "messages.content{tool_result}.content{document}.source{base64}.media_type",
    "messages.content{tool_result}.content{image}.source{base64}.data",
    "messages.content{tool_result}.content{image}.source{base64}.media_type",
    "messages.content{tool_result}.content{text}.text",
    "messages.content{tool_result}.content{tool_reference}.tool_name",
    "messages.content{tool_result}.is_error",
    "messages.content{tool_result}.tool_use_id",
    "messages.content{tool_use}.cache_control{ephemeral}",
    "messages.content{tool_use}.id",
    "messages.content{tool_use}.input",
    "messages.content{tool_use}.name",
    "messages.output_config.effort",
    "messages.role",
    "metadata.user_id",
    "model",
    "output_config.effort",
    "stream",
    "system{text}.cache_control{ephemeral}",
    "system{text}.text",
    "temperature",
    "thinking{adaptive}.display",
    "thinking{disabled}",
    "thinking{enabled}.budget_tokens",
    "thinking{enabled}.display",
    "tool_choice{auto}",
    "tool_choice{tool}.name",
    "tools.defer_loading",
    "tools.description",
    "tools.input_schema",
    "tools.name",
    "tools{web_search_20250305}.max_uses",
    "tools{web_search_20250305}.name",
}
"""Every place where something stands, the kind of each object in braces."""

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj "
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj "
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF\n"
)


class Till:
    """A ledger without an end."""

    def __init__(self) -> None:
        self.reserved: list[float] = []
        self.settled: list[Usage] = []

    def reserve(self, ask: Ask) -> Held | No:
        self.reserved.append(ask.most.usd)
        return Held(str(len(self.reserved)), ask.most)

    def settle(self, id_: str, usage: Usage, *, broke_off: bool = False) -> None:
        self.settled.append(usage)

    def stream(self, id_: str, usage: Usage) -> None:
        """Nothing here lasts long enough."""

    def refuse(self, ask: Ask) -> None:
        """Nothing here is cut."""


class Line:
    """The program, a wire, the meter, a wire, the model."""

    def __init__(self, server: ModelServer, till: Till, folder: Path) -> None:
        self.server, self.till, self.folder = server, till, folder
        self.sent: list[RelayedRequest] = []
        self.arrived: list[RelayedRequest] = []
        self.agent: MeteredAgent

    async def work(self, model: str, answer: type[Struct] | None = None) -> Report:
        brief = Brief(
            task="1.1", n=1, role="player", prompt="Task: 1.1\n", model=model, answer=answer
        )
        return await self.agent.work(brief, self.folder / "w", lambda _: None)


@asynccontextmanager
async def line(
    folder: Path, *steps: Step, more: Mapping[str, str] | None = None, **scripts: Script
) -> AsyncGenerator[Line]:
    for name in ("home", "w"):
        (folder / name).mkdir()
    (folder / "w" / "a.png").write_bytes(PNG)
    (folder / "w" / "a.pdf").write_bytes(PDF)
    host = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    sandbox = Plain("none", home=folder / "home", environment=host, marker=folder.name)
    book, till = Book(scripts=scripts, default=Script(steps)), Till()
    async with (
        ModelServer.serving(book) as server,
        relaying(server.url) as behind,
        Meter.serving(ANTHROPIC, behind.url, {"ANTHROPIC_API_KEY": "sk-dummy"}, till) as meter,
        relaying(meter.url) as before,
    ):
        made = Line(server, till, folder)
        made.sent, made.arrived = before.requests, behind.requests

        def make(given: Mapping[str, str]) -> ClaudeAgent:
            reached = {**given, "ANTHROPIC_BASE_URL": before.url, **(more or {})}
            return ClaudeAgent(AgentSettings(timeout=100), sandbox, reached, retries=1)

        made.agent = MeteredAgent(meter, VENDOR, lambda given, _: make(given))
        yield made


def places(value: Any, path: str = "") -> Iterator[str]:
    """Where something stands in a request; what only the model looks into is not looked into."""
    if isinstance(value, list):
        for each in value:
            yield from places(each, path)
    elif isinstance(value, dict) and path.rpartition(".")[2] not in {"input", "input_schema"}:
        inner = {name: each for name, each in value.items() if name != "type"}
        kind = f"{path}{{{value['type']}}}" if "type" in value else path
        if not inner:
            yield kind
        for name, each in inner.items():
            yield from places(each, f"{kind}.{name}" if kind else name)
    else:
        yield path


def assert_unharmed(sent: list[RelayedRequest], arrived: list[RelayedRequest]) -> None:
    """All that the program sent is listed, and arrived as it was."""
    assert sent
    assert {each.target for each in sent} == {"/v1/messages?beta=true"}
    assert {name for each in sent for name in each.headers} - HEADERS == set()
    assert {beta for each in sent for beta in each.betas} - {*BETAS, *LEFT_OUT} == set()
    assert {place for each in sent for place in places(each.body)} - FIELDS == set()
    assert [each.body for each in arrived] == [each.body for each in sent]
    assert [each.target for each in arrived] == [each.target for each in sent]
    for one, other in zip(sent, arrived, strict=True):
        assert other.betas == [beta for beta in one.betas if beta not in LEFT_OUT]
        own = {"x-api-key", "host", "content-length", "accept-encoding", "anthropic-beta"}
        kept = {name: value for name, value in one.headers.items() if name not in own}
        assert kept.items() <= other.headers.items()


def _answer(*blocks: Block, read: int = 100) -> Answer:
    return Answer(blocks, usage=Tokens(input_tokens=read))


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-opus-5-5"])
async def test_a_player_with_all_its_tools(tmp_path: Path, model: str):  # B6
    folder = tmp_path / "w"
    steps = (
        _answer(Think("hm"), Call("Write", {"file_path": f"{folder}/a.txt", "content": "x"})),
        Call("Bash", {"command": "exit 3", "description": "fail"}),
        Call("Read", {"file_path": f"{folder}/a.png"}),
        Call("Read", {"file_path": f"{folder}/a.pdf"}),
        Call("ToolSearch", {"query": "select:WebSearch,WebFetch"}),
        Call("WebSearch", {"query": "hello"}),
        Call("Agent", {"description": "d", "prompt": "NINE", "subagent_type": "general-purpose"}),
        Say("done"),
    )
    async with line(tmp_path, *steps, NINE=Script((Say("nine"),))) as made:
        report = await made.work(model)
    assert (report.failure, report.summary) == (None, "done")
    assert (folder / "a.txt").read_text() == "x"
    assert_unharmed(made.sent, made.arrived)
    searched = [
        each for each in made.sent if "tools{web_search_20250305}.name" in places(each.body)
    ]
    assert searched, "the program has the provider search"
    assert len(made.till.settled) == len(made.sent)
    assert all(usage.known for usage in made.till.settled)


@pytest.mark.parametrize(
    "model",
    ["claude-sonnet-4-6", "claude-opus-4-6[1m]", "claude-haiku-4-5", "claude-fable-5-2", "opus"],
)
async def test_an_answer_by_schema(tmp_path: Path, model: str):  # B6
    wrong, right = ({"bad": 1}, {"summary": "done"})
    steps = (Call("StructuredOutput", wrong), Call("StructuredOutput", right))
    async with line(tmp_path, *steps) as made:
        report = await made.work(model, PlayerAnswer)
    assert report.failure is None
    assert report.answer == PlayerAnswer(summary="done")
    assert_unharmed(made.sent, made.arrived)


async def test_a_conversation_that_is_compacted(tmp_path: Path):  # B6
    echo = Call("Bash", {"command": "echo hi", "description": "d"})
    steps = (_answer(echo), _answer(echo, read=975_000), Say("<summary>x</summary>"), Say("done"))
    async with line(tmp_path, *steps) as made:
        report = await made.work("claude-sonnet-5-5")
    assert report.failure is None
    assert any("create a detailed summary" in str(each.body["messages"][-1]) for each in made.sent)
    assert_unharmed(made.sent, made.arrived)


@pytest.mark.parametrize(
    ("more", "where"),
    [
        ('{"speed": "fast"}', "`speed`"),
        ('{"service_tier": "priority"}', "`service_tier`"),
        ('{"inference_geo": "us"}', "`inference_geo`"),
        ('{"fallbacks": "default"}', "`fallbacks`"),
        ('{"anthropic_beta": ["fast-mode-2026-02-01"]}', "`anthropic_beta`"),
    ],
)
async def test_a_program_that_asks_for_what_has_no_price_fails_and_says_why(
    tmp_path: Path, more: str, where: str
):  # B6
    async with line(tmp_path, Say("done"), more={"CLAUDE_CODE_EXTRA_BODY": more}) as made:
        report = await made.work("claude-opus-4-6")
    assert report.failure is Failure.ENVIRONMENT, "a person is asked; nothing is tried without end"
    assert where in report.message
    assert "the meter refused the request" in report.message
    assert "take it out" in report.message
    assert made.arrived == []
    assert made.till.reserved == []
    assert len(made.sent) < 10


async def test_a_program_that_asks_for_a_feature_without_a_price_does_without_it(tmp_path: Path):
    more = {"ANTHROPIC_BETAS": "fast-mode-2026-02-01,of-a-later-day-2027-01-01"}
    async with line(tmp_path, Say("done"), more=more) as made:
        report = await made.work("claude-opus-4-6")
    assert report.failure is None
    assert "fast-mode-2026-02-01" in made.sent[0].betas
    assert not {"fast-mode-2026-02-01", "of-a-later-day-2027-01-01"} & {*made.arrived[0].betas}


async def test_a_provider_whose_numbers_cannot_be_is_named(tmp_path: Path):  # B6
    wrong = Answer((Say("done"),), usage_more={"cache_read_input_tokens": -1})
    async with line(tmp_path, wrong) as made:
        report = await made.work("claude-opus-4-6")
    assert report.failure is Failure.TRANSIENT
    assert "the provider made a mistake" in report.message
    assert all(not usage.known for usage in made.till.settled)
