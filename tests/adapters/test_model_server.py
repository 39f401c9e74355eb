"""The scripted model: its words as bytes, its faults over real connections, itself as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2 as httpx
import msgspec
import pytest

from waiting import eventually
from windlass.adapters.clock import SystemClock
from windlass.testing.model import (
    Answer,
    Book,
    Call,
    Drop,
    DropMid,
    Flaky,
    Hang,
    Limit,
    Say,
    Script,
    SseError,
    Status,
    Tokens,
)
from windlass.testing.model import (
    anthropic_wire as wire,
)
from windlass.testing.model.server import ModelServer

TOOLS = [{"name": "Write"}]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def request(prompt: str = "hi", answers: int = 0, **more: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": [{"type": "text", "text": "earlier"}]}
    result = {"role": "user", "content": [{"type": "tool_result", "content": "Task: 9"}]}
    messages = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
    return {
        "model": "m",
        "tools": TOOLS,
        "messages": messages + [said, result] * answers,
        **more,
    }


def events(stream: bytes) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block.split("\n") for block in stream.decode().split("\n\n") if block]
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in blocks
    ]


class TestWire:
    def test_a_request_is_read_for_what_matters(self):
        asked = wire.read(json.dumps(request("Task: 1", answers=2, stream=True)).encode())
        assert asked == wire.ParsedRequest(
            model="m", stream=True, side=False, prompt="Task: 1", answers=2, tools=("Write",)
        )

    def test_a_request_without_tools_is_a_side_call(self):
        asked = wire.read(b'{"messages":[{"role":"user","content":"quota"}],"model":"haiku"}')
        assert asked.side
        assert asked.prompt == "quota"

    def test_all_the_user_says_before_the_first_answer_is_the_prompt(self):
        body = {"messages": [{"role": "user", "content": text} for text in ("a", "b")]}
        assert wire.read(json.dumps(body).encode()).prompt == "a\nb"

    def test_what_is_no_request_is_refused(self):
        with pytest.raises(msgspec.MsgspecError):
            wire.read(b"[]")

    def test_every_event_has_its_name_twice(self):
        whole = wire.message(Answer((Say("a"), Call("T", {"x": 1}))), ident=1, model="m")
        for name, data in events(b"".join(wire.stream(whole))):
            assert data["type"] == name

    def test_the_deltas_of_a_stream_join_to_the_document(self):
        answer = Answer((Say("ü✓"), Call("Write", {"file_path": "a", "content": "x" * 50})))
        whole = wire.message(answer, ident=7, model="m")
        sent = events(b"".join(wire.stream(whole)))
        text = "".join(e["delta"].get("text", "") for n, e in sent if n == "content_block_delta")
        parts = [e["delta"].get("partial_json", "") for n, e in sent if n == "content_block_delta"]
        assert text == "ü✓"
        assert json.loads("".join(parts)) == whole["content"][1]["input"]
        assert [name for name, _ in sent][0 :: len(sent) - 1] == ["message_start", "message_stop"]
        assert sent[-2][1]["usage"] == {"output_tokens": 20}

    def test_ids_follow_from_the_request(self):
        whole = wire.message(Answer((Call("T"), Call("T"))), ident=3, model="m")
        assert whole["id"] == "msg_3"
        assert [block["id"] for block in whole["content"]] == ["toolu_3_0", "toolu_3_1"]

    @pytest.mark.parametrize(
        ("answer", "reason"),
        [
            (Answer((Say("x"),)), "end_turn"),
            (Answer((Say("x"), Call("T"))), "tool_use"),
            (Answer((Say("x"),), stop_reason="max_tokens"), "max_tokens"),
        ],
    )
    def test_the_stop_reason_is_that_of_the_blocks_unless_set(self, answer: Answer, reason: str):
        assert wire.message(answer, ident=1, model="m")["stop_reason"] == reason

    @pytest.mark.parametrize("streamed", [True, False])
    def test_halves_join_to_the_whole(self, streamed: bool):  # noqa: FBT001
        whole = wire.message(Answer((Say("some text"),)), ident=1, model="m")
        first, second = wire.halves(whole, streamed=streamed)
        joined = b"".join(wire.stream(whole)) if streamed else msgspec.json.encode(whole)
        assert first
        assert second
        assert first + second == joined


class TestBook:
    def test_the_key_with_most_texts_wins_then_the_longest(self):
        keys = ["Task: 1.1\n", "Task: 1.1\n|Turn: 2", "Task: 1", "Turn: 2"]
        book = Book({key: Script((Say(key),)) for key in keys})
        assert book.matching("Task: 1.1\nTurn: 1\n")[0] == "Task: 1.1\n"
        assert book.matching("Task: 1.1\nTurn: 2\n")[0] == "Task: 1.1\n|Turn: 2"
        assert book.matching("Task: 1.10\n")[0] == "Task: 1"
        assert book.matching("nothing") == ("", Script())

    def test_past_its_end_a_script_says_done(self):
        assert Script((Say("a"),)).step(1) == Say("done")

    def test_every_step_survives_json(self):
        steps = (
            Say("a"),
            Call("Write", {"file_path": "a"}),
            Answer((Say("b"), Call("T")), usage=Tokens(input_tokens=1), delay=0.1),
            Status(529, "overloaded_error", {"retry-after": "1"}),
            Drop(),
            DropMid(),
            Hang("middle"),
            SseError(),
            Limit(3.5),
            Flaky((Drop(), Status(500)), Answer((Say("c"),))),
        )
        book = Book({"Task: 1": Script(steps)}, default=Script((Say("x"),)))
        assert msgspec.json.decode(msgspec.json.encode(book), type=Book) == book

    def test_a_misspelt_field_is_refused(self):
        with pytest.raises(msgspec.ValidationError, match="dealy"):
            msgspec.json.decode(
                b'{"scripts":{"a":{"steps":[{"type":"answer","blocks":[],"dealy":1}]}}}', type=Book
            )


@asynccontextmanager
async def serving(
    *steps: Any, log: Path | None = None
) -> AsyncGenerator[tuple[ModelServer, httpx.AsyncClient]]:
    book = Book({"Task: 1": Script(steps)})
    async with (
        ModelServer.serving(book, log=log) as server,
        httpx.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as client,
    ):
        yield server, client


@pytest.mark.anyio
class TestServer:
    async def test_a_stream_and_a_document_say_the_same(self):
        async with serving(Answer((Say("hi"), Call("T", {"a": 1})))) as (_, client):
            whole = (await client.post("/v1/messages", json=request("Task: 1"))).json()
            streamed = await client.post(
                "/v1/messages?beta=true", json=request("Task: 1", stream=True)
            )
        assert [block["type"] for block in whole["content"]] == ["text", "tool_use"]
        assert streamed.headers["content-type"] == "text/event-stream"
        assert events(streamed.content)[-1][0] == "message_stop"

    async def test_the_step_is_chosen_by_the_answers_so_a_retry_meets_it_again(self):
        async with serving(Say("one"), Say("two")) as (server, client):
            for answers in (0, 1, 1, 2):
                await client.post("/v1/messages", json=request("Task: 1", answers=answers))
        assert [seen.step for seen in server.log] == [0, 1, 1, 2]
        assert {seen.key for seen in server.log} == {"Task: 1"}

    async def test_a_name_in_the_path_chooses_the_script(self):
        async with serving(Say("one")) as (server, client):
            await client.post("/s/Task%3A%201/v1/messages", json=request("no marker"))
            await client.post("/s/unknown/v1/messages", json=request("Task: 1"))
        assert [seen.key for seen in server.log] == ["Task: 1", ""]

    async def test_side_calls_are_answered_and_counted_apart(self):
        async with serving(Say("one")) as (server, client):
            side = await client.post("/v1/messages", json=request("Task: 1", tools=[]))
            await client.post("/v1/messages", json=request("Task: 1"))
            billed = (await client.get("/_billed")).json()
        assert side.json()["content"][0]["text"] == '{"title": "scripted"}'
        assert [seen.side for seen in server.log] == [True, False]
        assert (billed["requests"], billed["side"]) == (1, 1)
        assert billed["input_tokens"] == 110

    async def test_an_http_error_has_its_code_type_and_headers(self):
        step = Status(429, "rate_limit_error", {"retry-after": "600"})
        async with serving(step) as (server, client):
            answer = await client.post("/v1/messages", json=request("Task: 1", stream=True))
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "600"
        assert answer.json()["error"]["type"] == "rate_limit_error"
        assert server.log[0].usage is None

    async def test_a_usage_limit_ends_so_long_after_it_was_told(self):
        before = SystemClock().now().timestamp()
        async with serving(Limit(60)) as (_, client):
            answer = await client.post("/v1/messages", json=request("Task: 1", stream=True))
        assert answer.status_code == 429
        told = {name.removeprefix("anthropic-ratelimit-"): v for name, v in answer.headers.items()}
        assert told["unified-status"] == told["unified-5h-status"] == "rejected"
        assert before + 60 <= int(told["unified-reset"]) <= before + 90

    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_drop_gives_no_byte_and_costs_nothing(self, stream: bool):  # noqa: FBT001
        async with serving(Drop()) as (server, client):
            with pytest.raises(httpx.TransportError):
                await client.post("/v1/messages", json=request("Task: 1", stream=stream))
        assert [(seen.status, seen.completed, seen.usage) for seen in server.log] == [
            (None, False, None)
        ]

    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_drop_in_the_middle_gives_a_part_and_is_charged(self, stream: bool):  # noqa: FBT001
        got: list[bytes] = []

        async def listen(client: httpx.AsyncClient) -> None:
            body = request("Task: 1", stream=stream)
            async with client.stream("POST", "/v1/messages", json=body) as answer:
                async for chunk in answer.aiter_raw():
                    got.append(chunk)  # noqa: PERF401 (what came before the break counts)

        async with serving(DropMid("part")) as (server, client):
            with pytest.raises(httpx.TransportError):
                await listen(client)
        assert got
        assert [(seen.status, seen.completed) for seen in server.log] == [(200, False)]
        assert server.billed().requests == 1

    @pytest.mark.parametrize("stage", ["start", "middle"])
    async def test_a_hang_ends_when_the_client_leaves(self, stage: Any):
        async with serving(Hang(stage)) as (server, client):
            with pytest.raises(httpx.TimeoutException):
                await client.post("/v1/messages", json=request("Task: 1", stream=True), timeout=2)
            assert (await client.get("/_log")).status_code == 200
        assert not server.log[0].completed

    async def test_leaving_the_server_breaks_what_hangs(self):
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks, serving(Hang()) as (server, client):

                async def hanging() -> None:
                    with pytest.raises(httpx.TransportError):
                        await client.post("/v1/messages", json=request("Task: 1"), timeout=60)

                tasks.start_soon(hanging)
                while not server.log:  # noqa: ASYNC110
                    await anyio.sleep(0.01)

    async def test_an_error_inside_a_stream_comes_after_its_beginning(self):
        async with serving(SseError("overloaded_error")) as (_, client):
            body = request("Task: 1", stream=True)
            streamed = await client.post("/v1/messages", json=body)
            plain = await client.post("/v1/messages", json=request("Task: 1"))
        assert [name for name, _ in events(streamed.content)] == ["message_start", "error"]
        assert plain.status_code == 529

    async def test_a_flaky_step_fails_as_often_as_it_says(self):
        step = Flaky((Status(529), Status(500)), Answer((Say("at last"),)))
        async with serving(step) as (_, client):
            codes = [
                (await client.post("/v1/messages", json=request("Task: 1"))).status_code
                for _ in range(4)
            ]
        assert codes == [529, 500, 200, 200]

    async def test_the_book_can_be_replaced_over_http(self):
        async with serving(Say("one")) as (_, client):
            book = {"scripts": {}, "default": {"steps": [{"type": "say", "text": "new"}]}}
            assert (await client.put("/_book", json=book)).status_code == 204
            answer = await client.post("/v1/messages", json=request("Task: 1"))
            refused = await client.put("/_book", content=b'{"scripts": {"a": {"steps": [{}]}}}')
        assert answer.json()["content"][0]["text"] == "new"
        assert refused.status_code == 400

    async def test_what_is_not_spoken_is_a_404_and_in_the_log(self):
        async with serving() as (server, client):
            answers = [
                await client.post("/v1/complete", json={}),
                await client.get("/api/hello"),
                await client.post("/v1/messages/count_tokens", json=request()),
                await client.post("/v1/messages", content=b"nonsense"),
            ]
        assert [answer.status_code for answer in answers] == [404, 404, 200, 400]
        assert [seen.status for seen in server.log] == [404, 404, 200, 400]
        assert answers[0].json()["error"]["type"] == "not_found_error"

    async def test_no_key_is_ever_logged(self, tmp_path: Path):
        log = tmp_path / "log.jsonl"
        async with serving(Say("one"), log=log) as (_, client):
            headers = {"x-api-key": "dummy-key-1", "authorization": "Bearer dummy-key-2"}
            await client.post("/v1/messages", json=request("Task: 1"), headers=headers)
            shown = (await client.get("/_log")).text
        assert "dummy" not in shown + log.read_text()
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        assert [(line["seq"], line["completed"]) for line in lines] == [(1, False), (1, True)]
        assert lines[-1]["usage"]["input_tokens"] == 100


def start(*options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "windlass.testing.model", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )


class TestProcess:
    def test_it_says_where_it_listens_and_ends_with_its_input(self, tmp_path: Path):
        book, log = tmp_path / "book.json", tmp_path / "log.jsonl"
        book.write_bytes(msgspec.json.encode(Book(default=Script((Say("from the file"),)))))
        with start("--book", str(book), "--log", str(log), "--until-eof") as process:
            assert process.stdin is not None
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("listening on ").strip()
            assert url.startswith("http://127.0.0.1:")
            answer = httpx.post(f"{url}/v1/messages", json=request(), trust_env=False)
            assert answer.json()["content"][0]["text"] == "from the file"
            process.stdin.close()
            assert process.wait(10) == 0
        assert len(log.read_text().splitlines()) == 2

    def test_without_that_it_ends_by_a_signal_only(self):
        with start() as process:
            assert process.stdin is not None
            assert process.stdout is not None
            url = process.stdout.readline().removeprefix("listening on ").strip()
            process.stdin.close()
            assert eventually(lambda: httpx.get(f"{url}/_billed", trust_env=False).is_success)
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0

    def test_a_bad_book_is_told_in_one_line(self, tmp_path: Path):
        book = tmp_path / "book.json"
        book.write_text('{"scripts": 1}')
        done = subprocess.run(
            [sys.executable, "-m", "windlass.testing.model", "--book", str(book)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        )
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        assert "book.json" in done.stderr
