"""One task file of a layers folder, in Markdown or XML.

Both share the rules about verification steps: which are commands that Windlass runs, and which are
conditions for the Coach. In XML the task's text is the whole element as written, because its author
wrote it for agents; from its parts only what Windlass itself needs is read.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from windlass.core.nearest import did_you_mean
from windlass.core.plan import Finding
from windlass.errors import PlanError
from windlass.formats import frontmatter, markdown, xml
from windlass.formats.markdown import Block, Document, Section
from windlass.formats.slips import key_slips, label_slip, slip_of
from windlass.formats.words import is_done, is_nothing
from windlass.formats.xml import Element
from windlass.formats.yaml import Keys, text_in

ID = re.compile(r"L(?P<layer>[0-9]{1,3})-[0-9]{1,6}", re.IGNORECASE)
"""The start of an id in such a folder: the layer and a number."""

_RUN = re.compile(r"(?:Run|Execute|Command)\s*(?P<colon>:)?\s*", re.IGNORECASE)
_SHELLS = frozenset({"", "bash", "sh", "shell", "console", "zsh"})
_LINKS = frozenset({"", "and", "then", "and then", ",", ";", ", then", ", and"})
_DASH = re.compile(r"\s+[–—]\s")  # noqa: RUF001
_HYPHEN = re.compile(r"\s+-+\s+(?=[A-Za-z])")
_ASIDE = re.compile(r"\s\([^()]*\)\.?$")
_FULL_STOP = re.compile(r"(?<=[A-Za-z0-9])\.$")
_BEFORE_PATH = re.compile(r"\s+(?:[-–—(:]|#).*|\s*$")  # noqa: RUF001
_PRIORITY = re.compile(r"[0-9]{1,6}")


class Draft(Struct, kw_only=True):
    """A task as its own file describes it."""

    id: str
    title: str
    text: str
    path: str
    line: int
    layer: str = ""
    """As the file says; the folder of the file decides."""
    priority: int | None = None
    done: bool = False
    depends_on: list[str] | None = None
    """The ids it names; None where it names none."""
    needs: list[str] = field(default_factory=list[str])
    """The names of the interfaces it uses."""
    exports: list[str] = field(default_factory=list[str])
    criteria: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    creates: list[str] = field(default_factory=list[str])
    """Those of the files that it must create."""
    checks: list[str] = field(default_factory=list[str])
    notes: list[Finding] = field(default_factory=list[Finding])

    def note(self, line: int, text: str) -> None:
        """Note that a line was seen and not used."""
        self.notes.append(Finding(path=self.path, line=line, text=text))

    def warn_of_slip(self, line: int, what: str, meant: str | None) -> None:
        """Warn of a word that is not read, if it is a slip of one that is."""
        if meant is not None:
            self.notes.append(
                Finding(
                    path=self.path,
                    line=line,
                    text=f"{what} is not read",
                    severity="warning",
                    suggestion=f"did you mean '{meant}'?",
                )
            )

    def take_priority(self, line: int, text: str) -> None:
        """Take the task's place in its layer; 1 comes first."""
        if _PRIORITY.fullmatch(text):
            self.priority = int(text)
        elif text:
            self.note(
                line, f"the priority {text!r} is not a number, so the task comes last in its layer"
            )

    def take_step(self, line: int, step: str) -> None:
        """Take one verification step: a command to run, else a condition for the Coach."""
        run = _RUN.match(step)
        spans = _leading_spans(step[run.end() :] if run else step)
        whole = not run and len(spans) == 1 and spans[0] == step.strip("` ")
        if spans and (run or whole):
            self.checks += spans
        elif run and run["colon"] and (command := self.unquoted(line, step[run.end() :])):
            self.checks.append(command)
        elif step[run.end() if run else 0 :].strip():
            self.criteria.append(step)

    def unquoted(self, line: int, rest: str) -> str:
        """The command on a line without backticks; "" where it is not certain."""
        first = rest.split("\n", maxsplit=1)[0].strip()
        if _ASIDE.search(first):
            self.note(line, f"{first!r} is not run: write the command alone in backticks")
            return ""
        command = _DASH.split(first)[0]
        cut = _HYPHEN.split(command)[0]
        if cut != command:
            self.note(line, f"of {first!r} only {cut!r} is run; put the command in backticks")
        return _FULL_STOP.sub("", cut.strip())

    def take_steps(self, document: Document, blocks: Iterable[Block], above: int = 0) -> None:
        """Take steps in Markdown: list items, scripts, and lines that begin with Run."""
        for block in blocks:
            line = above + block.first
            if block.kind == "list":
                for item in block.children:
                    self.take_item(document, item, above)
            elif block.kind in ("fence", "code"):
                self.take_script(line, document.lines[block.first - 1 : block.last])
            elif block.kind in ("paragraph", "underlined"):
                for number, each in enumerate(block.text.split("\n"), line):
                    if _RUN.match(each):
                        self.take_step(number, each.strip())

    def take_item(self, document: Document, item: Block, above: int = 0) -> None:
        """Take one list item; if it contains scripts, only these are run."""
        scripts = [child for child in item.children if child.kind == "fence"]
        for script in scripts:
            self.take_script(above + script.first, document.lines[script.first - 1 : script.last])
        if not scripts:
            self.take_step(above + item.first, document.item(item))

    def take_script(self, line: int, source: list[str]) -> None:
        """Take the commands of a code block as one, because each may depend on the one before."""
        head = source[0].strip()
        fenced = head[:3] in ("```", "~~~")
        if fenced and head.strip("`~ ").casefold() not in _SHELLS:
            self.note(line, "is a code block in no shell language, so it is not run")
            return
        lines = [each.strip() for each in (source[1:] if fenced else source)]
        if lines and fenced and lines[-1][:3] == head[:3]:
            lines.pop()
        commands = [each.removeprefix("$ ") for each in lines if each and each[0] != "#"]
        if len(commands) > 1:
            commands = ["\n".join(["set -e", *commands])]
        self.checks += commands


def path_in(line: str) -> str:
    """The path on a line, in backticks or as its only word; "" where there is none."""
    first = line.strip().split("\n")[0]
    spans = markdown.code_spans(first) if "`" in first else []
    word = spans[0] if spans else _BEFORE_PATH.sub("", first)
    return word if len(word.split()) == 1 and re.search(r"\w", word) else ""


def short(task_id: str) -> str:
    """The layer and number at the start of an id: `l2-001` of `L2-001-auth-api`."""
    found = ID.match(task_id)
    return found.group().casefold() if found else ""


def _leading_spans(text: str) -> list[str]:
    """The code at the start of the text; code after a word of prose is not a command."""
    spans: list[str] = []
    for is_code, part in markdown.segments(text) if "`" in text else ():
        if is_code:
            spans += [part.strip()] if part.strip() else []
        elif part.strip().casefold() not in _LINKS:
            break
    return spans


_HEADING = re.compile(
    r"(?:Task\s*:?\s+)?(?P<id>L[0-9]{1,3}-[0-9]{1,6}(?:-[\w.-]*\w)?)(?:\s*:\s*|\s+[-–—]\s+|\s*$)(?P<title>.*)",  # noqa: RUF001
    re.IGNORECASE,
)
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "acceptance criteria": "criteria",
        "requirements": "criteria",
        "test requirements": "criteria",
        "files to create": "creates",
        "files to modify": "files",
        "files": "files",
        "file": "files",
        "verification": "steps",
        "verification steps": "steps",
        "checks": "steps",
        "dependencies": "depends on",
        "depends on": "depends on",
        "layer": "layer",
        "priority": "priority",
        "status": "status",
    }
)
_WRITTEN = tuple(each.title().replace(" To ", " to ").replace(" On", " on") for each in _KINDS)
"""The same titles, as they are written."""
_KEYS = ("id", "title", "name", "layer", "status", "depends_on", "dependencies", "priority")
"""The keys of the frontmatter that are read."""
_PATHS = frozenset({"files", "creates"})
_SEPARATORS = re.compile(r"[,;&]|\band\b")
_NAMED = re.compile(r"[\s`*\[]*(?:Task\s+)?(?P<id>L[0-9]{1,3}-[0-9]{1,6}[\w-]*)", re.IGNORECASE)


def is_task(path: str, text: str) -> bool:
    """Whether the file is a task, by its name or by its content."""
    if ID.match(path.rsplit("/", 1)[-1]):
        return True
    if path.endswith(".xml"):
        return _TASK.match(text) is not None
    return _declares_id(path, text) or _titled(markdown.parse(text)) is not None


def read_drafts(path: str, text: str) -> list[Draft]:
    """The tasks in the file; only XML may hold several."""
    return _xml_drafts(path, text) if path.endswith(".xml") else [_Markdown(path, text).draft()]


# Markdown: sections are headings or labels


def _declares_id(path: str, text: str) -> bool:
    value = (frontmatter.keys(path, text) or Keys(1)).get("id")
    return isinstance(value, str) and ID.match(value) is not None


def _titled(document: Document) -> re.Match[str] | None:
    first = next((block for block in document.blocks if block.kind == "heading"), None)
    return _HEADING.fullmatch(first.text) if first else None


class _Markdown:
    """Reads one Markdown file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        front = frontmatter.read(path, text)
        self.data = front.data if front else Keys(1)
        self.body, self.document = frontmatter.parse_body(text)
        self.titled = _titled(self.document)

    def draft(self) -> Draft:
        named = ID.match(self.path.rsplit("/", 1)[-1])
        titled = self.titled
        in_text = text_in(self.data, "id") or (titled["id"] if titled else "")
        task_id = in_text or (named.group() if named else "")
        headings = (block for block in self.document.blocks if block.kind == "heading")
        heading = titled["title"] if titled else next((block.text for block in headings), "")
        title = text_in(self.data, "title") or text_in(self.data, "name") or heading or task_id
        draft = Draft(
            id=task_id,
            title=" ".join(title.split()),
            text=self.body.strip("\r\n"),
            path=self.path,
            line=1,
            layer=text_in(self.data, "layer"),
            done=is_done(text_in(self.data, "status")),
        )
        for key in ("depends_on", "dependencies"):
            for value in self.words(key):
                self.take_ids(draft, 1, value)
        draft.take_priority(1, text_in(self.data, "priority"))
        for kind, line, section in self.sections():
            self.take_section(draft, kind, line, section)
        for label in self.labelled():
            kind = _KINDS[label.label]
            if kind in ("criteria", "files", "creates", "steps", "depends on"):
                self.take_lists(draft, kind, label)
            else:
                self.take_word(draft, kind, label.line, " ".join(label.value()).strip("` "))
        self.warn_of_slips(draft)
        return draft

    def warn_of_slips(self, draft: Draft) -> None:
        for key, meant in key_slips(self.data, _KEYS):
            draft.warn_of_slip(self.data.lines[key], f"the key {key!r}", meant)
        for section in self.document.sections():
            label = markdown.label_of(section.heading.text)
            meant = label_slip(label, _WRITTEN)
            draft.warn_of_slip(section.heading.first, repr(label), meant and f"## {meant}")
        for each in _fields(self.document.blocks):
            meant = label_slip(each.label, _WRITTEN) if not each.level else None
            draft.warn_of_slip(each.line, repr(each.label), meant and f"**{meant}:**")

    def words(self, key: str) -> list[str]:
        value = self.data.get(key)
        values = value if isinstance(value, list) else [value]
        return [each for each in values if isinstance(each, str)]

    def sections(self) -> Iterator[tuple[str, int, Section]]:
        """The sections with known titles; one inside another only divides it."""
        stop = 0
        for section in self.document.sections():
            kind = _KINDS.get(markdown.label_of(section.heading.text))
            if kind and section.start > stop:
                stop = section.stop
                yield kind, section.heading.first, section

    def labelled(self) -> Iterator[markdown.Field]:
        """The known bold labels outside those sections."""
        within = [(section.start, section.stop) for _, _, section in self.sections()]
        inside = {index for start, stop in within for index in range(start, stop)}
        blocks = self.document.blocks
        free = [block for index, block in enumerate(blocks) if index not in inside]
        return (each for each in _fields(free) if each.label in _KINDS and not each.level)

    def take_section(self, draft: Draft, kind: str, line: int, section: Section) -> None:
        blocks = self.document.blocks[section.start : section.stop]
        items = self.document.listed(blocks)
        body = self.document.body(section)
        if kind == "criteria":
            draft.criteria += items or ([body] if body else [])
        elif kind == "steps":
            draft.take_steps(self.document, blocks)
        elif kind in _PATHS:
            self.take_paths(draft, kind, items or body.split("\n"))
        elif kind == "depends on":
            for text in items or body.split("\n"):
                self.take_ids(draft, line, text)
        else:
            self.take_word(draft, kind, line, body)

    def take_lists(self, draft: Draft, kind: str, field: markdown.Field) -> None:
        value = [line for line in field.value() if line]
        items = self.document.listed(field.below)
        if kind == "criteria":
            draft.criteria += [*(["\n".join(value)] if value else []), *items]
            return
        items = [] if value else items  # below a value, a list means something else
        if kind in _PATHS:
            parts = [part for line in value for part in line.split(",")]
            self.take_paths(draft, kind, [*parts, *items])
        elif kind == "steps":
            for span in (span for line in value for span in markdown.code_spans(line)):
                draft.checks.append(span)
            draft.take_steps(self.document, field.below)
        else:
            for text in (*value, *items):
                self.take_ids(draft, field.line, text)

    def take_paths(self, draft: Draft, kind: str, names: Iterable[str]) -> None:
        """Take the files of the task, and of some lists that it must create them."""
        paths = [path for path in map(path_in, names) if path]
        draft.files += paths
        draft.creates += paths if kind == "creates" else []

    def take_ids(self, draft: Draft, line: int, text: str) -> None:
        """Take the ids at the start of the parts of a line; other text is only for the Player."""
        for part in _SEPARATORS.split(text.split("\n", maxsplit=1)[0]):
            if found := _NAMED.match(part):
                draft.depends_on = [*(draft.depends_on or []), found["id"]]
            elif not is_nothing(part):
                draft.note(line, f"{part.strip()!r} names no task, so it is no dependency")

    def take_word(self, draft: Draft, kind: str, line: int, text: str) -> None:
        if kind == "layer":
            draft.layer = draft.layer or text
        elif kind == "status":
            draft.done = draft.done or is_done(text)
        else:
            draft.take_priority(line, text)


def _fields(blocks: Iterable[Block]) -> Iterator[markdown.Field]:
    """The labels among these blocks, and those in the items of their lists."""
    for outer in markdown.fields(blocks):
        yield outer
        for item in markdown.items(outer.below):
            yield from markdown.fields(item.children)


# XML: <task> with meta, requirements, tests and steps

_FILES: Final = ("files-to-create", "files-to-modify", "files")
_CRITERIA: Final = ("acceptance-criteria", "requirements", "test-requirements")
_META = ("id", "name", "title", "layer", "status", "priority", "cwd", "depends-on")
"""The elements of <meta> that are read, and the attributes of <task>."""
_INSIDE_TASK = (
    "meta", "context", "dependencies", "depends-on", "verification", "exports", *_FILES, *_CRITERIA,
)  # fmt: skip
_HOLDERS = frozenset(
    {"tasks", "task", "meta", "context", "dependencies", "depends-on", "verification", "exports",
     "from-feature", *_FILES, *_CRITERIA}
)  # fmt: skip
# What may come before the task. Possessive, so that no text is tried twice.
_TASK = re.compile(
    r"\A\ufeff?(?>\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>)*+<tasks?[\s>]", re.DOTALL
)
_INSIDE = re.compile(r"[^/\\~][^\\]*")


def _xml_drafts(path: str, text: str) -> list[Draft]:
    root = xml.read(path, text, _HOLDERS)
    if root.name not in ("task", "tasks"):
        cure = did_you_mean(root.name, ("task", "tasks"), "a task file holds one <task>")
        raise PlanError(f"<{root.name}> is not a <task>", path=path, line=root.line, hint=cure)
    return [
        _xml_draft(path, each) for each in ([root] if root.name == "task" else root.named("task"))
    ]


def _xml_draft(path: str, task: Element) -> Draft:
    known = dict(task.attributes)
    known.update({child.name: child.text for meta in task.named("meta") for child in meta.children})
    lines = {child.name: child.line for meta in task.named("meta") for child in meta.children}
    in_name = ID.match(path.rsplit("/", 1)[-1])
    task_id = known.get("id", "").strip() or (in_name.group() if in_name else "")
    if not task_id:
        cure = "write <meta><id>L2-001</id>…</meta>"
        raise PlanError("the task has no id", path=path, line=task.line, hint=cure)
    title = known.get("name") or known.get("title") or task_id
    draft = Draft(
        id=task_id,
        title=" ".join(title.split()),
        text=xml.dedented(task.source),
        path=path,
        line=task.line,
        layer=known.get("layer", ""),
        done=is_done(known.get("status")),
        depends_on=_depends_on(task, known),
        needs=_names(task.named("dependencies"), "interface"),
        exports=_names(task.named("exports"), "interface", "export"),
    )
    draft.take_priority(lines.get("priority", task.line), known.get("priority", "").strip())
    if not known.get("id", "").strip():
        draft.note(task.line, f"has no <id>, so its id is the file's name: {task_id!r}")
    _warn_of_slips(draft, task)
    _take_criteria(draft, task)
    _take_files(draft, task)
    _take_steps(draft, task)
    _move(draft, known.get("cwd", ""), lines.get("cwd", task.line))
    return draft


def _warn_of_slips(draft: Draft, task: Element) -> None:
    """Warn of attributes and elements that are slips of those that are read."""
    for name in task.attributes:
        draft.warn_of_slip(task.line, f"the attribute {name!r}", slip_of(name, _META))
    places = ((task, _INSIDE_TASK), *((each, _META) for each in task.named("meta")))
    for holder, known in (*places, *((each, _CRITERIA) for each in task.named("context"))):
        for child in holder.children:
            meant = slip_of(child.name, known)
            draft.warn_of_slip(child.line, f"<{child.name}>", meant and f"<{meant}>")


def _depends_on(task: Element, known: dict[str, str]) -> list[str] | None:
    """The ids of tasks that it names; an interface names none."""
    found: list[str] = []
    for holder in task.named("dependencies", "depends-on"):
        for child in holder.named("dependency", "task", "depends-on"):
            attributes = child.attributes
            named = attributes.get("task") or attributes.get("id") or attributes.get("ref")
            # Longer text describes a contract.
            bare = ID.match(child.text) is not None and len(child.text.split()) == 1
            found += [named] if named else [child.text] if bare else []
        found += [] if holder.children else _ids(holder.text)
    found += _ids(known.get("depends-on", ""))
    return list(dict.fromkeys(found)) or None


def _ids(text: str) -> list[str]:
    """The ids in a text that consists of ids only."""
    words = re.split(r"[\s,;]+", text.strip())
    return words if all(map(ID.match, words)) else []


def _names(holders: Iterable[Element], *kinds: str) -> list[str]:
    names = (child.attributes.get("name", "") for each in holders for child in each.named(*kinds))
    return [name for name in names if name]


def _take_criteria(draft: Draft, task: Element) -> None:
    holders = [task, *task.named("context")]
    for name in _CRITERIA:
        for section in (each for holder in holders for each in holder.named(name)):
            for each in (section, *section.named("from-feature")):
                texts = [child.text for child in each.children if child.name != "from-feature"]
                draft.criteria += [text for text in texts or _listed(each.text) if text]


def _take_files(draft: Draft, task: Element) -> None:
    for section in task.named(*_FILES):
        files = [child.attributes.get("path") or child.text for child in section.children]
        for line in files or section.text.split("\n"):
            path = path_in(line.strip().removeprefix("- "))
            draft.files += [path] if path else []
            draft.creates += [path] if path and section.name == "files-to-create" else []


def _take_steps(draft: Draft, task: Element) -> None:
    for section in task.named("verification"):
        for step in section.children:
            if step.name in ("command", "check", "cmd"):
                draft.checks += [step.text.strip("` ")] if step.text.strip("` ") else []
            elif "\n```" in step.text:
                document = markdown.parse(step.text)
                draft.take_steps(document, document.blocks, step.line - 1)
            else:
                draft.take_step(step.line, step.text)
        if not section.children:
            document = markdown.parse(section.text)
            draft.take_steps(document, document.blocks, section.line)


def _listed(text: str) -> list[str]:
    """The list items of a section without elements, else all of it."""
    document = markdown.parse(text)
    return document.listed(document.blocks) or [text]


def _move(draft: Draft, folder: str, line: int) -> None:
    """Run the task's commands in the folder that it names."""
    folder = folder.strip().rstrip("/")
    if folder in ("", "."):
        return
    if not _INSIDE.fullmatch(folder) or ".." in folder.split("/"):
        cure = "name a folder inside the project, such as 'packages/api'"
        raise PlanError(f"<cwd> cannot be {folder!r}", path=draft.path, line=line, hint=cure)
    draft.checks = [f"cd {shlex.quote(folder)} && {{ {each}\n}}" for each in draft.checks]
