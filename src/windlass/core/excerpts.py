"""The part of a command's output that matters: where a test runner says what failed, else the end.

Law: a section is recognised by its structure, as each runner prints it, never by the words of an
agent. Colours, overwritten progress and lines about tests that pass are left out; what does not fit
is counted. People, Players, Coaches and reports are shown the same excerpt.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from windlass.core.plan.names import without_terminal_codes

READ = 250_000
"""Characters of output in which a section is looked for: the last ones. The log has all of it."""

KEPT = 4_000
"""Characters of an excerpt."""

_LONGEST_LINE = 600
"""Characters of one line."""

_REACH = 200
"""Lines that are looked at before a failure for what the test printed."""


class _Section(Struct, frozen=True, kw_only=True, eq=False):
    """How a section begins that says what failed."""

    begins: re.Pattern[str]
    under: re.Pattern[str] | None = None
    """What the line before must be; the section begins there."""
    reaches: re.Pattern[str] | None = None
    """The line at which the output of the failed test begins, if it comes first."""


def _section(begins: str, *, under: str = "", reaches: str = "") -> _Section:
    return _Section(
        begins=re.compile(begins),
        under=re.compile(under) if under else None,
        reaches=re.compile(reaches) if reaches else None,
    )


_TESTS = (
    _section(r"={3,} (?:FAILURES|ERRORS) ={3,}$"),  # pytest
    _section(r"={3,} short test summary info ={3,}$"),
    _section(r"INTERNALERROR> "),
    _section(r"(?:FAIL|ERROR): \S", under=r"={20,}$"),  # unittest, nose2, Django
    _section(r"\s+● .*\S"),  # jest
    _section(r"Summary of all failing tests$"),
    _section(r"\s*⎯+ ?(?:Failed (?:Tests|Suites) \d+|Unhandled Errors?) ?⎯+"),  # vitest
    _section(r"\s+\d+ failing$"),  # mocha
    _section(r"✖ failing tests:$"),  # node --test
    _section(r"\s*not ok\b(?!.*# ?(?:TODO|SKIP)\b)"),  # TAP
    _section(r"\s*#\s+Failed test\b"),  # Perl
    _section(r"\s*[✘✖\u00d7] \[fail\]: "),  # ava
    _section(r"\s+\d+\) (?:\[[^\]]+\] )?\u203a .+\.\w+:\d+:\d+ \u203a"),  # playwright
    _section(r"failures:$"),  # cargo test
    _section(r"\s+(?:FAIL|SIGABRT|SIGSEGV|TIMEOUT) \[ *[\d.]+s\] "),  # nextest
    _section(r"\s*--- FAIL: ", reaches=r"=== RUN\s"),  # go test
    _section(r"panic: .*|fatal error: all goroutines are asleep"),
    _section(r"Failures:$"),  # rspec
    _section(r"\s*(?:\d+\) )?(?:Failure|Error):$"),  # minitest
    _section(r"There (?:was|were) \d+ (?:failure|error|risky|warning)s?:$"),  # phpunit
    _section(r"\s+FAILED\s+\S+ > .*"),  # pest
    _section(r".+ > .+ FAILED$"),  # gradle
    _section(r"\[ERROR\] (?:Failures|Errors):\s*$|\[ERROR\] Tests run:|.+<<< (?:FAILURE|ERROR)!"),
    _section(r"\s+Failed \S.* \[\d.*\]$"),  # dotnet
    _section(r"The following tests FAILED:$"),  # ctest
    _section(r"\S+:\d+: (?:Failure|FAILED:)$"),  # GoogleTest, Catch2
    _section(r"\s+\d+\) test .+ \(\S+\)$"),  # mix
    _section(r"\s*ERRORS\s*$|\s*Failing scenarios:$"),  # deno; behave, cucumber
    _section(r".+\.{3,}Failed$"),  # pre-commit
)
"""How test runners begin what they say of failures."""

_DIAGNOSTICS = (
    _section(r"[^\s:][^:]*:\d+(?::\d+)?:? (?:fatal )?error(?: \w+)?:"),  # gcc, mypy, javac
    _section(r"[^\s:][^:]*:\d+:(?:\d+:)? [A-Z]{1,5}\d{2,5}\b"),  # ruff, flake8, pylint
    _section(r"[^\s:][^:]*\(\d+,\d+\): error "),  # tsc
    _section(r"[^\s:][^:]*:\d+:\d+ - error "),
    _section(r"\S+\.go:\d+:\d+: "),
    _section(r"\s+\d+:\d+\s+error\s+\S", under=r"\S"),  # eslint
    _section(r"\s+--> \S+:\d+:\d+$", under=r"error\b|[A-Z]{1,5}\d{2,5} "),  # rustc, ruff
    _section(r"error(?:\[\w+\])?: (?!test failed)|e: file://"),  # rustc, bun; kotlin
    _section(r"\[ERROR\] COMPILATION ERROR|FAILURE: Build failed with an exception"),
)
"""How compilers and linters name a place."""

_TRACES = (
    _section(r"Traceback \(most recent call last\):$"),
    _section(r"\s+at .+:\d+:\d+\)?$", under=r"(?:Uncaught )?[\w.]*(?:Error|Exception)\b"),
    _section(r"Exception in thread "),
    _section(r"thread '.*' (?:\(\d+\) )?panicked at "),
    _section(r"(?:PHP )?Fatal error: "),
    _section(r"\S+:\d+:in .+\(\w*(?:Error|Exception)\)$"),  # ruby
)
"""How a program ends that nothing caught."""

_CHAINED = re.compile(
    r"During handling of the above exception|The above exception was the direct cause"
)
_GO_TEST_ENDS = re.compile(r"\s*--- (?:PASS|FAIL|SKIP): |(?:ok|FAIL|\?) *\t")
_MADE = re.compile(r"(?:\w*make|ninja)(?:\[\d+\])?: \*\*\* |ninja: build stopped")
"""A failed rule; other rules may go on printing after it."""

_DIGEST = re.compile(r"=* ?short test summary info ?=*$")
"""A line after which each failure has one line."""

_PASSING = re.compile(
    r"\s*(?:ok \d+\b.*|=== (?:RUN|PAUSE|CONT|NAME)\b.*|--- (?:PASS|SKIP): .*|ok  ?\t.*"
    r"|\?  ? ?\t.*\[no test files\]|test .+ \.\.\. (?:ok|ignored)|[✓✔√] .*|PASS +\S.*"
    r"|\S+::\S+ PASSED.*|\S+ \(.+\) \.\.\. ok|\[INFO\].*|\[ +(?:OK|RUN) +\] .*)$"
)
"""Lines about tests that pass, between the others."""

_WRAPPERS = re.compile(
    r"npm (?:ERR!|error|warn|WARN)(?: .*)?$|\w*make(?:\[\d+\])?: (?:\*\*\* .*|Leaving directory .*)"
    r"|error Command failed with exit code \d+\.$|info Visit https://yarnpkg.*|\s*ELIFECYCLE\s.*"
    r"|error: script .+ exited with code \d+$|Sorry, .* failed\.$"
)
"""What the program that started the runner adds at the end."""

_PROGRESS = re.compile(
    r"\s*(?:\S+\.\w+ )?(?=\S*[.\u2024·])[.\u2024·,!*FEsSxXu-]+(?:\s*\[\s*\d+%\])?\s*$"
    r"|.*\[[=#>. -]{4,}\].*|\s*\d{1,3}%[|█-▏ ].*|\s*[⠀-⣿] .*|\s*[█▉▊▋▌▍▎▏░▒▓]{3,}.*"
)
"""Dots and bars: that something goes on, not what went wrong."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def excerpt(output: str, most: int = KEPT, *, failed: bool = True) -> str:
    """The part of the output that matters, in at most so many characters.

    Where the command did not fail, that is the end.
    """
    lines = _lines(output)
    begin = _begin(lines) if failed else None
    if begin is None:
        return _tail(_until_failed_rule(lines) if failed else lines, most)
    return _bounded(_without_noise(lines[begin:]), most)


def indented(text: str) -> str:
    """An excerpt as a block below the sentence that it is about."""
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


class Gist(Struct, frozen=True):
    """A few lines of an excerpt."""

    lines: tuple[str, ...]
    left: int
    """How many lines are left out."""


def gist(text: str, most: int) -> Gist:
    """The lines of an excerpt that say most: the digest of failures, its begin, or its end."""
    lines = [bare for line in _lines(text) if (bare := _without_rules(line))]
    if len(lines) <= most + 1:  # one more takes no more room than saying that there is one
        return Gist(tuple(lines), 0)
    digests = [at for at, line in enumerate(lines) if _DIGEST.match(line)]
    begins = _begin(_lines(text)) is not None
    first = digests[-1] + 1 if digests else 0 if begins else len(lines) - most
    shown = lines[first : first + most]
    return Gist(tuple(shown), len(lines) - len(shown))


def _lines(output: str) -> list[str]:
    """The lines as a terminal shows them at the end."""
    lines: list[str] = []
    for line in without_terminal_codes(output.replace("\r\n", "\n")).split("\n"):
        # Progress returns to the first column and is written over; the last text stays.
        shown = next((part for part in reversed(line.split("\r")) if part.strip()), "")
        text = _CONTROL.sub("", shown).rstrip()
        lines += _said(text) if text.startswith('{"') else [text]
    return [_cut(line) for line in lines]


def _cut(line: str) -> str:
    """The line without the end of code that was packed into one line."""
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


def _said(line: str) -> list[str]:
    """The text inside a line of `go test -json`; any other line as it is."""
    try:
        event: Any = json.loads(line)
    except (ValueError, RecursionError):
        return [line]
    if not isinstance(event, dict) or "Action" not in event:
        return [line]
    text: Any = event.get("Output")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return text.rstrip("\n").split("\n") if isinstance(text, str) else []


def _begin(lines: Sequence[str]) -> int | None:
    """Where the section begins that says what failed."""
    if (at := _first(lines, _TESTS)) is not None:
        return at
    if (at := _first(lines, _DIAGNOSTICS)) is not None:
        return at
    return _last_trace(lines)


def _first(lines: Sequence[str], sections: Sequence[_Section]) -> int | None:
    for at, line in enumerate(lines):
        for section in sections:
            if (begin := _begin_at(lines, at, line, section)) is not None:
                return begin
    return None


def _begin_at(lines: Sequence[str], at: int, line: str, section: _Section) -> int | None:
    """Where the section begins if this line belongs to one."""
    if section.begins.match(line) is None:
        return None
    if section.under is not None:
        return at - 1 if at and section.under.match(lines[at - 1]) else None
    if section.reaches is not None:
        for before in range(at - 1, max(-1, at - _REACH), -1):
            if section.reaches.match(lines[before]):
                return before
            if _GO_TEST_ENDS.match(lines[before]):
                break
    return at


def _last_trace(lines: Sequence[str]) -> int | None:
    """The last uncaught failure, with those that led to it: programs log others and go on."""
    found = [at for at in range(len(lines)) if _first(lines[at : at + 2], _TRACES) == 0]
    for index in range(len(found) - 1, -1, -1):
        before = found[index - 1] if index else 0
        if not any(map(_CHAINED.match, lines[before : found[index]])):
            return found[index]
    return None


def _without_noise(lines: Sequence[str]) -> list[str]:
    """The section without tests that pass, and without what a wrapper adds at its end."""
    kept = [line for line in lines if not _PASSING.match(line) and not _PROGRESS.match(line)]
    while kept and (not kept[-1] or _WRAPPERS.match(kept[-1])):
        kept.pop()
    return kept


def _until_failed_rule(lines: list[str]) -> list[str]:
    """The lines up to the first rule of a makefile that failed."""
    failed = next((at for at, line in enumerate(lines) if _MADE.match(line)), None)
    return lines if failed is None else lines[: failed + 1]


def _tail(lines: Sequence[str], most: int) -> str:
    """The last lines that fit, without progress, unless there is nothing else."""
    telling = [line for line in lines if not _PROGRESS.match(line)]
    if not any(telling):
        telling = [line for line in lines if line][-1:]
    return "\n".join(reversed(_fitting(reversed(_compact(telling)), most))).strip("\n")


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    """As many of the first lines as fit."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < -1:
            return kept
        kept.append(line)
    return kept


def _bounded(lines: Sequence[str], most: int) -> str:
    """The lines; if they do not fit, the first and the last of them."""
    kept = _compact(lines)
    text = "\n".join(kept)
    if len(text) <= most:
        return text
    end = _tail(kept, most // 3).split("\n")
    head = _fitting(kept, most - len("\n".join((_left_out(len(kept)), *end))) - 1)
    return "\n".join((*head, _left_out(len(kept) - len(head) - len(end)), *end))


def _left_out(count: int) -> str:
    return f"… {count} lines left out …"


def _compact(lines: Sequence[str]) -> list[str]:
    """The lines with at most one empty line in a row, and none at both ends."""
    kept: list[str] = []
    for line in lines:
        if line or (kept and kept[-1]):
            kept.append(line)
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _without_rules(line: str) -> str:
    """The line without the rules that runners draw around a heading; empty if nothing is left."""
    bare = re.sub(r"(?:[=_─⎯]{3,}|-{4,})", "", line).rstrip()
    drawn = bare != line.rstrip()
    return (bare.strip() if drawn else bare) if any(map(str.isalnum, bare)) else ""
