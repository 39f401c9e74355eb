"""Signed commits from the command line: at a landing, refused at the start, and cut short."""

import subprocess
import sys
from pathlib import Path

import pytest

from desk import Desk
from finished_run import finished


@pytest.fixture
def done(tmp_path: Path) -> Desk:
    return finished(tmp_path)


@pytest.fixture
def key(done: Desk, tmp_path: Path) -> Path:
    """An ssh key with which the user's own git signs and verifies."""
    path = tmp_path / "id"
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)]
    subprocess.run(made, check=True)
    email = done.git("log", "-1", "--format=%ae").strip()
    signers = tmp_path / "signers"
    signers.write_text(f"{email} {path.with_suffix('.pub').read_text()}")
    for name, value in {
        "gpg.format": "ssh",
        "user.signingKey": f"{path}.pub",
        "gpg.ssh.allowedSignersFile": str(signers),
    }.items():
        done.git("config", name, value)
    return path


def is_signed(desk: Desk, commit: str) -> bool:
    done = subprocess.run(
        ["git", "verify-commit", commit],
        cwd=desk.repo,
        env=desk.environment,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def sign(desk: Desk, value: str) -> None:
    desk.write("windlass.toml", f"[git]\nsign = {value}\n")


@pytest.mark.parametrize("value", ['"land"', "true"])
def test_a_landing_that_signs_ends_in_a_signed_merge(done: Desk, key: Path, value: str) -> None:
    """Set after the run, as a person does who reads the warning at its start."""
    base = done.git("rev-parse", "main").strip()
    sign(done, value)
    answer = done.call("land", "plan")
    assert answer.code == 0, answer.err
    assert is_signed(done, "main")
    tip = done.git("rev-parse", "refs/windlass/plan/r1/tip").strip()
    assert done.git("rev-parse", "main^1", "main^2").split() == [base, tip]
    assert not is_signed(done, tip)
    assert done.call("land", "plan").out.startswith("main already has all of it")


def test_every_squashed_commit_is_signed(done: Desk, key: Path) -> None:
    sign(done, "true")
    answer = done.call("land", "plan", "--squash")
    assert answer.code == 0, answer.err
    assert [is_signed(done, each) for each in ("main", "main~1")] == [True, True]
    assert done.git("log", "--merges", "--format=%s", "main").strip() == ""


def test_a_key_that_does_not_work_is_said_before_anything_is_done(done: Desk, key: Path) -> None:
    sign(done, "true")
    key.unlink()
    key.with_suffix(".pub").unlink()
    before = done.everything()
    land, again = ("land", "plan"), ("run", "plan.md", "--restart")
    for command in (land, (*land, "--squash"), again):
        answer = done.call(*command, "--yes")
        assert answer.code == 2, command
        assert "no commit can be signed (ssh, key" in answer.err
        assert "make `git commit -S` work here" in answer.err
    assert done.everything() == before


def test_a_key_that_stops_working_in_a_landing_loses_nothing(done: Desk, key: Path) -> None:  # B4
    """The program signs once, at the try before the landing, and then no more."""
    program, used = key.with_name("sign"), key.with_name("used")
    program.write_text(
        f"#!{sys.executable}\nimport os, pathlib, sys\n"
        f"used = pathlib.Path({str(used)!r})\n"
        "if used.exists():\n    sys.exit('the key is locked')\n"
        "if '-Y' in sys.argv and 'sign' in sys.argv:\n    used.touch()\n"
        "os.execvp('ssh-keygen', ['ssh-keygen', *sys.argv[1:]])\n"
    )
    program.chmod(0o755)
    done.git("config", "gpg.ssh.program", str(program))
    sign(done, "true")
    main = done.git("rev-parse", "main")
    answer = done.call("land", "plan", "--squash")
    assert answer.code == 4, answer.err
    assert "the key is locked" in answer.err
    assert "then run `windlass land plan`; nothing recorded is lost" in answer.err
    assert done.git("rev-parse", "main") == main
    done.git("config", "--unset", "gpg.ssh.program")
    again = done.call("land", "plan", "--squash")
    assert again.code == 0, again.err
    assert is_signed(done, "main~1")
