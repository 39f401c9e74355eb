"""Waves with the real CLI: one group fails, what needs it is blocked, all else is merged."""

import json

import pytest

import plans
from waiting import eventually
from windlass.testing.model.script import Answer, Book, Call, Say, Script
from windlass.testing.sample import playing, reviewing, write

pytestmark = pytest.mark.e2e

SPEC = """\
---
id: SPEC-7
status: draft
---
# SPEC-7: Six parts

## Acceptance Criteria

- it works

### Task Groups

| Group | Wave | Tasks | Dependencies |
|-------|------|-------|--------------|
| G1 | 1 | Make one | - |
| G2 | 1 | Make two | - |
| G3 | 2 | Make three | G1 |
| G4 | 2 | Make four | G2 |
| G5 | 3 | Make five | G4 |
| G6 | 3 | Make six | G3 |
"""
GROUPS = tuple(f"G{n}" for n in range(1, 7))
FILES = {
    "README.md": "hello\n",
    ".specflow/specs/SPEC-7.md": SPEC,
    "windlass.toml": 'checks = ["test ! -e broken"]\n',
}


def player(group: str) -> Script:
    return playing(write(f"{group}.txt", f"by {group}\n"), summary=f"Wrote {group}.txt.")


def book(**special: Script) -> Book:
    players = {f"Role: Player|Task: {g}\n": special.get(g) or player(g) for g in GROUPS}
    return Book(scripts={**players, "Role: Coach": reviewing()})


def statuses(play) -> dict[str, str]:
    told = json.loads(play.run("status", "SPEC-7", "--json")[1])
    return {id_: task["status"] for id_, task in told["tasks"].items()}


def test_three_waves_one_group_fails_and_the_wave_is_restarted(stage):  # S1 S3 S6 S11 X5
    talks = Script((Answer((Say("All done!"),)),))
    play = stage(FILES, book(G4=talks))
    spec = ".specflow/specs/SPEC-7.md"
    code, _, err = play.run("run", spec, "--agents", "3", "--max-turns", "1")
    assert code == 1, err
    assert statuses(play) == {
        "G1": "completed",
        "G2": "completed",
        "G3": "completed",
        "G4": "abandoned",
        "G5": "blocked",
        "G6": "completed",
    }
    assert "STAGE  1 passed" in err
    assert "BLOCKED" in err
    branch = "windlass/SPEC-7/integration"
    assert set(play.git("ls-tree", "--name-only", branch).split()) >= {
        "G1.txt",
        "G2.txt",
        "G3.txt",
        "G6.txt",
    }
    before = play.git("rev-parse", branch).strip()

    play.replace_book(book())
    code, _, err = play.run("retry", "SPEC-7:2")
    assert code == 0, err
    code, _, err = play.run("resume", "SPEC-7", "--max-turns", "1")
    assert code == 0, err
    assert set(statuses(play).values()) == {"completed"}
    assert "G3 Make three · nothing to change" in err, "what was merged stands"
    files = play.git("ls-tree", "--name-only", branch).split()
    assert set(files) >= {f"{group}.txt" for group in GROUPS}
    play.git("merge-base", "--is-ancestor", before, branch)
    archived = play.repo / ".specflow/execution/archive"
    assert list(archived.glob("SPEC-7*.json")), "the state file is put away on success"


def test_green_alone_and_red_together_is_caught_before_the_branch_moves(stage):  # X4 B2
    """One renames what the other begins to use: neither touches the other's lines."""
    tasks = {"a": (), "b": ()}
    check = "sh check.sh"
    files = {
        **plans.files(tasks, checks=check),
        "lib.txt": "old-name\n",
        "check.sh": 'for f in uses-*; do [ -e "$f" ] || continue; grep -q "$(cat $f)" lib.txt || '
        "exit 1; done\n",
    }
    rename = write("lib.txt", "new-name\n")
    uses = write("uses-it", "old-name\n")
    mend = Call(
        "Bash",
        {
            "command": "cp lib.txt uses-it; echo mended > note-$(cat lib.txt)",
            "description": "follow the new name",
        },
    )
    scripts = {
        **plans.book(tasks).scripts,
        "Role: Player|Task: a\n": playing(rename, summary="renamed"),
        "Role: Player|Task: b\n": playing(uses, summary="uses it"),
        "Role: Player|Task: a\n|not together": playing(mend, summary="mended"),
        "Role: Player|Task: b\n|not together": playing(mend, summary="mended"),
    }
    play = stage(files, Book(scripts=scripts))
    code, _, err = play.run("run", "plan.md", "--agents", "2")
    assert code == 0, err
    assert "merged checks" in err
    branch = "windlass/plan/integration"
    for commit in play.git("rev-list", "--first-parent", f"main..{branch}").split():
        name = play.git("show", f"{commit}:lib.txt")
        shown = play.git("ls-tree", "--name-only", commit).split()
        assert "uses-it" not in shown or play.git("show", f"{commit}:uses-it") == name
    status = json.loads(play.run("status", "plan", "--json")[1])
    assert {task["turns"] for task in status["tasks"].values()} == {1}, "it used no turn"


def test_the_user_is_busy_meanwhile_and_nothing_is_lost(stage):  # B7
    """Commits to the base, deletes the branch, edits the plan, collects garbage: all is handled."""
    tasks = {"a": (), "b": ("a",), "c": ("b",)}
    slow = Answer((Call("Glob", {"pattern": "*"}),), delay=3)
    play = stage(
        plans.files(tasks),
        plans.book(
            tasks,
            b=playing(slow, write("b.txt", "by b\n"), summary="b"),
            c=playing(slow, write("c.txt", "by c\n"), summary="c"),
        ),
    )
    branch = "windlass/plan/integration"
    with play.windlass("run", "plan.md") as process:
        eventually(lambda: play.git("branch", "--list", branch).strip(), timeout=60)
        (play.repo / "mine.txt").write_text("mine\n")
        play.git("add", "mine.txt")
        play.git("commit", "--quiet", "--message", "Mine")
        play.git("branch", "--delete", "--force", branch)
        play.git("reflog", "expire", "--expire=now", "--all")
        play.git("gc", "--quiet", "--prune=now")
        plan = play.repo / "plan.md"
        plan.write_text(plan.read_text() + "\n## Task d: Write d.txt\n\n**Depends on:** c\n")
        _, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
    assert f"{branch} was gone; it was created again" in err
    assert "main has moved to" in err
    assert play.merges() == ["a", "b", "c"]
    files = play.git("ls-tree", "--name-only", branch).split()
    assert {"a.txt", "b.txt", "c.txt"} <= set(files)
    assert "mine.txt" not in files, "the run works from its own base"
