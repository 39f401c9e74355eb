"""What `run`, `resume` and `feature-build` share: the request, the screen, the exit code."""

import signal
from collections.abc import Mapping
from typing import Any, Literal

import anyio
from msgspec.structs import replace

from windlass.app.desk import Desk
from windlass.app.run import RunRequest, run
from windlass.app.wiring import Project
from windlass.cli.options import settings_of
from windlass.cli.person import is_attended, person
from windlass.cli.problems import Errors
from windlass.cli.process import forget_secrets
from windlass.cli.screens.choice import can_ask, screen_for
from windlass.cli.screens.jsonl import JsonScreen
from windlass.core.plan import Plan
from windlass.ports import Agent


def request_of(
    typed: str,
    options: Mapping[str, Any],
    choice: Literal["resume", "restart"] | None,
    *,
    resuming: bool = False,
    agent: Agent | None = None,
) -> RunRequest:
    return RunRequest(
        typed=typed,
        settings=settings_of(options),
        choice=choice,
        mend=options.get("mend"),
        reset_tasks=tuple(options.get("reset_tasks") or ()),
        tasks=tuple(options.get("only_tasks") or ()),
        stage=options.get("only_stage"),
        yes=bool(options.get("yes")),
        resuming=resuming,
        agent=agent,
    )


def run_plan(project: Project, plan: Plan, request: RunRequest, options: Mapping[str, Any]) -> int:
    """Run the plan, show it, and return the exit code."""
    unread = anyio.Event()
    attended = is_attended() and can_ask(options, project.environment)
    desk = Desk(project, plan.id) if attended else None
    screen = screen_for(options, project.environment, left=unread.set, desk=desk)
    request = replace(request, attended=attended)
    if isinstance(screen, JsonScreen):
        Errors.of_command().stream = screen

    async def stop_unread() -> None:
        # Without a reader the run would spend money unseen: stop it as a closed terminal does.
        await unread.wait()
        signal.raise_signal(signal.SIGHUP)

    forget_secrets()
    result = run(project, plan, request, screen=screen, person=person(), beside=(stop_unread,))
    wish = options.get("pr")
    if result.exit_code or wish is False or (result.was_complete and wish is None):
        return result.exit_code
    from windlass.cli.pr import offer

    return offer(project, result.state, wish=wish)
