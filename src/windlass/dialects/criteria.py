"""Acceptance criteria in a Markdown document, wherever and however its author wrote them down.

Where several places may be meant the surest wins, and only it is read: a report of what was met
repeats the criteria, and a goal beside them is not what the author asked to be judged.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from windlass.dialects import markdown
from windlass.dialects.markdown import Block, Document

_OWN = re.compile(
    r"(?:(?:additional|further|updated|revised|detailed|technical|functional|non functional"
    r"|implementation|task|core|key) )?acceptance criteri(?:a|on)(?: for .+)?"
)
_REPORTED = re.compile(r"acceptance criteri(?:a|on)\b.*")
_OTHERS = re.compile(
    r"success criteri(?:a|on)|definition of done|dod|done when"
    r"|(?:done|completion|exit|pass|validation|verification) criteria"
)

_SYMBOLS = re.compile(r"[^\w\s():/.-]+")
_NUMBERING = re.compile(r"[\W_]*(?:[0-9]+(?:\.[0-9]+)*[.):]?\s+)?[\W_]*")
_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_CELLS = re.compile(r"(?<!\\)\|")
_WORD = re.compile(r"\w")
_HEAD = 2
"""A table's heading, and the line under it."""
_NAMED = re.compile(
    r"\W*(?:AC|criterion|scenario|requirement|given)\b|\W*(?:AC|FR|NFR|R)[-_ ]?[0-9]|[0-9]+[.)]",
    re.IGNORECASE,
)
"""How a heading or a line begins that is a criterion, and not the title of a list of them."""
_MARK = re.compile(r"[ \t]*(?:\[[ xX~]?\]|[☐☑☒✓✔✅❌•·▪‣◦])[ \t]*(?=\S)")
_BEGINS = re.compile(r"[ \t]*(?:\*\*|__)?AC[-_ ]?[0-9]|[ \t]*(?:\*\*|__)\S", re.IGNORECASE)


def read(document: Document, data: object) -> tuple[tuple[str, ...], int]:
    """The criteria, and the line of others that stand beside them and are not read, else 0.

    `data` is what the frontmatter has under that name.
    """
    reader = _Reader(document)
    other = reader.line_of(_OTHERS.fullmatch)
    surely = (
        reader.under(_OWN.fullmatch, prose=False)
        or reader.labelled(_OWN.fullmatch)
        or _listed(data)
        or reader.under(_OWN.fullmatch, prose=True)
    )
    if surely:
        return tuple(surely), other
    found = (
        reader.under(_REPORTED.fullmatch, prose=False)
        or reader.under(_OTHERS.fullmatch, prose=True)
        or reader.labelled(_OTHERS.fullmatch)
    )
    return tuple(found), 0


def name_of(text: str) -> str:
    """A heading as it is compared: without numbers, emphasis, symbols and asides."""
    return _NUMBERING.sub("", markdown.label_of(_SYMBOLS.sub(" ", text)), count=1).rstrip(" -/.:")


_Known = Callable[[str], object]


class _Reader:
    """One reading of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.sections = [
            (section, name_of(section.heading.text))
            for section in document.sections(lambda _text: False)
        ]

    def line_of(self, known: _Known) -> int:
        return next((each.heading.first for each, name in self.sections if known(name)), 0)

    def under(self, known: _Known, *, prose: bool) -> list[str]:
        """What stands under the headings of such a name."""
        found: list[str] = []
        stop = 0
        for section, name in self.sections:
            if known(name) and section.start > stop:
                stop = section.stop
                # A second list may be the first once more, with its ticks.
                before = set(found)
                here = self.inside(self.document.blocks[section.start : stop], prose=prose)
                found += [text for text in here if text not in before]
        return found

    def labelled(self, known: _Known) -> list[str]:
        """What stands under bold labels of such a name."""
        found: list[str] = []
        for field in markdown.fields(self.document.blocks):
            if not field.level and known(field.label):
                beside = [line for line in field.text if line]
                below = self.inside(field.below, prose=True)
                found += below or ["\n".join(beside)] * bool(beside)
        return found

    def inside(self, blocks: Iterable[Block], *, prose: bool) -> list[str]:
        """The criteria among these blocks: items and rows, else what is written out.

        Labels in bold and deeper headings only divide lists, unless a heading is a criterion.
        """
        parts = list(_parts(blocks))
        listed = [self.items(part) for _, part in parts]
        has_lists = any(listed)
        if not has_lists and not prose:
            return []
        headed = any(heading is not None for heading, _ in parts)
        found: list[str] = []
        for index, (heading, part) in enumerate(parts):
            if listed[index]:
                found += listed[index]
            elif heading is None:
                found += [] if has_lists or headed else self.written(part)
            elif not has_lists or _NAMED.match(heading.text):
                deeper = parts[index + 1][0] if index + 1 < len(parts) else None
                divides = deeper is not None and deeper.level > heading.level
                if part or not divides:
                    found.append(f"{heading.text}\n\n{self.source(part)}".strip())
        return found

    def items(self, blocks: Sequence[Block]) -> list[str]:
        """Each list's items; where there is no list, each table's rows."""
        found = [text for item in markdown.items(blocks) if (text := self.document.item(item))]
        return found or [row for block in blocks for row in _rows(block)]

    def written(self, blocks: Sequence[Block]) -> list[str]:
        """Criteria in prose: one where nothing tells where the next begins."""
        found: list[list[str]] = []
        marked = False
        for block in blocks:
            lines = self.document.lines[block.first - 1 : block.last]
            for number, line in enumerate(lines):
                mark = _MARK.match(line) if block.kind == "paragraph" else None
                begins = block.kind == "paragraph" and _BEGINS.match(line)
                if mark or (begins and (number == 0 or _NAMED.match(line))):
                    found = found if marked else []  # what stood before only led up to this
                    marked = True
                    found.append([])
                elif not found:
                    found.append([])
                found[-1].append(line[mark.end() :] if mark else line)
            found[-1].append("")
        texts = ("\n".join(lines).strip() for lines in found)
        return [text for text in texts if text]

    def source(self, blocks: Sequence[Block]) -> str:
        if not blocks:
            return ""
        return "\n".join(self.document.lines[blocks[0].first - 1 : blocks[-1].last]).strip()


def _parts(blocks: Iterable[Block]) -> Iterator[tuple[Block | None, list[Block]]]:
    """What stands under each heading, and before the first."""
    heading: Block | None = None
    part: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            if heading is not None or part:
                yield heading, part
            heading, part = block, []
        elif block.kind not in ("rule", "html"):
            part.append(block)
    if heading is not None or part:
        yield heading, part


def _rows(block: Block) -> list[str]:
    """The rows of a table, which plain Markdown takes for a paragraph; a row's marks are none."""
    lines = block.text.split("\n")
    if block.kind != "paragraph" or len(lines) < _HEAD or "|" not in lines[0]:
        return []
    if not _RULE.fullmatch(lines[1].strip()):
        return []
    rows = ([cell.strip() for cell in _CELLS.split(line)] for line in lines[_HEAD:])
    texts = (" | ".join(cell for cell in row if _WORD.search(cell)) for row in rows)
    return [text for text in texts if text]


def _listed(data: object) -> list[str]:
    values: list[object] = data if isinstance(data, list) else [data]  # pyright: ignore[reportUnknownVariableType]
    return [text.strip() for text in values if isinstance(text, str) and text.strip()]
