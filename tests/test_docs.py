"""The pages that are made from the code say what the code says."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from windlass.adapters.git.inspect import NO_FILTERS, NO_SUBMODULES

DOCS = Path(__file__).parents[1] / "docs"
SCHEMAS = (
    "error",
    "events",
    "execute-state",
    "milestone-state",
    "plan",
    "player-answer",
    "review",
    "settings",
    "spec-state",
    "status",
)
PAGES = (
    "cli.md",
    "configuration.md",
    "events.md",
    "exit-codes.md",
    "schemas.md",
    "state-diagram.md",
    *(f"schemas/{name}.json" for name in SCHEMAS),
    "../src/windlass/app/settings.schema.json",
)


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    sys.path.insert(0, str(DOCS))  # as `python docs/generate.py` has it
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_page_is_forgotten(generator: ModuleType):
    assert sorted(generator.PAGES) == sorted(PAGES)


@pytest.mark.parametrize("name", PAGES)
def test_running_the_generator_changes_nothing(
    generator: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "40")  # whoever runs it, on whatever screen
    monkeypatch.setenv("WINDLASS_AGENTS", "7")
    written = (DOCS / name).read_text(encoding="utf-8")
    assert generator.PAGES[name]() == written, "run: python docs/generate.py"


def test_every_transition_is_drawn(generator: ModuleType):
    from windlass.core.state.transitions import RUN_TRANSITIONS, TASK_TRANSITIONS

    page = generator.states_page()
    for table in (TASK_TRANSITIONS, RUN_TRANSITIONS):
        for phase, ways in table.items():
            for event, target in ways.items():
                arrow = next(
                    line for line in page.splitlines() if f" {phase} --> {target}:" in line
                )
                assert event.__name__ in arrow


def test_the_limits_of_readme_are_the_words_of_the_refusals() -> None:
    """Submodules and filters: README, `doctor` and the start of a run say the same."""
    for page in ("README.md", "docs/troubleshooting.md"):
        text = " ".join((DOCS.parent / page).read_text().split())
        for words in (NO_SUBMODULES, NO_FILTERS):
            assert f"{words}." in text, page
