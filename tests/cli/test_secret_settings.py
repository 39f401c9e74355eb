"""Settings that an older Windlass recorded though they are secret are read, and never shown."""

import json
import sqlite3
import zipfile
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from desk import Desk
from finished_run import InProcessDesk, finished
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.app.wiring.configuration import configure, secret_values
from windlass.app.wiring.redaction import redactor_for
from windlass.core.events import codec
from windlass.core.events.model import RunStarted
from windlass.core.settings import MASK, NotifySettings
from windlass.core.state import fold

HOOK = "https://hooks.example/services/T00/B00/canary-hook"
TOKEN = "--token=canary-command-0123"


@pytest.fixture
def old(tmp_path: Path) -> InProcessDesk:
    """A project with a journal that holds what is secret, as it was written before."""
    desk = finished(tmp_path)
    path = desk.repo / ".windlass/plans/plan/journal.db"
    with SqliteJournal.read_only(path) as journal:
        events = [entry.event for entry in journal.read()]
    began = events[0]
    assert isinstance(began, RunStarted)
    notify = NotifySettings(webhook=HOOK, command=("curl", TOKEN, "{title}"))
    events[0] = replace(began, settings=replace(began.settings, notify=notify))
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DELETE FROM entries")
    digest = codec.GENESIS
    for seq, event in enumerate(events, 1):
        payload = codec.encode(event)
        digest = codec.chain(digest, payload)
        db.execute("INSERT INTO entries VALUES (?, ?, ?)", (seq, payload, digest))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    assert HOOK.encode() in path.read_bytes()
    return desk


def test_an_old_journal_is_read_with_its_secrets_masked(old: InProcessDesk):  # S13
    with SqliteJournal.read_only(old.repo / ".windlass/plans/plan/journal.db") as journal:
        events = [entry.event for entry in journal.read()]
    state = fold(events)
    assert state is not None
    assert (state.settings.notify.webhook, state.settings.notify.command) == (MASK, (MASK,))
    assert state.done


@pytest.mark.parametrize("damaged", [False, True])
def test_no_command_shows_what_an_old_journal_holds(old: InProcessDesk, *, damaged: bool):  # B13
    if damaged:
        db = sqlite3.connect(old.repo / ".windlass/plans/plan/journal.db", isolation_level=None)
        db.execute("UPDATE entries SET payload = 'x' WHERE seq = 3")
        db.close()
    said = ""
    for args in (
        ("log", "plan", "--json"), ("status", "--json"), ("doctor", "--json"), ("history",),
        ("report", "--output", "-"), ("plan", "plan.md"), ("bundle", "--with-texts"), ("bundle",),
    ):  # fmt: skip
        answer = old.call(*args)
        said += answer.out + answer.err
    with zipfile.ZipFile(old.repo / ".windlass/windlass-bundle.zip") as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    first = json.loads(held["windlass-bundle/plans/plan/journal.jsonl"].splitlines()[0])
    assert first["event"]["type"] == "RunStarted"
    for text in (said, *held.values()):
        assert "canary" not in text
        assert "T00" not in text


def test_what_is_secret_is_known_wherever_it_is_set(tmp_path: Path):
    (tmp_path / "windlass.toml").write_text(
        f'[notify]\nwebhook = "{HOOK}"\ncommand = ["curl", "{TOKEN}", "short", 7]\n'
    )
    environment = {"WINDLASS_NOTIFY_WEBHOOK": "MY_HOOK", "MY_HOOK": "https://h.example/canary-2"}
    found = dict(secret_values(tmp_path, environment))
    assert found["notify.webhook"] == HOOK
    assert found["MY_HOOK"] == "https://h.example/canary-2"
    redact = redactor_for(tmp_path, environment).text
    said = f"posting to {HOOK}, then curl {TOKEN}; https://h.example/canary-2 via MY_HOOK short"
    assert redact(said) == (
        "posting to [redacted notify.webhook], then curl [redacted notify.command];"
        " [redacted MY_HOOK] via MY_HOOK short"
    )


def test_a_file_that_cannot_be_read_keeps_no_secret_from_being_known(tmp_path: Path):
    (tmp_path / "windlass.toml").write_text("not TOML")
    assert dict(secret_values(tmp_path, {"WINDLASS_NOTIFY_WEBHOOK": HOOK})) == {
        "WINDLASS_NOTIFY_WEBHOOK": HOOK
    }


def test_the_content_of_a_file_that_a_variable_names_is_secret_and_its_path_is_not(
    tmp_path: Path,
):  # S13
    file = tmp_path / "home" / "key.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"private_key": "canary-in-the-file"}))
    (tmp_path / "link").symlink_to(file)
    for value in (str(file), "~/key.json", str(tmp_path / "link")):
        variables = {"GOOGLE_APPLICATION_CREDENTIALS": value, "HOME": str(file.parent)}
        redact = redactor_for(tmp_path, variables).text
        assert redact("canary-in-the-file") == "[redacted GOOGLE_APPLICATION_CREDENTIALS]"
        assert redact(f"at {value}") == f"at {value}"
    for nothing in ("/dev/zero", str(tmp_path), str(tmp_path / "none"), "relative/path"):
        redactor_for(tmp_path, {"A_KEY_FILE": nothing})


def test_configuration_shows_that_a_secret_is_set_and_by_what(tmp_path: Path):
    (tmp_path / "windlass.toml").write_text(f'[notify]\nwebhook = "{HOOK}"\n')
    environment = {"WINDLASS_NOTIFY_COMMAND": f"curl\n{TOKEN}"}
    made = configure(tmp_path, environment, {})
    shown = {value.key: value.value for value in made.values}
    assert shown["notify.webhook"] == "[redacted notify.webhook]"
    assert shown["notify.command"] == ("[redacted WINDLASS_NOTIFY_COMMAND]",)
    assert made.settings.notify.webhook == HOOK
    assert made.settings.notify.command == ("curl", TOKEN)
    assert "canary" not in msgspec.json.encode(made.values).decode()


def test_what_is_wrong_with_a_secret_is_said_without_it(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.build({"plan.md": "# Milestone: A\n\n## Task 1.1: B\n"})
    for text in (f"webhook = ['{HOOK}']", f"webhook = {{a = '{HOOK}'}}", f"command = '{TOKEN}'",
                 f"command = ['{TOKEN}']", "webhook = 'ftp://canary-hook/T00'"):  # fmt: skip
        (desk.repo / "windlass.toml").write_text(f"[notify]\n{text}\n")
        for args in (("run", "plan.md"), ("doctor",), ("plan", "plan.md"), ("doctor", "--json")):
            answer = desk.call(*args)
            assert "notify." in answer.out + answer.err or args[0] == "plan"
            assert "canary" not in answer.out + answer.err, (text, args)
