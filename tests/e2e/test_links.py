"""What a task commits leads no write of Windlass elsewhere: the real program, real git."""

import json

import pytest

import plans
from windlass.testing.model.script import Book, Call
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

PLAN = "# Milestone: {name}\n\n## Task {task}: Write {task}.txt\n\n**Depends on:** none\n"


def _shell(script: str) -> Call:
    return Call("Bash", {"command": script, "description": "Put a link there"})


def test_a_link_that_a_task_committed_leads_no_later_run_to_the_users_files(stage):
    """One plan's task commits the state file of another plan as a link, and is landed."""
    files = {
        **plans.files({}),
        "plan.md": PLAN.format(name="Files", task="1"),
        "other.md": PLAN.format(name="Other", task="2"),
    }
    link = "mkdir -p state && ln -s ../../home/.profile state/other_state.json"
    book = Book(
        scripts={
            "Role: Coach": reviewing(),
            "Role: Player|Task: 1\n": playing(_shell(link), summary="Linked."),
            "Role: Player|Task: 2\n": playing(write("2.txt", "by 2\n"), summary="Wrote 2.txt."),
        }
    )
    play = stage(files, book)
    profile = play.home / ".profile"
    profile.write_text("export MINE=1\n")
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    code, _, err = play.run("land", "plan")
    assert code == 0, err
    planted = play.repo / "state/other_state.json"
    assert planted.readlink().as_posix() == "../../home/.profile"
    code, _, err = play.run("run", "other.md")
    assert code == 0, err
    assert profile.read_text() == "export MINE=1\n"
    assert not profile.is_symlink()
    assert planted.is_symlink()
    assert err.count("state/other_state.json is a link") == 1
    assert "remove it, or put a plain file in its place" in err
    told = json.loads(play.run("status", "other", "--json")[1])
    assert told["status"] == "completed"
