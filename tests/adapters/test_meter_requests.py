"""What a request may say: what has a price is written anew, what has none is refused by name."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.adapters.meter.wire import UnpricedError
from windlass.adapters.meter.wire.anthropic.headers import BETAS, answered_headers, asked_headers
from windlass.adapters.meter.wire.anthropic.requests import (
    MOST_SEARCHES,
    read_request,
    write_request,
)

HI: list[Any] = [{"role": "user", "content": "hi"}]
BASE: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": HI}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def _sent(**more: Any) -> Any:
    return json.loads(write_request(read_request(json.dumps({**BASE, **more}).encode())))


def _saying(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


UNPRICED: list[tuple[str, dict[str, Any]]] = [
    ("speed", {"speed": "fast"}),
    ("speed", {"speed": "turbo"}),
    ("speed", {"speed": ["fast"]}),
    ("service_tier", {"service_tier": "priority"}),
    ("service_tier", {"service_tier": "flex"}),
    ("inference_geo", {"inference_geo": "us"}),
    ("context_management.edits[0].type", {
        "context_management": {"edits": [{"type": "compact_20260112"}]},
    }),
    ("context_management.edits[1].type", {
        "context_management": {
            "edits": [{"type": "clear_thinking_20251015"}, {"type": "compact_20260112"}],
        },
    }),
    ("context_management.edits[0].instructions", {
        "context_management": {
            "edits": [{"type": "clear_tool_uses_20250919", "instructions": "x"}],
        },
    }),
    ("context_management.compaction", {"context_management": {"compaction": {}}}),
    ("compaction", {"compaction": {"type": "now"}}),
    ("tools[0].model", {
        "tools": [{"model": "claude-opus-4-1", "type": "advisor_20260301", "name": "advisor"}],
    }),
    ("tools[0].type", {"tools": [{"type": "advisor_20260301", "name": "advisor"}]}),
    ("tools[1].type", {"tools": [SEARCH, {"type": "web_search_20260209", "name": "w"}]}),
    ("tools[0].type", {"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}]}),
    ("tools[0].type", {"tools": [{"type": "code_execution_20250825", "name": "c"}]}),
    ("tools[0].type", {"tools": [{"type": "computer_20250124", "name": "c"}]}),
    ("tools[0].type", {"tools": [{"type": "mcp_toolset", "name": "m"}]}),
    ("tools[0].type", {"tools": [{"type": "tool_search_tool_regex_20251119", "name": "t"}]}),
    ("tools[0].allowed_callers", {
        "tools": [{"name": "a", "allowed_callers": ["code_execution_20250825"]}],
    }),
    ("tools[0].model", {"tools": [{"name": "a", "model": "claude-opus-4-1"}]}),
    ("tools[0].max_uses", {"tools": [{**SEARCH, "max_uses": -5}]}),
    ("tools[0].max_uses", {"tools": [{**SEARCH, "max_uses": 2.5}]}),
    ("container", {"container": "c"}),
    ("mcp_servers", {"mcp_servers": []}),
    ("fallbacks", {"fallbacks": [{"model": "claude-opus-4-1"}]}),
    ("fallbacks", {"fallbacks": "default"}),
    ("thread", {"thread": {"id": "t"}}),
    ("betas", {"betas": ["fast-mode-2026-02-01"]}),
    ("anthropic_beta", {"anthropic_beta": ["fast-mode-2026-02-01"]}),
    ("requests", {"requests": [BASE]}),
    ("n", {"n": 8}),
    ("output_config.task_budget", {"output_config": {"task_budget": {"total": 1}}}),
    ("output_config.speed", {"output_config": {"speed": "fast"}}),
    ("thinking.speed", {"thinking": {"type": "adaptive", "speed": "fast"}}),
    ("metadata.speed", {"metadata": {"user_id": "u", "speed": "fast"}}),
    ("tool_choice.speed", {"tool_choice": {"type": "auto", "speed": "fast"}}),
    ("cache_control.ttl", {"cache_control": {"type": "ephemeral", "ttl": "30d"}}),
    ("cache_control.scope", {"cache_control": {"type": "ephemeral", "scope": "global"}}),
    ("messages[0].speed", {"messages": [{"role": "user", "content": "x", "speed": "fast"}]}),
    ("messages[0].clear_at", {"messages": [{"role": "user", "content": "x", "clear_at": 1}]}),
    ("messages[0].content[0].type", _saying({"type": "compaction", "content": "x"})),
    ("messages[0].content[0].type", _saying({"type": "container_upload", "file_id": "f"})),
    ("messages[0].content[0].type", _saying({"type": "mcp_tool_use", "id": "i", "name": "n"})),
    ("messages[0].content[0].type", _saying({"type": "fallback", "model": "m"})),
    ("messages[0].content[0].source.type", _saying(
        {"type": "image", "source": {"type": "file", "file_id": "f"}}
    )),
    ("messages[0].content[0].cache_control.ttl", _saying(
        {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1y"}}
    )),
    ("messages[0].content[0].tool.type", _saying(
        {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": SEARCH}}
    )),
    ("max_tokens", {"max_tokens": -1}),
    ("max_tokens", {"max_tokens": 1.5}),
    ("max_tokens", {"max_tokens": 10**30}),
    ("max_tokens", {"max_tokens": "9"}),
    ("max_tokens", {"max_tokens": True}),
    ("model", {"model": ["claude-haiku-4-5", "claude-opus-4-1"]}),
    ("stream", {"stream": "yes"}),
]  # fmt: skip


@pytest.mark.parametrize(("where", "more"), UNPRICED)
def test_what_has_no_price_is_refused_by_its_name(where: str, more: dict[str, Any]):  # B6
    with pytest.raises(UnpricedError) as refused:
        _sent(**more)
    assert f"`{where}`" in str(refused.value)
    assert "take it out" in str(refused.value), "an error has a cure"


def test_what_the_provider_does_anyway_is_left_out():
    assert _sent(speed="standard", inference_geo="global", stream=None) == BASE
    assert _sent(service_tier="standard_only")["service_tier"] == "standard_only"


@pytest.mark.parametrize(
    ("uses", "sent"), [(None, MOST_SEARCHES), (3, 3), (8, 8), (9, 8), (10**6, 8)]
)
def test_a_request_searches_so_often_and_no_more(uses: int | None, sent: int):  # B6
    [tool] = _sent(tools=[{**SEARCH, **({"max_uses": uses} if uses else {})}])["tools"]
    assert tool == {**SEARCH, "max_uses": sent}


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        (b'{"model":"claude-opus-4","model":"m","max_tokens":1,"messages":[]}', "m"),
        (b'{"max_tokens":1,"messages":[],"m\\u006fdel":"a","model":"m"}', "m"),
    ],
)
def test_a_key_that_stands_there_twice_is_sent_once(text: bytes, sent: str):  # B6
    written = write_request(read_request(text))
    assert written.count(b'"model"') == 1
    assert json.loads(written)["model"] == sent


def test_a_key_that_stands_there_twice_inside_a_message_is_sent_once_too():  # B6
    block = b'{"type":"text","text":"a","text":"b","cache_control":null}'
    text = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[%s]}]}' % block
    [turn] = json.loads(write_request(read_request(text)))["messages"]
    assert turn["content"] == [{"type": "text", "text": "b"}]
    twice = text.replace(b'"type":"text",', b'"type":"text","type":"document",')
    with pytest.raises(UnpricedError):
        read_request(twice)


def test_what_a_block_says_beside_its_own_fields_is_left_out():  # B6
    given = {"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}, "speed": "fast"}
    [turn] = _sent(**_saying(given))["messages"]
    assert turn["content"] == [{"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}}]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\x00}\x00",
        b'{"model":"m","max_tokens":NaN,"messages":[]}',
        b'{"model":"m","max_tokens":1e400,"messages":[]}',
        b'{"model":"m","max_tokens":1,"messages":[]} {"model":"n"}',
        b'{"model":"m","messages":[]}',
        b'{"model":"m","max_tokens":null,"messages":[]}',
        b'{"max_tokens":1,"messages":[]}',
        b'{"model":"m","max_tokens":1}',
        b'{"model":"m","max_tokens":1,"messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"model":"\\ud83d","max_tokens":1,"messages":[]}',
    ],
    ids=range(15),
)
def test_what_is_no_request_is_refused(text: bytes):
    with pytest.raises(UnpricedError):
        read_request(text)


@given(st.text(max_size=300))
def test_no_name_of_a_field_reaches_a_terminal_as_it_stands(name: str):
    with pytest.raises(UnpricedError) as refused:
        _sent(**{f"x{name}": {"x": 1}})
    assert str(refused.value).isascii()
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 500


def _headers(*given: tuple[str, str]) -> dict[str, str]:
    return asked_headers(given, {"x-api-key": "k"})


PLAIN = {
    "x-api-key": "k",
    "anthropic-version": "2023-06-01",
    "content-type": "application/json",
    "accept-encoding": "identity",
}


@pytest.mark.parametrize(
    "name",
    [
        "x-original-url",
        "x-rewrite-url",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
        "x-forwarded-prefix",
        "x-http-method-override",
        "x-real-ip",
        "x-amz-target",
        "x-litellm-api-key",
        "x-litellm-spend-logs-metadata",
        "anthropic-priority",
        "anthropic-workspace-id",
        "anthropic-organization-id",
        "anthropic-use-case-id",
        "anthropic-speed",
        "forwarded",
        "host",
        "authorization",
        "cookie",
        "proxy-authorization",
        "content-length",
        "transfer-encoding",
        "content-type",
        "te",
        "expect",
        "x-stainless-helper-method",
    ],
)
def test_a_header_that_is_not_on_the_list_is_left_out(name: str):  # B6
    assert _headers((name, "/v1/elsewhere")) == PLAIN


def test_a_header_that_stands_there_twice_is_sent_once():
    assert _headers(("x-app", "a"), ("x-app", "b")) == {**PLAIN, "x-app": "a"}


@pytest.mark.parametrize(
    "given",
    [
        ("fast-mode-2026-02-01",),
        ("advisor-tool-2026-03-01", "compact-2026-01-12"),
        ("server-side-fallback-2026-07-01, code-execution-2025-08-25",),
        ("EFFORT-2025-11-24", ""),
    ],
)
def test_a_feature_without_a_price_is_left_out(given: tuple[str, ...]):  # B6
    assert _headers(*(("anthropic-beta", value) for value in given)) == PLAIN
    sent = _headers(*(("anthropic-beta", value) for value in ("effort-2025-11-24", *given)))
    assert sent == {**PLAIN, "anthropic-beta": "effort-2025-11-24"}


def test_features_are_sent_once_and_the_logins_own_with_them():
    given = [("anthropic-beta", ",".join(BETAS)), ("anthropic-beta", " effort-2025-11-24 ")]
    sent = asked_headers(given, {"anthropic-beta": "oauth-2025-04-20"})
    assert sent["anthropic-beta"] == ",".join([*BETAS, "oauth-2025-04-20"])


@pytest.mark.parametrize(
    "given",
    [
        [("content-encoding", "gzip")],
        [("content-encoding", "br, identity")],
        [("content-encoding", "")],
        [("anthropic-version", "2099-01-01")],
        [("anthropic-version", "2023-06-01"), ("anthropic-version", "2099-01-01")],
        [("content-length", "5"), ("transfer-encoding", "chunked")],
        [("x-app", "é")],
        [("anthropic-beta", "é")],
        [("anthropic-beta", "effort-2025-11-24;q=1")],
        [("anthropic-beta", "x" * 101)],
    ],
)
def test_a_header_that_cannot_be_passed_on_is_refused(given: list[tuple[str, str]]):  # B6
    with pytest.raises(UnpricedError):
        asked_headers(given, {})


def test_an_answer_has_the_headers_on_the_list_and_no_others():
    given = {"retry-after": "7", "anthropic-ratelimit-x": "1", "content-type": "a/b"}
    more = {"set-cookie": "a=b", "anthropic-organization-id": "o", "location": "https://x"}
    assert answered_headers({**given, **more, "server": "s", "content-encoding": "gzip"}) == given
