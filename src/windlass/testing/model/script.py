"""The answers of a scripted model: plain data, the same in Python, in a file and over HTTP.

Rule 1: the step that answers a request depends only on the request (the number of answers already
in the conversation), so a retry gets the same step. Only `Flaky` counts requests.
Rule 2: the script is chosen by texts in the prompt, or by a name in the URL.
"""

from typing import Any, Literal, TypeAlias

from msgspec import Struct


class Tokens(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The usage of an answer, with the field names of the Messages API."""

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
    """A call to one of the agent's tools."""

    tool: str
    input: dict[str, Any] = {}


Block: TypeAlias = Say | Think | Call


class Answer(Struct, frozen=True, tag="answer", forbid_unknown_fields=True):
    """Several blocks in one answer, or one with its own usage, delay or stop reason."""

    blocks: tuple[Block, ...]
    usage: Tokens = Tokens()
    usage_more: dict[str, Any] = {}
    """More fields of the usage, sent unchanged, such as `speed` and `iterations`."""
    delay: float = 0.0
    """Seconds before the first byte."""
    pace: float = 0.0
    """Seconds between one event of the stream and the next."""
    stop_reason: str | None = None
    """Unless set, `tool_use` or `end_turn`, depending on the blocks."""


class Status(Struct, frozen=True, tag="status", forbid_unknown_fields=True):
    """An HTTP error, in the provider's format."""

    code: int
    error: str = "api_error"
    headers: dict[str, str] = {}
    message: str = "scripted"


class Limit(Struct, frozen=True, tag="limit", forbid_unknown_fields=True):
    """The account's usage limit is reached; it resets this many seconds after the answer."""

    seconds: float


class Drop(Struct, frozen=True, tag="drop", forbid_unknown_fields=True):
    """The connection breaks before the first byte of the answer."""


class DropMid(Struct, frozen=True, tag="drop_mid", forbid_unknown_fields=True):
    """The connection breaks in the middle of the answer."""

    text: str = "scripted"


class Hang(Struct, frozen=True, tag="hang", forbid_unknown_fields=True):
    """The answer stops, and the connection stays open."""

    stage: Literal["start", "middle"] = "start"
    """Before the first byte, or in the middle of the answer."""
    text: str = "scripted"


class SseError(Struct, frozen=True, tag="sse_error", forbid_unknown_fields=True):
    """A stream that starts well and then reports an error."""

    error: str = "overloaded_error"


Fault: TypeAlias = Status | Limit | Drop | DropMid | Hang | SseError


class Flaky(Struct, frozen=True, tag="flaky", forbid_unknown_fields=True):
    """Each fault once, in order; every later request gets the answer."""

    faults: tuple[Fault, ...]
    then: Answer


Step: TypeAlias = Say | Call | Answer | Fault | Flaky

END = Say("done")
"""The answer after the last step of a script."""


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    """One conversation, answer by answer."""

    steps: tuple[Step, ...] = ()

    def step(self, answers: int) -> Step:
        """The next step of a conversation that already has that many answers."""
        return self.steps[answers] if answers < len(self.steps) else END


class Book(Struct, frozen=True, forbid_unknown_fields=True):
    r"""Which script answers which conversation.

    A key is one or more texts joined by `|`, all of which must occur in the prompt:
    `"Task: 1.1\n"`, or `"Task: 1.1\n|Turn: 2\n"` for its second turn. The key with the most texts
    wins, then the longest.
    """

    scripts: dict[str, Script] = {}
    default: Script = Script()

    def named(self, name: str) -> tuple[str, Script]:
        """The script with exactly this key, else the default with an empty key."""
        return (name, self.scripts[name]) if name in self.scripts else ("", self.default)

    def matching(self, prompt: str) -> tuple[str, Script]:
        """The script whose key fits the prompt best, else the default with an empty key."""
        fitting = [key for key in self.scripts if all(part in prompt for part in key.split("|"))]
        return self.named(max(fitting, key=lambda key: (key.count("|"), len(key)), default=""))
