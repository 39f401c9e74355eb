"""Notices arrive as they are, by no shell; whoever does not take them holds nobody up."""  # K10

import json
import os
import stat
import sys
import threading
from pathlib import Path

import pytest

from receiver import receiving
from scripted_run import plan, scripted_run
from waiting import eventually
from windlass.adapters.notices import Notices, command, desktop, webhook
from windlass.errors import ConfigError
from windlass.ports import Notice
from windlass.testing.stage import Stage

TITLE = "Done: \"it\" 'is' $(touch pwned) `touch pwned`; & | \\ %s {text}\nand more"
TEXT = '-e <b>bold</b> & $HOME\n\tsecond "line"'
NOTICE = Notice(kind="done", title=TITLE, text=TEXT, plan="p", run="r1")


def stand_in(folder: Path, name: str, *, then: str = "") -> Path:
    """A program of that name which writes down, argument by argument, what it was called with."""
    folder.mkdir(exist_ok=True)
    told = folder / f"{name}.argv"
    program = folder / name
    program.write_text(
        "#!/usr/bin/env python3\n"
        "import json, sys\n"
        f"open({str(told)!r}, 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n{then}\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return told


def calls(told: Path) -> list[list[str]]:
    return [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []


def environment(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}


def test_osascript_gets_title_and_text_as_arguments_of_a_fixed_script(tmp_path: Path):
    told = stand_in(tmp_path / "bin", "osascript")
    stand_in(tmp_path / "bin", "notify-send")
    found = desktop(environment(tmp_path / "bin"), sound=True)
    assert found is not None
    assert found[1](NOTICE) is None
    assert found[1](Notice(kind="done", title="Done: x", text="y", plan="p", run="r")) is None
    first, second = calls(told)
    assert first[-2:] == [TITLE, TEXT]
    assert first[:-2] == second[:-2], "nothing is spliced into the script"
    script = first[1:-2:2]
    assert script[0] == "on run argv"
    assert script[1].endswith('sound name "default"')
    silent = desktop(environment(tmp_path / "bin"), sound=False)
    assert silent is not None
    silent[1](NOTICE)
    assert "sound" not in " ".join(calls(told)[-1][:-2])
    assert not (tmp_path / "pwned").exists()


def test_notify_send_gets_them_as_arguments_and_no_markup(tmp_path: Path):
    told = stand_in(tmp_path / "bin", "notify-send")
    found = desktop({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}, sound=False)
    assert found is not None
    assert found[1](NOTICE) is None
    ((*_, dashes, title, text),) = calls(told)
    assert dashes == "--", "what an agent says is no option"
    assert title == TITLE
    assert text == TEXT.replace("&", "&amp;").replace("<", "&lt;")


def test_what_moves_cursors_is_taken_out_and_nothing_else(tmp_path: Path):
    told = stand_in(tmp_path / "bin", "notify-send")
    found = desktop({"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}, sound=False)
    assert found is not None
    hostile = "Done: \x1b[31mred\x1b[0m \x1b]0;title\x07\x00\x9b\u202e\u061cback \ud800 ünï\n2"
    found[1](Notice(kind="done", title=hostile, text="\x07", plan="p", run="r"))
    ((*_, title, text),) = calls(told)
    assert (title, text) == ("Done: red back  ünï\n2", "")


def test_where_there_is_no_desktop_there_is_no_way(tmp_path: Path):
    assert desktop({"PATH": str(tmp_path)}, sound=False) is None
    assert desktop({}, sound=False) is None


def test_a_program_of_the_users_gets_them_where_it_names_them(tmp_path: Path):
    told = stand_in(tmp_path / "bin", "mine")
    send = command(
        [str(tmp_path / "bin/mine"), "--title={title}", "-b", "{text}"], {"PATH": "/usr/bin:/bin"}
    )
    assert send(NOTICE) is None
    assert calls(told) == [[f"--title={TITLE}", "-b", TEXT]]
    assert command(["/nonexistent/mine"], {})(NOTICE) == "No such file or directory"
    stand_in(tmp_path / "bin", "angry", then="sys.exit(3)")
    assert (
        command([str(tmp_path / "bin/angry")], {"PATH": "/usr/bin:/bin"})(NOTICE)
        == "it ended with 3"
    )


def test_a_webhook_gets_them_literally_as_json():
    with receiving() as receiver:
        url = receiver.url.replace("http://", "http://ada:p%40ss@") + "/hook?a=b"
        where, send = webhook(url, {"http_proxy": "http://127.0.0.1:9"})
        assert send(NOTICE) is None
        (document,) = receiver.documents
        (got,) = receiver.got
    assert document["title"] == TITLE
    assert document["message"] == TEXT
    assert document["text"] == f"{TITLE}\n{TEXT}"
    assert (document["kind"], document["plan"], document["run"]) == ("done", "p", "r1")
    assert got.path == "/hook?a=b"
    assert got.headers["authorization"] == "Basic YWRhOnBAc3M="
    assert where == url.split("@")[1].split("/")[0], "no login is ever said"


@pytest.mark.parametrize("status", [500, 302, 404])
def test_a_webhook_that_refuses_is_said_once(status: int):
    said: list[str] = []
    with receiving() as receiver:
        receiver.status = status
        where, send = webhook(f"{receiver.url}/secret-path", {})
        notices = Notices({f"the webhook at {where}": send}, said.append)
        for _ in range(3):
            notices.post(NOTICE)
        notices.close()
        assert len(receiver.got) == 3
    (line,) = said
    assert f"it answers {status}" in line
    assert "secret-path" not in line


def test_a_webhook_that_nobody_serves_is_said_once():
    said: list[str] = []
    where, send = webhook("http://127.0.0.1:9/", {})
    notices = Notices({where: send}, said.append)
    notices.post(NOTICE)
    notices.post(NOTICE)
    notices.close()
    (line,) = said
    assert "Connection refused" in line


@pytest.mark.parametrize(
    "url", ["", "file:///etc/passwd", "ftp://x/", "http://", "http://[", "http://a:b:c/", "htt\n"]
)
def test_what_is_no_url_is_refused_without_being_shown(url: str):
    with pytest.raises(ConfigError) as caught:
        webhook(url, {})
    assert "etc" not in str(caught.value)


def test_one_way_that_hangs_holds_up_neither_the_others_nor_the_end():
    said: list[str] = []
    got: list[str] = []
    never = threading.Event()

    def hangs(_notice: Notice) -> str | None:
        never.wait(60)
        return None

    def works(notice: Notice) -> str | None:
        got.append(notice.title)
        return None

    def breaks(_notice: Notice) -> str | None:
        raise KeyError(TITLE)

    notices = Notices({"one": hangs, "two": works, "three": breaks}, said.append)
    for posted in range(1, 150):
        notices.post(NOTICE)
        eventually(lambda count=posted: len(got) == count)
    notices.close()
    assert not never.is_set()
    assert sorted(line.split(":")[0] for line in said) == [
        "notices do not get through to one",
        "notices do not get through to three",
    ]
    never.set()


def test_nobody_is_waited_for_who_was_told_nothing():
    Notices({"one": lambda _notice: None}, lambda _line: None).close()


@pytest.fixture
def place(tmp_path: Path) -> Stage:
    made = Stage(tmp_path, "http://127.0.0.1:9")
    made.build({"plan.md": plan('Say "hi" $(touch pwned)'), "README.md": "hello\n"})
    return made


def test_a_run_tells_its_end_and_what_needs_a_person(place: Stage, tmp_path: Path):
    told = stand_in(tmp_path / "bin", "notify-send")
    path = f"{tmp_path / 'bin'}:{place.environment['PATH']}"
    with receiving() as receiver:
        url = f"{receiver.url}/services/T00/B00/secret"
        variables = {"PATH": path, "WINDLASS_NOTIFY_WEBHOOK": "MY_WEBHOOK", "MY_WEBHOOK": url}
        with scripted_run(place, "plan.md", "--notify", FAIL="1.1", **variables) as process:
            _, err = process.communicate(timeout=60)
        assert process.returncode == 3, err
        (document,) = receiver.documents
        assert document["kind"] == "human"
        assert document["title"] == 'Needs you: 1.1 Say "hi" $(touch pwned) · Files'
        assert [call[-2] for call in calls(told)] == [document["title"]]
        with scripted_run(place, "plan.md", "--resume", **variables) as process:
            _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert [each["kind"] for each in receiver.documents] == ["human", "done"]
        assert len(calls(told)) == 1, "the desktop only where that was asked for"
    assert "SETTING" not in err, "who watches a run is no setting of the run"
    assert "secret" not in err
    journal = (place.repo / ".windlass/plans/plan/journal.db").read_bytes()
    assert b"T00/B00" not in journal
    assert not list(tmp_path.rglob("pwned"))


def test_a_webhook_that_hangs_does_not_keep_a_run_from_its_end(place: Stage):
    with receiving() as receiver:
        receiver.hanging = threading.Event()
        with scripted_run(place, "plan.md", WINDLASS_NOTIFY_WEBHOOK=receiver.url) as process:
            _, err = process.communicate(timeout=60)
        assert len(receiver.got) == 1
        assert not receiver.hanging.is_set(), "it never answered"
    assert process.returncode == 0, err
    assert err.count("notices do not get through") == 1
    assert "1 task: 1 completed" in err


def test_nobody_is_told_where_that_is_said(place: Stage):
    with receiving() as receiver:
        variables = {"WINDLASS_NOTIFY_WEBHOOK": receiver.url, "WINDLASS_NOTIFY_ABOUT": "failed"}
        with scripted_run(place, "plan.md", **variables) as process:
            process.communicate(timeout=60)
        with scripted_run(
            place, "plan.md", "--no-notify", "--restart", FAIL="1.1", **variables
        ) as process:
            process.communicate(timeout=60)
        assert receiver.got == []


def test_a_command_from_a_file_is_refused(place: Stage):
    """What agents can write must not run outside their walls."""  # B5
    (place.repo / "windlass.toml").write_text('[notify]\ncommand = ["touch", "pwned"]\n')
    with scripted_run(place, "plan.md") as process:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "windlass.toml: notify.command cannot come from a file" in err
    assert "set WINDLASS_NOTIFY_COMMAND" in err
    assert not (place.repo / ".windlass").exists()


def test_apprise_passes_them_on(tmp_path: Path):
    """The extra is a program, and is told as any other is."""
    with receiving() as receiver:
        where = receiver.url.replace("http://", "json://")
        program = str(Path(sys.executable).with_name("apprise"))
        argv = [program, "--title={title}", "--body={text}", "--input-format=text", where]
        assert command(argv, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})(NOTICE) is None
        (document,) = receiver.documents
    assert document["title"] == TITLE
    assert document["message"] == TEXT
