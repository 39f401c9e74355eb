"""What every journal promises. Subclass the contract, provide the journal, run it with pytest.

    class TestMine(JournalContract):
        def make(self): return MyJournal(self.redactor)
        def reopen(self, journal): return MyJournal(self.redactor, journal.storage)

Each test's name is the promise. The tests use only the port, and import no test framework.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import ClassVar

from windlass.core.events import codec
from windlass.core.events.model import (
    Event,
    HelpNeeded,
    PlayerStarted,
    RunEnd,
    RunEnded,
    RunResumed,
    TimerFired,
)
from windlass.core.secrets import Redactor
from windlass.core.settings import MASK, NotifySettings, Settings
from windlass.errors import JournalConflict, JournalError
from windlass.ports import Journal

NOON = datetime(2026, 1, 2, 12, 0, 0, 250_000, tzinfo=UTC)
SECRET = "open-sesame-1001"


class JournalContract:
    """The promises. A subclass provides `make` and `reopen`."""

    redactor: ClassVar[Redactor] = Redactor({"CONTRACT_TOKEN": SECRET})
    """The redactor that the journal of `make` must use."""

    def make(self) -> Journal:
        """An empty journal."""
        raise NotImplementedError

    def reopen(self, journal: Journal) -> Journal:
        """Open the same storage again, as a later process would."""
        raise NotImplementedError

    def test_a_new_journal_is_empty(self) -> None:
        assert list(self.make().read()) == []

    def test_entries_are_numbered_from_one_in_the_order_of_appending(self) -> None:
        """The order of appending is the order of reading, across appends and within one."""
        journal = self.make()
        journal.append([timer("a"), timer("b")], expected=0)
        journal.append([timer("c")], expected=2)
        assert [(entry.seq, entry.event) for entry in journal.read()] == [
            (1, timer("a")),
            (2, timer("b")),
            (3, timer("c")),
        ]

    def test_what_append_returns_is_what_is_read(self) -> None:
        """The caller may fold the returned entries; later reads return the same."""
        journal = self.make()
        started = PlayerStarted(at=NOON, task="1.1", n=1, turn=1, start="c0ffee")
        returned = (
            *journal.append([started, timer("1.1")], expected=0),
            *journal.append([RunEnded(at=NOON, status=RunEnd.STOPPED, reason="ü ✓")], expected=2),
        )
        assert returned == tuple(journal.read())
        assert returned == tuple(self.reopen(journal).read())

    def test_records_restore_an_empty_journal_and_no_other(self) -> None:
        """A restored journal is the same journal, and goes on where the lost one ended."""
        lost = [codec.encode(timer(name)) for name in ("a", "b")]
        journal = self.make()
        journal.restore(lost)
        assert list(journal.records()) == lost
        journal.append([timer("c")], expected=2)
        again = self.reopen(journal)
        assert [entry.event for entry in again.read()] == [timer("a"), timer("b"), timer("c")]
        refused(JournalConflict, lambda: again.restore(lost))
        assert len(again.records()) == 3, "nothing was restored"

    def test_records_are_the_entries_as_bytes_and_hold_no_secret(self) -> None:
        """A copy of the records is the same journal."""
        journal = self.make()
        asked = HelpNeeded(at=NOON, task="a", question=f"is it {SECRET}?")
        journal.append([timer("a"), asked, timer("c")], expected=0)
        records = journal.records()
        assert [codec.decode(record) for record in records] == [
            entry.event for entry in journal.read()
        ]
        assert SECRET.encode() not in b"".join(records)
        assert list(journal.records(after=2)) == list(records[2:])
        assert list(self.reopen(journal).records()) == list(records)

    def test_reading_begins_after_a_position(self) -> None:
        """The position is that of the last known entry."""
        journal = self.make()
        journal.append([timer("a"), timer("b"), timer("c")], expected=0)
        assert [entry.seq for entry in journal.read(after=1)] == [2, 3]
        assert list(journal.read(after=3)) == []
        assert [entry.seq for entry in journal.read()] == [1, 2, 3]

    def test_an_unexpected_position_is_refused_and_nothing_appended(self) -> None:
        """A writer that does not know the end must not append."""
        journal = self.make()
        journal.append([timer("a")], expected=0)
        for wrong in (0, 2):
            refused(JournalConflict, lambda at=wrong: journal.append([timer("b")], expected=at))
        assert [entry.event for entry in journal.read()] == [timer("a")]
        journal.append([timer("c")], expected=1)

    def test_a_second_writer_is_refused(self) -> None:
        """Of two writers that expect the same end, only one may append."""
        first = self.make()
        second = self.reopen(first)
        first.append([timer("first")], expected=0)
        refused(JournalConflict, lambda: second.append([timer("second")], expected=0))
        assert [entry.event for entry in second.read()] == [timer("first")]

    def test_a_batch_is_appended_whole_or_not_at_all(self) -> None:
        """An event that cannot be encoded rejects its whole batch."""
        journal = self.make()
        unwritable = HelpNeeded(at=NOON, task="a", question="\ud800")
        refused(JournalError, lambda: journal.append([timer("a"), unwritable], expected=0))
        assert list(journal.read()) == []
        assert [entry.seq for entry in journal.append([timer("b")], expected=0)] == [1]

    def test_a_later_process_sees_everything_and_continues(self) -> None:
        """A process that opens the journal later reads every entry."""
        journal = self.make()
        journal.append([timer("a")], expected=0)
        later = self.reopen(journal)
        later.append([timer("b")], expected=1)
        assert [entry.event for entry in self.reopen(later).read()] == [timer("a"), timer("b")]

    def test_an_empty_append_changes_nothing(self) -> None:
        """Without events there is nothing to refuse."""
        journal = self.make()
        assert journal.append([], expected=0) == ()
        assert journal.append([], expected=7) == ()
        journal.append([timer("a")], expected=0)
        assert journal.append([], expected=1) == ()
        assert [entry.seq for entry in journal.read()] == [1]

    def test_secrets_are_redacted_before_they_are_stored(self) -> None:
        """Text is stored, returned and read without its secrets; ids are not changed."""
        journal = self.make()
        asked = HelpNeeded(at=NOON, task=SECRET, question=f"is {SECRET} right?")
        stored = HelpNeeded(at=NOON, task=SECRET, question="is [redacted CONTRACT_TOKEN] right?")
        returned = journal.append([asked], expected=0)
        assert [entry.event for entry in returned] == [stored]
        assert tuple(self.reopen(journal).read()) == returned

    def test_secret_settings_are_masked_before_they_are_stored(self) -> None:
        """The value of a secret setting is masked, even if the redactor does not know it."""
        journal = self.make()
        settings = Settings(notify=NotifySettings(webhook="MY_HOOK", command=("curl", "{text}")))
        event = RunResumed(at=NOON, settings=settings, sandbox="bwrap")
        (entry,) = journal.append([event], expected=0)
        assert isinstance(entry.event, RunResumed)
        notify = entry.event.settings.notify
        assert (notify.webhook, notify.command) == (MASK, (MASK,))
        assert tuple(self.reopen(journal).read()) == (entry,)


def timer(task: str) -> Event:
    """A small fact."""
    return TimerFired(at=NOON, task=task)


def refused(error: type[Exception], call: Callable[[], object]) -> None:
    """Assert that the call raises the error."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"expected {error.__name__}")
