"""`windlass bundle [PLAN]`."""

import os
from pathlib import Path

import click

from windlass.app.bundle import BundleRequest, bundle
from windlass.cli.options import repo_option


@click.command("bundle", short_help="Pack what a bug report needs, scrubbed")
@click.argument("plan", required=False)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write it here  [default: .windlass/windlass-bundle.zip]",
)
@click.option("--with-texts", is_flag=True, help="Keep what plans, agents and checks said")
@repo_option
def command(plan: str | None, output: Path | None, with_texts: bool, repo: Path) -> int:  # noqa: FBT001
    """Pack journal, configuration, versions and doctor's findings for a bug report.

    Without PLAN: of every plan that was run here. No file of your repository is in it and no value
    of a variable; the words of plans, agents and checks are left out unless --with-texts keeps
    them; secrets, your name and your folders are replaced. A journal that is damaged is packed as
    far as it can be read. Only looks; what is inside is listed.
    """
    request = BundleRequest(plan=plan, output=output, with_texts=with_texts)
    done = bundle(repo.resolve(), dict(os.environ), request)
    for name, size in done.files.items():
        click.echo(f"{size:>9}  {name}")
    for note in done.notes:
        click.echo(f"Note: {note}", err=True)
    click.echo(f"Wrote {done.path}. Look into it before you send it.", err=True)
    return 0
