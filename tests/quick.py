"""A real run without an agent program: real git, journal and files, a scripted agent in-process."""

import os
from collections.abc import Callable
from pathlib import Path

import anyio

from windlass.app.plans import read_plan
from windlass.app.wiring import Project, World, resumed, started
from windlass.app.wiring.facts import revised
from windlass.core.settings import Settings
from windlass.core.state import RunState
from windlass.formats import writes
from windlass.ports import Agent

ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": "ada@example.com"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


def quick_run(
    repo: Path,
    agent: Agent,
    *,
    plan_path: str = "plan.md",
    run: str = "r1",
    settings: Settings | None = None,
    anew: bool = False,
    notice: Callable[[str], None] = lambda _text: None,
) -> RunState:
    """Run a plan of the repository; resumes its last run unless `anew`."""
    settings = settings or Settings()
    project = Project(repo, ENVIRONMENT)
    plan = read_plan(project, plan_path)
    with project.journals.session(plan.id) as session:
        before = None if anew else session.before
        world = World(
            project,
            plan.id,
            run,
            settings,
            session,
            agent=agent,
            writes=writes(plan),
            notice=notice,
        )
        level = world.sandbox.level
        first = (
            resumed(settings, level, None)
            if before is not None
            else started(run, plan, settings, project.git.base(None, plan.id), level)
        )
        return anyio.run(
            lambda: world.run(
                (first, *revised(before, plan)),
                observe=lambda _entry, _state: None,
                watch=lambda _activity: None,
            )
        )
