"""`windlass init`: what is written, what is only printed, and what is never overwritten."""

import os
import pty
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from desk import Desk
from windlass.app.detect import Proposal, detect
from windlass.app.init import settings_text
from windlass.app.wiring.configuration import configure

TESTED = '{"scripts": {"test": "vitest"}, "devDependencies": {"vitest": "3"}}'


class TestText:
    def test_it_says_why(self):
        proposal = detect({"requirements.txt": "pytest\n", "package.json": TESTED})
        assert settings_text(proposal) == snapshot("""\
#:schema .windlass/windlass.schema.json
# Settings of Windlass. `windlass doctor` lists every key, its value and bounds.

# Every task, and every merge, must pass these.
checks = [
    # requirements.txt names pytest
    ".venv/bin/python -m pytest -q",
    # package.json has a script 'test': vitest
    "npm test",
]

[workspace]
# Run in every checkout before agents and checks use it; network allowed.
setup = [
    # requirements.txt names pytest
    "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
    # package.json names packages, and there is no lock file
    "npm install --no-package-lock",
]
# The result of setup is used again while these files stay the same.
inputs = ["requirements.txt", "package.json"]
# Folders that never enter a commit, unless the base has them.
keep = [".venv", "node_modules"]
""")

    def test_without_any_check_it_says_so(self):
        assert settings_text(Proposal()) == snapshot("""\
#:schema .windlass/windlass.schema.json
# Settings of Windlass. `windlass doctor` lists every key, its value and bounds.

# Commands that prove the project. None was found; without one, only agents judge
# whether the work is right. For example: checks = ["make test"]
checks = []
""")

    @pytest.mark.parametrize(
        "files",
        [
            {},
            {"requirements.txt": "pytest\n", "package.json": TESTED, "package-lock.json": "{}"},
            {"Cargo.toml": "[dependencies]\nx = '1'\n"},
            {"pom.xml": "", "Makefile": "test:\n"},
            {"package.json": '{"scripts": {"test": "a \\\\ \\" \\n # \\u0007 b"}}'},
            {"my \"te\\sts'/test_a.py": "import unittest\n"},
            {"tests\n[evil]\n/test_a.py": "import unittest\n"},
        ],
    )
    def test_it_is_read_back_as_it_was_meant(self, files: dict[str, str], tmp_path: Path):
        proposal = detect(files)
        (tmp_path / "windlass.toml").write_text(settings_text(proposal))
        settings = configure(tmp_path, {}, {}).settings
        lines = (check.line.replace("\n", "") for check in proposal.checks)
        assert settings.checks == tuple(lines)
        assert settings.workspace.setup == tuple(command.line for command in proposal.setup)
        assert settings.workspace.inputs == (proposal.inputs if proposal.setup else ())
        assert settings.workspace.keep == proposal.keep


@pytest.fixture
def tested(desk: Desk) -> Desk:
    desk.commit("Makefile", "test:\n\ttrue\n")
    return desk


TOML = """\
#:schema .windlass/windlass.schema.json
# Settings of Windlass. `windlass doctor` lists every key, its value and bounds.

# Every task, and every merge, must pass these.
checks = [
    # Makefile has a recipe 'test'
    "make test",
]
"""


class TestCommand:
    def test_with_yes_it_writes(self, tested: Desk):
        answer = tested.call("init", "--yes")
        assert (answer.code, answer.err) == (0, "")
        assert (tested.repo / "windlass.toml").read_text() == TOML
        told = answer.out.splitlines()
        assert told[:2] == ["  check  make test", "         Makefile has a recipe 'test'"]
        assert told[2].startswith("sandbox  ")
        assert f"Wrote {tested.repo}/windlass.toml" in told
        assert tested.git("status", "--porcelain") == "?? windlass.toml\n"

    def test_without_a_terminal_it_prints_and_says_what_to_run(self, tested: Desk):
        before = tested.everything()
        answer = tested.call("init")
        assert answer.code == 3
        assert answer.out == TOML
        assert answer.err == (
            "windlass: windlass.toml was not written without asking; run `windlass init --yes`\n"
        )
        assert tested.everything() == before

    def test_a_file_that_is_there_is_never_replaced_unasked(self, tested: Desk):
        tested.write("windlass.toml", "agents = 2\n")
        before = tested.everything()
        for args in (["init"], ["init", "--yes"]):
            answer = tested.call(*args)
            assert (answer.code, answer.out) == (2, "")
            assert answer.err == (
                "windlass: windlass.toml exists, and was not changed;"
                " `windlass init --force` replaces it, and `windlass doctor` shows its settings\n"
            )
        assert tested.everything() == before

    def test_force_replaces_it(self, tested: Desk):
        tested.write("windlass.toml", "agents = 2\n")
        answer = tested.call("init", "--force")
        assert answer.code == 3
        assert answer.err.endswith("run `windlass init --yes --force`\n")
        assert tested.call("init", "--yes", "--force").code == 0
        assert (tested.repo / "windlass.toml").read_text() == TOML

    def test_a_section_in_pyproject_is_not_hidden_unasked(self, tested: Desk):
        tested.write("pyproject.toml", "[tool.windlass]\nagents = 2\n")
        answer = tested.call("init", "--yes")
        assert answer.code == 2
        assert answer.err == (
            "windlass: pyproject.toml has [tool.windlass], which a windlass.toml would"
            " override; edit it there, or use `windlass init --force`\n"
        )
        assert not (tested.repo / "windlass.toml").exists()

    def test_it_looks_at_the_root_from_wherever_it_is_called(self, tested: Desk):
        tested.write("docs/x.md", "")
        tested.directory = tested.repo / "docs"
        assert tested.call("init", "--yes").code == 0
        assert (tested.repo / "windlass.toml").read_text() == TOML

    def test_what_git_ignores_says_nothing(self, desk: Desk):
        desk.commit(".gitignore", "Makefile\n")
        desk.write("Makefile", "test:\n")
        assert "checks = []" in desk.call("init").out

    def test_files_too_large_and_files_that_are_gone_say_nothing(self, tested: Desk):
        tested.write("Makefile", "test:\n" + "#" * 1_000_001)
        assert "checks = []" in tested.call("init").out
        (tested.repo / "Makefile").unlink()
        assert "checks = []" in tested.call("init").out

    def test_an_empty_repository_is_good_enough(self, tested: Desk):
        tested.git("update-ref", "-d", "HEAD")
        assert tested.call("init").out == TOML

    def test_nothing_found_is_said(self, desk: Desk):
        answer = desk.call("init", "--yes")
        assert answer.code == 0
        assert answer.out.startswith("No checks found")
        assert tomllib.loads((desk.repo / "windlass.toml").read_text()) == {"checks": []}

    def test_a_missing_tool_is_said(self, desk: Desk, tmp_path: Path):
        desk.commit("go.mod", "module x\n")
        desk.commit("tests/test_a.py", "def test_a(): ...\n")
        tools = tmp_path / "bin"
        tools.mkdir()
        (tools / "git").symlink_to(shutil.which("git") or "")
        (tools / "python3").write_text("#!/bin/sh\nexit 1\n")
        (tools / "python3").chmod(0o755)
        answer = desk.call("init", "--yes", PATH=str(tools))
        assert answer.code == 0
        assert "   note  `go` is not on PATH, and `go test ./...` needs it\n" in answer.out
        assert (
            "   note  `python3` has no pytest: install it there, or in each checkout"
            " with [workspace] setup\n"
        ) in answer.out

    @pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
    def test_missing_walls_are_said(self, tested: Desk):
        tested.without_bubblewrap()
        answer = tested.call("init", "--yes")
        assert answer.code == 0
        assert (
            "sandbox  no walls work here (bubblewrap (`bwrap`) is not installed): a run asks before"
            " it starts\n"
            "         install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`, …\n"
            "         or run without walls: `windlass run PLAN --sandbox checkout`\n"
        ) in answer.out
        made = sorted(path.name for path in (tested.repo / ".windlass").iterdir())
        assert made == [".gitignore", "windlass.schema.json"], "and nothing of a run"


class TestTerminal:
    @pytest.mark.parametrize(
        ("typed", "written", "said"),
        [(b"\n", True, "Wrote "), (b"n\n", False, "Nothing was written.\n")],
    )
    def test_a_person_is_asked(self, tested: Desk, typed: bytes, written: bool, said: str):  # noqa: FBT001
        ours, theirs = pty.openpty()
        try:
            with subprocess.Popen(
                [sys.executable, "-m", "windlass", "init"],
                cwd=tested.repo,
                env=tested.environment,
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
            ) as process:
                os.write(ours, typed)
                out, _ = process.communicate(timeout=30)
            asked = os.read(ours, 1000).decode()
        finally:
            os.close(ours)
            os.close(theirs)
        assert process.returncode == 0
        assert "Write windlass.toml? [Y/n]: " in asked
        assert said in out
        assert (tested.repo / "windlass.toml").exists() == written
