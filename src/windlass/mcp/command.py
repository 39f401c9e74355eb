"""`windlass mcp`."""

import os
from pathlib import Path

import click

from windlass.app.wiring import Project
from windlass.errors import BadInput


@click.command("mcp", short_help="Serve how runs stand to other programs, by MCP")
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Also let them answer, approve, retry, pause and stop in your place",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="Work in the repository around this folder  [default: the current one]",
)
def command(allow_actions: bool, repo: Path) -> int:  # noqa: FBT001
    """Serve how runs here stand, by the Model Context Protocol, to whoever started it.

    Speaks over standard input and output until that ends. The tools status, task, log, diff, costs
    and wait only look. With --allow-actions there are answer, approve, retry, pause and stop as
    well; none starts or resumes a run, or lands anything. Needs the extra: windlass[mcp].

    Give your client `windlass mcp` as the command of a server that speaks over standard input.
    """
    try:
        from windlass.mcp.server import serve
    except ImportError as error:
        raise BadInput(
            f"the MCP server needs a package that is not installed: {error.name or error}",
            hint="pip install 'windlass[mcp]'",
        ) from error
    serve(Project(repo.resolve(), dict(os.environ)), allow_actions=allow_actions)
    return 0
