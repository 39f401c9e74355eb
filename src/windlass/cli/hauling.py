"""`run` and `resume` behind their options: ask what must be asked, then haul."""

import os
import sys
from collections.abc import Callable
from typing import Any

import anyio
import click
from msgspec import Struct

from windlass.cli.config import configure
from windlass.cli.options import settings_of
from windlass.cli.wiring import Project, World, ended, newest, resumed, started
from windlass.cli.wiring.facts import new_run_id, refuse_short_journal
from windlass.cli.wiring.project import Base
from windlass.errors import BadInput, WindlassError
from windlass.events.model import RunEnd
from windlass.plan import Plan
from windlass.settings import Settings
from windlass.state import RunState
from windlass.ui.jsonl import JsonScreen
from windlass.ui.plain import PlainScreen
from windlass.views.closing import closing
from windlass.views.outcome import EXIT_CODES, is_finished, run_status


class Unanswered(WindlassError):
    """A question that nobody is there to answer."""

    exit_code = 3


class Request(Struct, frozen=True, kw_only=True):
    """What the person asked for."""

    typed: str
    """The plan as they named it, for commands to copy."""
    options: dict[str, Any]
    choice: str | None
    """resume, restart, or None to ask."""


def start_or_resume(project: Project, plan: Plan, request: Request) -> int:
    """Haul the plan, and return the exit code."""
    configuration = configure(project.root, project.environment, settings_of(request.options))
    settings = configuration.settings
    screen = _screen(request.options)
    _refuse_without_credentials(project)
    if request.choice == "resume":
        _refuse_nothing_to_resume(newest(project.entries(plan.id)), plan, request)
    # All that can be refused is refused before the lock, for taking it leaves files behind.
    project.refuse_unfit(settings, plan.id)
    base = project.base(settings.base, plan.id)
    with project.holding(plan.id) as journal:
        entries = list(journal.read())
        before = newest(entries)
        if before is not None:
            refuse_short_journal(project, plan.id, journal.last, before.run)
        if before is not None and not is_finished(before):
            choice = request.choice or _ask(before, request)
            if choice == "resume":
                return _haul(project, plan, settings, base, screen, request, journal, before)
            if choice == "abort":
                return EXIT_CODES[RunEnd.STOPPED]
            if before.ended is not RunEnd.ABANDONED:
                journal.append([ended(RunEnd.ABANDONED, "restarted")], expected=journal.last)
        elif request.choice == "resume":  # it ended between the two looks
            _refuse_nothing_to_resume(before, plan, request)
        return _haul(project, plan, settings, base, screen, request, journal, None)


def _haul(
    project: Project,
    plan: Plan,
    settings: Settings,
    base: Base,
    screen: PlainScreen,
    request: Request,
    journal: Any,
    before: RunState | None,
) -> int:
    run = before.run if before is not None else new_run_id()
    world = World(project, plan.id, run, settings, journal)
    level = world.sandbox.level
    if level != "bwrap":
        screen.say(
            "SANDBOX", f"level {level}: agents are watched, not walled in; see docs/sandbox.md"
        )
    for warning in base.warnings:
        screen.say("WARNING", warning)
    if before is None:
        first = started(run, plan, settings, base, level)
    else:
        moved = base.commit if _has_moved(before, base.branch, base.commit) else None
        if moved is not None:
            screen.say(
                "WARNING", f"the base has moved to {moved[:10]}; the run goes on from its own"
            )
        first = resumed(settings, level, moved)
    _forget_secrets()
    data = JsonScreen(sys.stdout) if request.options.get("as_json") else None
    show: Callable[..., None] = data.entry if data is not None else screen.entry
    state = anyio.run(lambda: world.haul(first, before, observe=show, watch=screen.activity))
    if data is not None:
        data.result(state, journal.last)
    workspaces = project.folders(plan.id).workspace("x").parent.relative_to(project.root)
    screen.closing(closing(state, plan=request.typed, workspaces=str(workspaces)))
    return EXIT_CODES[state.ended or RunEnd.STOPPED]


def _ask(before: RunState, request: Request) -> str:
    """What to do with a run that is not finished; without a terminal nobody can say."""
    told = (
        f"Run {before.run} of {before.plan.id} is {run_status(before)}: "
        f"{len(before.merged)} of {len(before.tasks)} tasks merged."
    )
    if request.options.get("yes"):
        return "resume"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Unanswered(
            told, hint=f"go on with `windlass resume {request.typed}`, or add --restart"
        )
    click.echo(told, err=True)
    return click.prompt(
        "What now?",
        type=click.Choice(["resume", "restart", "abort"]),
        default="resume",
        err=True,
    )


def _refuse_nothing_to_resume(before: RunState | None, plan: Plan, request: Request) -> None:
    if before is None or is_finished(before):
        why = "was never run here" if before is None else f"is {run_status(before)}"
        raise BadInput(
            f"there is nothing to resume: plan {plan.id!r} {why}",
            hint=f"start a new one: windlass run {request.typed}",
        )


def _has_moved(before: RunState, branch: str | None, commit: str) -> bool:
    return before.base_branch is not None and branch == before.base_branch and commit != before.base


def _refuse_without_credentials(project: Project) -> None:
    if not any(name != "ANTHROPIC_BASE_URL" for name in project.credentials()):
        raise BadInput(
            "no key for the agent in the environment",
            hint="set ANTHROPIC_API_KEY, or try `windlass demo`, which needs none",
        )


def _forget_secrets() -> None:
    """Leave nothing in this process's own environment for a child to inherit by mistake."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)


def _screen(options: dict[str, Any]) -> PlainScreen:
    wants_colour = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    forced = bool(os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE"))
    return PlainScreen(
        sys.stderr,
        colour=forced or (wants_colour and sys.stderr.isatty()),
        verbose=bool(options.get("verbose")),
        quiet=bool(options.get("quiet") or options.get("as_json")),
    )
