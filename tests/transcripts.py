"""Follows the instructions of a documentation page, and compares the output with the page.

A `console` fence is a session: a line `$ …` is typed, the lines after it are its output, and `^C`
is pressed where it occurs. A fence after "Save this as `name`:" is a file. In the output `…` stands
for any text, and a line of `…` alone for any number of lines; times, durations and hashes count as
equal.
"""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

_SAVED = re.compile(r"Save this as\s+`([^`]+)`:$")
_VARIES = (
    # First, because a date includes its time.
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?"), "DATE"),
    (re.compile(r"\b\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b[0-9a-f]{7,40}\b"), "HASH"),
    (re.compile(r"\b(\d+h)?(\d+m)?\d+(\.\d+)?s\b"), "LONG"),
)
PORT = "8917"
"""The port in the pages; it is replaced by a free one, so that sessions can run in parallel."""
_EACH = 180
"""Seconds that one command may take."""


@dataclass(frozen=True)
class File:
    """A file that the reader saves."""

    line: int
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command that the reader types, and its output on the page."""

    line: int
    typed: str
    shown: list[str] = field(default_factory=list)


def steps(page: Path) -> Iterator[File | Command]:
    """The steps of the page, in order."""
    text = ""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        first = token.map[0] + 2 if token.map else 0
        if token.type == "inline":
            text = token.content
        elif token.type == "fence" and token.info == "console":
            yield from _session(token.content, first)
        elif token.type == "fence" and (saved := _SAVED.search(text)):
            yield File(first, saved[1], token.content)


def _session(text: str, first: int) -> Iterator[Command]:
    command: Command | None = None
    for number, line in enumerate(text.splitlines(), first):
        if line.startswith("$ "):
            if command is not None:
                yield command
            command = Command(number, line[2:])
        else:
            assert command is not None, f"line {number}: output without a command"
            command.shown.append(line)
    if command is not None:
        yield command


def difference(shown: list[str], real: str) -> str:
    """The first line of the page that differs from the real output; empty if none does."""
    lines = [_plain(line).rstrip() for line in real.splitlines()]
    text = "".join(f"{line}\n" for line in lines)
    wanted = [r"(?:.*\n)*?" if line.strip() == "…" else _pattern(line) + r"\n" for line in shown]
    if re.fullmatch("".join(wanted), text):
        return ""
    fitting = (n for n in range(len(shown), -1, -1) if re.match("".join(wanted[:n]), text))
    return (shown[next(fitting) :] or ["(and nothing more)"])[0]


def _pattern(line: str) -> str:
    return re.escape(_plain(line).rstrip()).replace("…", ".*?")


def _plain(line: str) -> str:
    for pattern, word in _VARIES:
        line = pattern.sub(word, line)
    return line


class Reader:
    """Follows a page, with a fresh home and an empty folder."""

    def __init__(self, root: Path) -> None:
        home = root / "home"
        self._place = root / "place"
        for folder in (home, self._place):
            folder.mkdir()
        identity = "[user]\n\tname = Ada\n\temail = ada@example.com\n"
        (home / ".gitconfig").write_text(identity, encoding="utf-8")
        self._notes = root / "notes"
        self._code = 0
        self._port = _free_port()
        self._environment = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "LANG": "C.UTF-8",
        }
        self._left: list[subprocess.Popen[str]] = []

    def follow(self, page: Path) -> None:
        """Take every step; the output must be that of the page."""
        try:
            for step in steps(page):
                if isinstance(step, File):
                    target = self._place / step.name
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(step.text, encoding="utf-8")
                else:
                    self._run(page, step)
        finally:
            for process in self._left:
                os.killpg(process.pid, signal.SIGTERM)
                process.communicate(timeout=_EACH)
        assert self._code == 0, f"{page}: the last command failed with {self._code}"

    def _run(self, page: Path, command: Command) -> None:
        where = f"{page.name}:{command.line}: $ {command.typed}"
        expected = self._code == 0 or "$?" in command.typed
        assert expected, f"{where}\nthe command before it failed: {self._code}"
        real = self._type(command)
        shown = [line.replace(PORT, str(self._port)) for line in command.shown]
        wrong = difference(shown, real)
        assert not wrong, f"{where}\nshould show here\n{wrong}\nbut shows\n{real}"

    def _type(self, command: Command) -> str:
        typed = command.typed.replace(PORT, str(self._port))
        in_background = typed.endswith(" &")
        # Exit code, environment and folder are saved after each command, as a shell keeps them.
        script = f"(exit {self._code})\n{typed.removesuffix(' &')}\n"
        if not in_background:
            script += f'code=$?; env -0 > "{self._notes}"; pwd >> "{self._notes}"; exit $code'
        process = subprocess.Popen(
            ["bash", "-c", script],
            cwd=self._place,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._left.append(process)
        if in_background:
            return "".join(_line(process) for _ in command.shown)
        if "^C" not in command.shown:
            real, _ = process.communicate(timeout=_EACH)
        else:
            real = _interrupted(process, command.shown)
        self._left.remove(process)
        self._code = process.returncode
        self._restore_shell()
        return real

    def _restore_shell(self) -> None:
        *variables, place = self._notes.read_text(encoding="utf-8").split("\0")
        self._place = Path(place.rstrip("\n"))
        kept = dict(each.split("=", 1) for each in variables)
        self._environment = {
            name: value for name, value in kept.items() if name not in {"_", "SHLVL", "PWD"}
        }


def _interrupted(process: subprocess.Popen[str], shown: list[str]) -> str:
    """The output, with Ctrl-C pressed where the page has it."""
    at = shown.index("^C")
    before = _pattern(shown[at - 1])
    real = ""
    while line := _line(process):
        real += line
        if re.fullmatch(before, _plain(line).rstrip()):
            break
    os.killpg(process.pid, signal.SIGINT)
    rest, _ = process.communicate(timeout=_EACH)
    return f"{real}^C\n{rest}"


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
