"""What ails a disk is told by its number or by trying, with the cure."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from windlass.adapters.disk import trouble
from windlass.errors import GitFailed, JournalUnwritable


@pytest.mark.parametrize(
    ("number", "what", "cure"),
    [
        (errno.ENOSPC, "the disk is full: 'x'", "make room"),
        (errno.EDQUOT, "your disk quota is used up: 'x'", "make room"),
        (errno.EROFS, "the disk is now read-only: 'x'", "mount it writable again"),
        (errno.EIO, "the disk cannot be read or written: 'x'", "dmesg"),
    ],
)
def test_an_error_with_a_name_is_called_by_it(tmp_path: Path, number: int, what: str, cure: str):
    told = trouble(OSError(number, os.strerror(number), "x"), [tmp_path])
    assert told.what == what
    assert cure in told.cure


def test_any_other_is_told_as_it_is(tmp_path: Path):
    told = trouble(PermissionError(errno.EACCES, "Permission denied", "x"), [tmp_path])
    assert told.what == "Permission denied: 'x'"
    assert list(tmp_path.iterdir()) == []


def test_of_git_and_the_journal_what_they_said_is_quoted(tmp_path: Path):
    failed = GitFailed(("add",), 128, "fatal: unable to write new index file")
    assert trouble(failed, [tmp_path]).what == failed.message
    stuck = JournalUnwritable("the journal cannot be used: disk I/O error", hint="resume")
    assert trouble(stuck, [tmp_path]).what == stuck.message


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (sqlite3.SQLITE_FULL, "the disk is full"),
        (sqlite3.SQLITE_IOERR_FSYNC, "the disk cannot be read or written"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "the disk is now read-only"),
    ],
)
def test_what_sqlite_met_has_a_name_though_the_disk_is_well_again(
    tmp_path: Path, number: int, name: str
):
    stuck = JournalUnwritable("the journal cannot be used: no", hint="resume")
    stuck.__cause__ = cause = sqlite3.OperationalError("no")
    cause.sqlite_errorcode = number
    assert trouble(stuck, [tmp_path]).what == f"{name} ({stuck.message})"


def test_what_the_system_met_has_a_name_though_it_was_told_in_other_words(tmp_path: Path):
    stuck = JournalUnwritable("the journal cannot be made: no", hint="resume")
    stuck.__cause__ = OSError(errno.EROFS, "Read-only file system", "journal.db")
    told = trouble(stuck, [tmp_path])
    assert told.what == f"the disk is now read-only: 'journal.db' ({stuck.message})"
    assert told.cure.startswith("mount it writable again")


@pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap makes a disk that is read-only")
def test_where_a_program_only_says_that_it_failed_the_disk_is_tried(tmp_path: Path):
    script = """
import sys
from pathlib import Path
from windlass.adapters.disk import trouble
from windlass.errors import GitFailed
print(trouble(GitFailed(("add",), 128, "fatal: no"), [Path(sys.argv[1])]).what)
"""
    walls = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev"]
    command = [*walls, sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("the disk is now read-only: ")
    assert "`git add` failed with 128: fatal: no" in done.stdout
