"""`windlass COMMAND --help` teaches: an imperative line, what the command does, and examples."""

import re
import shlex

import click
import pytest

from windlass.cli.main import COMMANDS, cli

WIDTH = 80


def help_of(name: str) -> str:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = click.Context(
        command,
        info_name=f"windlass {name}",
        terminal_width=WIDTH,
        help_option_names=["-h", "--help"],  # a command keeps the option that it makes of them
    )
    return command.get_help(context)


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    return {each for option in command.params for each in (*option.opts, *option.secondary_opts)}


def examples(text: str) -> list[str]:
    found = re.search(r"(?ms)^  Examples?:\n(.*?)\n\n", text)
    return [line.strip() for line in found[1].splitlines()] if found else []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_fits_the_screen_and_begins_with_what_to_do(name: str):
    text = help_of(name)
    assert max(map(len, text.splitlines())) <= WIDTH
    usage, first, *_ = text.split("\n\n")
    assert usage.startswith("Usage: windlass ")
    verb = first.split()[0]
    assert verb.istitle()
    assert not verb.endswith("s"), "an imperative"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_has_examples_that_can_be_typed(name: str):
    shown = examples(help_of(name))
    assert shown, "no examples"
    for line in shown:
        assert f"windlass {name}" in line
        for word in shlex.split(line, comments=True):
            if word.startswith("--") and word != "--":
                assert word.partition("=")[0] in options_of(name), line
