"""`windlass diff [TASK|PLAN]`."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from msgspec.structs import replace

from windlass.app.diff import diff
from windlass.cli.options import json_option, print_json, project_at, repo_option
from windlass.cli.screens.choice import wants_colour
from windlass.cli.screens.terminal import coloured
from windlass.core.plan.names import escaped

_HEADS = ("diff ", "index ", "--- ", "+++ ", "new file ", "deleted file ")
_COLOURS = {"@": "36", "+": "32", "-": "31"}


@click.command("diff")
@click.argument("what", metavar="[TASK|PLAN]", required=False)
@click.option("--stat", is_flag=True, help="Show only the changed files and line counts")
@json_option
@repo_option
def command(what: str | None, stat: bool, as_json: bool, repo: Path) -> int:  # noqa: FBT001
    """Show what TASK changed, or all merged work of a run against the commit it started from.

    For a merged task this is what its merge brought; before that, its newest commit against the
    commit it started from. TASK may be written PLAN:TASK if several plans were run here. With PLAN,
    or without any name, it is the whole run: the only unfinished one, else the newest. Inside a
    task's workspace it is that task.

    On a terminal, control characters are escaped; in a file or a pipe the patch is byte for byte
    as git made it, for `git apply`.

    \b
    Examples:
      windlass diff
      windlass diff 1.2 --stat
    """  # noqa: D301
    project = project_at(repo)
    found = diff(project, what, stat=stat)
    patch = found.text
    if as_json:
        # JSON holds no bytes that are not UTF-8; without --json they are as git made them.
        readable = patch.encode(errors="surrogateescape").decode(errors="replace")
        print_json(replace(found, text=readable))
    elif sys.stdout.isatty():
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
