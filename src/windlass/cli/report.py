"""`windlass report [PLAN]`."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Literal

import click

from windlass.cli.finding import never_run, plan_id_of
from windlass.cli.options import repo_option
from windlass.cli.wiring import Project
from windlass.cli.wiring.reporting import gathered, put
from windlass.errors import BadInput
from windlass.views.outcome import is_finished
from windlass.views.report import markdown, page

_SUFFIX = {"html": "html", "markdown": "md"}


@click.command("report", short_help="Tell a run on one page, to keep or to hand on")
@click.argument("plan", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(("html", "markdown")),
    default="html",
    show_default=True,
    help="Write a page, or Markdown",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Write it there; - is standard output  [default: beside the run's state]",
)
@click.option("--open", "show", is_flag=True, help="Show it in your browser")
@repo_option
def command(
    plan: str | None,
    form: Literal["html", "markdown"],
    output: str | None,
    show: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Tell the last run of PLAN on one page: what came of it, who worked when, and the evidence.

    One file that needs nothing else: no network, no script to be read, light, dark and on paper.
    Without PLAN: the only unfinished run, else the run that began last. Only looks: safe beside a
    live run, of which it tells what is known so far.

    \b
    windlass report --open
    windlass report plan.md --format markdown --output -
    """  # noqa: D301
    if show and output == "-":
        raise BadInput("--open needs a file to show", hint="leave `--output -` out")
    project = Project(repo.resolve(), dict(os.environ))
    plan_id = plan_id_of(project, plan) if plan is not None else _meant(project)
    report = gathered(project, plan_id)
    text = page(report) if form == "html" else markdown(report)
    if output == "-":
        sys.stdout.buffer.write(text.encode(errors="replace"))
        return 0
    own = project.folders(plan_id).run(report.run) / f"report.{_SUFFIX[form]}"
    path = own if output is None else Path(output).absolute()
    put(project, path, text, own=output is None)
    click.echo(str(path))
    if show and not webbrowser.open(path.as_uri()):
        click.echo(f"windlass: no browser was found; open {path.as_uri()}", err=True)
    return 0


def _meant(project: Project) -> str:
    """The plan whose run is not finished, where there is one such; else the one that ran last."""
    states = [state for each in project.plans() if (state := project.last_run(each)) is not None]
    if not states:
        raise never_run(project)
    unfinished = [state for state in states if not is_finished(state)]
    if len(unfinished) == 1:
        return unfinished[0].plan.id
    return max(states, key=lambda state: state.started_at).plan.id
