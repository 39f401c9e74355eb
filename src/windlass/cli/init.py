"""`windlass init`."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from windlass.cli.config import FILE
from windlass.cli.detect import Command, Proposal, detect
from windlass.cli.options import repo_option
from windlass.cli.walls import INSTALL_WALLS
from windlass.cli.wiring import Project, machine
from windlass.errors import BadInput, Unanswered
from windlass.settings import Settings

MAX_BYTES = 1_000_000
"""Larger files say nothing about how a project is proven."""


@click.command("init", short_help="Detect the project's checks and write windlass.toml")
@click.option("--yes", is_flag=True, help="Write without asking")
@click.option("--force", is_flag=True, help="Replace what is there already")
@click.option("--claude", is_flag=True, help="Write skills for Claude Code to .claude instead")
@repo_option
def command(yes: bool, force: bool, claude: bool, repo: Path) -> int:  # noqa: FBT001
    """Detect how the project is proven, show what was found and why, and write windlass.toml.

    Nothing is run and nothing is installed. Without a terminal and without --yes, the file is
    printed and not written.

    With --claude: skills that Claude Code knows in this project as /feature-build, /windlass-run
    and their like, below .claude/skills. A file there that you have edited stays as it is.
    """
    project = Project(repo.resolve(), dict(os.environ))
    if claude:
        return _write_skills(project, force=force)
    if not force:
        _refuse_to_replace(project)
    proposal = detect(_Checkout(project))
    missing = _missing(proposal)
    text = rendered(proposal)
    if not yes and not (sys.stdin.isatty() and sys.stderr.isatty()):
        return _only_print(text, "windlass init --yes --force" if force else "windlass init --yes")
    _show(project, proposal, missing)
    if not yes and not click.confirm(f"Write {FILE}?", default=True, err=True):
        click.echo("Nothing was written.")
        return 0
    project.write(FILE, text)
    click.echo(f"Wrote {project.root / FILE}")
    click.echo("Next: windlass run PLAN, which tries all of this on the base before it spends")
    return 0


def _write_skills(project: Project, *, force: bool) -> int:
    from windlass.cli.skills import write_skills

    done = write_skills(project, force=force)
    for each in done:
        click.echo(f"{each.how:>8}  {each.path}")
    if any(each.how == "kept" for each in done):
        cure = "`windlass init --claude --force` replaces files that are edited"
        click.echo(f"What is kept is not as Windlass wrote it; {cure}", err=True)
    click.echo("Next: /feature-build TASK-ID or /windlass-run PLAN in Claude Code")
    return 0


def rendered(proposal: Proposal) -> str:
    """The text of windlass.toml: each value with the reason it is there."""
    lines = [
        "# How Windlass works here. `windlass doctor` lists every key, its value and bounds.",
        "",
    ]
    lines += [line for note in proposal.notes for line in (f"# Note: {_harmless(note)}.", "")]
    if proposal.checks:
        lines += ["# Every task, and every merge, must pass these."]
        lines += _listed("checks", proposal.checks)
    else:
        lines += [
            "# Commands that prove the project. None was found: until there is one, nothing but",
            '# the agents\' word says that the work is right. For example: checks = ["make test"]',
            "checks = []",
        ]
    if proposal.setup or proposal.keep:
        lines += ["", "[workspace]"]
    if proposal.setup:
        lines += ["# Run in every checkout before anyone works or checks in it; network allowed."]
        lines += _listed("setup", proposal.setup)
        lines += ["# What setup made is used again while these files stay the same."]
        lines += [f"inputs = [{', '.join(map(_quoted, proposal.inputs))}]"]
    if proposal.keep:
        lines += ["# Folders that never enter a commit, unless the base has them."]
        lines += [f"keep = [{', '.join(map(_quoted, proposal.keep))}]"]
    return "\n".join([*lines, ""])


def _listed(key: str, commands: tuple[Command, ...]) -> list[str]:
    items = [
        line
        for each in commands
        for line in (f"    # {_harmless(each.because)}", f"    {_quoted(each.line)},")
    ]
    return [f"{key} = [", *items, "]"]


def _quoted(text: str) -> str:
    """A TOML string; control characters, which no command of ours needs, are left out."""
    return '"' + _harmless(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _harmless(text: str) -> str:
    return "".join(char for char in text if char.isprintable())


def _refuse_to_replace(project: Project) -> None:
    import tomllib

    again = "`windlass init --force` replaces it, and `windlass doctor` shows what it says"
    if os.path.lexists(project.root / FILE):
        raise BadInput(f"{FILE} is there already, and was left as it is", hint=again)
    shared = project.root / "pyproject.toml"
    try:
        told = tomllib.loads(shared.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, UnicodeError, tomllib.TOMLDecodeError):
        return
    if "windlass" in told:
        raise BadInput(
            f"pyproject.toml has [tool.windlass] already, which a {FILE} would hide",
            hint="mend it there, or use `windlass init --force`",
        )


def _only_print(text: str, cure: str) -> int:

    click.echo(text, nl=False)
    raise Unanswered(f"{FILE} was not written, for nobody was asked", hint=f"run `{cure}`")


def _missing(proposal: Proposal) -> list[str]:
    """What the proposed commands need and the machine has not."""
    import shutil

    told: dict[str, None] = {}
    for command in (*proposal.setup, *proposal.checks):
        if command.needs and shutil.which(command.needs) is None:
            told[f"`{command.needs}` is not on PATH, and `{command.line}` needs it"] = None
        elif command.needs_module and not _can_import(command.needs, command.needs_module):
            told[
                f"`{command.needs}` has no {command.needs_module}: install it there, or say in "
                "[workspace] setup how each checkout gets it"
            ] = None
    return list(told)


def _can_import(interpreter: str, module: str) -> bool:
    import subprocess

    # Not from the project, whose own files the interpreter would find first.
    done = subprocess.run(
        [interpreter, "-c", f"import {module}"], cwd="/", capture_output=True, check=False
    )
    return done.returncode == 0


def _show(project: Project, proposal: Proposal, missing: list[str]) -> None:
    if not proposal.checks:
        click.echo("Nothing was found that proves this project: no test runner that is known here.")
    for kind, commands in (("check", proposal.checks), ("setup", proposal.setup)):
        for each in commands:
            click.echo(f"{kind:>7}  {each.line}\n{'':>7}  {_harmless(each.because)}")
    for warning in (*missing, *proposal.notes):
        click.echo(f"{'note':>7}  {_harmless(warning)}")
    reason = project.why_no_walls(Settings())
    if reason is None:
        click.echo(f"{'sandbox':>7}  {machine.native_walls()}: agents and checks are walled in")
    else:
        click.echo(f"{'sandbox':>7}  no walls work here ({reason}): a run asks before it goes on")
        click.echo(f"{'':>7}  {INSTALL_WALLS}")
        click.echo(f"{'':>7}  or say it in words: `windlass run PLAN --sandbox checkout`")


class _Checkout(Mapping[str, str]):
    """The files of the user's checkout, read when somebody looks into them."""

    def __init__(self, project: Project) -> None:
        self._root = project.root
        self._paths = dict.fromkeys(project.listed())

    def __getitem__(self, path: str) -> str:
        if path not in self._paths:
            raise KeyError(path)
        file = self._root / path
        try:
            small = file.is_file() and file.stat().st_size <= MAX_BYTES
            return file.read_text(encoding="utf-8", errors="replace") if small else ""
        except OSError:
            return ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)
