"""The feature dialect: a YAML file that lists tasks, their files and their waves.

The YAML says which tasks there are and in what order; a task's own file describes it. If that file
does not exist, the YAML's words are used, and a note says so. A smoke gate, a command that must
pass on the tip after a wave, is kept exactly or noted; it is never dropped silently.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from windlass.core.nearest import did_you_mean
from windlass.core.plan import MAX_TASKS, Finding, Plan, Stage, Task
from windlass.errors import PlanError
from windlass.formats import criteria, frontmatter, waves, yaml
from windlass.formats.dialect import Dialect, Source
from windlass.formats.reading import Reader, refuse_too_many
from windlass.formats.slips import key_slips
from windlass.formats.state_files import as_list
from windlass.formats.taskfile import state
from windlass.formats.taskfile.reader import TaskText, names, wave_in
from windlass.formats.words import is_done
from windlass.formats.yaml import Data, Keys, text_in

name: Final = "feature"

_YAML = re.compile(r".+\.ya?ml", re.IGNORECASE)
_ID_LINE = re.compile(r"""^["']?(?:id|feature_id)["']?[ \t]*:""", re.MULTILINE)
_TASKS_LINE = re.compile(r"""^["']?tasks["']?[ \t]*:""", re.MULTILINE)
_FEATURE_LINE = re.compile(
    r"""^(?:orchestration|waves|parallel_groups|smoke_gates)[ \t]*:|^[ \t-]*file_path[ \t]*:"""
    r"""|^(?:feature_)?id[ \t]*:[ \t]*["']?FEAT\b""",
    re.MULTILINE,
)
_ANY_ID = re.compile(r"""\bid["']?[ \t]*:""")

# Keys that are read, and keys of other tools that need no note; all others are noted.
_READ = frozenset({
    "id", "feature_id", "name", "title", "description", "tasks", "orchestration", "waves",
    "parallel_groups", "smoke_gates",
    "created", "updated", "status", "original_status", "complexity", "estimated_tasks", "execution",
    "progress", "completed_tasks", "total_tasks", "parent_review", "superseded_note",
})  # fmt: skip
_TASK_READ = frozenset({
    "id", "name", "title", "file_path", "complexity", "dependencies", "depends_on", "description",
    "acceptance_criteria", "note", "wave", "status",
    "task_type", "implementation_mode", "estimated_minutes", "actual_minutes", "completed",
    "actual_duration_minutes", "result", "turns_completed", "current_turn", "started_at",
    "completed_at", "conductor_workspace",
})  # fmt: skip

_MAX_PATH = 500
_STATES = ("backlog", "in_progress", "in_review", "design_approved", "blocked", "completed")
"""Folders of `tasks/`. Task files are moved between them, and the feature may still name the old
folder."""
_IN_STATE = re.compile(r"tasks/[^/]+/(?P<rest>.+)")
_FORBIDDEN = frozenset({"", ".", "..", ".git", ".windlass"})

_GATE_READ = frozenset(
    {"after_wave", "after_waves", "command", "expected_exit", "name", "description"}
)
_ZERO = re.compile(r"0+")


def recognises(source: Source) -> bool:
    """Whether the file is YAML that lists the tasks of a feature."""
    text = source.text
    if text is None or not (_ID_LINE.search(text) and _TASKS_LINE.search(text)):
        return False
    if not _FEATURE_LINE.search(text):
        return False
    if _YAML.fullmatch(source.path):
        return True  # an error in it is reported when it is read
    try:
        return isinstance(_read(source.path, text).get("tasks"), list)
    except PlanError:
        return False  # perhaps Markdown that quotes such a file


def parse(source: Source) -> Plan:
    return _Reader(source).plan()


def refers_to(source: Source) -> tuple[str, ...]:
    """The possible files of the tasks."""
    try:
        data = _read(source.path, source.text or "")
    except PlanError:
        return ()
    entries = (each for each in as_list(data.get("tasks")) if isinstance(each, Keys))
    return tuple(dict.fromkeys(path for each in entries for path in _file_candidates(each)))


@lru_cache(maxsize=1)
def _read(path: str, text: str) -> Keys:
    """The data, cached because a plan is recognised before it is read; it must not be changed."""
    ids = len(_ANY_ID.findall(text))
    refuse_too_many(path, ids - MAX_TASKS)  # criteria may have ids as well
    return yaml.read(path, text)


class _Reader(Reader):
    def __init__(self, source: Source) -> None:
        super().__init__(source.path)
        self.source = source
        self.data = _read(source.path, source.text or "")
        listed = self.data.get("tasks")
        if not isinstance(listed, list):
            self.refuse(self.data.lines.get("tasks", 1), "'tasks' is not a list", "list the tasks")
        self.entries = [entry for each in listed if (entry := self.entry(each)) is not None]
        self.ids = {self.id(entry).casefold(): self.id(entry) for entry in self.entries}
        self.owners: dict[str, str] = {}
        """The task of each file that was read."""

    def plan(self) -> Plan:
        tasks = [self.task(entry) for entry in self.entries]
        staged, names_, notes = waves.in_waves(tasks, self.waves())
        stages, more = _smoke_gates(self.data, names_)
        plan_id = self.word(self.data, "id") or self.word(self.data, "feature_id")
        title = self.word(self.data, "name") or self.word(self.data, "title")
        self.notes += [*notes, *more, *self.unread()]
        own = sorted((n for n in self.notes if not n.path), key=lambda note: note.line)
        return Plan(
            id=plan_id,
            title=title,
            dialect=name,
            path=self.path,
            tasks=staged,
            stages=tuple(Stage(name=each, checks=stages.get(each, ())) for each in names_),
            notes=(*own, *(note for note in self.notes if note.path)),
        )

    # A task

    def task(self, entry: Keys) -> Task:
        task_id = self.id(entry)
        title = self.word(entry, "name") or self.word(entry, "title")
        read = self.file(entry, task_id)
        task = read.task(task_id) if read else self.without_file(entry, task_id, title)
        number = self.complexity(entry)
        if read:
            self.compare(entry, read)
            self.notes += read.notes
        return replace(
            task,
            title=title or task.title,
            depends_on=tuple(dict.fromkeys(self.named(entry))),
            complexity=task.complexity if number is None else number,
            marked_done=task.marked_done or is_done(entry.get("status")),
            line=task.line if read else entry.line,
        )

    def file(self, entry: Keys, task_id: str) -> TaskText | None:
        """The task's own file, where it exists."""
        paths = _file_candidates(entry)
        path = next((each for each in paths if each in self.source.texts), None)
        line = entry.lines.get("file_path", entry.line)
        if path is None:
            self.note(line, _why_no_file(entry))
            return None
        if path in self.owners:
            what = f"tasks {self.owners[path]!r} and {task_id!r} have the same file"
            self.error(line, what, "give each task a file of its own")
        self.owners[path] = task_id
        if path != paths[0]:
            self.note(line, f"the file of {task_id} was moved to {path}")
        text = self.source.texts[path]
        try:
            return TaskText(path, text, frontmatter.read(path, text), shown=path)
        except PlanError as error:
            self.note(error.line, "the frontmatter cannot be read; the text below it is", path)
            return TaskText(path, text, None, shown=path)

    def without_file(self, entry: Keys, task_id: str, title: str) -> Task:
        parts = [self.word(entry, "description"), self.word(entry, "note")]
        whole = self.word(self.data, "description")
        if whole:
            parts.append(f"It is a part of this feature: {whole}")
        return Task(
            id=task_id,
            title=title or task_id,
            text="\n\n".join([title or task_id, *filter(None, parts)]),
            acceptance_criteria=criteria.listed(entry.get("acceptance_criteria")),
        )

    def compare(self, entry: Keys, read: TaskText) -> None:
        """Note where the task's file says something else."""
        task_id = self.id(entry)
        other = read.data.get("id", task_id)
        if other != task_id:
            read.note(read.data.lines["id"], f"the feature calls this task {task_id}, not {other}")
        named = {each.casefold() for each in self.named(entry)}
        for word, line in read.dependencies():
            if word.casefold() not in named:
                read.note(line, f"depends on {word!r}, which the feature does not say: ignored")

    def named(self, entry: Keys) -> Iterator[str]:
        """The tasks it depends on, as spelled here; the graph refuses unknown ones by name."""
        for key in ("dependencies", "depends_on"):
            for word in names(entry.get(key)):
                yield self.ids.get(word.casefold(), word)

    # Waves

    def waves(self) -> dict[str, str]:
        """The number of each task's wave, from the groups or else from the tasks themselves."""
        inner = self.data.get("orchestration")
        places = [each for each in (inner, self.data) if isinstance(each, Keys)]
        groups = [
            (place.lines[key], place[key])
            for key in ("parallel_groups", "waves")
            for place in places
            if place.get(key)
        ]
        for line, _ in groups[1:]:
            self.note(line, f"these waves are not read; those on line {groups[0][0]} are")
        if groups:
            return self.grouped(*groups[0])
        found = {self.id(each): wave_in(each.get("wave")) for each in self.entries}
        return {task_id: number for task_id, number in found.items() if number is not None}

    def grouped(self, line: int, groups: Data) -> dict[str, str]:
        found: dict[str, str] = {}
        for number, group in _numbered(groups):
            for word in names(group):
                task_id = self.ids.get(word.casefold())
                if task_id is None:
                    what = f"wave {number} has {word!r}, which is not a task of this feature"
                    cure = did_you_mean(word, self.ids.values(), "correct the id, or list the task")
                    self.error(line, what, cure)
                elif found.setdefault(task_id, number) != number:
                    what = f"task {task_id!r} is in waves {found[task_id]} and {number}"
                    self.error(line, what, "keep it in one of them")
        return found

    # Parts that are not read

    def unread(self) -> Iterator[Finding]:
        slips = dict(key_slips(self.data, _READ))
        for key, line in self.data.lines.items():
            if key not in _READ and self.data[key]:
                yield _unread(line, f"{key!r} is not read", slips.get(key))
        seen: set[str] = set()
        for entry in self.entries:
            slips = dict(key_slips(entry, _TASK_READ))
            for key, line in entry.lines.items():
                if key not in _TASK_READ and (key not in seen or key in slips) and entry[key]:
                    seen.add(key)
                    yield _unread(line, f"{key!r} of a task is not read", slips.get(key))
            if entry.get("implementation_mode") == "manual":
                what = "says 'manual'; Windlass gives the task to an agent all the same"
                yield Finding(line=entry.lines["implementation_mode"], text=what)

    def entry(self, value: Data) -> Keys | None:
        """The entry of a task; None and an error where it is none, or has no id."""
        if not isinstance(value, Keys):
            line = self.data.lines["tasks"]
            what = f"{value!r} among the tasks is not a task"
            self.error(line, what, "write 'id: …' and 'name: …'")
            return None
        if not self.word(value, "id"):
            self.error(value.line, "the task has no id", "write 'id: TASK-1'")
            return None
        return value

    def id(self, entry: Keys) -> str:
        return text_in(entry, "id")


def _unread(line: int, text: str, meant: str | None) -> Finding:
    """A note on a key that is not read, or a warning where it is a slip of one that is."""
    if meant is None:
        return Finding(line=line, text=text)
    return Finding(line=line, text=text, severity="warning", suggestion=f"did you mean {meant!r}?")


def _numbered(groups: Data) -> Iterator[tuple[str, Data]]:
    """Each group with its wave's number: the number it names, else its place."""
    listed = groups.items() if isinstance(groups, dict) else ((None, x) for x in _all(groups))
    for place, (key, group) in enumerate(listed, 1):
        number, members = wave_in(key), group
        if isinstance(group, dict):
            number = wave_in(group.get("wave")) or number
            members = group.get("tasks")
        yield number or str(place), members


def _all(value: Data) -> list[Data]:
    return value if isinstance(value, list) else [value]


def _file_candidates(entry: Keys) -> tuple[str, ...]:
    """The path that the task names, then the paths it may have been moved to.

    None where the path is outside the repository or is not Markdown.
    """
    path = _file_path(entry)
    if not _is_safe(path):
        return ()
    found = {path: None}
    moved = _IN_STATE.fullmatch(path)
    if moved is not None:
        leaf = path.rpartition("/")[2]
        for rest in dict.fromkeys((moved["rest"], leaf)):
            found.update({f"tasks/{state}/{rest}": None for state in _STATES})
    return tuple(found)


def _why_no_file(entry: Keys) -> str:
    path = _file_path(entry)
    if not path:
        return "the task names no file, so the text here is used"
    if _is_safe(path):
        return f"{path} does not exist, so the text here is used"
    return f"{path!r} is not a Markdown file below the repository, so the text here is used"


def _file_path(entry: Keys) -> str:
    return text_in(entry, "file_path").removeprefix("./")


def _is_safe(path: str) -> bool:
    parts = path.casefold().split("/")
    return (
        len(path) <= _MAX_PATH
        and path.isprintable()
        and "\\" not in path
        and parts[-1].endswith((".md", ".markdown"))
        and _FORBIDDEN.isdisjoint(parts)
    )


def _smoke_gates(
    data: Keys, waves: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], list[Finding]]:
    """The commands of each wave, and notes about gates that are not kept."""
    found: dict[str, list[str]] = defaultdict(list)
    notes: list[Finding] = []
    line = data.lines.get("smoke_gates", 0)
    for gate in _all(data.get("smoke_gates") or []):
        if not isinstance(gate, Keys):
            notes.append(Finding(line=line, text=f"the smoke gate {gate!r} has no 'command'"))
            continue
        slips = dict(key_slips(gate, _GATE_READ))
        for key in (key for key in gate if key not in _GATE_READ):
            what = f"{key!r} of a smoke gate is not read; it is a check like any other"
            notes.append(_unread(gate.lines[key], what, slips.get(key)))
        command = gate.get("command")
        why = _why_no_gate(gate)
        if why or not isinstance(command, str):
            notes.append(Finding(line=gate.line, text=f"the smoke gate is not kept: {why}"))
            continue
        for wave in _after(gate, waves):
            if wave in waves:
                found[wave].append(command.strip())
            else:
                what = f"the smoke gate after wave {wave!r} is not kept: there is no such wave"
                notes.append(Finding(line=gate.line, text=what))
    return {wave: tuple(dict.fromkeys(commands)) for wave, commands in found.items()}, notes


def _why_no_gate(gate: Keys) -> str:
    command, wanted = gate.get("command"), gate.get("expected_exit")
    if not isinstance(command, str) or not command.strip():
        return "it has no command"
    if wanted is not None and not (isinstance(wanted, str) and _ZERO.fullmatch(wanted)):
        return f"it expects the exit code {wanted}, and a check passes only with 0"
    if gate.get("after_wave", gate.get("after_waves")) is None:
        return "it does not say after which wave"
    return ""


def _after(gate: Keys, waves: Sequence[str]) -> Iterator[str]:
    value: Data = gate.get("after_wave", gate.get("after_waves"))
    if isinstance(value, str) and value.casefold() == "all":
        yield from waves or [value]
        return
    for each in _all(value):
        yield each.strip() if isinstance(each, str) else "?"


FEATURE = Dialect(
    name=name,
    recognises=recognises,
    parse=parse,
    refers_to=refers_to,
    writes=state.writes,
    shares=state.writes,
    project=state.project,
)
