"""The headers that pass the meter, in either direction, and what a refusal means. Pure.

Rule 1: only known headers pass, so that none can lead a request elsewhere (`x-original-url`,
`x-forwarded-host`), change its method or speak for another client.
Rule 2: a feature (`anthropic-beta`) without a price here is left out. That is safe: the provider
then does without it, any field of the body that needs it is refused already, and an agent's program
with a new feature keeps working.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from windlass.adapters.meter.rate_limits import Complaint, Refusal, read_moment, retry_after
from windlass.adapters.meter.wire import UnpricedError

VERSION = "2023-06-01"
"""The version of the provider's API whose prices are known."""
OAUTH_BETA = "oauth-2025-04-20"
"""Required with a login's token; an agent that believes it has a key leaves it out."""

BETAS: Final[Mapping[str, str]] = {
    "advanced-tool-use-2025-11-20": "tools that are shown later; they are in the request",
    "claude-code-20250219": "names the calling program",
    "context-1m-2025-08-07": "a longer input, which has its price",
    "context-management-2025-06-27": "edits leave something out; compaction is refused by name",
    "effort-2025-11-24": "how much is written, which is counted",
    "extended-cache-ttl-2025-04-11": "the cache for an hour, which has its price",
    "fine-grained-tool-streaming-2025-05-14": "how an answer is split",
    "interleaved-thinking-2025-05-14": "thinking, which is counted as output",
    "mid-conversation-tool-changes-2026-07-01": "tools that come and go; they are in the request",
    "per-turn-control-2026-07-01": "effort by message, which is counted",
    "structured-outputs-2025-12-15": "answers by schema, which is in the request",
    "thinking-display-updates-2026-08-18": "how thinking is shown",
    "thinking-token-count-2026-05-13": "how much of the output was thinking",
}
"""Features, and why their cost is counted."""

_ASKED: Final = frozenset(
    {
        "accept",
        "anthropic-dangerous-direct-browser-access",
        "user-agent",
        "x-app",
        "x-claude-code-agent-id",
        "x-claude-code-parent-agent-id",
        "x-claude-code-session-id",
        "x-stainless-arch",
        "x-stainless-lang",
        "x-stainless-os",
        "x-stainless-package-version",
        "x-stainless-retry-count",
        "x-stainless-runtime",
        "x-stainless-runtime-version",
        "x-stainless-timeout",
    }
)
_ANSWERED: Final = frozenset(
    {"content-type", "request-id", "retry-after", "retry-after-ms", "x-should-retry"}
)
_LENGTHS: Final = frozenset({"content-length", "transfer-encoding"})
"""Two ways to give a body's length, which two readers may resolve differently."""
_LIMITS = "anthropic-ratelimit-"
_BETA = re.compile(r"[A-Za-z0-9._-]{1,100}")


def asked_headers(given: Sequence[tuple[str, str]], secrets: Mapping[str, str]) -> dict[str, str]:
    """The headers to send; the given names are in lower case."""
    named = {name: value for name, value in reversed(given) if name in _ASKED}
    if any(not value.isascii() for value in named.values()):
        raise UnpricedError("a header has a value that is not plain ASCII; take it out")
    if {name for name, _ in given} >= _LENGTHS:
        raise UnpricedError("a body has one length; send no `content-length` with chunks")
    written: list[str] = []
    for name, value in given:
        if name == "content-encoding" and value.strip().lower() != "identity":
            raise UnpricedError("a compressed body is refused; send it without `content-encoding`")
        if name == "anthropic-version" and value.strip() != VERSION:
            raise UnpricedError(f"only `anthropic-version: {VERSION}` has known prices; send that")
        if name == "anthropic-beta":
            written.extend(part.strip() for part in value.split(","))
    betas = [*_priced(written), *filter(None, [secrets.get("anthropic-beta")])]
    return {
        **named,
        **secrets,
        **({"anthropic-beta": ",".join(betas)} if betas else {}),
        "anthropic-version": VERSION,
        "content-type": "application/json",
        "accept-encoding": "identity",
    }


def _priced(betas: Iterable[str]) -> Iterable[str]:
    for beta in dict.fromkeys(filter(None, betas)):
        if not _BETA.fullmatch(beta):
            raise UnpricedError("`anthropic-beta` contains an invalid name; take it out")
        if beta in BETAS:
            yield beta


FINAL: Final[Mapping[str, str]] = {"x-should-retry": "false"}
"""Has the agent's program give up at once; it would repeat a refused key for half a minute."""
_WRONG_KEY, _NOT_FOUND = frozenset({401, 403}), 404
FINAL_STATUSES: Final = frozenset({*_WRONG_KEY, _NOT_FOUND})
"""Answers that a repeat does not change."""


def answered_headers(given: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that are passed back."""
    return {name: given[name] for name in given if name in _ANSWERED or name.startswith(_LIMITS)}


class _Error(Struct, frozen=True):
    type: str = ""


class _Document(Struct, frozen=True):
    error: _Error = _Error()


def read_complaint(status: int, body: bytes) -> Complaint | None:
    """What an error complains of; the path of messages is there, so a 404 is about the model."""
    if status in _WRONG_KEY:
        return Complaint.KEY
    if status != _NOT_FOUND:
        return None
    try:
        kind = msgspec.json.decode(body, type=_Document).error.type
    except msgspec.MsgspecError:
        kind = ""  # another server than the provider's
    return Complaint.MODEL if kind == "not_found_error" else Complaint.PATH


def secret_headers(credentials: Mapping[str, str]) -> dict[str, str]:
    """The credentials as headers, as the program itself would send them."""
    key, bearer = (credentials.get(f"ANTHROPIC_{name}") for name in ("API_KEY", "AUTH_TOKEN"))
    login = None if key or bearer else credentials.get("CLAUDE_CODE_OAUTH_TOKEN")
    if login:
        return {"authorization": f"Bearer {login}", "anthropic-beta": OAUTH_BETA}
    headers = {"x-api-key": key, "authorization": bearer and f"Bearer {bearer}"}
    return {name: value for name, value in headers.items() if value}


REFUSED = frozenset({429, 503, 529})
"""The status codes of a refusal."""
TOO_MANY = 429
_ACCOUNT = f"{_LIMITS}unified-status"
_EXTRA = f"{_LIMITS}unified-overage-reset"
"""When more can be bought beyond the limit; the limit itself ends sooner."""


def read_refusal(
    status: int,
    headers: Mapping[str, str],
    now: datetime,
    counted: Callable[[datetime], datetime] = lambda moment: moment,
) -> Refusal:
    """Parse a refusal; header names are in lower case.

    Of several times the latest counts: until then one limit still refuses. `counted` converts a
    time of the provider's calendar to the clock of `now`.
    """
    moments = [counted(end) for end in _resets(headers)]
    if (after := retry_after(headers.get("retry-after", ""), now, counted)) is not None:
        moments.append(after)
    return Refusal(
        until=max(moments, default=None),
        is_limit=status == TOO_MANY and headers.get(_ACCOUNT) == "rejected",
    )


def _resets(headers: Mapping[str, str]) -> Iterator[datetime]:
    """The ends of the limits that are reached; the others do not matter."""
    for name, value in headers.items():
        if not (name.startswith(_LIMITS) and name.endswith("-reset")) or name == _EXTRA:
            continue
        reached = headers.get(f"{name.removesuffix('reset')}status") == "rejected"
        if reached and (end := read_moment(value)) is not None:
            yield end
