"""`windlass report [PLAN]`."""

import sys
import webbrowser
from pathlib import Path
from typing import get_args

import click

from windlass.app.report import Form, render, report, write_report
from windlass.cli.options import project_at, repo_option
from windlass.errors import BadInput


@click.command("report", short_help="Write an HTML or Markdown report of a run")
@click.argument("plan", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Form)),
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
    form: Form,
    output: str | None,
    show: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Write a report of the last run of PLAN: its result, who worked when, and the evidence.

    One file that needs nothing else: no network and no script; in light, in dark and on paper.
    Without PLAN: the only unfinished run, else the run that began last. Only looks: safe beside a
    live run, of which it shows what is known so far.

    \b
    windlass report --open
    windlass report plan.md --format markdown --output -
    """  # noqa: D301
    if show and output == "-":
        raise BadInput("--open needs a file to show", hint="leave `--output -` out")
    project = project_at(repo)
    if output == "-":
        text = render(report(project, plan), form)
        sys.stdout.buffer.write(text.encode(errors="replace"))
        return 0
    to = None if output is None else Path(output)
    path = write_report(project, plan, form=form, output=to)
    click.echo(str(path))
    if show and not webbrowser.open(path.as_uri()):
        click.echo(f"windlass: no browser was found; open {path.as_uri()}", err=True)
    return 0
