"""The entry: finds the command, runs it, and prints every error as one clear line."""

import importlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from windlass.views.outcome import Exit

COMMANDS = {
    "init": "Detect the project's checks and write windlass.toml",
    "plan": "Show what Windlass reads in a plan",
    "run": "Run a plan to verified, merged commits",
    "resume": "Continue a run that was interrupted, stopped or needs you",
    "feature-build": "Run one task file in tasks/ by its id",
    "status": "Show the state of a run",
    "log": "Show what happened in a run",
    "history": "List past runs",
    "costs": "Show costs by plan, task, role and model",
    "report": "Write an HTML or Markdown report of a run",
    "diff": "Show what a task changed",
    "approve": "Let a task start, accept a stale one, or pass a stage",
    "answer": "Answer a task's question",
    "retry": "Retry an abandoned task, or redo one whose text has changed",
    "reset": "Start a task again from the tip",
    "take": "Work on a task yourself, in its workspace",
    "give": "Hand back a task that you took",
    "recover": "Restore a lost or damaged journal from git",
    "adopt": "Import the progress that another tool made on a plan",
    "pause": "Pause a live run at the end of its turns",
    "stop": "Stop a live run; it can be resumed",
    "abort": "Abort a run for good",
    "land": "Move your branch to the merged work",
    "pr": "Open or update a pull request with the merged work",
    "clean": "Delete workspaces and refs that are merged or pinned",
    "doctor": "Check the machine, the repository and every setting",
    "mcp": "Serve the state of runs to other programs over MCP",
    "bundle": "Pack a scrubbed bundle for a bug report",
    "selftest": "Prove on this machine that a crash loses nothing",
    "demo": "Run a small plan offline, with a scripted model",
}
"""Every command with its help line, so that --help imports none of them."""


_OTHER_FACES = {"mcp": "windlass.mcp.command", "selftest": "windlass.selftest.command"}
"""Commands that start another face of Windlass, each with its module."""


def module_of(command: str) -> str:
    """The module that a command is in."""
    return _OTHER_FACES.get(command, f"windlass.cli.{command.replace('-', '_')}")


class _Unread(Exception):
    """The reader of our output has closed the pipe."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's form
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(module_of(cmd_name)).command
        command.short_help = COMMANDS[cmd_name]  # for shell completion
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click would exit with 1 where the reader has closed the pipe."""
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
    """Run a plan of coding tasks to verified, merged commits with AI coding agents.

    A run survives interruption at any moment; `windlass resume` continues it.

    \b
    Exit codes: 0 completed, 1 a task failed, 2 bad usage or input,
    3 a person is needed, 4 stopped or paused, can be resumed,
    5 another run holds the lock, 6 a limit stopped it.
    """  # noqa: D301  click's own mark for "leave these lines as they are"


def main() -> None:
    _open_closed_streams()
    _catch_signals()
    code = call(sys.argv[1:])
    _flush_streams()
    # Every file and process is closed by now. Python would spend half a second on taking apart
    # what the agent's SDK has imported.
    os._exit(code)


def _open_closed_streams() -> None:
    """Reopen closed standard streams, so that no file of ours gets their number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _catch_signals() -> None:
    """End a command on SIGTERM and SIGHUP as on Ctrl-C. A run has its own way once it has begun."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, interrupt)


def _flush_streams() -> None:
    """Flush as Python would at exit, but without its own error message and exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            from windlass.cli.screens.terminal import silence

            silence(stream)


def call(args: list[str]) -> int:
    return code_of(lambda: cli.main(args=args, prog_name="windlass", standalone_mode=False))


def code_of(command: Callable[[], Any]) -> int:
    """Run the command and return its exit code; an error is printed in one line."""
    debugging = bool(os.environ.get("WINDLASS_DEBUG"))
    try:
        code: Any = command()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as wrong:
        with suppress(OSError):
            wrong.show()
        return _exit().BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        return _print_error("interrupted", _exit().STOPPED)
    except _Unread:
        return 0
    except OSError as error:
        return _explain_os_error(error)
    except Exception as error:
        if debugging:
            raise
        return _explain(error)
    return code if isinstance(code, int) else 0


def _exit() -> "type[Exit]":
    """The exit codes, imported only when a command fails: --help must stay fast."""
    from windlass.views.outcome import Exit

    return Exit


def _explain_os_error(error: OSError) -> int:
    from windlass.errors import WindlassError

    if isinstance(error, WindlassError):  # it has its own cure
        return _explain(error)
    where = f": {error.filename}" if error.filename else ""
    cure = "fix that and try again; nothing recorded is lost"
    return _print_error(f"{error.strerror or error}{where}; {cure}", _exit().STOPPED)


def _explain(error: Exception) -> int:
    from windlass.errors import WindlassError
    from windlass.views.outcome import error_code

    if isinstance(error, WindlassError):
        return _print_error(str(error), error_code(type(error)))
    name = type(error).__name__
    cure = "nothing recorded is lost; WINDLASS_DEBUG=1 shows the traceback"
    return _print_error(f"a bug in Windlass, {name}: {error}; {cure}", _exit().FAILED)


def _print_error(text: str, code: int) -> int:
    from windlass.views.words import one_line

    # A message may quote a file name or git's output, which can hold any character. If stderr
    # cannot be written, the exit code still counts.
    with suppress(OSError):
        click.echo(f"windlass: {one_line(text, 2000)}", err=True)
    return code
