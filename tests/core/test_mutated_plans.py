"""Whatever becomes of a plan's text, the answer is a plan or a PlanError, never a traceback.

Real documents are mutated where WINDLASS_CORPUS says they are, and our own where it does not.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from windlass.core.plan import validated
from windlass.errors import PlanError
from windlass.formats import DIALECTS, load, refers_to
from windlass.views.understanding import understanding

CORPUS = os.environ.get("WINDLASS_CORPUS", "")
KINDS = (".md", ".yaml", ".yml", ".xml", ".json")
MAX_BYTES = 40_000
"""Of a document that is mutated thousands of times."""

OWN = {
    "milestone/plan.md": b"""\
# Milestone: Orders

**Checks:** `make test`

## Task 2.1: Store orders

**File:** `src/store.py`
**Depends on:** none
**Complexity:** 3

**Acceptance Criteria:**
- [ ] Orders survive a restart
  - nested
  ```
  ## Task 9.9: no task
  ```

## Task 2.2: Show orders

**Stage:** 2
**Model:** some-model

## E2E Scenario

Order something.
""",
    "taskfile/TASK-1.md": b"""\
---
id: TASK-1
title: "Say: hello"
status: backlog
complexity: 4
depends_on: [TASK-0]
tags:
  - a
  - {b: c}
---

# Hello

## Acceptance Criteria

- [ ] It says hello
- [x] It is heard
""",
    "feature/FEAT-1.yaml": b"""\
id: FEAT-1
name: Hello
tasks:
  - id: TASK-1
    file_path: tasks/TASK-1.md
    dependencies: []
  - id: TASK-2
    file_path: tasks/TASK-2.md
    dependencies: [TASK-1]
orchestration:
  parallel_groups: [[TASK-1], [TASK-2]]
""",
    "tasks/tasks.md": b"""\
# Tasks: Hello

## Phase 1: Setup

- [ ] T001 Make the project in src/
- [ ] T002 [P] Add tests in tests/test_hello.py

## Phase 2: Core

- [ ] T003 [US1] Say hello in src/hello.py
""",
}

SNIPPETS = [
    b"---\n", b"```\n", b"~~~\n", b"\n\n", b"- ", b"  ", b"\t", b"# ", b"## Task 1.1: One\n", b"|",
    b"**Depends on:** ", b"**Acceptance Criteria:**\n", b"&a ", b"*a ", b"!!python/object ", b"[",
    b"]", b"{", b"}", b": ", b"<!--", b"-->", b"<task>", b"&e;", b"\xff", b"\0", b"\xef\xbb\xbf",
    b"\r", b"\xe2\x80\xae", b"id: ../../x\n", b"'", b'"', b"`", b"- [ ] T001 [P] x\n", b"%", b"\\",
    b"?", b"1e999", b"9" * 30, b"null",
]  # fmt: skip


def documents() -> dict[str, bytes]:
    paths = sorted(Path(CORPUS).rglob("*")) if CORPUS else []
    found = {str(p.relative_to(CORPUS)): p.read_bytes() for p in paths if p.suffix in KINDS}
    return {**OWN, **{name: text for name, text in found.items() if len(text) <= MAX_BYTES}}


DOCUMENTS = documents()

places = st.integers(0, MAX_BYTES)
changes = st.lists(
    st.tuples(
        st.sampled_from(
            ["insert", "drop", "copy", "byte", "line", "swap", "lines", "cut", "splice"]
        ),
        places,
        places,
        st.sampled_from(SNIPPETS),
    ),
    min_size=1,
    max_size=8,
)


def mutated(text: bytes, kind: str, first: int, second: int, snippet: bytes) -> bytes:
    """By bytes, or by lines and blocks of them."""
    size = len(text) + 1
    at, to = sorted((first % size, second % size))
    match kind:
        case "insert":
            return text[:at] + snippet + text[at:]
        case "drop":
            return text[:at] + text[min(to, at + 40) :]
        case "copy":
            return text[:to] + text[at : min(to, at + 400)] * 3 + text[to:]
        case "byte":
            return text[:at] + bytes([second % 256]) + text[at + 1 :]
        case "cut":
            return text[:to]
        case _:
            lines = text.splitlines(keepends=True) or [b""]
            change_lines(lines, kind, first, second, snippet)
            return b"".join(lines)


def change_lines(lines: list[bytes], kind: str, first: int, second: int, snippet: bytes) -> None:
    one, other = first % len(lines), second % len(lines)
    match kind:
        case "line":
            lines[one] = snippet + lines[one]
        case "swap":
            lines[one], lines[other] = lines[other], lines[one]
        case "lines":
            del lines[one : one + 1 + second % 30]
        case _:
            texts = list(DOCUMENTS.values())
            piece = texts[second % len(texts)].splitlines(keepends=True)
            lines[one:one] = piece[first % (len(piece) or 1) :][:20]


names = st.sampled_from(sorted(DOCUMENTS))
dialects = st.sampled_from([None, None, *(each.name for each in DIALECTS)])
cases = st.tuples(names, changes, dialects, st.booleans())
Case = tuple[str, list[tuple[str, int, int, bytes]], str | None, bool]


def is_understood_or_refused(case: Case) -> None:
    """A file, or a folder of which one file is mutated; recognised, or in a dialect by force."""
    name, wanted, dialect, whole = case
    text = DOCUMENTS[name]
    for change in wanted:
        text = mutated(text, *change)
    folder = name.rpartition("/")[0]
    beside = [each for each in DOCUMENTS if whole and each.startswith(f"{folder}/")][:6]
    read = {**{each: DOCUMENTS[each] for each in beside}, name: text}
    texts = {each: data.decode("utf-8", "surrogateescape") for each, data in read.items()}
    path = folder if whole else name
    try:
        refers_to(path, texts, dialect=dialect)
        plan = load(path, texts, dialect=dialect)
    except PlanError:
        return
    assert validated(plan) is plan
    assert understanding(plan, width=80, verbose=True)


UNHURRIED = (HealthCheck.too_slow, HealthCheck.data_too_large)


@settings(max_examples=300, suppress_health_check=UNHURRIED)
@given(cases)
def test_a_sample(case: Case):
    is_understood_or_refused(case)


@pytest.mark.sweep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("_part", range(20))
@settings(max_examples=500, suppress_health_check=UNHURRIED)
@given(case=cases)
def test_ten_thousand(_part: int, case: Case):
    is_understood_or_refused(case)
