"""The entry: finds the command, runs it, and turns whatever goes wrong into one clear line."""

import importlib
import os
import sys
from typing import Any

import click

COMMANDS = {
    "init": "Detect the project's checks and write windlass.toml",
    "plan": "Show what was understood of a plan",
    "run": "Run a plan to verified, merged commits",
    "resume": "Go on with a run that was interrupted, stopped or needs you",
    "feature-build": "Run one task file of tasks/ by its id",
    "status": "Show how a run stands",
    "log": "Show what happened in a run",
    "diff": "Show what a task changed",
    "approve": "Let a complex task start",
    "answer": "Answer what a task asks",
    "retry": "Have a task done once more",
    "adopt": "Take over what another tool has done of a plan",
    "stop": "Stop a live run; it can be resumed",
    "doctor": "Look at the machine, the repository and every setting",
    "demo": "Run a small plan offline, with a scripted model",
}
"""Every command with its help line, so that --help need not import them."""


def module_of(command: str) -> str:
    """The module of windlass.cli that a command is in."""
    return command.replace("-", "_")


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's form
        """Every command, in the order a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"windlass.cli.{module_of(cmd_name)}").command

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
    Exit codes: 0 completed, 1 a task failed, 2 bad usage or input, 3 a person is needed,
    4 stopped and resumable, 5 another run holds the lock, 6 a limit stopped it.
    """  # noqa: D301  click's own mark for "leave these lines as they are"


def main() -> None:
    """Run the command line and exit with its code."""
    sys.exit(call(sys.argv[1:]))


def call(args: list[str]) -> int:
    """The exit code of a command line."""
    debugging = bool(os.environ.get("WINDLASS_DEBUG"))
    try:
        code: Any = cli.main(args=args, prog_name="windlass", standalone_mode=False)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as wrong:
        wrong.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return _said("interrupted", 4)
    except BrokenPipeError:
        # Whoever read our output has read enough; Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        return _said(f"{error.strerror or error}{where}; nothing recorded is lost", 1)
    except Exception as error:
        if debugging:
            raise
        return _explained(error)
    return code if isinstance(code, int) else 0


def _explained(error: Exception) -> int:
    from windlass.errors import WindlassError

    if isinstance(error, WindlassError):
        return _said(str(error), error.exit_code)
    name = type(error).__name__
    cure = "nothing recorded is lost; WINDLASS_DEBUG=1 shows where it happened"
    return _said(f"a defect of Windlass, {name}: {error}; {cure}", 1)


def _said(text: str, code: int) -> int:
    from windlass.views.words import one_line

    # What is quoted in a message, a file's name or an answer of git, may be of any shape.
    click.echo(f"windlass: {one_line(text, 2000)}", err=True)
    return code
