"""The shape of the code: small files, a pure core, no addresses, no machine paths."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_LINES = 400


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_module_is_small_and_opens_with_its_law(path: Path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert ast.get_docstring(ast.parse(text)), "say what the module is for"


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def test_no_file_names_a_registry_or_a_machine():
    # Written so that this file does not name them either.
    hosts = ("pypi" + ".org", "python" + "hosted", "npm" + "js.org", "deb." + "debian.org")
    places = re.compile(
        "|".join(re.escape(host) for host in hosts) + r"|/wo" + r"rk/|/ro" + r"ot/\."
    )
    named = [
        f"{path.relative_to(ROOT)}: {line.strip()[:80]}"
        for path in _tracked()
        for line in path.read_text(encoding="utf-8", errors="ignore").splitlines()
        if places.search(line)
    ]
    assert named == []


def test_every_command_in_the_help_has_a_file_and_the_other_way_round():
    from windlass.cli.main import COMMANDS, module_of

    helpers = {"__init__", "main", "config", "options", "finding", "hauling", "saying", "detect"}
    helpers |= {
        "resting",
        "pointing",
        "asking",
        "changed_since",
        "watching",
        "showing",
        "following",
        "greeting",
        "skills",
        "walls",
    }
    files = {path.stem for path in (ROOT / "src/windlass/cli").glob("*.py")} - helpers
    assert files == set(map(module_of, COMMANDS))


def test_requirements_are_pinned_with_hashes():
    for name in ("run.txt", "dev.txt"):
        text = (ROOT / "requirements" / name).read_text()
        pins = re.findall(r"^[a-z0-9][\w.-]*==", text, re.MULTILINE)
        assert len(pins) > 10
        blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
        assert all("--hash=sha256:" in block for block in blocks)
