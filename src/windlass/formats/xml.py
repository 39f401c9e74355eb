"""XML as language models write it, as elements that know their lines. This module knows no dialect.

Models write task files with bare `a && b` and `list<T>`, so this is not a parser for all of XML.
The caller names the elements that hold other elements; inside any other element all is text up to
its own end tag. Only XML's five entities and numeric characters are expanded, nothing is fetched,
and a DOCTYPE is refused. There is no recursion, and each function takes linear time.
"""

import re
import textwrap
from bisect import bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import NoReturn

from msgspec import Struct, field

from windlass.errors import PlanError

_MAX_CHARS = 1_000_000
_MAX_ELEMENTS = 20_000
_MAX_DEPTH = 20
_NAME = r"[A-Za-z_][\w:.-]*"
_TOKEN = re.compile(rf"<!--|<!\[CDATA\[|<\?|<!|</(?P<end>{_NAME})\s*>|<(?=[A-Za-z_])")
# A tag has no '<' inside, so the search for its end stops at the next one.
_START = re.compile(
    rf"<(?P<name>{_NAME})(?P<attributes>(?:\s+{_NAME}\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'))*)\s*(?P<empty>/?)>"
)
_ATTRIBUTE = re.compile(rf"({_NAME})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_END = re.compile(rf"</({_NAME})\s*>")
_WRAPPED = re.compile(
    r"<!--.*?-->|<!\[CDATA\[(?P<data>.*?)\]\]>"
    r"|&(?:#(?P<number>[0-9]{1,7})|#x(?P<hex>[0-9A-Fa-f]{1,6})|(?P<entity>amp|lt|gt|quot|apos));",
    re.DOTALL,
)
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_ENDS = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Element(Struct, kw_only=True):
    """One element, with its names in the spelling that is compared."""

    name: str
    line: int
    attributes: dict[str, str]
    source: str = ""
    """All of it, tags included, as written."""
    text: str = ""
    """Its text, without common indentation; for an element that holds others, its own text."""
    children: list["Element"] = field(default_factory=list["Element"])

    def named(self, *names: str) -> list["Element"]:
        """Its children of these names, in their order."""
        return [child for child in self.children if child.name in names]


class _Open(Struct, kw_only=True):
    """An element whose end tag has not come yet."""

    element: Element
    start: int
    spelling: str
    texts: list[str] = field(default_factory=list[str])


def read(path: str, text: str, holders: frozenset[str]) -> Element:
    """The text's one element; `holders` are the elements that hold others."""
    return _Scanner(path, text, holders).root()


@lru_cache(maxsize=1000)
def word(name: str) -> str:
    """A name in the spelling that is compared: `files_to_create`, `filesToCreate`."""
    return _CAMEL.sub("-", name).replace("_", "-").casefold()


def dedented(text: str) -> str:
    """The text without common indentation and without blank lines around it."""
    head, newline, rest = text.replace("\r\n", "\n").partition("\n")
    if not newline:
        return head.strip()
    return f"{head.strip()}{newline}{textwrap.dedent(rest)}".strip("\n").rstrip()


class _Scanner:
    """One pass over one text."""

    def __init__(self, path: str, text: str, holders: frozenset[str]) -> None:
        self.path = path
        self.text = text
        self.holders = holders
        self.newlines = [found.start() for found in re.finditer(r"\n|\r(?!\n)", text)]
        # A tag without an end tag is text, like the T of a bare `list<T>`.
        self.ended = {found[1] for found in _END.finditer(text)}
        self.elements = 0

    def root(self) -> Element:
        if len(self.text) > _MAX_CHARS:
            self.refuse(
                1, f"has more than {_MAX_CHARS:,} characters", "split it into several files"
            )
        top = Element(name="", line=1, attributes={})
        opened = [_Open(element=top, start=0, spelling="")]
        at = 1 if self.text.startswith("\ufeff") else 0
        while found := _TOKEN.search(self.text, at):
            here = opened[-1]
            here.texts.append(_plain(self.text[at : found.start()]))
            at = self.token(found, opened)
        if len(opened) > 1:
            self.never_ended(opened[-1].spelling, opened[-1].start)
        opened[0].texts.append(self.text[at:])
        if "".join(opened[0].texts).strip() or len(top.children) != 1:
            line = top.children[1].line if top.children[1:] else 1
            self.refuse(line, "is not one element", "keep one element, and no text around it")
        return top.children[0]

    def token(self, found: re.Match[str], opened: list[_Open]) -> int:
        """Take one token, and return the offset after it."""
        kind = found.group()
        if kind in _ENDS:
            stop = self.after(kind, found.start())
            if kind == "<![CDATA[":
                opened[-1].texts.append(self.text[found.end() : stop - len("]]>")])
            return stop
        if kind == "<!":
            line = self.line(found.start())
            self.refuse(line, "has a declaration such as a DOCTYPE", "remove it")
        if kind == "<":
            return self.start(found.start(), opened)
        self.end(found, opened)
        return found.end()

    def start(self, at: int, opened: list[_Open]) -> int:
        tag = _START.match(self.text, at)
        if tag is None or not self.is_element(tag):
            opened[-1].texts.append("<")
            return at + 1
        self.elements += 1
        if len(opened) > _MAX_DEPTH or self.elements > _MAX_ELEMENTS:
            what = f"has more than {_MAX_ELEMENTS:,} elements, or is nested beyond {_MAX_DEPTH}"
            self.refuse(self.line(at), what, "shorten it or nest it less")
        element = Element(
            name=word(tag["name"]), line=self.line(at), attributes=_attributes(tag["attributes"])
        )
        opened[-1].element.children.append(element)
        if tag["empty"]:
            element.source = tag.group()
            return tag.end()
        if element.name in self.holders:
            opened.append(_Open(element=element, start=at, spelling=tag["name"]))
            return tag.end()
        inner, stop = self.own_end(tag)
        element.source = self.text[at:stop]
        element.text = dedented(_plain(self.text[tag.end() : inner]))
        return stop

    def is_element(self, tag: re.Match[str]) -> bool:
        return bool(tag["empty"] or tag["name"] in self.ended or word(tag["name"]) in self.holders)

    def end(self, found: re.Match[str], opened: list[_Open]) -> None:
        here = opened[-1]
        if found["end"] != here.spelling:
            expected = (
                f"line {here.element.line}'s <{here.spelling}>" if here.spelling else "nothing"
            )
            self.refuse(
                self.line(found.start()),
                f"has </{found['end']}> where {expected} is open",
                "end each element with its own tag, and write a bare '<' as '&lt;'",
            )
        opened.pop()
        here.element.source = self.text[here.start : found.end()]
        here.element.text = dedented("".join(here.texts))

    def own_end(self, tag: re.Match[str]) -> tuple[int, int]:
        """The offsets at which the text of a plain element and its end tag end."""
        name = tag["name"]
        ends = _ends(name)
        depth, at = 1, tag.end()
        inner = at
        while depth:
            found = ends.search(self.text, at)
            if found is None:
                self.never_ended(name, tag.start())
            at = found.end()
            if found.group() in _ENDS:
                at = self.after(found.group(), found.start())
            elif found["end"]:
                depth -= 1
                inner = found.start()
            elif not found.group().endswith("/>"):
                depth += 1
        return inner, at

    def after(self, opening: str, at: int) -> int:
        """The offset after a comment, CDATA section or instruction."""
        closing = _ENDS[opening]
        stop = self.text.find(closing, at + len(opening))
        if stop < 0:
            self.refuse(self.line(at), f"has a {opening!r} that never ends", f"add {closing!r}")
        return stop + len(closing)

    def line(self, at: int) -> int:
        return bisect_right(self.newlines, at - 1) + 1

    def never_ended(self, name: str, at: int) -> NoReturn:
        cure = f"add </{name}>, or write a bare '<' as '&lt;'"
        self.refuse(self.line(at), f"has a <{name}> that never ends", cure)

    def refuse(self, line: int, what: str, cure: str) -> NoReturn:
        raise PlanError(f"the XML {what}", path=self.path, line=line, hint=cure)


@lru_cache(maxsize=100)
def _ends(name: str) -> re.Pattern[str]:
    """The tokens that matter inside a plain element: its own tags, comments and CDATA."""
    name = re.escape(name)
    return re.compile(rf"<!--|<!\[CDATA\[|(?P<end></{name}\s*>)|<{name}(?=[\s>])[^<>]*>")


def _attributes(text: str) -> dict[str, str]:
    if not text:
        return {}
    return {word(name): _plain(one or two).strip() for name, one, two in _ATTRIBUTE.findall(text)}


def _plain(text: str) -> str:
    """The text without comments and CDATA markers, and with entities expanded."""
    return "".join(_pieces(text)) if "&" in text or "<!" in text else text


def _pieces(text: str) -> Iterator[str]:
    at = 0
    for found in _WRAPPED.finditer(text):
        yield text[at : found.start()]
        at = found.end()
        if found["entity"]:
            yield _ENTITIES[found["entity"]]
        elif found["number"] or found["hex"]:
            number = int(found["number"] or "0") or int(found["hex"] or "0", 16)
            yield chr(number) if _is_character(number) else found.group()
        else:
            yield found["data"] or ""
    yield text[at:]


def _is_character(number: int) -> bool:
    """Whether XML allows the character of this number."""
    return number in (9, 10, 13) or 32 <= number < 0xD800 or 0xE000 <= number <= 0x10FFFF  # noqa: PLR2004
