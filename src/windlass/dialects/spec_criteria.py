"""Acceptance criteria of a spec: what they are, and which group each of them binds.

SpecFlow's own workers say themselves which criteria they met, and nobody asks for the rest. Here a
criterion that nobody is held to would be one that nobody checks, so each binds somebody:

1. What a group's row says it does is the group's own first criterion: it must be done by that
   group, whatever else is.
2. A criterion goes to the groups that the spec assigns it to: by a label ('G2: …', '… (G1, G3)'),
   by a heading of the group above it, by the group's own section, or by number in its row ('AC2').
3. All others speak of the whole, which is there only once the last wave is: they bind the group of
   that wave for which nobody waits. Where there are several, none of them sees the others' work, so
   each is bound as far as its own part goes; bound to all of it, none could ever be approved.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from windlass.dialects import markdown, spec_groups
from windlass.dialects.markdown import Block, Document
from windlass.dialects.spec_groups import Group
from windlass.dialects.tables import table_of

LABEL = "acceptance criteria"
OWN_PART = "As far as this group's part goes: "

_CODE = re.compile(r"\A[*_\[(]*AC[ -]?(?P<number>[0-9]{1,4}[a-z]?)\b", re.IGNORECASE)
_CLAIMS = re.compile(
    r"\b(?P<code>AC[ -]?)?(?P<low>[0-9]{1,4})(?P<letter>[a-z]?)\b"
    r"(?:\s*[-–]\s*(?:AC[ -]?)?(?P<high>[0-9]{1,4})\b)?",  # noqa: RUF001
    re.IGNORECASE,
)
_LEADING = re.compile(r"\A[\[*_`(]*(?P<ids>[\w.,&+ -]{1,200}?)[\])*_`]*\s*(?:[:–—]|\s-\s|\]|\*\*)")  # noqa: RUF001
_TRAILING = re.compile(r"[\[(](?P<ids>[^()\[\]]{1,200})[\])][.\s]*\Z")
_BETWEEN = re.compile(r"[,;&+/]|\band\b", re.IGNORECASE)


class Criterion(Struct, frozen=True, kw_only=True):
    """One criterion of the spec."""

    text: str
    number: str
    """What the spec calls it, else its place among the criteria."""
    group: str = ""
    """The heading of a group that it stands under, as written."""


def is_criteria(heading: str) -> bool:
    """Whether a heading stands above acceptance criteria; it may be numbered."""
    return markdown.label_of(markdown.unnumbered(heading)) == LABEL


def read(document: Document, blocks: Sequence[Block]) -> list[Criterion]:
    """The criteria among these blocks: items of lists, or parts that are labelled 'AC1'.

    Where there is neither, the rows of a table, else all that stands there.
    """
    found = list(_parts(document, blocks))
    if not found:
        rows = [row for block in blocks if (table := table_of(block)) for row in table.rows]
        found = [(" | ".join(filter(None, row.cells)), "") for row in rows]
    if not found and blocks:
        lines = document.lines[blocks[0].first - 1 : blocks[-1].last]
        found = [("\n".join(lines).strip(), "")]
    return [
        Criterion(text=text, number=_number(text, place), group=group)
        for place, (text, group) in enumerate(found, 1)
        if text
    ]


def _number(text: str, place: int) -> str:
    code = _CODE.match(text)
    return (code["number"].lstrip("0") if code else str(place)).casefold()


def _parts(document: Document, blocks: Sequence[Block]) -> Iterator[tuple[str, str]]:
    """Each criterion with the heading of a group above it."""
    labelled: list[Block] = []
    level = 7
    above = Block(kind="heading", first=0, last=0, level=7)
    for block in blocks:
        heading = block.kind == "heading"
        starts = _CODE.match(block.text) and (heading or block.text.startswith(("**", "__")))
        if labelled and (starts or block.kind == "rule" or (heading and block.level <= level)):
            yield _source(document, labelled), above.text
            labelled = []
        if starts:
            labelled, level = [block], block.level or 7
        elif labelled:
            labelled.append(block)
        elif heading:
            above = block
        else:
            for item in markdown.items((block,)):
                yield document.item(item), above.text
    if labelled:
        yield _source(document, labelled), above.text


def _source(document: Document, blocks: Sequence[Block]) -> str:
    lines = document.lines[blocks[0].first - 1 : blocks[-1].last]
    return "\n".join([lines[0].lstrip("# \t"), *lines[1:]]).strip()


def bound(
    groups: Sequence[Group],
    criteria: Sequence[Criterion],
    own: Mapping[str, Sequence[Criterion]],
) -> dict[str, tuple[str, ...]]:
    """The criteria that bind each group; `own` are those of the groups' own sections."""
    ids = {group.id.casefold(): group.id for group in groups}
    last = max(group.wave for group in groups)
    waited_for = {dep for group in groups for dep in group.depends_on}
    ends = [group.id for group in groups if group.wave == last]
    final = [end for end in ends if end not in waited_for]
    given = {group.id: [group.tasks] if group.tasks else [] for group in groups}
    for group in groups:
        given[group.id] += [criterion.text for criterion in own.get(group.id, ())]
    by_number = _claimed(groups, criteria)
    for criterion in criteria:
        assigned = _assigned(criterion, ids) or by_number[criterion.number]
        for group_id in assigned:
            given[group_id].append(criterion.text)
        for group_id in () if assigned else final:
            alone = len(final) == 1
            given[group_id].append(criterion.text if alone else OWN_PART + criterion.text)
    return {group_id: tuple(texts) for group_id, texts in given.items()}


def _assigned(criterion: Criterion, ids: Mapping[str, str]) -> list[str]:
    for pattern in (_LEADING, _TRAILING):
        found = pattern.search(criterion.text)
        if found and (named := _named(found["ids"], ids)):
            return named
    above = spec_groups.group_of(criterion.group, ids)
    return [above[0]] if above else []


def _named(text: str, ids: Mapping[str, str]) -> list[str]:
    """The groups that the text is a list of; none where anything else stands in it."""
    words = (spec_groups.bare_id(part).casefold() for part in _BETWEEN.split(text))
    found = [ids.get(word) for word in words]
    return [each for each in dict.fromkeys(found) if each] if all(found) else []


def _claimed(groups: Iterable[Group], criteria: Sequence[Criterion]) -> dict[str, list[str]]:
    """The groups that name a criterion by its number: as 'AC2', or in a column for that."""
    found: dict[str, list[str]] = {criterion.number: [] for criterion in criteria}
    for group in groups:
        claims = [claim for claim in _CLAIMS.finditer(group.tasks) if claim["code"]]
        for claim in (*claims, *_CLAIMS.finditer(group.criteria)):
            low = int(claim["low"])
            high = min(int(claim["high"] or low), len(criteria))
            numbers = {f"{low}{claim['letter'].casefold()}", *map(str, range(low, high + 1))}
            for number in numbers & found.keys():
                found[number] += [] if group.id in found[number] else [group.id]
    return found
