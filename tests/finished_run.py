"""A project with a finished run, made once and copied for each test: real git, real checks."""

import os
import shutil
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from io import BytesIO, TextIOWrapper
from pathlib import Path
from tempfile import mkdtemp
from unittest.mock import patch

import anyio

from desk import Answer, Desk
from windlass.app.plans import read_plan
from windlass.app.wiring import Project, World, started
from windlass.cli.main import call
from windlass.core.settings import PolicySettings, SandboxSettings, Settings
from windlass.formats import writes
from windlass.testing.agents import Play, ScriptedAgent

PLAN = """\
# Milestone: Health "check" $(touch owned)

## Task 1.1: Add the endpoint

**Acceptance Criteria:**
- [ ] answers @everyone with 200, fixes #1

## Task 1.2: Document it

**Acceptance Criteria:**
- [ ] README.md names it
"""
TITLE = 'Health "check" $(touch owned)'
BRANCH = "windlass/plan/integration"


class InProcessDesk(Desk):
    """A desk that calls commands in this process, which is much faster."""

    def call(self, *args: str, without: Iterable[str] = (), **more: str) -> Answer:
        env = {k: v for k, v in {**self.environment, **more}.items() if k not in set(without)}
        # Over bytes, because some commands print bytes.
        out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
        here = [*args, "--repo", str(self.directory)]
        with patch.dict(os.environ, env, clear=True), redirect_stdout(out), redirect_stderr(err):
            code = call(here)
        return Answer(code, *(each.buffer.getvalue().decode() for each in (out, err)))


def finished(root: Path, *, failing: str = "") -> InProcessDesk:
    """A new desk with that run. With `failing="bad"` the second task fails, and is abandoned."""
    shutil.copytree(_project(failing), root, dirs_exist_ok=True, symlinks=True)
    return InProcessDesk(root)


@cache
def _project(failing: str) -> Path:
    root = Path(mkdtemp(prefix="windlass-tests-"))
    desk = Desk(root)
    desk.build({"plan.md": PLAN, "README.md": "hello\n"})
    project = Project(desk.repo, desk.environment)
    plan = read_plan(project, "plan.md")
    settings = Settings(
        checks=("test ! -e bad",),
        max_turns=1,
        policy=PolicySettings(red_base="go"),
        sandbox=SandboxSettings(level="checkout"),
    )
    agent = ScriptedAgent({
        "1.1": Play(edits={"health.py": "ok\n"}, summary="# Done\n<b>@octocat</b> closes #12"),
        "1.2": Play(edits={failing or "docs.md": "see health\n"}, summary="Documented."),
    })  # fmt: skip
    with project.journals.session(plan.id) as session:
        world = World(project, plan.id, "r1", settings, session, agent=agent, writes=writes(plan))
        first = started("r1", plan, settings, project.git.base(None, plan.id), "checkout")
        nothing = lambda *_: None  # noqa: E731
        anyio.run(partial(world.run, (first,), observe=nothing, watch=nothing))
    desk.git("add", "--all")
    desk.git("commit", "--quiet", "--allow-empty", "--message", "What state files say")
    desk.git("reset", "--quiet", "--hard", "HEAD~1")
    return root
