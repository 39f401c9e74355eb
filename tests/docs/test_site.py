"""The site builds from the pages that there are, and needs nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(300)  # the whole of it is built, maybe beside much else
AT_ROOT = (
    "AGENTS.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
)


def built(root: Path) -> subprocess.CompletedProcess[str]:
    """The site of a copy of the documentation, as `make site` builds it."""
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8")
    options = re.search(r"-m sphinx (.*) -d \S+ docs build/site", recipe)
    assert options is not None, "make site builds it in another way"
    return subprocess.run(
        [sys.executable, "-m", "sphinx", *options[1].split(), "docs", "site"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )


def copied(to: Path, added: str) -> Path:
    """A copy of the documentation with a page that nobody knew of."""
    ignored = shutil.ignore_patterns("__pycache__", "_build")
    shutil.copytree(ROOT / "docs", to / "docs", ignore=ignored)
    for name in AT_ROOT:
        shutil.copy(ROOT / name, to / name)
    (to / "docs/added.md").write_text(f"# Added by somebody\n\n{added}\n", encoding="utf-8")
    return to


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = copied(tmp_path_factory.mktemp("whole"), "[gate](gate.md)")
    done = built(copy)
    assert done.returncode == 0, done.stderr
    return copy


def test_every_page_is_in_the_site_and_a_new_one_too(site: Path):
    pages = [path.relative_to(site / "docs") for path in (site / "docs").rglob("*.md")]
    assert Path("added.md") in pages
    assert [
        page for page in pages if not (site / "site" / page.with_suffix(".html")).exists()
    ] == []
    index = (site / "site/index.html").read_text(encoding="utf-8")
    margin = [page.with_suffix(".html").as_posix() for page in pages if page.name[0] not in "0123"]
    assert [page for page in margin if f'href="{page}"' not in index and page != "index.html"] == []
    architecture = (site / "site/architecture.html").read_text(encoding="utf-8")
    assert "The journal is the only record of decisions" in architecture


def test_a_page_of_the_site_loads_nothing_from_elsewhere(site: Path):
    for page in (site / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"(?:https?:)?//[^\"]+\"", text)
        loaded += re.findall(
            r"<link[^>]*rel=\"(?:stylesheet|preload)\"[^>]*href=\"http[^\"]+", text
        )
        assert loaded == [], page


@pytest.mark.parametrize(("target", "code"), [("index.md", 0), ("not-there.md", 1)])
def test_a_link_to_nowhere_is_an_error(target: str, code: int, tmp_path: Path):
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs/_static", docs / "_static")
    shutil.copy(ROOT / "docs/conf.py", docs)
    (docs / "index.md").write_text("# All there is\n", encoding="utf-8")
    (docs / "added.md").write_text(f"# Added\n\n[there]({target})\n", encoding="utf-8")
    done = built(tmp_path)
    assert done.returncode == code, done.stderr
    assert ("not-there.md" in done.stderr) is bool(code)


def test_what_the_site_needs_goes_with_what_the_tests_need():
    """Both are installed into one place, so a package has one version."""
    pins: dict[str, set[str]] = {}
    for name in ("run", "dev", "docs"):
        text = (ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")
        for package, version in re.findall(r"(?m)^([\w.-]+)==(\S+) \\$", text):
            pins.setdefault(package, set()).add(version)
    assert len(pins) > 40
    assert {package: found for package, found in pins.items() if len(found) > 1} == {}
