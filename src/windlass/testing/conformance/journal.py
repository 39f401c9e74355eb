"""What every journal promises. Subclass the contract, bring the journal, and run it with pytest.

    class TestMine(JournalContract):
        def make(self): return MyJournal(self.redactor)
        def reopen(self, journal): return MyJournal(self.redactor, journal.storage)

Each test's name is the promise. Nothing but the port is used, and no test framework is imported.
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
    """The promises; `make` and `reopen` are the subclass's to bring."""

    redactor: ClassVar[Redactor] = Redactor({"CONTRACT_TOKEN": SECRET})
    """What the journal that `make` brings must redact with."""

    def make(self) -> Journal:
        """A journal with nothing in it."""
        raise NotImplementedError

    def reopen(self, journal: Journal) -> Journal:
        """Another journal over what that one stored, as a later process would open it."""
        raise NotImplementedError

    def test_a_new_journal_is_empty(self) -> None:
        """Nothing was appended, nothing is read."""
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
        """Whoever appends may fold what came back, and later reads the same."""
        journal = self.make()
        started = PlayerStarted(at=NOON, task="1.1", n=1, turn=1, start="c0ffee")
        returned = (
            *journal.append([started, timer("1.1")], expected=0),
            *journal.append([RunEnded(at=NOON, status=RunEnd.STOPPED, reason="ü ✓")], expected=2),
        )
        assert returned == tuple(journal.read())
        assert returned == tuple(self.reopen(journal).read())

    def test_records_are_the_entries_as_bytes_and_hold_no_secret(self) -> None:
        """A copy of them elsewhere is the same journal."""
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
        """A position is the last entry that is known already."""
        journal = self.make()
        journal.append([timer("a"), timer("b"), timer("c")], expected=0)
        assert [entry.seq for entry in journal.read(after=1)] == [2, 3]
        assert list(journal.read(after=3)) == []
        assert [entry.seq for entry in journal.read()] == [1, 2, 3]

    def test_an_unexpected_position_is_refused_and_nothing_appended(self) -> None:
        """A writer that does not know the end must not write after it."""
        journal = self.make()
        journal.append([timer("a")], expected=0)
        for wrong in (0, 2):
            refused(JournalConflict, lambda at=wrong: journal.append([timer("b")], expected=at))
        assert [entry.event for entry in journal.read()] == [timer("a")]
        journal.append([timer("c")], expected=1)

    def test_a_second_writer_is_refused(self) -> None:
        """Of two that know the same end, one may go on."""
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

    def test_a_later_process_sees_all_and_goes_on(self) -> None:
        """What was appended is there for whoever opens the journal next."""
        journal = self.make()
        journal.append([timer("a")], expected=0)
        later = self.reopen(journal)
        later.append([timer("b")], expected=1)
        assert [entry.event for entry in self.reopen(later).read()] == [timer("a"), timer("b")]

    def test_an_empty_append_changes_nothing(self) -> None:
        """No events, no entries; and with nothing to write, nothing to refuse."""
        journal = self.make()
        assert journal.append([], expected=0) == ()
        assert journal.append([], expected=7) == ()
        journal.append([timer("a")], expected=0)
        assert journal.append([], expected=1) == ()
        assert [entry.seq for entry in journal.read()] == [1]

    def test_secrets_are_redacted_at_the_door(self) -> None:
        """Text is stored, returned and read without its secrets; ids stay what they are."""
        journal = self.make()
        asked = HelpNeeded(at=NOON, task=SECRET, question=f"is {SECRET} right?")
        stored = HelpNeeded(at=NOON, task=SECRET, question="is [redacted CONTRACT_TOKEN] right?")
        returned = journal.append([asked], expected=0)
        assert [entry.event for entry in returned] == [stored]
        assert tuple(self.reopen(journal).read()) == returned

    def test_settings_that_are_secret_are_masked_at_the_door(self) -> None:
        """What is marked as secret is only said to be set, whatever the redactor knows."""
        journal = self.make()
        told = Settings(notify=NotifySettings(webhook="MY_HOOK", command=("curl", "{text}")))
        event = RunResumed(at=NOON, settings=told, sandbox="bwrap")
        (entry,) = journal.append([event], expected=0)
        assert isinstance(entry.event, RunResumed)
        notify = entry.event.settings.notify
        assert (notify.webhook, notify.command) == (MASK, (MASK,))
        assert tuple(self.reopen(journal).read()) == (entry,)


def timer(task: str) -> Event:
    """A small fact."""
    return TimerFired(at=NOON, task=task)


def refused(error: type[Exception], call: Callable[[], object]) -> None:
    """See that the call raises what it should."""
    try:
        call()
    except error:
        return
    raise AssertionError(f"expected {error.__name__}")
