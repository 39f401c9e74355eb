"""Commands arrive whole, in order, and once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.adapters.journal import inbox as adapter
from windlass.adapters.journal.inbox import MAX_BYTES, FileInbox
from windlass.core.exchange import Message
from windlass.errors import BadInput

SENDER = """
import sys
from pathlib import Path
from windlass.adapters.journal.inbox import send
from windlass.core.exchange import Message
send(Path(sys.argv[1]), Message(command=sys.argv[2]))
"""


def send(folder: Path, command: str) -> Path:
    return adapter.send(folder, Message(command=command))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "inbox"


def commands(folder: Path) -> list[str]:
    return [message.command for message, _ in FileInbox(folder).take()]


def test_an_inbox_nobody_made_is_empty(folder: Path):
    assert commands(folder) == []
    assert not folder.exists()


def test_a_command_arrives_from_another_process(folder: Path):
    subprocess.run([sys.executable, "-c", SENDER, folder, "stop"], check=True)
    assert commands(folder) == ["stop"]


def test_commands_come_in_the_order_they_were_sent(folder: Path):
    sent = [f"command-{n}" for n in range(20)]
    for command in sent:
        send(folder, command)
    assert commands(folder) == sent


def test_the_order_stands_when_the_clock_was_set_back_between_two_commands(folder: Path):
    first = send(folder, "pause")
    first.rename(folder / f"{9 * 10**18:020d}-0123abcd.json")  # sent when the clock was ahead
    send(folder, "go")
    send(folder, "stop")
    assert commands(folder) == ["pause", "go", "stop"]


def test_a_command_waits_until_it_is_removed(folder: Path):
    send(folder, "pause")
    send(folder, "stop")
    inbox = FileInbox(folder)
    (_, remove), _ = inbox.take()
    assert commands(folder) == ["pause", "stop"]
    remove()
    assert commands(folder) == ["stop"]
    remove()  # a second time, as after a crash, does no harm
    assert commands(folder) == ["stop"]


def test_a_command_may_say_more_than_its_name(folder: Path):
    folder.mkdir()
    (folder / "1-a.json").write_text('{"command": "stop", "by": "somebody"}')
    assert commands(folder) == ["stop"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b'{"command": 1}',
        b'{"command": ""}',
        b'{"order": "stop"}',
        b'{"command": "' + b"x" * MAX_BYTES + b'"}',
    ],
)
def test_garbage_is_passed_over_and_left(folder: Path, content: bytes):
    folder.mkdir()
    (folder / "0-garbage.json").write_bytes(content)
    send(folder, "stop")
    assert commands(folder) == ["stop"]
    assert (folder / "0-garbage.json").read_bytes() == content


def test_what_is_no_plain_file_is_passed_over(folder: Path, tmp_path: Path):
    folder.mkdir()
    outside = tmp_path / "outside"
    outside.write_text('{"command": "abort"}')
    (folder / "1-folder.json").mkdir()
    (folder / "2-link.json").symlink_to(outside)
    (folder / "3-dangling.json").symlink_to("nowhere")
    os.mkfifo(folder / "4-pipe.json")
    (folder / ".5-half.json").write_text('{"command": "abort"}')
    (folder / "6-note.txt").write_text('{"command": "abort"}')
    send(folder, "stop")
    assert commands(folder) == ["stop"]


def test_a_largest_command_is_taken(folder: Path):
    command = "x" * (MAX_BYTES - len('{"command":""}'))
    send(folder, command)
    with pytest.raises(BadInput, match="too long"):
        send(folder, command + "x")
    assert commands(folder) == [command]
