"""Many texts are found in another one, however they are encoded, and in linear time."""

import base64
import hashlib
import html
import json
import re
import textwrap
import urllib.parse
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.escapes import to_bytes, to_text
from windlass.core.occurrences import FRAGMENT, WHOLE, Found, Needles, Occurrences

NEEDLE = "pa\"ss\\wörd/+&<'1\n2"
LONG = base64.b85encode(bytes(range(255)) * 2).decode()
assert len(LONG) > WHOLE


def looking_for(*texts: str, base64_too: tuple[str, ...] = ()) -> Occurrences:
    names = {text: f"N{n}" for n, text in enumerate(texts)}
    return Occurrences(Needles(names, names, dict.fromkeys(base64_too, "BODY")))


def covered(sought: Occurrences, text: str) -> str:
    """The text with a hash sign in place of all that was found."""
    data = to_bytes(text)
    for start, end, _ in reversed(sought.find(data)):
        data = data[:start] + b"#" + data[end:]
    return to_text(data)


def escaped(pattern: str, text: str) -> str:
    return "".join(pattern.format(byte) for byte in text.encode())


def utf16(text: str) -> str:
    return "".join(json.dumps(f"\x00{char}")[7:-1] if ord(char) > 127 else f"\\u{ord(char):04X}"
                   for char in text)  # fmt: skip


ESCAPED = {
    "as it is": NEEDLE,
    "JSON": json.dumps(NEEDLE)[1:-1],
    "JSON with slashes": json.dumps(NEEDLE)[1:-1].replace("/", "\\/"),
    "JSON of Unicode": json.dumps(NEEDLE, ensure_ascii=False)[1:-1],
    "every character as JSON": utf16(NEEDLE),
    "JSON in JSON": json.dumps(json.dumps(NEEDLE))[3:-3],
    "JSON in JSON in JSON": json.dumps(json.dumps(json.dumps(NEEDLE)))[7:-7],
    "a URL": urllib.parse.quote(NEEDLE, safe=""),
    "a path of a URL": urllib.parse.quote(NEEDLE),
    "a URL in small letters": urllib.parse.quote(NEEDLE, safe="").replace("%C3%B6", "%c3%b6"),
    "a URL in a URL": urllib.parse.quote(urllib.parse.quote(NEEDLE)),
    "a URL in JSON": json.dumps(urllib.parse.quote(NEEDLE)),
    "HTML": html.escape(NEEDLE),
    "HTML by numbers": "".join(f"&#{ord(char)};" for char in NEEDLE),
    "HTML by hex numbers": "".join(f"&#x{ord(char):x};" for char in NEEDLE),
    "Python": repr(NEEDLE)[1:-1],
    "bytes of Python": repr(NEEDLE.encode())[2:-1],
    "bytes of C": escaped("\\x{:02x}", NEEDLE),
    "octal": escaped("\\{:03o}", NEEDLE),
    "a shell's backslashes": re.sub(r"([^\w\n])", r"\\\1", NEEDLE),
    "a line that goes on": "pa\"ss\\wörd/+\\\n&<'1\n2".replace("\\w", "\\\\w"),
}


@pytest.mark.parametrize("form", ESCAPED)
def test_escapes_are_undone(form: str):  # S13
    text = ESCAPED[form]
    found = covered(looking_for(NEEDLE), f"before {text} after")
    assert re.fullmatch(r"before \"?#\"? after", found), found


@pytest.mark.parametrize(
    "text",
    ["\\", "\\u12", "\\ud800", "\\U0010ffff \\UFFFFFFFF", "\\x", "\\777", "%", "%zz", "&#xD800;",
     "&;", "\\ü", "\\\n", "\ud800", "\ud83d\\"],
)  # fmt: skip
def test_what_is_hardly_an_escape_does_no_harm(text: str):
    assert covered(looking_for(NEEDLE), f"{text}{NEEDLE}{text}") == f"{text}#{text}"


def test_a_pair_of_escapes_is_one_character():
    assert covered(looking_for("smile 😀 please"), json.dumps("smile 😀 please")) == '"#"'


@pytest.mark.parametrize("secret", [NEEDLE, "8 chars.", "s" * 15, LONG])
@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "z", "yz"])
def test_base64_is_found_at_every_place_and_with_every_alphabet(
    secret: str, before: str, after: str
):  # S13
    sought = looking_for(secret)
    whole = f"{before}{secret}{after}".encode()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        text = encode(whole).decode()
        for form in (text, text.rstrip("="), json.dumps(text), urllib.parse.quote(text, safe="")):
            left = covered(sought, f"({form})")
            assert "#" in left
            # What is left is of the text around it, and at most some bits of the secret.
            letters = re.findall(r"[A-Za-z0-9_+/-]", re.sub("%..", "", left))
            assert len(letters) <= 4 * (len(before) + len(after)) // 3 + 4


@pytest.mark.parametrize("columns", [60, 64, 76])
@pytest.mark.parametrize("margin", ["", "    ", "> ", "+", "| "])
def test_base64_and_hex_are_found_however_their_lines_are_broken(columns: int, margin: str):
    sought = looking_for(LONG)
    for text in (base64.b64encode(LONG.encode()).decode(), LONG.encode().hex()):
        lines = [margin + line for line in textwrap.wrap(text, columns)]
        left = covered(sought, "\n".join(lines))
        assert not re.search(r"[A-Za-z0-9/]{8}", left), left


@pytest.mark.parametrize("form", [
    NEEDLE.encode().hex(), NEEDLE.encode().hex().upper(), NEEDLE.encode().hex(":"),
    NEEDLE.encode().hex(" ", 2), escaped("\\x{:02X}", NEEDLE),
])  # fmt: skip
def test_hex_is_found_with_any_marks_between(form: str):
    assert covered(looking_for(NEEDLE), f"<{form}>") in {"<#>", "<\\x#>"}


def test_base64_is_ended_by_what_is_no_ascii():
    text = base64.b64encode(b"a secret of some length").decode()
    assert covered(looking_for("a secret of some length"), f"{text[:9]}ü{text[9:]}").count("#") == 0


def test_every_long_fragment_of_a_long_needle_is_found():
    sought = looking_for(LONG)
    for at in range(0, len(LONG) - FRAGMENT, 37):
        assert covered(sought, f"x {LONG[at : at + FRAGMENT]} y") == "x # y"
    assert covered(sought, LONG[: FRAGMENT - 1]) == LONG[: FRAGMENT - 1]


def test_a_very_long_needle_is_found_in_parts_too():
    lines = [hashlib.sha512(str(n).encode()).hexdigest()[:64] for n in range(600)]
    sought = looking_for("\n".join(lines))
    assert covered(sought, "\n".join(["a", *lines, "b"])) == "a\n#\nb"
    assert covered(sought, "\n".join(["a", *lines[100:103], "b"])) == "a\n#\nb"


def test_a_needle_of_one_letter_leaves_no_end_and_finds_no_ruler():
    for count in (8, 20, 300, 1000):
        sought = looking_for("x" * count)
        assert covered(sought, "x" * count) == "#"
        assert covered(sought, f"a{'x' * (3 * count + 7)}b") == "a#b"
        assert covered(sought, "x" * (count - 1)) == "x" * (count - 1)


def test_a_body_is_found_however_it_is_wrapped():
    body = base64.b64encode(bytes(range(200))).decode()
    sought = looking_for("nothing of the kind", base64_too=(body,))
    for columns in (64, 76, 500):
        text = "\n".join(f"+ {line}" for line in textwrap.wrap(body, columns))
        assert not re.search(r"[A-Za-z0-9/]{8}", covered(sought, text))
    assert covered(sought, body[40:55]) == body[40:55]


def test_blanks_lead_to_nothing():
    """A long needle with rows of blanks in it is not looked for at each blank."""
    words = [f"{hashlib.md5(bytes([n])).hexdigest()}{' ' * 9}" for n in range(40)]  # noqa: S324
    sought = looking_for("".join(words) + "end")
    assert covered(sought, " " * 500) == " " * 500
    assert covered(sought, f"<{''.join(words[3:12]).strip()}>") == "<#>"


def test_overlapping_needles_share_a_part_that_bears_the_longest_ones_name():
    sought = looking_for("abcdefgh", "efghijklmnop")
    assert sought.find(b"<abcdefghijklmnop>") == [Found(1, 17, (12, "N1"))]


def test_a_needle_that_overlaps_itself_in_two_ways_is_one_part():
    rhythm = "abcabcd" * 4
    needle = rhythm[:20]
    text = needle[:17] + rhythm[:27]
    assert looking_for(needle).find(text.encode()) == [Found(0, 44, (20, "N0"))]


def test_of_nothing_nothing_is_found():
    sought = Occurrences(Needles({}, {}, {}))
    assert (sought.find(b"anything"), sought.reach) == ([], 0)
    assert looking_for(NEEDLE).find(b"") == []


@given(st.lists(st.text("abc", min_size=8, max_size=20), min_size=1, max_size=4),
       st.text("abc", max_size=90))  # fmt: skip
def test_whatever_is_there_is_found_and_nothing_else(needles: list[str], text: str):
    found = looking_for(*dict.fromkeys(needles)).find(text.encode())
    seen = {at for start, end, _ in found for at in range(start, end)}
    assert seen == {
        at + offset
        for needle in needles
        for at in range(len(text))
        if text.startswith(needle, at)
        for offset in range(len(needle))
    }
    assert all(one.end <= other.start for one, other in pairwise(found))


def test_what_is_no_text_comes_back_as_it_was():
    for text in ("\udc80", "\ud800", "\ud800\udc80", f"{NEEDLE}\udcff"):
        assert to_text(to_bytes(text)) == text


@given(st.text(max_size=40), st.text(max_size=40), st.integers(0, 3))
def test_text_of_any_kind_comes_back_as_it_was(before: str, after: str, depth: int):
    text = before + NEEDLE + after
    for _ in range(depth):
        text = json.dumps(text)
    found = looking_for(NEEDLE).find(to_bytes(text))
    assert found
    assert looking_for("no such text anywhere").find(to_bytes(text)) == []
    assert to_text(to_bytes(text)) == text
