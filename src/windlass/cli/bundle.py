"""`windlass bundle [PLAN]`."""

import os
from pathlib import Path

import click

from windlass.app.bundle import BundleRequest, bundle
from windlass.cli.options import json_option, print_json, repo_option


@click.command("bundle")
@click.argument("plan", required=False)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write to this file  [default: .windlass/windlass-bundle.zip]",
)
@click.option("--with-texts", is_flag=True, help="Keep the texts of plans, agents and checks")
@json_option
@repo_option
def command(
    plan: str | None,
    output: Path | None,
    with_texts: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    repo: Path,
) -> int:
    """Pack the journal, configuration, versions and doctor's findings for a bug report.

    Without PLAN: of every plan that was run here. The bundle contains no file of your repository
    and no value of an environment variable. The texts of plans, agents and checks are left out
    unless you use --with-texts. Secrets, your name and your folders are replaced. A damaged
    journal is packed as far as it can be read. Windlass lists what is inside and changes nothing.

    \b
    Examples:
      windlass bundle
      windlass bundle docs/plan.md --output report.zip
    """  # noqa: D301
    request = BundleRequest(plan=plan, output=output, with_texts=with_texts)
    done = bundle(repo.resolve(), dict(os.environ), request)
    if as_json:
        print_json(done)
        return 0
    for name, size in done.files.items():
        click.echo(f"{size:>9}  {name}")
    for note in done.notes:
        click.echo(f"Note: {note}", err=True)
    click.echo(f"Wrote {done.path}. Check it before you send it.", err=True)
    return 0
