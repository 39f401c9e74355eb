"""The layers dialect: a folder with layer folders `0-setup`, `1-foundation` … is a plan.

The task files are the plan. `manifest.json` and `layer_plan.json` name and order them; where they
differ from the files, the files take precedence and a note says so. Layers are the plan's stages
and run one after another, so a task must not depend on a later layer.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from windlass.core.plan import Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats.dialect import Source
from windlass.formats.layers.manifest import Manifest, completed_tasks, read_manifest
from windlass.formats.layers.task_file import ID, Draft, is_task, read_drafts, short
from windlass.formats.reading import Reader, natural_order, refuse_too_many
from windlass.formats.words import certain_paths

name: Final = "layers"

_LAYER = re.compile(r"(?:layer[-_ ]?)?(?P<number>[0-9]{1,3})(?:[-_. ](?P<name>.*))?", re.IGNORECASE)


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
        _refuse_later(tasks, place)
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
        for draft in read_drafts(path, text):
            found = ID.match(draft.id)
            said = draft.layer.strip() or (found["layer"] if found else "")
            layer = folders[0] if folders else _placed(said, layered)
            if not layer:
                cure = "put the file into a layer's folder, such as '1-foundation'"
                raise PlanError("the task has no layer", path=path, line=draft.line, hint=cure)
            self.layers[path] = layer
            self.drafts.append(draft)
            for other in (draft.layer.strip(), found["layer"] if found else ""):
                if other and not _same(other, layer):
                    draft.note(draft.line, f"says layer {other!r}, but is in {layer!r}")
                    break

    def listing(self, leaf: str) -> Manifest:
        path, text = self.beside(leaf)
        return read_manifest(path, text) if text else Manifest(path=path)

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
        said = draft.depends_on and [self.known.find(each) or each for each in draft.depends_on]
        for by_id, manifest in zip(listed, (self.manifest, self.graph), strict=True):
            other = by_id.get(draft.id)
            if said is None:
                said = other
            elif other is not None and set(other) != set(said):
                what = f"says {draft.id!r} depends on {_named(other)}; {_named(said)} is used"
                self.note(manifest.lines.get(draft.id, 1), what, manifest.path)
        if said is None:
            sole = (exporters[each] for each in draft.needs if len(exporters.get(each, ())) == 1)
            said = [task_id for [task_id] in sole if task_id in before]
        return list(dict.fromkeys(said))

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

    def compare(self) -> None:
        """Note where the manifest and the files differ; the files take precedence."""
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

    def find(self, said: str) -> str | None:
        """The id that a text names: the same id, or its long or short form."""
        brief = short(said)
        exact = self.exact.get(said.casefold()) or self.exact.get(brief)
        if exact or said.casefold() != brief:
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


def _placed(said: str, layered: set[str]) -> str:
    """The layer of a file outside the layer folders: the folder it names, else its own words."""
    fitting = sorted(layer for layer in layered if _same(said, layer))
    return fitting[0] if fitting else said


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


def _refuse_later(tasks: tuple[Task, ...], place: Mapping[str, int]) -> None:
    """Refuse a task that depends on a later layer: it could never start."""
    stages = {task.id: task.stage or "" for task in tasks}
    for task in tasks:
        for each in task.depends_on:
            if each in stages and place[stages[each]] > place[stages[task.id]]:
                raise PlanError(
                    f"task {task.id!r} depends on {each!r} of the later layer {stages[each]!r}",
                    path=task.path,
                    line=task.line,
                    hint="remove the dependency, or move one of the tasks to another layer",
                )
