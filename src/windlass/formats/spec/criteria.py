"""Acceptance criteria of a spec, and the groups that each of them binds.

SpecFlow's workers report which criteria they met, and the others are never checked. In Windlass
every criterion binds at least one group:

1. The text of a group's row is the group's first criterion.
2. A criterion binds the groups that the spec assigns it to: by a label ('G2: …', '… (G1, G3)'), by
   a heading of the group above it, by the group's own section, or by number in its row ('AC2').
3. All others are about the whole, which exists only in the last wave. They bind the group of that
   wave on which no other group depends. If there are several, no group sees the work of the
   others, so each is bound only for its own part; otherwise none could be approved.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from windlass.formats import markdown
from windlass.formats.markdown import Block, Document
from windlass.formats.spec.groups import SEPARATORS, Group, bare_id, group_of
from windlass.formats.tables import table_of

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


class Criterion(Struct, frozen=True, kw_only=True):
    """One criterion of the spec."""

    text: str
    number: str
    """Its number in the spec, else its place among the criteria."""
    group: str = ""
    """The heading of a group above it, as written."""


def is_criteria(heading: str) -> bool:
    """Whether the heading is one of acceptance criteria; it may be numbered."""
    return markdown.label_of(markdown.unnumbered(heading)) == LABEL


def read(document: Document, blocks: Sequence[Block]) -> list[Criterion]:
    """The criteria among these blocks: list items, or parts with a label such as 'AC1'.

    Where there are none, the rows of a table, else the whole text.
    """
    found = list(_parts(document, blocks))
    if not found:
        rows = [row for block in blocks if (table := table_of(block)) for row in table.rows]
        found = [(" | ".join(filter(None, row.cells)), "") for row in rows]
    if not found and blocks:
        found = [(document.source(blocks).strip(), "")]
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
    return document.source(blocks).lstrip("# \t").strip()


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
    above = group_of(criterion.group, ids)
    return [above[0]] if above else []


def _named(text: str, ids: Mapping[str, str]) -> list[str]:
    """The groups in a text that is a list of groups only."""
    words = (bare_id(part).casefold() for part in SEPARATORS.split(text))
    found = [ids.get(word) for word in words]
    return [each for each in dict.fromkeys(found) if each] if all(found) else []


def _claimed(groups: Iterable[Group], criteria: Sequence[Criterion]) -> dict[str, list[str]]:
    """The groups that name a criterion by its number: as 'AC2', or in a column of criteria."""
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
