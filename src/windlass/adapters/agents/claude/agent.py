"""Claude as an agent: the SDK's program, with its flags and variables, in its box.

Windlass starts the program itself, because the SDK would add this process's environment; no secret
is in a command line or on disk.
"""

import json
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePath

from anyio.abc import Process

from windlass.adapters.agents.claude import (
    ADDRESS,
    INSTALL,
    MISSING,
    PROVIDER,
    find_program,
)
from windlass.adapters.agents.claude.reading import Reader
from windlass.adapters.agents.claude.stream import converse
from windlass.adapters.agents.program import hosts_of, run_program
from windlass.adapters.meter.holds import Holds
from windlass.adapters.sandbox.box import Box, Sandbox, may_run_commands
from windlass.core.events.model import Failure
from windlass.core.events.review import schema
from windlass.core.secrets import Redactor
from windlass.core.settings import AgentSettings
from windlass.ports import Brief, Report, Watch

RETRIES = 5
"""How often the program itself repeats a request, within half a minute: it keeps its context,
and a fresh agent would not."""

VARIABLES: Mapping[str, str] = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    # As root the program refuses to skip its questions unless it is told of a sandbox.
    "IS_SANDBOX": "1",
    # A background task would keep the program alive for ten minutes after its answer.
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # An answer in one piece sends no bytes while it is made, and would look like a stall.
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
}

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
"""Tools that leave the checkout or the call, or talk to another session."""
COMMANDS = ("Bash", "Monitor", "Workflow", "Task", "Skill")
"""Tools that run commands, directly or through others."""


class ClaudeAgent:
    def __init__(
        self,
        settings: AgentSettings,
        sandbox: Sandbox,
        credentials: Mapping[str, str],
        *,
        program: Path | None = None,
        retries: int = RETRIES,
        redact: Callable[[str], str] = str,
        holds: Holds | None = None,
    ) -> None:
        """Take the variables that the program logs in with; it sees no others of the user's."""
        self._redact = redact
        self._holds = holds or Holds()
        self._settings = settings
        self._sandbox = sandbox
        self._credentials = dict(credentials)
        self._program = program or (found.path if (found := find_program()) else None)
        self._retries = retries

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        if self._program is None:
            return Report(failure=Failure.ENVIRONMENT, message=f"{MISSING}; {INSTALL}")
        box = self._box(Path(workspace), self._program, brief)
        command = [str(self._program), *self._flags(brief)]
        talk = partial(self._converse, brief=brief, watch=watch)
        return await run_program(self._sandbox, box, command, talk)

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
            hosts=hosts_of(self._credentials.get(ADDRESS, PROVIDER)),
            env=env,
            tools=traced,
            read=(program,),
            runs="sealed" if coach else "apart",
            task=brief.task,
            role=brief.role,
        )

    def _kept_apart(self) -> dict[str, str]:
        """Keep the program's commands away from the program.

        A Coach's commands run the Player's code. Next to the program, that code could write an
        answer into the program's output, talk to the program as its user, change the functions that
        later commands use, or take its token and ask the model for anything.
        """
        if not self._sandbox.launcher:
            return {}
        program, *words = self._sandbox.launcher
        return {
            # The program splits this at the last space before a dash, quotes the first part, leaves
            # the rest to the shell, and appends the whole command.
            "CLAUDE_CODE_SHELL_PREFIX": f"{program} {chr(9).join(words)}",
            # The shell that runs this must read no file that the Player's code may have written:
            # zsh always reads one, and bash does if it thinks it is the first shell of a
            # connection.
            "SHELL": SHELL,
            "SHLVL": "2",
            # The program would run git in the checkout, where the Player's code may have been.
            "PATH": NO_PROGRAMS,
        }

    def _flags(self, brief: Brief) -> tuple[str, ...]:
        # One word each, so that no value can be read as a flag.
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

    async def _converse(self, process: Process, *, brief: Brief, watch: Watch) -> Report:
        reader = Reader(
            brief,
            watch,
            self._settings,
            retries=self._retries,
            redact=self._redact,
            holds=self._holds,
            logins=tuple(name for name in self._credentials if name != ADDRESS),
        )
        return await converse(process, brief.prompt, reader, Redactor(self._credentials))
