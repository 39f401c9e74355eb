"""A repository with a plan, and windlass in it, for each test that asks."""

from pathlib import Path

import pytest

from desk import PLAN, Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.build({"README.md": "hello\n", "plan.md": PLAN})
    return made
