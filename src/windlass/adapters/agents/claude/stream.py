"""One conversation with Claude's program, from the prompt to the report. Imports the SDK.

Rule 1: an overdue conversation is interrupted, so that it can report its usage; Windlass waits for
that and no longer. Rule 2: a program that dies before its first message is an environment failure;
one that dies later has crashed, and so has one whose output cannot be parsed. Rule 3: a command
that the agent runs can write into the program's output. So any line may be anything, none may raise
out of here, and lines that would control the SDK are dropped.
"""

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ClaudeSDKError,
    CLIJSONDecodeError,
    Message,
    ProcessError,
    ResultMessage,
    Transport,
)

from windlass.adapters.agents.claude.reading import Reader, one_line, understood
from windlass.core.events.model import Failure
from windlass.core.secrets import Redactor
from windlass.ports import Report

__all__ = ["Reader", "converse"]

LONGEST_LINE = 64 * 1024 * 1024
"""A larger message is none."""
PATIENCE = 1.0
"""Seconds an interrupted program has to report its usage."""
TAIL = 4096
"""Bytes of the program's standard error that are kept."""

_PASSED_ON = (
    "assistant",
    "control_response",
    "rate_limit_event",
    "result",
    "stream_event",
    "system",
)
"""The message types that are passed on. The SDK would take `end` and `error` for its own signal
that the program is gone, and would answer a `control_request`, which a program that asks for no
permission never sends."""
_FIRST, _SECOND = r"[dD][89abAB][0-9a-fA-F]{2}", r"[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(
    # The common prefix first: the regex engine searches for it fast.
    rf"\\u(?:{_FIRST}(?!\\u{_SECOND})|{_SECOND}(?<!\\u{_FIRST}\\u{_SECOND}))"
)
"""A lone surrogate, in JSON without escaped backslashes."""

# The SDK logs its errors as well as raising them; without a handler they reach the terminal.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())


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
                await conversation.client.disconnect()
        if report is None:
            reason = redactor.text(await aside.last_line() or conversation.exit)
        tasks.cancel_scope.cancel()
    message = f"the agent could not be started: {reason}"
    return report or Report(failure=Failure.ENVIRONMENT, message=message)


class _Conversation:
    def __init__(self, process: Process, reader: Reader) -> None:
        self._pipe = _Pipe(process)
        self._reader = reader
        # Verbatim, or an `@name` in a task would be read as a file and a `/name` as a command.
        options = ClaudeAgentOptions(verbatim_prompts=True)
        self.client = ClaudeSDKClient(options, transport=self._pipe)
        self.exit = ""

    async def hold(self, prompt: str) -> Report | None:
        """Return the report, or None if the program did not even start."""
        reader = self._reader
        reader.begin(anyio.current_time())
        try:
            with anyio.CancelScope(deadline=reader.deadline) as scope:
                if not await self._started(prompt):
                    return None
                with reader.holds.watched(partial(self._hold_changed, scope)):
                    await self._listen(scope)
            if scope.cancelled_caught:
                if reader.result is None:
                    lateness = reader.lateness
                    await self._interrupt()
                    return reader.overdue(lateness)
                self.exit = "it did not end by itself"
        except ProcessError as error:
            # It also follows an answer that is an error; the answer says more.
            self.exit = f"exit code {error.exit_code}"
        except ClaudeSDKError as error:
            cause = error.__cause__ or error
            self.exit = f"its output cannot be parsed, {type(cause).__name__}"
        return reader.report(self.exit)

    def _hold_changed(self, scope: anyio.CancelScope) -> None:
        self._reader.hold_changed(anyio.current_time())
        scope.deadline = self._reader.deadline

    async def _started(self, prompt: str) -> bool:
        try:
            await self.client.connect(prompt)
        except Exception as error:  # noqa: BLE001 (the SDK raises plain ones here)
            self.exit = one_line(str(error))
            return False
        return True

    async def _listen(self, scope: anyio.CancelScope) -> None:
        async for message in self._messages():
            self._reader.read(message, anyio.current_time())
            scope.deadline = self._reader.deadline
            if isinstance(message, ResultMessage):
                # The program exits once its input is closed.
                await self._pipe.end_input()

    async def _messages(self) -> AsyncGenerator[Message]:
        with understood():
            async for message in self.client.receive_messages():
                yield message

    async def _interrupt(self) -> None:
        with anyio.move_on_after(PATIENCE), suppress(Exception):
            await self.client.interrupt()
            async for message in self._messages():
                self._reader.read(message, anyio.current_time())
                if self._reader.result is not None:
                    return


class _Pipe(Transport):
    """The program's standard streams; `run_program` starts and ends the program."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._heard = False

    async def connect(self) -> None:
        """Do nothing: the program runs already."""

    async def write(self, data: str) -> None:
        if self._process.stdin is not None:
            await self._process.stdin.send(data.encode())

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Every line that is a message, until the program is gone."""
        if self._process.stdout is None:
            return
        stream = BufferedByteReceiveStream(self._process.stdout)
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            while True:
                line = await stream.receive_until(b"\n", LONGEST_LINE)
                # Any other line is no message.
                if line.startswith(b"{"):
                    self._heard = True
                    message = _decoded(line)
                    if message.get("type") in _PASSED_ON:
                        yield message
        code = await self._process.wait()
        if code != 0 or not self._heard:
            message = "the program ended"
            raise ProcessError(message, exit_code=code)

    async def end_input(self) -> None:
        if self._process.stdin is not None:
            with suppress(OSError, anyio.BrokenResourceError):
                await self._process.stdin.aclose()

    async def close(self) -> None:
        """Close the input; `run_program` ends the program."""
        await self.end_input()

    def is_ready(self) -> bool:
        return self._process.returncode is None


def _decoded(line: bytes) -> dict[str, Any]:
    """The line's JSON, with every lone surrogate replaced: it could not be written to a file."""
    text = line.decode(errors="replace")
    if "\\ud" in text.lower():
        text = _HALF.sub(r"\\ufffd", text.replace(r"\\", r"\u005c"))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CLIJSONDecodeError("", error) from error


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
