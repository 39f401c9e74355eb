"""`windlass mcp`."""

import os
from pathlib import Path

import click

from windlass.app.wiring import Project
from windlass.app.wiring.installation import how_to_add
from windlass.errors import BadInput


@click.command("mcp")
@click.option(
    "--allow-actions",
    is_flag=True,
    help="Also let clients answer, approve, retry, pause and stop for you",
)
@click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="Use the repository around this folder  [default: the current one]",
)
def command(allow_actions: bool, repo: Path) -> int:  # noqa: FBT001
    """Serve the state of runs over the Model Context Protocol (MCP).

    Configure `windlass mcp` in your client as a server with the stdio transport. The tools status,
    task, log, diff, costs and wait are read-only. --allow-actions adds answer, approve, retry,
    pause and stop; no tool starts, resumes or lands a run. Needs the extra `mcp`.

    \b
    Example:
      windlass mcp --repo ~/project
    """  # noqa: D301
    try:
        from windlass.mcp.server import serve
    except ImportError as error:
        raise BadInput(
            f"the MCP server needs a package that is not installed: {error.name or error}",
            hint=f"install it: {how_to_add('mcp')}",
        ) from error
    serve(Project(repo.resolve(), dict(os.environ)), allow_actions=allow_actions)
    return 0
