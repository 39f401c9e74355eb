"""Writes the pages that say what the code itself says: `python docs/generate.py`.

Law: nothing in these pages is written by hand, and tests/test_docs.py holds them to the code.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
import event_pages
import msgspec
import schema_pages
from settings_meanings import MEANINGS

from windlass.app.wiring.configuration import configure, variable
from windlass.cli.main import GROUPS, cli
from windlass.core.events.model import Event
from windlass.core.state.transitions import (
    HELPLESS,
    RUN_TRANSITIONS,
    STATUS,
    TASK_TRANSITIONS,
    UNDER_WAY,
    Phase,
    RunPhase,
)

HERE = Path(__file__).parent
WIDTH = 88
MADE = "<!-- Made by docs/generate.py; do not edit. -->"

P = TypeVar("P", bound=StrEnum)


def cli_page() -> str:
    """Every command's help, as `--help` prints it."""
    parts = [MADE, "# The command line", _help(cli, "windlass")]
    parts.append(
        "[What stops, repeats and takes](choosing-a-command.md) compares similar commands."
    )
    for title, names in GROUPS.items():
        parts.append(f"## {title}")
        for name in names:
            command = cli.get_command(click.Context(cli), name)
            assert command is not None, name  # noqa: S101
            parts += [f"### windlass {name}", _help(command, f"windlass {name}")]
    return "\n\n".join(parts) + "\n"


def _help(command: click.Command, name: str) -> str:
    context = click.Context(
        command,
        info_name=name,
        terminal_width=WIDTH,  # else it is as wide as whoever runs this
        max_content_width=WIDTH,
        help_option_names=["-h", "--help"],
    )
    return f"```text\n{command.get_help(context)}\n```"


def states_page() -> str:
    """The two tables of windlass.core.state.transitions, drawn."""
    return "\n".join(
        [
            MADE,
            "# The states of a task and of a run",
            "",
            "Drawn from `windlass.core.state.transitions`. An arrow is an event, recorded in the",
            "journal; an event without an arrow from a phase cannot happen there. `RunEnded` may",
            "come at any phase of a run.",
            "",
            "## A task",
            "",
            *_diagram(TASK_TRANSITIONS, Phase.PENDING),
            "",
            *_table(TASK_TRANSITIONS),
            "",
            "What people see of each phase:",
            "",
            "| phase | status | |",
            "|---|---|---|",
            *(f"| {phase} | {word} | {_remark(phase)} |" for phase, word in STATUS.items()),
            "",
            "A pending task whose dependency was abandoned is shown as `blocked`.",
            "",
            "## A run",
            "",
            *_diagram(RUN_TRANSITIONS, RunPhase.NEW),
            "",
            *_table(RUN_TRANSITIONS),
            "",
        ]
    )


def _diagram(table: Mapping[P, Mapping[type[Event], P]], first: P) -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {first}"
    for phase, ways in table.items():
        targets: dict[P, list[str]] = {}
        for event, target in ways.items():
            targets.setdefault(target, []).append(event.__name__)
        for target, events in targets.items():
            yield f"    {phase} --> {target}: {', '.join(events)}"
        if not ways:
            yield f"    {phase} --> [*]"
    yield "```"


def _table(table: Mapping[P, Mapping[type[Event], P]]) -> Iterator[str]:
    """The same for those who see no picture."""
    yield "| phase | fact | leads to |"
    yield "|---|---|---|"
    for phase, ways in table.items():
        first = f"`{phase}`"
        for event, target in ways.items():
            link = f"[{event.__name__}](events.md#{event.__name__.lower()})"
            yield f"| {first} | {link} | `{target}` |"
            first = ""
        if not ways:
            yield f"| {first} | | the end |"


def _remark(phase: Phase) -> str:
    if phase in UNDER_WAY:
        return "an effect is under way"
    return "waits for a person" if phase in HELPLESS else ""


def configuration_page() -> str:
    """Every key of windlass.core.settings: what it may be, what it is unless set, what it means."""
    lines = [
        MADE,
        "# Configuration",
        "",
        "Read from `windlass.toml` at the repository's root, or from `[tool.windlass]` in",
        "pyproject.toml; then from the environment; then from options. An unknown key is an",
        "error; a run warns of an unknown variable that begins with `WINDLASS_`.",
        "`windlass init` writes a first file, and `windlass doctor` shows every value in force and",
        "where it came from. A `windlass.toml` in a sub-folder is refused, with its name, by `run`",
        "and `plan` if they are started there; a run from the root notes that it does not use it.",
        "Settings belong to the whole repository, at whose root checks run.",
        "",
        "A run keeps the settings that it started with. On `resume`, only an option, or a file or",
        "variable that says something new, changes one; a `SETTING` line shows both values and the",
        "source. If a key or a variable is gone, the run keeps its value and a `WARNING` line says",
        "so. `run --restart` starts with fresh settings. `notify` and `telemetry` are read at each",
        "start.",
        "",
        "The variable of a key is `WINDLASS_` and the key in capitals, with `_` for each dot:",
        f"`{variable('workspace.kind')}` for `workspace.kind`. A list has an item on each line.",
        "",
        "| key | default | may be | meaning |",
        "|---|---|---|---|",
    ]
    nowhere = HERE / "no-project"
    for value in configure(nowhere, {}, {}).values:
        default = (
            msgspec.json.encode(value.value).decode() if value.value is not None else "not set"
        )
        bounds = value.bounds.replace("|", "\\|")
        lines.append(f"| `{value.key}` | `{default}` | {bounds} | {MEANINGS[value.key]} |")
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "events.md": partial(event_pages.events_page, MADE),
    "exit-codes.md": partial(event_pages.exit_codes_page, MADE),
    "schemas.md": partial(schema_pages.contents, MADE),
    "cli.md": cli_page,
    "state-diagram.md": states_page,
    "configuration.md": configuration_page,
    **{f"schemas/{name}.json": partial(schema_pages.page, name) for name in schema_pages.NAMES},
    "../src/windlass/app/settings.schema.json": partial(schema_pages.page, schema_pages.SETTINGS),
}


def main() -> int:
    """Write every page, and say which changed."""
    for name, page in PAGES.items():
        path, text = HERE / name, page()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
