"""Files that cannot be parsed are told, in the sandbox, with nothing of the project executed."""

import os
import subprocess
from pathlib import Path

import anyio
import pytest

from repositories import Run, User
from windlass.adapters.checks import syntax
from windlass.adapters.checks.runner import CommandChecks
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.plain import Plain

BROKEN = "def f(:\n"


@pytest.fixture(params=["bwrap", "checkout"])
def parse(request: pytest.FixtureRequest, tmp_path: Path):
    """Parses files of a commit, at each level of sandbox."""
    user = User(tmp_path)

    def go(files: dict[str, str | bytes], paths: list[str] | None = None) -> tuple[str, ...]:
        user.commit(files)
        run = Run(user)

        async def parsed() -> tuple[str, ...]:
            await run.open()
            throwaways = run.repository.throwaways
            checks = CommandChecks(
                throwaways,
                _sandbox(user, str(request.param)),
                timeout=30,
                network=False,
                logs=tmp_path / "logs",
            )
            asked = paths if paths is not None else list(files)
            return await checks.parse(run.base, asked)

        return anyio.run(parsed)

    return go


def _sandbox(user: User, level: str) -> Sandbox:
    environment = {"PATH": os.environ["PATH"], "HOME": str(user.home)}
    if level == "checkout":
        return Plain("checkout", home=user.home, environment=environment, marker="syntax")
    bubblewrap = Bubblewrap(
        home=user.home,
        repository=user.repo,
        masked=(user.repo / ".git",),
        path=os.environ["PATH"],
        environment=environment,
        marker="syntax",
    )
    if reason := bubblewrap.probe():
        pytest.skip(f"bubblewrap does not work here: {reason}")
    return bubblewrap


def test_a_file_that_cannot_be_parsed_is_told_with_its_line(parse) -> None:  # S5
    said = parse({"good.py": "x = 1\n", "src/bad.py": f"x = 1\n{BROKEN}", "bad.toml": "x = =\n"})
    assert len(said) == 2
    assert said[0].startswith("src/bad.py:2: ")
    assert said[1].startswith("bad.toml: ")


def test_only_what_was_changed_is_looked_at(parse) -> None:  # S5
    assert parse({"good.py": "x = 1\n", "old.py": BROKEN}, ["good.py", "gone.py"]) == ()


def test_nothing_of_the_project_is_run(parse) -> None:
    hostile = "import os\nos.makedirs('/tmp/never')\nprint('windlass: ast.py: ran')\n"
    files = dict.fromkeys(("ast.py", "re.py", "sitecustomize.py", "x.py"), hostile)
    assert parse(files) == ()


def test_what_may_be_broken_on_purpose_is_nobodys_business(parse) -> None:
    files = dict.fromkeys(
        ("tests/fixtures/bad.py", "app/templates/view.py", "{{name}}/main.py", "x.js"), BROKEN
    )
    assert parse(files) == ()


def test_names_that_are_no_text_and_links_are_taken_as_they_are(parse, tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.py")
    (tmp_path / "project/link.py").symlink_to("/etc/passwd")
    said = parse({odd: BROKEN, "new\nline.py": BROKEN}, ["caf\ufffd.py", "new\nline.py", "link.py"])
    assert len(said) == 2
    assert any("new line.py:1" in line for line in said)


def test_a_file_that_kills_the_parser_hides_nothing_said_before(parse) -> None:
    deep = "(" * 50_000 + ")" * 50_000
    said = parse({"a.py": f"x = {deep}\n", "b.py": BROKEN, "c.py": b"\0\0"})
    assert any(line.startswith("b.py:1") for line in said)


def test_a_project_of_a_newer_language_is_not_judged_by_an_older_parser(parse) -> None:
    wants = '[project]\nrequires-python = ">=3.99"\n'
    assert parse({"pyproject.toml": wants, "a.py": BROKEN}) == ()
    older = '[project]\nrequires-python = ">=3.8"\n'
    assert len(parse({"pyproject.toml": older, "a.py": BROKEN})) == 1


def test_a_newer_parser_is_asked_what_an_older_does_not_know(tmp_path: Path) -> None:
    """The newest that works has the last word; one that does not work has none."""
    newer = tmp_path / "python3.39"
    (tmp_path / "a.py").write_text(BROKEN)
    for script, errors in (("exit 127", 1), ("exit 0", 0)):
        newer.write_text(f"#!/bin/sh\n{script}\n")
        newer.chmod(0o755)
        (command,) = syntax.parsers_for(["a.py"])
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, check=True, text=True
        )
        assert len(syntax.syntax_errors(done.stdout)) == errors, script


def test_a_thousand_long_paths_fit_on_command_lines() -> None:
    paths = [f"{'x' * 400}/{number}.py" for number in range(1000)]
    chosen = sorted(syntax.parseable(paths))
    assert len(chosen) == syntax.MOST
    commands = list(syntax.parsers_for(chosen))
    assert len(commands) > 1
    assert all(sum(map(len, command)) < 120_000 for command in commands)
    assert sum(len(command) - 5 for command in commands) == syntax.MOST


def test_many_broken_files_are_counted() -> None:
    lines = "".join(f"windlass: ./{n}.py:1: bad\n" for n in range(50))
    said = syntax.syntax_errors(f"Traceback\n{lines}")
    assert said[0] == "0.py:1: bad"
    assert said[-1] == "30 more files cannot be parsed"
