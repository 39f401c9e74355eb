"""`plan`: what Windlass reads in a plan, and how it was edited since its last run."""

from contextlib import suppress

import msgspec
from msgspec import Struct

from windlass.app.plans import last_run, read_plan
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import configure, refuse_settings_below
from windlass.core.engine import runs
from windlass.core.plan import Plan
from windlass.core.scheduler.estimates import Range, forecast
from windlass.core.settings import Settings
from windlass.core.state import RunState
from windlass.errors import BadInput, WindlassError
from windlass.views.edits import edit_lines
from windlass.views.outcome import is_finished
from windlass.views.outlook import Outlook, PlanFinding, outlook, plan_findings
from windlass.views.steps import unfinished


class PlannedTask(Struct, frozen=True, kw_only=True):
    """A task, as `--json` prints it."""

    id: str
    title: str
    stage: str | None
    depends_on: tuple[str, ...]
    acceptance_criteria: tuple[str, ...]
    files: tuple[str, ...]
    checks: tuple[str, ...]
    complexity: int | None


class PlanForecast(Struct, frozen=True, kw_only=True):
    """What a run is expected to take; null where too few tasks were merged here."""

    tasks: int
    """How many merged tasks it rests on."""
    seconds: Range | None
    usd: Range | None


class PlanSummary(Struct, frozen=True, kw_only=True):
    """A plan and the base of its next run, as `--json` prints them."""

    schema: int
    id: str
    title: str
    dialect: str
    base: str
    """The branch that a run would start from, or the commit if there is no branch."""
    tasks: tuple[PlannedTask, ...]
    e2e: str | None
    findings: tuple[PlanFinding, ...]
    """Warnings, and what was not used."""
    asks: tuple[str, ...]
    """Tasks that wait for a person's approval before they start."""
    forecast: PlanForecast


def plan(project: Project, typed: str | None = None, *, dialect: str | None = None) -> Plan:
    """Read a plan: a file, a folder, or the id of a plan that was run here.

    Inside a workspace the name may be left out. Raises ConfigError where a run would refuse to
    start because of settings in a sub-folder.
    """
    refuse_settings_below(project.root, project.directory)
    return read_plan(project, _name(project, typed), dialect=dialect)


def plan_edits(
    project: Project, typed: str | None = None, *, dialect: str | None = None
) -> tuple[str, ...]:
    """The edits of the plan since its last run, one line each."""
    found = plan(project, typed, dialect=dialect)
    return tuple(edit_lines(last_run(project, typed), found))


def plan_outlook(project: Project, found: Plan) -> Outlook:
    """What a run of the plan would meet, with the settings here and by what past runs took."""
    settings = _settings(project)
    past = [state for plan_id in project.journals.plans() for state in _runs(project, plan_id)]
    before = project.journals.last_run(found.id) if found.id in project.journals.plans() else None
    begun = unfinished(before)[0] if before is not None and not is_finished(before) else None
    return outlook(found, settings, forecast(past, found, settings.agents), begun)


def _runs(project: Project, plan_id: str) -> list[RunState]:
    with suppress(WindlassError):  # a journal that cannot be read is an error of its own plan only
        return runs(entry.event for entry in project.journals.entries(plan_id))
    return []


def _settings(project: Project) -> Settings:
    return configure(project.root, project.environment, {}, directory=project.directory).settings


def plan_summary(project: Project, found: Plan) -> PlanSummary:
    """The plan for programs, with the base of its next run."""
    base = project.git.base(_settings(project).base, found.id)
    seen = plan_outlook(project, found)
    return PlanSummary(
        schema=1,
        id=found.id,
        title=found.title,
        dialect=found.dialect,
        base=base.branch or base.commit,
        tasks=msgspec.convert(found.tasks, tuple[PlannedTask, ...], from_attributes=True),
        e2e=found.e2e,
        findings=plan_findings(seen.findings, found.path),
        asks=seen.asks,
        forecast=msgspec.convert(seen.forecast, PlanForecast, from_attributes=True),
    )


def _name(project: Project, typed: str | None) -> str:
    if typed is None and project.here is not None:
        return project.here.plan
    if typed is None:
        raise BadInput("name the plan", hint="windlass plan PLAN")
    return typed
