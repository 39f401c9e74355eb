"""Acceptance criteria in a Markdown document: under headings or labels, as lists, tables or prose.

If several places may hold them, only the most certain one is read. A report of the result repeats
the criteria, and a goal beside them is not a criterion.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from windlass.formats import markdown
from windlass.formats.markdown import Block, Document
from windlass.formats.slips import label_slip
from windlass.formats.tables import table_of
from windlass.formats.yaml import Data

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
_WORD = re.compile(r"\w")
_NAMED = re.compile(
    r"\W*(?:AC|criterion|scenario|requirement|given)\b|\W*(?:AC|FR|NFR|R)[-_ ]?[0-9]|[0-9]+[.)]",
    re.IGNORECASE,
)
"""The start of a heading or line that is a criterion, and not the title of a list."""
_MARK = re.compile(r"[ \t]*(?:\[[ xX~]?\]|[☐☑☒✓✔✅❌•·▪‣◦])[ \t]*(?=\S)")
_BEGINS = re.compile(r"[ \t]*(?:\*\*|__)?AC[-_ ]?[0-9]|[ \t]*(?:\*\*|__)\S", re.IGNORECASE)


def read(document: Document, data: Data) -> tuple[tuple[str, ...], int]:
    """The criteria, and the line of other criteria beside them that are not read, else 0.

    `data` is the value of that name in the frontmatter.
    """
    reader = _Reader(document)
    other = reader.line_of(_OTHERS.fullmatch)
    surely = (
        reader.under(_OWN.fullmatch, prose=False)
        or reader.labelled(_OWN.fullmatch)
        or listed(data)
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


_WRITTEN = ("Acceptance Criteria", "Success Criteria", "Definition of Done")


def slips(document: Document) -> Iterator[tuple[int, str, str]]:
    """Headings and labels that are slips of those that are read: line, as written, as meant."""
    headings = ((each.heading.first, name_of(each.heading.text)) for each in document.sections())
    labels = ((f.line, f.label) for f in markdown.fields(document.blocks) if not f.level)
    for line, name in (*headings, *labels):
        known = any(each.fullmatch(name) for each in (_OWN, _REPORTED, _OTHERS))
        if not known and (meant := label_slip(name, _WRITTEN)):
            yield line, name, meant


def name_of(text: str) -> str:
    """A heading as it is compared: without numbers, emphasis, symbols and asides."""
    return _NUMBERING.sub("", markdown.label_of(_SYMBOLS.sub(" ", text)), count=1).rstrip(" -/.:")


_Known = Callable[[str], object]


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.sections = [
            (section, name_of(section.heading.text)) for section in document.sections()
        ]

    def line_of(self, known: _Known) -> int:
        return next((each.heading.first for each, name in self.sections if known(name)), 0)

    def under(self, known: _Known, *, prose: bool) -> list[str]:
        """The criteria under the headings of such a name."""
        found: list[str] = []
        stop = 0
        for section, name in self.sections:
            if known(name) and section.start > stop:
                stop = section.stop
                # A second list may repeat the first, with its ticks.
                before = set(found)
                here = self.inside(self.document.blocks[section.start : stop], prose=prose)
                found += [text for text in here if text not in before]
        return found

    def labelled(self, known: _Known) -> list[str]:
        """The criteria under bold labels of such a name."""
        found: list[str] = []
        for field in markdown.fields(self.document.blocks):
            if not field.level and known(field.label):
                beside = [line for line in field.text if line]
                below = self.inside(field.below, prose=True)
                found += below or ["\n".join(beside)] * bool(beside)
        return found

    def inside(self, blocks: Iterable[Block], *, prose: bool) -> list[str]:
        """The criteria among these blocks: list items and table rows, else prose.

        Bold labels and deeper headings only divide lists, unless a heading is a criterion.
        """
        parts = list(_parts(blocks))
        lists = [self.items(part) for _, part in parts]
        has_lists = any(lists)
        if not has_lists and not prose:
            return []
        headed = any(heading is not None for heading, _ in parts)
        found: list[str] = []
        for index, (heading, part) in enumerate(parts):
            if lists[index]:
                found += lists[index]
            elif heading is None:
                found += [] if has_lists or headed else self.written(part)
            elif not has_lists or _NAMED.match(heading.text):
                deeper = parts[index + 1][0] if index + 1 < len(parts) else None
                divides = deeper is not None and deeper.level > heading.level
                if part or not divides:
                    source = self.document.source(part)
                    found.append(f"{heading.text}\n\n{source}".strip())
        return found

    def items(self, blocks: Sequence[Block]) -> list[str]:
        """Each list's items; where there is no list, each table's rows."""
        return self.document.listed(blocks) or [row for block in blocks for row in _rows(block)]

    def written(self, blocks: Sequence[Block]) -> list[str]:
        """Criteria in prose: one criterion, unless marks show where the next begins."""
        found: list[list[str]] = []
        marked = False
        for block in blocks:
            lines = self.document.lines[block.first - 1 : block.last]
            for number, line in enumerate(lines):
                mark = _MARK.match(line) if block.kind == "paragraph" else None
                begins = block.kind == "paragraph" and _BEGINS.match(line)
                if mark or (begins and (number == 0 or _NAMED.match(line))):
                    if not marked:
                        found = []  # the text before the first mark is an introduction
                    marked = True
                    found.append([])
                elif not found:
                    found.append([])
                found[-1].append(line[mark.end() :] if mark else line)
            found[-1].append("")
        texts = ("\n".join(lines).strip() for lines in found)
        return [text for text in texts if text]


def _parts(blocks: Iterable[Block]) -> Iterator[tuple[Block | None, list[Block]]]:
    """The blocks under each heading, and those before the first."""
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
    """The rows of a table, without cells that hold only a mark."""
    table = table_of(block)
    rows = table.rows if table else ()
    # A pipe inside a cell stays escaped, because pipes separate the cells of the criterion too.
    cells = ([cell.replace("|", "\\|") for cell in row.cells] for row in rows)
    texts = (" | ".join(cell for cell in row if _WORD.search(cell)) for row in cells)
    return [text for text in texts if text]


def listed(data: Data) -> tuple[str, ...]:
    """The criteria in a YAML value: a list or one text."""
    values = data if isinstance(data, list) else [data]
    return tuple(text.strip() for text in values if isinstance(text, str) and text.strip())
