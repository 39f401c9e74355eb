"""A setting that is secret works in every process of a run, and is found in nothing it leaves."""

import os
import signal
import subprocess
import zipfile
from pathlib import Path

import pytest

import plans
from receiver import receiving
from waiting import eventually
from windlass.testing.model.script import Answer, Say, Script
from windlass.testing.sample import write

pytestmark = pytest.mark.e2e

HOOK = "canary-hook-T00B00"
TOKEN = "canary-command-0123"
LOST = "was set when the run started and is not set now"


def test_a_webhook_and_a_command_are_used_and_never_recorded(stage, tmp_path: Path):  # S13 B13
    slow = {"1.2": Script((write("1.2.txt", "by 1.2\n"), Answer((Say("…"),), delay=60)))}
    play = stage(plans.files(plans.SEQUENCE), plans.book(plans.SEQUENCE, **slow))
    heard = tmp_path / "heard"
    teller = tmp_path / "teller"
    teller.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> "{heard}"\n')
    teller.chmod(0o755)
    command = {"WINDLASS_NOTIFY_COMMAND": f"{teller}\n--token={TOKEN}\n{{title}}"}
    with receiving() as receiver:
        file = play.repo / "windlass.toml"
        file.write_text(f'[notify]\nwebhook = "{receiver.url}/services/{HOOK}"\n')
        said = killed_at(play, "1.2 ", "run", "plan.md", **command)
        settings = file.read_text()
        file.write_text("")
        said += (without := killed_at(play, "1.2 ", "resume"))
        assert f"notify.webhook {LOST}" in without
        assert f"notify.command {LOST}" in without
        assert "set WINDLASS_NOTIFY_WEBHOOK again" in without
        file.write_text(settings)
        play.replace_book(plans.book(plans.SEQUENCE))
        code, out, err = play.run("resume", **command)
        assert code == 0, err
        assert LOST not in err
        assert [(got.path, each["kind"]) for got, each in zip(
            receiver.got, receiver.documents, strict=True
        )] == [(f"/services/{HOOK}", "done")]  # fmt: skip
    assert f"--token={TOKEN}\nDone" in heard.read_text()
    shown = {"run": said, "resume": out + err, **commands(play, command)}
    assert {name for name, text in shown.items() if HOOK in text or TOKEN in text} == set()
    assert "[redacted notify.webhook]" in shown["doctor"]
    assert "[redacted WINDLASS_NOTIFY_COMMAND]" in shown["doctor"]
    kept = left_behind(play.repo)
    assert {".windlass/plans/plan/journal.db", "every object of git"} <= kept.keys()
    assert any(name.endswith("windlass-bundle/configuration.json") for name in kept)
    found = [name for name, data in kept.items() if HOOK.encode() in data or TOKEN.encode() in data]
    assert found == []


def killed_at(play, text: str, *args: str, **more: str) -> str:
    """What a process says that is killed, with all its group, when it says a text."""
    said = ""
    with play.windlass(*args, **more) as process:
        for line in process.stderr:
            said += line
            if text in line and "→" in line:
                os.killpg(process.pid, signal.SIGKILL)
                break
        said += process.stderr.read()
    eventually(play.none_left)
    return said


def commands(play, variables: dict[str, str]) -> dict[str, str]:
    """What every command says that shows settings, or might."""
    asked = {
        "doctor": ("doctor",),
        "doctor in JSON": ("doctor", "--json"),
        "status": ("status", "--json"),
        "log": ("log", "plan"),
        "history": ("history",),
        "plan": ("plan", "plan.md"),
        "report": ("report", "--output", "-"),
        "bundle": ("bundle",),
        "bundle with texts": ("bundle", "--with-texts", "--output", str(play.repo / "all.zip")),
        "another run": ("run", "plan.md", "--max-cost", "none", "--yes"),
    }
    return {name: "".join(play.run(*args, **variables)[1:]) for name, args in asked.items()}


def left_behind(repo: Path) -> dict[str, bytes]:
    """All that Windlass wrote, what is inside its bundles, and all that git holds."""
    found: dict[str, bytes] = {}
    for path in (*repo.rglob(".windlass/**/*"), *repo.glob("*.zip"), *repo.rglob("state/*")):
        if path.is_file():
            found[path.relative_to(repo).as_posix()] = path.read_bytes()
        if path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{path.name}/{name}": archive.read(name) for name in archive.namelist()}
    batch = ("cat-file", "--batch-all-objects", "--batch")
    done = subprocess.run(["git", *batch], cwd=repo, capture_output=True, check=True)
    return {**found, "every object of git": done.stdout}
