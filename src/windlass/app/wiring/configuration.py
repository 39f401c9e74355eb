"""Reads settings from windlass.toml or pyproject.toml, then WINDLASS_*, then options.

The files are read from the user's checkout, committed or not, at each start; never from a
workspace. An unknown key is an error, with file and line.
"""

import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct, structs

from windlass.adapters.agents import vendors
from windlass.app.wiring.agents import no_such_agent, with_agent
from windlass.core.events.model import Configured
from windlass.core.nearest import did_you_mean
from windlass.core.secrets import Redactor
from windlass.core.settings import Settings, is_secret, leaves, mask
from windlass.core.state import RunState
from windlass.errors import ConfigError

FILE = "windlass.toml"
_AGENT = "agent.name"

S = TypeVar("S", bound=Struct)

_PROCESS_SECTIONS = frozenset({"git", "notify", "telemetry"})
"""Sections that belong to the process that runs, and not to the run."""

_NAME = re.compile(r"[A-Za-z_]\w*")
_DIGIT = re.compile(r"[0-9]")
"""Most secrets have one; most options and placeholders do not."""
OPTIONS: Mapping[str, str] = {
    "agents": "--agents",
    "barrier": "--barrier",
    "max_turns": "--max-turns",
    "model": "--model",
    "coach_model": "--coach-model",
    "max_cost": "--max-cost",
    "max_tokens": "--max-tokens",
    "land": "--land",
    "sandbox.level": "--sandbox",
    "e2e.run": "--e2e",
    "policy.red_base": "--red-base",
    "telemetry.prometheus": "--metrics-port",
    "notify.desktop": "--notify",
}
"""The option of each key that has one."""


class Value(Struct, frozen=True, kw_only=True):
    """One setting, its source, and the values that it may have."""

    key: str
    value: Any
    source: str
    bounds: str


class Configuration(Struct, frozen=True, kw_only=True):
    """The settings from the file, the variables and the options, with their sources."""

    settings: Settings
    values: tuple[Value, ...]
    configured: tuple[Configured, ...]
    """What the file sets, and then what the variables set."""
    options: frozenset[str]
    """The keys that options set."""

    def source(self, key: str) -> str:
        return next(value.source for value in self.values if value.key == key)


class Change(Struct, frozen=True, kw_only=True):
    """A setting of a run that changes when the run is resumed."""

    key: str
    before: Any
    after: Any
    source: str


class ResumedSettings(Struct, frozen=True, kw_only=True):
    """The settings that a run continues with."""

    settings: Settings
    changes: tuple[Change, ...]
    """What differs since the run last began."""
    kept: tuple[str, ...]
    """A line for each setting that the run keeps, and that its source no longer sets."""
    configured: tuple[Configured, ...]
    """What each file and variable said when it was last there, to record with the run."""


def configure(
    root: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any],
    *,
    directory: Path | None = None,
) -> Configuration:
    """Read the settings for a run; `options` are values by dotted key from the command line.

    `directory` is where the command was started. Settings in a folder between it and the root of
    the repository are refused, because Windlass would not read them.
    """
    if directory is not None:
        refuse_settings_below(root, directory)
    file, text, values = _file(root)
    kinds = dict(leaves(Settings))
    given = [(key, value, file) for key, value in _flattened(values)]
    for key, kind in kinds.items():
        name = variable(key)
        if name in environment:
            value = _from_text(environment[name], kind)
            _set(values, key, value)
            given.append((key, value, name))
    sources = {key: source for key, _, source in given}
    origin = _Sources(file, text, sources)
    _converted(values, origin)
    configured = tuple(_configured(given, kinds))
    for key, value in options.items():
        if value is not None:
            _set(values, key, value)
            sources[key] = f"option {_option_name(key)}"
    settings = with_agent(_converted(values, origin))
    shown = tuple(
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
        values=shown,
        configured=configured,
        options=frozenset(key for key, value in options.items() if value is not None),
    )


def resumed_settings(
    configuration: Configuration, before: RunState, redactor: Redactor
) -> ResumedSettings:
    """The settings that a run continues with, and the changes since it last began.

    Law: a run keeps its settings. An option changes one. So does the file or a variable, if it says
    something else than when it was last there: a source that is gone, or back as it was, changes
    nothing. `git`, `notify` and `telemetry` belong to the process, and secrets are not recorded:
    for these the new value always counts.
    """
    now, shown = configuration.settings, redactor.event(configuration.settings)
    settings, changes, kept = now, list[Change](), list[str]()
    for key, kind in leaves(Settings):
        if is_secret(kind) or key.partition(".")[0] in _PROCESS_SECTIONS:
            continue
        old, new = _get(before.settings, key), _get(shown, key)
        if old == new:
            continue  # also if it holds a secret: `shown` is redacted, and only `now` has the value
        if key in configuration.options or _is_changed(configuration, key, before, redactor):
            source = configuration.source(key)
            changes.append(Change(key=key, before=old, after=new, source=source))
        else:
            settings = _replaced(settings, key, old)
            kept += _kept_lines(configuration, key, before, old=old, new=new)
    return ResumedSettings(
        settings=settings,
        changes=tuple(changes),
        kept=tuple(kept),
        configured=(
            *_gone(configuration.configured, before.configured or ()),
            *configuration.configured,
        ),
    )


def setting_line(change: Change) -> str:
    """One line for a changed setting: `max_cost 0.03 → 5.00 (option --max-cost)`."""
    before, after = (_format(value) for value in (change.before, change.after))
    return f"{change.key} {before} → {after} ({change.source})"


def option(key: str, value: Any) -> str:
    """The option that gives a run this value, as it is typed."""
    name = _option_name(key)
    if isinstance(value, bool):
        return name if value else name.replace("--", "--no-", 1)
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{name} {shlex.quote(text)}"


def unlike_run(options: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The options that ask for another value than the run has, by key."""
    return {
        key: value
        for key, value in options.items()
        if value is not None
        and key.partition(".")[0] not in _PROCESS_SECTIONS
        and value != _get(settings, key)
    }


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"
    if value is None:
        return "not set"
    return value if isinstance(value, str) else _as_json(value)


def _is_changed(
    configuration: Configuration, key: str, before: RunState, redactor: Redactor
) -> bool:
    """Whether the file or the variable that sets the key now says something new."""
    said = _strongest(configuration, key)
    if said is None or before.configured is None:
        return False  # an older version recorded no values
    old = [each.value for each in before.configured if _is_of_same_source(each, said)]
    return redactor.text(said.value) not in old[-1:]


def _kept_lines(
    configuration: Configuration, key: str, before: RunState, *, old: Any, new: Any
) -> Iterator[str]:
    """Why the run keeps a value that no source has now, if a person could expect another."""
    if before.configured is None:  # recorded by an older version: nothing is known of the sources
        if (said := _strongest(configuration, key)) is not None:
            words = f"{key}: {said.source} says {_format(new)}, the run keeps {_format(old)}"
            yield f"{words}; {_how_to_change(key, new)}"
        elif old != _get(Settings(), key):
            yield f"{key} {_format(old)} kept (not set here)"
        return
    for gone in _gone(configuration.configured, before.configured):
        if gone.key == key and gone.value == _as_json(old):
            yield f"{key} {_format(old)} kept ({_where_gone(gone)})"
            return


def _where_gone(said: Configured) -> str:
    if said.source == variable(said.key):
        return f"{said.source} is no longer set"
    return f"no longer in {said.source}" if said.source else "no longer set"


def _how_to_change(key: str, value: Any) -> str:
    """The option that gives a run this value."""
    return (
        f"{option(key, value)} changes it" if key in OPTIONS else "a new run (--restart) takes it"
    )


def _strongest(configuration: Configuration, key: str) -> Configured | None:
    """What the variable says; without one, what the file says."""
    return next((each for each in reversed(configuration.configured) if each.key == key), None)


def _gone(now: Sequence[Configured], before: Sequence[Configured]) -> Iterator[Configured]:
    """What sources said when they were last there, and do not say now."""
    return (old for old in before if not any(_is_of_same_source(old, each) for each in now))


def _is_of_same_source(old: Configured, now: Configured) -> bool:
    """Whether both are of one variable, or of the project's file, whatever its name.

    An older version recorded no source; such a value is compared with any.
    """
    by_variable = variable(now.key)
    same = not old.source or (old.source == by_variable) is (now.source == by_variable)
    return old.key == now.key and same


def _configured(
    given: Iterable[tuple[str, Any, str]], kinds: Mapping[str, Any]
) -> Iterator[Configured]:
    """What each source sets, converted; secrets are not recorded."""
    for key, value, source in given:
        if is_secret(kinds[key]):
            continue
        with suppress(msgspec.ValidationError):  # a wrong value in the file, under a variable
            yield Configured(key, _as_json(msgspec.convert(value, kinds[key])), source)


def _as_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _replaced(settings: S, key: str, value: Any) -> S:
    name, _, rest = key.partition(".")
    inner = _replaced(getattr(settings, name), rest, value) if rest else value
    return structs.replace(settings, **{name: inner})


def secret_values(root: Path, environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The values of secret settings from the file and the variables, each with its name.

    Invalid values are included: they may still be secrets.
    """
    values: dict[str, Any] = {}
    with suppress(ConfigError):
        _, _, values = _file(root)
    in_file = dict(_flattened(values))
    for key in (key for key, kind in leaves(Settings) if is_secret(kind)):
        set_by = variable(key)
        for name, value in ((key, in_file.get(key)), (set_by, environment.get(set_by))):
            words = value.splitlines() if isinstance(value, str) else value
            if not isinstance(words, list):
                continue
            text = "\n".join(str(word) for word in words)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            if _NAME.fullmatch(text):  # the name of a variable that holds the secret
                yield text, environment.get(text, "")
            else:
                yield name, text
                yield from ((name, word) for word in text.split("\n")[1:] if _DIGIT.search(word))


def lost_secrets(before: Settings, now: Settings) -> list[str]:
    """The secret settings that a run had before and that are not set now."""
    keys = [key for key, kind in leaves(Settings) if is_secret(kind)]
    return [key for key in keys if _get(before, key) and not _get(now, key)]


def _shown(key: str, kind: Any, value: Any, sources: Mapping[str, str]) -> Any:
    """A value to show; a secret is masked."""
    if not is_secret(kind):
        return value
    name = variable(key) if sources.get(key) == variable(key) else key
    return mask(value, f"[redacted {name}]")


def variable(key: str) -> str:
    """The environment variable that sets this key."""
    return "WINDLASS_" + key.replace(".", "_").upper()


def _option_name(key: str) -> str:
    return OPTIONS.get(key, "--" + key.replace("_", "-"))


def _file(root: Path) -> tuple[str, str, dict[str, Any]]:
    own, shared = root / FILE, root / "pyproject.toml"
    if os.path.lexists(own):  # a broken link is an error, and not a missing file
        text = _read(own)
        return FILE, text, _parsed(FILE, text)
    if shared.is_file():
        text = _read(shared)
        table = _table(_parsed(shared.name, text), "tool", "windlass")
        if table is not None:
            return shared.name, text, table
    return FILE, "", {}


def refuse_settings_below(root: Path, directory: Path) -> None:
    """Raise for settings below the root: a run works on the whole repository, and reads those."""
    if (found := settings_below(root, directory)) is not None:
        raise ConfigError(
            f"{found} is not at the root of the repository, and is not read",
            about=found,
            hint=f"move its keys to {root / FILE}, whose commands run at the root,"
            " or start the command at the root",
        )


def settings_below(root: Path, directory: Path) -> str | None:
    """The name of settings in this folder, or between it and the root; None if there are none."""
    if not directory.is_relative_to(root):
        return None
    for folder in (directory, *directory.parents):
        if folder == root:
            break
        if os.path.lexists(folder / FILE):
            return str((folder / FILE).relative_to(root))
        if _has_own_table(folder / "pyproject.toml"):
            return f"[tool.windlass] of {(folder / 'pyproject.toml').relative_to(root)}"
    return None


def _has_own_table(pyproject: Path) -> bool:
    try:
        return _table(_parsed(pyproject.name, _read(pyproject)), "tool", "windlass") is not None
    except ConfigError:
        return False  # missing, or broken: other tools report that


def _table(table: Any, *names: str) -> dict[str, Any] | None:
    """The nested table of that name; None if there is none."""
    for name in names:
        table = table.get(name) if isinstance(table, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if table is not None and not isinstance(table, dict):
        raise ConfigError(
            f"{'.'.join(names)} is not a table", where="pyproject.toml", hint="correct that line"
        )
    return table  # pyright: ignore[reportUnknownVariableType]


def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            # Reading a pipe would block. A link is the user's own, and is read like any file.
            message = f"{path.name} is not a regular file"
            raise ConfigError(message, about=path.name, hint="replace or remove it")
        content = path.read_bytes()
    except OSError as error:
        message = f"{path.name} cannot be read: {error.strerror or error}"
        raise ConfigError(message, about=path.name, hint="replace or remove it") from None
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        where = f"{path.name}:{line}"
        message = "the file is not UTF-8 text"
        raise ConfigError(message, where=where, hint="save it as UTF-8") from None


def _parsed(name: str, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = f"{name} is not TOML: {error}"
        raise ConfigError(message, about=name, hint="correct that line") from None


class _Sources(Struct, frozen=True):
    """Where settings came from, for error messages."""

    file: str
    text: str
    by_key: Mapping[str, str]

    def error(self, key: str, message: str, meant: str = "") -> ConfigError:
        cure = " ".join(filter(None, (meant, "`windlass doctor` lists every key and its bounds")))
        if self.by_key.get(key, self.file) != self.file:
            return ConfigError(message, where=self.by_key[key], hint=cure)
        inside = "tool.windlass." if self.file == "pyproject.toml" else ""
        line = _line_of(self.text, inside + key)
        where = f"{self.file}:{line}" if line else self.file
        return ConfigError(message, where=where, hint=cure)


def _converted(values: dict[str, Any], origin: _Sources) -> Settings:
    """Convert the values to settings; raises for a wrong value, key or agent."""
    try:
        settings = msgspec.convert(values, Settings, strict=True)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        section = re.sub(r"\[[^\]]*\]", "", where.strip("`."))
        unknown = re.search(r"unknown field `([^`]+)`", what)
        key = ".".join(part for part in (section, unknown[1] if unknown else "") if part)
        message = f"unknown key {key!r}" if unknown else f"{key}: {what[0].lower()}{what[1:]}"
        raise origin.error(key, message, _meant(key, what)) from None
    if (name := settings.agent.name) is not None and name not in vendors.names():
        meant = did_you_mean(name, vendors.names())
        raise origin.error(_AGENT, f"{_AGENT}: {no_such_agent(name)}", meant)
    return settings


def _meant(key: str, what: str) -> str:
    """The key or the value that was probably meant; a key may also be in the wrong table."""
    kinds = dict(leaves(Settings))
    if (wrong := re.search(r"[Ii]nvalid enum value '([^']*)'", what)) is not None:
        return did_you_mean(wrong[1], _bounds(kinds[key]).split(" | ")) if key in kinds else ""
    tables = {each.partition(".")[0] for each in kinds}
    if key in kinds or key in tables:
        return ""
    *_, name = key.split(".")
    elsewhere = [each for each in kinds if each.split(".")[-1] == name]
    if len(elsewhere) == 1:
        return f"did you mean {elsewhere[0]!r}?"
    return did_you_mean(key, [*kinds, *sorted(tables)])


def _line_of(text: str, key: str) -> int:
    """The line of a key or of its table, found by a rough scan: tomllib keeps no lines."""
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


def _flattened(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")  # pyright: ignore[reportUnknownArgumentType]
        else:
            yield prefix + key, value


def _set(values: dict[str, Any], key: str, value: Any) -> None:
    *sections, name = key.split(".")
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            return  # wrong already; `_converted` reports it
        values = inner  # pyright: ignore[reportUnknownVariableType]
    values[name] = value


def _get(settings: Settings, key: str) -> Any:
    value: Any = settings
    for part in key.split("."):
        value = getattr(value, part)
    return value


def _from_text(text: str, kind: Any) -> Any:
    """Convert the text of a variable to the type of the setting; a list has one item per line."""
    plain = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(plain) is tuple:
        return [line for line in text.splitlines() if line.strip()]
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return text  # `_converted` reports it with the name of the variable


def _bounds(kind: Any) -> str:
    """The values that the type allows, in words; from the schema that is enforced."""
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
