"""`activity.jsonl`: what agents say and do, to read later. Not synced, never folded."""

import contextlib
import io
import os
from pathlib import Path
from typing import Self, TextIO

import msgspec

from windlass.adapters.files import open_to_append, open_to_read
from windlass.ports import Activity, Clock

_MOST = 256 * 1024
"""How far back a late reader looks."""


def activities_after(path: Path, offset: int) -> tuple[list[Activity], int]:
    """The activities after that offset, and the next offset; damaged lines are skipped."""
    try:
        with open_to_read(path) as file:
            size = file.seek(0, os.SEEK_END)
            start = file.seek(max(offset, size - _MOST))
            text = file.read()
    except OSError:
        return [], offset
    whole, _, _ = text.rpartition(b"\n")
    heard: list[Activity] = []
    for line in whole.splitlines():
        with contextlib.suppress(msgspec.MsgspecError, UnicodeError):
            heard.append(msgspec.json.decode(line, type=Activity))
    return heard, start + len(whole) + 1 if whole else start


class ActivityLog:
    """Appends a line for each activity while the `with` block lasts."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        """Open the file; without it, only activity is lost."""
        try:
            raw = io.BufferedWriter(open_to_append(self._path))
            self._file = io.TextIOWrapper(raw, encoding="utf-8", line_buffering=True)
        except OSError:
            self._file = None
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()

    def write(self, activity: Activity) -> None:
        """Append it; a full disk must not stop a run over activity."""
        if self._file is None:
            return
        line = {"ts": self._clock.now().isoformat(), **msgspec.to_builtins(activity)}
        try:
            self._file.write(msgspec.json.encode(line).decode() + "\n")
        except OSError:
            self._let_go()

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):  # closing flushes, which may fail again
                file.close()
