"""`manifest.json` and `layer_plan.json`: the lists of the tasks of a layers folder.

Other tools write these in several shapes; all are read into one. The task files take precedence, so
a list adds no task and only orders those that exist.
"""

import json
import re
from collections.abc import Iterator
from typing import NoReturn, TypeAlias, cast

from msgspec import Struct, field

from windlass.errors import PlanError
from windlass.formats.words import is_done

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\n')
_DEPENDS = ("depends_on", "dependencies", "dependsOn", "depends")


class Listed(Struct, kw_only=True):
    """One task as it is listed."""

    layer: str = ""
    file: str = ""
    done: bool = False
    depends_on: list[str] | None = None


class Manifest(Struct, kw_only=True):
    """What one of these files says."""

    path: str
    slug: str = ""
    title: str = ""
    tasks: dict[str, Listed] = field(default_factory=dict[str, Listed])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """The line on which each text first appears."""

    def entry(self, task_id: str) -> Listed:
        """The task's entry, created where there is none."""
        return self.tasks.setdefault(task_id, Listed())


def read_manifest(path: str, text: str) -> Manifest:
    """The tasks and names in the file; other keys are not read."""
    data = decoded(path, text)
    prd = _mapping(data.get("prd"))
    title = _first(prd.get("name"), prd.get("title"), data.get("title"), data.get("name"))
    manifest = Manifest(
        path=path,
        slug=_first(data.get("prd_slug"), prd.get("slug"), data.get("slug")),
        title=" ".join(title.split()),
        lines=_lines(text),
    )
    _take_tasks(manifest, data.get("tasks"), "")
    layers = data.get("layers")
    for key, layer in _pairs(layers):
        inside = _mapping(layer)
        name = key or _word(inside.get("id")) or _word(inside.get("name"))
        _take_tasks(manifest, inside.get("tasks", None if inside else layer), name)
    for key in ("dependency_graph", "dependencies"):
        for task_id, value in _pairs(data.get(key)):
            _take_edge(manifest, task_id, value)
    return manifest


def completed_tasks(path: str, text: str) -> set[str]:
    """The tasks that another tool's execute-state.json calls completed."""
    data = decoded(path, text)
    by_word = {_word(each) for each in _list(data.get("completed"))}
    tasks = _mapping(data.get("tasks")).items()
    by_status = {key for key, value in tasks if _is_done(_mapping(value))}
    return (by_word | by_status) - {""}


def decoded(path: str, text: str) -> dict[str, Json]:
    """The JSON object that a text is."""
    try:
        data = cast("Json", json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique))
    except json.JSONDecodeError as error:
        _refuse(path, f"is not JSON: {error.msg}", error.lineno)
    except RecursionError:
        _refuse(path, "is nested too deep")
    except ValueError as error:
        _refuse(path, str(error).split(";")[0])
    if not isinstance(data, dict):
        _refuse(path, "is not a JSON object")
    return data


def _refuse(path: str, what: str, line: int = 1) -> NoReturn:
    raise PlanError(f"the file {what}", path=path, line=line, hint="fix it, or remove the file")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"has the key {twice!r} twice in one object")
    return found


def _take_tasks(manifest: Manifest, value: Json, layer: str) -> None:
    """Tasks as a list of ids or of objects, or as an object with the ids as its keys."""
    for key, each in _pairs(value):
        inside = _mapping(each)
        task_id = key or _word(each) or _word(inside.get("id")) or _word(inside.get("task_id"))
        if not task_id:
            continue
        entry = manifest.entry(task_id)
        entry.layer = layer or _word(inside.get("layer")) or entry.layer
        entry.file = _word(inside.get("file")) or _word(inside.get("path")) or entry.file
        entry.done = entry.done or _is_done(inside)
        for name in _DEPENDS:
            if name in inside:
                entry.depends_on = _ids(inside[name])


def _take_edge(manifest: Manifest, key: str, value: Json) -> None:
    """One entry of a graph: an id and its dependencies."""
    inside = _mapping(value)
    task_id = key or _word(inside.get("task")) or _word(inside.get("id"))
    depends = next((inside[name] for name in _DEPENDS if name in inside), None if inside else value)
    if task_id:
        entry = manifest.entry(task_id)
        entry.depends_on = list(dict.fromkeys([*(entry.depends_on or []), *_ids(depends)]))


def _ids(value: Json) -> list[str]:
    values = value if isinstance(value, list) else [value]
    words = (
        _word(each) or _word(_mapping(each).get("task")) or _word(_mapping(each).get("id"))
        for each in values
    )
    return [word for word in words if word]


def _pairs(value: Json) -> Iterator[tuple[str, Json]]:
    """The entries of an object with their keys, those of a list without."""
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from (("", each) for each in _list(value))


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _word(value: Json) -> str:
    known = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value).strip() if known else ""


def _first(*values: Json) -> str:
    return next((word for value in values if (word := _word(value))), "")


def _is_done(entry: dict[str, Json]) -> bool:
    return is_done(_word(entry.get("status")))


def _lines(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    line = 1
    for each in _STRING.finditer(text):
        if each[1] is None:
            line += 1
        else:
            found.setdefault(each[1], line)
    return found
