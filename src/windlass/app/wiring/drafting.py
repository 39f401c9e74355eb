"""A pull request's words by an agent: in the sandbox, through the meter, on the run's own budget.

Law: the agent gets an empty folder and a prompt, so there is nothing to change and nothing to find;
what it costs is recorded as of the run's last task, in the role `pull request`. Where it says
nothing that fits, there is no draft, and the pull request is opened without one.
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
from windlass.app.wiring.metering import employed
from windlass.app.wiring.project import Project
from windlass.app.wiring.state_files import tell
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
    """Writes down what is spent, in the journal of a run that is over."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._open: dict[str, str] = {}

    def reserve(self, ask: Ask) -> Held | No:
        """Set money aside for a request, if the run's budget has room for it."""
        granted = grant(self._now(), ask.most, ask.least)
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
        """Record what the request has come to so far."""
        if (task := self._open.get(id_)) is not None:
            self._session.note(e.SpendStreamed(at=now(), id=id_, task=task, usage=usage))

    def settle(self, id_: str, usage: e.Usage, *, broke_off: bool = False) -> None:
        """Record what it came to."""
        if (task := self._open.pop(id_, None)) is not None:
            fact = e.SpendSettled(at=now(), id=id_, task=task, usage=usage, broke_off=broke_off)
            self._session.note(fact)

    def refuse(self, ask: Ask) -> None:
        """Record nothing: the run is over, and goes on without a draft."""

    def _now(self) -> RunState:
        """The run, with what an earlier process left in flight written off."""
        state = self._session.state
        own = {id_: each for id_, each in state.held.items() if id_ in self._open}
        lost = {id_: each for id_, each in state.held.items() if id_ not in self._open}
        return replace(written_off(replace(state, held=lost)), held=own)


def drafted(project: Project, plan_id: str, say: Callable[[str], None]) -> Draft | None:
    """What an agent would say of the plan's last run; None where nothing came of it."""
    with project.journals.session(plan_id) as session:
        if session.before is None:
            raise BadInput(f"plan {plan_id!r} was never run here")
        refuse_without_credentials(
            session.state.settings.agent, project.environment, "leave --by-agent out"
        )
        refuse_short_journal(project, plan_id, session)
        report = anyio.run(_asked, project, session.state, _Account(session))
        tell(project, session.state, session.seq, say)
    if isinstance(report.answer, Draft):
        return report.answer
    why = report.message or report.failure or "it said nothing that fits"
    say(f"the agent wrote nothing that could be used ({why}); the pull request goes without it")
    return None


async def _asked(project: Project, state: RunState, account: _Account) -> Report:
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
        async with employed(settings.agent, sandbox, environment, redact=redact) as (agent, books):
            books.runner = account
            guard = Guard(project.origin, project.journals.own_files(plan_id))
            watched = GuardedAgent(agent, guard) if sandbox.level == "checkout" else agent
            report = await SettledAgent(watched).work(brief, folder, lambda _activity: None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not vendor_of(settings.agent).is_metered(environment) and report.usage != e.Usage():
        free = Amount()
        ask = Ask(task=brief.task, role=ROLE, model=brief.model, most=free, least=free)
        if isinstance(booked := account.reserve(ask), Held):
            account.settle(booked.id, report.usage)
    return redacted(report, redact)
