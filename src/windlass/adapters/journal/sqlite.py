"""The journal in one SQLite file: durable when `append` returns, never half-read.

Rule 1: an append is one synced transaction, and only onto the end that its writer knows. Rule 2:
nothing is returned before the whole journal is verified, because the beginning of a damaged journal
looks like a run that did less. Rule 3: a journal is created whole, so an empty file is damage. Rule
4: every event passes the redactor. Rule 5: a writer makes sure that the file still has its name.
Rule 6: records salvaged from a damaged journal are read from a copy, for people to look at, and
never become state.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from windlass.adapters.files import fsync_dir, make_folder, refuse_unsafe
from windlass.core.events import codec
from windlass.core.events.model import Entry, Event
from windlass.core.secrets import Redactor
from windlass.errors import (
    RECOVER,
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalGone,
    JournalTooNew,
    JournalUnwritable,
)

APPLICATION_ID = 0x574E444C
"""`WNDL`: tells a journal from any other SQLite file."""

_MAKE_ROOM = "see that the disk has room and the folder can be written, then `windlass resume`"

BUSY_TIMEOUT = 2.0
"""Seconds that a writer waits for another before it gives up."""

_DURABLE = "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON;"

_SMALL = "PRAGMA cache_size = -256;"
"""Kilobytes: a writer that only appends needs no larger cache."""

_SCHEMA = f"""
{_DURABLE}
BEGIN;
CREATE TABLE entries (
    seq INTEGER PRIMARY KEY CHECK (seq > 0), payload BLOB NOT NULL, hash BLOB NOT NULL
);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {codec.SCHEMA};
COMMIT;
PRAGMA journal_mode = WAL;
"""

_DAMAGED = {
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_TOOBIG,
    sqlite3.SQLITE_ERROR,  # the table is missing
}
"""SQLite's codes for a damaged file."""

_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
"""SQLite's codes for a file that another process keeps writing."""

_SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises: its message may quote a damaged file, and then not even be text."""


class _Mark(NamedTuple):
    """A position up to which the journal is verified, and its hash there."""

    seq: int
    hash: bytes


_BEGINNING = _Mark(0, codec.GENESIS)
_MASKING = Redactor({})


class SqliteJournal:
    """A plan's journal: `open` for the one writer, `read_only` for every other process."""

    def __init__(self, path: Path, db: sqlite3.Connection, redactor: Redactor) -> None:
        self._path = path
        self._db = db
        self._redactor = redactor
        self._verified = _BEGINNING
        self._file = _file_at(path)
        self._onlooker: Self | None = None
        """A reader next to the writer: while it is open, SQLite keeps the write-ahead log."""

    @classmethod
    def open(cls, path: Path, redactor: Redactor, *, create: bool = True) -> Self:
        """The journal for its writer, created if missing."""
        if create and not path.exists():
            _create(path)
        # Read first: a writer that closes a file deletes its log, even if it could not read it.
        onlooker = cls.read_only(path)
        journal = cls(path, _connect(path, "rw"), redactor)
        journal._onlooker = onlooker
        return journal

    @classmethod
    def read_only(cls, path: Path) -> Self:
        """The journal for a reader, next to a live writer or in a read-only folder."""
        # SQLite needs to write a file next to the journal. In a read-only folder it cannot; but if
        # there is no log either, the journal does not change.
        still = not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists()
        return cls(path, _connect(path, "ro&immutable=1" if still else "ro"), Redactor({}))

    def append(self, events: Sequence[Event], *, expected: int) -> tuple[Entry, ...]:
        if not events:
            return ()
        cleaned = [self._redactor.event(event) for event in events]
        payloads = [codec.encode(event) for event in cleaned]
        with self._transaction():
            # What is appended to a deleted file is lost when the process ends.
            if _file_at(self._path) != self._file:
                raise JournalGone(
                    f"the journal {str(self._path)!r} was deleted or replaced while it was written;"
                    " nothing was appended",
                    about=str(self._path),
                    hint=RECOVER,
                )
            self._verify(self._verified)
            mark = self._verified
            if mark.seq != expected:
                raise JournalConflict(
                    f"another writer was here: the journal {str(self._path)!r} ends at"
                    f" {mark.seq}, not at {expected}; nothing was appended",
                    hint="`windlass status` shows which run is live",
                )
            for payload in payloads:
                mark = _Mark(mark.seq + 1, codec.chain(mark.hash, payload))
                row = (mark.seq, payload, mark.hash)
                self._db.execute("INSERT INTO entries VALUES (?, ?, ?)", row)
        self._verified = mark
        return tuple(Entry(seq=seq, event=event) for seq, event in enumerate(cleaned, expected + 1))

    def read(self, after: int = 0) -> Iterator[Entry]:
        """Every entry after that position, once the whole journal is verified."""
        since = self._verified if after >= self._verified.seq else _BEGINNING
        return iter([entry for entry in self._verify(since) if entry.seq > after])

    def records(self, after: int = 0) -> list[bytes]:
        """The records after that position, byte for byte, for a copy elsewhere.

        A record of an older Windlass that holds a secret setting is masked.
        """
        with _explained(self._path, after + 1):
            sql = "SELECT payload FROM entries WHERE rowid > ? ORDER BY rowid"
            stored = [bytes(row[0]) for row in self._db.execute(sql, (after,))]
        return [_masked(payload) for payload in stored]

    def restore(self, records: Sequence[bytes]) -> None:
        """Fill an empty journal with the records of a lost one, byte for byte, or refuse."""
        with self._transaction():
            if last := self.last:
                raise JournalConflict(
                    f"the journal {str(self._path)!r} has {last} entries; nothing was restored",
                    hint="`windlass status` shows which run is live",
                )
            mark = _BEGINNING
            for payload in records:
                mark = _Mark(mark.seq + 1, codec.chain(mark.hash, payload))
                row = (mark.seq, payload, mark.hash)
                self._db.execute("INSERT INTO entries VALUES (?, ?, ?)", row)

    @property
    def last(self) -> int:
        """The position of the newest entry, 0 if there is none."""
        with _explained(self._path, self._verified.seq + 1):
            return _number(self._db, "SELECT ifnull(max(rowid), 0) FROM entries")

    def close(self) -> None:
        if self._onlooker is not None:
            self._onlooker.close()
        self._db.close()

    def leave(self) -> None:
        """Close, but leave a damaged journal's log in place."""
        self._db.close()
        if self._onlooker is not None:
            self._onlooker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, JournalDamaged):
            self.leave()
        else:
            self.close()

    def _verify(self, since: _Mark) -> list[Entry]:
        """Verify the entries after a mark, and move the mark to the journal's end."""
        mark, entries = since, list[Entry]()
        try:
            # From the mark itself, which must be unchanged. By rowid: that `seq` is its alias
            # stands in the table's definition, which may be damaged.
            sql = "SELECT rowid, payload, hash FROM entries WHERE rowid >= ? ORDER BY rowid"
            rows: Iterator[tuple[int, object, object]] = self._db.execute(sql, (mark.seq,))
            if mark.seq and next(rows, (0, b"", b""))[::2] != mark:
                raise _damaged(
                    self._path, mark.seq, "an entry that was there is missing or changed"
                )
            for row in rows:
                event, mark = self._follow(mark, row)
                entries.append(Entry(seq=mark.seq, event=event))
            # The hash chain does not show a missing end; a page that lost its last entries shows
            # here.
            if since is _BEGINNING and not self._sound():
                raise _damaged(self._path, mark.seq + 1, "pages of the file contradict each other")
        except _SQLITE_ERRORS as error:
            raise _explain(error, self._path, mark.seq + 1) from error
        self._verified = mark
        return entries

    def _sound(self) -> bool:
        return self._db.execute("PRAGMA quick_check(1)").fetchone() == (b"ok",)

    def _follow(self, mark: _Mark, row: tuple[int, object, object]) -> tuple[Event, _Mark]:
        """The event after the mark, and the new mark."""
        seq, payload, digest = row
        if seq != mark.seq + 1:
            raise _damaged(self._path, mark.seq + 1, f"the next entry there is {seq}")
        if not (isinstance(payload, bytes) and isinstance(digest, bytes)):
            raise _damaged(self._path, seq, "the entry is not made of bytes")
        if codec.chain(mark.hash, payload) != digest:
            raise _damaged(self._path, seq, "the entry does not match its hash")
        try:
            # An older Windlass recorded secret settings; they are masked from here on.
            return _MASKING.event(codec.decode(payload)), _Mark(seq, digest)
        except JournalTooNew:
            raise
        except JournalError as error:
            raise _damaged(self._path, seq, error.message) from error

    @contextlib.contextmanager
    def _transaction(self) -> Generator[None]:
        """One exclusive transaction: all or nothing."""
        with _explained(self._path, self._verified.seq + 1):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                # After some errors SQLite has rolled back already.
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise


def _masked(payload: bytes) -> bytes:
    event = codec.decode(payload)
    shown = _MASKING.event(event)
    return payload if shown == event else codec.encode(shown)


def _file_at(path: Path) -> tuple[int, int] | None:
    """The identity of the file with that name, if any."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open the file, if it is a journal that this Windlass can read."""
    refuse_unsafe(path)  # SQLite follows links
    if not path.exists():
        raise JournalError(f"there is no journal at {str(path)!r}", about=str(path))
    # SQLite would treat an empty file as a new database, and delete the log next to it.
    if path.stat().st_size == 0:
        raise _damaged(path, 0, "the file is empty")
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    with _explained(path, 0):
        db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=BUSY_TIMEOUT)
        try:
            # Damaged text may not decode; bytes are compared with their hash.
            db.text_factory = bytes
            version = _version(db, path)
            if mode == "rw":
                db.executescript(_DURABLE + _SMALL)
                # From here on the journal may hold records that an older Windlass cannot read.
                if version < codec.SCHEMA:
                    db.execute(f"PRAGMA user_version = {codec.SCHEMA}")
        except BaseException:
            db.close()
            raise
    return db


def _version(db: sqlite3.Connection, path: Path) -> int:
    if _number(db, "PRAGMA application_id") != APPLICATION_ID:
        raise _damaged(path, 0, "it is not a journal of Windlass")
    if (version := _number(db, "PRAGMA user_version")) > codec.SCHEMA:
        raise codec.too_new(f"the journal {str(path)!r}", version)
    return version


def _number(db: sqlite3.Connection, sql: str) -> int:
    row: tuple[int] = db.execute(sql).fetchone()
    return row[0]


def _create(path: Path) -> None:
    """Create an empty journal, whole as soon as it is visible."""
    try:
        make_folder(path.parent)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".journal-") as folder:
            draft = Path(folder, path.name)
            with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as db:
                db.executescript(_SCHEMA)
            # Unlike a rename, a link cannot replace a journal that another process made meanwhile.
            try:
                path.hardlink_to(draft)
            except FileExistsError:
                pass
            except OSError:  # a file system without links; the plan's lock keeps others away
                draft.rename(path)
        fsync_dir(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise JournalUnwritable(
            f"the journal {str(path)!r} cannot be made: {error}",
            about=str(path),
            hint=_MAKE_ROOM,
        ) from error


@contextlib.contextmanager
def _explained(path: Path, position: int) -> Generator[None]:
    try:
        yield
    except _SQLITE_ERRORS as error:
        raise _explain(error, path, position) from error


def _explain(error: Exception, path: Path, position: int) -> JournalError:
    """SQLite's error as the journal's."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE) & 0xFF
    if code in _DAMAGED or isinstance(error, UnicodeDecodeError):
        return _damaged(path, position, str(error))
    if code in _BUSY:
        return JournalConflict(
            f"another process is writing to the journal {str(path)!r}; nothing was appended",
            hint="`windlass status` shows which run is live",
        )
    return JournalUnwritable(
        f"the journal {str(path)!r} cannot be used: {error}; nothing was appended",
        about=str(path),
        hint=_MAKE_ROOM,
    )


def _damaged(path: Path, position: int, why: str) -> JournalDamaged:
    return JournalDamaged(
        f"the journal {str(path)!r} cannot be trusted from entry {position} on: {why}",
        position=position,
        about=str(path),
    )


_SQL = "SELECT rowid, payload FROM entries WHERE rowid > ? ORDER BY rowid LIMIT 1"


def salvage(path: Path) -> list[tuple[int, bytes]]:
    """The records that SQLite can still read, each with its position."""
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
