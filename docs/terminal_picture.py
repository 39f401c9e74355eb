"""A terminal's screen, as tmux captures it with its colours, drawn as a small SVG."""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator

SGR = re.compile(r"\x1b\[([0-9;]*)m")
ROW, EDGE = 18, 14
_ADVANCE = 8.0
_COLOURS = {
    "31": "#ff8a83",
    "32": "#62cb85",
    "33": "#e5b14c",
    "34": "#7ab5ff",
    "35": "#d59bf2",
    "36": "#63cbd3",
}
_STYLE = """
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;
fill:#dfe5ec;white-space:pre}.b{font-weight:700}.d{fill:#8b96a3}
""".strip()


def picture(captured: str, columns: int, title: str) -> str:
    """The lines of a screen; nothing but what was on it."""
    lines = captured.rstrip("\n").split("\n")
    while lines and not SGR.sub("", lines[-1]).strip():
        lines.pop()
    rows = list[str]()
    for at, line in enumerate(whole(lines)):
        pieces = drawn(line)
        rows += [f'<text y="{EDGE + at * ROW + 13}">{pieces}</text>'] if pieces else []
    return framed("\n".join(rows), columns, len(lines), title)


def framed(content: str, columns: int, rows: int, title: str, style: str = "") -> str:
    """A picture of a terminal of that size, with this content."""
    width, height = columns * _ADVANCE + 2 * EDGE, rows * ROW + 2 * EDGE
    colours = "".join(f".c{code}{{fill:{value}}}" for code, value in _COLOURS.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}"'
        f' viewBox="0 0 {width:g} {height}" role="img" aria-label="{html.escape(title)}">'
        f"<style>{_STYLE}{colours}{style}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#0f1317"/>\n{content}\n</svg>\n'
    )


def whole(lines: Iterable[str]) -> Iterator[str]:
    """The lines, each with the colours that it begins with: tmux names only changes."""
    carried = ""
    for line in lines:
        yield carried + line if SGR.sub("", line).strip() else ""
        for code in ";".join(SGR.findall(line)).split(";") if "\x1b" in line else ():
            carried = "" if code in {"", "0"} else f"{carried}\x1b[{code}m"


def drawn(line: str) -> str:
    """The letters of a line that has all its colours; nothing for a blank one."""
    pieces, column, classes = list[str](), 0, ""
    parts = SGR.split(line)
    for number, part in enumerate(parts):
        if number % 2:
            classes = _classes(part, classes)
            continue
        for run in re.finditer(r"\S+(?: \S+)*", part):  # what is blank needs no letters
            x = EDGE + (column + _columns(part[: run.start()])) * _ADVANCE
            wide = _columns(run[0]) * _ADVANCE
            told = f' class="{classes}"' if classes else ""
            pieces.append(
                f'<tspan x="{x:g}" textLength="{wide:g}"{told}>{html.escape(run[0])}</tspan>'
            )
        column += _columns(part)
    return "".join(pieces)


def _classes(codes: str, before: str) -> str:
    found = before.split()
    for code in codes.split(";"):
        if code in {"", "0"}:
            found = []
        elif code == "39":
            found = [each for each in found if not each.startswith("c")]
        elif code == "1":
            found.append("b")
        elif code == "2":
            found.append("d")
        elif code in _COLOURS:
            found = [*(each for each in found if not each.startswith("c")), f"c{code}"]
    return " ".join(found)


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1 for char in text)
