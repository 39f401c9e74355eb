"""The shape of the code: small files, a pure core, no addresses, no machine paths."""

import ast
import importlib
import re
import subprocess
import sys
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

    helpers = {
        "__init__", "greeting", "main", "options", "person", "problems", "process", "running",
    }  # fmt: skip
    files = {path.stem for path in (ROOT / "src/windlass/cli").glob("*.py")} - helpers
    own = {module_of(name) for name in COMMANDS if module_of(name).startswith("windlass.cli.")}
    assert {f"windlass.cli.{name}" for name in files} == own
    for name in COMMANDS:
        importlib.import_module(module_of(name))


def test_requirements_are_pinned_with_hashes():
    for name, least in {"run.txt": 10, "build.txt": 3, "dev.txt": 10, "docs.txt": 10}.items():
        text = (ROOT / "requirements" / name).read_text()
        pins = re.findall(r"^[a-z0-9][\w.-]*==", text, re.MULTILINE)
        assert len(pins) > least
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
    "adapters/checks/setup_cache.py": "mkdir rename write_text shutil.copyfile",
    "adapters/git/checkouts.py": "mkdir open rename os.link",
    "adapters/locks.py": "os.open",
    "adapters/git/cleaning.py": "mkdir rename rmdir unlink write_bytes shutil.rmtree",
    "adapters/git/checkout_git_dir.py": (
        "mkdir open rename write_bytes os.link os.mkdir shutil.copyfile"
    ),
    "adapters/git/landing_record.py": (
        "chmod mkdir open rmdir unlink write_text os.link os.open shutil.copy2 shutil.rmtree"
    ),
    "adapters/git/store.py": "unlink write_bytes",
    "adapters/git/pool.py": "mkdir open rename rmdir touch unlink write_bytes os.rmdir os.unlink",
    "adapters/git/repository.py": "mkdir rename unlink",
    "adapters/git/commits.py": "unlink os.open",
    "adapters/journal/sqlite.py": "hardlink_to rename shutil.copyfile tempfile.TemporaryDirectory",
    "adapters/sandbox/seatbelt.py": "mkdir shutil.rmtree tempfile.TemporaryDirectory",
    "app/wiring/recovering.py": "rename",
    # The kernel's own files, which no agent can put anything in the place of.
    "adapters/processes/cgroups.py": "mkdir open rmdir write_text os.open",
    # A name goes, and never what it leads to.
    "adapters/git/pull_requests.py": "unlink",
    "adapters/disk.py": "unlink",
    "adapters/git/reconcile.py": "unlink",
    "adapters/git/paths.py": "chmod unlink",
    "adapters/journal/inbox.py": "unlink",
    "app/take.py": "unlink",
    "app/wiring/drafting.py": "shutil.rmtree",
    # Folders of the system's own for what passes, and devices.
    "adapters/sandbox/bubblewrap.py": "tempfile.TemporaryDirectory",
    "adapters/git/signing.py": "mkdir write_text tempfile.TemporaryDirectory",
    "app/wiring/machine.py": "tempfile.TemporaryDirectory",
    "cli/main.py": "os.open",
    "cli/screens/terminal.py": "os.open",
    # Files that are only read.
    "adapters/plan_files.py": "os.open",
    "adapters/sandbox/enter.py": "os.open",
    # A file that a person names outside of the repository, and the page that CI names.
    "cli/screens/actions.py": "open",
    "app/wiring/checkout_files.py": "open",
    # Demonstrations and rehearsals, in repositories that they make themselves.
    "cli/demo.py": "mkdir tempfile.mkdtemp",
    "selftest/commands.py": "unlink shutil.rmtree",
    "selftest/scenes.py": "mkdir rename unlink write_text shutil.rmtree",
    "selftest/place.py": "mkdir rename write_text shutil.copytree shutil.rmtree",
    "selftest/power.py": "shutil.rmtree",
    "selftest/series.py": "tempfile.TemporaryDirectory",
    "selftest/server.py": "os.open",
    "app/wiring/rehearsal.py": "open",
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


_OF_PROCESS = {"cli/process.py", "selftest/server.py"}
"""Modules that may change the process they run in: each is the entry of one."""
_CHANGES = {"clear", "update", "pop", "popitem", "setdefault", "__setitem__", "__delitem__"}


def _changes_its_process(tree: ast.AST) -> set[str]:
    """What a module does to the environment or the working directory of its process."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("os"), attr=name)):
                found |= {f"os.{name}"} & {"os.chdir", "os.fchdir", "os.putenv", "os.unsetenv"}
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in _CHANGES:
                found |= {f"os.environ.{name}"} if _is_environment(value) else set()
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if _is_environment(value):
                found.add("os.environ[]")
            case ast.Assign(targets=targets) if any(map(_is_environment, targets)):
                found.add("os.environ =")
            case ast.AugAssign(target=target) if _is_environment(target):
                found.add("os.environ |=")
            case ast.ImportFrom(module="os" | "contextlib", names=names):
                found |= {each.name for each in names} & {"environ", "chdir", "putenv", "unsetenv"}
            case _:
                pass
    return found


def _is_environment(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.environb"}


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['A'] = 'b'",
        "del os.environ['A']",
        "os.environ.update(A='b')",
        "os.environ |= {}",
        "os.environ = {}",
        "from os import environ",
        "os.chdir('/')",
        "from contextlib import chdir",
    ],
)
def test_a_change_of_the_process_is_found(text: str):
    assert _changes_its_process(ast.parse(text))
    assert not _changes_its_process(ast.parse("dict(os.environ); os.environ['A']; os.getcwd()"))


def test_no_module_but_an_entry_changes_the_process_it_runs_in():
    found = {
        path.relative_to(ROOT / "src/windlass").as_posix(): changes
        for path in SOURCES
        if (changes := _changes_its_process(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found.keys() == _OF_PROCESS, found


def test_only_a_report_needs_templates():
    """`windlass --help`, and every command but the one that writes HTML, start without jinja2."""
    code = (
        "import sys\n"
        "import windlass.app.run, windlass.cli.main, windlass.cli.report, windlass.cli.running\n"
        "from windlass.cli.main import COMMANDS, module_of\n"
        "[__import__(module_of(name)) for name in COMMANDS]\n"
        "sys.exit('jinja2' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_run_greets_before_it_imports_anything_heavy(command: str):
    """The first word of a run on a terminal must not wait for what reads and runs the plan."""
    code = (
        f"import sys, windlass.cli.{command}\n"
        "sys.exit(any(name in sys.modules for name in ('windlass.app.wiring', 'msgspec', 'anyio')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _names(tree: ast.AST) -> set[str]:
    """Every module, and every name of a module, that is imported."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module or ""}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def test_nothing_outside_of_the_core_decides_or_folds_but_through_the_engine():
    """The local runner, other engines, views and use cases drive `core.engine` alone."""
    below = {
        "windlass.core.scheduler.decide",
        "windlass.core.scheduler.decide.decide",
        "windlass.core.state.fold",
        *(f"windlass.core.state.{name}" for name in ("apply", "fold", "runs")),
        *(f"windlass.core.state.fold.{name}" for name in ("apply", "fold", "runs")),
    }
    outside = [path for path in SOURCES if "windlass/core/" not in path.as_posix()]
    found = {
        path.relative_to(ROOT).as_posix(): names
        for path in (*outside, *(ROOT / "bench").glob("*.py"))
        if (names := _names(ast.parse(path.read_text(encoding="utf-8"))) & below)
    }
    assert found == {}


def test_tests_drive_the_engine_where_facts_are_decided():
    """A test may fold facts to get a state; it may not decide by a loop of its own."""
    decides = {"windlass.core.scheduler.decide", "windlass.core.scheduler.decide.decide"}
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if _names(ast.parse(path.read_text(encoding="utf-8"))) & decides
    }
    assert found == set()


_WRITING = {
    "appends to a journal": "runner/session.py",
    "fills a journal with records": "runner/session.py",
    "restores a session": "app/wiring/recovering.py",
    "opens a session": "app/wiring/journals.py",
    "opens a journal to write": "app/wiring/journals.py",
    "takes a plan's lock": "app/wiring/journals.py",
}
"""What only one module does, so that a session is the one writer of a journal."""


def _writing(tree: ast.AST) -> set[str]:
    """The steps of writing to a journal that a module takes."""
    own = {"windlass.runner.Session", "windlass.runner.session.Session"} & _names(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="append"), keywords=keywords) if any(
                keyword.arg == "expected" for keyword in keywords
            ):
                found.add("appends to a journal")
            # A setup cache restores checkouts, which are no journals.
            case ast.Call(func=ast.Attribute(value=holder, attr="restore")) if not (
                ast.unparse(holder).endswith("checkouts")
            ):
                session = ast.unparse(holder).endswith("session")
                found.add("restores a session" if session else "fills a journal with records")
            case ast.Call(func=ast.Name("Session")) if own:
                found.add("opens a session")
            case ast.Call(func=ast.Attribute(value=ast.Name("SqliteJournal"), attr="open")):
                found.add("opens a journal to write")
            case ast.Call(func=ast.Name("PlanLock")):
                found.add("takes a plan's lock")
            case _:
                pass
    return found


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("journal.append(events, expected=3)", "appends to a journal"),
        ("self._journal.restore(records)", "fills a journal with records"),
        ("from windlass.runner import Session\nSession(journal)", "opens a session"),
        ("SqliteJournal.open(path, redactor)", "opens a journal to write"),
        ("PlanLock(path)", "takes a plan's lock"),
    ],
)
def test_a_step_of_writing_to_a_journal_is_found(text: str, step: str):
    assert _writing(ast.parse(text)) == {step}
    harmless = "found.append(1); SqliteJournal.read_only(path); self._checkouts.restore(at)"
    assert _writing(ast.parse(harmless)) == set()


def test_one_module_appends_to_a_journal():
    """The law of one writer: lock, journal and session are opened together, in one place."""
    homes: dict[str, set[str]] = {}
    for path in SOURCES:
        if "/testing/" in path.as_posix():
            continue
        for step in _writing(ast.parse(path.read_text(encoding="utf-8"))):
            name = path.relative_to(ROOT / "src/windlass").as_posix()
            homes.setdefault(step, set()).add(name)
    assert homes == {step: {home} for step, home in _WRITING.items()}


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "AGENTS.md"])
def test_every_path_that_a_map_names_is_there(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.py)`", text)
    assert len(paths) > 5
    roots = (ROOT, ROOT / "src/windlass", ROOT / "src")
    listed = {path.name for path in SOURCES}
    lost = [
        path
        for path in paths
        if not any((root / path).exists() or (root / f"{path}.py").exists() for root in roots)
        and not (path.endswith(".py") and "/" not in path and path in listed)
    ]
    assert lost == []
