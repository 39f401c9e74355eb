"""`run` and `resume` behind their options: ask what must be asked, then haul."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import anyio
import click
from msgspec import Struct

from windlass.cli.config import Configuration, configure
from windlass.cli.options import settings_of
from windlass.cli.wiring import Project, World, WritableJournal, ended, newest, resumed, started
from windlass.cli.wiring.facts import new_run_id, refuse_short_journal, revised, told_until
from windlass.dialects import writes as writes_of
from windlass.errors import BadInput, ConfigError, Unanswered
from windlass.events.model import RunEnd
from windlass.plan import Plan
from windlass.scheduler.estimates import learnt
from windlass.settings import Level, Settings
from windlass.state import RunState, runs
from windlass.ui.jsonl import JsonScreen
from windlass.ui.plain import PlainScreen
from windlass.views.closing import closing
from windlass.views.edits import edit_lines
from windlass.views.outcome import EXIT_CODES, is_finished, run_status
from windlass.views.words import plural


class Request(Struct, frozen=True, kw_only=True):
    """What the person asked for."""

    typed: str
    """The plan as they named it, for commands to copy."""
    options: dict[str, Any]
    choice: str | None
    """resume, restart, or None to ask."""


def start_or_resume(project: Project, plan: Plan, request: Request) -> int:
    """Haul the plan, and return the exit code."""
    return _Hauling(project, plan, request).go()


class _Hauling:
    """One `run` or `resume`: what must be asked is asked, what must be refused is refused."""

    def __init__(self, project: Project, plan: Plan, request: Request) -> None:
        self._project = project
        self._plan = plan
        self._request = request
        configuration = configure(project.root, project.environment, settings_of(request.options))
        self._settings = configuration.settings
        self._screen = _screen(request.options)
        _refuse_without_credentials(project)
        _refuse_none_by_habit(configuration)
        if request.choice == "resume":
            entries = project.entries(plan.id)
            self._refuse_nothing_to_resume(newest(entries), entries[-1].seq if entries else 0)
        # All that can be refused is refused before the lock, for taking it leaves files behind.
        project.refuse_unfit(self._settings, plan.id)
        self._base = project.base(self._settings.base, plan.id)

    def go(self) -> int:
        """Take the lock, settle what to do with an unfinished run, and haul."""
        with self._project.holding(self._plan.id) as journal:
            before = newest(list(journal.read()))
            if before is not None:
                refuse_short_journal(self._project, self._plan.id, journal.last, before.run)
            if before is not None and not is_finished(before):
                choice = self._request.choice or self._ask(before)
                if choice == "resume":
                    return self._haul(journal, before)
                if choice == "abort":
                    return EXIT_CODES[RunEnd.STOPPED]
                journal.append([ended(RunEnd.ABANDONED, "restarted")], expected=journal.last)
            elif self._request.choice == "resume":  # another may have gone on between the looks
                self._refuse_nothing_to_resume(before, journal.last)
                if before is not None:
                    return self._catch_up(journal, before)
            return self._haul(journal, None)

    def _haul(self, journal: WritableJournal, before: RunState | None) -> int:
        run = before.run if before is not None else new_run_id()
        world = self._world(journal, run, before)
        self._warn(world.sandbox.level, before)
        if before is None:
            first = started(
                run,
                self._plan,
                self._settings,
                self._base,
                world.sandbox.level,
                metered=world.metered,
                estimates=learnt(runs(entry.event for entry in journal.read()), self._plan),
            )
        else:
            first = resumed(
                self._settings,
                world.sandbox.level,
                self._moved(before),
                metered=world.metered,
            )
        _forget_secrets()
        data = JsonScreen(sys.stdout) if self._request.options.get("as_json") else None
        show = data.entry if data is not None else self._screen.entry
        facts = (first, *revised(before, self._plan))
        state = anyio.run(
            lambda: world.haul(facts, before, observe=show, watch=self._screen.activity)
        )
        return self._close(data, state, journal.last)

    def _catch_up(self, journal: WritableJournal, before: RunState) -> int:
        """Show the end of a run that was recorded by a process which was killed right after."""
        world = self._world(journal, before.run, before)
        anyio.run(world.catch_up, before, journal.last)
        data = JsonScreen(sys.stdout) if self._request.options.get("as_json") else None
        return self._close(data, before, journal.last)

    def _world(self, journal: WritableJournal, run: str, before: RunState | None) -> World:
        # The plan as recorded is what the run writes into; a resumed one may lie elsewhere now.
        writes = writes_of(before.plan if before is not None else self._plan)
        return World(
            self._project,
            self._plan.id,
            run,
            self._settings,
            journal,
            writes=writes,
            notice=lambda text: self._screen.say("EDITED", text),
        )

    def _close(self, data: JsonScreen | None, state: RunState, seq: int) -> int:
        if data is not None:
            data.result(state, seq)
        kept = self._project.folders(self._plan.id).workspaces.relative_to(self._project.root)
        self._screen.closing(closing(state, plan=self._request.typed, workspaces=str(kept)))
        return EXIT_CODES[state.ended or RunEnd.STOPPED]

    def _warn(self, level: Level, before: RunState | None) -> None:
        if level != "bwrap":
            told = f"level {level}: agents are not walled in; docs/sandbox.md says what that means"
            self._screen.say("SANDBOX", told)
        if self._settings.e2e.run and not self._plan.e2e:
            self._screen.say("WARNING", "the plan has no E2E scenario; there is none to try")
        if before is None:
            self._tell_of_plan()
        for warning in (*self._base.warnings, *(self._differences(before) if before else ())):
            self._screen.say("WARNING", warning)

    def _tell_of_plan(self) -> None:
        """What a person would want to know of the plan before it is paid for."""
        marked = sum(task.marked_done for task in self._plan.tasks)
        if marked:
            told = f"{plural(marked, 'task')} marked as done by another tool, and done again"
            self._screen.say("WARNING", f"{told}; `windlass adopt` takes them over instead")
        if self._plan.notes:
            told = f"{plural(len(self._plan.notes), 'note')} on what was passed over"
            self._screen.say("NOTE", f"{told}: windlass plan {self._request.typed}")

    def _differences(self, before: RunState) -> Iterator[str]:
        """What is not as it was when the run began, and what that means for it."""
        if (moved := self._moved(before)) is not None:
            yield f"the base has moved to {moved[:10]}; the run goes on from its own"
        for line in edit_lines(before, self._plan):
            yield f"plan: {line}"
        for name in Settings.__struct_fields__:
            then, now = getattr(before.settings, name), getattr(self._settings, name)
            if then != now:
                yield f"the setting {name!r} is not what it was; the run goes on with the new one"

    def _moved(self, before: RunState) -> str | None:
        followed = before.base_branch is not None and self._base.branch == before.base_branch
        return self._base.commit if followed and self._base.commit != before.base else None

    def _ask(self, before: RunState) -> str:
        """What to do with a run that is not finished; without a terminal nobody can say."""
        told = (
            f"Run {before.run} of {before.plan.id} is {run_status(before)}: "
            f"{len(before.done)} of {plural(len(before.tasks), 'task')} merged"
        )
        if self._request.options.get("yes"):
            return "resume"
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            cure = f"go on with `windlass resume {self._request.typed}`, or add --restart"
            raise Unanswered(told, hint=cure)
        click.echo(f"{told}.", err=True)
        choices = click.Choice(["resume", "restart", "abort"])
        return click.prompt("What now?", type=choices, default="resume", err=True)

    def _refuse_nothing_to_resume(self, before: RunState | None, last: int) -> None:
        if before is None or (is_finished(before) and self._is_told(before, last)):
            why = "was never run here" if before is None else f"is {run_status(before)}"
            raise BadInput(
                f"there is nothing to resume: plan {self._plan.id!r} {why}",
                hint=f"start a new one: windlass run {self._request.typed}",
            )

    def _is_told(self, state: RunState, last: int) -> bool:
        """Whether the state files, as far as there are any, have all that the journal has."""
        return told_until(self._project, self._plan.id, state.run) in {0, last}


def _refuse_none_by_habit(configuration: Configuration) -> None:
    """No sandbox at all is a word for one run, not something a file may say for all of them."""
    level = next(value for value in configuration.values if value.key == "sandbox.level")
    if level.value == "none" and not level.source.startswith("option"):
        raise ConfigError(
            f"{level.source}: no sandbox at all cannot be a setting",
            hint="say it for one run: --sandbox none",
        )


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
