"""A project with a run that is over, for each test that asks."""

from pathlib import Path

import pytest

from handover import Near, finished
from windlass.app.wiring import Project


@pytest.fixture
def done(tmp_path: Path) -> Near:
    return finished(tmp_path)


@pytest.fixture
def project(done: Near) -> Project:
    return Project(done.repo, done.environment)
