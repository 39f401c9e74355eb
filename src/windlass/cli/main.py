"""The entry: finds the command, runs it, and turns whatever goes wrong into one clear line."""

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

COMMANDS = {
    "init": "Detect the project's checks and write windlass.toml",
    "plan": "Show what Windlass reads in a plan",
    "run": "Run a plan to verified, merged commits",
    "resume": "Go on with a run that was interrupted, stopped or needs you",
    "feature-build": "Run one task file of tasks/ by its id",
    "status": "Show how a run stands",
    "log": "Show what happened in a run",
    "history": "List past runs",
    "costs": "Show what was paid, and for what",
    "report": "Write an HTML or Markdown report of a run",
    "diff": "Show what a task changed",
    "approve": "Let a complex task start, or a stage pass",
    "answer": "Answer what a task asks",
    "retry": "Have a task or a stage done once more",
    "reset": "Have a task begin anew from the tip",
    "take": "Work on a task yourself, in its workspace",
    "give": "Hand a task back that you had taken",
    "recover": "Rebuild a lost or damaged journal from git",
    "adopt": "Take over what another tool has done of a plan",
    "pause": "Pause a live run at the end of its turns",
    "stop": "Stop a live run; it can be resumed",
    "abort": "Give a run up for good",
    "land": "Move your branch to what was merged",
    "pr": "Open or update a pull request of what was merged",
    "clean": "Delete workspaces and refs that are merged or pinned",
    "doctor": "Look at the machine, the repository and every setting",
    "mcp": "Serve how runs stand to other programs, by MCP",
    "bundle": "Pack what a bug report needs, scrubbed",
    "selftest": "Prove on this machine that a crash loses nothing",
    "demo": "Run a small plan offline, with a scripted model",
}
"""Every command with its help line, so that --help need not import them."""


_OTHER_FACES = {"mcp": "windlass.mcp.command", "selftest": "windlass.selftest.command"}
"""Commands that start another face of Windlass, each with its module."""


def module_of(command: str) -> str:
    """The module that a command is in."""
    return _OTHER_FACES.get(command, f"windlass.cli.{command.replace('-', '_')}")


class _Unread(Exception):
    """Whoever read our output has read enough."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's form
        """Every command, in the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(module_of(cmd_name)).command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click would make a failed task of a reader who has gone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as gone:
            raise _Unread from gone

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with `windlass demo`, which needs no key and no network.",
)
@click.version_option(package_name="windlass")
def cli() -> None:
    """Haul a plan of coding tasks to verified, merged commits with AI coding agents.

    State survives anything: interrupted at any moment, a run goes on with `windlass resume`.

    \b
    Exit codes: 0 completed, 1 a task failed, 2 bad usage or input,
    3 a person is needed, 4 stopped or paused, and resumable,
    5 another run holds the lock, 6 a limit stopped it.
    """  # noqa: D301  click's own mark for "leave these lines as they are"


def main() -> None:
    """Run the command line and exit with its code."""
    _open_closed_streams()
    code = call(sys.argv[1:])
    _flush_streams()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Somebody may have closed stdin, stdout or stderr: no file of ours is to get their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _flush_streams() -> None:
    """As Python would at exit, which adds a complaint and a code of its own where it cannot."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            from windlass.cli.screens.terminal import silence

            silence(stream)


def call(args: list[str]) -> int:
    """The exit code of a command line."""
    return code_of(lambda: cli.main(args=args, prog_name="windlass", standalone_mode=False))


def code_of(command: Callable[[], Any]) -> int:
    """The exit code of a command, whatever goes wrong in it said in one line."""
    debugging = bool(os.environ.get("WINDLASS_DEBUG"))
    try:
        code: Any = command()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as wrong:
        with suppress(OSError):
            wrong.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return _said("interrupted", 4)
    except _Unread:
        return 0
    except OSError as error:
        return _unwritable(error)
    except Exception as error:
        if debugging:
            raise
        return _explained(error)
    return code if isinstance(code, int) else 0


def _unwritable(error: OSError) -> int:
    if hasattr(error, "exit_code"):  # one of Windlass's own, with a cure of its own
        return _explained(error)
    where = f": {error.filename}" if error.filename else ""
    cure = "mend that, and call it again; nothing recorded is lost"
    return _said(f"{error.strerror or error}{where}; {cure}", 4)


def _explained(error: Exception) -> int:
    from windlass.errors import WindlassError

    if isinstance(error, WindlassError):
        return _said(str(error), error.exit_code)
    name = type(error).__name__
    cure = "nothing recorded is lost; WINDLASS_DEBUG=1 shows where it happened"
    return _said(f"a defect of Windlass, {name}: {error}; {cure}", 1)


def _said(text: str, code: int) -> int:
    from windlass.views.words import one_line

    # What is quoted in a message, a file's name or an answer of git, may be of any shape; and
    # where nobody can be told, the code tells.
    with suppress(OSError):
        click.echo(f"windlass: {one_line(text, 2000)}", err=True)
    return code
