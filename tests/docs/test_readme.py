"""The first real run of the README, done by a newcomer on a terminal, with a scripted model."""

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from transcripts import File, steps
from windlass.testing.model.script import Book
from windlass.testing.sample import playing, reviewing, write
from windlass.testing.stage import Stage, scripted_model

README = Path(__file__).parents[2] / "README.md"
PROJECT = {
    "app/__init__.py": "",
    "tests/__init__.py": "",
    "tests/test_app.py": (
        "import unittest\n\nimport app\n\n\nclass AppTest(unittest.TestCase):\n"
        "    def test_it_is_there(self):\n        self.assertTrue(app)\n"
    ),
}
HEALTH_TEST = """\
import unittest

from app.health import get_health


class HealthTest(unittest.TestCase):
    def test_it_has_a_status(self):
        self.assertEqual(get_health()["status"], "ok")
"""
MAIN = "import json\n\nfrom app.health import get_health\n\nprint(json.dumps(get_health()))\n"
MODEL = Book(
    scripts={
        "Role: Player|Task: 1.1\n": playing(
            write("app/health.py", 'def get_health():\n    return {"status": "ok"}\n'),
            write("tests/test_health.py", HEALTH_TEST),
            summary="Wrote get_health().",
        ),
        "Role: Player|Task: 1.2\n": playing(
            write("app/__main__.py", MAIN), summary="Wrote the command."
        ),
        "Role: Coach": reviewing(),
    }
)


def typed_in_the_first_run() -> list[str]:
    """The command lines of the section, without their comments."""
    tokens = MarkdownIt().parse(README.read_text(encoding="utf-8"))
    first = next(n for n, token in enumerate(tokens) if token.content == "Your first real run")
    fence = next(token for token in tokens[first:] if token.info == "sh")
    return [line.partition("  #")[0].strip() for line in fence.content.splitlines()]


def on_a_terminal(stage: Stage, line: str) -> tuple[int, str]:
    """What a command shows to a person who accepts every default, and its exit code."""
    far, near = pty.openpty()
    termios.tcsetwinsize(near, (40, 80))
    words = line.split()
    with subprocess.Popen(
        [sys.executable, "-m", *words],
        cwd=stage.repo,
        env={**stage.environment, "TERM": "xterm-256color", "NO_COLOR": "1", "BROWSER": "true"},
        stdin=near,
        stdout=near,
        stderr=near,
        start_new_session=True,
    ) as process:
        os.close(near)
        shown = b""
        try:
            while part := os.read(far, 65536):
                shown += part
                if part.rstrip().endswith(b"]:"):  # a question with its default
                    os.write(far, b"\n")
        except OSError:  # the terminal is closed: the command has ended
            pass
        os.close(far)
        return process.wait(timeout=60), shown.decode()


@pytest.mark.e2e
def test_the_first_real_run_ends_without_a_warning(tmp_path: Path):  # B1
    [plan] = [step for step in steps(README) if isinstance(step, File) and step.name == "plan.md"]
    key, *commands = typed_in_the_first_run()
    assert key.startswith("export ANTHROPIC_API_KEY=")
    with scripted_model(MODEL, tmp_path / "model.log") as url:
        stage = Stage(tmp_path, url)
        stage.build(PROJECT)
        (stage.repo / plan.name).write_text(plan.text, encoding="utf-8")
        for line in commands:
            code, shown = on_a_terminal(stage, line)
            assert code == 0, f"{line}\n{shown}"
            for word in ("WARNING", "NOTE", "warning", "note ", "unchecked"):
                assert word not in shown, f"{line}\n{shown}"
    health = subprocess.run(
        [sys.executable, "-B", "-m", "app", "health"],
        cwd=stage.repo,
        capture_output=True,
        check=True,
        text=True,
    )
    assert health.stdout == '{"status": "ok"}\n'
    beside_state_files = stage.git("status", "--short", "--", ".", ":!state")
    assert beside_state_files.splitlines() == ["?? plan.md", "?? windlass.toml"]
