"""Every table over an enum, status words or facts is total; every match over them is exhaustive.

A hole in such a table is a KeyError for a user, and a hole in a match is a fact that is silently
ignored. What is partial by design is listed here, with the reason.
"""

import ast
import enum
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Literal, get_args, get_origin

import msgspec
import pytest

import windlass
from windlass.core.events import model as e
from windlass.core.state.transitions import Status
from windlass.views.outcome import _RUN_STATUS
from windlass.views.report.page import TONES

ROOT = Path(windlass.__file__).parent

PARTIAL = {
    "windlass.adapters.agents.claude.reading._WORDS": "an API error is one of these failures",
    "windlass.adapters.sandbox.box.CURES": "only these levels need something installed",
    "windlass.adapters.sandbox.landlock._SECCOMP": "the machines that have Landlock's filter",
    "windlass.adapters.sandbox.seccomp.MACHINES": "on other machines there is no filter",
    "windlass.core.scheduler.people._TO_A_STAGE": "a stage can only be passed or redone",
    "windlass.core.state.transitions.REVISED": "an edit sends only judged work back",
    "windlass.core.state.transitions.EDITED": "only merged tasks become stale, and back",
    "windlass.formats.layers.state._QUEUE_STATUS": "every other task is pending in the queue",
    "windlass.formats.milestone.reader._WHERE": "only these blocks can hide a heading",
    "windlass.formats.milestone.state._RESULTS": "every other word is Windlass's own",
    "windlass.formats.spec.reader._WHERE": "only these blocks can hide a table",
    "windlass.formats.speckit.listing._PLACES": "every other block is 'other text'",
    "windlass.views.activity._ROLES": "only these phases have an agent",
    "windlass.views.questions._HEADS": "only these phases wait for a person",
    "windlass.views.questions._WORDS": "in every other phase any text is the answer",
    "windlass.views.report.charts._THICK": "every other bar is of normal height",
    "windlass.views.activity._WORDS": "every other failure is named as it is",
}
"""Tables that are partial by design; each is read with a default, or only by its own keys."""

OPEN = {
    "core/scheduler/priority.py:_goes_on": "any other phase asks whether the Coach may start",
    "core/scheduler/turns.py:_step": "any other phase has an effect under way, or waits",
    "views/activity.py:after_event": "only these facts change what is seen of a task",
    "views/bills.py:see": "only these facts carry costs",
    "views/measuring.py:_beginnings": "only these facts move a metric",
    "views/measuring.py:_of_task": "only these facts are counted",
    "views/notices.py:notice_of": "only these facts are worth a notice",
    "views/report/timeline.py:_of_run": "only these facts begin or end a bar of the run",
    "views/report/timeline.py:_note": "only these facts are noted in the report",
    "views/tracing.py:_close": "only these facts begin or end a span",
}
"""Matches that pass over other values by design: `file:function`, and why."""


@cache
def modules() -> tuple[ModuleType, ...]:
    found = pkgutil.walk_packages(windlass.__path__, "windlass.")
    names = [each.name for each in found if not each.name.endswith(".__main__")]
    return tuple(importlib.import_module(name) for name in names)


@cache
def closed_sets() -> dict[frozenset[object], str]:
    """Every set of values that a table may be over: enums, literals, and the facts."""
    found: dict[frozenset[object], str] = {frozenset(get_args(e.Event)): "facts"}
    for module in modules():
        for name, value in vars(module).items():
            if get_origin(value) is Literal:
                found[frozenset(get_args(value))] = name
            elif isinstance(value, type) and issubclass(value, enum.Enum) and len(value) > 1:
                found[frozenset(value)] = name
    return found


def tables() -> Iterator[tuple[str, Mapping[object, object]]]:
    seen: set[int] = set()
    for module in modules():
        source = Path(module.__file__ or "").read_text(encoding="utf-8")
        for name, value in vars(module).items():
            here = f"\n{name} = " in source or f"\n{name}: " in source
            if isinstance(value, Mapping) and value and here and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value


def missing(table: Mapping[object, object]) -> set[object] | None:
    """What the table lacks of the smallest set with all its keys; None for another table."""
    keys = frozenset(table) - {None}
    kinds = {type(key) for key in keys}
    words = kinds == {str}
    if words and len(keys) == 1:
        return None  # one word alone says nothing about the set it is from
    fitting = [known for known in closed_sets() if keys <= known and (words or _same(known, kinds))]
    return set(min(fitting, key=len) - keys) if fitting else None


def _same(known: frozenset[object], kinds: set[type]) -> bool:
    return {type(value) for value in known} == kinds or all(isinstance(v, type) for v in known)


def test_every_table_is_total_or_partial_by_design():
    holes = {name: lacks for name, table in tables() if (lacks := missing(table))}
    assert {name: holes[name] for name in holes.keys() - PARTIAL.keys()} == {}
    assert PARTIAL.keys() - holes.keys() == set(), "these are total by now, or gone"


def test_the_tables_that_matter_are_among_those_looked_at():
    looked_at = {name for name, table in tables() if missing(table) is not None}
    assert looked_at >= {
        "windlass.core.state.transitions.STATUS",
        "windlass.core.state.transitions.RUN_TRANSITIONS",
        "windlass.core.scheduler.retry.RULES",
        "windlass.formats.layers.state._STATUS",
        "windlass.formats.layers.state._RUN_STATUS",
        "windlass.formats.spec.state._STATUS",
        "windlass.formats.taskfile.state._STATUS",
        "windlass.views.outcome.EXIT_CODES",
        "windlass.views.board._WORDS",
    }


def test_every_status_word_has_a_colour():
    assert {*get_args(Status), "blocked", *_RUN_STATUS.values()} <= TONES.keys()


def _holds_facts(pattern: ast.pattern) -> bool:
    """Whether a pattern is about a fact, or about a member of an enum."""
    return any(
        isinstance(node, ast.MatchClass | ast.MatchValue)
        and isinstance(_name_in(node), ast.Attribute)
        for node in ast.walk(pattern)
    )


def _name_in(node: ast.MatchClass | ast.MatchValue) -> ast.expr:
    return node.cls if isinstance(node, ast.MatchClass) else node.value


def _ends_in_assert_never(match: ast.Match) -> bool:
    last = match.cases[-1]
    wild = isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
    return wild and ast.unparse(last.body[0]).startswith("assert_never(")


def open_matches(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.Match)):
        about = any(_holds_facts(case.pattern) for case in node.cases)
        if about and not _ends_in_assert_never(node):
            around = [f for f in functions if f.lineno < node.lineno <= (f.end_lineno or 0)]
            yield f"{path.relative_to(ROOT).as_posix()}:{around[-1].name}"


def test_every_match_over_facts_or_an_enum_ends_in_assert_never():
    found = {name for path in ROOT.rglob("*.py") for name in open_matches(path)}
    assert found - OPEN.keys() == set()
    assert OPEN.keys() - found == set(), "these are exhaustive by now, or gone"


class _Light(enum.Enum):
    RED = 1
    GREEN = 2


@pytest.mark.parametrize(
    ("table", "lacks"),
    [
        ({e.RunEnd.COMPLETED: 1}, set(e.RunEnd) - {e.RunEnd.COMPLETED}),
        ({**dict.fromkeys(e.RunEnd), None: 1}, set()),
        ({"pending": 1, "stale": 2}, set(get_args(Status)) - {"pending", "stale"}),
        ({e.RunStarted: 1, e.RunEnded: 2}, set(get_args(e.Event)) - {e.RunStarted, e.RunEnded}),
        ({"a": 1, "b": 2}, None),
        ({_Light.RED: 1}, None),
        ({msgspec.Struct: 1}, None),
    ],
)
def test_a_hole_is_found(table, lacks):
    assert missing(table) == lacks
