"""The order of the tasks of a spec-kit list: by their marks, and by what the text declares.

Within a phase tasks run in the list's order, and neighbours marked `[P]` run in parallel: they
form one step. A task without the mark is a step by itself. A step waits for the whole step before
it. A heading inside a phase ends a step, because it separates tests from implementation, or models
from services.

Declarations by id count as well: `(depends on T012, T013)` in a task, and `T016 blocks T018`,
`T004-T007 before T008` or `T001 → T002` in a section on dependencies. A declaration in a task is
kept or refused. A line of a section is kept where it is certain and agrees with the list's order,
and is noted otherwise.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from windlass.core.nearest import did_you_mean
from windlass.formats.reading import Reader
from windlass.formats.speckit.listing import ID, TO

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

_MAX_DECLARED = 100_000
MAX_EDGES = 2_500
"""The most dependencies that one step may have on another."""


class Place(Struct, frozen=True, kw_only=True):
    """The place of a task in the list."""

    id: str
    phase: int
    section: int
    """The line of the nearest heading."""
    parallel: bool


class Declaration(Struct, frozen=True, kw_only=True):
    """Some tasks wait for others; the ids are as written, with ranges."""

    tasks: str
    """Empty for the task whose own text declares it."""
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


def step_waits(places: Sequence[Place], numbers: Mapping[str, int]) -> dict[str, list[str]]:
    """For each task the tasks of the step before its own."""
    members: dict[tuple[int, int], list[str]] = {}
    for place in places:
        members.setdefault((place.phase, numbers[place.id]), []).append(place.id)
    found: dict[str, list[str]] = {}
    for (phase, number), ids in members.items():
        before = members.get((phase, number - 1), [])
        found |= dict.fromkeys(ids, before)
        if len(before) * len(ids) > MAX_EDGES:
            # Every pair would be millions; the others wait for the first task of their step.
            found |= dict.fromkeys(ids[1:], ids[:1])
    return found


def declared(text: str) -> list[Declaration]:
    """The dependencies that a task's own paragraph declares."""
    if "dep" not in text.casefold():
        return []  # the common case, without the long pattern
    found = (each for each in _DECLARED.finditer(_normal(text)) if not each["no"])
    return [Declaration(tasks=each["who"] or "", wait_for=each["ids"]) for each in found]


def stated(text: str) -> list[Declaration] | None:
    """The dependencies that a line of a section states; None where it is not certain."""
    text = _normal(text)
    lists = list(_LIST.finditer(text))
    if len(lists) < 2 or _HEDGE.search(text):  # noqa: PLR2004  # two tasks at least
        return None
    begin, end = text[: lists[0].start()], text[lists[-1].end() :]
    if _RELATION.search(begin) or not _BEGIN.fullmatch(begin) or not _END.fullmatch(end):
        return None
    found: list[Declaration] = []
    for one, other in pairwise(lists):
        between = text[one.end() : other.start()].lstrip()
        if _BEFORE.fullmatch(between):
            found.append(Declaration(tasks=other.group(), wait_for=one.group()))
        elif _AFTER.fullmatch(between):
            found.append(Declaration(tasks=one.group(), wait_for=other.group()))
        else:
            return None
    return found


def mentions(text: str) -> bool:
    """Whether a line is about an order of tasks, in any words."""
    text = _normal(text)
    return bool(_LIST.search(text) and _RELATION.search(text))


class Ids:
    """Finds tasks by their ids, without regard to case, and all tasks of a range."""

    def __init__(self, known: Mapping[str, str | None]) -> None:
        self.known = {each.casefold(): task for each, task in known.items()}
        numbered = sorted((_number(each), task) for each, task in known.items() if task)
        self.numbers = [number for number, _ in numbered]
        self.tasks = [task for _, task in numbered]

    def named(self, written: str) -> tuple[dict[str, None], list[str]]:
        """The tasks in a list of ids, in its order, and the ids that are no task's."""
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
    # Longer numbers are not ids, and would take long to convert.
    return int(next(_NUMBER.finditer(written)).group()[:12])


def _normal(text: str) -> str:
    """One line without emphasis and with single spaces, so that patterns stay fast."""
    return " ".join(text.replace("*", "").replace("`", "").split())


class Waits(Reader):
    """Gathers the dependencies of one list."""

    def __init__(self, path: str, places: Sequence[Place], ids: Ids) -> None:
        super().__init__(path)
        self._ids = ids
        self._declared = 0
        numbers = steps(places)
        self._rank = {each.id: (each.phase, numbers[each.id]) for each in places}
        by_step = step_waits(places, numbers)
        self._waits = {each: dict.fromkeys(before) for each, before in by_step.items()}

    def of(self, task_id: str) -> tuple[str, ...]:
        """The tasks that a task waits for."""
        return tuple(self._waits[task_id])

    def declare(self, task_id: str, line: int, text: str) -> None:
        """Take the declarations in a paragraph of a task."""
        for each in declared(text):
            self._bind(task_id, line, each)

    def _bind(self, task_id: str, line: int, declaration: Declaration) -> None:
        """Add the dependencies that a task's text declares, or refuse them."""
        tasks, strange = self._ids.named(declaration.tasks)
        before, unknown = self._ids.named(declaration.wait_for)
        if unknown:
            what = f"{task_id!r} depends on {unknown[0]!r}, which is not a task of this plan"
            cure = "name a task of this plan, or use other words"
            self.error(line, what, did_you_mean(unknown[0], self._waits, cure))
            return
        if strange:
            self.note(line, f"names {strange[0]!r}, which is not a task of this plan")
            return
        tasks = tasks or {task_id: None}
        self._count(line, len(tasks) * len(before))
        for task in tasks:
            if late := self._late(task, before):
                what = f"{task!r} depends on {late!r}, which comes after it"
                self.error(line, what, "move one of them, or mark both [P] in one section")
                continue
            self._wait(task, before)

    def state(self, at: int, text: str) -> None:
        """Take the dependencies in a line of a section, where they can be read and kept."""
        found = stated(text)
        if found is None:
            if mentions(text):
                self.note(at, "is about an order, but is not certain enough: ignored")
            return
        for each in found:
            tasks, strange = self._ids.named(each.tasks)
            before, unknown = self._ids.named(each.wait_for)
            self._count(at, len(tasks) * len(before))
            if strange or unknown:
                self.note(at, f"names {(strange + unknown)[0]!r}, which is not a task of this plan")
            elif any(self._late(task, before) for task in tasks):
                self.note(at, "contradicts the order of the list: ignored")
            else:
                for task in tasks:
                    self._wait(task, before)

    def _wait(self, task: str, before: Iterable[str]) -> None:
        """Add dependencies that do not follow from the steps of the phase already."""
        phase, step = self._rank[task]
        for each in before:
            if each != task and (self._rank[each][0] != phase or self._rank[each][1] == step):
                self._waits[task][each] = None

    def _count(self, line: int, more: int) -> None:
        self._declared += more
        if self._declared > _MAX_DECLARED:
            what = f"more than {_MAX_DECLARED:,} dependencies are declared"
            self.refuse(line, what, "let tasks wait for their phase instead")

    def _late(self, task: str, before: Iterable[str]) -> str | None:
        """One of these tasks that comes after the task in the list."""
        return next((each for each in before if self._rank[each] > self._rank[task]), None)
