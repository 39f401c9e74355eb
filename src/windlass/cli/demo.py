"""`windlass demo`."""

import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windlass.cli.options import LEVELS
from windlass.errors import BadInput

if TYPE_CHECKING:
    from windlass.testing.stage import Stage

PAUSE = 0.4
"""Seconds before each answer of the scripted model, so that you can follow."""


@click.command("demo")
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    help="Create the sample repository in this folder  [default: a temporary one]",
)
@click.option(
    "--sandbox",
    type=LEVELS,
    default="auto",
    help="Run agents in this sandbox  [default: the strongest with walls]",
)
def command(into: Path | None, sandbox: str) -> int:
    """Run a small plan offline: the real agent program, a scripted model, no key, no network.

    Two agents work at once in a sample repository. A check returns one turn and the Coach another,
    the run is killed with SIGKILL and resumed, a Player resolves a merge conflict, and everything
    is merged.
    """
    from windlass.app.sandbox_level import settle_rehearsal
    from windlass.cli.person import person
    from windlass.testing.sample import FILES, book
    from windlass.testing.stage import Stage, scripted_model

    if shutil.which("git") is None:
        raise BadInput("git is not installed", hint="install git 2.38 or newer")
    level = settle_rehearsal(sandbox, os.environ, "windlass demo", person())
    walls = ("--sandbox", level) if level != "auto" else ()
    root = _folder(into)
    with scripted_model(book(PAUSE), root / "model.log") as url:
        stage = Stage(root, url)
        stage.build(FILES)
        _title(f"A sample repository with a plan of five tasks: {stage.repo}")
        _play(stage, "run", "plan.md", "--agents", "2", *walls, kill_at="1.3 →")
        _title("Killed with SIGKILL, in the middle of two tasks. Now resume:")
        code = _play(stage, "resume", "plan.md", "--agents", "2", *walls)
        if code != 0:
            click.echo(f"The demo failed with exit code {code}; the repository is kept.", err=True)
            return code
        _title("The history in git:")
        click.echo(stage.git("log", "--graph", "--format=%h %s", "main..windlass/plan/integration"))
        _farewell(stage)
    return 0


def _folder(into: Path | None) -> Path:
    if into is None:
        return Path(tempfile.mkdtemp(prefix="windlass-demo-"))
    if into.exists() and any(into.iterdir()):
        raise click.UsageError(f"{into} is not empty")
    into.mkdir(parents=True, exist_ok=True)
    return into.resolve()


def _play(stage: "Stage", *args: str, kill_at: str = "") -> int:
    """Run Windlass and show its output; kill its process group when a text appears."""
    click.secho(f"$ windlass {' '.join(args)}", bold=True)
    with stage.windlass(*args, FORCE_COLOR="1" if _wants_colour() else "") as process:
        for line in process.stderr or ():
            click.echo(line, nl=False)
            if kill_at and kill_at in line:
                os.killpg(process.pid, signal.SIGKILL)
                break
        return process.wait()


def _wants_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def _title(text: str) -> None:
    click.secho(f"\n── {text}\n", bold=True)


def _farewell(stage: "Stage") -> None:
    from windlass.app.wiring.agents import vendor_of

    beside = Path(sys.executable).with_name("windlass")
    program = "windlass" if shutil.which("windlass") else str(beside)
    _title("Look around")
    click.echo(f"  cd {stage.repo}")
    click.echo(f"  {program} status          the state and cost of the run")
    click.echo(f"  {program} log             what happened")
    click.echo(f"  {program} diff 1.3        what a task changed")
    click.echo(f"  {program} land            move your branch to the merged work")
    _title("With a real key, in a repository of your own")
    click.echo(f"  export {vendor_of().keys[0]}=…")
    click.echo(f"  {program} init            find the project's checks, write windlass.toml")
    click.echo(f"  {program} plan plan.md    see what Windlass reads in it, at no cost")
    click.echo(f"  {program} run plan.md --max-cost 5")
