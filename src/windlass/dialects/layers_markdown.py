"""A task file of a layers folder that is Markdown: sections are headings or labels."""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from windlass.dialects import frontmatter, markdown
from windlass.dialects.frontmatter import Data, Frontmatter
from windlass.dialects.layers_draft import DONE, ID, Draft, listed, path_in
from windlass.dialects.markdown import Document, Section
from windlass.errors import PlanError

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
_PATHS = frozenset({"files", "creates"})
_SEPARATORS = re.compile(r"[,;&]|\band\b")
_NAMED = re.compile(r"[\s`*\[]*(?:Task\s+)?(?P<id>L[0-9]{1,3}-[0-9]{1,6}[\w-]*)", re.IGNORECASE)
_NOTHING = frozenset({"", "none", "n/a", "-", "nothing"})


def is_task(path: str, text: str) -> bool:
    """Whether the file is a task: by its name, its frontmatter's id or its first heading."""
    return bool(
        ID.match(path.rsplit("/", 1)[-1]) or _declared(path, text) or _titled(markdown.parse(text))
    )


def draft(path: str, text: str) -> Draft:
    """The task that the file is."""
    return _Reader(path, text).draft()


def _declared(path: str, text: str) -> bool:
    try:
        found = frontmatter.read(path, text)
    except PlanError:
        return False
    value = found.data.get("id") if found else None
    return isinstance(value, str) and ID.match(value) is not None


def _titled(document: Document) -> re.Match[str] | None:
    first = next((block for block in document.blocks if block.kind == "heading"), None)
    return _HEADING.fullmatch(first.text) if first else None


class _Reader:
    """One reading of one text."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.front: Frontmatter | None = frontmatter.read(path, text)
        self.data: dict[str, Data] = self.front.data if self.front else {}
        self.body = frontmatter.body(text)
        above = len(markdown.split_lines(text[: self.front.body])) - 1 if self.front else 0
        # Blank lines for what stands above, so that lines count as in the file.
        self.document: Document = markdown.parse("\n" * above + self.body)
        self.titled = _titled(self.document)

    def draft(self) -> Draft:
        named = ID.match(self.path.rsplit("/", 1)[-1])
        titled = self.titled
        in_text = self.word("id") or (titled["id"] if titled else "")
        task_id = in_text or (named.group() if named else "")
        headings = (block for block in self.document.blocks if block.kind == "heading")
        heading = titled["title"] if titled else next((block.text for block in headings), "")
        title = self.word("title") or self.word("name") or heading or task_id
        draft = Draft(
            id=task_id,
            title=" ".join(title.split()),
            text=self.body.strip("\r\n"),
            path=self.path,
            line=1,
            layer=self.word("layer"),
            done=self.word("status").casefold() in DONE,
        )
        for key in ("depends_on", "dependencies"):
            for value in self.words(key):
                self.take_ids(draft, 1, value)
        draft.take_priority(1, self.word("priority"))
        for kind, line, section in self.sections():
            self.take_section(draft, kind, line, section)
        for field in self.labelled():
            kind = _KINDS[field.label]
            if kind in ("criteria", "files", "creates", "steps", "depends on"):
                self.take_lists(draft, kind, field)
            else:
                self.take_word(draft, kind, field.line, " ".join(field.value()).strip("` "))
        return draft

    def word(self, key: str) -> str:
        value = self.data.get(key)
        return value.strip() if isinstance(value, str) else ""

    def words(self, key: str) -> list[str]:
        value = self.data.get(key)
        values = value if isinstance(value, list) else [value]
        return [each for each in values if isinstance(each, str)]

    def sections(self) -> Iterator[tuple[str, int, Section]]:
        """The sections that mean something; one within another only divides it."""
        stop = 0
        for section in self.document.sections(lambda _text: False):
            kind = _KINDS.get(markdown.label_of(section.heading.text))
            if kind and section.start > stop:
                stop = section.stop
                yield kind, section.heading.first, section

    def labelled(self) -> Iterator[markdown.Field]:
        """The bold labels that mean something, outside those sections."""
        within = [(section.start, section.stop) for _, _, section in self.sections()]
        inside = {index for start, stop in within for index in range(start, stop)}
        blocks = self.document.blocks
        free = [block for index, block in enumerate(blocks) if index not in inside]
        for field in markdown.fields(free):
            inner = [
                each
                for item in markdown.items(field.below)
                for each in markdown.fields(item.children)
            ]
            for each in (field, *inner):
                if each.label in _KINDS and not each.level:
                    yield each

    def take_section(self, draft: Draft, kind: str, line: int, section: Section) -> None:
        blocks = self.document.blocks[section.start : section.stop]
        items = listed(self.document, blocks)
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
        items = listed(self.document, field.below)
        if kind == "criteria":
            draft.criteria += [*(["\n".join(value)] if value else []), *items]
            return
        items = [] if value else items  # beside a value, a list is something else
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
        """The files that it is about; some lists of them say that they are to be there."""
        paths = [path for path in map(path_in, names) if path]
        draft.files += paths
        draft.creates += paths if kind == "creates" else []

    def take_ids(self, draft: Draft, line: int, text: str) -> None:
        """The tasks that a line begins its parts with; what names none is the Player's to read."""
        for part in _SEPARATORS.split(text.split("\n", maxsplit=1)[0]):
            if found := _NAMED.match(part):
                draft.depends_on = [*(draft.depends_on or []), found["id"]]
            elif part.strip("`* .").casefold() not in _NOTHING:
                draft.note(line, f"{part.strip()!r} names no task, so nothing waits for it")

    def take_word(self, draft: Draft, kind: str, line: int, said: str) -> None:
        if kind == "layer":
            draft.layer = draft.layer or said
        elif kind == "status":
            draft.done = draft.done or said.casefold() in DONE
        else:
            draft.take_priority(line, said)
