"""The page of facts and the page of exit codes, from the modules that define them.

Law: a fact is described by its docstring, a field by the one under it; nothing is said twice.
"""

import ast
import importlib
import inspect
from collections.abc import Iterator, Sequence
from itertools import pairwise
from types import ModuleType

from windlass import errors
from windlass.core.events import fact, landing, merging, people, review, run, turn, values
from windlass.views.outcome import EXIT_CODES, error_code

FACTS = (
    ("A run", run),
    ("A turn", turn),
    ("The merge queue", merging),
    ("People", people),
    ("Landing", landing),
)
"""The modules of facts, in the order in which a run meets them."""
VALUES = (values, review)
CODES = {
    0: "completed",
    1: "a task was abandoned or failed",
    2: "bad usage or input; nothing was changed",
    3: "a person is needed",
    4: "paused, stopped or interrupted; `windlass resume` continues",
    5: "another run of this plan holds the lock",
    6: "a limit stopped it: budget or auth",
}


def events_page(made: str) -> str:
    """Every fact with its fields, and the values that they are made of."""
    lines = [
        made,
        "# Facts: what the journal records",
        "",
        "The journal holds these and nothing else, in the order in which they became true.",
        "`windlass log --json` prints them as recorded; `windlass run --json` prints each as it is",
        "recorded, in an envelope with `schema`, `seq`, `ts`, `type` and `run`, between a first",
        "line `init` and a last line `result` ([the schema](schemas/events.json)). Every fact has",
        "`at`, the time in UTC. A field with a default is left out where it has that value.",
        "",
        *_paragraphs(_documented(fact).partition("\n")[2]),
        "Which fact can follow which is drawn in [state-diagram.md](state-diagram.md).",
        "",
    ]
    for title, module in FACTS:
        lines += [f"## {title}", "", *_paragraphs(_documented(module))]
        for name in _classes(module):
            lines += [f"### {name}", "", *_described(module, name)]
    lines += ["## What fields are made of", ""]
    for module in VALUES:
        for name in _classes(module):
            lines += [f"### {name}", "", *_described(module, name)]
    return "\n".join(lines)


def exit_codes_page(made: str) -> str:
    """What each exit code says, which ends of a run and which errors have it."""
    lines = [
        made,
        "# Exit codes",
        "",
        "A contract: scripts may rely on them. When several apply, the first of 2, 5, 6, 4, 3, 1",
        "counts.",
        "",
        "| code | what it says | ends of a run | errors |",
        "|---|---|---|---|",
    ]
    for code, meaning in CODES.items():
        ends = ", ".join(f"`{end}`" for end, its in EXIT_CODES.items() if its == code)
        raised = ", ".join(f"`{name}`" for name, kind in _errors() if error_code(kind) == code)
        lines.append(f"| {code} | {meaning} | {ends} | {raised} |")
    lines += [
        "",
        "## Errors",
        "",
        "Every error says what, where, and the cure, in one line on standard error; with `--json`",
        "also as [a JSON document](schemas.md) on standard output. Bad usage of",
        "the command line also prints the command's usage.",
        "",
        "| error | code | what it is |",
        "|---|---|---|",
        *(
            f"| `{name}` | {error_code(kind)} | {_one_line(kind.__doc__ or '')} |"
            for name, kind in _errors()
        ),
        "",
        "`windlass doctor` exits with 2 if something must be fixed before a run can start, and",
        "`windlass selftest` with 1 if a promise did not hold.",
        "",
    ]
    return "\n".join(lines)


def _errors() -> Iterator[tuple[str, type[errors.WindlassError]]]:
    for name in _classes(errors):
        kind = getattr(errors, name)
        if issubclass(kind, errors.WindlassError):
            yield name, kind


def _described(module: ModuleType, name: str) -> Iterator[str]:
    body = _classes(module)[name].body
    yield from _paragraphs(inspect.getdoc(getattr(module, name)) or "")
    if fields := list(_fields(body)):
        yield from ("| field | type | default | |", "|---|---|---|---|", *fields, "")
    if words := list(_members(body)):
        yield from (*words, "")


def _fields(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node, below in pairwise([*body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            default = f"`{ast.unparse(node.value)}`" if node.value is not None else ""
            meaning, kind = _below(below), node.annotation
            if isinstance(kind, ast.Subscript) and ast.unparse(kind.value) == "Annotated":
                kind, meaning = _annotated(kind)
            yield f"| `{node.target.id}` | {_code(kind)} | {default} | {meaning} |"


def _annotated(kind: ast.Subscript) -> tuple[ast.expr, str]:
    """The type within `Annotated`, and what its description says."""
    inner, meta = kind.slice.elts  # type: ignore[attr-defined]
    said = (word.value.value for word in meta.keywords if word.arg == "description")
    return inner, next(said, "")


def _members(body: Sequence[ast.stmt]) -> Iterator[str]:
    for node, below in pairwise([*body, ast.Pass()]):
        match node:
            case ast.Assign(value=ast.Constant(value=str(word))):
                said = _below(below)
                yield f"- `{word}`" + (f": {said}" if said else "")
            case _:
                pass


def _below(node: ast.stmt) -> str:
    """The docstring under a field."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return _one_line(str(node.value.value))
    return ""


def _code(kind: ast.expr) -> str:
    return "`" + ast.unparse(kind).replace("|", "\\|") + "`"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _paragraphs(text: str) -> Iterator[str]:
    yield from (*text.strip().splitlines(), "")


def _documented(module: ModuleType) -> str:
    return inspect.getdoc(module) or ""


def _classes(module: ModuleType) -> dict[str, ast.ClassDef]:
    """A module's own classes in the order in which it has them."""
    tree = ast.parse(inspect.getsource(importlib.import_module(module.__name__)))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
