"""`windlass init`."""

from functools import partial
from pathlib import Path

import click

from windlass.app import skills
from windlass.app.init import Proposed, init, printable
from windlass.app.sandbox_level import INSTALL_WALLS
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import FILE
from windlass.cli.options import project_at, repo_option
from windlass.cli.person import is_attended
from windlass.errors import Unanswered

_HELP = f"""\
Detect the project's checks, show them with the reason for each, and write windlass.toml.

Nothing is run and nothing is installed. Without a terminal and without --yes, the file is
printed and not written.

{skills.ABOUT}"""


@click.command("init", help=_HELP)
@click.option("--yes", is_flag=True, help="Write without asking")
@click.option("--force", is_flag=True, help="Replace existing files")
@click.option(skills.FLAG, "only_skills", is_flag=True, help=skills.HELP)
@repo_option
def command(yes: bool, force: bool, only_skills: bool, repo: Path) -> int:  # noqa: FBT001
    project = project_at(repo)
    if only_skills:
        return _write_skills(project, force=force)
    done = init(project, force=force, confirm=partial(_confirm, yes=yes, force=force))
    if done.path is None:
        click.echo("Nothing was written.")
        return 0
    click.echo(f"Wrote {done.path}")
    click.echo("Next: windlass run PLAN, which tries these checks on the base first")
    return 0


def _confirm(proposed: Proposed, *, yes: bool, force: bool) -> bool:
    """Show the findings and ask; without a terminal, print the file and refuse."""
    if not yes and not is_attended():
        click.echo(proposed.text, nl=False)
        cure = "windlass init --yes --force" if force else "windlass init --yes"
        raise Unanswered(f"{FILE} was not written without asking", hint=f"run `{cure}`")
    _show(proposed)
    return yes or click.confirm(f"Write {FILE}?", default=True, err=True)


def _write_skills(project: Project, *, force: bool) -> int:
    done = skills.write_skills(project, force=force)
    for each in done:
        click.echo(f"{each.how:>8}  {each.path}")
    if any(each.how == "kept" for each in done):
        cure = f"`windlass init {skills.FLAG} --force` replaces them"
        click.echo(f"Kept files were edited; {cure}", err=True)
    click.echo(f"Next: {skills.NEXT}")
    return 0


def _show(proposed: Proposed) -> None:
    proposal = proposed.proposal
    if not proposal.checks:
        click.echo("No checks found: Windlass knows no test runner that this project uses.")
    for kind, commands in (("check", proposal.checks), ("setup", proposal.setup)):
        for each in commands:
            click.echo(f"{kind:>7}  {each.line}\n{'':>7}  {printable(each.because)}")
    for warning in (*proposed.missing, *proposal.notes):
        click.echo(f"{'note':>7}  {printable(warning)}")
    reason = proposed.why_no_walls
    if reason is None:
        click.echo(f"{'sandbox':>7}  {proposed.walls}: agents and checks run behind walls")
    else:
        click.echo(f"{'sandbox':>7}  no walls work here ({reason}): a run asks before it starts")
        click.echo(f"{'':>7}  {INSTALL_WALLS}")
        click.echo(f"{'':>7}  or run without walls: `windlass run PLAN --sandbox checkout`")
