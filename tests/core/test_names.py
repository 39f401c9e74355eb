"""Names as they are shown."""

import sys
import unicodedata

import pytest

from windlass.core.plan.names import escaped, escaped_text, some
from windlass.errors import RepositoryError, UnsafePath
from windlass.views.words import harmless, one_line

SEEN = {"\u06dd", "\u070f", "\u08e2", "\U000110bd", "\U000110cd"}
SEEN |= {chr(code) for code in (*range(0x600, 0x606), 0x890, 0x891)}
"""Formats that a person sees: signs that stand around Arabic and other numbers."""

FORMATS = [
    char
    for char in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(char) in {"Cf", "Zl", "Zp"} and char not in SEEN
]
"""All of Unicode that turns letters around, hides them or ends a line."""


@pytest.mark.parametrize(
    ("count", "said"), [(0, ""), (1, "a"), (3, "a, a, a"), (4, "a, a, a and 1 more")]
)
def test_some_of_many(count: int, said: str):
    assert some(["a"] * count, 3) == said


def test_a_large_number_can_be_read():
    assert some(["a"] * 2_001, 1) == "a and 2,000 more"


def test_nothing_that_turns_letters_around_or_is_not_seen_reaches_a_screen():  # S13
    text = "".join(f"{char}x" for char in FORMATS)
    assert "\u061c" in text
    for shown in (one_line(text, 10_000), harmless(text, 10_000)):
        assert not set(shown) & set(FORMATS)
    assert not set(escaped(text)) & (set(FORMATS) - {"\u200c", "\u200d"})
    assert escaped("\u061cx") == "\\u061cx"
    assert escaped_text("a\n\tb\x1b[1m\u061c") == "a\n\tb\\x1b[1m\\u061c"


def test_an_unsafe_path_tells_its_cure_also_to_those_who_know_only_the_systems_errors():
    error = UnsafePath("state is a link", hint="remove it")
    assert isinstance(error, OSError)
    assert isinstance(error, RepositoryError)
    assert error.strerror == str(error) == "state is a link; remove it"
