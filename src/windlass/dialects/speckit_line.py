"""What one line of a spec-kit task list says: its id, its marks, its title, the paths it names.

The line is `[ ] T012 [P] [US1] Create the model in src/models/user.py`, and every spelling of it
that is found in the wild: bold ids, ids in brackets, marks in any order or at the end.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from windlass.dialects import markdown

ID = (
    r"T[-_]?[0-9]+[A-Za-z]?"
    r"(?:\.[0-9]+[A-Za-z]?|_[A-Za-z0-9]+|-[0-9]+[A-Za-z]?){0,4}(?![A-Za-z0-9])"
)
"""`T012`, `T012a`, `T-012`, `T012.1`, `T012_new`; no `T012-T015`, which is several."""
TO = r"(?:-|–|—|\.{2,3}|\bto\b|\bthrough\b)"  # noqa: RUF001

_BOX = re.compile(r"\[(?P<box>[ xX~/!?>✓✔✅-]?)\][ \t]*(?P<rest>.*)", re.DOTALL)
_HEAD = re.compile(
    rf"(?P<open>[*_`~\[(]*)(?:✅[ \t]*)?(?P<id>{ID})(?P<to>[ \t]*{TO}[ \t]*{ID})?"
    rf"[*_`~\])]*[.:]?(?P<rest>.*)",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"[*_`\[(]*T(?:X{2,}|N{2,}|#{1,}|\?{2,})\b")
_MARK = re.compile(r"[\s:*_`—–-]*\[(?P<mark>[^\[\]\n]{1,60})\](?!\()[*_`:]*")  # noqa: RUF001
_LAST_MARK = re.compile(r"\[P\][\s.*_`]*\Z")
_STORY = re.compile(r"(?:US[-_ ]?[0-9]+|Story[- ]?[0-9]*)", re.IGNORECASE)
_MAX_MARKS = 12
_WORDS = re.compile(r"[\s,/|&+]+")
_DONE = frozenset("xX✓✔✅")
_DROPPED = "-"
"""What most who write `[-]` mean by it: skipped, deferred, superseded."""
_MAX_TITLE = 100
_SENTENCE = re.compile(r"(?<=[^.][.;])\s|\s[—–]\s")  # noqa: RUF001

_SEGMENT = r"(?:\([\w.-]+\)|[\w.@+\[\]{},*$=-]+)"
_PATH = re.compile(rf"(?![/~-]|\.\.){_SEGMENT}(?:/{_SEGMENT})*/?")
_EXTENSION = re.compile(r"[^/]\.[A-Za-z][A-Za-z0-9]{0,7}\Z")
_WEB = re.compile(r"\A(?:www\.|[\w-]+(?:\.[\w-]+)*\.(?:com|org|io|dev|net)/)", re.IGNORECASE)
# 'Node.js' and 'React.FC' are words; only these endings make a file of a name alone.
_NAME = re.compile(
    r"[\w.-]+\.(?:md|toml|json|ya?ml|cfg|ini|lock|txt|py|tsx?|jsx|mjs|cjs|go|rs|java|kts?|rb|php|cs"
    r"|sh|sql|s?css|html|xml|vue|svelte|swift|dart|cpp|hpp|proto|prisma|tf|gradle|mod|sum)"
)
_MAY_BE_FOLDER = 2
"""How many slashes make a folder of `a/b/c`; `and/or` has one."""
_SPACE = re.compile(r"[\s（）：，、；。「」]+|,(?![^{}\s]{0,80}\})")  # noqa: RUF001
_LIKE_PATH = re.compile(r"[/.]")
_MAX_PROSE = 20_000
"""A paragraph is no longer than this; what is, names no files."""
_TRIM = "\"'“”‘’<>,;:!?"  # noqa: RUF001


class Line(Struct, frozen=True, kw_only=True):
    """A line that names a task."""

    id: str
    title: str
    parallel: bool
    box: str | None
    """What is in the box, which may be nothing; None where there is no box."""
    struck: bool
    """It is struck through, or its box says that it was dropped."""
    several: bool
    """It names a range of tasks."""

    @property
    def done(self) -> bool:
        """Whether the box is ticked."""
        return bool(self.box) and self.box in _DONE


def boxed(text: str) -> Line | None:
    """The paragraph as a task's, if it begins with a box and an id."""
    found = _BOX.match(text)
    return None if found is None else _line(found["rest"], found["box"])


def plain(text: str) -> Line | None:
    """The text as a task's, if it begins with an id."""
    return _line(text, None)


def has_box(text: str) -> bool:
    """Whether the text begins with a box."""
    return _BOX.match(text) is not None


def placeholder(text: str) -> bool:
    """Whether a box stands before what a template has in the place of an id."""
    found = _BOX.match(text)
    return found is not None and _PLACEHOLDER.match(found["rest"]) is not None


def paths(text: str) -> Iterator[str]:
    """The paths that a text names: in backticks, or as words that can be nothing else."""
    for is_code, segment in markdown.segments(text[:_MAX_PROSE]):
        for word in filter(_LIKE_PATH.search, _SPACE.split(segment)):
            path = word.strip(_TRIM) if is_code else _bare(word)
            path = path.removeprefix("./")
            if _PATH.fullmatch(path) and _is_path(path, is_code=is_code):
                yield path


def _bare(word: str) -> str:
    """A word of prose without the punctuation around it."""
    word = word.strip(_TRIM + "*_")
    if word.startswith("(") or word.count("(") < word.count(")"):
        word = word.strip("()" + _TRIM)
    return word.rstrip(".")


def _is_path(path: str, *, is_code: bool) -> bool:
    if _WEB.match(path) or "..." in path or not any(char.isalnum() for char in path):
        return False
    if "/" not in path:
        return _NAME.fullmatch(path) is not None
    if path.endswith("/") or _EXTENSION.search(path):
        return True
    return is_code and path.count("/") >= _MAY_BE_FOLDER


def _line(text: str, box: str | None) -> Line | None:
    found = _HEAD.match(text)
    if found is None:
        return None
    rest, parallel = _marks(found["rest"])
    return Line(
        id=found["id"],
        title=_title(rest) or found["id"],
        parallel=parallel,
        box=box,
        struck="~~" in found["open"] or box == _DROPPED,
        several=found["to"] is not None,
    )


def _marks(text: str) -> tuple[str, bool]:
    """What follows the marks, and whether one of them says that the task may run beside others."""
    parallel = False
    at = 0
    kept: list[str] = []
    for _ in range(_MAX_MARKS):
        found = _MARK.match(text, at)
        if found is None:
            break
        words = _WORDS.split(found["mark"])
        parallel = parallel or "P" in words or "parallel" in found["mark"].casefold()
        at = found.end()
        if not all(word in ("P", "P?") or _STORY.fullmatch(word) for word in words):
            kept.append(f"[{found['mark']}]")
    rest = text[at:]
    if last := _LAST_MARK.search(rest[-20:]):
        parallel = True
        rest = rest[: len(rest) - len(last.group())]
    return " ".join([*kept, rest]), parallel


def _title(text: str) -> str:
    """The text as one line, cut where a sentence ends if it is long."""
    words = " ".join(text.replace("**", "").split()).lstrip(":—–- ")  # noqa: RUF001
    if len(words) <= _MAX_TITLE:
        return words
    first = _SENTENCE.split(words, maxsplit=1)[0].rstrip(".;")
    if len(first) <= _MAX_TITLE:
        return first
    return words[:_MAX_TITLE].rsplit(" ", 1)[0] + " …"
