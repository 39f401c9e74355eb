"""In which order the tasks of a spec-kit list run: by their marks, and by what the text declares.

Within a phase tasks run in the list's order, and neighbours marked `[P]` run beside each other:
they form one step. A task without the mark is a step of its own. A step waits for the whole step
before it, and so for all before that. A heading inside a phase ends a step, for it divides tests
from implementation, or models from services, and these wait for each other.

Beside that binds what is said by id and without a doubt: `(depends on T012, T013)` in a task, and
`T016 blocks T018`, `T004-T007 before T008` or `T001 → T002` in a section on dependencies. What
contradicts the order of the list cannot bind, for both cannot be had.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from windlass.dialects.speckit_line import ID, TO

_ASIDE = r"(?: ?\((?:[^()T]|T(?![-_]?[0-9]))*\))?"
_ONE = rf"\b{ID}(?: ?{TO} ?{ID})?{_ASIDE}"
_IDS = rf"{_ONE}(?:(?: ?[,;&+/] ?(?:and |& )?| and ){_ONE})*"
_LIST = re.compile(_IDS)
_MEMBER = re.compile(rf"(?P<first>{ID})(?: ?{TO} ?(?P<last>{ID}))?")
_NUMBER = re.compile(r"[0-9]+")
_DECLARED = re.compile(
    rf"(?:(?P<who>{_IDS}) (?:all |both )?)?"
    r"(?P<no>\b(?:no|not|never|without|n't) (?:longer )?)?"
    r"\b(?:depend(?:s|ing|ent)? on|dependenc(?:y|ies) ?:|dependenc(?:y|ies) on|deps? ?:)"
    rf"(?: ?:)?(?: ?(?:completion of|requires?|tasks?))* ?(?P<ids>{_IDS})",
    re.IGNORECASE,
)
_RELATION = re.compile(
    r"\b(?:before|after|blocks?|blocked|depend\w*|requires?|until|prerequisites?)\b|→|->|=>|←",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"\b(?:not|no|unless|if|when|once|only|optional(?:ly)?|may|might|can|could|ideally|either|or|"
    r"except|without|parallel|independent(?:ly)?|together|simultaneously|alongside|then)\b|n't",
    re.IGNORECASE,
)
_GROUP = r"(?:(?:all |the )?(?:tasks? )?(?:[\w&'-]+ ){0,6}\(?)?"
_BEFORE = re.compile(
    r"[)\]:]? ?(?:must |should |has to |have to |needs? to )?(?:be )?"
    r"(?:complete[sd]? |finish(?:es|ed)? |done |comes? |runs? |pass(?:es)? |written )?"
    rf"(?:and fail )?(?:before|blocks?|→|->|=>) ?{_GROUP}",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"[)\]:]? ?(?:all |both |each )?(?:must |should )?"
    r"(?:depends? on|requires?|waits? for|(?:is|are) blocked by|(?:comes? |runs? |starts? )?after"
    rf"|← ?(?:depends? on)?) ?(?:completion of )?{_GROUP}",
    re.IGNORECASE,
)
_BEGIN = re.compile(r"[\w &'/-]{0,60}[(:]? ?")
_END = re.compile(r"\)?(?: (?:complet\w+|tasks?))?(?: ?\([^()]*\))?(?: [-–—:] .*)?[.;,]?")  # noqa: RUF001

MAX_EDGES = 2_500
"""How many dependencies one step may have on another, each task of it on each."""


class Place(Struct, frozen=True, kw_only=True):
    """Where a task stands in the list."""

    id: str
    phase: int
    section: int
    """The line of the nearest heading."""
    parallel: bool


class Told(Struct, frozen=True, kw_only=True):
    """That some tasks wait for others; the ids are as written, ranges and all."""

    tasks: str
    """Empty where it is the task itself whose text says it."""
    wait_for: str


def steps(places: Iterable[Place]) -> dict[str, int]:
    """The number of each task's step, counted within its phase."""
    found: dict[str, int] = {}
    last: dict[int, tuple[int, Place]] = {}
    for place in places:
        number, before = last.get(place.phase, (0, None))
        joins = (
            before is not None
            and place.parallel
            and before.parallel
            and place.section == before.section
        )
        number += 0 if joins else 1
        last[place.phase] = (number, place)
        found[place.id] = number
    return found


def waits(places: Sequence[Place], numbers: Mapping[str, int]) -> dict[str, list[str]]:
    """For each task the tasks of the step before its own."""
    members: dict[tuple[int, int], list[str]] = {}
    for place in places:
        members.setdefault((place.phase, numbers[place.id]), []).append(place.id)
    found: dict[str, list[str]] = {}
    for (phase, number), ids in members.items():
        before = members.get((phase, number - 1), [])
        found |= dict.fromkeys(ids, before)
        if len(before) * len(ids) > MAX_EDGES:
            # Each waiting for each would be millions; the first stands in for the rest.
            found |= dict.fromkeys(ids[1:], ids[:1])
    return found


def declared(text: str) -> list[Told]:
    """What a task's own paragraph says it, or another, waits for."""
    if "dep" not in text.casefold():
        return []  # as most do, and the pattern is a long one
    found = (each for each in _DECLARED.finditer(_normal(text)) if not each["no"])
    return [Told(tasks=each["who"] or "", wait_for=each["ids"]) for each in found]


def stated(text: str) -> list[Told] | None:
    """What a line about dependencies states; None where it cannot be read with certainty."""
    text = _normal(text)
    lists = list(_LIST.finditer(text))
    if len(lists) < 2 or _HEDGE.search(text):  # noqa: PLR2004  # it takes two to wait
        return None
    begin, end = text[: lists[0].start()], text[lists[-1].end() :]
    if _RELATION.search(begin) or not _BEGIN.fullmatch(begin) or not _END.fullmatch(end):
        return None
    found: list[Told] = []
    for one, other in pairwise(lists):
        between = text[one.end() : other.start()].lstrip()
        if _BEFORE.fullmatch(between):
            found.append(Told(tasks=other.group(), wait_for=one.group()))
        elif _AFTER.fullmatch(between):
            found.append(Told(tasks=one.group(), wait_for=other.group()))
        else:
            return None
    return found


def mentions(text: str) -> bool:
    """Whether a line speaks of an order among tasks, in whatever words."""
    text = _normal(text)
    return bool(_LIST.search(text) and _RELATION.search(text))


class Ids:
    """The tasks' ids as they are looked up: case does not count, and a range is all within it."""

    def __init__(self, known: Mapping[str, str | None]) -> None:
        self.known = {each.casefold(): task for each, task in known.items()}
        numbered = sorted((_number(each), task) for each, task in known.items() if task)
        self.numbers = [number for number, _ in numbered]
        self.tasks = [task for _, task in numbered]

    def named(self, written: str) -> tuple[dict[str, None], list[str]]:
        """The tasks that a list of ids names, in its order, and the ids that are no task's."""
        found: dict[str, None] = {}
        unknown: list[str] = []
        for member in _MEMBER.finditer(written):
            ends = filter(None, member.groups())
            unknown += [each for each in ends if each.casefold() not in self.known]
            first = self.known.get(member["first"].casefold())
            if member["last"]:
                low = bisect_left(self.numbers, _number(member["first"]))
                high = bisect_left(self.numbers, _number(member["last"]) + 1)
                found |= dict.fromkeys(self.tasks[low:high])
            elif first:
                found[first] = None
        return found, list(dict.fromkeys(unknown))


def _number(written: str) -> int:
    # Longer numbers than these are nobody's, and would take their time to read.
    return int(next(_NUMBER.finditer(written)).group()[:12])


def _normal(text: str) -> str:
    """One line without emphasis, in single spaces, so that no pattern has to wander."""
    return " ".join(text.replace("*", "").replace("`", "").split())
