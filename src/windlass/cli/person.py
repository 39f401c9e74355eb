"""The person at the terminal, where there is one."""

import sys
from collections.abc import Sequence

import click

from windlass.app.consent import agree
from windlass.core.state import RunState
from windlass.views.consequences import Consequences
from windlass.views.steps import Choice, unfinished
from windlass.views.words import one_line


def is_attended() -> bool:
    """Whether a person can be asked: stdin and stderr are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def person() -> "AtTerminal | None":
    return AtTerminal() if is_attended() else None


def confirm(what: str, question: str, *, command: str, yes: bool) -> None:
    """Ask about what the command has shown already."""
    act = Consequences(what=what, question=question, command=command, shown=True)
    agree(act, confirmed=yes, person=person())


class AtTerminal:
    """Asks on stderr, and reads the answer from the terminal."""

    def choose(self, before: RunState, offered: Sequence[Choice]) -> Choice:
        wide = max(len(each.name) for each in offered)
        lines = [*unfinished(before), ""]
        lines += [f"  {each.name:<{wide}}  {one_line(each.text, 200)}" for each in offered]
        click.echo("\n".join(lines), err=True)
        names = click.Choice([each.name for each in offered])
        chosen = click.prompt("What now?", type=names, default=offered[0].name, err=True)
        return next(each for each in offered if each.name == chosen)

    def allow(self, what: str, question: str) -> bool:
        """Ask; the default is no."""
        if what:
            click.echo(what, err=True)
        return click.confirm(question, default=False, err=True)
