"""`activity.jsonl`: what agents say and do, for whoever looks later. Not synced, never folded."""

from pathlib import Path
from typing import TextIO

import msgspec

from windlass.ports import Activity, Clock
from windlass.secrets import Redactor


class ActivityLog:
    """Appends a line for each activity."""

    def __init__(self, path: Path, redactor: Redactor, clock: Clock) -> None:
        self._path = path
        self._redactor = redactor
        self._clock = clock
        self._file: TextIO | None = None

    def __call__(self, activity: Activity) -> None:
        """Write it down; a full disk must not stop a run over chatter."""
        line = {"ts": self._clock.now().isoformat(), **msgspec.structs.asdict(activity)}
        text = self._redactor.text(msgspec.json.encode(line).decode())
        try:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self._path.open("a", encoding="utf-8", buffering=1)
            self._file.write(text + "\n")
        except OSError:
            self._file = None
