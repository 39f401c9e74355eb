"""The summaries that test runners print, and how many tests each says it ran.

Windlass reads the output line by line, no matter what started the runner: `make`, `npm`, a script.
A tree can print any summary. So a number read here only makes the gate stricter: a zero is never
hidden by a larger number, because each summary is kept by itself.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from windlass.adapters.checks.test_output import TRIED, Shape
from windlass.core.events.values import Suite
from windlass.core.plan.names import without_terminal_codes

MOST_BYTES = 16_000_000
"""Bytes of output that are read line by line; after that, only the end is read."""

MOST_SUITES = 300
"""Summaries listed one by one in a result; the others are summed up."""

_LONGEST_LINE = 4_000
"""Characters of a line of JSON; a longer one is ignored."""

_LONGEST_SUMMARY = 400
"""Characters of any other line; no runner's summary is longer."""

_LONGEST_NAME = 120
_PREFIX = re.compile(r"^(?:(\S+(?: test\S*)?:|\[\S+\]|\S+ +\|) +)(?=\S)")
"""The prefix that a runner of many packages adds: `web:test: `, `[web] `, `web-1  | `."""
_NAME = re.compile(r"[@A-Za-z][\w@./: -]*")
"""A prefix that names a package, and is not a time."""


class _Found(Struct, kw_only=True):
    """One summary, as read so far."""

    shape: Shape
    name: str
    tests: int
    skipped: int
    failed: int = 0
    """Failed tests that a separate line adds."""


class Tally:
    """Counts the tests in output as it arrives."""

    def __init__(self) -> None:
        self._found: list[_Found] = []
        self._heading: dict[str, str] = {}
        self._go = _Go()
        self._tap = _Tap()
        self._rest = b""
        self._left = MOST_BYTES

    def feed(self, chunk: bytes) -> None:
        if self._left <= 0:
            return
        self._left -= len(chunk)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._read(line)
        self._rest = self._rest[-_LONGEST_LINE:]

    def suites(self, end: str = "", *, green: bool = False) -> tuple[Suite, ...]:
        """Each summary with its numbers; `end` is the end of the output, for a long one.

        If the command passed (`green`), lines that add failed tests cannot be true and are ignored.
        """
        self._read(self._rest)
        self._rest = b""
        if self._left <= 0:
            for line in end.encode(errors="replace").split(b"\n")[1:]:
                self._read(line)
        kinds = {found.shape.kind for found in self._found}
        kept = [found for found in self._found if kinds.isdisjoint(found.shape.yields_to)]
        read = [_suite(found, green=green) for found in kept]
        whole = [suite for suite in read if not suite.part]
        parts = [suite for suite in read if suite.part]
        tap = self._tap.suites() if kinds.isdisjoint(_TAP_TOLD_BY) else ()
        return _bounded(_without_empty_parts([*whole, *tap], [*parts, *self._go.suites()]))

    def _read(self, line: bytes) -> None:
        if len(line) > _LONGEST_SUMMARY and not line.startswith(b'{"'):
            return
        for piece in line.split(b"\r"):
            text = piece.decode(errors="replace").rstrip()
            text = without_terminal_codes(text).rstrip()
            if not text or self._go.read(text) or self._tap.read(text):
                continue
            shapes = [shape for word, shape in TRIED if word in text]
            prefix = None if not shapes or self._matched(shapes, text, "") else _PREFIX.match(text)
            if prefix is not None:
                name = prefix[1].rstrip(":| ").strip("[]")
                name = name if _NAME.fullmatch(name) else ""
                self._matched(shapes, text[prefix.end() :], name)

    def _matched(self, shapes: list[Shape], text: str, prefix: str) -> bool:
        """Whether the line is part of a runner's summary."""
        for shape in shapes:
            if shape.heads is not None and (head := shape.heads.match(text)):
                self._heading[shape.kind] = " ".join(filter(None, head.groups()))
                return True
            if opened := shape.opens.match(text):
                self._open(shape, opened, prefix)
                return True
            if self._amended(shape, text):
                return True
        return False

    def _open(self, shape: Shape, opened: re.Match[str], prefix: str) -> None:
        tests, skipped = shape.numbers(opened)
        heading = self._heading.pop(shape.kind, "")
        if shape.wants_heading and not heading:
            return
        part = opened.groupdict().get("name") or ""
        name = " ".join(filter(None, (shape.kind, prefix, heading, part)))[:_LONGEST_NAME]
        self._found.append(_Found(shape=shape, name=name, tests=tests, skipped=skipped))

    def _amended(self, shape: Shape, text: str) -> bool:
        """Whether the line continues the last summary of this shape."""
        last = self._found[-1] if self._found else None
        if last is None or last.shape is not shape:
            return False
        if shape.adds is not None and (more := shape.adds.match(text)):
            last.failed += _number(more)
            return True
        if shape.takes is not None and (less := shape.takes.match(text)):
            last.tests -= _number(less)
            last.skipped += _number(less)
            return True
        return False


def _number(match: re.Match[str]) -> int:
    return sum(int(group) for group in match.groups() if group) if match.groups() else 1


def _suite(found: _Found, *, green: bool) -> Suite:
    tests = max(found.tests, 0) + (0 if green else found.failed)
    part = found.shape.part
    return Suite(name=found.name, tests=tests, skipped=found.skipped, part=part)


def _without_empty_parts(whole: list[Suite], parts: list[Suite]) -> list[Suite]:
    """Drop named parts without tests, if other parts of the same runner have some.

    A package without tests is usual. One that is listed both with and without tests is not.
    """
    kinds = {_kind(suite) for suite in (*whole, *parts) if suite.tests}
    filled = {part.name for part in parts if part.tests}
    usual = {
        part.name
        for part in parts
        if part.name != _kind(part) and part.name not in filled and _kind(part) in kinds
    }
    kept = [part for part in parts if part.tests or part.name not in usual]
    empty = {_kind(part): part for part in kept if not part.tests and _kind(part) not in kinds}
    rest = [part for part in kept if part.tests or _kind(part) in kinds]
    return [*whole, *rest, *empty.values()]


def _kind(suite: Suite) -> str:
    return suite.name.partition(" ")[0]


def _bounded(suites: list[Suite]) -> tuple[Suite, ...]:
    if len(suites) <= MOST_SUITES:
        return tuple(suites)
    ordered = sorted(suites, key=lambda suite: (suite.tests > 0, suite.name))
    rest = ordered[MOST_SUITES - 1 :]
    tests = sum(suite.tests for suite in rest)
    skipped = sum(suite.skipped for suite in rest)
    more = Suite(name=f"{len(rest)} more", tests=tests, skipped=skipped)
    return (*ordered[: MOST_SUITES - 1], more)


_GO_PACKAGE = re.compile(r"^(ok  |FAIL|\?   )\t(\S+)\t(.*)$")
_GO_NO_FILES = re.compile(r"^\t(\S+)\t\tcoverage: 0\.0% of statements$")
_GO_TEST = re.compile(r"^\s*--- (PASS|FAIL|SKIP): ")
_GO_RUN = re.compile(r"^=== RUN\s")
_GO_BEGINS = frozenset("{=- \to?F")
_GO_ENDS = frozenset({"pass", "fail", "skip"})


class _Go:
    """`go test`: each package is a part; single tests are listed only with -v or -json.

    Without -v a package only says that it passed: it counts as one.
    """

    def __init__(self) -> None:
        self._packages: dict[str, tuple[int, int]] = {}
        self._ran = self._skipped = 0
        self._verbose = False

    def read(self, text: str) -> bool:
        if text[0] not in _GO_BEGINS:
            return False
        if text.startswith('{"'):
            return self._event(text)
        if test := _GO_TEST.match(text):
            self._verbose = True
            self._count(test[1] == "SKIP")
            return True
        if _GO_RUN.match(text):
            self._verbose = True
            return True
        if package := _GO_PACKAGE.match(text):
            empty = package[1] == "?   " or "[no tests to run]" in package[3]
            ran = self._ran if self._verbose else int(not empty)
            self._end(package[2], 0 if empty else ran, self._skipped)
            return True
        if package := _GO_NO_FILES.match(text):
            self._end(package[1], 0, 0)
            return True
        return False

    def _count(self, skipped: bool) -> None:  # noqa: FBT001  the line's own value
        self._skipped += skipped
        self._ran += not skipped

    def _end(self, name: str, ran: int, skipped: int) -> None:
        before = self._packages.get(name)
        # If a package is listed twice, by mistake or by a forger, the smaller number counts.
        self._packages[name] = (ran, skipped) if before is None else min(before, (ran, skipped))
        self._ran = self._skipped = 0
        self._verbose = False

    def _event(self, text: str) -> bool:
        try:
            event: Any = json.loads(text)
        except ValueError:
            return False
        if not isinstance(event.get("Package"), str) or not isinstance(event.get("Action"), str):
            return False
        action, name = event["Action"], event["Package"]
        if action not in _GO_ENDS:
            return True
        ran, skipped = self._packages.get(name, (0, 0))
        if "Test" in event:
            more = (ran, skipped + 1) if action == "skip" else (ran + 1, skipped)
            self._packages[name] = more
        else:
            self._packages.setdefault(name, (0, 0))
        return True

    def suites(self) -> Iterator[Suite]:
        """One per package; tests without a package are one more."""
        if self._ran or self._skipped:
            yield Suite(name="go", tests=self._ran, skipped=self._skipped, part=True)
        for package, (ran, skipped) in self._packages.items():
            name = f"go {package}"[:_LONGEST_NAME]
            yield Suite(name=name, tests=ran, skipped=skipped, part=True)


_TAP_PLAN = re.compile(r"1\.\.(\d+)(?:\s*#.*)?$|TAP version \d+$")
_TAP_TEST = re.compile(r"(?:not )?ok(?: \d+)?\b(?! *\|)(.*)$")
_TAP_BEGINS = ("1..", "TAP ", "ok", "not ok")
_TAP_SKIP = re.compile(r"#\s*skip\b", re.IGNORECASE)
_TAP_TOLD_BY = frozenset({"node", "node-tap", "prove"})


class _Tap:
    """The Test Anything Protocol: a plan, and a line for each test."""

    def __init__(self) -> None:
        self._plans: list[int] = []
        self._ran = self._skipped = 0

    def read(self, text: str) -> bool:
        if not text.startswith(_TAP_BEGINS):
            return False
        if plan := _TAP_PLAN.match(text):
            self._plans += [int(plan[1])] if plan[1] else []
            return True
        if (test := _TAP_TEST.match(text)) is None:
            return False
        skipped = _TAP_SKIP.search(test[1]) is not None
        self._skipped += skipped
        self._ran += not skipped
        return True

    def suites(self) -> tuple[Suite, ...]:
        """One suite, of at most the planned number; each empty plan is a suite of its own."""
        if not self._plans:
            return ()
        ran = min(self._ran, max(sum(self._plans) - self._skipped, 0))
        empty = [Suite(name="tap", tests=0)] * self._plans.count(0)
        tap = Suite(name="tap", tests=ran, skipped=self._skipped)
        return (tap, *empty) if any(self._plans) else (tap,)
