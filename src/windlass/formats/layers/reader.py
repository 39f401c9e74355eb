"""The layers dialect: a folder with layer folders `0-setup`, `1-foundation` … is a plan.

The task files are the plan. `manifest.json` and `layer_plan.json` name and order them; where they
differ from the files, the files take precedence and a note says so. Layers are the plan's stages
and run one after another, so a task must not depend on a later layer.
"""

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final, NoReturn, TypeAlias, cast

from msgspec import Struct, field

from windlass.core.plan import Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats.dialect import Source
from windlass.formats.layers.task_file import ID, Draft, is_task, read_drafts, short
from windlass.formats.reading import Reader, natural_order, refuse_too_many
from windlass.formats.slips import slip_of
from windlass.formats.state_files import as_list, as_mapping
from windlass.formats.words import certain_paths, is_done

name: Final = "layers"

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\n')
_DEPENDS = ("depends_on", "dependencies", "dependsOn", "depends")
_KEYS = (
    "prd", "prd_slug", "slug", "title", "name", "tasks", "layers", "dependency_graph",
    "dependencies",
)  # fmt: skip
_TASK_KEYS = ("id", "task_id", "layer", "file", "path", "status", *_DEPENDS)
"""The keys that are read, of a list and of a task in it."""
_LAYER = re.compile(r"(?:layer[-_ ]?)?(?P<number>[0-9]{1,3})(?:[-_. ](?P<name>.*))?", re.IGNORECASE)


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
    slips: dict[str, str] = field(default_factory=dict[str, str])
    """Keys that are slips, each with the key that is read."""
    tasks: dict[str, Listed] = field(default_factory=dict[str, Listed])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """The line on which each text first appears."""


def recognises(source: Source) -> bool:
    """Whether it is a folder with tasks in layer folders, or with tasks in XML."""
    return source.text is None and any(
        (path.endswith(".xml") or any(map(_is_layer, folders))) and is_task(path, text)
        for path, folders, text in _files(source)
    )


def parse(source: Source) -> Plan:
    """The plan as written."""
    if source.text is not None:
        cure = "name the folder that holds the layers' folders"
        raise PlanError("a file has no layers", path=source.path, hint=cure)
    return _Reader(source).plan()


class _Reader(Reader):
    """Reads one folder."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.path)
        self.source = source
        self.manifest = self.listing("manifest.json")
        self.graph = self.listing("layer_plan.json")
        self.drafts: list[Draft] = []
        self.layers: dict[str, str] = {}
        """The layer of each file's tasks."""

    def plan(self) -> Plan:
        self.read()
        stages = sorted(set(self.layers.values()), key=_order)
        place = {layer: index for index, layer in enumerate(stages)}
        self.drafts.sort(key=lambda each: (place[self.layers[each.path]], *_rank(each)))
        self.known = _Ids(each.id for each in self.drafts)
        self.compare()
        depends_on = self.dependencies()
        done = self.completed()
        tasks = tuple(
            Task(
                id=each.id,
                title=each.title,
                text=each.text,
                acceptance_criteria=tuple(each.criteria),
                depends_on=tuple(depends),
                files=tuple(dict.fromkeys(each.files)),
                creates=certain_paths(each.creates),
                checks=tuple(dict.fromkeys(each.checks)),
                stage=self.layers[each.path],
                marked_done=each.done or each.id in done,
                path=each.path,
                line=each.line,
            )
            for each, depends in zip(self.drafts, depends_on, strict=True)
        )
        self.find_later(tasks, place)
        self.notes += [note for each in self.drafts for note in each.notes]
        return Plan(
            id=self.manifest.slug,
            title=self.manifest.title,
            dialect=name,
            path=self.path,
            tasks=tasks,
            stages=tuple(Stage(name=layer) for layer in stages),
            stops_on_failure=True,
            notes=self.sorted_notes(),
        )

    # The files

    def read(self) -> None:
        files = list(_files(self.source))
        tasks = [file for file in files if is_task(file[0], file[2])]
        refuse_too_many(self.path, len(tasks))
        taken = {path for path, _, _ in tasks}
        layered = {folders[0] for _, folders, _ in tasks if folders and _is_layer(folders[0])}
        for path, folders, text in tasks:
            if layered and folders and folders[0] not in layered:
                self.note(1, "is a task, but is in no layer's folder, so it is not read", path)
            else:
                self.take(path, folders, text, layered)
        for path, folders, _ in files:
            if path not in taken and layered.intersection(folders[:1]):
                self.note(1, "is not a task: it has no id such as 'L2-001'", path)

    def take(self, path: str, folders: tuple[str, ...], text: str, layered: set[str]) -> None:
        deeper = next((i for i, each in enumerate(folders) if _is_layer(each)), 0)
        if deeper:
            inside = "/".join((self.path.rstrip("/"), *folders[:deeper]))
            what = f"the layers of a plan are deeper, in {inside!r}"
            self.refuse(0, what, "name that folder as the plan")
        for draft in self.drafts_in(path, text):
            found = ID.match(draft.id)
            named = draft.layer.strip() or (found["layer"] if found else "")
            layer = folders[0] if folders else _placed(named, layered)
            if not layer:
                cure = "put the file into a layer's folder, such as '1-foundation'"
                self.error(draft.line, "the task has no layer", cure, path)
                continue
            self.layers[path] = layer
            self.drafts.append(draft)
            for other in (draft.layer.strip(), found["layer"] if found else ""):
                if other and not _same(other, layer):
                    draft.note(draft.line, f"says layer {other!r}, but is in {layer!r}")
                    break

    def drafts_in(self, path: str, text: str) -> list[Draft]:
        try:
            return read_drafts(path, text)
        except PlanError as error:
            self.notes += error.findings
            return []

    def listing(self, leaf: str) -> Manifest:
        path, text = self.beside(leaf)
        try:
            return read_manifest(path, text) if text else Manifest(path=path)
        except PlanError as error:
            self.notes += error.findings
            return Manifest(path=path)

    def completed(self) -> set[str]:
        """The tasks that another tool calls done: a claim, not state."""
        listed = {key for key, entry in self.manifest.tasks.items() if entry.done}
        path, text = self.beside("execute-state.json")
        if text:
            try:
                listed |= completed_tasks(path, text)
            except PlanError as error:
                self.note(error.line, "cannot be read; it is not part of the plan", path)
        return {found for each in listed if (found := self.known.find(each))}

    def beside(self, leaf: str) -> tuple[str, str]:
        path = f"{self.path.rstrip('/')}/{leaf}"
        texts = self.source.texts
        return (path, texts[path]) if path in texts else (leaf, texts.get(leaf, ""))

    # The order

    def dependencies(self) -> list[list[str]]:
        """Each task's dependencies: by its file, else by the lists, else by its interfaces."""
        exporters: dict[str, list[str]] = defaultdict(list)
        for draft in self.drafts:
            for each in draft.exports:
                exporters[each].append(draft.id)
        listed = [self.listed(self.manifest), self.listed(self.graph)]
        before: set[str] = set()
        found: list[list[str]] = []
        for draft in self.drafts:
            found.append(self.depends(draft, listed, exporters, before))
            before.add(draft.id)
        return found

    def depends(
        self,
        draft: Draft,
        listed: list[dict[str, list[str]]],
        exporters: Mapping[str, list[str]],
        before: set[str],
    ) -> list[str]:
        # An unknown id stays as written: the graph refuses it by name.
        ids = draft.depends_on and [self.known.find(each) or each for each in draft.depends_on]
        for by_id, manifest in zip(listed, (self.manifest, self.graph), strict=True):
            other = by_id.get(draft.id)
            if ids is None:
                ids = other
            elif other is not None and set(other) != set(ids):
                what = f"says {draft.id!r} depends on {_named(other)}; {_named(ids)} is used"
                self.note(manifest.lines.get(draft.id, 1), what, manifest.path)
        if ids is None:
            sole = (exporters[each] for each in draft.needs if len(exporters.get(each, ())) == 1)
            ids = [task_id for [task_id] in sole if task_id in before]
        return list(dict.fromkeys(ids))

    def listed(self, manifest: Manifest) -> dict[str, list[str]]:
        """The dependencies of each task in this list; ids without a file are noted."""
        found: dict[str, list[str]] = {}
        for key, entry in manifest.tasks.items():
            task_id = self.known.find(key)
            if task_id is None or entry.depends_on is None:
                continue
            found[task_id] = []
            for each in entry.depends_on:
                if known := self.known.find(each):
                    found[task_id].append(known)
                else:
                    what = f"says {task_id!r} depends on {each!r}, which has no file: ignored"
                    self.note(manifest.lines.get(each, 1), what, manifest.path)
        return found

    def find_later(self, tasks: tuple[Task, ...], place: Mapping[str, int]) -> None:
        """A task that depends on a later layer is an error: it could never start."""
        stages = {task.id: task.stage or "" for task in tasks}
        cure = "remove the dependency, or move one of the tasks to another layer"
        for task in tasks:
            for each in task.depends_on:
                later = stages.get(each)
                if later is not None and place[later] > place[stages[task.id]]:
                    what = f"task {task.id!r} depends on {each!r} of the later layer {later!r}"
                    self.error(task.line, what, cure, task.path)

    def compare(self) -> None:
        """Note where the manifest and the files differ; the files take precedence."""
        for each in (self.manifest, self.graph):
            for key, meant in each.slips.items():
                what, cure = f"the key {key!r} is not read", f"did you mean {meant!r}?"
                self.warn(each.lines.get(key, 1), what, cure, each.path)
        manifest = self.manifest
        listed: set[str] = set()
        where = {draft.id: draft.path for draft in self.drafts}
        for key, entry in manifest.tasks.items():
            line = manifest.lines.get(key, 1)
            task_id = self.known.find(key)
            if task_id is None:
                self.note(
                    line, f"lists {key!r}, which has no file, so it is not a task", manifest.path
                )
                continue
            listed.add(task_id)
            path = where[task_id]
            if entry.layer and not _same(entry.layer, self.layers[path]):
                what = f"lists {key!r} in layer {entry.layer!r}; it is in {self.layers[path]!r}"
                self.note(line, what, manifest.path)
            if entry.file and not path.endswith(entry.file.removeprefix("./")):
                self.note(line, f"lists {key!r} as {entry.file!r}; it is {path!r}", manifest.path)
        for task_id in (each for each in where if manifest.tasks and each not in listed):
            what = f"{task_id!r} is not in the manifest; it is a task all the same"
            self.note(1, what, where[task_id])


class _Ids:
    """The ids of a plan, found by their long and their short form."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.exact: dict[str, str] = {}
        self.shorts: dict[str, set[str]] = defaultdict(set)
        for each in ids:
            self.exact[each.casefold()] = each
            self.shorts[short(each)].add(each)

    def find(self, text: str) -> str | None:
        """The id that a text names: the same id, or its long or short form."""
        brief = short(text)
        exact = self.exact.get(text.casefold()) or self.exact.get(brief)
        if exact or text.casefold() != brief:
            return exact
        fitting = self.shorts.get(brief, set())
        return next(iter(fitting)) if len(fitting) == 1 else None


def _files(source: Source) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The XML and Markdown files with their folders, below the source's own."""
    prefix = f"{source.path.rstrip('/')}/"
    for path, text in source.texts.items():
        if path.endswith((".xml", ".md")):
            *folders, _ = path.removeprefix(prefix).split("/")
            yield path, tuple(folders), text


def _is_layer(folder: str) -> bool:
    return _LAYER.fullmatch(folder) is not None


def _placed(named: str, layered: set[str]) -> str:
    """The layer of a file outside the layer folders: the folder it names, else the name itself."""
    fitting = sorted(layer for layer in layered if _same(named, layer))
    return fitting[0] if fitting else named


def _same(one: str, two: str) -> bool:
    """Whether two names mean the same layer, such as `2`, `2-backend` and `backend`."""
    a, b = _LAYER.fullmatch(one.strip()), _LAYER.fullmatch(two.strip())
    if a and b:
        names = {(found["name"] or "").casefold() for found in (a, b)} - {""}
        return int(a["number"]) == int(b["number"]) and len(names) < 2  # noqa: PLR2004
    return _bare(one, a) == _bare(two, b)


def _bare(layer: str, found: re.Match[str] | None) -> str:
    return ((found["name"] or "") if found else layer).strip().casefold()


def _order(layer: str) -> tuple[int, str]:
    """Layers by their numbers; a layer without a number comes last."""
    found = _LAYER.fullmatch(layer)
    return (int(found["number"]) if found else 1000, layer)


def _rank(draft: Draft) -> tuple[float, list[tuple[int, str]]]:
    """By priority, then by name."""
    first = float("inf") if draft.priority is None else draft.priority
    return first, natural_order(f"{draft.path}/{draft.id}")


def _named(ids: list[str]) -> str:
    return ", ".join(ids[:12]) or "nothing"


# The lists: other tools write them in several shapes, and all are read into one


def read_manifest(path: str, text: str) -> Manifest:
    """The tasks and names in the file; other keys are not read."""
    data = _decoded(path, text)
    prd = as_mapping(data.get("prd"))
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
        inside = as_mapping(layer)
        name = key or _word(inside.get("id")) or _word(inside.get("name"))
        _take_tasks(manifest, inside.get("tasks", None if inside else layer), name)
    for key in ("dependency_graph", "dependencies"):
        for task_id, value in _pairs(data.get(key)):
            _take_edge(manifest, task_id, value)
    _take_slips(manifest, data, _KEYS)
    return manifest


def completed_tasks(path: str, text: str) -> set[str]:
    """The tasks that another tool's execute-state.json calls completed."""
    data = _decoded(path, text)
    by_word = {_word(each) for each in as_list(data.get("completed"))}
    tasks = as_mapping(data.get("tasks")).items()
    by_status = {key for key, value in tasks if _is_done(as_mapping(value))}
    return (by_word | by_status) - {""}


def _decoded(path: str, text: str) -> dict[str, Json]:
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
        inside = as_mapping(each)
        task_id = key or _word(each) or _word(inside.get("id")) or _word(inside.get("task_id"))
        if not task_id:
            continue
        _take_slips(manifest, inside, _TASK_KEYS)
        entry = manifest.tasks.setdefault(task_id, Listed())
        entry.layer = layer or _word(inside.get("layer")) or entry.layer
        entry.file = _word(inside.get("file")) or _word(inside.get("path")) or entry.file
        entry.done = entry.done or _is_done(inside)
        for name in _DEPENDS:
            if name in inside:
                entry.depends_on = _ids(inside[name])


def _take_slips(manifest: Manifest, data: dict[str, Json], known: Collection[str]) -> None:
    for key in data.keys() - set(known):
        meant = slip_of(key, known)
        if meant is not None and meant not in data:
            manifest.slips[key] = meant


def _take_edge(manifest: Manifest, key: str, value: Json) -> None:
    """One entry of a graph: an id and its dependencies."""
    inside = as_mapping(value)
    task_id = key or _word(inside.get("task")) or _word(inside.get("id"))
    depends = next((inside[name] for name in _DEPENDS if name in inside), None if inside else value)
    if task_id:
        entry = manifest.tasks.setdefault(task_id, Listed())
        entry.depends_on = list(dict.fromkeys([*(entry.depends_on or []), *_ids(depends)]))


def _ids(value: Json) -> list[str]:
    values = value if isinstance(value, list) else [value]
    words = (
        _word(each) or _word(as_mapping(each).get("task")) or _word(as_mapping(each).get("id"))
        for each in values
    )
    return [word for word in words if word]


def _pairs(value: Json) -> Iterator[tuple[str, Json]]:
    """The entries of an object with their keys, those of a list without."""
    if isinstance(value, dict):
        yield from value.items()
    else:
        yield from (("", each) for each in as_list(value))


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
