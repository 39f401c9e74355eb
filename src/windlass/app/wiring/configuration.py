"""Where settings come from: windlass.toml or pyproject.toml, then WINDLASS_*, then options.

Read from the user's checkout, committed or not, at each start; never from a workspace. A key that
nobody reads is an error, with file and line.
"""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from windlass.adapters.agents import vendors
from windlass.app.wiring.agents import no_such_agent, with_agent
from windlass.core.events.model import Configured
from windlass.core.secrets import Redactor
from windlass.core.settings import Settings, is_secret, leaves, mask
from windlass.core.state import RunState
from windlass.errors import ConfigError

FILE = "windlass.toml"
_AGENT = "agent.name"

S = TypeVar("S", bound=Struct)

_OF_THE_PROCESS = frozenset({"notify", "telemetry"})
"""Sections that say who watches a process, and nothing of the run."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_TELLING = re.compile(r"[0-9]")
"""What a key has, and hardly any option or placeholder."""
_OPTIONS = {
    "telemetry.prometheus": "option --metrics-port",
    "notify.desktop": "option --notify",
}
"""Options that are not called as their key."""


class Value(Struct, frozen=True, kw_only=True):
    """One setting, where it came from, and what it may be."""

    key: str
    value: Any
    source: str
    bounds: str


class Configuration(Struct, frozen=True, kw_only=True):
    """The settings that file, variables and options give, and how they came to be."""

    settings: Settings
    values: tuple[Value, ...]
    configured: tuple[Configured, ...]
    """What the file and the variables set."""
    options: frozenset[str]
    """The keys that options set."""

    def source(self, key: str) -> str:
        """Where the value of this key came from."""
        return next(value.source for value in self.values if value.key == key)


class Change(Struct, frozen=True, kw_only=True):
    """A setting of a run that is another one from now on."""

    key: str
    before: Any
    after: Any
    source: str


def configure(
    root: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    *,
    directory: Path | None = None,
) -> Configuration:
    """The settings for a run here; `options` are dotted keys from the command line.

    `directory` is where the command was started: settings in a folder on the way from there up to
    the repository's root are refused, for nothing would read them.
    """
    if directory is not None:
        _refuse_settings_below(root, directory)
    source, text, told = _file(root)
    sources = {key: source for key, _ in _flattened(told)}
    for key, kind in leaves(Settings):
        name = variable(key)
        if name in environment:
            _set(told, key, _from_text(environment[name], kind))
            sources[key] = name
    place = _Place(source, text, sources)
    configured = _configured(told, place)
    for key, value in options.items():
        if value is not None:
            _set(told, key, value)
            sources[key] = _option(key)
    settings = with_agent(_converted(told, place))
    values = tuple(
        Value(
            key=key,
            value=_shown(key, kind, _get(settings, key), sources),
            source=sources.get(key, "default"),
            bounds=" | ".join(vendors.names()) if key == _AGENT else _bounds(kind),
        )
        for key, kind in leaves(Settings)
    )
    return Configuration(
        settings=settings,
        values=values,
        configured=configured,
        options=frozenset(key for key, value in options.items() if value is not None),
    )


def in_force(
    configuration: Configuration, before: RunState, redactor: Redactor
) -> tuple[Settings, tuple[Change, ...]]:
    """The settings that a run goes on with, and what of them is not as it was.

    Law: a run keeps the settings that it has. An option changes one, and so does a file or a
    variable that says something else than it said when the run last began. Who watches a run
    (`notify`, `telemetry`) is no part of it, and secrets are recorded nowhere: these are always
    those of now.
    """
    now, shown = configuration.settings, redactor.event(configuration.settings)
    settings, changes = now, list[Change]()
    for key, kind in leaves(Settings):
        if is_secret(kind) or key.partition(".")[0] in _OF_THE_PROCESS:
            continue
        old, new = _get(before.settings, key), _get(shown, key)
        if old == new:
            continue  # also where it holds a secret, which is only in force as it is now
        if key in configuration.options or _says_otherwise(configuration, key, before, redactor):
            source = configuration.source(key)
            changes.append(Change(key=key, before=old, after=new, source=source))
        else:
            settings = _with(settings, key, old)
    return settings, tuple(changes)


def setting_line(change: Change) -> str:
    """A changed setting in a line: `max_cost 0.03 → 5.00 (option --max-cost)`."""
    before, after = (_plainly(value) for value in (change.before, change.after))
    return f"{change.key} {before} → {after} ({change.source})"


def _plainly(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"
    if value is None:
        return "not set"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _says_otherwise(
    configuration: Configuration, key: str, before: RunState, redactor: Redactor
) -> bool:
    """Whether a file or a variable sets the key now, to something else than when it last began."""
    if before.configured is None:
        return False  # what they said then is not recorded
    said = {each.key: each.value for each in before.configured}
    now = {each.key: each.value for each in configuration.configured}
    return key in now and redactor.text(now[key]) != said.get(key)


def _configured(told: dict[str, Any], place: "_Place") -> tuple[Configured, ...]:
    """Each key that is set, with its value as the settings have it."""
    settings = _converted(told, place)
    kinds = dict(leaves(Settings))
    return tuple(
        Configured(key, msgspec.json.encode(_get(settings, key)).decode())
        for key in kinds
        if key in place.sources and not is_secret(kinds[key])
    )


def _with(settings: S, key: str, value: Any) -> S:
    """The settings with that key of that value."""
    name, _, rest = key.partition(".")
    inner = _with(getattr(settings, name), rest, value) if rest else value
    return structs.replace(settings, **{name: inner})


def secret_values(root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is set for keys that are secret, wherever it is set; each with a name for it.

    Nothing is refused here: what no run could use may still be a secret.
    """
    told: dict[str, Any] = {}
    with suppress(ConfigError):
        _, _, told = _file(root)
    written = dict(_flattened(told))
    for key in (key for key, kind in leaves(Settings) if is_secret(kind)):
        set_by = variable(key)
        for name, value in ((key, written.get(key)), (set_by, environment.get(set_by))):
            words = value.splitlines() if isinstance(value, str) else value
            if not isinstance(words, list):
                continue
            text = "\n".join(str(word) for word in words)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            if _NAME.fullmatch(text):  # which gives what it names
                yield text, environment.get(text, "")
            else:
                yield name, text
                yield from ((name, word) for word in text.split("\n")[1:] if _TELLING.search(word))


def lost_secrets(before: Settings, now: Settings) -> list[str]:
    """Keys that are secret and were set for a run, and are not set any more."""
    keys = [key for key, kind in leaves(Settings) if is_secret(kind)]
    return [key for key in keys if _get(before, key) and not _get(now, key)]


def _shown(key: str, kind: Any, value: Any, sources: Mapping[str, str]) -> Any:
    """A value as anybody may see it; one that is a secret is only said to be there."""
    if not is_secret(kind):
        return value
    name = variable(key) if sources.get(key) == variable(key) else key
    return mask(value, f"[redacted {name}]")


def variable(key: str) -> str:
    """The environment variable that sets this key."""
    return "WINDLASS_" + key.replace(".", "_").upper()


def _option(key: str) -> str:
    # Some are called by their section: `--level` and `--run` alone would say nothing.
    if key in _OPTIONS:
        return _OPTIONS[key]
    section, _, own = key.rpartition(".")
    name = section if section in {"sandbox", "e2e"} else own
    return "option --" + name.replace("_", "-")


def _file(root: Path) -> tuple[str, str, dict[str, Any]]:
    own, shared = root / FILE, root / "pyproject.toml"
    if os.path.lexists(own):  # checks that a broken link leads to must not go unheeded
        text = _read(own)
        return FILE, text, _parsed(FILE, text)
    if shared.is_file():
        text = _read(shared)
        told = _table(_parsed(shared.name, text), "tool", "windlass")
        if told is not None:
            return shared.name, text, told
    return FILE, "", {}


def _refuse_settings_below(root: Path, directory: Path) -> None:
    """A run works on the whole repository, and its settings are those at the root."""
    if not directory.is_relative_to(root):
        return
    for folder in (directory, *directory.parents):
        if folder == root:
            return
        if os.path.lexists(folder / FILE):
            found = f"{(folder / FILE).relative_to(root)} is"
        elif _has_own_table(folder / "pyproject.toml"):
            found = f"[tool.windlass] of {(folder / 'pyproject.toml').relative_to(root)} is"
        else:
            continue
        raise ConfigError(
            f"{found} not at the root of the repository, and is not read",
            hint=f"move its keys to {root / FILE}, whose commands run at the root,"
            " or start the command at the root",
        )


def _has_own_table(pyproject: Path) -> bool:
    try:
        return _table(_parsed(pyproject.name, _read(pyproject)), "tool", "windlass") is not None
    except ConfigError:
        return False  # missing, or another tool's to complain about


def _table(told: Any, *names: str) -> dict[str, Any] | None:
    """The table of that name, if there is one."""
    for name in names:
        told = told.get(name) if isinstance(told, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if told is not None and not isinstance(told, dict):
        raise ConfigError(f"pyproject.toml: {'.'.join(names)} is no table", hint="mend that line")
    return told  # pyright: ignore[reportUnknownVariableType]


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # A pipe would wait for ever; a link is the user's own, and read like any file.
            raise ConfigError(f"{path.name} is no plain file", hint="mend or remove it")
        content = path.read_bytes()
    except OSError as error:
        told = f"{path.name} cannot be read: {error.strerror or error}"
        raise ConfigError(told, hint="mend or remove it") from None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        told = f"{path.name}:{line}: the file is not UTF-8 text"
        raise ConfigError(told, hint="save it as UTF-8") from None


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not TOML: {error}", hint="mend that line") from None


class _Place(Struct, frozen=True):
    """Where settings came from, to say where one of them is wrong."""

    source: str
    text: str
    sources: Mapping[str, str]

    def error(self, key: str, said: str) -> ConfigError:
        """What to raise for a value of this key."""
        cure = "`windlass doctor` lists every key and its bounds"
        if self.sources.get(key, self.source) != self.source:
            return ConfigError(f"{self.sources[key]}: {said}", hint=cure)
        inside = "tool.windlass." if self.source == "pyproject.toml" else ""
        line = _line_of(self.text, inside + key)
        return ConfigError(f"{self.source}{f':{line}' if line else ''}: {said}", hint=cure)


def _converted(told: dict[str, Any], place: _Place) -> Settings:
    """The settings as their types want them, of an agent that there is."""
    try:
        settings = msgspec.convert(told, Settings, strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        section = re.sub(r"\[[^\]]*\]", "", where.strip("`."))
        unknown = re.search(r"unknown field `([^`]+)`", what)
        key = ".".join(part for part in (section, unknown[1] if unknown else "") if part)
        said = f"nobody reads the key {key!r}" if unknown else f"{key}: {what[0].lower()}{what[1:]}"
        raise place.error(key, said) from None
    if (name := settings.agent.name) is not None and name not in vendors.names():
        raise place.error(_AGENT, f"{_AGENT}: {no_such_agent(name)}")
    return settings


def _line_of(text: str, key: str) -> int:
    """Where the key is set, or what it stands in: a rough reading, for tomllib keeps no lines."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[+([^\]]*)\]", line):
            section = re.sub(r"[\s\"']", "", header[1])
            lines.setdefault(section, number)
        elif found := re.match(r"\s*([\w.\"'-]+)\s*=", line):
            name = re.sub(r"[\"']", "", found[1])
            lines.setdefault(f"{section}.{name}" if section else name, number)
    while key and key not in lines:
        key = key.rpartition(".")[0]
    return lines.get(key, 0)


def _flattened(told: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in told.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield prefix + key, value


def _set(told: dict[str, Any], key: str, value: Any) -> None:
    *sections, name = key.split(".")
    for section in sections:
        inner = told.setdefault(section, {})
        if not isinstance(inner, dict):
            return  # what stands there is wrong already, and will be said
        told = inner  # pyright: ignore[reportUnknownVariableType]
    told[name] = value


def _get(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _from_text(text: str, kind: Any) -> Any:
    """A variable's text as the setting's type; a list has one item a line."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(plain) is tuple:
        return [line for line in text.splitlines() if line.strip()]
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return text  # said with the others, by name


def _bounds(kind: Any) -> str:
    """What the type lets in, in words: from the schema, so that it is what is enforced."""
    return _allowed(msgspec.json.schema(kind))


def _allowed(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "anyOf" in schema:
        parts = [_allowed(part) for part in schema["anyOf"] if part.get("type") != "null"]
        if len(parts) == len(schema["anyOf"]):
            return " | ".join(parts)
        return f"{' or '.join(parts)}, or not set"
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    if low is not None:
        most = f", ≤ {schema['maximum']}" if "maximum" in schema else ""
        return f"{'≥' if 'minimum' in schema else '>'} {low}{most}"
    return {"array": "a list of texts", "boolean": "true | false"}.get(schema["type"], "text")
