"""The JSON Schemas of what Windlass writes for other programs, and of the settings that it reads.

Law: a schema is never written by hand, but made from the types. Extra fields may come in a later
version; those that are here stay, and mean what they mean.
"""

import json
from collections.abc import Mapping
from typing import Any, get_args

import msgspec
from settings_meanings import MEANINGS

from windlass.adapters.agents import vendors
from windlass.app.plan import PlanSummary
from windlass.cli.screens.jsonl import SCHEMA
from windlass.core.events.model import Event
from windlass.core.events.review import PlayerAnswer, Review
from windlass.core.settings import Settings
from windlass.formats.layers.state import ExecuteState
from windlass.formats.milestone.state import MilestoneState
from windlass.formats.spec.state import ExecutionState
from windlass.views.problems import Problem, ProblemDocument
from windlass.views.progress import Progress

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TYPES: dict[str, tuple[str, Any]] = {
    "plan": ("windlass plan --json, and windlass run --dry-run --json", PlanSummary),
    "status": ("windlass status --json, and state.json of a run", Progress),
    "error": ("what a command with --json prints if it fails", ProblemDocument),
    "milestone-state": ("state/<milestone>_state.json", MilestoneState),
    "spec-state": (".specflow/execution/<spec>-state.json", ExecutionState),
    "execute-state": ("execute-state.json of a folder of layers", ExecuteState),
    "review": ("what a Coach answers", Review),
    "player-answer": ("what a Player answers", PlayerAnswer),
}
"""Each schema by its name: what is written so, and the type it is written from."""

EVENTS = "events"
SETTINGS = "settings"

NAMES = (*TYPES, EVENTS, SETTINGS)
"""Every schema that is published, in docs/schemas/."""


def schema(name: str) -> dict[str, Any]:
    """The schema of that name."""
    if name == EVENTS:
        return _events()
    if name == SETTINGS:
        return _settings()
    title, kind = TYPES[name]
    return {"$schema": DIALECT, "title": title, **msgspec.json.schema(kind)}


def page(name: str) -> str:
    """The file it is published in."""
    return json.dumps(schema(name), indent=2) + "\n"


def contents(made: str) -> str:
    """The page that lists them all."""
    titles = {name: title for name, (title, _) in TYPES.items()}
    titles[EVENTS] = (
        "a line of `windlass run --json`: `init`, then every fact, then `result`; `error` before"
        " that if the command fails"
    )
    titles[SETTINGS] = "windlass.toml, and `[tool.windlass]` of pyproject.toml; you write it"
    return "\n".join(
        [
            made,
            "# JSON Schemas",
            "",
            "What Windlass writes for other programs, and the settings that it reads, as JSON",
            "Schema (2020-12), made from the types in the code. Extra fields may come in a later",
            "version; those that are here stay, and mean what they mean.",
            "",
            "`windlass init` begins `windlass.toml` with a line that names the schema of the",
            "settings, `#:schema .windlass/windlass.schema.json`, and writes that file. Editors",
            "that know the line, such as those with Taplo or Even Better TOML, complete keys, show",
            "what each means, and mark what is wrong. `windlass schema` prints the same schema.",
            "",
            "With `--json`, what a command prints on standard output is JSON: its result, or an",
            'error as `{"error": {"what": …, "where": …, "cure": …, "exit": …}}`. `where` is a',
            "file with its line, a variable, a plan or a task, else the command; `exit` is the",
            "exit code. This holds for every command and every error, also for a wrong option or",
            "a bug. People read the same in one line on standard error. `run`, `resume` and",
            "`feature-build` print JSON lines: there an error is a line of type `error`, and",
            "`result` still ends the stream; only a pull request (`--pr`) that fails after the",
            "run adds an error behind it.",
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


def _settings() -> dict[str, Any]:
    """The settings that a file can have: without nulls, which TOML does not know."""
    found = msgspec.json.schema(Settings)
    parts: dict[str, Any] = found["$defs"]
    top = _table("Settings", parts, "")
    top["properties"]["agent"]["properties"]["name"]["enum"] = list(vendors.names())
    # What `windlass.app.wiring.refusals` refuses in a file.
    top["properties"]["sandbox"]["properties"]["level"]["enum"].remove("none")
    del top["properties"]["notify"]["properties"]["command"]
    return {"$schema": DIALECT, "title": "windlass.toml", **top}


def _table(name: str, parts: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for key, value in parts[name]["properties"].items():
        if inner := value.get("$ref"):
            properties[key] = _table(inner.rpartition("/")[2], parts, f"{prefix}{key}.")
        else:
            properties[key] = {"description": MEANINGS[prefix + key], **_without_null(value)}
    return {
        "description": parts[name]["description"],
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def _without_null(value: dict[str, Any]) -> dict[str, Any]:
    kept = {name: part for name, part in value.items() if part is not None}
    kinds = [part for part in kept.pop("anyOf", ()) if part.get("type") != "null"]
    return {**kept, **kinds[0]} if len(kinds) == 1 else {**kept, "anyOf": kinds} if kinds else kept


def _events() -> dict[str, Any]:
    """A line of `run --json`: an envelope around the fields of each event, and three of its own."""
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
    problem = msgspec.json.schema_components([Problem])[1]["Problem"]
    lines["error"] = _enveloped("error", {"error": problem}, ["error"])
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
