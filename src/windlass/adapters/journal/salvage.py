"""What can still be read of a journal that is not to be trusted: for people to look at, only.

Law: it reads a copy, so that nothing of the damaged one is changed or tidied away; and nothing that
comes from here ever becomes state.
"""

import contextlib
import shutil
import sqlite3
import tempfile
from pathlib import Path

_SQL = "SELECT rowid, payload FROM entries WHERE rowid > ? ORDER BY rowid LIMIT 1"


def salvage(path: Path) -> list[tuple[int, bytes]]:
    """The records that SQLite gives out, each with its position, whatever lies between them."""
    with tempfile.TemporaryDirectory(prefix="windlass-salvage-") as folder:
        copy = Path(folder, path.name)
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        if not copy.exists():
            return []
        try:
            with contextlib.closing(sqlite3.connect(copy)) as db:
                return _rows(db)
        except sqlite3.Error:
            return []


def _rows(db: sqlite3.Connection) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    position = 0
    with contextlib.suppress(sqlite3.Error, UnicodeDecodeError):
        while (row := db.execute(_SQL, (position,)).fetchone()) is not None:
            position, payload = int(row[0]), row[1]
            if isinstance(payload, bytes):
                found.append((position, payload))
    return found
