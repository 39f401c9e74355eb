"""The journal's file: durable, guarded against a second writer, and never half-read."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from windlass.adapters.journal.sqlite import APPLICATION_ID, SqliteJournal
from windlass.core.events import codec
from windlass.core.events.model import Entry, Event, HelpNeeded
from windlass.core.secrets import Redactor
from windlass.errors import (
    JournalConflict,
    JournalDamaged,
    JournalError,
    JournalGone,
    JournalTooNew,
)

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
NOTHING = Redactor({})
BATCHES = (1, 3, 2, 4, 1, 3)

WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.events.model import HelpNeeded
from windlass.core.secrets import Redactor

journal = SqliteJournal.open(Path(sys.argv[1]), Redactor({}))
for n in range(int(sys.argv[2])):
    event = HelpNeeded(at=datetime(2026, 1, 2, tzinfo=UTC), task=str(n), question="?" * 300)
    journal.append([event], expected=n)
    print(n + 1, flush=True)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    with SqliteJournal.open(path, NOTHING) as journal:
        yield journal


def asked(*tasks: object) -> list[Event]:
    """Facts of different lengths, one of them longer than a page."""
    return [
        HelpNeeded(at=NOON, task=str(task), question=f"question {task} " * (n * 7 + 1))
        for n, task in enumerate(tasks)
    ]


def filled(path: Path) -> list[Entry]:
    """A journal of several appends, closed."""
    with SqliteJournal.open(path, NOTHING) as journal:
        fill(journal)
        return list(journal.read())


def fill(journal: SqliteJournal) -> None:
    last = 0
    for size in BATCHES:
        journal.append(asked(*range(last, last + size)), expected=last)
        last += size
    journal.append([HelpNeeded(at=NOON, task="long", question="long " * 2000)], expected=last)


def read(path: Path) -> list[Entry]:
    with SqliteJournal.read_only(path) as journal:
        return list(journal.read())


def tamper(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(statement, values)


def writer(path: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITER, str(path), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


# Durable


def test_every_append_is_synced_to_the_disk(journal: SqliteJournal):  # B4
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == (b"wal",)


def test_what_was_acknowledged_survives_the_writers_death(path: Path):  # B4
    with writer(path, 10_000) as process:
        assert process.stdout
        acknowledged = [int(process.stdout.readline()) for _ in range(40)][-1]
        process.kill()
    entries = read(path)
    assert len(entries) >= acknowledged
    with SqliteJournal.open(path, NOTHING) as journal:
        journal.append(asked("next"), expected=len(entries))


@pytest.mark.parametrize("then", ["deleted", "replaced"])
def test_a_writer_notices_that_its_file_was_deleted_or_replaced(path: Path, then: str):  # B4
    with SqliteJournal.open(path, NOTHING) as journal:
        journal.append(asked(0), expected=0)
        copy = path.with_name("copy.db")
        shutil.copyfile(path, copy)
        path.unlink()
        if then == "replaced":
            copy.rename(path)
        with pytest.raises(JournalGone, match="`windlass recover`"):
            journal.append(asked(1), expected=1)


def test_a_batch_is_one_transaction(path: Path):  # X7
    """Wherever the log of the writer ends, the journal ends between two appends."""
    whole, ends = filled_and_cut(path, lambda log: [log[:at] for at in range(0, len(log), 301)])
    assert ends == {sum(BATCHES[:n]) for n in range(len(BATCHES) + 1)}
    assert len(whole) not in ends


def test_a_broken_log_of_the_writer_never_gives_a_wrong_entry(path: Path):
    _, ends = filled_and_cut(path, lambda log: [flipped(log, at) for at in range(0, len(log), 601)])
    assert ends <= {sum(BATCHES[:n]) for n in range(len(BATCHES) + 1)}


def filled_and_cut(
    path: Path, damage: Callable[[bytes], Sequence[bytes]]
) -> tuple[list[Entry], set[int]]:
    """Where the journal ends for each damaged log; a shorter one is all that SQLite can show."""
    with SqliteJournal.open(path, NOTHING) as journal:
        fill(journal)
        whole = list(journal.read())
        main, log = path.read_bytes(), Path(f"{path}-wal").read_bytes()
    ends: set[int] = set()
    for n, damaged in enumerate(damage(log)):
        copy = path.with_name(f"copy-{n}.db")
        copy.write_bytes(main)
        Path(f"{copy}-wal").write_bytes(damaged)
        entries = read(copy)
        assert entries == whole[: len(entries)]
        ends.add(len(entries))
    return whole, ends


def test_a_full_disk_is_said_and_nothing_appended(path: Path):
    """A limit on the size of files stands in for the disk."""
    script = """
import resource, signal, sys
from datetime import UTC, datetime
from pathlib import Path
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.errors import JournalError
from windlass.core.events.model import HelpNeeded
from windlass.core.secrets import Redactor

path = Path(sys.argv[1])
large = HelpNeeded(at=datetime(2026, 1, 2, tzinfo=UTC), task="a", question="?" * 100_000)
journal = SqliteJournal.open(path, Redactor({}))
journal.append([large], expected=0)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
size = Path(f"{path}-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, most))
try:
    journal.append([large], expected=1)
except JournalError as error:
    print(type(error).__name__, error)
print(len(list(journal.read())))
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
journal.append([large], expected=1)
print(len(list(journal.read())))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True
    )
    said, *counts = done.stdout.splitlines()
    assert said.startswith("JournalUnwritable the journal '")
    assert "nothing was appended; see that the disk has room" in said
    assert counts == ["1", "2"]


# One writer


def test_a_second_writer_in_another_process_is_refused(journal: SqliteJournal, path: Path):  # K4
    with writer(path, 1) as process:
        assert process.stdout
        assert process.stdout.read() == "1\n"
    with pytest.raises(JournalConflict, match="ends at 1, not at 0; nothing was appended"):
        journal.append(asked("a"), expected=0)
    assert len(list(journal.read())) == 1


def test_a_writer_that_meets_another_at_work_gives_up(journal: SqliteJournal, path: Path):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalConflict, match="another process is writing"):
            journal.append(asked("a"), expected=0)
        other.execute("ROLLBACK")
    journal.append(asked("a"), expected=0)


def test_of_many_that_make_the_journal_at_once_one_goes_on(path: Path):
    def begin(n: int) -> int:
        with SqliteJournal.open(path, NOTHING) as journal:
            try:
                return len(journal.append(asked(n), expected=0))
            except JournalConflict:
                return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(begin, range(8))) == 1
    assert len(read(path)) == 1


# Readers


def test_a_reader_follows_a_living_writer(path: Path):
    SqliteJournal.open(path, NOTHING).close()
    with writer(path, 200) as process, SqliteJournal.read_only(path) as reader:
        seen: list[Entry] = []
        while len(seen) < 200 and process.poll() is None:
            seen += reader.read(after=len(seen))
        seen += reader.read(after=len(seen))
    assert [entry.seq for entry in seen] == list(range(1, 201))
    assert seen == list(read(path))
    assert process.returncode == 0


def test_a_reader_makes_no_journal(path: Path):
    with pytest.raises(JournalError, match="there is no journal at"):
        SqliteJournal.read_only(path)
    with pytest.raises(JournalError, match="there is no journal at"):
        SqliteJournal.open(path, NOTHING, create=False)
    assert list(path.parent.iterdir()) == []


def test_a_reader_cannot_append(path: Path):
    filled(path)
    with SqliteJournal.read_only(path) as reader:
        last = reader.last
        with pytest.raises(JournalError, match="readonly database; nothing was appended"):
            reader.append(asked("a"), expected=last)
        assert reader.last == last


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap makes the folder read-only")
@pytest.mark.parametrize("state", ["closed", "live"])
def test_a_reader_can_do_with_a_read_only_folder(path: Path, state: str):
    script = """
import sys
from pathlib import Path
from windlass.adapters.journal.sqlite import SqliteJournal
print(len(list(SqliteJournal.read_only(Path(sys.argv[1])).read())))
"""
    entries = filled(path)
    walls = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev"]
    with SqliteJournal.open(path, NOTHING) as journal:
        entries += journal.append(asked("one", "more"), expected=len(entries))
        if state == "closed":
            journal.close()
        command = [*walls, sys.executable, "-c", script, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(entries)}\n"


def test_a_strange_path_is_a_path(tmp_path: Path):
    path = tmp_path / "what? #1 100%&mode=memory" / "journal.db"
    entries = filled(path)
    assert read(path) == entries
    assert [each.name for each in path.parent.glob("journal.db")] == ["journal.db"]


def test_a_new_journal_leaves_nothing_else_behind(path: Path):
    SqliteJournal.open(path, NOTHING).close()
    assert list(path.parent.iterdir()) == [path]


# Versions


def test_the_file_says_what_it_is(path: Path):
    SqliteJournal.open(path, NOTHING).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
        assert db.execute("PRAGMA user_version").fetchone() == (codec.SCHEMA,)


def test_a_journal_of_a_newer_windlass_is_refused(path: Path):
    filled(path)
    tamper(path, "PRAGMA user_version = 7")
    for opening in (SqliteJournal.read_only, lambda at: SqliteJournal.open(at, NOTHING)):
        with pytest.raises(JournalTooNew, match=r"of version 7 .* version 1; upgrade") as caught:
            opening(path)
        assert "windlass recover" in caught.value.hint, "a flipped bit may say so as well"


def test_a_record_of_a_newer_windlass_is_refused(journal: SqliteJournal, path: Path):
    payload = b'{"schema":7,"event":{}}'
    digest = codec.chain(codec.GENESIS, payload)
    tamper(path, "INSERT INTO entries VALUES (1, ?, ?)", payload, digest)
    with pytest.raises(JournalTooNew):
        journal.read()


def test_a_writer_brings_an_older_journal_up_to_its_version(path: Path):
    entries = filled(path)
    tamper(path, "PRAGMA user_version = 0")
    assert read(path) == entries
    SqliteJournal.open(path, NOTHING).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (codec.SCHEMA,)


# Damage


def damaged(path: Path) -> JournalDamaged:
    """What is said of a damaged journal, by its reader and its writer alike."""
    with pytest.raises(JournalDamaged) as reading:
        read(path)
    with (
        pytest.raises(JournalDamaged) as writing,
        SqliteJournal.open(path, NOTHING) as journal,
    ):
        journal.append(asked("a"), expected=journal.last)
    assert str(reading.value) == str(writing.value)
    assert "`windlass recover` to rebuild it from git" in reading.value.hint
    return reading.value


def flipped(data: bytes, at: int, mask: int = 0xFF) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("statement", "position"),
    [
        ("UPDATE entries SET payload = payload || x'20' WHERE seq = 5", 5),
        ("UPDATE entries SET hash = zeroblob(32) WHERE seq = 5", 5),
        ("UPDATE entries SET payload = 17 WHERE seq = 5", 5),
        ("UPDATE entries SET hash = 'text' WHERE seq = 5", 5),
        ("DELETE FROM entries WHERE seq = 1", 1),
        ("DELETE FROM entries WHERE seq = 5", 5),
        ("UPDATE entries SET seq = 99 WHERE seq = 15", 15),
        ("INSERT INTO entries SELECT 99, payload, hash FROM entries WHERE seq = 3", 16),
        ("REPLACE INTO entries SELECT 5, payload, hash FROM entries WHERE seq = 4", 5),
        ("DROP TABLE entries", 1),
        ("ALTER TABLE entries RENAME COLUMN hash TO sum", 1),
        ("PRAGMA application_id = 0", 0),
    ],
)  # fmt: skip
def test_an_entry_that_was_changed_is_named(path: Path, statement: str, position: int):
    filled(path)
    tamper(path, statement)
    assert damaged(path).position == position


def test_an_entry_that_is_no_fact_is_named(path: Path):
    payload = b'{"schema":1,"event":{"type":"NeverHeardOf"}}'
    digest = codec.chain(codec.GENESIS, payload)
    SqliteJournal.open(path, NOTHING).close()
    tamper(path, "INSERT INTO entries VALUES (1, ?, ?)", payload, digest)
    assert damaged(path).position == 1


def test_nothing_is_read_of_a_damaged_journal(path: Path):
    filled(path)
    tamper(path, "DELETE FROM entries WHERE seq = 15")
    tamper(path, "INSERT INTO entries VALUES (15, x'00', x'00')")
    with SqliteJournal.read_only(path) as journal, pytest.raises(JournalDamaged):
        journal.read()


def test_what_was_known_already_must_still_be_there(path: Path):
    entries = filled(path)
    with SqliteJournal.read_only(path) as reader:
        assert len(list(reader.read())) == len(entries)
        tamper(path, "DELETE FROM entries WHERE seq = ?", len(entries))
        with pytest.raises(JournalDamaged) as caught:
            reader.read(after=len(entries))
    assert caught.value.position == len(entries)


def test_a_page_that_lost_its_last_entry_is_noticed(path: Path):
    """The chain holds as far as it goes; that it goes on is known by the page alone."""
    with SqliteJournal.open(path, NOTHING) as journal:
        entries = journal.append(asked("a") * 40, expected=0)
    data = bytearray(path.read_bytes())
    last = max(at for at in range(4096, len(data), 4096) if data[at] == 0x0D)  # a page of rows
    rows = int.from_bytes(data[last + 3 : last + 5])
    assert rows > 1
    data[last + 3 : last + 5] = (rows - 1).to_bytes(2)
    path.write_bytes(data)
    with pytest.raises(JournalDamaged, match="contradict") as caught:
        read(path)
    assert caught.value.position == len(entries)


@pytest.mark.parametrize("content", [b"", b"not a database, by any means\n" * 200, b"SQLite"])
def test_what_is_no_journal_is_not_touched(path: Path, content: bytes):
    path.write_bytes(content)
    Path(f"{path}-wal").write_bytes(b"all that is left")
    for opening in (SqliteJournal.read_only, lambda at: SqliteJournal.open(at, NOTHING)):
        with pytest.raises(JournalDamaged) as caught:
            opening(path)
        assert caught.value.position == 0
    assert path.read_bytes() == content
    assert Path(f"{path}-wal").read_bytes() == b"all that is left"


def test_nothing_is_tidied_away_where_damage_was_found(path: Path):
    """The log beside the file may be all that is left of the last entries."""
    with SqliteJournal.open(path, NOTHING) as journal:
        fill(journal)
        log = Path(f"{path}-wal").read_bytes()
        copy = path.with_name("copy.db")
        copy.write_bytes(path.read_bytes())
        Path(f"{copy}-wal").write_bytes(log[:5000])
    shorter = SqliteJournal.open(copy, NOTHING)
    assert shorter.last < sum(BATCHES)
    shorter.__exit__(JournalDamaged, JournalDamaged("behind its state file", position=1), None)
    assert Path(f"{copy}-wal").read_bytes() == log[:5000]


def test_another_programs_database_is_no_journal(path: Path):
    tamper(path, "CREATE TABLE entries (seq INTEGER PRIMARY KEY, payload BLOB, hash BLOB)")
    assert damaged(path).position == 0


STEPS = [pytest.param(509, id="sample"), pytest.param(1, id="all", marks=pytest.mark.sweep)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", STEPS)
def test_a_cut_journal_is_never_read(path: Path, step: int):  # B4
    filled(path)
    data = path.read_bytes()
    for size in range(0, len(data), step):
        path.write_bytes(data[:size])
        with pytest.raises(JournalDamaged):
            read(path)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("beside", ["-wal", "-shm"])
def test_a_cut_or_flipped_file_beside_it_shows_a_beginning_or_nothing(
    path: Path, beside: str, step: int
):  # B4
    """What a dead writer left: never a wrong entry, never half an append, never a traceback."""
    with SqliteJournal.open(path, NOTHING) as journal:
        fill(journal)
        whole = list(journal.read())
        kept = {end: Path(f"{path}{end}").read_bytes() for end in ("", "-wal", "-shm")}
    ends = {sum(BATCHES[:n]) for n in range(len(BATCHES) + 1)} | {len(whole)}
    hurt = kept[beside]
    for at in range(0, len(hurt), step):
        for damage in (hurt[:at], flipped(hurt, at)):
            for end, content in {**kept, beside: damage}.items():
                Path(f"{path}{end}").write_bytes(content)
            try:
                entries = read(path)
            except JournalDamaged:
                continue
            assert entries == whole[: len(entries)]
            assert len(entries) in ends


def test_a_flipped_byte_is_found_or_harmless(path: Path):
    """Every byte where the file says what it is, and a sample of the others; never a traceback."""
    flip_and_read(path, step=67, masks=(0xFF, 0x01))


@pytest.mark.sweep
@pytest.mark.timeout(600)
def test_any_flipped_byte_is_found_or_harmless(path: Path):
    flip_and_read(path, step=1, masks=(0xFF,))


def flip_and_read(path: Path, step: int, masks: Sequence[int]) -> None:
    entries = filled(path)
    data = path.read_bytes()
    cures: list[str] = []
    for at in (*range(100), *range(100, len(data), step)):
        for mask in masks:
            path.write_bytes(flipped(data, at, mask))
            for beside in path.parent.glob("journal.db-*"):
                beside.unlink()
            try:
                assert read(path) == entries
            except (JournalDamaged, JournalTooNew) as error:
                cures.append(error.hint)
    assert cures
    assert all("`windlass recover" in cure for cure in cures), "it is offered, whatever was hit"


# Secrets


def test_no_secret_reaches_the_disk(path: Path):  # S13
    redactor = Redactor({"A_TOKEN": "open-sesame-1001"})
    with SqliteJournal.open(path, redactor) as journal:
        journal.append(
            [HelpNeeded(at=NOON, task="1.1", question="is open-sesame-1001 right?")], expected=0
        )
        written = b"".join(each.read_bytes() for each in path.parent.iterdir())
    assert b"[redacted A_TOKEN]" in written
    assert b"open-sesame" not in written + path.read_bytes()
