"""One conversation with Claude's program, from the prompt to the report.

Windlass speaks the program's own protocol, a JSON object a line, and not through its SDK: importing
the SDK takes a second of the processor just when the first agent starts.

Rule 1: an overdue conversation is interrupted, so that it can report its usage; Windlass waits for
that and no longer. Rule 2: a program that dies before it has answered the greeting could not be
started; one that dies later has crashed, and so has one whose output cannot be parsed. Rule 3: a
command that the agent runs can write into the program's output. So any line may be anything, none
may raise out of here, and none but the end of the output says that the program is gone.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from windlass.adapters.agents.claude.reading import (
    Message,
    Reader,
    Unreadable,
    one_line,
    understood,
)
from windlass.core.events.model import Failure
from windlass.core.secrets import Redactor
from windlass.ports import Report

LONGEST_LINE = 64 * 1024 * 1024
"""A larger message is none."""
STARTS_WITHIN = 60.0
"""Seconds until the program must have answered the greeting."""
PATIENCE = 1.0
"""Seconds an interrupted program has to report its usage."""
TAIL = 4096
"""Bytes of the program's standard error that are kept."""

GREETING = "greeting"
INTERRUPT = "interrupt"
"""The ids of the two requests that a conversation makes."""

_FIRST, _SECOND = r"[dD][89abAB][0-9a-fA-F]{2}", r"[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(
    # The common prefix first: the regex engine searches for it fast.
    rf"\\u(?:{_FIRST}(?!\\u{_SECOND})|{_SECOND}(?<!\\u{_FIRST}\\u{_SECOND}))"
)
"""A lone surrogate, in JSON without escaped backslashes."""


async def converse(process: Process, prompt: str, reader: Reader, redactor: Redactor) -> Report:
    """Send the prompt to the program and read until it is done, overdue or dead."""
    aside, conversation = _Aside(), _Conversation(process, reader)
    report, reason = None, ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(aside.listen, process.stderr)
        try:
            report = await conversation.hold(prompt)
        finally:
            with anyio.CancelScope(shield=True):
                await conversation.end_input()
        if report is None:
            reason = redactor.text(await aside.last_line() or conversation.exit)
        tasks.cancel_scope.cancel()
    message = f"the agent could not be started: {reason}"
    return report or Report(failure=Failure.ENVIRONMENT, message=message)


class _Conversation:
    def __init__(self, process: Process, reader: Reader) -> None:
        self._process = process
        self._reader = reader
        self._output = process.stdout and BufferedByteReceiveStream(process.stdout)
        self._greeted = False
        self.exit = ""
        """How the program ended; empty if by itself with success."""

    async def hold(self, prompt: str) -> Report | None:
        """Return the report, or None if the program did not even start."""
        reader, now = self._reader, anyio.current_time()
        reader.begin(now)
        try:
            with anyio.CancelScope(deadline=min(reader.deadline, now + STARTS_WITHIN)) as scope:
                with reader.holds.watched(partial(self._hold_changed, scope)):
                    await self._talk(prompt, scope)
                await self._see_it_end()
            if scope.cancelled_caught and self._greeted:
                if reader.result is None:
                    lateness = reader.lateness
                    await self._interrupt()
                    return reader.overdue(lateness)
                self.exit = "it did not end by itself"
            elif scope.cancelled_caught:
                self.exit = "it did not answer in time"
        except Unreadable as error:
            cause = error.__cause__ or error
            self.exit = f"its output cannot be parsed, {type(cause).__name__}"
        return reader.report(self.exit) if self._greeted else None

    def _hold_changed(self, scope: anyio.CancelScope) -> None:
        self._reader.hold_changed(anyio.current_time())
        scope.deadline = self._reader.deadline

    async def _talk(self, prompt: str, scope: anyio.CancelScope) -> None:
        """Greet the program, give it the prompt once it answers, and read to its last message."""
        await self._request(GREETING, subtype="initialize", hooks=None)
        async for message in self._messages():
            if self._greeted:
                self._reader.read(message, anyio.current_time())
            elif await self._answers_greeting(message):
                await self._send(_user(prompt))
            else:
                continue
            scope.deadline = self._reader.deadline
            if message.get("type") == "result":
                await self.end_input()  # the program exits once its input is closed

    async def _answers_greeting(self, message: Message) -> bool:
        if message.get("type") != "control_response":
            return False
        with understood():
            response = message["response"]
            if response["request_id"] == GREETING and response["subtype"] == "error":
                self.exit = one_line(str(response.get("error")))
            else:
                self._greeted = response["request_id"] == GREETING
        if self.exit:
            await self.end_input()
        return self._greeted

    async def _see_it_end(self) -> None:
        """The output has ended: so does the program."""
        code = await self._process.wait()
        if code != 0 or not self._greeted:
            self.exit = self.exit or f"exit code {code}"

    async def _interrupt(self) -> None:
        with anyio.move_on_after(PATIENCE), suppress(Unreadable):
            await self._request(INTERRUPT, subtype="interrupt")
            async for message in self._messages():
                self._reader.read(message, anyio.current_time())
                if self._reader.result is not None:
                    return

    async def _messages(self) -> AsyncIterator[Message]:
        """Every line of the output that is a message, to its end."""
        while self._output is not None:
            try:
                line = await self._output.receive_until(b"\n", LONGEST_LINE)
            except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
                return
            except anyio.DelimiterNotFound as error:
                raise Unreadable from error
            if line.startswith(b"{"):  # any other line is no message
                with understood():
                    message = _decoded(line)
                yield message

    async def _request(self, name: str, **request: object) -> None:
        await self._send({"type": "control_request", "request_id": name, "request": request})

    async def _send(self, message: Mapping[str, object]) -> None:
        """Send a message; that the program is gone shows at the end of its output."""
        if self._process.stdin is not None:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await self._process.stdin.send(json.dumps(message).encode() + b"\n")

    async def end_input(self) -> None:
        if self._process.stdin is not None:
            with suppress(OSError, anyio.BrokenResourceError):
                await self._process.stdin.aclose()


def _user(prompt: str) -> dict[str, object]:
    """The prompt as a message.

    Verbatim (`client_composed`), or an `@name` in a task would be read as a file and a `/name` as a
    command.
    """
    return {
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "parent_tool_use_id": None,
        "session_id": "default",
        "client_composed": True,
    }


def _decoded(line: bytes) -> dict[str, Any]:
    """The line's JSON, with every lone surrogate replaced: it could not be written to a file."""
    text = line.decode(errors="replace")
    if "\\ud" in text.lower():
        text = _HALF.sub(r"\\ufffd", text.replace(r"\\", r"\u005c"))
    return json.loads(text)


class _Aside:
    """The end of the program's standard error."""

    def __init__(self) -> None:
        self._tail = b""
        self._over = anyio.Event()

    async def listen(self, stream: ByteReceiveStream | None) -> None:
        """Keep the pipe empty: a full one would stop the program."""
        if stream is not None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async for chunk in stream:
                    self._tail = (self._tail + chunk)[-TAIL:]
        self._over.set()

    async def last_line(self) -> str:
        """Wait a moment for the end of the output; the last line of it."""
        with anyio.move_on_after(PATIENCE):
            await self._over.wait()
        lines = [one_line(line) for line in self._tail.decode(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")
