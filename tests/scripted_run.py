"""`windlass run` with a scripted agent, in its own process: real git, journal, checks, exit codes.

    python scripted_run.py PLAN [OPTIONS of windlass run]

Every Player writes a file named after its task. If the variable HOLD names a folder, a Player first
waits for a file there with the name of its task. If FAIL names tasks, their Players fail with the
message in SAYS. SUMMARY is what a Player says of its work. At its end the process prints the
modules that it has loaded.
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
    """A plan with one task per title, in sequence."""
    tasks = (
        f"## Task 1.{n}: {title}\n\n**Acceptance Criteria:**\n- [ ] there is 1.{n}.txt\n"
        for n, title in enumerate(titles, start=1)
    )
    return "\n".join(["# Milestone: Files\n", *tasks])


@contextmanager
def scripted_run(stage: Stage, *args: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    """Start the process as the leader of its own group; it is killed when the block ends."""
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
        self._message = environment.get("SAYS", "no")
        self._summary = environment.get("SUMMARY", "done")
        self._scripted = ScriptedAgent({}, default=self._play)

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        if self._hold and brief.role == "player":
            while not Path(self._hold, brief.task).exists():  # noqa: ASYNC110  another process
                await anyio.sleep(0.02)
        report = await self._scripted.work(brief, workspace, watch)
        return replace(report, usage=USED)

    def _play(self, brief: Brief, _workspace: Path) -> Play:
        if brief.task in self._fail:
            return Play(failure=Failure.STALLED, message=self._message)
        text = f"{brief.traceparent or 'by ' + brief.task}\n"
        return Play(edits={f"{brief.task}.txt": text}, summary=self._summary)


def _run(args: list[str]) -> int:
    environment = dict(os.environ)
    options = command.make_context("run", args).params
    project = Project(Path.cwd(), environment)
    typed = options.pop("plan")
    choice = choice_of(resumes=options.pop("resumes"), restarts=options.pop("restarts"))
    request = request_of(typed, options, choice, agent=_Player(environment))
    return run_plan(project, read_plan(project, typed), request, options)


if __name__ == "__main__":
    code = code_of(lambda: _run(sys.argv[1:]))
    sys.stdout.write(" ".join(sorted(sys.modules)))
    sys.exit(code)
