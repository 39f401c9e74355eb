"""Journals of every schema that was ever written are read, and amount to what they did then."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from replay.make_golden import HERE, KINDS, make, of_schema, read, told
from windlass.adapters.journal.sqlite import SqliteJournal
from windlass.core.engine import record
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.secrets import Redactor
from windlass.core.state import RunState, apply, fold
from windlass.core.state.transitions import UNDER_WAY
from windlass.runner import loop
from windlass.views.outcome import is_finished

SCHEMAS = range(1, codec.SCHEMA + 1)
JOURNALS = sorted(HERE.glob("*.jsonl"))
FILES = sorted(HERE.glob("*.db"))


def schema_of(path: Path) -> int:
    return int(path.stem.split("-")[1])


def kinds_in(folder: Path) -> set[type[e.Event]]:
    """What the journals of the newest schema hold facts of."""
    return {type(event) for path in of_schema(folder, codec.SCHEMA) for event in read(path)}


def amounts_to(journal: Path) -> Path:
    """What the journal amounts to; three hold stale tasks, which were told as completed once."""
    stale = journal.with_suffix(".stale.json")
    return stale if stale.exists() else journal.with_suffix(".json")


AMOUNTS = ("spent_usd", "estimated_usd", "reserved_usd", "reserved_most_usd")


def of_money(then: dict[str, Any], now: dict[str, Any]) -> None:
    """Take out what is told of money in another way than it was.

    A request that was never settled counted at its reservation once, and is an estimate now.
    """
    for old, new in ((then["metrics"], now["metrics"]), *_pairs(then["tasks"], now["tasks"])):
        if AMOUNTS[0] in old:
            continue  # it was written since
        told = {name: new.pop(name) for name in AMOUNTS}
        apart = told["spent_usd"] + told["estimated_usd"]
        assert new["cost_usd"] == pytest.approx(apart, abs=2e-6)
        if told["estimated_usd"] or told["reserved_most_usd"]:
            most = new["cost_usd"] + told["reserved_most_usd"]
            assert told["spent_usd"] < most <= old["cost_usd"] + 1e-9
            for changed in ("cost_usd", "cost_known", "input_tokens"):
                new.pop(changed, None)
                old.pop(changed, None)


def _pairs(then: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    assert then.keys() == now.keys()
    yield from ((then[id_], now[id_]) for id_ in then)


def test_only_a_stale_task_is_told_otherwise_than_it_was():
    found = sorted(HERE.glob("*.stale.json"))
    assert len(found) == 3
    for path in found:
        then = msgspec.json.decode(path.with_name(path.name.replace(".stale", "")).read_bytes())
        now = msgspec.json.decode(path.read_bytes())
        for id_, task in then["tasks"].items():
            if now["tasks"][id_]["status"] == "stale":
                assert task.pop("status") == "completed"
                assert now["tasks"][id_].pop("status") == "stale"
                assert now["tasks"][id_].pop("stale")
        stale = then["metrics"].pop("completed") - now["metrics"].pop("completed")
        assert stale > 0
        ends = {"status", "reason"}
        assert {k: v for k, v in then.items() if k not in ends} == {
            k: v for k, v in now.items() if k not in ends
        }
        assert then["status"] == now["status"] or now["status"] == "needs_human"


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.stem)
def test_a_journal_amounts_to_what_it_did_when_it_was_written(journal: Path):
    lines = journal.read_bytes().splitlines()
    assert {msgspec.json.decode(line)["schema"] for line in lines} == {schema_of(journal)}
    events = read(journal)
    then = msgspec.json.decode(amounts_to(journal).read_bytes())
    now = msgspec.json.decode(told(fold(events), len(lines)))
    of_money(then, now)
    assert now == then
    again = [codec.decode(codec.encode(event)) for event in events]
    assert again == events, "what was read is written as the same"


@pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: path.stem)
def test_whoever_takes_it_over_at_any_place_can_go_on(journal: Path):
    state: RunState | None = None
    for event in read(journal):
        state = apply(state, event)
        if is_finished(state):
            continue
        resumed = e.RunResumed(at=event.at, settings=state.settings, sandbox=state.sandbox)
        step = record(state, (resumed,), event.at, plan=None)
        assert not [task.id for task in step.states[0].live if task.phase in UNDER_WAY]
        assert step.events[1:], f"{state.phase}: nothing is under way, and nothing begins"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_the_file_of_a_journal_is_opened_and_gone_on_with(file: Path, tmp_path: Path):
    copy = tmp_path / "journal.db"
    shutil.copyfile(file, copy)
    events = read(file.with_suffix(".jsonl"))
    with SqliteJournal.read_only(copy) as journal:
        assert [entry.event for entry in journal.read()] == events
    with SqliteJournal.open(copy, Redactor({})) as journal:
        journal.append(events[-1:], expected=len(events))
    with SqliteJournal.read_only(copy) as journal:
        assert [entry.event for entry in journal.read()] == [*events, events[-1]]


def test_there_is_one_of_every_schema_and_in_the_newest_a_fact_of_every_kind():
    assert {*map(schema_of, JOURNALS)} == {*map(schema_of, FILES)} == {*SCHEMAS}
    assert not {kind.__name__ for kind in KINDS - kinds_in(HERE)}


def test_the_next_schema_gets_its_journals_by_one_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Every story shows what it is told for; and what was written once stays as it is."""
    monkeypatch.setattr(loop, "INBOX_SECONDS", 0)
    assert make(tmp_path) == len(of_schema(tmp_path, codec.SCHEMA))
    written = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert kinds_in(tmp_path) == KINDS
    assert make(tmp_path) == 0
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == written
