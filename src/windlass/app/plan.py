"""`plan`: what Windlass reads in a plan, and how it was edited since its last run."""

import msgspec
from msgspec import Struct

from windlass.app.plans import last_run, read_plan
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import configure, refuse_settings_below
from windlass.core.plan import Plan
from windlass.errors import BadInput
from windlass.views.edits import edit_lines


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


def plan_summary(project: Project, found: Plan) -> PlanSummary:
    """The plan for programs, with the base of its next run."""
    settings = configure(
        project.root, project.environment, {}, directory=project.directory
    ).settings
    base = project.git.base(settings.base, found.id)
    return PlanSummary(
        schema=1,
        id=found.id,
        title=found.title,
        dialect=found.dialect,
        base=base.branch or base.commit,
        tasks=msgspec.convert(found.tasks, tuple[PlannedTask, ...], from_attributes=True),
        e2e=found.e2e,
    )


def _name(project: Project, typed: str | None) -> str:
    if typed is None and project.here is not None:
        return project.here.plan
    if typed is None:
        raise BadInput("name the plan", hint="windlass plan PLAN")
    return typed
