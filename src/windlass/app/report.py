"""`report`: a plan's last run on one page, from its journal and git."""

from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from windlass.app.plans import newest_plan
from windlass.app.wiring import Project, now
from windlass.core.secrets import redacted
from windlass.errors import BadInput
from windlass.ports import Changes
from windlass.views.report import Report, compared, diffed, markdown, report_of

Form = Literal["html", "markdown"]
_SUFFIXES: dict[Form, str] = {"html": "html", "markdown": "md"}


def report(project: Project, plan: str | None = None) -> Report:
    """The report of a plan's last run; changes nothing, and is safe during a live run.

    Without a name: of the only unfinished run, else of the newest.
    """
    plan_id = newest_plan(project, plan)
    # Asked before reading: a process that has ended by now has written everything.
    live = project.journals.live_pid(plan_id) is not None
    entries, state = project.journals.entries(plan_id), project.journals.last_run(plan_id)
    if state is None:
        raise BadInput(
            f"plan {plan_id!r} was never run here", hint=f"start it: windlass run {plan_id}"
        )
    changes = project.git.changes(compared(state))
    wanted = {pair: changes[pair] for pair in diffed(state) if pair in changes}
    found = report_of(
        entries,
        plan=plan_id,
        workspaces=str(project.folders(plan_id).workspaces.relative_to(project.root)),
        live=live and state.ended is None,
        now=now(),
        ground=project.git.ground(state),
        changes=_shown(project, changes),
        patches=project.git.patches(wanted),
    )
    assert found is not None  # noqa: S101  there is a state, so there is a run
    # A text may have been recorded before Windlass knew that it is a secret.
    return redacted(found, project.redactor.text, kept=())


def render(found: Report, form: Form = "html") -> str:
    if form == "markdown":
        return markdown(found)
    from windlass.views.report.page import page

    return page(found)


def write_report(
    project: Project, plan: str | None = None, *, form: Form = "html", output: Path | None = None
) -> Path:
    """Write the report to a file, by default beside the run's state; return its path."""
    plan_id = newest_plan(project, plan)
    found = report(project, plan_id)
    own = project.folders(plan_id).run(found.run) / f"report.{_SUFFIXES[form]}"
    path = own if output is None else output.absolute()
    project.files.write_named(
        path, render(found, form).encode(errors="replace"), own=output is None
    )
    return path


def _shown(project: Project, changes: Changes) -> Changes:
    """The changed files; their names come from git, so they are redacted here."""
    hidden = project.redactor.text
    return {
        pair: tuple(replace(change, path=hidden(change.path)) for change in found)
        for pair, found in changes.items()
    }
