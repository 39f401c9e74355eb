"""Which settings a resumed run keeps, which change, and what is said of both."""  # B14

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from windlass.app.run_settings import RunSettings
from windlass.app.wiring.configuration import (
    OPTIONS,
    ResumedSettings,
    configure,
    resumed_settings,
    setting_line,
)
from windlass.cli.run import command
from windlass.core.events.model import Configured, RunStarted
from windlass.core.plan import Task
from windlass.core.secrets import Redactor
from windlass.core.settings import Settings
from windlass.core.state import RunState, apply
from worlds import plan_of


class Runs:
    """A run that is started and resumed with files, variables and options."""

    def __init__(self, root: Path) -> None:
        self._root = root
        started = RunStarted(
            at=datetime(2026, 1, 1, tzinfo=UTC),
            run="r1",
            plan=plan_of(Task(id="1.1", title="One")),
            settings=Settings(),
            base="0" * 40,
            base_branch="main",
            sandbox="bwrap",
            version="0",
        )
        self.state: RunState = apply(None, started)

    def start(self, toml: str | None, options: dict[str, Any] | None = None, **more: str) -> None:
        made = configure(self._write(toml), more, options or {})
        self.state = replace(self.state, settings=made.settings, configured=made.configured)

    def resume(
        self, toml: str | None, options: dict[str, Any] | None = None, **more: str
    ) -> ResumedSettings:
        made = configure(self._write(toml), more, options or {})
        kept = resumed_settings(made, self.state, Redactor({}))
        self.state = replace(self.state, settings=kept.settings, configured=kept.configured)
        return kept

    def _write(self, toml: str | None) -> Path:
        file = self._root / "windlass.toml"
        file.unlink(missing_ok=True)
        if toml is not None:
            file.write_text(toml)
        return self._root


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


def said(resumed: ResumedSettings) -> list[str]:
    return [*map(setting_line, resumed.changes), *resumed.kept]


def test_a_variable_that_is_gone_does_not_bring_back_the_value_of_an_unchanged_file(runs: Runs):
    toml = "max_cost = 9\nmax_turns = 4\n"
    runs.start(toml, WINDLASS_MAX_COST="2", WINDLASS_MAX_TURNS="3")
    for _ in range(2):
        resumed = runs.resume(toml)
        assert (resumed.settings.max_cost, resumed.settings.max_turns) == (2, 3)
        assert said(resumed) == [
            "max_turns 3 kept (WINDLASS_MAX_TURNS is no longer set)",
            "max_cost 2.00 kept (WINDLASS_MAX_COST is no longer set)",
        ]
    assert runs.resume(toml, WINDLASS_MAX_COST="2").settings.max_cost == 2


def test_a_file_or_a_variable_that_says_something_new_changes_the_setting(runs: Runs):
    runs.start("max_cost = 9\n", WINDLASS_MAX_COST="2")
    assert said(runs.resume("max_cost = 8\n", WINDLASS_MAX_COST="2")) == [], "it is overridden"
    kept = runs.resume("max_cost = 8\n")
    assert said(kept) == ["max_cost 2.00 kept (WINDLASS_MAX_COST is no longer set)"]
    assert said(runs.resume("max_cost = 7\n")) == ["max_cost 2.00 → 7.00 (windlass.toml)"]
    changed = runs.resume("max_cost = 7\n", WINDLASS_MAX_COST="3")
    assert said(changed) == ["max_cost 7.00 → 3.00 (WINDLASS_MAX_COST)"]
    added = runs.resume("max_cost = 7\nagents = 2\n", WINDLASS_MAX_COST="3")
    assert said(added) == ["agents 3 → 2 (windlass.toml)"]


def test_a_source_that_is_back_as_it_was_changes_nothing(runs: Runs):
    """The file is gone while another branch is checked out, the variable in another terminal."""
    runs.start("max_cost = 9\n", {"max_cost": 1.5, "max_turns": 2}, WINDLASS_MAX_TURNS="4")
    for toml, more in ((None, {}), ("max_cost = 9\n", {"WINDLASS_MAX_TURNS": "4"})):
        resumed = runs.resume(toml, **more)
        assert said(resumed) == []
        assert (resumed.settings.max_cost, resumed.settings.max_turns) == (1.5, 2)
    back = runs.resume("max_cost = 8\n", WINDLASS_MAX_TURNS="4")
    assert said(back) == ["max_cost 1.50 → 8.00 (windlass.toml)"]


def test_every_key_that_is_removed_from_the_file_is_said_to_be_kept(runs: Runs):
    runs.start('checks = ["make test"]\nmax_turns = 3\nbatch = 8\n[sandbox]\nnested = true\n')
    lines = [
        'checks ["make test"] kept (no longer in windlass.toml)',
        "max_turns 3 kept (no longer in windlass.toml)",
        "sandbox.nested true kept (no longer in windlass.toml)",
    ]
    assert said(runs.resume(None)) == lines, (
        "a value that is the default anyway is not worth a line"
    )
    assert said(runs.resume("")) == lines, "as long as it is so"
    given = runs.resume("", {"max_turns": 6})
    assert said(given) == ["max_turns 3 → 6 (option --max-turns)", lines[0], lines[2]]
    assert said(runs.resume("")) == [lines[0], lines[2]], "6 was never in the file"


def test_a_file_that_moves_to_pyproject_is_the_same_source(runs: Runs, tmp_path: Path):
    runs.start("max_cost = 9\n", {"max_cost": 1.5})
    (tmp_path / "pyproject.toml").write_text("[tool.windlass]\nmax_cost = 9\n")
    resumed = runs.resume(None)
    assert (said(resumed), resumed.settings.max_cost) == ([], 1.5)


def test_a_journal_without_sources_keeps_its_settings_and_says_what_differs(runs: Runs):
    """RunStarted of an older version has no `configured`."""
    runs.start("max_cost = 4\n", {"max_turns": 2})
    runs.state = replace(runs.state, configured=None)
    toml = 'max_cost = 6\nland = true\nbarrier = false\ncheck_timeout = 5\nmodel = "a b"\n'
    resumed = runs.resume(toml)
    assert (resumed.settings.max_cost, resumed.changes) == (4, ())
    a_new_run = "a new run (--restart) takes it"
    assert list(resumed.kept) == [
        f"check_timeout: windlass.toml says 5.00, the run keeps 600; {a_new_run}",
        "land: windlass.toml says true, the run keeps false; --land changes it",
        "max_turns 2 kept (not set here)",
        "model: windlass.toml says a b, the run keeps claude-sonnet-4-5; --model 'a b' changes it",
        "max_cost: windlass.toml says 6.00, the run keeps 4.00; --max-cost 6 changes it",
    ]
    assert said(runs.resume(toml)) == [], "from then on the sources are known"
    off = "max_cost = 7\nland = false\n"
    assert said(runs.resume(off))[-1] == "max_cost 4.00 → 7.00 (windlass.toml)"


def test_a_value_without_a_source_is_compared_as_the_version_that_recorded_it_did(runs: Runs):
    runs.start("max_cost = 9\nmax_turns = 4\n")
    old = (Configured("max_cost", "9.0"), Configured("max_turns", "4"))
    runs.state = replace(runs.state, configured=old)
    assert said(runs.resume("max_cost = 9\nmax_turns = 4\n")) == []
    runs.state = replace(runs.state, configured=old)
    assert said(runs.resume("max_cost = 8\n")) == [
        "max_cost 9.00 → 8.00 (windlass.toml)",
        "max_turns 4 kept (no longer set)",
    ]


def test_a_wrong_value_in_the_file_under_a_variable_is_not_recorded(runs: Runs):
    runs.start("max_turns = 'four'\n", WINDLASS_MAX_TURNS="3")
    assert runs.state.configured == (Configured("max_turns", "3", "WINDLASS_MAX_TURNS"),)


def test_every_option_that_is_a_setting_has_its_name_in_the_table():
    assert OPTIONS.keys() == RunSettings().by_key().keys()
    known = {name for option in command.params for name in option.opts}
    assert set(OPTIONS.values()) <= known
