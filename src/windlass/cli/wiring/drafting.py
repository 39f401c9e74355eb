"""A pull request's words by an agent: in the sandbox, through the meter, on the run's own budget.

Law: the agent gets an empty folder and a prompt, so there is nothing to change and nothing to find;
what it costs is recorded as of the run's last task, in the role `pull request`. Where it says
nothing that fits, there is no draft, and the pull request is opened without one.
"""

import shutil
from collections.abc import Callable

import anyio

from windlass.adapters.agents.settled import SettledAgent
from windlass.adapters.files import make_folder
from windlass.adapters.guard import Guard, GuardedAgent
from windlass.cli.wiring.facts import newest, now, refuse_short_journal
from windlass.cli.wiring.metering import employed, is_metered
from windlass.cli.wiring.project import Project, WritableJournal
from windlass.cli.wiring.refusing import refuse_without_credentials
from windlass.cli.wiring.telling import tell
from windlass.errors import BadInput, NoWalls
from windlass.events import model as e
from windlass.ports import Brief, Report
from windlass.runner.drafts import draft_prompt
from windlass.secrets import redacted
from windlass.state import RunState, apply
from windlass.state.budget import used_up
from windlass.state.quota import coach_model
from windlass.views.pull_request import Draft

ROLE = "pull request"


class _Account:
    """Writes down what is spent, in the journal of a run that is over."""

    def __init__(self, journal: WritableJournal, state: RunState) -> None:
        self.state = state
        self._journal = journal
        self._open: dict[str, str] = {}

    def reserve(self, task: str, role: str, model: str, usd: float) -> str | None:  # noqa: ARG002
        """Let a request go, unless the run's budget is used up."""
        if used_up(self.state) is not None:
            return None
        name = f"{self._journal.last + 1}"
        self._record(e.SpendReserved(at=now(), id=name, task=task, role=ROLE, model=model, usd=usd))
        self._open[name] = task
        return name

    def settle(self, reservation: str, usage: e.Usage) -> None:
        """Record what it came to."""
        if (task := self._open.pop(reservation, None)) is not None:
            self._record(e.SpendSettled(at=now(), id=reservation, task=task, usage=usage))

    def _record(self, fact: e.Event) -> None:
        for entry in self._journal.append([fact], expected=self._journal.last):
            self.state = apply(self.state, entry.event)


def drafted(project: Project, plan_id: str, say: Callable[[str], None]) -> Draft | None:
    """What an agent would say of the plan's last run; None where nothing came of it."""
    refuse_without_credentials(project.environment, "leave --by-agent out")
    with project.holding(plan_id) as journal:
        state = newest(list(journal.read()))
        if state is None:
            raise BadInput(f"plan {plan_id!r} was never run here")
        refuse_short_journal(project, plan_id, journal.last, state.run)
        account = _Account(journal, state)
        report = anyio.run(_asked, project, state, account)
        tell(project, account.state, journal.last, say)
    if isinstance(report.answer, Draft):
        return report.answer
    why = report.message or report.failure or "it said nothing that fits"
    say(f"the agent wrote nothing that could be used ({why}); the pull request goes without it")
    return None


async def _asked(project: Project, state: RunState, account: _Account) -> Report:
    plan_id, settings = state.plan.id, state.settings
    try:
        sandbox = project.sandbox(settings, f"{project.mark}/{plan_id}/{state.run}")
    except NoWalls as error:
        raise NoWalls(error.message, hint="leave --by-agent out") from error
    stat = project.git(
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
    credentials, redact = project.credentials(), project.redactor.text
    folder = project.folders(plan_id).throwaway / "pull-request"
    make_folder(folder)
    try:
        async with employed(settings.agent, sandbox, credentials, redact=redact) as (agent, books):
            books.runner = account
            guard = Guard(project.origin, project.own_files(plan_id))
            watched = GuardedAgent(agent, guard) if sandbox.level == "checkout" else agent
            report = await SettledAgent(watched).work(brief, folder, lambda _activity: None)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not is_metered(credentials) and report.usage != e.Usage():
        told = account.reserve(brief.task, ROLE, brief.model, 0.0)
        account.settle(told or "", report.usage)
    return redacted(report, redact)
