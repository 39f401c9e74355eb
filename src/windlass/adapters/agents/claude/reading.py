"""The meaning of Claude's messages: activity, idleness, and the report. Does no I/O.

Rule 1: failures are classified by structured fields alone (`terminal_reason`, `api_error_status`,
the error's word, the rate limit event), never by prose: an API failure calls itself "success".
Rule 2: idle is an open model request without bytes. The program announces a request with a status
and its stream ends it; a subagent's requests are not announced, so while one runs, as while any
tool does, only the total deadline counts. So it is while the meter holds a request (`Holds`): the
model is asked when it is released, and idle time counts from there.
Rule 3: cost and tokens are the last result's totals, which cover all models and subagents; its
`usage` covers neither.
Rule 4: an answer counts only if the program then ends by itself with success: a command it ran
could have forged the answer and stopped the program before it answered.
Rule 5: the first answer that fits the schema is the answer. Later messages, in the same turn or in
one opened later, change only the cost.
Rule 6: invalid values are rejected and kept texts are bounded: every message may be forged.
"""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import PurePath
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Meta, Struct, field, structs

from windlass.adapters.meter.holds import Holds
from windlass.adapters.meter.rate_limits import read_moment
from windlass.core.events.model import Failure, Usage
from windlass.core.plan.names import escaped_text, without_controls
from windlass.core.settings import AgentSettings
from windlass.ports import Activity, Brief, Report, Watch

ANSWER = "StructuredOutput"
"""The program's tool for an answer by schema."""
LINE = 200
"""Characters of an activity's line."""
COMMAND = 50
"""Characters of a command that are shown."""
WHOLE = 2000
"""Characters kept of a tool's input."""
SAID = 20_000
"""Characters kept of any text in a report."""
LONGEST_ANSWER = 500_000
"""Bytes of an answer by schema; no model writes more at once."""
LINGER = 15.0
"""Seconds the program may take to exit once it has answered."""

Message: TypeAlias = Mapping[str, Any]
"""A JSON object that the program wrote; nothing about it is certain."""

T = TypeVar("T")
_Dollars = Annotated[float, Meta(ge=0, le=1e6)]
_Tokens = Annotated[int, Meta(ge=0, le=10**12)]
_Status = Annotated[int, Meta(ge=0, le=999)]

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
"""Every other status is the provider's failure; so is no status: a broken connection."""

_WORDS = {
    Failure.AUTH: "the provider refused the credentials",
    Failure.BUDGET: "the provider's account has no money left",
    Failure.ENVIRONMENT: "the provider refused the request",
    Failure.TRANSIENT: "the provider did not answer as it should",
    Failure.USAGE_LIMIT: "the provider's usage limit is reached",
}


class Unreadable(Exception):
    """The program wrote something that cannot be read as a message."""


@contextmanager
def understood() -> Generator[None]:
    """Raise every failure in the block as `Unreadable`: the program's output caused it."""
    try:
        yield
    except Exception as error:
        raise Unreadable from error


class ModelUsage(Struct, frozen=True, rename="camel"):
    input_tokens: _Tokens
    output_tokens: _Tokens
    cache_read_input_tokens: _Tokens
    cache_creation_input_tokens: _Tokens


class Result(Struct, frozen=True):
    """A validated result: a negative cost would raise the run's budget."""

    subtype: str
    is_error: bool
    terminal_reason: str | None = None
    api_error_status: _Status | None = None
    result: str | None = None
    structured_output: Any = None
    total_cost_usd: _Dollars | None = None
    model_usage: dict[str, ModelUsage] | None = field(default=None, name="modelUsage")


class Reader:
    """The state of a conversation so far."""

    def __init__(
        self,
        brief: Brief,
        watch: Watch,
        settings: AgentSettings,
        *,
        retries: int,
        redact: Callable[[str], str] = str,
        holds: Holds | None = None,
        logins: tuple[str, ...] = (),
    ) -> None:
        """`logins` are the variables that the program logs in with."""
        self._redact = redact
        self._logins = logins
        self.holds = holds or Holds()
        self.result: Result | None = None
        """The last one: its totals include the earlier ones."""
        self._answered: Result | None = None
        """The first one that was no error and came with an answer."""
        self._answer: Struct | None = None
        self._task = brief.task
        self._schema = brief.answer
        self._watch = watch
        self._settings = settings
        self._retries = retries
        self._last_text = ""
        self._error = ""
        self._retried = 0
        self._limited = False
        self._until: datetime | None = None
        self._shown: list[Activity] = []
        self._end = float("inf")
        self._quiet = float("inf")

    def begin(self, now: float) -> None:
        """Start the total deadline."""
        self._end = now + self._settings.timeout

    @property
    def deadline(self) -> float:
        """When to give up, as of now."""
        return min(self._end, self._idle_end)

    @property
    def _idle_end(self) -> float:
        """When the model has been silent for too long; after the result, when to stop waiting."""
        held = self.holds.any and self.result is None
        return float("inf") if held else self._quiet

    def hold_changed(self, now: float) -> None:
        """Take in that the meter holds a request, or released the last one."""
        if not self.holds.any and self.result is None and self._quiet < float("inf"):
            self._quiet = now + self._settings.idle_timeout

    def read(self, message: Message, now: float) -> None:
        """Take in one message and show its activity; an invalid one raises `Unreadable`."""
        self._shown.clear()
        with understood():
            self._take(message, now)
        # Outside the block: a failing watcher is not the program's fault.
        for activity in self._shown:
            self._watch(activity)

    def _take(self, message: Message, now: float) -> None:
        match message:
            case {"type": "stream_event"} if message.get("parent_tool_use_id") is None:
                self._bytes(message["event"], now)
            case {"type": "system"}:
                self._system(message["subtype"], message, now)
            case {"type": "assistant"}:
                self._assistant(message)
            case {"type": "rate_limit_event", "rate_limit_info": info}:
                if info["status"] == "rejected":
                    until = info.get("resetsAt")
                    self._until = read_moment(until) if until is not None else None
                    self._limited = True
            case {"type": "result"}:
                self._ended(msgspec.convert(message, Result), now)
            case _:
                pass

    def _system(self, subtype: str, data: Message, now: float) -> None:
        if subtype == "status":
            asking = data.get("status") == "requesting"
            self._quiet = now + self._settings.idle_timeout if asking else float("inf")
        elif subtype == "api_retry":
            self._retry(data, now)

    def _ended(self, result: Result, now: float) -> None:
        self.result = result
        self._quiet = now + LINGER
        if self._answered is None and not result.is_error:
            self._answer = self._answer or self._fitting(result.structured_output)
            given = result.structured_output is not None
            self._answered = result if given and self._answer is not None else None

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
        answered = f"{data.get('error')}, HTTP {status}" if status else "connection lost"
        # The meter knows more than the program, which takes any failure of the way for the model's.
        cause = self.holds.unreached or answered
        self._show("retry", f"Retry {self._retried} in {delay:.1f} s ({cause})")

    def _assistant(self, message: Message) -> None:
        if (error := message.get("error")) is not None:
            # The program's words about a failure; the result has the facts.
            self._error = one_line(self._redact(str(error)))
            return
        is_own = message.get("parent_tool_use_id") is None  # and not a subagent's
        for block in message["message"]["content"]:
            match block:
                case {"type": "tool_use", "name": str(name), "input": given}:
                    if name == ANSWER and is_own:
                        self._answer = self._answer or self._fitting(given)
                    # Redacted before the line is cut: half a secret would not be recognised.
                    cleaned = self._cleaned(given)
                    self._show("tool", describe(name, cleaned), whole(name, cleaned))
                case {"type": "text", "text": str(text)}:
                    if is_own:
                        self._last_text = self._kept(text)
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
            # The record keeps what an agent tried, even what the line has no room for.
            kept = "" if whole in line else bounded(self._redact(whole))
            self._shown.append(Activity(task=self._task, kind=kind, text=line, whole=kept))

    @property
    def lateness(self) -> str:
        """Why the deadline is where it is."""
        if self._idle_end < self._end:
            return f"the model sent nothing for {self._settings.idle_timeout:g} seconds"
        return f"the agent was not done after {self._settings.timeout:g} seconds"

    def overdue(self, lateness: str) -> Report:
        """The report of a conversation that was interrupted for that reason."""
        result = self.result
        if result is not None and not (result.terminal_reason or "").startswith("aborted"):
            return self.report(lateness)  # it finished after all
        return Report(failure=Failure.STALLED, message=lateness, usage=self._usage())

    def report(self, ended: str) -> Report:
        """The report; `ended` says how it ended, empty if by itself with success."""
        result, usage = self.result, self._usage()
        if result is None:
            message = f"the agent ended without an answer ({ended or 'no reason given'})"
            return Report(failure=Failure.CRASHED, message=message, usage=usage)
        summary = self._kept(result.result or self._last_text)
        if self._answered is not None:
            summary = self._kept(self._answered.result or summary)
            return Report(summary=summary, answer=None if ended else self._answer, usage=usage)
        if not result.is_error:
            return Report(summary=summary, usage=usage)
        if result.terminal_reason == "structured_output_retry_exhausted":
            return Report(summary=summary, usage=usage)  # it worked, but found no answer that fits
        if result.terminal_reason == "max_turns":
            note = f"[ended by its limit of {self._settings.max_steps} steps]"
            return Report(summary=f"{self._last_text}\n{note}".strip(), usage=usage)
        failure, message = self._judge(result)
        retry_at = self._until if failure is Failure.USAGE_LIMIT else None
        return Report(failure=failure, message=message, usage=usage, retry_at=retry_at)

    def _fitting(self, given: object) -> Struct | None:
        """The answer, if it fits the schema."""
        if self._schema is None:
            return None
        try:
            answer = self._kept(msgspec.convert(given, self._schema))
        except msgspec.ValidationError:
            return None
        return answer if len(msgspec.json.encode(answer)) <= LONGEST_ANSWER else None

    def _kept(self, value: T) -> T:
        """The value with every text in it shortened."""
        kept: object = value
        if isinstance(value, str) and len(value) > SAID:
            # Redact first: half a secret would not be recognised.
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
                named = failure is Failure.AUTH and self._logins
                where = f" in {' and '.join(self._logins)}" if named else ""
                return failure, f"{_WORDS[failure]}{where} ({detail}{word})"
            case reason:
                word = one_line(self._redact(reason or result.subtype))
                return Failure.CRASHED, f"the agent gave up ({word})"

    def _api_failure(self, status: int | None) -> Failure:
        if self._error == "billing_error":
            return Failure.BUDGET
        # A program that gives up before its retries are used was told to wait longer than it may.
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
            # A request that was cut off is charged, but is in no total.
            known=result.terminal_reason != "aborted_streaming",
        )


def describe(tool: str, given: Mapping[str, Any]) -> str:
    """One line that says what a tool is about to do."""
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
    """A tool's input; for a file that is written, its path and not its content."""
    if tool == ANSWER or not given:
        return ""  # the answer is in the journal
    if tool == "Bash":
        return str(given.get("command", ""))
    if tool in _FILES:
        return str(given.get(_FILES[tool][1], ""))
    return json.dumps(given, ensure_ascii=False, default=str)


def bounded(text: str) -> str:
    """The beginning and end of the text, with control characters escaped."""
    return escaped_text(cut(text, WHOLE))


def cut(text: str, longest: int) -> str:
    """The beginning and end of the text, if it is longer."""
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    half = longest // 2
    return f"{text[:half]} […{left_out} characters…] {text[-half:]}"


def one_line(text: str, longest: int = LINE) -> str:
    """Text as a single line without control characters."""
    spaced = " ".join(text[: longest * 20].split())  # some line ends are controls too
    line = " ".join(without_controls(spaced).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
