"""What users do meanwhile, and what must never happen to what is theirs."""

import hashlib
import json
import subprocess
from pathlib import Path

import pytest

import plans
from waiting import eventually
from windlass.testing.model.script import Answer, Call, Say, Script
from windlass.testing.sample import playing, write

pytestmark = pytest.mark.e2e


def fingerprint(repo: Path) -> dict[str, str]:
    """Every byte that is the user's: checkout, HEAD, index, configuration, hooks, refs, logs."""
    skip = ("objects", "refs/windlass", "refs/heads/windlass")
    found: dict[str, str] = {}
    for path in sorted(repo.rglob("*")):
        name = path.relative_to(repo).as_posix()
        ours = name.startswith((".windlass", "state/", *(f".git/{s}" for s in skip)))
        if path.is_file() and not ours:
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() + oct(path.stat().st_mode)
    return found


def test_the_users_checkout_stays_byte_identical(stage):  # G7 K0
    files = {**plans.files(plans.DIAMOND), "src/code.py": "x = 1\n"}
    play = stage(files, plans.book(plans.DIAMOND))
    for hook in ("pre-commit", "post-commit", "reference-transaction", "post-checkout", "pre-push"):
        path = play.repo / ".git/hooks" / hook
        path.write_text('#!/bin/sh\ntouch "$HOME/hook-ran"\nexit 1\n')
        path.chmod(0o755)
    (play.repo / "src/code.py").write_text("x = 2  # not committed\n")
    (play.repo / "scratch.txt").write_text("mine\n")
    before = fingerprint(play.repo)
    code, _, err = play.run("run", "plan.md", "--agents", "2")
    assert code == 0, err
    assert "2 uncommitted changes are not part of the run" in err
    assert fingerprint(play.repo) == before
    assert not (play.home / "hook-ran").exists()
    assert play.git("status", "--short").split() == [
        "M",
        "src/code.py",
        "??",
        "scratch.txt",
    ]


def test_the_base_rewound_reflogs_expired_and_gc_in_mid_run(stage):
    """All that the run relies on is pinned, so nothing is lost."""
    pause = {
        "b": playing(
            Answer((Call("Glob", {"pattern": "*"}),), delay=4),
            write("b.txt", "by b\n"),
            summary="b",
        )
    }
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND, **pause))
    play.git("commit", "--allow-empty", "-m", "the base that will be rewound")
    base = play.git("rev-parse", "main").strip()
    with play.windlass("run", "plan.md", "--agents", "2") as process:
        eventually(lambda: play.conversations("b"))
        play.git("reset", "--hard", "HEAD~1")
        play.git("reflog", "expire", "--expire=now", "--all")
        play.git("gc", "--quiet", "--prune=now")
        _, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    assert sorted(play.merges()) == ["a", "b", "c", "d"]
    play.git("merge-base", "--is-ancestor", base, "windlass/plan/integration")
    play.git("gc", "--quiet", "--prune=now")
    assert play.git("fsck", "--connectivity-only") == ""


def test_a_detached_head_is_a_warning(stage):
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE))
    play.git("checkout", "--quiet", "--detach")
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert "HEAD is detached" in err


def test_a_deleted_workspace_is_made_again(stage):
    slow = {"b": Script((write("b.txt", "by b\n"), Answer((Say("…"),), delay=30)))}
    play = stage(plans.files(plans.DIAMOND), plans.book(plans.DIAMOND, **slow))
    assert play.killed_at("b → ", "run", "plan.md", "--agents", "1")[0] < 0
    eventually(play.none_left)
    subprocess.run(["rm", "-rf", play.repo / ".windlass/plans/plan/workspaces"], check=True)
    play.replace_book(plans.book(plans.DIAMOND))
    code, _, err = play.run("resume")
    assert code == 0, err
    assert play.git("show", "windlass/plan/integration:b.txt") == "by b\n"
    assert "the workspace of b was gone; it is made again from " in err


def test_tasks_can_work_in_linked_worktrees(stage):  # G7
    play = stage(
        {**plans.files(plans.DIAMOND), "windlass.toml": '[workspace]\nkind = "worktree"\n'},
        plans.book(plans.DIAMOND),
    )
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert play.git("show", "windlass/plan/integration:b.txt") == "by b\n"
    assert play.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert play.git("fsck") == ""


def test_running_again_asks_and_options_answer(stage):  # S4 K3
    slow = {"1.1": Script((Answer((Say("…"),), delay=30),))}
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE, **slow))
    play.killed_at("PLAYER  1.1", "run", "plan.md")
    code, _, err = play.run("run", "plan.md")
    assert code == 3
    assert "0 of 3 tasks merged" in err
    assert "windlass resume plan.md" in err
    play.replace_book(plans.book(plans.SEQUENCE))
    code, _, err = play.run("run", "plan.md", "--restart")
    assert code == 0, err
    first, second = (json.loads(line)["event"]["run"] for line in _runs(play))
    assert first != second
    refs = play.git("for-each-ref", "--format=%(refname)", "refs/windlass/plan/")
    assert f"/{first}/base" in refs, "the old run stays pinned"
    code, _, err = play.run("resume", "plan.md")
    assert code == 2
    assert "nothing to resume" in err


def _runs(play) -> list[str]:
    lines = play.run("log", "plan", "--json", "--all")[1].splitlines()
    return [line for line in lines if '"RunStarted"' in line]


def test_no_secret_reaches_a_file(stage):  # S13 B5
    """The key, and whatever else sounds like a secret, is in nothing that Windlass writes."""
    canary = "canary-0123456789-secret"
    leak = Call(
        "Bash",
        {"command": "env | sort > leak.txt; cat leak.txt; echo " + canary, "description": "leak"},
    )
    say = Say(f"the password is {canary}")
    book = plans.book(plans.SEQUENCE, **{"1.1": Script((leak, say))})
    play = stage(plans.files(plans.SEQUENCE), book)
    code, out, err = play.run("run", "plan.md", "--verbose", DEPLOY_PASSWORD=canary)
    assert code == 0, err
    assert canary not in out + err
    assert "the password is [redacted" in err
    for path in [*play.repo.glob(".windlass/**/*"), *play.repo.glob("state/*")]:
        if path.is_file():
            assert canary.encode() not in path.read_bytes(), path
    leaked = play.git("show", "windlass/plan/integration:leak.txt")
    assert "DEPLOY_PASSWORD" not in leaked


def test_an_agent_cannot_leave_its_workspace(stage):  # B5 G4
    """Inside bubblewrap the user's files, the journal and the siblings are out of reach.

    What the real program streams of the attempt is on record, whole, though no screen shows more
    than its first words.
    """
    attack = (
        "touch {repo}/owned; rm -rf {repo}/.windlass; git -C {repo} branch owned; "
        "echo x >> {repo}/README.md; ls {repo} > seen.txt 2>&1; ls ~/.ssh >> seen.txt 2>&1; "
        "echo by 1.1 > 1.1.txt"
    )
    files = plans.files(plans.SEQUENCE)
    play = stage(files, plans.book({}))
    (play.home / ".ssh").mkdir()
    (play.home / ".ssh/id").write_text("private")
    attack = attack.format(repo=play.repo)
    call = Call("Bash", {"command": attack, "description": "attack"})
    hostile = {"1.1": playing(call, summary="done")}
    play.replace_book(plans.book(plans.SEQUENCE, **hostile))
    before = fingerprint(play.repo)
    code, _, err = play.run("run", "plan.md")
    assert code == 0, err
    assert "sandbox bwrap" in err
    assert fingerprint(play.repo) == before
    seen = play.git("show", "windlass/plan/integration:seen.txt")
    assert "README.md" not in seen
    assert "id" not in seen.split()
    assert "owned" not in play.git("branch", "--list")
    [log] = play.repo.glob(".windlass/plans/plan/runs/*/activity.jsonl")
    told = [json.loads(line) for line in log.read_text().splitlines()]
    [tried] = [line for line in told if attack in line.get("whole", "")]
    assert tried["text"] == f"Running: {attack[:49]}…"
    assert tried["text"] in err
    assert attack not in err
