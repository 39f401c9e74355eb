"""`run` and `resume` behind their options: ask what must be asked, then haul."""

import os
import signal
from contextlib import suppress
from functools import cached_property, reduce
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from windlass.cli.abort import ABORT as ABORT_RUN
from windlass.cli.asking import Answer, asked_for, decided, said
from windlass.cli.changed_since import differences, moved_to
from windlass.cli.config import configure
from windlass.cli.finding import plan_now
from windlass.cli.options import settings_of
from windlass.cli.resting import record_end
from windlass.cli.showing import screens, write_step_summary
from windlass.cli.walls import settle_level
from windlass.cli.watching import Watch
from windlass.cli.wiring import (
    Outside,
    Project,
    World,
    WritableJournal,
    ended,
    newest,
    resumed,
    started,
)
from windlass.cli.wiring.facts import (
    facts_of_last_run,
    new_run_id,
    refuse_short_journal,
    revised,
    told_until,
)
from windlass.cli.wiring.project import Base
from windlass.cli.wiring.recovering import plans_in_git
from windlass.cli.wiring.refusing import (
    refuse_command_in_file,
    refuse_none_by_habit,
    refuse_without_credentials,
    unread_variables,
)
from windlass.dialects import continue_here_path
from windlass.dialects import writes as writes_of
from windlass.errors import (
    BadInput,
    GitFailed,
    Interrupted,
    JournalGone,
    JournalUnwritable,
    WindlassError,
)
from windlass.events.model import Entry, Event, RunEnd
from windlass.plan import Plan
from windlass.ports import Agent
from windlass.scheduler.estimates import learnt
from windlass.scheduler.late_edits import newly_stale
from windlass.settings import WALLED, Level
from windlass.state import RunState, apply, runs
from windlass.views.choices import ABORT, RESTART
from windlass.views.closing import closing
from windlass.views.outcome import exit_code, is_finished, run_status
from windlass.views.steps import how_to_settle, landed_at
from windlass.views.words import plural


class Request(Struct, frozen=True, kw_only=True):
    """What the person asked for."""

    typed: str
    """The plan as they named it, for commands to copy."""
    options: dict[str, Any]
    choice: str | None
    """resume, restart, or None to ask."""
    resuming: bool = False
    """Whether it was `windlass resume`, which begins no new run."""
    agent: Agent | None = None
    """Who plays in place of the agent that the settings name; a rehearsal brings its own."""


def start_or_resume(project: Project, plan: Plan, request: Request) -> int:
    """Haul the plan, and return the exit code."""
    hauling = _Hauling(project, plan, request)
    try:
        state = hauling.go()
    except (OSError, GitFailed, JournalUnwritable) as error:
        raise hauling.interrupted(error) from error
    code = exit_code(state)
    if code or request.options.get("pr") is False:
        return code
    from windlass.cli.pr import offer

    return offer(project, state, wish=request.options.get("pr"))


class _Hauling:
    """One `run` or `resume`: what must be asked is asked, what must be refused is refused."""

    def __init__(self, project: Project, plan: Plan, request: Request) -> None:
        self._project = project
        self._plan = plan
        self._request = request
        configuration = configure(project.root, project.environment, settings_of(request.options))
        self._settings = configuration.settings
        self._unread = anyio.Event()
        self._screen, self._data = screens(
            request.options, project.environment, left=self._unread.set
        )
        self._only = asked_for(plan, request.options)
        refuse_without_credentials(project.environment)
        refuse_none_by_habit(configuration)
        refuse_command_in_file(configuration)
        self._unread_variables = unread_variables(project.environment, configuration)
        self._outside = Outside(
            project,
            plan.id,
            self._settings,
            notify=request.options.get("notify"),
            say=lambda text: self._screen.say("NOTE", text),
        )
        # What mends a run goes on with it, and never begins another.
        mends = request.choice is None and bool(
            request.options.get("mend") or request.options.get("reset_tasks")
        )
        self._resumes = mends or request.choice == "resume"
        entries = project.entries(plan.id)
        before = newest(entries)
        if self._resumes:
            self._refuse_nothing_to_resume(before, entries[-1].seq if entries else 0)
        self._settings = settle_level(
            project,
            configuration,
            None if request.choice == RESTART.name else before,
            typed=request.typed,
            asks=not request.options.get("yes"),
        )
        # All that can be refused is refused before the lock, for taking it leaves files behind.
        project.refuse_unfit(self._settings, plan.id)
        if self._resumes or (before is not None and not is_finished(before)):
            project.refuse_own_tracked()  # and it has a base of its own
        else:
            _ = self._base

    @cached_property
    def _base(self) -> Base:
        """The commit that a new run works from, refused where none could."""
        return self._project.base(self._settings.base, self._plan.id)

    def go(self) -> RunState:
        """Take the lock, settle what to do with an unfinished run, haul, and say how it ended."""
        with self._project.holding(self._plan.id) as journal:
            before = newest(list(journal.read()))
            if before is not None:
                refuse_short_journal(self._project, self._plan.id, journal.last, before.run)
            if before is not None and not is_finished(before):
                answer = self._decided(before)
                if answer.name == ABORT.name:
                    return self._abort(journal, before)
                if answer.name != RESTART.name:
                    return self._haul(journal, said(self._project, journal, before, answer.words))
                _ = self._base  # nothing is given up for a run that could not begin
                journal.append([ended(RunEnd.ABANDONED, "restarted")], expected=journal.last)
            elif self._resumes:  # another may have gone on between the looks
                self._refuse_nothing_to_resume(before, journal.last)
                if before is not None:
                    return self._catch_up(journal, before)
            return self._haul(journal, None)

    def interrupted(self, error: Exception) -> Interrupted:
        """What a person is told when the world did not let the run go on: why, and the cure."""
        trouble = self._project.trouble(error)
        if isinstance(error, JournalGone) or self._has_lost_its_journal():
            what = error.message if isinstance(error, JournalGone) else trouble.what
            cure = f"`windlass recover {self._plan.id}` takes the run up from what git holds of it"
            return Interrupted(what, hint=f"{cure}, then `windlass resume {self._request.typed}`")
        begun = False
        with suppress(WindlassError, OSError):
            begun = newest(self._project.entries(self._plan.id)) is not None
        command = f"windlass {'resume' if begun else 'run'} {self._request.typed}"
        cure = f"{trouble.cure}, then go on with `{command}`; nothing recorded is lost"
        return Interrupted(trouble.what, hint=cure)

    def _has_lost_its_journal(self) -> bool:
        """Whether git knows of a run of the plan, and there is no journal that would."""
        if self._project.folders(self._plan.id).journal.exists():
            return False
        with suppress(WindlassError, OSError):
            return bool(plans_in_git(self._project).get(self._plan.id))
        return False

    def _haul(self, journal: WritableJournal, before: RunState | None) -> RunState:
        """Haul it, and let whoever follows from outside come to the end of it."""

        def recorded() -> list[Event]:
            return facts_of_last_run(journal.read()) if before is not None else []

        try:
            self._outside.open(recorded)
            return self._hauled(journal, before)
        finally:
            self._outside.close()

    def _hauled(self, journal: WritableJournal, before: RunState | None) -> RunState:
        if before is not None and before.settings.checks and not self._settings.checks:
            # A branch without windlass.toml may be checked out by now: nothing passes unchecked.
            self._settings = replace(self._settings, checks=before.settings.checks)
            self._screen.say("WARNING", "no checks are set here; the run keeps its own")
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
                coach_commands=world.coach_commands,
                only=self._only,
                estimates=learnt(runs(entry.event for entry in journal.read()), self._plan),
            )
        else:
            first = resumed(
                self._settings,
                world.sandbox.level,
                moved_to(self._project, before),
                metered=world.metered,
                coach_commands=world.coach_commands,
                only=self._only,
            )
        forget_secrets()
        show = self._data.entry if self._data is not None else self._screen.entry
        edit = revised(before, self._plan)
        watch = Watch(self._project, reduce(apply, edit, apply(before, first)), self._screen.say)

        def observe(entry: Entry, state: RunState) -> None:
            show(entry, state)
            watch.see(state)
            self._outside.follow(entry, state)

        async def beside() -> None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch.keep)
                tasks.start_soon(self._screen.keep)
                tasks.start_soon(self._outside.keep)
                tasks.start_soon(self._stop_unread)

        with self._screen, self._outside.breaking(self._plan.title):
            state = anyio.run(
                lambda: world.haul(
                    (first, *edit),
                    before,
                    observe=observe,
                    watch=self._screen.activity,
                    beside=beside,
                )
            )
        return self._close(state, journal.last)

    async def _stop_unread(self) -> None:
        """What nobody reads any more would go on paying unseen: as with a terminal that closes."""
        await self._unread.wait()
        signal.raise_signal(signal.SIGHUP)

    def _catch_up(self, journal: WritableJournal, before: RunState) -> RunState:
        """Show the end of a run that was recorded by a process which was killed right after."""
        world = self._world(journal, before.run, before)
        anyio.run(world.catch_up, before, journal.last)
        return self._close(before, journal.last)

    def _world(self, journal: WritableJournal, run: str, before: RunState | None) -> World:
        # The plan as recorded is what the run writes into; a resumed one may lie elsewhere now.
        plan = before.plan if before is not None else self._plan
        writes = (*writes_of(plan), continue_here_path(plan))
        return World(
            self._project,
            self._plan.id,
            run,
            self._settings,
            journal,
            agent=self._request.agent,
            writes=writes,
            notice=lambda text: self._screen.say("EDITED", text),
            remark=lambda text: self._screen.say("NOTE", text),
            traceparent=self._outside.traceparent,
            plan=lambda: plan_now(self._project, self._plan),
        )

    def _close(self, state: RunState, seq: int) -> RunState:
        if self._data is not None:
            self._data.result(state, seq)
        kept = self._project.folders(self._plan.id).workspaces.relative_to(self._project.root)
        lines = closing(
            state,
            plan=self._request.typed,
            workspaces=str(kept),
            continue_here=continue_here_path(state.plan),
            ground=self._project.ground(state),
        )
        self._screen.closing(lines)
        write_step_summary(self._project.environment, state, lines)
        return state

    def _warn(self, level: Level, before: RunState | None) -> None:
        if level not in WALLED:
            told = f"level {level}: agents are not walled in; docs/sandbox.md says what that means"
            self._screen.say("SANDBOX", told)
        if self._settings.e2e.run and not self._plan.e2e:
            self._screen.say("WARNING", "the plan has no E2E scenario; there is none to try")
        for name in self._unread_variables:
            self._screen.say("WARNING", f"nobody reads {name}; `windlass doctor` lists every key")
        if before is None:
            self._tell_of_plan()
            self._tell_of_lost_run()
            self._tell_of_unlanded()
        plan, settings = self._plan, self._settings
        since = differences(self._project, plan, settings, before) if before is not None else None
        for warning in self._base.warnings if since is None else since:
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

    def _tell_of_unlanded(self) -> None:
        """The run before may have merged what no branch of the user's has: it would look lost."""
        last = self._project.last_run(self._plan.id)
        if last is None or not last.merges or landed_at(last) is not None:
            return
        ground = self._project.ground(last)
        if ground is None or not ground.holds_tip:
            told = f"not landed: {plural(last.merges, 'merge')} of the run before"
            self._screen.say(
                "WARNING", f"{told}; to take that: git merge {self._project.tip(last)}"
            )

    def _tell_of_lost_run(self) -> None:
        """Git may have a run that no journal tells of: somebody may want that instead."""
        pinned = plans_in_git(self._project).get(self._plan.id, [])
        if pinned and not self._project.entries(self._plan.id):
            told = f"git has run {', '.join(pinned)} of this plan, and no journal tells of it"
            self._screen.say("WARNING", f"{told}; `windlass recover` would have taken it up")

    def _decided(self, before: RunState) -> Answer:
        request = self._request
        return decided(
            before,
            choice=request.choice,
            options=request.options,
            typed=request.typed,
            resuming=request.resuming,
        )

    def _abort(self, journal: WritableJournal, before: RunState) -> RunState:
        state = record_end(self._project, journal, before, ABORT_RUN)
        return self._close(state, journal.last)

    def _refuse_nothing_to_resume(self, before: RunState | None, last: int) -> None:
        if before is None or (is_finished(before) and self._is_wound_up(before, last)):
            why = "was never run here" if before is None else f"is {run_status(before)}"
            cure = f"start a new one: windlass run {self._request.typed}"
            stale = newly_stale(before, self._plan) if before is not None else ()
            if stale and before is not None and not before.given_up:
                why = f"{why}, and {', '.join(stale)} says something else by now"
                cure = f"{how_to_settle(before, stale)}; or {cure}"
            if before is None and plans_in_git(self._project).get(self._plan.id):
                why = "has no journal, and git has a run of it"
                cure = f"rebuild it from git: windlass recover {self._plan.id}"
            raise BadInput(f"there is nothing to resume: plan {self._plan.id!r} {why}", hint=cure)

    def _is_wound_up(self, state: RunState, last: int) -> bool:
        """Whether nothing is left to do for a run that is over.

        Its state files, as far as there are any, have all that the journal has, and no checkout of
        it stands about: a power loss can bring folders back that were removed.
        """
        folders = self._project.folders(self._plan.id)
        standing = (*map(folders.workspace, state.in_tip), *_inside(folders.throwaway))
        told = told_until(self._project, self._plan.id, state.run) in {0, last}
        return told and not any(path.exists() for path in standing)


def _inside(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def forget_secrets() -> None:
    """Leave nothing in this process's own environment for a child to inherit by mistake."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TERM") if name in os.environ}
    os.environ.clear()
    os.environ.update(kept)
