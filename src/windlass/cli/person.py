"""The person at the terminal, where there is one."""

import sys
from collections.abc import Sequence

import click

from windlass.core.state import RunState
from windlass.views.steps import Choice, unfinished
from windlass.views.words import one_line


def is_attended() -> bool:
    """Whether a person can be asked: both the question and the answer go through a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def person() -> "AtTerminal | None":
    """The person to ask; None where there is no terminal."""
    return AtTerminal() if is_attended() else None


class AtTerminal:
    """Asks on stderr, and reads the answer from the terminal."""

    def choose(self, before: RunState, offered: Sequence[Choice]) -> Choice:
        """List the choices, and ask for one."""
        wide = max(len(each.name) for each in offered)
        lines = [*unfinished(before), ""]
        lines += [f"  {each.name:<{wide}}  {one_line(each.text, 200)}" for each in offered]
        click.echo("\n".join(lines), err=True)
        names = click.Choice([each.name for each in offered])
        chosen = click.prompt("What now?", type=names, default=offered[0].name, err=True)
        return next(each for each in offered if each.name == chosen)

    def allow(self, what: str, question: str) -> bool:
        """Say what it is about, and ask; the default is no."""
        click.echo(what, err=True)
        return click.confirm(question, default=False, err=True)
