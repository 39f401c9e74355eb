"""Every fact reads back as it was written, or is not written."""

import hashlib
import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import EVENT_TYPES, instances
from windlass.core.events import codec
from windlass.core.events.model import (
    CheckResult,
    ChecksFinished,
    HelpNeeded,
    Outcome,
    PlayerFinished,
    TaskMerged,
    Usage,
)
from windlass.errors import JournalError, JournalTooNew

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize("kind", EVENT_TYPES)
@settings(max_examples=30)
@given(data=st.data())
def test_every_fact_reads_back_as_itself(kind: type, data: st.DataObject):
    event = data.draw(instances(kind))
    payload = codec.encode(event)
    assert codec.decode(payload) == event
    assert codec.encode(codec.decode(payload)) == payload


def test_a_fact_is_written_in_the_open_and_names_its_schema():
    event = TaskMerged(at=NOON, task="1.1", candidate=1, commit="c0ffee")
    assert codec.encode(event) == (
        b'{"schema":1,"event":{"type":"TaskMerged","at":"2026-01-02T12:00:00Z",'
        b'"task":"1.1","candidate":1,"commit":"c0ffee"}}'
    )


@pytest.mark.parametrize(
    "event",
    [
        PlayerFinished(at=NOON, task="a", n=1, summary="", usage=Usage(cost_usd=math.nan)),
        HelpNeeded(at=NOON, task="a", question="half a character: \ud83d"),
        HelpNeeded(at=NOON, task="a", question=object()),
        HelpNeeded(at=NOON, task="a", question=None),
        ChecksFinished(
            at=NOON, task="a", commit="c", tree="t",
            results=[CheckResult(command="true", outcome=Outcome.PASS)],
        ),
    ],
)  # fmt: skip
def test_what_would_not_read_back_is_not_written(event: Any):
    with pytest.raises(JournalError, match=type(event).__name__):
        codec.encode(event)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"{}",
        b'{"schema":1}',
        b'{"schema":-1,"event":{}}',
        b'{"schema":1,"event":{"type":"NeverHeardOf","at":"2026-01-02T12:00:00Z"}}',
        b'{"schema":1,"event":{"type":"TimerFired","at":"2026-01-02T12:00:00Z"}}',
        b'{"schema":1,"event":{"type":"TimerFired","at":"noon","task":"a"}}',
        b'{"schema":1,"event":{"type":"TimerFired","at":"2026-01-02T12:00:00Z","task":"a"}',
        b'{"schema":0,"event":[]}',
        b'{"schema":0,"event":{"type":"TimerFired"}}',
    ],
)
def test_what_is_no_fact_is_refused(payload: bytes):
    with pytest.raises(JournalError, match="cannot be read") as caught:
        codec.decode(payload)
    assert type(caught.value) is JournalError


@given(st.binary())
def test_no_bytes_are_too_strange_to_refuse(payload: bytes):
    with pytest.raises(JournalError):
        codec.decode(payload)


def test_a_record_of_a_newer_windlass_is_refused_by_both_versions():
    payload = msgspec.json.encode({"schema": codec.SCHEMA + 1, "event": {"type": "Future"}})
    with pytest.raises(JournalTooNew, match=r"version 2 .* version 1; upgrade windlass"):
        codec.decode(payload)


def test_an_old_record_is_brought_up_to_date_by_the_upcasters_between():
    old = {"type": "Merged", "at": "2026-01-02T12:00:00Z", "id": "1.1", "commit": "c0ffee"}

    def rename(fact: dict[str, Any]) -> dict[str, Any]:
        return {"type": "TaskMerged", "at": fact["at"], "task": fact["id"], "candidate": 1} | {
            "commit": fact["commit"]
        }

    payload = msgspec.json.encode({"schema": 0, "event": old})
    event = codec.decode(payload, upcasters={0: rename})
    assert event == TaskMerged(at=NOON, task="1.1", candidate=1, commit="c0ffee")


def test_an_old_record_without_an_upcaster_is_read_as_it_is():
    event = TaskMerged(at=NOON, task="1.1", candidate=1, commit="c0ffee")
    payload = codec.encode(event).replace(b'"schema":1', b'"schema":0')
    assert codec.decode(payload, upcasters={}) == event


def test_a_hash_covers_its_record_and_all_before_it():
    first = codec.chain(codec.GENESIS, b"one")
    assert first == hashlib.sha256(bytes(32) + b"one").digest()
    assert codec.chain(first, b"two") != codec.chain(codec.GENESIS, b"two")
