"""`windlass doctor`."""

import os
from pathlib import Path

import click

from windlass.app.doctor import diagnosis_lines, doctor
from windlass.cli.options import json_option, print_json, repo_option
from windlass.cli.screens.terminal import room


@click.command("doctor", short_help="Look at the machine, the repository and every setting")
@json_option
@repo_option
def command(as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Look at the machine, the repository, the plans run in it and every setting.

    Only looks. Exit code 0 when a run could be started, 2 when something must be mended first.
    """
    diagnosis = doctor(repo.resolve(), dict(os.environ))
    if as_json:
        print_json(diagnosis)
    else:
        click.echo("\n".join(diagnosis_lines(diagnosis, width=room())))
    return 0 if diagnosis.usable else 2
