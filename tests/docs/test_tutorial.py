"""The tutorial, done by a reader: every command, offline, with the real Claude program."""

from pathlib import Path

import pytest

from transcripts import Reader

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.e2e
@pytest.mark.timeout(400)  # two whole runs, with an agent program for every turn
def test_the_tutorial_shows_what_its_commands_show(tmp_path: Path):  # B1
    Reader(tmp_path).follow(DOCS / "tutorial.md")
