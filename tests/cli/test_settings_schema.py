"""The JSON Schema of windlass.toml says what the reader of windlass.toml says."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from desk import Desk
from windlass.app.settings_schema import COPY, schema_text
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.refusals import refuse_command_in_file, refuse_none_as_setting
from windlass.core.settings import Settings, leaves
from windlass.errors import ConfigError
from windlass.testing.sample import FILES

SCHEMA = json.loads(schema_text())
NOT_IN_A_FILE = "notify.command"


def _properties(table: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Every key of the schema, dotted."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in table["properties"].items():
        inner = _properties(value, f"{prefix}{key}.") if "properties" in value else {}
        found.update(inner or {f"{prefix}{key}": value})
    return found


KEYS = _properties(SCHEMA)


def _refused_by_schema(values: Any) -> bool:
    return not jsonschema.Draft202012Validator(SCHEMA).is_valid(values)


def _refused_by_windlass(text: str, folder: Path) -> bool:
    (folder / "windlass.toml").write_text(text)
    try:
        configuration = configure(folder, {}, {})
        refuse_none_as_setting(configuration)
        refuse_command_in_file(configuration)
    except ConfigError:
        return True
    return False


def _agree(text: str, folder: Path) -> bool:
    """Whether both refuse the text; fails if they differ."""
    refused = _refused_by_windlass(text, folder)
    assert _refused_by_schema(tomllib.loads(text)) == refused, text
    return refused


def test_it_is_a_schema_and_has_exactly_the_keys_of_the_settings():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert set(KEYS) == {key for key, _ in leaves(Settings)} - {NOT_IN_A_FILE}
    assert all(each["description"] for each in KEYS.values())


def test_every_default_is_what_windlass_takes_without_the_key(tmp_path: Path):
    defaults = {value.key: value.value for value in configure(tmp_path, {}, {}).values}
    for key, schema in KEYS.items():
        if "default" in schema:
            assert schema["default"] == json.loads(msgspec.json.encode(defaults[key])), key


_VALUES = """\
true false 0 1 3 63 65 -1 0.5 86400.5 99999999 [] [''] [1] 1979-05-27 {a=1} ''
'auto' 'none' 'open' 'ask' 'clone' 'claude' 'skip' 'block' 'x'
['make'] ['done'] ['never'] ['a','b']
"""
"""Of every kind, within the bounds of some keys and beyond those of others."""


@pytest.mark.parametrize("key", KEYS)
def test_a_value_is_refused_by_both_or_by_neither(key: str, tmp_path: Path):
    refused = [_agree(f"{key} = {value}\n", tmp_path) for value in _VALUES.split()]
    assert any(refused)
    assert not all(refused)


@pytest.mark.parametrize(
    "text",
    [
        "chekcs = []\n",
        "[sandbox]\nlevle = 'auto'\n",
        "agents = 0\n",
        "[nothing]\nx = 1\n",
        "agent = 3\n",
    ],
)
def test_wrong_settings_are_refused(text: str, tmp_path: Path):
    assert _agree(text, tmp_path)


def test_the_settings_of_the_sample_are_right(tmp_path: Path):
    assert not _agree(FILES["windlass.toml"], tmp_path)


class TestInit:
    def test_the_line_that_init_writes_leads_to_the_schema(self, desk: Desk):
        desk.write("package.json", '{"scripts": {"test": "node --test"}}')
        assert desk.call("init", "--yes").code == 0
        text = (desk.repo / "windlass.toml").read_text()
        first = text.splitlines()[0]
        assert first == f"#:schema {COPY}"
        assert json.loads((desk.repo / first.split()[1]).read_text()) == SCHEMA
        assert not _refused_by_schema(tomllib.loads(text))
        assert desk.git("status", "--porcelain", "--ignored").count("!! .windlass/") == 1

    def test_schema_prints_what_init_writes(self, desk: Desk):
        assert desk.call("schema") == (0, schema_text(), "")

    def test_a_run_in_a_fresh_clone_writes_the_schema_that_the_settings_name(self, desk: Desk):
        desk.commit("windlass.toml", f"#:schema {COPY}\nchecks = ['false']\n")
        desk.write(COPY, "of an older version")
        desk.call("run", "plan.md", "--red-base", "stop", "--sandbox", "checkout")
        assert (desk.repo / COPY).read_text() == schema_text()
