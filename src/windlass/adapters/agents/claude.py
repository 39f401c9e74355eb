"""Claude as an agent: the SDK's own program, started inside the sandbox, ended with everything.

Rule 1: the program's environment is exactly what the sandbox says. The SDK would lay its options
over this process's own environment, so the program is started here, with its flags, and the SDK is
given a transport to it; nothing secret is in a command line or on disk. Rule 2: whatever way a call
ends, nothing it started is left. Rule 3: the SDK is imported by the first call, not by this module:
it takes a second, which the program needs to start anyway.
"""

import contextlib
import importlib.util
import json
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from subprocess import PIPE
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from anyio.abc import Process
from msgspec.structs import replace

from windlass.adapters.cgroups import Group, grouped, is_plain_program
from windlass.adapters.disk_watch import DiskWatch
from windlass.adapters.leftovers import MARKER, end_leftovers
from windlass.adapters.limits import bounded, excess_of_group, overrun
from windlass.adapters.sandbox.model import Box, Sandbox, may_run_commands
from windlass.adapters.sandbox.ways_out import METER_URL
from windlass.events.model import Failure
from windlass.events.review import schema
from windlass.hosts import HostEntry
from windlass.ports import Brief, Report, Watch
from windlass.secrets import Redactor
from windlass.settings import AgentSettings

RETRIES = 5
"""How often the program itself repeats a request, within half a minute: it keeps its context,
which a fresh agent does not."""

VARIABLES: Mapping[str, str] = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    # The program refuses to skip its questions for root, unless something else holds it.
    "IS_SANDBOX": "1",
    # What is left in the background would keep the program alive for ten minutes after its answer.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # An answer in one piece shows no bytes while it is made, and would be taken for a stall.
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
}

PROVIDER = "https://api.anthropic.com"
"""Where requests go unless ANTHROPIC_BASE_URL says otherwise."""

NO_PROGRAMS = "/nonexistent"
SHELL = shutil.which("bash", path="/usr/bin:/bin") or "bash"

FLAGS = (
    "--output-format=stream-json",
    "--input-format=stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-mode=bypassPermissions",
    # No settings and no servers from the repository: they could send the key elsewhere.
    "--setting-sources=",
    "--strict-mcp-config",
)

ELSEWHERE = (
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterWorktree",
    "ExitWorktree",
    "ListAgents",
    "Monitor",
    "ScheduleWakeup",
    "SendMessage",
)
"""Tools that leave the checkout or the call, or speak to another session."""
COMMANDS = ("Bash", "Monitor", "Workflow", "Task", "Skill")
"""Tools by which commands are run, or others who run them."""


def find_program() -> Path | None:
    """The program that came with the SDK, else the one on PATH."""
    spec = importlib.util.find_spec("claude_agent_sdk")
    for folder in (spec and spec.submodule_search_locations) or ():
        bundled = Path(folder, "_bundled", "claude")
        if bundled.is_file():
            return bundled
    found = shutil.which("claude")
    return Path(found).resolve() if found else None


class ClaudeAgent:
    """Plays with Claude."""

    def __init__(
        self,
        settings: AgentSettings,
        sandbox: Sandbox,
        credentials: Mapping[str, str],
        *,
        program: Path | None = None,
        retries: int = RETRIES,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Take the very variables the program logs in with; nothing else of the user's is seen."""
        self._redact = redact
        self._settings = settings
        self._sandbox = sandbox
        self._credentials = dict(credentials)
        self._program = program or find_program()
        self._retries = retries

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        """Let a fresh Claude work in the workspace."""
        if self._program is None:
            message = "the program `claude` is missing; reinstall claude-agent-sdk"
            return Report(failure=Failure.ENVIRONMENT, message=message)
        box = self._box(Path(workspace), self._program, brief)
        command = [str(self._program), *self._flags(brief)]
        async with contextlib.AsyncExitStack() as stack:
            try:
                entry = stack.enter_context(self._sandbox.entered(box, command))
                enters = self._sandbox.level == "bwrap" or is_plain_program(
                    entry.argv[0], box.checkout, entry.env
                )
                group = stack.enter_context(grouped(self._sandbox.limits)) if enters else None
                argv = bounded(self._sandbox.level, self._sandbox.limits, entry.argv, group)
                running = _running(argv, entry.env, box.checkout, entry.inherited)
                process = await stack.enter_async_context(running)
                await stack.enter_async_context(entry.way_out())
            except OSError as error:
                message = f"the agent could not be started: {error.strerror or error}"
                return Report(failure=Failure.ENVIRONMENT, message=message)
            disk = DiskWatch(box.checkout, self._sandbox.limits.disk)
            looks = partial(overrun, group=group, disk=disk)
            return await self._watched(process, entry.env[MARKER], brief, watch, looks, group)

    async def _watched(
        self,
        process: Process,
        mark: str,
        brief: Brief,
        watch: Watch,
        looks: Callable[..., Awaitable[str]],
        group: Group | None,
    ) -> Report:
        """Converse, while somebody looks that the program does not take more than its share."""
        excess: list[str] = []
        report = Report()

        async def look() -> None:
            sandbox = self._sandbox
            excess.append(await looks(sandbox.level, sandbox.limits, process.pid, mark))
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself just now
                process.kill()  # where there are walls, all that is behind them goes with it
            await anyio.to_thread.run_sync(partial(end_leftovers, mark, session=process.pid))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            report = await self._converse(process, brief, watch)
            tasks.cancel_scope.cancel()
        if not excess and group is not None:
            excess += filter(None, [excess_of_group(self._sandbox.limits, group)])
        if not excess:
            return report
        message = f"the agent was ended: {excess[0]}"
        return replace(report, failure=Failure.CRASHED, message=message)

    def _box(self, checkout: Path, program: Path, brief: Brief) -> Box:
        coach = brief.role == "coach"
        traced = {"TRACEPARENT": brief.traceparent} if brief.traceparent else {}
        env = {
            **traced,
            **VARIABLES,
            **self._kept_apart(),
            "CLAUDE_CODE_MAX_RETRIES": str(self._retries),
            # A tool may take as long as the agent; without this, ten minutes.
            "BASH_MAX_TIMEOUT_MS": str(int(self._settings.timeout * 1000)),
            **self._credentials,
        }
        return Box(
            checkout=checkout,
            network=True,
            model=True,
            hosts=self._hosts(),
            env=env,
            tools=traced,
            read=(program,),
            runs="sealed" if coach else "apart",
            task=brief.task,
            role=brief.role,
        )

    def _hosts(self) -> tuple[str, ...]:
        """Where its model answers, unless that is the meter, which every agent's box has."""
        address = urlsplit(self._credentials.get("ANTHROPIC_BASE_URL", PROVIDER))
        if address.hostname is None or address.geturl() == METER_URL:
            return ()
        port = address.port or (443 if address.scheme == "https" else 80)
        return (str(HostEntry(address.hostname, port)),)

    def _kept_apart(self) -> dict[str, str]:
        """Let what the program runs reach nothing of the program.

        What a Coach runs is the Player's code. Beside the program it could write an answer of its
        own into the program's output, speak to the program as its user, change the functions that
        its later commands are run with, or take its token and have the model say what it likes.
        """
        if not self._sandbox.launcher:
            return {}
        program, *words = self._sandbox.launcher
        return {
            # The program parts what it finds here at the last space before a dash, quotes what
            # comes before that, leaves the rest to the shell, and puts the whole command behind it.
            "CLAUDE_CODE_SHELL_PREFIX": f"{program} {chr(9).join(words)}",
            # The shell that calls all this must read no file that the Player's code may have
            # written: zsh reads one always, and bash where it takes itself for the first shell of
            # a connection.
            "SHELL": SHELL,
            "SHLVL": "2",
            # It would run git in the checkout by itself, where the Player's code may have been.
            "PATH": NO_PROGRAMS,
        }

    def _flags(self, brief: Brief) -> tuple[str, ...]:
        # One word each, so that no value can be taken for a flag of its own.
        off = (*ELSEWHERE, *(() if may_run_commands(self._sandbox, brief.role) else COMMANDS))
        flags = (
            *FLAGS,
            f"--disallowedTools={','.join(dict.fromkeys(off))}",
            f"--model={brief.model}",
            f"--max-turns={self._settings.max_steps}",
        )
        if brief.answer is None:
            return flags
        return (*flags, f"--json-schema={json.dumps(schema(brief.answer))}")

    async def _converse(self, process: Process, brief: Brief, watch: Watch) -> Report:
        stream = await anyio.to_thread.run_sync(load, abandon_on_cancel=True)
        reader = stream.Reader(
            brief, watch, self._settings, retries=self._retries, redact=self._redact
        )
        return await stream.converse(process, brief.prompt, reader, Redactor(self._credentials))


@contextlib.asynccontextmanager
async def _running(
    argv: list[str], env: dict[str, str], cwd: Path, fds: tuple[int, ...]
) -> AsyncGenerator[Process]:
    """Run the program in a session of its own; leaving the block leaves nothing of it."""
    mark = env[MARKER]
    process = await _start(argv, env, cwd, fds)
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            # The number of a process that has ended may be somebody else's by now.
            session = process.pid if process.returncode is None else None
            # All that carries the mark: tools have sessions of their own and outlive the program.
            await anyio.to_thread.run_sync(partial(end_leftovers, mark, session=session))
            await process.aclose()


async def _start(argv: list[str], env: dict[str, str], cwd: Path, fds: tuple[int, ...]) -> Process:
    # Shielded: between fork and return there is nobody yet who could end the process.
    with anyio.CancelScope(shield=True):
        return await anyio.open_process(
            argv,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
            pass_fds=fds,
        )
    raise AssertionError  # a shield swallows nothing; the type checker cannot know


def load():  # noqa: ANN201 (the module's own type is what makes its use checked)
    """Import the SDK; worth doing in a thread beforehand, while something else takes its time."""
    from windlass.adapters.agents import claude_stream  # noqa: PLC0415

    return claude_stream
