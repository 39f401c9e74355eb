"""One conversation with Claude's program, from the prompt to the report. Imports the SDK.

Rule 1: a conversation that is overdue is interrupted, so that it can say what it used up, and is
not waited for longer than that. Rule 2: a program that dies before its first word is a matter of
the environment; one that dies later has crashed, and so has one that says what cannot be read.
Rule 3: what an agent runs can write into the program's output. So any line may be anything, none
may raise out of here, and what the SDK would take for its own word or for a request is not heard.
"""

import json
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
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
"""A message larger than this is no message."""
PATIENCE = 1.0
"""Seconds an interrupted program has to say what it used up."""
TAIL = 4096
"""How much of what the program says on the side is kept."""

_SAID = ("assistant", "control_response", "rate_limit_event", "result", "stream_event", "system")
"""What is heard. The SDK would take `end` and `error` for its own word that the program is gone,
and answer a `control_request`, of which a program that asks for no leave makes none."""
_FIRST, _SECOND = r"[dD][89abAB][0-9a-fA-F]{2}", r"[dD][c-fC-F][0-9a-fA-F]{2}"
_HALF = re.compile(
    # With what both begin with in front, by which they are found in no time.
    rf"\\u(?:{_FIRST}(?!\\u{_SECOND})|{_SECOND}(?<!\\u{_FIRST}\\u{_SECOND}))"
)
"""Half a character, in JSON that is without escaped backslashes."""

# The SDK tells its errors to the log as well as to us, and an unheard log goes to the terminal.
logging.getLogger("claude_agent_sdk").addHandler(logging.NullHandler())


async def converse(process: Process, prompt: str, reader: Reader, redactor: Redactor) -> Report:
    """Put the prompt to the program and listen until it is done, overdue or dead."""
    aside, conversation = _Aside(), _Conversation(process, reader)
    report, said = None, ""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(aside.listen, process.stderr)
        try:
            report = await conversation.hold(prompt)
        finally:
            with anyio.CancelScope(shield=True):
                await conversation.client.disconnect()
        if report is None:
            said = redactor.text(await aside.last_line() or conversation.exit)
        tasks.cancel_scope.cancel()
    message = f"the agent could not be started: {said}"
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
        """Return the report, or None where the program did not even start."""
        reader = self._reader
        reader.begin(anyio.current_time())
        try:
            with anyio.CancelScope(deadline=reader.deadline) as scope:
                if not await self._started(prompt):
                    return None
                await self._listen(scope)
            if scope.cancelled_caught:
                if reader.result is None:
                    lateness = reader.lateness
                    await self._interrupt()
                    return reader.overdue(lateness)
                self.exit = "it did not end by itself"
        except ProcessError as error:
            # It comes after an answer that is an error, too; the answer says more.
            self.exit = f"exit code {error.exit_code}"
        except ClaudeSDKError as error:
            cause = error.__cause__ or error
            self.exit = f"it said what cannot be read, {type(cause).__name__}"
        return reader.report(self.exit)

    async def _started(self, prompt: str) -> bool:
        try:
            await self.client.connect(prompt)
        except Exception as error:  # noqa: BLE001 (the SDK raises bare ones here)
            self.exit = one_line(str(error))
            return False
        return True

    async def _listen(self, scope: anyio.CancelScope) -> None:
        async for message in self._messages():
            self._reader.read(message, anyio.current_time())
            scope.deadline = self._reader.deadline
            if isinstance(message, ResultMessage):
                # It exits by itself once nothing more can be asked of it.
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
    """The program's standard streams; its life and death are its owner's."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._heard = False

    async def connect(self) -> None:
        """Do nothing: the program runs already."""

    async def write(self, data: str) -> None:
        """Say a line."""
        if self._process.stdin is not None:
            await self._process.stdin.send(data.encode())

    async def read_messages(self) -> AsyncIterator[dict[str, Any]]:
        """Hear every line that is a message, until the program is gone."""
        if self._process.stdout is None:
            return
        stream = BufferedByteReceiveStream(self._process.stdout)
        with suppress(anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError):
            while True:
                line = await stream.receive_until(b"\n", LONGEST_LINE)
                # Whatever else is printed there is no message.
                if line.startswith(b"{"):
                    self._heard = True
                    said = _decoded(line)
                    if said.get("type") in _SAID:
                        yield said
        code = await self._process.wait()
        if code != 0 or not self._heard:
            message = "the program ended"
            raise ProcessError(message, exit_code=code)

    async def end_input(self) -> None:
        """Say that nothing more will be said."""
        if self._process.stdin is not None:
            with suppress(OSError, anyio.BrokenResourceError):
                await self._process.stdin.aclose()

    async def close(self) -> None:
        """Say that nothing more will be said; ending the program is its owner's."""
        await self.end_input()

    def is_ready(self) -> bool:
        """Tell whether the program lives."""
        return self._process.returncode is None


def _decoded(line: bytes) -> dict[str, Any]:
    """The line's JSON, in which all is text that can be written down again, names included."""
    text = line.decode(errors="replace")
    if "\\ud" in text.lower():
        # Half a character can be said in JSON, and stand in no file.
        text = _HALF.sub(r"\\ufffd", text.replace(r"\\", r"\u005c"))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CLIJSONDecodeError("", error) from error


class _Aside:
    """The end of what the program says on its standard error."""

    def __init__(self) -> None:
        self._tail = b""
        self._over = anyio.Event()

    async def listen(self, stream: ByteReceiveStream | None) -> None:
        """Keep the pipe empty, for a full one would stop the program."""
        if stream is not None:
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                async for chunk in stream:
                    self._tail = (self._tail + chunk)[-TAIL:]
        self._over.set()

    async def last_line(self) -> str:
        """Wait until the program says no more, but not for long; the last line it said."""
        with anyio.move_on_after(PATIENCE):
            await self._over.wait()
        lines = [one_line(line) for line in self._tail.decode(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")
