"""What a request costs: the list, the most it can come to, and what an answer's bytes say."""

import json
import timeit
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.adapters.meter.wire.anthropic.input_size import (
    CONTEXT,
    IMAGE,
    MOST_OBJECTS,
    WORST,
    reach,
)
from windlass.adapters.meter.wire.anthropic.prices import Price, cost, price
from windlass.adapters.meter.wire.anthropic.tally import MOST_OUTPUT, Tally, bound
from windlass.core.events.model import Usage
from windlass.testing.model import Answer, Say, Tokens
from windlass.testing.model import anthropic_wire as wire

OPUS = "claude-opus-4-5-20251101"
BODY: dict[str, Any] = {"model": OPUS, "max_tokens": 1000, "stream": True, "messages": []}
TOKENS = Tokens(
    input_tokens=7, output_tokens=50, cache_creation_input_tokens=30, cache_read_input_tokens=400
)
USED = Usage(input_tokens=7, output_tokens=50, cache_write_tokens=30, cache_read_tokens=400)
WHOLE = wire.message(Answer((Say("word " * 40),), usage=TOKENS), ident=1, model=OPUS)
STREAM = b"".join(wire.stream(WHOLE))


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (OPUS, Price(5, 25)),
        ("claude-opus-4-6", Price(5, 25)),
        ("claude-opus-5", Price(5, 25)),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", Price(5, 25)),
        ("claude-opus-4-5[1m]", Price(5, 25)),
        ("claude-opus-4-1-20250805", Price(15, 75)),
        ("claude-opus-4-20250514", Price(15, 75)),
        ("claude-3-opus-20240229", Price(15, 75)),
        ("claude-sonnet-4-6", Price(3, 15)),
        ("claude-sonnet-5", Price(3, 15)),
        ("claude-sonnet-4-5", Price(3, 15, grows=True)),
        ("claude-sonnet-4-20250514", Price(3, 15, grows=True)),
        ("claude-3-7-sonnet-20250219", Price(3, 15, grows=True)),
        ("sonnet", Price(3, 15, grows=True)),
        ("claude-haiku-4-5-20251001", Price(1, 5)),
        ("claude-3-5-haiku-20241022", Price(0.8, 4)),
        # What the name leaves open is paid at the dearest it can mean.
        ("opus", Price(15, 75)),
        ("haiku", Price(1, 5)),
        ("claude-next-9", Price(15, 75)),
        ("", Price(15, 75)),
    ],
)
def test_a_model_has_the_price_of_its_family_and_version(model: str, expected: Price):
    assert price(model) == expected


def test_each_kind_of_token_has_its_own_price():
    million = 1_000_000
    assert cost(OPUS, Usage(input_tokens=million)) == 5
    assert cost(OPUS, Usage(output_tokens=million)) == 25
    assert cost(OPUS, Usage(cache_write_tokens=million)) == 6.25
    assert cost(OPUS, Usage(cache_read_tokens=million)) == 0.5


@pytest.mark.parametrize(
    ("model", "read", "expected"),
    [
        ("claude-sonnet-4-5", 200_000, 0.6 + 1.5),
        ("claude-sonnet-4-5", 200_001, 1.2 + 2.25),
        ("claude-sonnet-4-6", 200_001, 0.6 + 1.5),
        (OPUS, 200_001, 1.0 + 2.5),
    ],
)
def test_a_long_input_makes_all_of_a_request_dearer_where_it_does(  # B6
    model: str, read: int, expected: float
):
    assert cost(model, Usage(input_tokens=read, output_tokens=100_000)) == pytest.approx(
        expected, abs=1e-4
    )


def test_what_is_read_from_the_cache_makes_an_input_long_too():  # B6
    cached = Usage(input_tokens=1, cache_read_tokens=200_000)
    assert cost("claude-sonnet-4-5", cached) == pytest.approx(200_000 * 0.6 / 1e6, rel=1e-3)


def test_the_bound_counts_the_input_high_and_the_output_whole():
    body = {"max_tokens": 1000, "x": "y" * 2474}
    assert len(json.dumps(body, separators=(",", ":"))) == 2500
    assert bound(OPUS, body) == pytest.approx((1000 * 6.25 + 1000 * 25) / 1e6)


URL = {"type": "url", "url": "https://x"}
TEXT = {"type": "text", "text": '{"type": "url"}'}
IN_PLACE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
IMAGE_HERE = {"type": "image", "source": IN_PLACE}


def _saying(*blocks: Any, **more: Any) -> bytes:
    return json.dumps({"messages": [{"role": "user", "content": blocks}], **more}).encode()


@pytest.mark.parametrize(
    "content",
    [
        _saying({"type": "document", "source": URL}),
        _saying({"type": "image", "source": {"url": "https://x", "type": "url"}}),
        _saying({"type": "image", "source": {"type": "file", "file_id": "f"}}),
        _saying({"type": "image", "source": {"type": "of a later day"}}),
        _saying({"type": "document", "source": {**IN_PLACE, "media_type": "application/pdf"}}),
        _saying({"type": "container_upload", "file_id": "f"}),
        _saying({"type": "tool_result", "content": [TEXT, {"type": "image", "source": URL}]}),
        _saying(
            {
                "type": "document",
                "source": {"type": "content", "content": [{"type": "image", "source": URL}]},
            }
        ),
        _saying(TEXT, system=[{"type": "document", "source": URL}]),
        _saying({"type": "document", "source": URL}).replace(b'"url"', b'"\\u0075rl"'),
        _saying(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
        _saying(tools=[{"name": "a"}, {"type": "code_execution_20250825"}]),
        _saying(mcp_servers=[{"type": "url", "url": "https://x", "name": "m"}]),
        _saying(container={"skills": []}),
        b'{"messages":[[]]}',
        b'{"messages":[' + b"{}," * MOST_OBJECTS + b"{}]}",
        b'{"messages":[{"content":' + b"[" * 10_000 + b"]" * 10_000 + b"}]}",
    ],
)
def test_what_is_not_all_there_counts_as_all_that_can_be_read(content: bytes):  # B6
    assert reach(content).tokens == CONTEXT


@pytest.mark.parametrize(
    ("content", "more"),
    [
        (_saying(TEXT), 0),
        (b'{"messages":[{"content":"a"},{"content":null},{}],"tools":null,"system":"b"}', 0),
        (_saying({"type": "tool_result", "content": "a"}, {"type": "thinking"}), 0),
        (_saying({"type": "tool_use", "input": {"type": "document", "source": URL}}), 0),
        (_saying({"type": "document", "source": {"type": "text", "data": "a"}}), 0),
        (_saying(IMAGE_HERE), IMAGE),
        (
            _saying({"type": "tool_result", "content": [IMAGE_HERE]}),
            IMAGE,
        ),
        (_saying(TEXT, tools=[{"name": "a"}, {"type": "custom", "name": "b"}], mcp_servers=[]), 0),
    ],
)
def test_what_is_all_there_counts_by_its_length(content: bytes, more: int):
    assert reach(content).tokens == pytest.approx(len(content) / 2.5 + more, abs=1)


@pytest.mark.parametrize("ttl", [None, "5m", "1h", "2h"])
@pytest.mark.parametrize("place", ["request", "system", "tool", "message"])
def test_what_is_kept_for_an_hour_is_seen_wherever_it_is_said(ttl: str | None, place: str):
    kept = {"cache_control": {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}}
    content = {
        "request": _saying(TEXT, **kept),
        "system": _saying(TEXT, system=[{**TEXT, **kept}]),
        "tool": _saying(TEXT, tools=[{"name": "a", **kept}]),
        "message": _saying({"type": "tool_result", "content": [{**TEXT, **kept}]}),
    }
    assert reach(content[place]).for_an_hour == (ttl not in {None, "5m"})


def test_what_is_kept_for_an_hour_is_reserved_at_its_price():  # B6
    body = {"max_tokens": 0, "x": "y" * 2415, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    length = len(json.dumps(body, separators=(",", ":")))
    assert bound(OPUS, body) == pytest.approx(length / 2.5 * 10 / 1e6, rel=1e-3)


def test_no_request_is_bound_by_more_than_a_model_can_read_and_write():  # B6
    most = (CONTEXT * 6.25 + MOST_OUTPUT * 25) / 1e6
    assert bound(OPUS, {"max_tokens": 10**9, "x": "y" * 3_000_000}) == pytest.approx(most)
    assert reach(b"no request") == WORST


def test_a_look_at_a_long_conversation_costs_little():
    turns = [{"role": "user", "content": [{"type": "text", "text": "x" * 1000}]}] * 2000
    content = json.dumps({"messages": turns}).encode()
    assert min(timeit.repeat(lambda: reach(content), number=1, repeat=5)) < 0.1


@given(cut=st.integers(1, len(STREAM)))
def test_a_stream_says_the_same_wherever_it_is_cut(cut: int):
    tally = Tally(OPUS, BODY)
    for at in range(0, len(STREAM), cut):
        # Only with the empty line, its last byte, does the end of a stream mean anything.
        assert not tally.whole or at == len(STREAM) - 1
        tally.read_stream(STREAM[at : at + cut])
    assert tally.whole
    assert tally.usage() == _priced(USED)


def test_a_document_says_the_same_as_a_stream():
    tally = Tally(OPUS, BODY)
    tally.read_document(json.dumps(WHOLE).encode())
    assert tally.usage() == _priced(USED)


@given(cut=st.integers(0, len(STREAM) - 2))
def test_what_breaks_off_is_an_estimate_between_the_truth_and_the_bound(cut: int):
    tally = Tally(OPUS, BODY)
    tally.read_stream(STREAM[:cut])
    usage = tally.usage()
    assert not usage.known
    assert usage.output_tokens == min(max(cut // 3, usage.output_tokens), 1000)
    assert usage.cost_usd <= tally.bound == bound(OPUS, BODY)


@pytest.mark.parametrize("stream", [True, False])
def test_before_any_word_of_an_answer_nothing_is_seen_of_it(*, stream: bool):  # B6
    """What such a request counts for is decided once, in the core: by the run's other requests."""
    usage = Tally(OPUS, {**BODY, "stream": stream}).usage()
    assert (usage.input_tokens, usage.output_tokens, usage.cost_usd) == (0, 0, 0)


def test_an_answer_that_says_less_later_takes_nothing_back():
    tally = Tally(OPUS, BODY)
    tally.read_stream(wire.event("message_start", message={"usage": {"input_tokens": 9}}))
    news = {"input_tokens": None, "output_tokens": 3}
    tally.read_stream(wire.event("message_delta", usage=news) + wire.event("message_stop"))
    assert tally.usage() == _priced(Usage(input_tokens=9, output_tokens=3))


HOURLY = {"cache_creation_input_tokens": 1000, "cache_creation": {"ephemeral_1h_input_tokens": 400}}
SEARCHED = {"output_tokens": 3, "server_tool_use": {"web_search_requests": 2}}
BEGUN = wire.event("message_start", message={"usage": HOURLY})
GOES_ON = wire.event("message_delta", usage=SEARCHED)
TRUE_USD = (600 * 6.25 + 400 * 10 + 3 * 25) / 1e6 + 0.02


def test_what_is_kept_for_an_hour_and_what_is_searched_is_paid_for():  # B6
    tally = Tally(OPUS, BODY)
    tally.read_stream(BEGUN + GOES_ON + wire.event("message_stop"))
    whole = Tally(OPUS, BODY)
    whole.read_document(json.dumps({"usage": {**HOURLY, **SEARCHED}}).encode())
    assert tally.usage() == whole.usage()
    assert tally.usage().known
    assert tally.usage().cost_usd == pytest.approx(TRUE_USD)


def test_what_breaks_off_is_paid_for_as_far_as_it_told():  # B6
    tally = Tally(OPUS, {**BODY, "max_tokens": 9000})
    tally.read_stream(BEGUN + GOES_ON)
    assert not tally.usage().known
    assert tally.usage().cost_usd >= TRUE_USD


@pytest.mark.parametrize("line", [b"data: {\n", b"data: []\n", b": ping\n", b"\xff\n", b"data:\n"])
def test_what_cannot_be_read_changes_nothing(line: bytes):
    tally = Tally(OPUS, BODY)
    tally.read_stream(line + STREAM)
    assert tally.usage() == _priced(USED)


def _priced(usage: Usage) -> Usage:
    return Usage(
        cost_usd=cost(OPUS, usage),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
