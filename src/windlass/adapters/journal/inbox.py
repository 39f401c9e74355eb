"""Messages from people to a live run: one file each, renamed into place, removed once recorded.

Everything else in the folder is skipped and left there: half-written files (their names begin with
a dot), garbage, anything but a small plain file. Nothing in the folder can stop a run but a message
that asks for it.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from windlass.adapters.files import fsync_dir, make_folder, read_plainly, write_durably
from windlass.core.exchange import Message
from windlass.errors import BadInput

MAX_BYTES = 64 * 1024
"""A message is a line or two; a larger file is none."""

_DIGITS = 20
"""Digits of the number that a file name begins with, so that names sort as numbers."""

_decoder = msgspec.json.Decoder(Message)


class FileInbox:
    """The messages in a folder, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self) -> Sequence[tuple[Message, Callable[[], None]]]:
        return [
            (message, _remover(path))
            for path in self._waiting()
            if (message := _read(path)) is not None
        ]

    def _waiting(self) -> Sequence[Path]:
        try:
            names = sorted(os.listdir(self._folder))  # noqa: PTH208 (names are what is sorted)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        return [
            self._folder / name
            for name in names
            if name.endswith(".json") and not name.startswith(".")
        ]


def send(folder: Path, message: Message) -> Path:
    """Put a message into the inbox, where it stays until a run takes it."""
    content = msgspec.json.encode(message)
    if len(content) > MAX_BYTES:
        raise BadInput(
            f"a message of {len(content)} bytes is too long", hint=f"{MAX_BYTES} are the most"
        )
    make_folder(folder)
    # A number above all that wait keeps the order even if the clock is set back; the random part
    # keeps two messages apart that are sent at once.
    path = folder / f"{_next_number(folder):0{_DIGITS}d}-{secrets.token_hex(4)}.json"
    write_durably(path, content)
    return path


def _next_number(folder: Path) -> int:
    names = (name.partition("-")[0] for name in os.listdir(folder))  # noqa: PTH208 (as above)
    waiting = (int(number) for number in names if number.isdecimal() and len(number) == _DIGITS)
    return max(time.time_ns(), *(number + 1 for number in waiting), 0)


def _read(path: Path) -> Message | None:
    content = read_plainly(path, MAX_BYTES)
    with contextlib.suppress(msgspec.MsgspecError):
        return _decoder.decode(content) if content is not None else None
    return None


def _remover(path: Path) -> Callable[[], None]:
    def remove() -> None:
        path.unlink(missing_ok=True)
        # A message that reappears after a power loss would be obeyed twice.
        fsync_dir(path.parent)

    return remove
