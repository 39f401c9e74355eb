"""Which screens a run is shown on: people's on stderr, programs' on stdout."""

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO, cast

from windlass.cli.wiring import now
from windlass.errors import BadInput
from windlass.state import RunState
from windlass.ui.actions import ActionsScreen, summary
from windlass.ui.display import chosen, is_set, wants_ascii, wants_colour
from windlass.ui.jsonl import JsonScreen
from windlass.ui.lasting import LastingStream
from windlass.ui.plain import PlainScreen
from windlass.ui.screen import NoScreen, Screen
from windlass.views.lines import Line
from windlass.views.progress import progress
from windlass.views.words import money


def screens(
    options: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    stream: TextIO | None = None,
    watching: bool = False,
    left: Callable[[], object] | None = None,
) -> tuple[Screen, JsonScreen | None]:
    """The screen for people, and the one for programs where there is one.

    Where it is said what to do when nobody reads them any more, that is no error.
    """
    to, data = (_lasting(each, left) for each in (stream or sys.stderr, sys.stdout))
    asked: str = options.get("display") or "auto"
    if options.get("as_json"):
        if asked not in {"auto", "json"}:
            raise BadInput(f"--json is --display json, not {asked}", hint="take one of them")
        asked = "json"
    if options.get("quiet") and options.get("verbose"):
        raise BadInput(
            "--quiet shows the end only, --verbose also what agents say", hint="take one"
        )
    terminal = to.isatty()
    display = chosen(asked, environment, terminal=terminal)
    if display == "none":
        return NoScreen(), None
    looks: dict[str, Any] = {
        "now": now,
        "colour": wants_colour(environment, terminal=terminal),
        "verbose": bool(options.get("verbose")),
        "plain_letters": wants_ascii(to.encoding),
    }
    quiet = bool(options.get("quiet")) or display == "json"
    if display == "live" and not quiet:
        from windlass.ui.live import LiveScreen

        return LiveScreen(to, watching=watching, **looks), None
    if display == "plain" and is_set(environment, "GITHUB_ACTIONS"):
        verbose = bool(options.get("verbose"))
        return ActionsScreen(to, now=now, verbose=verbose, quiet=quiet), None
    return (
        PlainScreen(to, quiet=quiet, **looks),
        JsonScreen(data) if display == "json" else None,
    )


def _lasting(stream: TextIO, left: Callable[[], object] | None) -> TextIO:
    return stream if left is None else cast("TextIO", LastingStream(stream, left))


def write_step_summary(
    environment: Mapping[str, str], state: RunState, lines: Iterable[Line]
) -> None:
    """The end of the run on the page of the job, where GitHub Actions asks for one."""
    path = environment.get("GITHUB_STEP_SUMMARY")
    if not path or not is_set(environment, "GITHUB_ACTIONS"):
        return
    told = progress(state, 0)
    rows = [
        (
            f"{id_} {state.specs[id_].title}",
            task.status.replace("_", " "),
            str(task.turns),
            money(task.cost_usd),
        )
        for id_, task in told.tasks.items()
    ]
    # A page that cannot be written is no reason to fail a run that did not.
    with suppress(OSError), Path(path).open("a", encoding="utf-8", errors="replace") as file:
        file.write(summary(state, lines, rows))
