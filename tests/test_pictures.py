"""The pictures of the documentation: those that are shown exist, are small, and are up to date."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import msgspec
import pytest

from windlass.testing.sample import FILES

ROOT = Path(__file__).parents[1]
PICTURES = sorted((ROOT / "docs/pictures").iterdir())
SVG = "{http://www.w3.org/2000/svg}"
AGAIN = "run: python docs/pictures.py demo"


@pytest.fixture(scope="module")
def terminal_picture() -> ModuleType:
    return load("terminal_picture")


@pytest.fixture(scope="module")
def terminal_film(terminal_picture: ModuleType) -> ModuleType:
    return load("terminal_film")


@pytest.fixture(scope="module")
def pictures(terminal_film: ModuleType) -> ModuleType:
    load("pictures_story")
    return load("pictures")


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_picture_that_is_shown_is_there():
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for shown in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / shown).is_file(), f"{page}: {shown}"


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_small(path: Path):
    assert path.stat().st_size < 200_000
    if path.suffix == ".svg":
        ET.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314  our own file


def test_colours_go_on_until_another_is_told(terminal_picture: ModuleType):
    captured = "\x1b[1m ab\x1b[0m <c>\n\x1b[2mdim\nstill\x1b[32m green\x1b[39m dim\n\n\n"
    root = ET.fromstring(terminal_picture.picture(captured, 80, "x & y"))  # noqa: S314
    rows = [
        [(span.get("x"), span.get("class"), span.text) for span in row]
        for row in root.iter(f"{SVG}text")
    ]
    assert rows == [
        [("22", "b", "ab"), ("46", None, "<c>")],
        [("14", "d", "dim")],
        [("14", "d", "still"), ("62", "d c32", "green"), ("110", "d", "dim")],
    ]
    assert root.get("width") == "668"
    assert root.get("aria-label") == "x & y"


def test_the_picture_is_of_the_moment_that_was_waited_for(pictures: ModuleType):
    class Changing(pictures.Terminal):
        """A terminal that shows something else whenever it is looked at."""

        def __init__(self) -> None:
            self.shown = iter(["starting", "\x1b[33mli\x1b[0mmit", "over"])

        def screen(self) -> str:
            return next(self.shown)

    assert Changing().until(lambda text: "limit" in text) == "\x1b[33mli\x1b[0mmit"


def plain(terminal_picture: ModuleType, taken) -> str:
    """Every line of the recording, without colours."""
    return "\n".join(terminal_picture.SGR.sub("", line) for line in taken.lines)


class TestTheFilm:
    """`demo.svg` plays a recording of the plan of `windlass demo`, run by hand."""

    @pytest.fixture
    def taken(self, terminal_film: ModuleType):
        recorded = (ROOT / "docs/pictures/demo.json").read_bytes()
        return msgspec.json.decode(recorded, type=terminal_film.Recording)

    def test_it_is_drawn_from_the_recording(self, pictures: ModuleType, taken):
        drawn = pictures.film(taken, pictures.FILM_TITLE)
        shown = (ROOT / "docs/pictures" / pictures.FILM).read_text(encoding="utf-8")
        assert drawn == shown, "run: python docs/pictures.py film"

    def test_it_plays_as_a_picture_on_any_page(self, pictures: ModuleType):
        """A code host runs no script in a picture, and loads nothing for it."""
        text = (ROOT / "docs/pictures" / pictures.FILM).read_text(encoding="utf-8")
        root = ET.fromstring(text)  # noqa: S314  our own file
        tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        assert tags == {"svg", "style", "rect", "defs", "text", "tspan", "g", "use"}
        linked = [value for each in root.iter() for key, value in each.items() if "href" in key]
        assert {value[0] for value in linked} == {"#"}
        style = "".join(each.text or "" for each in root.iter(f"{SVG}style"))
        assert "step-end infinite" in style
        assert "prefers-reduced-motion" in style
        assert "url(" not in style
        assert "@import" not in style

    def test_every_line_fits_into_80_columns(self, terminal_picture: ModuleType, taken):
        assert (taken.columns, taken.rows) == (80, 24)
        assert all(len(terminal_picture.SGR.sub("", line)) <= 80 for line in taken.lines)

    def test_it_tells_the_story_of_the_demo(self, terminal_picture: ModuleType, taken):
        said = plain(terminal_picture, taken)
        for command in ("run plan.md --agents 2", "resume", "land"):
            assert f"$ windlass {command}" in said
        for title in re.findall(r"(?m)^## Task 1\.\d: (.+)$", FILES["plan.md"]):
            assert title in said, f"{title}: {AGAIN}"
        for word in ("RETURNED", "Killed", "RESUME", "CONFLICT", "DONE", "Summary", "LANDED"):
            assert word in said, f"{word}: {AGAIN}"
        assert "WARNING" not in said

    def test_windlass_still_says_what_it_shows(self, terminal_picture: ModuleType, taken):
        said = plain(terminal_picture, taken)
        source = "".join(
            path.read_text(encoding="utf-8") for path in sorted((ROOT / "src").rglob("*.py"))
        )
        words = set(re.findall(r"(?m)^ {3,}([A-Z]\w+) (?:\[[^]]+\]| {10}) ", said))
        assert len(words) > 6
        missing = [word for word in sorted(words) if f'"{word}"' not in source]
        assert missing == [], AGAIN
        for text in re.findall(r"(?m)^ (Ctrl-C.+)$", said):
            assert text.removesuffix("Killed") in source, f"{text}: {AGAIN}"

    def test_a_screen_that_passes_too_quickly_is_left_out(self, terminal_film: ModuleType):
        seen = [(0.0, "a"), (0.1, "b"), (0.35, "c\nd"), (0.4, "c\nd"), (2.0, "e")]
        taken = terminal_film.recording(seen, columns=80, rows=2)
        texts = [taken.text(number) for number in range(len(taken.screens))]
        assert texts == ["b\n", "c\nd", "e\n"]
        assert [at for at, _ in taken.screens] == [0.0, 0.35, 2.0]

    def test_the_strip_stands_still_where_nothing_changes(self, terminal_film: ModuleType):
        taken = terminal_film.recording([(0, "a"), (1, "b"), (60, "c")], columns=80, rows=1)
        drawn = terminal_film.film(taken, "x")
        length = 1 + terminal_film.LONGEST + terminal_film.STAYS
        assert f"animation:film {length:.1f}s" in drawn
        first, second, third = (f"translateY(-{18 * screen}px)" for screen in range(3))
        assert f"0.000%{{transform:{first}}}{1 / length:.3%}{{transform:{second}}}" in drawn
        assert f"{(length - terminal_film.STAYS) / length:.3%}{{transform:{third}}}" in drawn
        assert f".film{{transform:{third};" in drawn
