"""Rules that once had several homes have one; the others call it."""

import re
from pathlib import Path

import pytest

import windlass
from windlass.core.plan.names import without_controls, without_terminal_codes
from windlass.formats.words import DONE, NOTHING, is_done, is_nothing

ROOT = Path(windlass.__file__).parent
HOMES = {
    r"def _?stands_in_the_way\(": "core/state/model.py",
    r"^_?DONE(?:: [^=]+)? = frozenset": "formats/words.py",
    r"^_?NOTHING(?:: [^=]+)? = frozenset": "formats/words.py",
    r"re\.compile\([^)]*\\x1b": "core/plan/names.py",
    r"^ *(?:STOPPED|PAUSED|BUSY|NEEDS_HUMAN|LIMIT) = [0-9]$": "views/outcome.py",
    r"\\x7f-\\x9f\{FORMATS\}": "core/plan/names.py",
}


@pytest.mark.parametrize("pattern", HOMES)
def test_a_rule_has_one_home(pattern: str):
    written = re.compile(pattern, re.MULTILINE)
    # The words of plans are the formats' own; other modules may call other things DONE.
    within = "formats" if HOMES[pattern].startswith("formats/") else ""
    files = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / within).rglob("*.py")
        if written.search(path.read_text(encoding="utf-8"))
    }
    assert files == {HOMES[pattern]}


@pytest.mark.parametrize("word", sorted(DONE))
def test_words_for_done(word: str):
    assert is_done(f" {word.upper().replace('_', '-')} ")


@pytest.mark.parametrize("word", ["", "  ", "**None**", "n/a.", *sorted(NOTHING)])
def test_words_for_nothing(word: str):
    assert is_nothing(word)


@pytest.mark.parametrize("word", ["tbd", "0", "no", "T001"])
def test_words_that_are_something(word: str):
    assert not is_nothing(word)
    assert not is_done(word)
    assert not is_done(None)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1bPquery\x1b\\text", "text"),
        ("cut \x1b[3", "cut "),
        ("\x9b31mred", "red"),
        ("plain", "plain"),
    ],
)
def test_terminal_sequences_go(text: str, plain: str):
    assert without_terminal_codes(text) == plain


def test_unseen_characters_go_and_lines_stay():
    assert without_controls("a\tb\nc\x07d\u202ee\u200df\x1b[1mg") == "a\tb\ncdefg"
    assert without_controls("a\x00b", "?") == "a?b"
