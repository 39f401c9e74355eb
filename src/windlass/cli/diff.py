"""`windlass diff [TASK]`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from windlass.app.diff import diff
from windlass.cli.options import project_at, repo_option
from windlass.cli.screens.choice import wants_colour
from windlass.cli.screens.terminal import coloured
from windlass.core.plan.names import escaped

_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file ", "deleted file ")
_COLOURS = {"@": "36", "+": "32", "-": "31"}


@click.command("diff")
@click.argument("task", required=False)
@click.option("--stat", is_flag=True, help="Show only the changed files and line counts")
@repo_option
def command(task: str | None, stat: bool, repo: Path) -> int:  # noqa: FBT001
    """Show what TASK changed: its newest commit against the commit it started from.

    TASK may be written PLAN:TASK if several plans were run here; inside its workspace you can
    leave it out. On a terminal, control characters are escaped; in a file or a pipe the patch is
    byte for byte as git made it, for `git apply`.
    """
    project = project_at(repo)
    patch = diff(project, task, stat=stat).text
    if sys.stdout.isatty():
        colour = wants_colour(project.environment, terminal=True)
        click.echo("\n".join(_escaped(patch, colour=colour)), nl=False)
    else:
        click.echo(patch.encode(errors="surrogateescape"), nl=False)
    return 0


def _escaped(patch: str, *, colour: bool) -> Iterator[str]:
    """The lines with control characters escaped, in our own colours."""
    for line in patch.split("\n"):
        shown = "\t".join(map(escaped, line.split("\t")))
        bold = shown.startswith(_HEADS)
        code = "1" if bold else _COLOURS.get(shown[:1], "")
        yield coloured(shown, code) if colour else shown
