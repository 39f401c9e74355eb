"""Settings: where each comes from, what wins, and what is said of a bad one."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from windlass.app.wiring.configuration import Configuration, configure, variable
from windlass.core.settings import AgentSettings, Settings
from windlass.errors import ConfigError
from windlass.views.outcome import error_code

DEFAULTS = Settings(agent=AgentSettings(name="claude"), model="claude-sonnet-4-5")
"""Without anything set; the agent and its model by name."""


def told(
    root: Path,
    toml: str | None = None,
    *,
    environment: dict[str, str] | None = None,
    **options: Any,
) -> Configuration:
    if toml is not None:
        (root / "windlass.toml").write_text(toml)
    dotted = {key.replace("__", "."): value for key, value in options.items()}
    return configure(root, environment or {}, dotted)


def source(configuration: Configuration, key: str) -> tuple[Any, str]:
    return next((v.value, v.source) for v in configuration.values if v.key == key)


def refusal(root: Path, toml: str | None = None, **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        told(root, toml, **more)
    assert error_code(type(caught.value)) == 2
    return caught.value.message


class TestSources:
    def test_without_anything_all_is_default(self, tmp_path: Path):
        configuration = told(tmp_path)
        assert configuration.settings == DEFAULTS
        assert {value.source for value in configuration.values} == {"default"}

    def test_option_over_variable_over_file_over_default(self, tmp_path: Path):
        toml = "agents = 2\nmax_turns = 2\nmax_cost = 2\n"
        configuration = told(
            tmp_path,
            toml,
            environment={"WINDLASS_MAX_TURNS": "3", "WINDLASS_MAX_COST": "3.5"},
            max_cost=4.0,
            model=None,
        )
        assert source(configuration, "agents") == (2, "windlass.toml")
        assert source(configuration, "max_turns") == (3, "WINDLASS_MAX_TURNS")
        assert source(configuration, "max_cost") == (4.0, "option --max-cost")
        assert source(configuration, "model") == ("claude-sonnet-4-5", "default")

    def test_sections(self, tmp_path: Path):
        configuration = told(
            tmp_path,
            '[workspace]\nsetup = ["make"]\n[sandbox]\nnetwork = true\n',
            environment={"WINDLASS_SANDBOX_LEVEL": "none", "WINDLASS_POLICY_ABSENT": "skip"},
            policy__red_base="go",
            sandbox__level="checkout",
        )
        settings = configuration.settings
        assert settings.workspace.setup == ("make",)
        assert (settings.sandbox.network, settings.sandbox.level) == (True, "checkout")
        assert (settings.policy.absent, settings.policy.red_base) == ("skip", "go")
        assert source(configuration, "workspace.setup")[1] == "windlass.toml"
        assert source(configuration, "sandbox.level")[1] == "option --sandbox"
        assert source(configuration, "policy.absent")[1] == "WINDLASS_POLICY_ABSENT"
        assert source(configuration, "policy.red_base")[1] == "option --red-base"

    def test_pyproject_has_a_section_too(self, tmp_path: Path):
        (tmp_path / "pyproject.toml").write_text("[tool.windlass.policy]\nabsent = 'skip'\n")
        configuration = told(tmp_path)
        assert source(configuration, "policy.absent") == ("skip", "pyproject.toml")

    def test_a_file_of_its_own_hides_that_section(self, tmp_path: Path):
        (tmp_path / "pyproject.toml").write_text("[tool.windlass]\nagents = 9\n")
        assert told(tmp_path, "max_turns = 2\n").settings == replace(DEFAULTS, max_turns=2)

    @pytest.mark.parametrize("text", ["", "[tool]\n", "[project]\nname = 'x'\n", "tool = 3\n"])
    def test_a_pyproject_without_that_section_says_nothing(self, tmp_path: Path, text: str):
        (tmp_path / "pyproject.toml").write_text(text)
        assert told(tmp_path).settings == DEFAULTS

    def test_a_variable_for_a_list_has_one_item_a_line(self, tmp_path: Path):
        configuration = told(tmp_path, environment={"WINDLASS_CHECKS": "make test\n\nmake lint\n"})
        assert configuration.settings.checks == ("make test", "make lint")

    def test_every_key_has_a_variable(self, tmp_path: Path):
        names = {variable(value.key) for value in told(tmp_path).values}
        assert {"WINDLASS_AGENTS", "WINDLASS_AGENT_TIMEOUT", "WINDLASS_SANDBOX_LEVEL"} <= names
        assert len(names) == len(told(tmp_path).values)

    def test_a_true_and_a_number_are_read_from_text(self, tmp_path: Path):
        environment = {"WINDLASS_SANDBOX_NETWORK": "true", "WINDLASS_AGENT_TIMEOUT": "1.5"}
        settings = told(tmp_path, environment=environment).settings
        assert (settings.sandbox.network, settings.agent.timeout) == (True, 1.5)


class TestRefusals:
    @pytest.mark.parametrize(
        ("toml", "said"),
        [
            ("max_turn = 3", "windlass.toml:1: unknown key 'max_turn'"),
            ("[polcy]\nx = 1", "windlass.toml:1: unknown key 'polcy'"),
            (
                "[policy]\n\n\nred-base = 'go'",
                "windlass.toml:4: unknown key 'policy.red-base'",
            ),
            ("policy.on = 1", "windlass.toml:1: unknown key 'policy.on'"),
            (
                "\nworkspace = { sett = 1 }",
                "windlass.toml:2: unknown key 'workspace.sett'",
            ),
            ("max_turns = 101", "windlass.toml:1: max_turns: expected `int` <= 100"),
            ("max_turns = 2.5", "windlass.toml:1: max_turns: expected `int`, got `float`"),
            ("max_turns = true", "windlass.toml:1: max_turns: expected `int`, got `bool`"),
            ("max_cost = 0", "windlass.toml:1: max_cost: expected `float` > 0.0"),
            ("workspace = 3", "windlass.toml:1: workspace: expected `object`, got `int`"),
            ("checks = 'make'", "windlass.toml:1: checks: expected `array`, got `str`"),
            ("checks = [\n 'a',\n 3]", "windlass.toml:1: checks: expected `str`, got `int`"),
            (
                "[agent]\ntimeout = 1\n[sandbox]\nenv = [7]",
                "windlass.toml:4: sandbox.env: expected `str`, got `int`",
            ),
        ],
    )
    def test_what_and_where(self, tmp_path: Path, toml: str, said: str):
        assert refusal(tmp_path, toml) == said

    def test_not_a_number_is_no_budget(self, tmp_path: Path):
        assert "max_cost" in refusal(tmp_path, "max_cost = nan")
        assert "max_cost" in refusal(tmp_path, "max_cost = inf")

    def test_the_line_is_that_of_the_section_and_not_of_a_namesake(self, tmp_path: Path):
        (tmp_path / "pyproject.toml").write_text(
            '[project]\nname = "x"\n\n[tool.windlass.agent]\nname = "y"\n'
        )
        why = "agent.name: there is no agent 'y', only claude"
        assert refusal(tmp_path) == f"pyproject.toml:5: {why}"

    def test_a_section_that_is_no_table(self, tmp_path: Path):
        (tmp_path / "pyproject.toml").write_text("[tool]\nwindlass = 3\n")
        assert refusal(tmp_path) == "pyproject.toml: tool.windlass is not a table"

    def test_a_variable_is_named(self, tmp_path: Path):
        said = refusal(tmp_path, "agents = 2", environment={"WINDLASS_AGENTS": "banana"})
        assert said == "WINDLASS_AGENTS: agents: expected `int`, got `str`"

    def test_a_variable_of_a_section_that_is_none_leaves_the_blame_where_it_is(
        self, tmp_path: Path
    ):
        said = refusal(tmp_path, "sandbox = 3", environment={"WINDLASS_SANDBOX_LEVEL": "none"})
        assert said == "windlass.toml:1: sandbox: expected `object`, got `int`"

    def test_an_option_is_named(self, tmp_path: Path):
        assert refusal(tmp_path, agents=65) == "option --agents: agents: expected `int` <= 64"

    def test_what_is_no_toml(self, tmp_path: Path):
        assert refusal(tmp_path, "[sandbox\n").startswith("windlass.toml is not TOML: ")

    def test_what_is_no_text(self, tmp_path: Path):
        (tmp_path / "windlass.toml").write_bytes(b"model = '\xff'\n")
        assert refusal(tmp_path) == "windlass.toml:1: the file is not UTF-8 text"


def test_bounds_are_those_that_are_enforced(tmp_path: Path):
    bounds = {value.key: value.bounds for value in told(tmp_path).values}
    assert bounds["agents"] == "≥ 1, ≤ 64"
    assert bounds["max_cost"] == "> 0, ≤ 100000"
    assert bounds["sandbox.level"] == "auto | bwrap | checkout | none | seatbelt"
    assert bounds["sandbox.network"] == "true | false | open"
    assert bounds["checks"] == "a list of texts"
    assert bounds["base"] == "text, or not set"
    assert bounds["max_tokens"] == "≥ 1, or not set"
    assert bounds["model"] == "text, or not set"
    assert bounds["agent.name"] == "claude"
