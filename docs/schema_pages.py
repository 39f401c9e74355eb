"""The JSON Schemas of what Windlass writes for other programs, from the types that it writes.

Law: a schema is never written by hand. Extra fields may come in a later version; those that are
here stay, and mean what they mean.
"""

import json
from typing import Any, get_args

import msgspec

from windlass.cli.screens.jsonl import SCHEMA
from windlass.core.events.model import Event
from windlass.core.events.review import PlayerAnswer, Review
from windlass.formats.layers.state import ExecuteState
from windlass.formats.milestone.state import MilestoneState
from windlass.formats.spec.state import ExecutionState
from windlass.views.progress import Progress

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TYPES: dict[str, tuple[str, Any]] = {
    "status": ("windlass status --json, and state.json of a run", Progress),
    "milestone-state": ("state/<milestone>_state.json", MilestoneState),
    "spec-state": (".specflow/execution/<spec>-state.json", ExecutionState),
    "execute-state": ("execute-state.json of a folder of layers", ExecuteState),
    "review": ("what a Coach answers", Review),
    "player-answer": ("what a Player answers", PlayerAnswer),
}
"""Each schema by its name: what is written so, and the type it is written from."""

EVENTS = "events"


NAMES = (*TYPES, EVENTS)
"""Every schema that is published, in docs/schemas/."""


def schema(name: str) -> dict[str, Any]:
    """The schema of that name."""
    if name == EVENTS:
        return _events()
    title, kind = TYPES[name]
    return {"$schema": DIALECT, "title": title, **msgspec.json.schema(kind)}


def page(name: str) -> str:
    """The file it is published in."""
    return json.dumps(schema(name), indent=2) + "\n"


def contents(made: str) -> str:
    """The page that lists them all."""
    titles = {name: title for name, (title, _) in TYPES.items()}
    titles[EVENTS] = "a line of `windlass run --json`: `init`, then every fact, then `result`"
    return "\n".join(
        [
            made,
            "# JSON Schemas",
            "",
            "What Windlass writes for other programs, as JSON Schema (2020-12), made from the",
            "types it is written from. Extra fields may come in a later version; those that are",
            "here stay, and mean what they mean.",
            "",
            "| schema | what is written so |",
            "|---|---|",
            *(
                f"| [{name}.json](schemas/{name}.json) | {_literally(titles[name])} |"
                for name in NAMES
            ),
            "",
        ]
    )


def _literally(text: str) -> str:
    return text.replace("<", "\\<")


def _events() -> dict[str, Any]:
    """A line of `run --json`: an envelope around the fields of each event, and two of its own."""
    kinds = get_args(Event)
    _, parts = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    lines = {kind.__name__: _line(parts.pop(kind.__name__)) for kind in kinds}
    lines["init"] = _enveloped("init", {"plan": {"type": "string"}}, ["plan"])
    result = {
        "status": {"type": "string"},
        "total_cost_usd": {"type": "number"},
        "num_turns": {"type": "integer"},
        "is_error": {"type": "boolean"},
        "exit_code": {"type": "integer"},
    }
    lines["result"] = _enveloped("result", result, list(result))
    return {
        "$schema": DIALECT,
        "title": "a line of windlass run --json: init, then every event, then result",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": {**lines, **parts},
    }


def _line(event: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in event["properties"].items() if name not in {"type", "at"}}
    required = [name for name in event.get("required", ()) if name in own]
    line = _enveloped(event["title"], own, required)
    return {**line, "description": event.get("description", "")}


def _enveloped(name: str, own: dict[str, Any], required: list[str]) -> dict[str, Any]:
    envelope = {
        "schema": {"const": SCHEMA},
        "seq": {"type": "integer", "description": "The position in the journal."},
        "ts": {"type": "string", "format": "date-time"},
        "type": {"const": name},
        "run": {"type": "string"},
    }
    return {
        "type": "object",
        "properties": {**envelope, **own},
        "required": [*envelope, *(field for field in required if field not in envelope)],
    }
