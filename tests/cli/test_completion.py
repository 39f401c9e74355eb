"""Shell completion, in real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from desk import Desk

PROGRESS = '{"tasks": {"1.1": {"status": "completed"}, "1.2": {"status": "abandoned"}}}'

_BASH = """\
eval "$(windlass completion bash)" || exit 9
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
compopt() { [ "$2" = default ] && echo FILES; }
_windlass_completion windlass
printf '%s\\n' "${COMPREPLY[@]}"
"""
_ZSH = """\
autoload -U compinit; compinit -u -D
eval "$(windlass completion zsh)" || exit 9
words=("$@"); CURRENT=$#
_describe() { print -l -- "${(@P)3}"; }
_path_files() { echo FILES; }
_windlass_completion
"""
_FISH = """\
windlass completion fish | source; or exit 9
complete --do-complete (string join ' ' -- $argv)
"""


class Shells:
    """Completes words in each shell, in a repository with two plans that were run."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        program = folder / "windlass"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m windlass "$@"\n')
        program.chmod(0o755)
        self.environment = {
            **desk.environment,
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
        }
        for plan in ("auth", "billing"):
            desk.write(f".windlass/plans/{plan}/runs/r1/state.json", PROGRESS)
        desk.write(".windlass/plans/broken/runs/r1/state.json", "{")

    def bash(self, *words: str) -> list[str]:
        return self._run(["bash", "--norc", "-c", _BASH, "bash", "windlass", *words])

    def zsh(self, *words: str) -> list[str]:
        return self._run(["zsh", "-f", "-c", _ZSH, "zsh", "windlass", *words])

    def fish(self, *words: str) -> list[str]:
        shown = self._run(["fish", "--no-config", "-c", _FISH, "windlass", *words])
        return [line.partition("\t")[0] for line in shown]

    def _run(self, command: list[str]) -> list[str]:
        done = subprocess.run(
            command,
            cwd=self.desk.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return [line for line in done.stdout.splitlines() if line]


@pytest.fixture
def shells(desk: Desk, tmp_path: Path) -> Shells:
    folder = tmp_path / "bin"
    folder.mkdir()
    return Shells(desk, folder)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
class TestBash:
    def test_commands(self, shells: Shells):
        assert shells.bash("st") == ["status", "stop"]
        assert {"init", "run", "land", "completion"} <= set(shells.bash(""))

    def test_options_and_their_values(self, shells: Shells):
        assert shells.bash("run", "plan.md", "--max-t") == ["--max-turns", "--max-tokens"]
        assert shells.bash("run", "plan.md", "--display", "p") == ["plain"]
        assert shells.bash("completion", "") == ["bash", "zsh", "fish"]

    def test_a_plan_to_run_is_a_file(self, shells: Shells):
        assert shells.bash("run", "pl") == ["FILES"]
        assert shells.bash("adopt", "") == ["FILES"]

    def test_plans_that_were_run_here(self, shells: Shells):
        assert shells.bash("status", "") == ["auth", "billing", "broken"]
        assert shells.bash("log", "b") == ["billing", "broken"]
        assert shells.bash("resume", "pl") == ["FILES"], "or else a file"
        shells.desk.directory = shells.desk.repo / "src"
        shells.desk.directory.mkdir()
        assert shells.bash("land", "a") == ["auth"], "also below the root"
        shells.desk.directory = shells.desk.root
        assert shells.bash("land", "--repo", "repo", "a") == ["auth"]
        assert shells.bash("land", "a") == ["FILES"], "no repository here"

    def test_task_ids(self, shells: Shells):
        assert shells.bash("diff", "") == ["1.1", "1.2"]
        assert shells.bash("retry", "1.2") == ["1.2"]
        assert shells.bash("log", "auth", "--task", "") == ["1.1", "1.2"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh(shells: Shells):
    assert [line.partition(":")[0] for line in shells.zsh("st")] == ["status", "stop"]
    assert [line.partition(":")[0] for line in shells.zsh("diff", "1.1")] == ["1.1"]
    assert shells.zsh("run", "pl") == ["FILES"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish(shells: Shells):
    assert shells.fish("st") == ["status", "stop"]
    assert shells.fish("diff", "1.") == ["1.1", "1.2"]
    assert shells.fish("run", "pl") == ["plan.md"]


def test_completing_a_command_imports_none(shells: Shells):
    code = (
        "import sys\n"
        "from windlass.cli.main import call\n"
        "try:\n    call([])\n"
        "finally:\n    sys.exit('msgspec' in sys.modules)"
    )
    env = {**shells.environment, "_WINDLASS_COMPLETE": "bash_complete"}
    env |= {"COMP_WORDS": "windlass ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "plain,init")
