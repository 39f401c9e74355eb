"""`windlass report [PLAN]`."""

import sys
import webbrowser
from pathlib import Path
from typing import get_args

import click

from windlass.app.report import Form, render, report, write_report
from windlass.cli.options import json_option, print_result, project_at, repo_option
from windlass.errors import BadInput


@click.command("report")
@click.argument("plan", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(get_args(Form)),
    default="html",
    show_default=True,
    help="Choose the format",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Write to this file; - is standard output  [default: next to the run's state]",
)
@click.option("--open", "show", is_flag=True, help="Open it in your browser")
@json_option
@repo_option
def command(
    plan: str | None,
    form: Form,
    output: str | None,
    show: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Write a report of the last run of PLAN: its result, a timeline, and the evidence.

    The report is one file that works without network and script, in light, in dark and on paper.
    Without PLAN: the only unfinished run, else the newest. Safe during a live run, which it shows
    as it is so far.

    \b
    Examples:
      windlass report --open
      windlass report plan.md --format markdown --output -
    """  # noqa: D301
    if show and output == "-":
        raise BadInput("--open needs a file", hint="leave out `--output -`")
    project = project_at(repo)
    if output == "-":
        text = render(report(project, plan), form)
        if as_json:
            return print_result({"format": form, "text": text}, "", as_json=True)
        sys.stdout.buffer.write(text.encode(errors="replace"))
        return 0
    to = None if output is None else Path(output)
    path = write_report(project, plan, form=form, output=to)
    print_result({"format": form, "path": path}, str(path), as_json=as_json)
    if show and not webbrowser.open(path.as_uri()):
        click.echo(f"windlass: no browser found; open {path.as_uri()}", err=True)
    return 0
