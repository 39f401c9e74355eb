"""`windlass run` with a scripted agent, in a process of its own: real git, journal, checks, exits.

    python hauled.py PLAN [OPTIONS of windlass run]

Every Player writes a file of its task. Where the variable HOLD names a folder, a Player first waits
for a file there that is called as its task; where FAIL names tasks, theirs fail and say
what SAYS says. At its end it prints the modules it has loaded.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath

import anyio
from msgspec.structs import replace

from windlass.app.plans import read_plan
from windlass.app.wiring import Project
from windlass.cli.main import code_of
from windlass.cli.options import choice_of
from windlass.cli.run import command
from windlass.cli.running import request_of, run_plan
from windlass.core.events.model import Failure, Usage
from windlass.ports import Brief, Report, Watch
from windlass.testing.agents import Play, ScriptedAgent
from windlass.testing.stage import Stage

USED = Usage(cost_usd=0.25, input_tokens=1000, output_tokens=200, cache_read_tokens=3000)


def plan(*titles: str) -> str:
    """A plan with a task for each title, one after the other."""
    tasks = (
        f"## Task 1.{n}: {title}\n\n**Acceptance Criteria:**\n- [ ] there is 1.{n}.txt\n"
        for n, title in enumerate(titles, start=1)
    )
    return "\n".join(["# Milestone: Files\n", *tasks])


@contextmanager
def hauling(stage: Stage, *args: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Such a process, the leader of a group of its own; it does not outlive the block."""
    with subprocess.Popen(
        [sys.executable, __file__, *args],
        cwd=stage.repo,
        env={**stage.environment, "GIT_CONFIG_NOSYSTEM": "1", **more},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


class _Player:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self._hold = environment.get("HOLD")
        self._fail = environment.get("FAIL", "").split()
        self._says = environment.get("SAYS", "no")
        self._scripted = ScriptedAgent({}, default=self._play)

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        if self._hold and brief.role == "player":
            while not Path(self._hold, brief.task).exists():  # noqa: ASYNC110  another process
                await anyio.sleep(0.02)
        report = await self._scripted.work(brief, workspace, watch)
        return replace(report, usage=USED)

    def _play(self, brief: Brief, _workspace: Path) -> Play:
        if brief.task in self._fail:
            return Play(failure=Failure.STALLED, message=self._says)
        return Play(edits={f"{brief.task}.txt": f"{brief.traceparent or 'by ' + brief.task}\n"})


def _haul(args: list[str]) -> int:
    environment = dict(os.environ)
    given = command.make_context("run", args).params
    project = Project(Path.cwd(), environment)
    typed = given.pop("plan")
    choice = choice_of(resumes=given.pop("resumes"), restarts=given.pop("restarts"))
    request = request_of(typed, given, choice, agent=_Player(environment))
    return run_plan(project, read_plan(project, typed), request, given)


if __name__ == "__main__":
    code = code_of(lambda: _haul(sys.argv[1:]))
    sys.stdout.write(" ".join(sorted(sys.modules)))
    sys.exit(code)
