"""The entry: finds the command, runs it, and prints every error as one clear line."""

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.problems import Errors

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from windlass.findings import Finding

_MOST_FINDINGS = 30
"""Errors and warnings of one plan that are printed."""

GROUPS = {
    "Start": {
        "init": "Detect the project's checks and write windlass.toml",
        "plan": "Show what Windlass reads in a plan",
        "run": "Run a plan to verified, merged commits",
        "resume": "Continue a run that was interrupted, stopped or needs you",
        "feature-build": "Run one task file in tasks/ by its id",
        "adopt": "Import the progress that another tool made on a plan",
        "demo": "Run a small plan offline, with a scripted model",
    },
    "Watch": {
        "status": "Show the state of a run",
        "log": "Show what happened in a run",
        "history": "List past runs",
        "costs": "Show costs by plan, task, role and model",
        "report": "Write an HTML or Markdown report of a run",
        "diff": "Show what a task changed",
    },
    "Step in": {
        "answer": "Answer a task's question",
        "approve": "Let a task start, accept a stale one, or pass a stage",
        "retry": "Retry an abandoned task, or redo one whose text has changed",
        "reset": "Start a task again from the tip",
        "take": "Work on a task yourself, in its workspace",
        "give": "Hand back a task that you took",
        "pause": "Pause a live run at the end of its turns",
        "stop": "Stop a live run; it can be resumed",
        "abort": "Abort a run for good",
    },
    "Take the result": {
        "land": "Move your branch to the merged work",
        "pr": "Open or update a pull request with the merged work",
    },
    "Repair": {
        "doctor": "Check the machine, the repository and every setting",
        "recover": "Restore a lost or damaged journal from git",
        "clean": "Delete workspaces and refs that are merged or pinned",
        "bundle": "Pack a scrubbed bundle for a bug report",
        "selftest": "Prove on this machine that a crash loses nothing",
    },
    "Integrations": {
        "mcp": "Serve the state of runs to other programs over MCP",
        "completion": "Print the shell completion for bash, zsh or fish",
        "schema": "Print the JSON Schema of windlass.toml, for editors",
    },
}
"""Every command with its help line, by what a person wants, so that --help imports none of them."""

COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}


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

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(module_of(cmd_name)).command
        if ctx.resilient_parsing:
            from windlass.cli.completion import complete_parameters

            complete_parameters(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete commands without importing any."""
        from click.shell_completion import CompletionItem

        names = (name for name in COMMANDS if name.startswith(incomplete))
        found = [CompletionItem(name, help=COMMANDS[name]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one gets the nearest as a suggestion."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from windlass.core.nearest import nearest

            if (meant := nearest(args[0], COMMANDS)) is None:
                raise
            raise click.UsageError(f"{error.message} Did you mean {meant!r}?", ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click would exit with 1 where the reader has closed the pipe."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as gone:
            raise _Unread from gone

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List commands without importing any."""
        wide = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{wide}}", line) for name, line in commands.items()])


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
    # Every file and process is closed by now; taking apart what was imported would only take time.
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
    errors = Errors(args, tuple(COMMANDS))

    def command() -> Any:
        return cli.main(args=args, prog_name="windlass", standalone_mode=False, obj=errors)

    return code_of(command, errors)


def code_of(command: Callable[[], Any], errors: Errors | None = None) -> int:
    """Run the command and return its exit code; an error is one line, and JSON if asked for."""
    # A run clears the environment.
    debugging, errors = bool(os.environ.get("WINDLASS_DEBUG")), errors or Errors()
    try:
        code: Any = command()
    except click.exceptions.Exit as done:
        return done.exit_code
    except _Unread:
        return 0
    except click.ClickException as wrong:
        return _explain_usage(wrong, errors)
    except (click.Abort, KeyboardInterrupt):
        return _explain(KeyboardInterrupt(), errors)
    except Exception as error:
        if debugging and not isinstance(error, OSError):
            raise
        return _explain(error, errors)
    return code if isinstance(code, int) else 0


def _explain_usage(wrong: click.ClickException, errors: Errors) -> int:
    from windlass.views.problems import bad_usage

    with suppress(OSError):
        wrong.show()
    context = wrong.ctx if isinstance(wrong, click.UsageError) else None
    where = context.command_path if context is not None else errors.command
    problem = bad_usage(wrong.format_message(), where)
    errors.report(problem)
    return problem.exit


def _explain(error: BaseException, errors: Errors) -> int:
    from windlass.errors import PlanError
    from windlass.views.problems import error_line, problem_of

    # If stderr cannot be written, the exit code still counts.
    with suppress(OSError):
        click.echo(f"windlass: {error_line(error)}", err=True)
        if isinstance(error, PlanError):
            _print_findings(error.findings[1:])
    problem = problem_of(error, errors.command)
    errors.report(problem)
    return problem.exit


def _print_findings(findings: "Sequence[Finding]") -> None:
    """Print what else is wrong in a plan, one line each."""
    from windlass.views.words import one_line

    for found in findings[:_MOST_FINDINGS]:
        kind = "warning: " if found.severity == "warning" else ""
        click.echo(f"windlass: {one_line(f'{found.place}: {kind}{found.words}', 2000)}", err=True)
    if len(findings) > _MOST_FINDINGS:
        more = len(findings) - _MOST_FINDINGS
        click.echo(f"windlass: and {more:,} more in the plan", err=True)
