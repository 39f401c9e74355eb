"""`windlass init`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias

import click

from windlass.app import skills
from windlass.app.init import (
    Proposed,
    has_settings,
    how_it_failed,
    init,
    printable,
    try_settings,
)
from windlass.app.sandbox_level import INSTALL_WALLS
from windlass.app.trial import Attempt, Kind, Tried, Watch
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import FILE
from windlass.cli.options import json_option, print_json, project_at, repo_option
from windlass.cli.person import is_attended
from windlass.core.excerpts import gist
from windlass.errors import Unanswered
from windlass.views.words import duration, harmless, plural

_HELP = f"""\
Detect the project's setup and checks, show them with their reasons, and write windlass.toml.

Nothing is run and nothing is installed, unless you say --try: then setup and each check run once in
the sandbox, on a throwaway checkout of HEAD. Where windlass.toml exists, --try tries what it says
and writes nothing. Without a terminal and without --yes, the file is printed and not written.

{skills.ABOUT}
\b
Examples:
  windlass init
  windlass init {skills.FLAG}
"""

_MOST = 20
"""Lines of a failed command that are shown."""


_Say: TypeAlias = Callable[..., None]
"""`click.echo`, to stdout; to stderr where stdout has JSON."""


@click.command("init", help=_HELP)
@click.option("--yes", is_flag=True, help="Write without asking")
@click.option("--force", is_flag=True, help="Replace existing files")
@click.option("--try", "trying", is_flag=True, help="Try setup and checks once, in the sandbox")
@click.option(skills.FLAG, "only_skills", is_flag=True, help=skills.HELP)
@json_option
@repo_option
def command(
    yes: bool,  # noqa: FBT001
    force: bool,  # noqa: FBT001
    trying: bool,  # noqa: FBT001
    only_skills: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    project = project_at(repo)
    if only_skills:
        return _write_skills(project, force=force, as_json=as_json)
    say = partial(click.echo, err=as_json)
    watch = Watch(begins=partial(_begin, say), starts=partial(_start, say), ends=partial(_end, say))
    if trying and not force and has_settings(project):
        attempt = try_settings(project, watch)
        if as_json:
            print_json(attempt)
        return _report(say, attempt)
    asks = not yes and is_attended()
    done = init(
        project,
        force=force,
        show=partial(_show, say) if yes or asks else lambda _proposed: None,
        confirm=partial(_confirm, say, yes=yes, force=force),
        trying=watch if trying else None,
    )
    code = 0 if done.proposed.attempt is None or done.proposed.attempt.works else 1
    if as_json:
        print_json(done)
        return code
    if done.path is None:
        click.echo("Nothing was written.")
        return code
    click.echo(f"Wrote {done.path}")
    tries = "" if trying else ", which tries these checks on the base first"
    click.echo(f"Next: windlass run PLAN{tries}")
    return code


def _confirm(say: _Say, proposed: Proposed, *, yes: bool, force: bool) -> bool:
    """Show what became of the commands, and ask; without a terminal, print the file and refuse."""
    works = True
    if proposed.attempt is not None:
        works = _report(say, proposed.attempt) == 0
    if not yes and not is_attended():
        say(proposed.text, nl=False)
        cure = "windlass init --yes --force" if force else "windlass init --yes"
        raise Unanswered(f"{FILE} was not written without asking", hint=f"run `{cure}`")
    asked = f"Write {FILE}?" if works else f"Write {FILE} all the same?"
    return yes or click.confirm(asked, default=works, err=True)


def _write_skills(project: Project, *, force: bool, as_json: bool) -> int:
    done = skills.write_skills(project, force=force)
    if as_json:
        print_json({"files": done})
        return 0
    for each in done:
        click.echo(f"{each.how:>8}  {each.path}")
    if any(each.how == "kept" for each in done):
        cure = f"`windlass init {skills.FLAG} --force` replaces them"
        click.echo(f"Kept files were edited; {cure}", err=True)
    click.echo(f"Next: {skills.NEXT}")
    return 0


def _show(say: _Say, proposed: Proposed) -> None:
    proposal = proposed.proposal
    if not proposal.checks:
        say("No checks found: Windlass knows no test runner that this project uses.")
    for kind, commands in (("setup", proposal.setup), ("check", proposal.checks)):
        for each in commands:
            say(f"{kind:>7}  {each.line}\n{'':>7}  {printable(each.because)}")
    for warning in (*proposed.missing, *proposal.notes):
        say(f"{'note':>7}  {printable(warning)}")
    reason = proposed.why_no_walls
    if reason is None:
        say(f"{'sandbox':>7}  {proposed.walls}: agents and checks run behind walls")
    else:
        say(f"{'sandbox':>7}  no walls work here ({reason}): a run asks before it starts")
        say(f"{'':>7}  {INSTALL_WALLS}")
        say(f"{'':>7}  or run without walls: `windlass run PLAN --sandbox checkout`")


# What is told while commands are tried


def _begin(say: _Say, commit: str, level: str) -> None:
    say(f"Trying the commands on a checkout of {commit[:10]}, in the sandbox {level}:")


def _start(say: _Say, kind: Kind, command: str) -> None:
    say(f"{kind:>7}  {printable(command)}")


def _end(say: _Say, tried: Tried) -> None:
    result = tried.result
    took = duration(result.seconds or 0)
    if tried.works:
        tests = f", {plural(result.tests, 'test')}" if result.tests else ""
        say(f"{'':>7}  works, {took}{tests}")
        return
    say(f"{'':>7}  {how_it_failed(result)}, {took}")
    found = gist(harmless(result.output), _MOST)
    for line in found.lines:
        say(f"{'':>9}{line}".rstrip())
    if found.left:
        say(f"{'':>9}… {plural(found.left, 'more line')}")


def _report(say: _Say, attempt: Attempt) -> int:
    """Say what worked, and what the commands asked of the network."""
    if attempt.reached:
        say(f"{'network':>7}  setup reached {', '.join(attempt.reached)}")
        listed = ", ".join(f'"{host}"' for host in attempt.reached)
        say(f"{'':>7}  to let setup of unmerged work reach them too, add under [sandbox]:")
        say(f"{'':>7}  hosts = [{listed}]")
    if attempt.refused:
        say(f"{'network':>7}  refused: {', '.join(attempt.refused)}")
        say(f"{'':>7}  name what you trust in [sandbox] hosts; checks have no network")
    if not attempt.tried:
        say("There is nothing to try: no setup and no checks.")
        return 0
    worked = sum(each.works for each in attempt.tried)
    left = f"; {plural(len(attempt.untried), 'check')} not tried" if attempt.untried else ""
    say(f"{worked} of {plural(len(attempt.tried), 'command')} worked{left}.")
    return 0 if attempt.works else 1
