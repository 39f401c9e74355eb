"""The pictures of the documentation: all that are shown are there, small, and drawn as captured."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[1]
PICTURES = sorted((ROOT / "docs/pictures").iterdir())
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def terminal_picture() -> ModuleType:
    return load("terminal_picture")


@pytest.fixture(scope="module")
def pictures(terminal_picture: ModuleType) -> ModuleType:
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
