"""Near misses in plans: keys, labels, headings, elements and columns that are slips of known ones.

Only what stands where a known word is expected is compared, and a word of its own is never a slip:
`Mode` is not a misspelt `Model`. Each format names the words that it reads.
"""

from collections.abc import Collection, Iterator

from windlass.core.nearest import misspelt
from windlass.formats.yaml import Keys

_OTHER_WORDS = frozenset({
    "active", "block", "blocked", "blocker", "blockers", "created", "feature", "features", "filed",
    "filter", "filters", "groups", "items", "labels", "mode", "models", "modes", "named", "phases",
    "purpose", "state", "states", "statue", "stages", "styles", "tags", "tacks", "tank", "talk",
    "tasks", "team", "text", "tests", "times", "type", "types", "updated", "waves",
})  # fmt: skip
"""Words that differ from a known one by a letter or two, and mean something else."""


def slip_of(word: str, known: Collection[str]) -> str | None:
    """The known word that this one is a slip of; None for a known word, and for any other."""
    return None if word.casefold() in _OTHER_WORDS else misspelt(word, known)


def label_slip(label: str, known: Collection[str]) -> str | None:
    """The same for labels and headings, whose case does not count."""
    by_case = {each.casefold(): each for each in known}
    meant = slip_of(label.casefold(), by_case)
    return by_case[meant] if meant is not None else None


def key_slips(data: Keys, known: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each key that is not read, with the key that it is a slip of, if that one is missing."""
    for key in data:
        meant = slip_of(key, known) if key not in known else None
        if meant is not None and meant not in data:
            yield key, meant
