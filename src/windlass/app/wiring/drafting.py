"""An agent writes the text of a pull request: in the sandbox, metered, on the run's budget.

Law: the agent gets an empty folder and a prompt, so it can change nothing and find nothing. Its
cost is recorded for the run's last task, in the role `pull request`. If its answer does not fit,
the pull request is opened without it.
"""

import shutil
from collections.abc import Callable

import anyio
from msgspec.structs import replace

from windlass.adapters.agents.settled import SettledAgent
from windlass.adapters.files import make_folder
from windlass.adapters.sandbox.guard import Guard, GuardedAgent
from windlass.app.wiring.agents import refuse_without_credentials, vendor_of
from windlass.app.wiring.facts import now, refuse_short_journal
from windlass.app.wiring.metering import open_agent
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import write_state_files
from windlass.core.events import model as e
from windlass.core.events.values import Amount
from windlass.core.secrets import redacted
from windlass.core.state import RunState
from windlass.core.state.budget import No, grant, written_off
from windlass.core.state.quota import coach_model
from windlass.errors import BadInput, NoWalls
from windlass.ports import Ask, Brief, Held, Report
from windlass.runner import Session
from windlass.runner.drafts import draft_prompt
from windlass.views.pull_request import Draft

ROLE = "pull request"


class _Account:
    """Records spending in the journal of a run that has ended."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[str, str] = {}

    def reserve(self, ask: Ask) -> Held | No:
        """Reserve money for a request, if the run's budget has room for it."""
        granted = grant(self._state(), ask.most, ask.least)
        if isinstance(granted, No):
            return granted
        name = f"{self._session.seq + 1}"
        self._session.note(
            e.SpendReserved(
                at=now(),
                id=name,
                task=ask.task,
                role=ROLE,
                model=ask.model,
                usd=granted.usd,
                tokens=granted.tokens,
            )
        )
        self._open[name] = ask.task
        return Held(name, granted)

    def stream(self, id_: str, usage: e.Usage) -> None:
        """Record the usage of a request so far."""
        if (task := self._open.get(id_)) is not None:
            self._session.note(e.SpendStreamed(at=now(), id=id_, task=task, usage=usage))

    def settle(self, id_: str, usage: e.Usage, *, broke_off: bool = False) -> None:
        """Record the usage of a finished request."""
        if (task := self._open.pop(id_, None)) is not None:
            fact = e.SpendSettled(at=now(), id=id_, task=task, usage=usage, broke_off=broke_off)
            self._session.note(fact)

    def refuse(self, ask: Ask) -> None:
        """Record nothing: the run has ended, and the pull request needs no draft."""

    def _state(self) -> RunState:
        """The run, with the open reservations of an earlier process written off."""
        state = self._session.state
        own = {id_: each for id_, each in state.held.items() if id_ in self._open}
        lost = {id_: each for id_, each in state.held.items() if id_ not in self._open}
        return replace(written_off(replace(state, held=lost)), held=own)


def write_draft(project: Project, plan_id: str, notice: Callable[[str], None]) -> Draft | None:
    """Let an agent describe the plan's last run; None if it wrote nothing usable."""
    with project.journals.session(plan_id) as session:
        if session.before is None:
            raise BadInput(f"plan {plan_id!r} was never run here")
        refuse_without_credentials(
            session.state.settings.agent, project.environment, "leave --by-agent out"
        )
        refuse_short_journal(project, plan_id, session)
        report = anyio.run(_ask_agent, project, session.state, _Account(session))
        write_state_files(project, session.state, session.seq, notice)
    if isinstance(report.answer, Draft):
        return report.answer
    why = report.message or report.failure or "its answer does not fit"
    notice(f"the agent wrote nothing usable ({why}); the pull request is opened without it")
    return None


async def _ask_agent(project: Project, state: RunState, account: _Account) -> Report:
    plan_id, settings = state.plan.id, state.settings
    try:
        sandbox = project.walls.sandbox(settings, f"{project.mark}/{plan_id}/{state.run}")
    except NoWalls as error:
        raise NoWalls(error.message, hint="leave --by-agent out") from error
    stat = project.git.ask(
        "diff", "--no-ext-diff", "--no-textconv", "--stat=120", state.base, state.tip, "--"
    )
    brief = Brief(
        task=(*state.done, *state.in_tip)[-1],
        n=0,
        role="coach",
        prompt=project.redactor.text(draft_prompt(state, stat)),
        model=coach_model(state),
        answer=Draft,
    )
    environment, redact = project.environment, project.redactor.text
    folder = project.folders(plan_id).throwaway / "pull-request"
    make_folder(folder)
    try:
        opened = open_agent(settings.agent, sandbox, environment, redact=redact)
        async with opened as (agent, ledger):
            ledger.run = account
            guard = Guard(project.origin, project.journals.own_files(plan_id))
            watched = GuardedAgent(agent, guard) if sandbox.level == "checkout" else agent
            report = await SettledAgent(watched).work(brief, folder, lambda _activity: None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not vendor_of(settings.agent).is_metered(environment) and report.usage != e.Usage():
        free = Amount()
        ask = Ask(task=brief.task, role=ROLE, model=brief.model, most=free, least=free)
        if isinstance(held := account.reserve(ask), Held):
            account.settle(held.id, report.usage)
    return redacted(report, redact)
