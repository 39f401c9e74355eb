"""What the guides show is what there is: sessions, plans, settings, commands, messages, links."""

import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from transcripts import Command, Reader, difference, steps
from windlass.app.wiring.configuration import configure
from windlass.cli.main import cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
WRITTEN = [page for page in (*PAGES, ROOT / "README.md") if page.name != "cli.md"]
SESSIONS = [
    page
    for page in sorted((DOCS / "how-to").glob("*.md"))
    if any(isinstance(step, Command) for step in steps(page))
]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", SESSIONS, ids=name_of)
def test_a_session_shows_what_its_commands_show(page: Path, tmp_path: Path):  # G14, S1, X1, K1, B10
    Reader(tmp_path).follow(page)


def test_every_kind_of_plan_has_a_guide_that_loads_one():
    guides = {page.stem for page in SESSIONS if page.stem.startswith("coming-from-")}
    kinds = {"guardkit", "layers", "milestones", "spec-kit", "specflow"}
    assert guides == {f"coming-from-{kind}" for kind in kinds}
    for page in SESSIONS:
        if page.stem in guides:
            typed = [step.typed for step in steps(page) if isinstance(step, Command)]
            assert any(line.startswith("windlass plan ") for line in typed), page


@pytest.mark.parametrize(
    ("shown", "real", "wrong"),
    [
        (["a", "b"], "a\nb\n", ""),
        (["a", "c"], "a\nb\n", "c"),
        (["a"], "a\nb\n", "(and nothing more)"),
        (["a", "…"], "a\nb\nc\n", ""),
        (["…", "c"], "a\nb\nc\n", ""),
        (["…", "d"], "a\nb\nc\n", "d"),
        (["run … of 5"], "run 1 of 5\n", ""),
        (["run … of 5"], "run 1 of 6\n", "run … of 5"),
        (["10:00:00Z  DONE  1234567 · 1.5s"], "23:59:59Z  DONE  abcdef0 · 2m03s\n", ""),
        (["10:00:00Z  DONE"], "23:59:59Z  FAILED\n", "10:00:00Z  DONE"),
    ],
)
def test_whoever_follows_a_page_notices_what_is_not_so(shown: list[str], real: str, wrong: str):
    assert difference(shown, real) == wrong


def fences(page: Path, *kinds: str) -> Iterator[str]:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info in kinds:
            yield token.content


SETTINGS = [
    (page, text)
    for page in (*sorted((DOCS / "how-to").glob("*.md")), DOCS / "troubleshooting.md")
    for text in fences(page, "toml")
]


@pytest.mark.parametrize(("page", "text"), SETTINGS)
def test_settings_that_are_shown_can_be_set(page: Path, text: str, tmp_path: Path):
    (tmp_path / "windlass.toml").write_text(text, encoding="utf-8")
    configure(tmp_path, {}, {})  # a key nobody reads is an error


def commands(page: Path) -> Iterator[str]:
    """Every command line of windlass that the page has its reader type."""
    markdown = MarkdownIt()
    for token in markdown.parse(page.read_text(encoding="utf-8")):
        if token.type == "fence" and token.info in {"sh", "console", "yaml"}:
            for line in token.content.splitlines():
                yield from re.findall(r"(?:^|[\s$'])(windlass [^'|>]*)", line.split("  #")[0])
        for child in token.children or ():
            if child.type == "code_inline" and child.content.startswith("windlass "):
                yield " ".join(child.content.split())


def words_of(line: str) -> list[str]:
    try:
        return shlex.split(line.replace("…", "X"), comments=True)
    except ValueError:  # a quotation that was cut where the command ends
        return line.split()


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_commands_and_options_that_are_named_exist(page: Path):
    for line in commands(page):
        words = words_of(line)
        name = next((word for word in words[1:] if not word.startswith("-")), None)
        if name is None or words[1].startswith("/"):
            continue
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, f"{name_of(page)}: {line!r}: there is no such command"
        known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        known |= {"-h", "--help"}
        for word in words[2:]:
            if word.startswith("-") and word != "-":
                option = word.partition("=")[0]
                assert option in known, f"{name_of(page)}: {line!r}: no option {option}"


def messages(page: Path) -> list[str]:
    """The messages that a page's headings quote."""
    return re.findall(r"(?m)^###+ `([^`]+)`$", page.read_text(encoding="utf-8"))


def said_in_source() -> Iterator[str]:
    """Every text in the source but docstrings, with `…` for what is filled in."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        described = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if id(node) in described:
                continue
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…"
                    for part in node.values
                )


def test_every_message_that_is_explained_is_still_said():
    texts = list(said_in_source())
    quoted = messages(DOCS / "troubleshooting.md")
    assert len(quoted) >= 20
    for message in quoted:
        # A part that is filled in may be written out on the page, and a cut may stand for more.
        parts = [part for part in message.split("…") if part.strip()]
        assert any(_in_order(parts, text) for text in texts), f"nobody says {message!r}"


def _in_order(parts: list[str], text: str) -> bool:
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def targets(page: Path) -> Iterator[str]:
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            for name in ("href", "src"):
                target = str(child.attrGet(name) or "")
                if target and not re.match(r"[a-z]+:", target):
                    yield target


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            words = re.sub(r"[^\w\- ]", "", token.content.lower())
            found.add(words.replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=name_of)
def test_links_lead_somewhere(page: Path):
    for target in targets(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name_of(page)}: {target}"
        assert there.is_relative_to(ROOT), f"{name_of(page)}: {target} leads out"
        if anchor:
            assert anchor in anchors(there), f"{name_of(page)}: {target}"
