"""The nearest known word: the one rule for every "did you mean", and a stricter one for slips.

Law: a suggestion never changes a number. `1.9` is another task than `1.2`, and not a slip for it.
"""

import re
from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 100
"""Characters that are compared; no known word is longer."""
_ALIKE = 0.65
"""How much of two words must be the same, from 0 to 1."""
_NUMBER = re.compile(r"0*([0-9]+)")
_SHORTEST = 4
"""Letters of a word that can be misspelt and still be known."""
_TWO_SLIPS, _THREE_SLIPS = 8, 15
"""Letters from which on a word may have two slips, and three."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that a person most likely meant; None if none is near."""
    wanted = word[:_LONGEST].casefold()
    number = _number(wanted)
    fitting = {each.casefold(): each for each in known if _number(each) == number}
    slip = misspelt(wanted, fitting)
    found = [slip] if slip is not None else get_close_matches(wanted, fitting, 1, _ALIKE)
    return fitting[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """The question with the nearest known word, and then what to do otherwise."""
    found = nearest(word, known)
    parts = (f"did you mean {found!r}?" if found is not None else "", otherwise)
    return " ".join(filter(None, parts))


def misspelt(word: str, known: Iterable[str]) -> str | None:
    """The known word that this one is a slip of; None for a known word, and for another word.

    A slip is a letter that is missing, doubled, wrong or swapped, but seldom the first one. Of
    several words each may have slips, but a short one has none: `blocked at` is not `blocked by`.
    """
    wanted = _plain(word)
    found: tuple[int, str] | None = None
    for each in known:
        if each == word:
            return None
        slips = _slips(wanted, _plain(each))
        if slips is not None and (found is None or slips < found[0]):
            found = slips, each
    return found[1] if found else None


def _slips(wanted: str, other: str) -> int | None:
    """How many slips lead from one to the other; None if they are different words."""
    most = _allowed(other)
    if not most or not _begins_alike(wanted, other) or _number(wanted) != _number(other):
        return None
    ones, others = wanted.split(), other.split()
    if len(ones) != len(others):  # a space is missing, or is one too many
        return 1 if "".join(ones) == "".join(others) else None
    each = [_distance(a, b, _allowed(b)) for a, b in zip(ones, others, strict=True)]
    fits = all(slips <= _allowed(b) for slips, b in zip(each, others, strict=True))
    return sum(each) if fits and sum(each) <= most else None


def _plain(word: str) -> str:
    return re.sub(r"[-_ ]+", " ", word[:_LONGEST]).casefold()


def _number(text: str) -> str:
    return "".join(_NUMBER.findall(text))


def _allowed(word: str) -> int:
    """How many slips a word may have and still be known."""
    if len(word) < _SHORTEST:
        return 0
    return 3 if len(word) >= _THREE_SLIPS else 2 if len(word) >= _TWO_SLIPS else 1


def _begins_alike(one: str, two: str) -> bool:
    return one[:1] == two[:1] or one[:2] == two[1::-1]


def _distance(one: str, two: str, most: int) -> int:
    """How many slips lead from one word to the other; more than `most` if it takes more."""
    if abs(len(one) - len(two)) > most:
        return most + 1
    above: list[int] = []
    row = list(range(len(two) + 1))
    for i, letter in enumerate(one, 1):
        above, last, row = row, above, [i]
        for j, other in enumerate(two, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other))
            if i > 1 and j > 1 and letter == two[j - 2] and one[i - 2] == other:
                cost = min(cost, last[j - 2] + 1)  # two letters in the wrong order
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
