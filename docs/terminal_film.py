"""A recording of a terminal, drawn as a small SVG that plays by itself and starts over.

Law: no script, and nothing from elsewhere, so that it plays wherever a page shows it as a picture.
The same recording always makes the same film. It is a strip of screens below each other; a style
moves the strip by whole screens. Whoever wants no motion sees the last screen.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from terminal_picture import EDGE, ROW, drawn, framed, whole

SHORTEST = 0.3
"""Seconds between two screens of a recording, at least: more could not be read."""
LONGEST = 3.0
"""Seconds for which the film shows a screen on which nothing changes."""
STAYS = 6.0
"""Seconds for which it shows the last one."""


@dataclass(frozen=True)
class Recording:
    """Screens of a terminal, each as the numbers of its lines, from a moment on."""

    columns: int
    rows: int
    lines: tuple[str, ...]
    screens: tuple[tuple[float, tuple[int, ...]], ...]

    def text(self, screen: int) -> str:
        """A screen with its colours."""
        return "\n".join(self.lines[number] for number in self.screens[screen][1])


def recording(seen: Iterable[tuple[float, str]], columns: int, rows: int) -> Recording:
    """What was seen at these seconds of a clock, without screens that passed too quickly."""
    numbers: dict[str, int] = {}
    screens: list[tuple[float, tuple[int, ...]]] = []
    start: float | None = None
    for at, screen in _lasting(seen):
        start = at if start is None else start
        lines = whole((screen.split("\n") + [""] * rows)[:rows])
        numbered = tuple(numbers.setdefault(line.rstrip(), len(numbers)) for line in lines)
        if not screens or screens[-1][1] != numbered:
            screens.append((round(at - start, 2), numbered))
    return Recording(columns, rows, tuple(numbers), tuple(screens))


def _lasting(seen: Iterable[tuple[float, str]]) -> Iterator[tuple[float, str]]:
    latest: tuple[float, str] | None = None
    for at, screen in seen:
        if latest is not None and at - latest[0] >= SHORTEST:
            yield latest
            latest = None
        # What stands when the time is over is shown, from when the first of them was seen.
        latest = (latest[0] if latest is not None else at, screen)
    if latest is not None:
        yield latest


def film(taken: Recording, title: str) -> str:
    """The film of a recording."""
    height = taken.rows * ROW
    lines = "".join(
        f'<text id="{_name(number)}" y="13">{pieces}</text>\n'
        for number, line in enumerate(taken.lines)
        if (pieces := drawn(line))
    )
    strip = "\n".join(
        "".join(
            f'<use href="#{_name(number)}" y="{screen * height + row * ROW}"/>'
            for row, number in enumerate(numbers)
            if taken.lines[number]
        )
        for screen, (_, numbers) in enumerate(taken.screens)
    )
    content = (
        f"<defs>{lines}</defs>"
        f'<svg y="{EDGE}" height="{height}"><g class="film">\n{strip}\n</g></svg>'
    )
    return framed(content, taken.columns, taken.rows, title, _motion(taken, height))


def _motion(taken: Recording, height: int) -> str:
    moments = [at for at, _ in taken.screens]
    lasts = [min(after - before, LONGEST) for before, after in pairwise(moments)] + [STAYS]
    total, at, steps = sum(lasts), 0.0, list[str]()
    for screen, each in enumerate(lasts):
        steps.append(f"{at / total:.3%}{{transform:translateY(-{screen * height}px)}}")
        at += each
    last = (len(lasts) - 1) * height
    return (
        f".film{{transform:translateY(-{last}px);animation:film {total:.1f}s step-end infinite}}"
        f"@keyframes film{{{''.join(steps)}}}"
        "@media(prefers-reduced-motion:reduce){.film{animation:none}}"
    )


def _name(number: int) -> str:
    return f"l{number:x}"
