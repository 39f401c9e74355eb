"""`run` and `resume`: settle what a person must settle, then run the plan until it ends or rests.

Law: whatever can be refused is refused before the lock is taken, because the lock leaves files.
"""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import chain
from typing import Literal

import anyio
from msgspec import Struct
from msgspec.structs import replace

from windlass.app.changed_since import moved_to
from windlass.app.continue_here import paused_plan
from windlass.app.finished import completion_lines, is_over, refuse_nothing_to_resume
from windlass.app.meanwhile import Meanwhile
from windlass.app.opening import Opening, lines, lines_of_new_run, lines_of_resumed_run
from windlass.app.person import Person
from windlass.app.plans import plan_id_of, plan_now, plan_to_resume
from windlass.app.rest import ABORT as ABORT_RUN
from windlass.app.rest import record_end
from windlass.app.run_settings import RunSettings
from windlass.app.sandbox_level import settle_level
from windlass.app.screen import NoScreen, Screen
from windlass.app.settings_schema import refresh_schema
from windlass.app.unfinished import Answer, Wanted, asked_for, decided, record_commands
from windlass.app.wiring import Observers, Project, World, ended, last_run_state, resumed, started
from windlass.app.wiring.agents import refuse_without_credentials
from windlass.app.wiring.configuration import ResumedSettings, configure, resumed_settings
from windlass.app.wiring.facts import new_run_id, refuse_short_journal, revised
from windlass.app.wiring.project import Base
from windlass.app.wiring.recovering import plans_in_git
from windlass.app.wiring.refusals import (
    refuse_command_in_file,
    refuse_none_as_setting,
    unread_variables,
)
from windlass.app.wiring.signatures import refuse_unsigned, signs_in_run
from windlass.core.engine import note, runs
from windlass.core.events.model import Entry, Event, RunEnd
from windlass.core.plan import Plan
from windlass.core.scheduler.estimates import learnt
from windlass.core.settings import Level, Settings
from windlass.core.state import RunState
from windlass.errors import (
    GitFailed,
    Interrupted,
    JournalGone,
    JournalUnwritable,
    WindlassError,
)
from windlass.formats import continue_here_path
from windlass.formats import writes as writes_of
from windlass.ports import Agent
from windlass.runner import Session
from windlass.views.closing import closing
from windlass.views.outcome import exit_code, is_finished
from windlass.views.steps import ABORT, RESTART

Beside = Callable[[], Coroutine[None, None, None]]
"""A task that runs beside a run, and ends with it."""


class RunRequest(Struct, frozen=True, kw_only=True):
    """What a person or a program asks of `run` or `resume`."""

    typed: str
    """The plan as it was named, for commands to copy."""
    settings: RunSettings = RunSettings()
    choice: Literal["resume", "restart"] | None = None
    """What to do with an unfinished run; None: ask."""
    mend: Literal["retry", "retry-stage", "go-on"] | None = None
    """How to continue a run that failed; None: ask."""
    reset_tasks: tuple[str, ...] = ()
    """Tasks to start again from the tip."""
    tasks: tuple[str, ...] = ()
    """Run only these tasks; empty: the whole plan."""
    stage: str | None = None
    """Run only this stage; None: the whole plan."""
    yes: bool = False
    """Ask nothing: resume, and pass checkpoints."""
    attended: bool = False
    """Whether a person can answer while it runs; then it waits for answers instead of ending."""
    resuming: bool = False
    """Whether it is `resume`, which starts no new run."""
    agent: Agent | None = None
    """An agent to use instead of the one that the settings name."""

    @property
    def wanted(self) -> Wanted:
        """The part about an unfinished run."""
        return Wanted(
            typed=self.typed,
            choice=self.choice,
            mend=self.mend,
            reset_tasks=self.reset_tasks,
            yes=self.yes,
            resuming=self.resuming,
        )


class RunResult(Struct, frozen=True, kw_only=True):
    """How a run ended, or where it stopped."""

    state: RunState
    seq: int
    """The journal's last position."""
    was_complete: bool = False
    """Whether there was nothing to do: the run was complete before."""

    @property
    def exit_code(self) -> int:
        return exit_code(self.state)


def run(
    project: Project,
    plan: Plan,
    request: RunRequest,
    *,
    screen: Screen | None = None,
    person: Person | None = None,
    beside: Sequence[Beside] = (),
) -> RunResult:
    """Run the plan, or continue its run; return how it ended.

    The screen shows all that happens. The person answers what must be asked; without one, an open
    question is an error with the command that answers it.
    """
    screen = screen or NoScreen()
    if (complete := _complete(project, plan, request)) is not None:
        seq = _last_seq(project, plan)
        lines = completion_lines(project, complete, request.typed, request.settings.by_key())
        screen.closing(complete, seq, lines)
        return RunResult(state=complete, seq=seq, was_complete=True)
    process = _Process(project, plan, request, screen, person, beside)
    try:
        return process.go()
    except (OSError, GitFailed, JournalUnwritable) as error:
        raise process.interrupted(error) from error


def resume(
    project: Project,
    plan: str | None = None,
    request: RunRequest | None = None,
    *,
    screen: Screen | None = None,
    person: Person | None = None,
) -> RunResult:
    """Continue a run; without a plan, the only unfinished one."""
    typed = named_to_resume(project, plan)
    asked = replace(request or RunRequest(typed=typed), choice="resume", resuming=True)
    return run(project, plan_to_resume(project, typed), asked, screen=screen, person=person)


def named_to_resume(project: Project, plan: str | None) -> str:
    """The plan to resume: the named one, the one that continue-here names, or the only one."""
    return plan or paused_plan(project) or plan_id_of(project, None)


def _complete(project: Project, plan: Plan, request: RunRequest) -> RunState | None:
    """The plan's run, if it is complete and the request asks for nothing more."""
    state = project.journals.last_run(plan.id)
    asks_more = request.resuming or request.choice == RESTART.name or request.mend is not None
    if state is None or state.ended is not RunEnd.COMPLETED or revised(state, plan):
        return None
    if asks_more or request.reset_tasks:
        return None
    if request.choice == "resume" and not is_over(project, state, _last_seq(project, plan)):
        return None  # it ended, and its process was killed before it had cleared up
    return state


def _last_seq(project: Project, plan: Plan) -> int:
    return project.journals.entries(plan.id)[-1].seq


class _Process:
    """One `run` or `resume`."""

    def __init__(
        self,
        project: Project,
        plan: Plan,
        request: RunRequest,
        screen: Screen,
        person: Person | None,
        beside: Sequence[Beside],
    ) -> None:
        self._project = project
        self._plan = plan
        self._request = request
        self._screen = screen
        self._person = None if request.yes else person
        self._beside = beside
        self._configuration = configure(
            project.root,
            project.environment,
            request.settings.by_key(),
            directory=project.directory,
        )
        self._only = asked_for(plan, request.tasks, request.stage)
        refuse_without_credentials(self._configuration.settings.agent, project.environment)
        refuse_none_as_setting(self._configuration)
        refuse_command_in_file(self._configuration)
        self._unread_variables = unread_variables(project.environment, self._configuration)
        self._observers = Observers(
            project,
            plan.id,
            self._configuration.settings,
            notify=request.settings.notify,
            report=lambda text: self._screen.say("NOTE", text),
        )
        # These options continue a run, and never start another.
        mends = request.choice is None and bool(request.mend or request.reset_tasks)
        self._resumes = mends or request.choice == "resume"
        entries = project.journals.entries(plan.id)
        before = last_run_state(entries)
        if self._resumes:
            self._refuse_nothing_to_resume(before, entries[-1].seq if entries else 0)
        continued = before if before is not None and self._may_continue(before) else None
        self._settings = self._settled(None if request.choice == RESTART.name else continued)
        project.refuse_unfit(self._settings, plan.id)
        refuse_unsigned(project, sign=signs_in_run(self._settings))
        if self._resumes or continued is not None:
            project.git.refuse_own_tracked()  # it has its own base already
        else:
            _ = self._base

    def _settled(self, before: RunState | None) -> Settings:
        """The settings of a new run, or those that a run continues with."""
        self._kept: ResumedSettings | None = None
        if before is not None:
            redactor = self._project.redactor
            self._kept = resumed_settings(self._configuration, before, redactor)
        return settle_level(
            self._project,
            (self._kept or self._configuration).settings,
            before,
            by_option="sandbox.level" in self._configuration.options,
            typed=self._request.typed,
            person=self._person,
        )

    @cached_property
    def _base(self) -> Base:
        """The commit that a new run starts from; raises if no run can start there."""
        return self._project.git.base(self._settings.base, self._plan.id, self._plan.paths)

    def go(self) -> RunResult:
        """Take the lock, decide what to do with an unfinished run, run, and show how it ended."""
        with self._project.journals.session(self._plan.id) as session:
            refresh_schema(self._project)
            before = session.before
            if before is not None:
                refuse_short_journal(self._project, self._plan.id, session)
            if before is not None and not is_finished(before):
                answer = self._decided(before)
                if answer.name == ABORT.name:
                    record_end(self._project, session, ABORT_RUN)
                    return self._close(session)
                if answer.name != RESTART.name:
                    return self._run(session, record_commands(self._project, session, answer.words))
                _ = self._base  # do not abandon a run for one that could not start
                self._settings = self._settled(None)
                session.note(ended(RunEnd.ABANDONED, "restarted"))
            elif before is not None and self._takes_up(before):
                return self._run(session, session.note(*revised(before, self._plan)))
            elif self._resumes:  # another process may have continued it since we looked
                self._refuse_nothing_to_resume(before, session.seq)
                if before is not None:
                    return self._catch_up(session, before)
            return self._run(session, None)

    def _may_continue(self, before: RunState) -> bool:
        return not is_finished(before) or self._takes_up(before)

    def _takes_up(self, before: RunState) -> bool:
        """Whether a complete run continues, because its plan was edited."""
        complete = before.ended is RunEnd.COMPLETED and self._request.choice is None
        return complete and not self._resumes and bool(revised(before, self._plan))

    def interrupted(self, error: Exception) -> Interrupted:
        """The error for a run that disk or git did not let continue: why, and the cure."""
        trouble = self._project.trouble(error)
        if isinstance(error, JournalGone) or self._has_lost_its_journal():
            what = error.message if isinstance(error, JournalGone) else trouble.what
            cure = f"run `windlass recover {self._plan.id}` to restore the journal from git"
            return Interrupted(what, hint=f"{cure}, then `windlass resume {self._request.typed}`")
        begun = False
        with suppress(WindlassError, OSError):
            begun = last_run_state(self._project.journals.entries(self._plan.id)) is not None
        command = f"windlass {'resume' if begun else 'run'} {self._request.typed}"
        cure = f"{trouble.cure}, then run `{command}`; nothing recorded is lost"
        return Interrupted(trouble.what, hint=cure)

    def _has_lost_its_journal(self) -> bool:
        """Whether git has a run of the plan, and its journal is gone."""
        if self._project.folders(self._plan.id).journal.exists():
            return False
        with suppress(WindlassError, OSError):
            return bool(plans_in_git(self._project).get(self._plan.id))
        return False

    def _run(self, session: Session, before: RunState | None) -> RunResult:
        """Run it; notices and telemetry are closed at the end, however it ends."""

        def recorded() -> list[Event]:
            return session.facts_of_run() if before is not None else []

        try:
            self._observers.open(recorded)
            return self._observed(session, before)
        finally:
            self._observers.close()

    def _observed(self, session: Session, before: RunState | None) -> RunResult:
        run = before.run if before is not None else new_run_id()
        world = self._world(session, run, before)
        self._open_screen(world.sandbox.level, before)
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
                configured=self._configuration.configured,
                passes_checkpoints=self._request.yes,
                attended=self._request.attended and not self._request.yes,
                estimates=learnt(runs(entry.event for entry in session.entries), self._plan),
            )
        else:
            first = resumed(
                self._settings,
                world.sandbox.level,
                moved_to(self._project, before),
                metered=world.metered,
                coach_commands=world.coach_commands,
                only=self._only,
                configured=(self._kept or self._configuration).configured,
                passes_checkpoints=self._request.yes,
                attended=self._request.attended and not self._request.yes,
            )
        edit = revised(before, self._plan)
        meanwhile = Meanwhile(
            self._project, note(before, (first, *edit)).states[-1], self._screen.say
        )

        def observe(entry: Entry, state: RunState) -> None:
            self._screen.entry(entry, state)
            meanwhile.see(state)
            self._observers.follow(entry, state)

        async def beside() -> None:
            async with anyio.create_task_group() as tasks:
                kept = (meanwhile.keep, self._screen.keep, self._observers.keep, *self._beside)
                for each in kept:
                    tasks.start_soon(each)

        with self._screen, self._observers.notify_of_errors(self._plan.title):
            anyio.run(
                lambda: world.run(
                    (first, *edit),
                    observe=observe,
                    watch=self._screen.activity,
                    beside=beside,
                )
            )
        return self._close(session)

    def _catch_up(self, session: Session, before: RunState) -> RunResult:
        """Finish for a process that recorded the end of the run and was killed right after."""
        world = self._world(session, before.run, before)
        anyio.run(world.catch_up, before, session.seq)
        return self._close(session)

    def _world(self, session: Session, run: str, before: RunState | None) -> World:
        # State files belong to the plan as recorded; the plan of a resume may be elsewhere now.
        plan = before.plan if before is not None else self._plan
        writes = (*writes_of(plan), continue_here_path(plan))
        return World(
            self._project,
            self._plan.id,
            run,
            self._settings,
            session,
            agent=self._request.agent,
            writes=writes,
            notice=lambda text: self._screen.say("EDITED", text),
            remark=lambda text: self._screen.say("NOTE", text),
            traceparent=self._observers.traceparent,
            plan=partial(plan_now, self._project, self._plan),
        )

    def _close(self, session: Session) -> RunResult:
        state, seq = session.state, session.seq
        kept = self._project.folders(self._plan.id).workspaces.relative_to(self._project.root)
        lines = closing(
            state,
            plan=self._request.typed,
            workspaces=str(kept),
            continue_here=continue_here_path(state.plan),
            ground=self._project.git.ground(state),
        )
        self._screen.closing(state, seq, tuple(lines))
        return RunResult(state=state, seq=seq)

    def _open_screen(self, level: Level, before: RunState | None) -> None:
        opening = Opening(
            project=self._project,
            plan=self._plan,
            typed=self._request.typed,
            settings=self._settings,
            kept=self._kept,
            unread_variables=self._unread_variables,
            level=level,
        )
        if before is None:
            more = lines_of_new_run(opening, self._base.warnings)
        else:
            more = lines_of_resumed_run(opening, before)
        for word, text in chain(lines(opening), more):
            self._screen.say(word, text)

    def _decided(self, before: RunState) -> Answer:
        # The settings that it would continue with: a choice may depend on them.
        shown = replace(before, settings=self._settings)
        return decided(shown, self._request.wanted, self._person)

    def _refuse_nothing_to_resume(self, before: RunState | None, last: int) -> None:
        refuse_nothing_to_resume(self._project, self._plan, self._request.typed, before, last)
