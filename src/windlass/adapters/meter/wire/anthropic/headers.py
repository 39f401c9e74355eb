"""Which headers pass the meter, in either direction, and which features they may ask for. Pure.

Rule 1: a header passes by its name; every other one is left out, so that none can lead a request
elsewhere (`x-original-url`, `x-forwarded-host`), change its method or speak for another client.
Rule 2: a feature (`anthropic-beta`) that has no price here is left out. That is safe, for the
provider then does without it, and any field of the body that needs it is refused already; and an
agent's program that learns a new feature goes on working.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from windlass.adapters.meter.wire import UnpricedError

VERSION = "2023-06-01"
"""Of the provider's interface: the one whose prices are known."""
OAUTH_BETA = "oauth-2025-04-20"
"""What a login's token must be sent with; an agent that believes it has a key leaves it out."""

BETAS: Final[Mapping[str, str]] = {
    "advanced-tool-use-2025-11-20": "tools that are named and shown later; they are in the request",
    "claude-code-20250219": "says which program asks",
    "context-1m-2025-08-07": "a longer input, which has its price",
    "context-management-2025-06-27": "edits leave something out; compaction is refused by its name",
    "effort-2025-11-24": "how much is written, which is counted",
    "extended-cache-ttl-2025-04-11": "the cache for an hour, which has its price",
    "fine-grained-tool-streaming-2025-05-14": "how an answer is cut",
    "interleaved-thinking-2025-05-14": "thinking, which is counted as output",
    "mid-conversation-tool-changes-2026-07-01": "tools that come and go; they are in the request",
    "per-turn-control-2026-07-01": "effort by message, which is counted",
    "structured-outputs-2025-12-15": "answers by schema, which is in the request",
    "thinking-display-updates-2026-08-18": "how thinking is shown",
    "thinking-token-count-2026-05-13": "how much of the output was thinking",
}
"""Features, and why what they cost is counted."""

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
"""Two ways to say how long a body is, which two readers may take in two ways."""
_LIMITS = "anthropic-ratelimit-"
_BETA = re.compile(r"[A-Za-z0-9._-]{1,100}")


def asked_headers(given: Sequence[tuple[str, str]], secrets: Mapping[str, str]) -> dict[str, str]:
    """The headers of a request as it is sent on; what was given has its names in lower case."""
    named = {name: value for name, value in reversed(given) if name in _ASKED}
    if any(not value.isascii() for value in named.values()):
        raise UnpricedError("a header has a value that is not plain ASCII; take it out")
    if {name for name, _ in given} >= _LENGTHS:
        raise UnpricedError("a body has one length; send no `content-length` with pieces")
    written: list[str] = []
    for name, value in given:
        if name == "content-encoding" and value.strip().lower() != "identity":
            raise UnpricedError("a packed body is not read; send it without `content-encoding`")
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
            raise UnpricedError("`anthropic-beta` names something that is no feature; take it out")
        if beta in BETAS:
            yield beta


def answered_headers(given: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer as they are passed back."""
    return {name: given[name] for name in given if name in _ANSWERED or name.startswith(_LIMITS)}


def secret_headers(credentials: Mapping[str, str]) -> dict[str, str]:
    """The credentials as headers: those the program itself would choose."""
    key, bearer = (credentials.get(f"ANTHROPIC_{name}") for name in ("API_KEY", "AUTH_TOKEN"))
    login = None if key or bearer else credentials.get("CLAUDE_CODE_OAUTH_TOKEN")
    if login:
        return {"authorization": f"Bearer {login}", "anthropic-beta": OAUTH_BETA}
    headers = {"x-api-key": key, "authorization": bearer and f"Bearer {bearer}"}
    return {name: value for name, value in headers.items() if value}
