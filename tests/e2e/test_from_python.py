"""The page "Use it from Python": its example is run as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import plans
import windlass

pytestmark = pytest.mark.e2e
PAGE = Path(__file__).parents[2] / "docs/python.md"


def test_the_example_runs_a_plan(stage):
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=play.repo,
        env=play.environment,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "Files: 3 tasks",
        "exit code 0, merged: 1.1, 1.2, 1.3",
        "plan is completed",
    ]
    assert play.merges() == ["1.1", "1.2", "1.3"]


def test_every_name_is_there_and_importing_costs_nothing():
    assert all(getattr(windlass, name) is not None for name in windlass.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'haul'"):
        windlass.haul  # noqa: B018
    script = (
        "import sys, windlass; print(any(name.startswith('windlass.') for name in sys.modules))"
    )
    told = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert told.stdout == "False\n"
