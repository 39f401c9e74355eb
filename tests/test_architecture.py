"""The shape of the code: small files, a pure core, no addresses, no machine paths."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
MAX_LINES = 600


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
        "acceptance",
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


DOOR = "adapters/files.py"
"""What Windlass writes into a checkout or beside it goes through this module, and no other way."""

_CALLS = {
    "os": "open rename replace renames mkdir makedirs unlink remove rmdir symlink link chmod "
    "truncate mkfifo mknod",
    "shutil": "copy copy2 copyfile copytree move rmtree",
    "tempfile": "mkdtemp mkstemp NamedTemporaryFile TemporaryDirectory",
}
_METHODS = "write_text write_bytes mkdir touch rename unlink rmdir symlink_to hardlink_to chmod"
_ELSEWHERE = {
    # Folders that are made anew below Windlass's own, in which no agent has worked yet, or that
    # are Windlass's alone: indexes, throwaway checkouts, what setup commands made.
    "adapters/furnish.py": "mkdir rename write_text shutil.copyfile",
    "adapters/git/checkouts.py": "mkdir rename os.link",
    "adapters/exclusive.py": "os.open",
    "adapters/git/cleaning.py": "mkdir rename write_bytes shutil.rmtree",
    "adapters/git/dress.py": "mkdir open write_bytes os.mkdir",
    "adapters/git/histories.py": "mkdir rename os.link shutil.copyfile",
    "adapters/git/landing_intent.py": (
        "chmod open rmdir write_text os.link os.open shutil.copy2 shutil.rmtree"
    ),
    "adapters/git/objects.py": "write_bytes",
    "adapters/git/pool.py": "mkdir rename rmdir",
    "adapters/git/pristine.py": "open touch unlink write_bytes os.rmdir os.unlink",
    "adapters/git/repository.py": "mkdir rename unlink",
    "adapters/git/snapshots.py": "unlink",
    "adapters/git/store.py": "unlink",
    "adapters/git/throwaways.py": "mkdir open",
    "adapters/journal/sqlite.py": "hardlink_to rename tempfile.TemporaryDirectory",
    "adapters/sandbox/seatbelt.py": "mkdir shutil.rmtree tempfile.TemporaryDirectory",
    "cli/wiring/recovering.py": "rename",
    # The kernel's own files, which no agent can put anything in the place of.
    "adapters/cgroups.py": "mkdir open rmdir write_text os.open",
    # A name goes, and never what it leads to.
    "adapters/git/landing_rollback.py": "mkdir rmdir unlink",
    "adapters/git/publishing.py": "unlink",
    "adapters/git/unpinning.py": "rmdir unlink",
    "adapters/disk.py": "unlink",
    "adapters/git/reconcile.py": "unlink",
    "adapters/git/removal.py": "rmdir unlink os.chmod shutil.rmtree",
    "adapters/git/snares.py": "chmod unlink",
    "adapters/inbox.py": "unlink",
    "cli/take.py": "unlink",
    "cli/wiring/drafting.py": "shutil.rmtree",
    # Folders of the system's own for what passes, and devices.
    "adapters/journal/salvage.py": "shutil.copyfile tempfile.TemporaryDirectory",
    "adapters/sandbox/bubblewrap.py": "tempfile.TemporaryDirectory",
    "cli/wiring/machine.py": "tempfile.TemporaryDirectory",
    "cli/main.py": "os.open",
    "ui/lasting.py": "os.open",
    # Files that are only read.
    "adapters/git/handwork.py": "os.open",
    "adapters/plan_files.py": "os.open",
    "adapters/sandbox/enter.py": "os.open",
    # A file that a person names outside of the repository, and the page that CI names.
    "cli/showing.py": "open",
    "cli/wiring/reporting.py": "open",
    # Demonstrations and rehearsals, in repositories that they make themselves.
    "cli/demo.py": "mkdir tempfile.mkdtemp",
    "cli/rehearsals/commands.py": "unlink shutil.rmtree",
    "cli/rehearsals/scenes.py": "mkdir rename unlink write_text shutil.rmtree",
    "cli/rehearsals/place.py": "mkdir rename write_text shutil.copytree shutil.rmtree",
    "cli/rehearsals/power.py": "shutil.rmtree",
    "cli/rehearsals/series.py": "tempfile.TemporaryDirectory",
    "cli/rehearsals/server.py": "os.open",
    "cli/wiring/rehearsal.py": "open",
}
"""Modules that may write without the door, each with the calls it may make, and why."""


def _writes(tree: ast.AST) -> set[str]:
    """The calls of a module that make, change or remove files."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function, holder = node.func, ""
        name = function.id if isinstance(function, ast.Name) else ""
        if isinstance(function, ast.Attribute):
            name = function.attr
            holder = function.value.id if isinstance(function.value, ast.Name) else "?"
        if holder in _CALLS:
            found |= {f"{holder}.{name}"} if name in _CALLS[holder].split() else set()
        elif name == "open" and _opens_to_write(node, method=bool(holder)):
            found.add("open")
        elif holder and name in _METHODS.split():
            found.add(name)
    return found


def _opens_to_write(node: ast.Call, *, method: bool) -> bool:
    modes = [*node.args[0 if method else 1 :], *(each.value for each in node.keywords)]
    texts = [each.value for each in modes if isinstance(each, ast.Constant)]
    return any(
        isinstance(text, str) and re.fullmatch("[rwaxbt+]*[wax+][bt+]*", text) for text in texts
    )


def test_what_windlass_writes_goes_through_one_door():
    """A link that a task commits leads nowhere: nothing else opens a file to write it."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        name = path.relative_to(ROOT / "src/windlass").as_posix()
        if name != DOOR and not name.startswith("testing/"):
            found[name] = _writes(ast.parse(path.read_text(encoding="utf-8")))
    beyond = {name: calls - set(_ELSEWHERE.get(name, "").split()) for name, calls in found.items()}
    assert {name: calls for name, calls in beyond.items() if calls} == {}, (
        f"write through {DOOR}; or say here why no link can stand in the way"
    )
    assert set(_ELSEWHERE) <= set(found), "a module that is gone may write nothing"
