"""What Claude's messages mean: activity, whether it is idle, and what came of it. Does no I/O.

Rule 1: failures are told from structured fields alone (`terminal_reason`, `api_error_status`, the
error's word, the rate limit event), never from prose: an API failure calls itself "success".
Rule 2: idle is an open model request without bytes. The program announces a request with a status
and its stream ends it; a subagent's requests are announced by nothing, so while one runs, as while
any tool does, only the total deadline counts.
Rule 3: cost and tokens are the last result's totals, which cover all models and subagents; its
`usage` covers neither.
Rule 4: an answer is one only if the program then ends by itself, and well: what it runs could have
put words into its mouth, and silenced it before it spoke.
Rule 5: the first answer that fits the schema is the answer. What a conversation says after it, in
the same turn or in one that was opened later, changes what it costs and nothing else.
Rule 6: what is not as it must be is not taken, and no text that is kept is longer than anyone
reads: every message may be forged.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeSDKError,
    Message,
    RateLimitEvent,
    ResultMessage,
    StreamEvent,
    SystemMessage,
    TextBlock,
    ToolUseBlock,
)
from msgspec import Meta, Struct, structs

from windlass.adapters.meter.rate_limits import read_moment
from windlass.core.events.model import Failure, Usage
from windlass.core.settings import AgentSettings
from windlass.ports import Activity, Brief, Report, Watch

ANSWER = "StructuredOutput"
"""The tool by which the program lets a model answer by schema."""
LINE = 200
"""Characters of an activity's line."""
COMMAND = 50
"""Characters of a command that are shown."""
WHOLE = 2000
"""Characters that are kept of what a tool was given."""
SAID = 20_000
"""Characters that are kept of any text in a report."""
LONGEST_ANSWER = 500_000
"""Bytes of an answer by schema; more than this no model says at once."""
LINGER = 15.0
"""Seconds the program may take to exit once it has answered."""

T = TypeVar("T")
_Dollars = Annotated[float, Meta(ge=0, le=1e6)]
_Tokens = Annotated[int, Meta(ge=0, le=10**12)]
_Status = Annotated[int, Meta(ge=0, le=999)]

_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, and whatever they hide
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)

_FILES = {
    "Read": ("Reading", "file_path"),
    "Write": ("Writing", "file_path"),
    "Edit": ("Editing", "file_path"),
    "MultiEdit": ("Editing", "file_path"),
    "NotebookEdit": ("Editing", "notebook_path"),
}
_SEARCHES = {"Grep": "pattern", "Glob": "pattern", "WebSearch": "query", "ToolSearch": "query"}

_STATUS = {
    400: Failure.ENVIRONMENT,
    401: Failure.AUTH,
    402: Failure.BUDGET,
    403: Failure.AUTH,
    404: Failure.ENVIRONMENT,
    413: Failure.ENVIRONMENT,
    422: Failure.ENVIRONMENT,
    429: Failure.TRANSIENT,
}
"""Every other status is the provider's trouble, and so is none at all: a broken connection."""

_WORDS = {
    Failure.AUTH: "the provider refused the credentials",
    Failure.BUDGET: "the provider's account has no money left",
    Failure.ENVIRONMENT: "the provider refused the request",
    Failure.TRANSIENT: "the provider did not answer as it should",
    Failure.USAGE_LIMIT: "the provider's usage limit is reached",
}


@contextmanager
def understood() -> Generator[None]:
    """Whatever goes wrong in here is the fault of what the program said."""
    try:
        yield
    except ClaudeSDKError:
        raise
    except Exception as error:
        raise ClaudeSDKError(type(error).__name__) from error


class ModelUsage(Struct, frozen=True, rename="camel"):
    """What one model used up."""

    input_tokens: _Tokens
    output_tokens: _Tokens
    cache_read_input_tokens: _Tokens
    cache_creation_input_tokens: _Tokens


class Result(Struct, frozen=True):
    """A result, each field as it must be: a cost below nothing would lift the run's budget."""

    subtype: str
    is_error: bool
    terminal_reason: str | None
    api_error_status: _Status | None
    result: str | None
    structured_output: Any
    total_cost_usd: _Dollars | None
    model_usage: dict[str, ModelUsage] | None


class Reader:
    """Everything a conversation has said so far."""

    def __init__(
        self,
        brief: Brief,
        watch: Watch,
        settings: AgentSettings,
        *,
        retries: int,
        redact: Callable[[str], str] = str,
    ) -> None:
        self._redact = redact
        self.result: Result | None = None
        """The last one: its totals cover all that came before."""
        self._answered: Result | None = None
        """The first one that was no error and came with an answer."""
        self._answer: Struct | None = None
        self._task = brief.task
        self._schema = brief.answer
        self._watch = watch
        self._settings = settings
        self._retries = retries
        self._said = ""
        self._error = ""
        self._retried = 0
        self._limited = False
        self._until: datetime | None = None
        self._shown: list[Activity] = []
        self._end = float("inf")
        self._quiet = float("inf")

    def begin(self, now: float) -> None:
        """Start the total time."""
        self._end = now + self._settings.timeout

    @property
    def deadline(self) -> float:
        """When to give up, as things stand."""
        return min(self._end, self._quiet)

    def read(self, message: Message, now: float) -> None:
        """Take in one message and tell what it shows; one that makes no sense is an SDK error."""
        self._shown.clear()
        with understood():
            self._take(message, now)
        # Not in there: if telling fails, that is no fault of the program's.
        for activity in self._shown:
            self._watch(activity)

    def _take(self, message: Message, now: float) -> None:
        match message:
            case StreamEvent(parent_tool_use_id=None, event=event):
                self._bytes(event, now)
            case SystemMessage(subtype="status", data=data):
                asking = data.get("status") == "requesting"
                self._quiet = now + self._settings.idle_timeout if asking else float("inf")
            case SystemMessage(subtype="api_retry", data=data):
                self._retry(data, now)
            case AssistantMessage():
                self._assistant(message)
            case RateLimitEvent() if message.rate_limit_info.status == "rejected":
                until = message.rate_limit_info.resets_at
                self._until = read_moment(until) if until is not None else None
                self._limited = True
            case ResultMessage():
                self.result = msgspec.convert(message, Result, from_attributes=True)
                self._quiet = now + LINGER
                if self._answered is None and not self.result.is_error:
                    self._answer = self._answer or self._fitting(self.result.structured_output)
                    given = self.result.structured_output is not None
                    self._answered = self.result if given and self._answer is not None else None
            case _:
                pass

    def _bytes(self, event: Mapping[str, Any], now: float) -> None:
        over = event.get("type") == "message_stop"
        self._quiet = float("inf") if over else now + self._settings.idle_timeout
        if over:
            self._retried = 0

    def _retry(self, data: Mapping[str, Any], now: float) -> None:
        delay = _number(data.get("retry_delay_ms")) / 1000
        self._retried = int(_number(data.get("attempt")))
        self._quiet = now + delay + self._settings.idle_timeout
        status = data.get("error_status")
        cause = f"{data.get('error')}, HTTP {status}" if status else "connection lost"
        self._show("retry", f"Retry {self._retried} in {delay:.1f} s ({cause})")

    def _assistant(self, message: AssistantMessage) -> None:
        if message.error is not None:
            # The program's own words about a failure: what matters of them is in the result.
            self._error = one_line(self._redact(str(message.error)))
            return
        for block in message.content:
            match block:
                case ToolUseBlock(name=str(name), input=given):
                    if name == ANSWER and message.parent_tool_use_id is None:
                        self._answer = self._answer or self._fitting(given)
                    # Taken out before the line is cut: half a secret could not be told any more.
                    cleaned = self._cleaned(given)
                    self._show("tool", describe(name, cleaned), whole(name, cleaned))
                case TextBlock(text=str(text)):
                    if message.parent_tool_use_id is None:
                        self._said = self._kept(text)
                    self._show("text", text)
                case _:
                    pass

    def _cleaned(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: self._redact(value) if isinstance(value, str) else value
            for name, value in given.items()
        }

    def _show(self, kind: Literal["tool", "text", "retry"], text: str, whole: str = "") -> None:
        if line := one_line(self._redact(text)):
            # What an agent tried is on record, whatever came of it: also what no line has room for.
            kept = "" if whole in line else bounded(self._redact(whole))
            self._shown.append(Activity(task=self._task, kind=kind, text=line, whole=kept))

    @property
    def lateness(self) -> str:
        """Why the deadline is where it is."""
        if self._quiet < self._end:
            return f"the model sent nothing for {self._settings.idle_timeout:g} seconds"
        return f"the agent was not done after {self._settings.timeout:g} seconds"

    def overdue(self, lateness: str) -> Report:
        """What came of a conversation that was interrupted for that reason."""
        result = self.result
        if result is not None and not (result.terminal_reason or "").startswith("aborted"):
            return self.report(lateness)  # it was done after all
        return Report(failure=Failure.STALLED, message=lateness, usage=self._usage())

    def report(self, ended: str) -> Report:
        """What came of a conversation; `ended` says how, unless it ended by itself and well."""
        result, usage = self.result, self._usage()
        if result is None:
            message = f"the agent ended without an answer ({ended or 'no word why'})"
            return Report(failure=Failure.CRASHED, message=message, usage=usage)
        said = self._kept(result.result or self._said)
        if self._answered is not None:
            said = self._kept(self._answered.result or said)
            return Report(summary=said, answer=None if ended else self._answer, usage=usage)
        if not result.is_error:
            return Report(summary=said, usage=usage)
        if result.terminal_reason == "structured_output_retry_exhausted":
            return Report(summary=said, usage=usage)  # it worked, and found no words that fit
        if result.terminal_reason == "max_turns":
            note = f"[ended by its limit of {self._settings.max_steps} steps]"
            return Report(summary=f"{self._said}\n{note}".strip(), usage=usage)
        failure, message = self._judge(result)
        retry_at = self._until if failure is Failure.USAGE_LIMIT else None
        return Report(failure=failure, message=message, usage=usage, retry_at=retry_at)

    def _fitting(self, said: object) -> Struct | None:
        """What was said, by the schema; None where it does not fit."""
        if self._schema is None:
            return None
        try:
            answer = self._kept(msgspec.convert(said, self._schema))
        except msgspec.ValidationError:
            return None
        return answer if len(msgspec.json.encode(answer)) <= LONGEST_ANSWER else None

    def _kept(self, value: T) -> T:
        """The same, with every text in it cut to a length."""
        kept: object = value
        if isinstance(value, str) and len(value) > SAID:
            # Secrets go first: half of one could not be told any more.
            kept = cut(self._redact(value), SAID)
        elif isinstance(value, tuple):
            kept = tuple(map(self._kept, cast("tuple[object, ...]", value)))
        elif isinstance(value, Struct):
            fields = structs.asdict(value)
            kept = structs.replace(value, **{name: self._kept(fields[name]) for name in fields})
        return cast("T", kept)

    def _judge(self, result: Result) -> tuple[Failure, str]:
        match result.terminal_reason:
            case "budget_exhausted":
                return Failure.BUDGET, "the agent used up its budget"
            case "prompt_too_long":
                return Failure.ENVIRONMENT, "the prompt is too long for the model"
            case "api_error":
                failure = self._api_failure(result.api_error_status)
                status = result.api_error_status
                detail = f"HTTP {status}" if status else "connection lost"
                word = f", {self._error}" if self._error else ""
                return failure, f"{_WORDS[failure]} ({detail}{word})"
            case reason:
                word = one_line(self._redact(reason or result.subtype))
                return Failure.CRASHED, f"the agent gave up ({word})"

    def _api_failure(self, status: int | None) -> Failure:
        if self._error == "billing_error":
            return Failure.BUDGET
        # One that gives up before its retries are used was told to wait longer than it may.
        limited = self._limited or self._retried < self._retries
        if status == 429 and limited:  # noqa: PLR2004
            return Failure.USAGE_LIMIT
        return _STATUS.get(status or 0, Failure.TRANSIENT)

    def _usage(self) -> Usage:
        result = self.result
        if result is None:
            return Usage(known=False)
        models = (result.model_usage or {}).values()
        return Usage(
            cost_usd=result.total_cost_usd or 0.0,
            input_tokens=sum(model.input_tokens for model in models),
            output_tokens=sum(model.output_tokens for model in models),
            cache_read_tokens=sum(model.cache_read_input_tokens for model in models),
            cache_write_tokens=sum(model.cache_creation_input_tokens for model in models),
            # A request that was cut off is charged, and in no total.
            known=result.terminal_reason != "aborted_streaming",
        )


def describe(tool: str, given: Mapping[str, Any]) -> str:
    """Say in one line what a tool is about to do."""
    if tool in _FILES:
        verb, field = _FILES[tool]
        return f"{verb} {PurePath(str(given.get(field, ''))).name}"
    if tool in _SEARCHES:
        return f"Searching {given.get(_SEARCHES[tool], '')}"
    if tool == ANSWER:
        return "Answering"
    if tool == "Bash":
        return f"Running: {one_line(str(given.get('command', '')), COMMAND)}"
    return tool


def whole(tool: str, given: Mapping[str, Any]) -> str:
    """What a tool was given, as it was; of a file that is written, where, and not what."""
    if tool == ANSWER or not given:
        return ""  # an answer is in the journal
    if tool == "Bash":
        return str(given.get("command", ""))
    if tool in _FILES:
        return str(given.get(_FILES[tool][1], ""))
    return json.dumps(given, ensure_ascii=False, default=str)


def bounded(text: str) -> str:
    """Its beginning and its end, with nothing in it that a terminal would obey."""
    return "".join(map(_visible, cut(text, WHOLE)))


def cut(text: str, longest: int) -> str:
    """Its beginning and its end, where there is more."""
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    half = longest // 2
    return f"{text[:half]} […{left_out} characters…] {text[-half:]}"


def _visible(char: str) -> str:
    if char in "\n\t" or _is_shown(char):
        return char
    return char.encode("unicode_escape").decode()


def one_line(text: str, longest: int = LINE) -> str:
    """Text as a single line that no terminal can stumble over."""
    plain = _ESCAPE.sub("", text[: longest * 20])
    kept = "".join(" " if char.isspace() else char for char in plain if _is_shown(char))
    line = " ".join(kept.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _is_shown(char: str) -> bool:
    # Controls, and the invisible ones that reorder or hide what stands beside them.
    return char.isspace() or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn"}


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
