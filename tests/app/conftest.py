"""A project with a run that is over, for each test that asks."""

from pathlib import Path

import pytest

from finished_run import InProcessDesk, finished
from windlass.app.wiring import Project


@pytest.fixture
def done(tmp_path: Path) -> InProcessDesk:
    return finished(tmp_path)


@pytest.fixture
def project(done: InProcessDesk) -> Project:
    return Project(done.repo, done.environment)
