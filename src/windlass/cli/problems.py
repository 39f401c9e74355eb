"""Errors as JSON on stdout, for a command that was asked for JSON.

Law: stdout is data, so an error is a document there, next to its line on stderr. In the stream of
a run it is a line of the stream, before its `result`.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from windlass.views.problems import Problem

_STREAMS = frozenset({"run", "resume", "feature-build"})
"""Commands whose JSON is a stream of lines, except with --dry-run."""


class Stream(Protocol):
    """The JSON lines of a run that has begun."""

    def failed(self, problem: "Problem") -> None: ...


class Errors:
    """Where the errors of one command go; click hands it to the command as its object."""

    def __init__(self, args: Sequence[str] = (), commands: Sequence[str] = ()) -> None:
        """Take the command line as it was typed, and the names of all commands."""
        self._options = list(args[: args.index("--")] if "--" in args else args)
        self._name = next((arg for arg in args if arg in commands), "")
        self.stream: Stream | None = None

    @staticmethod
    def of_command() -> "Errors":
        """Those of the command that runs."""
        context = click.get_current_context(silent=True)
        return (context and context.find_object(Errors)) or Errors()

    @property
    def command(self) -> str:
        """The command without its arguments, as the place of an error that names no other."""
        return f"windlass {self._name}".rstrip()

    def report(self, problem: "Problem") -> None:
        """Print the problem as JSON, if the command was asked for JSON."""
        # If stdout cannot be written, the exit code still counts.
        with suppress(OSError):
            if self.stream is not None:
                self.stream.failed(problem)
            elif self._wants_json and self._name in _STREAMS and "--dry-run" not in self._options:
                from windlass.cli.screens.jsonl import JsonScreen

                JsonScreen(sys.stdout).failed(problem)
            elif self._wants_json:
                import msgspec

                from windlass.views.problems import ProblemDocument

                # In one line: `log` prints JSON lines.
                click.echo(msgspec.json.encode(ProblemDocument(error=problem)))

    @property
    def _wants_json(self) -> bool:
        """Asked of the words, because the command line may be one that click refuses."""
        options, display = self._options, ("--display", "json")
        return "--json" in options or "=".join(display) in options or display in pairwise(options)
