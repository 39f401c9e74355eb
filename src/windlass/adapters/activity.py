"""`activity.jsonl`: what agents say and do, for whoever looks later. Not synced, never folded."""

from pathlib import Path
from typing import Self, TextIO

import msgspec

from windlass.ports import Activity, Clock


class ActivityLog:
    """Appends a line for each activity, from `with` to the end of it."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        """Open the file; without one, chatter is lost and nothing else."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a", encoding="utf-8", buffering=1)
        except OSError:
            self._file = None
        return self

    def __exit__(self, *_: object) -> None:
        """Let it go."""
        if self._file is not None:
            self._file.close()

    def write(self, activity: Activity) -> None:
        """Write it down; a full disk must not stop a run over chatter."""
        if self._file is None:
            return
        line = {"ts": self._clock.now().isoformat(), **msgspec.structs.asdict(activity)}
        try:
            self._file.write(msgspec.json.encode(line).decode() + "\n")
        except OSError:
            self._file = None
