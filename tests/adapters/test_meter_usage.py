"""All that an answer tells of its usage is paid for; what cannot be is the provider's mistake."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.adapters.meter.wire.anthropic.prices import cost
from windlass.adapters.meter.wire.anthropic.tally import Tally
from windlass.adapters.meter.wire.anthropic.usage import MOST_COUNTED
from windlass.core.events.model import Usage
from windlass.testing.model import anthropic_wire as wire

OPUS = "claude-opus-4-5"
BODY: dict[str, Any] = {"model": OPUS, "max_tokens": 100_000, "stream": True, "messages": []}
TOLD: dict[str, Any] = {"input_tokens": 1000, "output_tokens": 100}
PLAIN = cost(OPUS, Usage(input_tokens=1000, output_tokens=100))


def _stream(*usages: Any) -> Tally:
    tally = Tally(OPUS, BODY)
    first, *later = usages
    tally.read_stream(wire.event("message_start", message={"usage": first}))
    for usage in later:
        tally.read_stream(wire.event("message_delta", usage=usage))
    tally.read_stream(wire.event("message_stop"))
    return tally


def _document(usage: Any) -> Tally:
    tally = Tally(OPUS, {**BODY, "stream": False})
    tally.read_document(json.dumps({"usage": usage}).encode())
    return tally


def _usages(**more: Any) -> list[Usage]:
    """What a stream and a document with this usage come to."""
    told = {**TOLD, **more}
    return [_stream(TOLD, told).usage(), _stream(told, TOLD).usage(), _document(told).usage()]


ADVICE = {"type": "advisor_message", "model": "claude-opus-4-1", **TOLD}
SUMMARY = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3500}
SUMMED = cost(OPUS, Usage(input_tokens=180_000, output_tokens=3500))
ROUND = {"type": "message", "input_tokens": 600, "output_tokens": 60}


@pytest.mark.parametrize(
    ("more", "usd"),
    [
        ({}, PLAIN),
        ({"speed": "standard", "inference_geo": "global", "service_tier": "standard"}, PLAIN),
        ({"speed": None, "inference_geo": "not_available", "service_tier": None}, PLAIN),
        ({"speed": "fast"}, 6 * PLAIN),
        ({"inference_geo": "us"}, 1.1 * PLAIN),
        ({"speed": "fast", "inference_geo": "us"}, 6.6 * PLAIN),
        ({"service_tier": "batch"}, PLAIN),
        ({"iterations": []}, PLAIN),
        ({"iterations": [SUMMARY]}, PLAIN + SUMMED),
        ({"iterations": [ADVICE]}, 4 * PLAIN),
        ({"iterations": [ADVICE, ADVICE]}, 7 * PLAIN),
        ({"iterations": [ROUND]}, PLAIN),
        ({"iterations": [ROUND, ROUND]}, 1.2 * PLAIN),
        ({"iterations": [{**ROUND, "model": "claude-opus-4-5-20251101"}] * 2}, 1.2 * PLAIN),
        ({"iterations": [{"type": "fallback_message", **TOLD}]}, 2 * PLAIN),
        ({"iterations": [{"type": "of a later day", **TOLD}]}, 2 * PLAIN),
        ({"iterations": [TOLD]}, 2 * PLAIN),
        ({"iterations": [{**ADVICE, "model": "of a later day"}]}, 4 * PLAIN),
        ({"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 9}}, PLAIN + 0.03),
        ({"output_tokens_details": {"thinking_tokens": 90}}, PLAIN),
        ({"cache_creation": {"ephemeral_1h_input_tokens": 1000}}, PLAIN + 0.01),
        ({"cache_creation": {"ephemeral_5m_input_tokens": 1000}}, PLAIN + 0.00625),
    ],
)  # fmt: skip
def test_every_part_of_a_usage_has_its_price(more: dict[str, Any], usd: float):  # B6
    for usage in _usages(**more):
        assert usage.cost_usd == pytest.approx(usd)
        assert usage.known


@pytest.mark.parametrize(
    ("model", "factor"),
    [
        ("claude-opus-4-1-20250805", 3),
        ("claude-opus-4-5-20251101", 1),
        ("claude-haiku-4-5", 1),
        ("of-a-gateway", 1),
        (7, 1),
        (None, 1),
    ],
)
def test_the_model_that_answered_is_paid_for_where_it_is_dearer(model: Any, factor: int):  # B6
    begun = wire.event("message_start", message={"model": model, "usage": TOLD})
    end = wire.event("message_delta", usage=TOLD) + wire.event("message_stop")
    streamed, whole = Tally(OPUS, BODY), Tally(OPUS, BODY)
    streamed.read_stream(begun + end)
    whole.read_document(json.dumps({"model": model, "usage": TOLD}).encode())
    assert streamed.usage() == whole.usage()
    assert whole.usage().cost_usd == pytest.approx(factor * PLAIN)


def test_tokens_of_other_models_are_counted_among_the_tokens():  # B6
    for usage in _usages(iterations=[SUMMARY, ROUND]):
        assert (usage.input_tokens, usage.output_tokens) == (181_000, 3600)


@pytest.mark.parametrize(
    ("more", "usd"),
    [
        ({"tokens_of_a_later_day": 1000}, PLAIN + 0.075),
        ({"of_a_later_day": {"a": [{"b": 400}, 600]}}, PLAIN + 0.075),
        ({"server_tool_use": {"of_a_later_day": 1000}}, PLAIN + 0.075),
        ({"cache_creation": {"ephemeral_1d_input_tokens": 1000}}, PLAIN + 0.075),
        ({"output_tokens_details": {"of_a_later_day": 1000}}, PLAIN + 0.075),
        ({"iterations": [{**ROUND, "of_a_later_day": 1000}]}, PLAIN + 0.075),
        ({"speed": "of a later day"}, 6 * PLAIN),
        ({"speed": 2}, 6 * PLAIN),
        ({"service_tier": "priority"}, 6 * PLAIN),
        ({"inference_geo": "mars"}, 1.1 * PLAIN),
        ({"kind": "of a later day"}, PLAIN),
        ({"is_of_a_later_day": True}, PLAIN),
    ],
)
def test_what_is_not_known_counts_at_its_worst_and_is_said_to_be_unknown(  # B6
    more: dict[str, Any], usd: float
):
    for usage in _usages(**more):
        assert usage.cost_usd == pytest.approx(usd)
        assert not usage.known


@pytest.mark.parametrize("more", [{"a": 0}, {"a": None}, {"a": ""}, {"a": {"b": [0, False]}}])
def test_what_is_not_known_and_nothing_costs_nothing(more: dict[str, Any]):
    for usage in _usages(**more):
        assert usage == Usage(input_tokens=1000, output_tokens=100, cost_usd=PLAIN)


def test_what_is_not_known_never_counts_for_more_than_was_reserved():  # B6
    for tally in (_stream(TOLD, {**TOLD, "a": MOST_COUNTED}), _document({**TOLD, "a": 10**9})):
        assert tally.usage().cost_usd == pytest.approx(tally.bound)
        assert not tally.usage().known


def test_what_is_known_counts_even_beyond_what_was_reserved():  # B6
    tally = _stream(TOLD, {**TOLD, "iterations": [{**ADVICE, "output_tokens": 10**6}]})
    assert tally.usage().cost_usd > tally.bound
    assert tally.usage().known


NUMBERS: list[Any] = [-1, -(10**400), 10**400, MOST_COUNTED + 1, 2**63, 1.5, 7.0, 1e308, True]
OTHERS: list[Any] = ["9", [9], {"a": 9}]


@pytest.mark.parametrize("number", [*NUMBERS, *OTHERS])
@pytest.mark.parametrize(
    "place",
    [
        lambda n: {"output_tokens": n},
        lambda n: {"cache_read_input_tokens": n},
        lambda n: {"cache_creation": {"ephemeral_1h_input_tokens": n}},
        lambda n: {"server_tool_use": {"web_search_requests": n}},
        lambda n: {"iterations": [{"type": "message", "input_tokens": n}]},
        lambda n: {"output_tokens_details": {"thinking_tokens": n}},
    ],
    ids=["output", "cache", "hour", "search", "iteration", "thinking"],
)
def test_numbers_that_cannot_be_are_the_providers_mistake(place: Any, number: Any):  # B6
    told = {**TOLD, **place(number)}
    for tally in (_stream(TOLD, told), _stream(told, TOLD), _document(told)):
        assert tally.nonsense
        assert not tally.whole
        assert tally.usage().cost_usd == pytest.approx(tally.bound)
        assert not tally.usage().known


@pytest.mark.parametrize("number", [-1, 10**400, 1.5])
def test_an_unknown_number_that_cannot_be_is_one_too(number: Any):  # B6
    assert _document({**TOLD, "a": {"b": [number]}}).nonsense


@pytest.mark.parametrize("usage", [7, "x", [], [TOLD], {"iterations": {"a": 1}, **TOLD}])
def test_a_usage_of_another_shape_is_one_too(usage: Any):  # B6
    assert _document(usage).nonsense
    assert _stream(TOLD, usage).nonsense


@pytest.mark.parametrize(
    "line",
    [
        b'data: {"type":"message_delta","usage":{"output_tokens":NaN}}\n',
        b'data: {"type":"message_delta","usage":{"output_tokens":1e999}}\n',
        b'data: {"type":"message_delta","usage":{"output_tokens":' + b"9" * 5000 + b"}}\n",
        b'data: {"type":"message_delta","usage":{"output_tokens":5}\n',
        b'data: {"type":"message_delta","usage":' + b'{"a":' * 50_000 + b"}\n",
    ],
    ids=range(5),
)
def test_a_usage_that_cannot_be_read_is_one_too(line: bytes):  # B6
    tally = Tally(OPUS, BODY)
    tally.read_stream(wire.event("message_start", message={"usage": TOLD}))
    tally.read_stream(line + wire.event("message_stop"))
    assert tally.usage().cost_usd == pytest.approx(tally.bound)
    assert not tally.usage().known
    whole = Tally(OPUS, {**BODY, "stream": False})
    whole.read_document(line.removeprefix(b"data: "))
    assert whole.usage().cost_usd == pytest.approx(whole.bound)


def test_a_stream_that_tells_nothing_at_its_end_is_an_estimate():  # B6
    for tally in (_stream(TOLD), _stream(TOLD, None), _stream(None, None), _stream({}, {})):
        assert not tally.whole
        assert not tally.usage().known
        assert tally.usage().cost_usd > 0


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": 0, "output_tokens": 0}])
def test_an_answer_without_a_usage_counts_as_what_was_reserved(usage: Any):  # B6
    tally = _document(usage)
    assert tally.usage().cost_usd == pytest.approx(tally.bound)
    assert not tally.usage().known


def test_of_running_totals_the_larger_counts_in_each_part():  # B6
    early = {**TOLD, "speed": "fast", "iterations": [SUMMARY]}
    tally = _stream(early, {"output_tokens": 50, "speed": "standard", "iterations": []})
    assert tally.usage() == _document(early).usage()


def test_a_search_that_reads_a_request_again_and_again_is_covered():  # B6
    tool = {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
    tally = Tally(OPUS, {**BODY, "tools": [tool]})
    read = {"input_tokens": 9 * 1_000_000, "output_tokens": 9 * 100_000}
    searched = {**read, "server_tool_use": {"web_search_requests": 8}}
    tally.read_stream(wire.event("message_start", message={"usage": searched}))
    tally.read_stream(wire.event("message_delta", usage=searched) + wire.event("message_stop"))
    assert tally.usage().known
    assert tally.usage().cost_usd <= tally.bound


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["input_tokens", "iterations", "speed", "server_tool_use", "type", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(usage=JSON, later=JSON)
def test_no_usage_can_make_it_fail_or_an_answer_free(usage: Any, later: Any):  # B6
    for tally in (_stream(usage, later), _document(usage)):
        assert 0 < tally.usage().cost_usd < 1e6
        assert tally.usage().known == (tally.whole and tally.usage().known)
