"""The layers dialect: a tasks folder with layer folders `0-setup`, `1-foundation` … is a plan.

The files on disk are the plan. `manifest.json` and `layer_plan.json` order what is there and name
it; where they differ from the files, the files win and the difference is noted. Layers run one
after another: they are the plan's stages, and no task may wait for one of a later layer.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from windlass.dialects import layers_manifest, layers_markdown, layers_state, layers_xml
from windlass.dialects.deliverables import certain
from windlass.dialects.dialect import Dialect, Source
from windlass.dialects.layers_draft import ID, Draft, short
from windlass.dialects.layers_manifest import Manifest
from windlass.errors import PlanError
from windlass.plan import Note, Plan, Stage, Task
from windlass.plan.graph import MAX_TASKS

name: Final = "layers"

_LAYER = re.compile(r"(?:layer[-_ ]?)?(?P<number>[0-9]{1,3})(?:[-_. ](?P<name>.*))?", re.IGNORECASE)
_DIGITS = re.compile(r"([0-9]+)")


def recognises(source: Source) -> bool:
    """Whether the folder holds tasks in layer folders, or tasks in XML, which only this one has."""
    return source.text is None and any(
        (path.endswith(".xml") or any(map(_is_layer, folders))) and _is_task(path, text)
        for path, folders, text in _files(source)
    )


def parse(source: Source) -> Plan:
    """The plan as the files tell it."""
    if source.text is not None:
        cure = "name the folder that holds the layers' folders"
        raise PlanError("a file has no layers", path=source.path, hint=cure)
    return _Reader(source).plan()


class _Reader:
    """One reading of one folder; it gathers notes on the way."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.notes: list[Note] = []
        self.manifest = self.listing("manifest.json")
        self.graph = self.listing("layer_plan.json")
        self.drafts: list[Draft] = []
        self.layers: dict[str, str] = {}
        """Each task's layer, by its file."""

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
                creates=certain(each.creates),
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
            path=self.source.path,
            tasks=tasks,
            stages=tuple(Stage(name=layer) for layer in stages),
            stops_on_failure=True,
            notes=tuple(sorted(self.notes, key=lambda note: (note.path, note.line))),
        )

    # The files

    def read(self) -> None:
        files = list(_files(self.source))
        tasks = [file for file in files if _is_task(file[0], file[2])]
        if len(tasks) > MAX_TASKS:
            told = f"more than {MAX_TASKS:,} tasks"
            raise PlanError(told, path=self.source.path, hint="make several plans of it")
        taken = {path for path, _, _ in tasks}
        layered = {folders[0] for _, folders, _ in tasks if folders and _is_layer(folders[0])}
        for path, folders, text in tasks:
            if layered and folders and folders[0] not in layered:
                self.note(path, 1, "is a task, but lies in no layer's folder, so it is not read")
            else:
                self.take(path, folders, text, layered)
        for path, folders, _ in files:
            if path not in taken and layered.intersection(folders[:1]):
                self.note(path, 1, "is no task: it has no id such as 'L2-001'")

    def take(self, path: str, folders: tuple[str, ...], text: str, layered: set[str]) -> None:
        deeper = next((i for i, each in enumerate(folders) if _is_layer(each)), 0)
        if deeper:
            inside = "/".join((self.source.path.rstrip("/"), *folders[:deeper]))
            told = f"the layers of a plan lie deeper, in {inside!r}"
            raise PlanError(told, path=self.source.path, hint="name that folder as the plan")
        is_xml = path.endswith(".xml")
        drafts = layers_xml.drafts(path, text) if is_xml else [layers_markdown.draft(path, text)]
        for draft in drafts:
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
                    draft.note(draft.line, f"says layer {other!r}, but lies in {layer!r}")
                    break

    def listing(self, leaf: str) -> Manifest:
        path, text = self.beside(leaf)
        return layers_manifest.read(path, text) if text else Manifest(path=path)

    def completed(self) -> set[str]:
        """What another tool calls done: a claim, which nobody takes for state."""
        listed = {key for key, entry in self.manifest.tasks.items() if entry.done}
        path, text = self.beside("execute-state.json")
        if text:
            try:
                listed |= layers_manifest.completed(path, text)
            except PlanError as error:
                self.note(path, error.line, "cannot be read; it is no part of the plan")
        return {found for each in listed if (found := self.known.find(each))}

    def beside(self, leaf: str) -> tuple[str, str]:
        path = f"{self.source.path.rstrip('/')}/{leaf}"
        texts = self.source.texts
        return (path, texts[path]) if path in texts else (leaf, texts.get(leaf, ""))

    # The order

    def dependencies(self) -> list[list[str]]:
        """What each task waits for: as its file says, else the lists, else by its interfaces."""
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
        # What no file is comes as it was written: the graph will refuse it by name.
        said = draft.depends_on and [self.known.find(each) or each for each in draft.depends_on]
        for by_id, manifest in zip(listed, (self.manifest, self.graph), strict=True):
            other = by_id.get(draft.id)
            if said is None:
                said = other
            elif other is not None and set(other) != set(said):
                told = f"says {draft.id!r} depends on {_told(other)}; what is used is {_told(said)}"
                self.note(manifest.path, manifest.lines.get(draft.id, 1), told)
        if said is None:
            sole = (exporters[each] for each in draft.needs if len(exporters.get(each, ())) == 1)
            said = [task_id for [task_id] in sole if task_id in before]
        return list(dict.fromkeys(said))

    def listed(self, manifest: Manifest) -> dict[str, list[str]]:
        """What each task on disk depends on by this list; who is not on disk is noted."""
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
                    told = f"says {task_id!r} depends on {each!r}, which no file is: left out"
                    self.note(manifest.path, manifest.lines.get(each, 1), told)
        return found

    def compare(self) -> None:
        """Note where the manifest and the files differ; the files win."""
        manifest = self.manifest
        listed: set[str] = set()
        where = {draft.id: draft.path for draft in self.drafts}
        for key, entry in manifest.tasks.items():
            line = manifest.lines.get(key, 1)
            task_id = self.known.find(key)
            if task_id is None:
                self.note(manifest.path, line, f"lists {key!r}, which no file is; it is no task")
                continue
            listed.add(task_id)
            path = where[task_id]
            if entry.layer and not _same(entry.layer, self.layers[path]):
                told = f"lists {key!r} in layer {entry.layer!r}; it lies in {self.layers[path]!r}"
                self.note(manifest.path, line, told)
            if entry.file and not path.endswith(entry.file.removeprefix("./")):
                self.note(manifest.path, line, f"lists {key!r} as {entry.file!r}; it is {path!r}")
        for task_id in (each for each in where if manifest.tasks and each not in listed):
            told = f"{task_id!r} is not in the manifest; it is a task all the same"
            self.note(where[task_id], 1, told)

    def note(self, path: str, line: int, text: str) -> None:
        self.notes.append(Note(path=path, line=line, text=text))


class _Ids:
    """The ids of a plan, found by their long and by their short form."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.exact: dict[str, str] = {}
        self.shorts: dict[str, set[str]] = defaultdict(set)
        for each in ids:
            self.exact[each.casefold()] = each
            self.shorts[short(each)].add(each)

    def find(self, said: str) -> str | None:
        """The id that is meant: itself, or `L2-001` for `L2-001-auth-api` and the other way."""
        brief = short(said)
        exact = self.exact.get(said.casefold()) or self.exact.get(brief)
        if exact or said.casefold() != brief:
            return exact
        fitting = self.shorts.get(brief, set())
        return next(iter(fitting)) if len(fitting) == 1 else None


def _files(source: Source) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The XML and Markdown files with the folders they lie in, below the source's own."""
    prefix = f"{source.path.rstrip('/')}/"
    for path, text in source.texts.items():
        if path.endswith((".xml", ".md")):
            *folders, _ = path.removeprefix(prefix).split("/")
            yield path, tuple(folders), text


def _is_task(path: str, text: str) -> bool:
    if not path.endswith(".xml"):
        return layers_markdown.is_task(path, text)
    return layers_xml.is_task(text) or ID.match(path.rsplit("/", 1)[-1]) is not None


def _is_layer(folder: str) -> bool:
    return _LAYER.fullmatch(folder) is not None


def _placed(said: str, layered: set[str]) -> str:
    """The layer of a file that lies in none: the folder it means, else what it says."""
    fitting = sorted(layer for layer in layered if _same(said, layer))
    return fitting[0] if fitting else said


def _same(one: str, two: str) -> bool:
    """Whether two names mean the same layer: `2`, `2-backend` and `backend` may."""
    a, b = _LAYER.fullmatch(one.strip()), _LAYER.fullmatch(two.strip())
    if a and b:
        names = {(found["name"] or "").casefold() for found in (a, b)} - {""}
        return int(a["number"]) == int(b["number"]) and len(names) < 2  # noqa: PLR2004
    return _bare(one, a) == _bare(two, b)


def _bare(layer: str, found: re.Match[str] | None) -> str:
    return ((found["name"] or "") if found else layer).strip().casefold()


def _order(layer: str) -> tuple[int, str]:
    """Layers by their numbers; one without comes last."""
    found = _LAYER.fullmatch(layer)
    return (int(found["number"]) if found else 1000, layer)


def _rank(draft: Draft) -> tuple[float, list[tuple[int, str]]]:
    """By priority, then by name, in which numbers count as such."""
    first = float("inf") if draft.priority is None else draft.priority
    parts = _DIGITS.split(f"{draft.path}/{draft.id}")
    return first, [(int(part[:18]) if part.isdecimal() else -1, part) for part in parts]


def _told(ids: list[str]) -> str:
    return ", ".join(ids[:12]) or "nothing"


def _refuse_later(tasks: tuple[Task, ...], place: Mapping[str, int]) -> None:
    """A task that waits for a later layer would wait for ever."""
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


LAYERS = Dialect(
    name=name,
    recognises=recognises,
    parse=parse,
    writes=layers_state.writes,
    project=layers_state.project,
    claims=layers_state.claims,
)
