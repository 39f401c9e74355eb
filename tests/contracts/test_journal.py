"""Both journals keep the promises of the port."""

from pathlib import Path

import pytest

from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.ports import Journal
from windlass.testing.conformance.journal import JournalContract
from windlass.testing.journal import MemoryJournal


class TestMemoryJournal(JournalContract):
    def make(self) -> Journal:
        return MemoryJournal(self.redactor)

    def reopen(self, journal: Journal) -> Journal:
        assert isinstance(journal, MemoryJournal)
        return MemoryJournal(self.redactor, storage=journal.storage)


class TestSqliteJournal(JournalContract):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path):
        self.path = tmp_path / "journal.db"
        self.opened: list[SqliteJournal] = []
        yield
        for journal in self.opened:
            journal.close()

    def make(self) -> Journal:
        self.opened.append(SqliteJournal.open(self.path, self.redactor))
        return self.opened[-1]

    def reopen(self, journal: Journal) -> Journal:
        assert isinstance(journal, SqliteJournal)
        return self.make()
