"""`land`: move the branch that a run started from to the merged work."""

import anyio
from msgspec import Struct
from msgspec.structs import replace

from windlass.app.acceptance import refuse_stale
from windlass.app.consent import agree
from windlass.app.person import Person
from windlass.app.plans import last_run, plan_to_land
from windlass.app.screen import NoScreen, Screen
from windlass.app.wiring import Project, World, now
from windlass.app.wiring.facts import refuse_short_journal
from windlass.app.wiring.signatures import git_settings, refuse_unsigned
from windlass.core.events.model import LandRequested
from windlass.core.state import RunState
from windlass.errors import BadInput, GitFailed, Interrupted, JournalUnwritable
from windlass.formats import continue_here_path, writes
from windlass.views.consequences import landing_over
from windlass.views.outcome import Exit
from windlass.views.progress import integration_branch


class Landed(Struct, frozen=True, kw_only=True):
    """The result of a landing."""

    state: RunState

    @property
    def exit_code(self) -> int:
        """The code of the landing, not of the run."""
        landing = self.state.landing
        if landing is not None and landing.landed is not None:
            return Exit.COMPLETED
        refused = landing is not None and landing.refused
        return Exit.NEEDS_HUMAN if refused else Exit.STOPPED


def land(
    project: Project,
    plan: str | None,
    *,
    anyway: bool = False,
    squash: bool = False,
    screen: Screen | None = None,
    person: Person | None = None,
) -> Landed:
    """Land the merged work of the plan's last run; without a plan, of the only one that has any.

    With `anyway` it lands without asking a person, with `squash` as one commit for each task.
    """
    screen = screen or NoScreen()
    plan_id = plan_to_land(project, plan)
    last = last_run(project, plan_id)
    _refuse_unfit(last)
    if changed := project.git.changed_on(last.base_branch, plan_id):
        agree(landing_over(last, changed), confirmed=anyway, person=person, by_name=True)
    with project.journals.session(plan_id) as session:
        if session.before is None:
            raise BadInput(f"plan {plan_id!r} was never run here")
        refuse_short_journal(project, plan_id, session)
        before = session.state
        _refuse_unfit(before)
        refuse_stale(project, before, f"{before.base_branch} was not moved")
        settings = replace(before.settings, git=git_settings(project))
        refuse_unsigned(project, sign=settings.git.signs_landings)
        world = World(
            project,
            plan_id,
            before.run,
            settings,
            session,
            writes=(*writes(before.plan), continue_here_path(before.plan)),
            notice=lambda text: screen.say("EDITED", text),
        )
        # The tip of a run that has not signed gets a signed merge on top.
        signed = settings.git.signs_landings and not project.git.has_signature(before.tip)
        first = LandRequested(
            at=now(), by="windlass land", anyway=anyway, squash=squash, signed=signed
        )
        try:
            state = anyio.run(
                lambda: world.run((first,), observe=screen.entry, watch=screen.activity)
            )
        except (OSError, GitFailed, JournalUnwritable) as error:
            raise _interrupted(project, plan_id, error) from error
    return Landed(state=state)


def _interrupted(project: Project, plan_id: str, error: Exception) -> Interrupted:
    """The error for a landing that disk or git did not let continue, with the cure."""
    trouble = project.trouble(error)
    cure = f"{trouble.cure}, then run `windlass land {plan_id}`; nothing recorded is lost"
    return Interrupted(trouble.what, hint=cure)


def _refuse_unfit(state: RunState) -> None:
    if not state.merges:
        raise BadInput(
            f"nothing to land: no task of {state.plan.id!r} is merged",
            hint=f"windlass status {state.plan.id}",
        )
    if state.base_branch is None:
        raise BadInput(
            f"the run of {state.plan.id!r} started from a commit, not from a branch",
            hint=f"merge it into a branch of yours: git merge {integration_branch(state)}",
        )
