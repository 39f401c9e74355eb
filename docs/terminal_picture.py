"""A terminal's screen, as tmux captures it with its colours, drawn as a small SVG."""

import html
import re
import unicodedata

_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_ADVANCE, _ROW, _EDGE = 8.0, 18, 14
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
    while lines and not _SGR.sub("", lines[-1]).strip():
        lines.pop()
    width, height = columns * _ADVANCE + 2 * _EDGE, len(lines) * _ROW + 2 * _EDGE
    colours = "".join(f".c{code}{{fill:{value}}}" for code, value in _COLOURS.items())
    rows, classes = list[str](), ""
    for at, line in enumerate(lines):  # a colour goes on in the next line until another is told
        row, classes = _line(line, at, classes)
        rows.append(row)
    drawn = "\n".join(filter(None, rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height}"'
        f' viewBox="0 0 {width:g} {height}" role="img" aria-label="{html.escape(title)}">'
        f"<style>{_STYLE}{colours}</style>"
        f'<rect width="100%" height="100%" rx="8" fill="#0f1317"/>\n{drawn}\n</svg>\n'
    )


def _line(line: str, at: int, classes: str) -> tuple[str, str]:
    y = _EDGE + at * _ROW + 13
    pieces, column = list[str](), 0
    parts = _SGR.split(line)
    for number, part in enumerate(parts):
        if number % 2:
            classes = _classes(part, classes)
            continue
        for run in re.finditer(r"\S+(?: \S+)*", part):  # what is blank needs no letters
            x = _EDGE + (column + _columns(part[: run.start()])) * _ADVANCE
            wide = _columns(run[0]) * _ADVANCE
            told = f' class="{classes}"' if classes else ""
            pieces.append(
                f'<tspan x="{x:g}" textLength="{wide:g}"{told}>{html.escape(run[0])}</tspan>'
            )
        column += _columns(part)
    return f'<text y="{y}">{"".join(pieces)}</text>' if pieces else "", classes


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
