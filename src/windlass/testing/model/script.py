"""What a scripted model says: data only, the same in Python, in a file and over HTTP.

Rule 1: which step answers a request follows from the request alone (how many answers the
conversation already holds), so that a retry meets the step it met before. Only `Flaky` counts.
Rule 2: which script answers follows from the words of the prompt, or from a name in the URL.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct


class Tokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer costs, in the words of the Messages API."""

    input_tokens: int = 100
    output_tokens: int = 20
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class Say(Struct, frozen=True, tag="say", forbid_unknown_fields=True):
    """Text."""

    text: str


class Think(Struct, frozen=True, tag="think", forbid_unknown_fields=True):
    """A thought, signed as the provider signs it."""

    text: str


class Call(Struct, frozen=True, tag="call", forbid_unknown_fields=True):
    """A call of one of the agent's tools."""

    tool: str
    input: dict[str, Any] = {}


Block: TypeAlias = Say | Think | Call


class Answer(Struct, frozen=True, tag="answer", forbid_unknown_fields=True):
    """Several blocks in one answer, or one with a price, a delay or a stop reason of its own."""

    blocks: tuple[Block, ...]
    usage: Tokens = Tokens()
    usage_more: dict[str, Any] = {}
    """What else the answer tells of its usage, as it stands: `speed`, `iterations` and the like."""
    delay: float = 0.0
    """Seconds before the first byte."""
    pace: float = 0.0
    """Seconds between one event of the stream and the next."""
    stop_reason: str | None = None
    """`tool_use` or `end_turn`, as the blocks have it, unless set."""


class Status(Struct, frozen=True, tag="status", forbid_unknown_fields=True):
    """An HTTP error, as the provider words it."""

    code: int
    error: str = "api_error"
    headers: dict[str, str] = {}
    message: str = "scripted"


class Limit(Struct, frozen=True, tag="limit", forbid_unknown_fields=True):
    """The account's usage limit is reached, and is over so many seconds after it was told."""

    seconds: float


class Drop(Struct, frozen=True, tag="drop", forbid_unknown_fields=True):
    """The connection breaks before any byte of an answer."""


class DropMid(Struct, frozen=True, tag="drop_mid", forbid_unknown_fields=True):
    """The connection breaks in the middle of an answer."""

    text: str = "scripted"


class Hang(Struct, frozen=True, tag="hang", forbid_unknown_fields=True):
    """Nothing more ever comes, and the connection stays open."""

    stage: Literal["start", "middle"] = "start"
    """Before any byte, or in the middle of an answer."""
    text: str = "scripted"


class SseError(Struct, frozen=True, tag="sse_error", forbid_unknown_fields=True):
    """An answer that begins well and then says it failed."""

    error: str = "overloaded_error"


Fault: TypeAlias = Status | Limit | Drop | DropMid | Hang | SseError


class Flaky(Struct, frozen=True, tag="flaky", forbid_unknown_fields=True):
    """Each fault once, in order; every request after them gets the answer."""

    faults: tuple[Fault, ...]
    then: Answer


Step: TypeAlias = Say | Call | Answer | Fault | Flaky

END = Say("done")
"""What is said when a script has no more steps."""


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation, answer by answer."""

    steps: tuple[Step, ...] = ()

    def step(self, answers: int) -> Step:
        """What follows when the conversation already holds that many answers."""
        return self.steps[answers] if answers < len(self.steps) else END


class Book(Struct, frozen=True, forbid_unknown_fields=True):
    r"""Which script answers which conversation.

    A key is one or more texts joined by `|`, all of which must occur in the prompt:
    `"Task: 1.1\n"`, or `"Task: 1.1\n|Turn: 2\n"` for its second turn. The key with most texts
    wins, then the longest.
    """

    scripts: dict[str, Script] = {}
    default: Script = Script()

    def named(self, name: str) -> tuple[str, Script]:
        """The script under exactly this key, else the default under no key."""
        return (name, self.scripts[name]) if name in self.scripts else ("", self.default)

    def matching(self, prompt: str) -> tuple[str, Script]:
        """The script whose key fits the prompt best, else the default under no key."""
        fitting = [key for key in self.scripts if all(part in prompt for part in key.split("|"))]
        return self.named(max(fitting, key=lambda key: (key.count("|"), len(key)), default=""))
