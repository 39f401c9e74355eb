"""`windlass doctor`."""

import os
from pathlib import Path

import click

from windlass.app.doctor import diagnosis_lines, doctor
from windlass.cli.options import json_option, print_json, repo_option
from windlass.cli.screens.terminal import room
from windlass.views.outcome import Exit


@click.command("doctor")
@click.option("--offline", is_flag=True, help="Do not ask whether the provider can be reached")
@json_option
@repo_option
def command(offline: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Check the machine, the repository, the plans run in it and every setting.

    Shows what is wrong with the fix for it, and where each setting comes from. Asks the agent's
    provider once, at no cost, through your proxies and with your certificates. Changes nothing.
    Exits with 0 if a run can start, with 2 if something must be fixed first.

    \b
    Example:
      windlass doctor
    """  # noqa: D301
    diagnosis = doctor(repo.resolve(), dict(os.environ), offline=offline)
    if as_json:
        print_json(diagnosis)
    else:
        click.echo("\n".join(diagnosis_lines(diagnosis, width=room())))
    return Exit.COMPLETED if diagnosis.usable else Exit.BAD_INPUT
