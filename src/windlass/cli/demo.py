"""`windlass demo`."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windlass.cli.options import LEVELS
from windlass.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from windlass.app.wiring import Project
    from windlass.core.state import RunState
    from windlass.testing.stage import Stage

PAUSE = 0.4
"""Seconds before each answer of the scripted model, so that you can follow."""
LOOK = 0.1
"""Seconds between two looks at the run that is to be killed."""


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
    is merged. At the end you see what each of these proves, and what the run cost.

    \b
    Examples:
      windlass demo
      windlass demo --into ~/windlass-demo   # keep the sample where you find it
    """  # noqa: D301
    from windlass.app.sandbox_level import settle_rehearsal
    from windlass.app.wiring import Project
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
        project = Project(stage.repo, stage.environment)
        _title("A plan of five tasks, two agents, a scripted model: no key, no network")
        click.echo(f"   {stage.repo}\n")
        _play(stage, "run", "plan.md", "--agents", "2", *walls, kill_in=project)
        _title("Killed with SIGKILL, in the middle of two tasks. Now resume:")
        code = _play(stage, "resume", "plan.md", "--agents", "2", *walls)
        if code != 0:
            click.echo(f"The demo failed with exit code {code}; the repository is kept.", err=True)
            return code
        _title("The history in git")
        click.echo(stage.git("log", "--graph", "--format=%h %s", "main..windlass/plan/integration"))
        _summary(project)
        _farewell(stage)
    return 0


def _folder(into: Path | None) -> Path:
    if into is None:
        return Path(tempfile.mkdtemp(prefix="windlass-demo-"))
    if into.exists() and any(into.iterdir()):
        raise click.UsageError(f"{into} is not empty")
    into.mkdir(parents=True, exist_ok=True)
    return into.resolve()


def _play(stage: "Stage", *args: str, kill_in: "Project | None" = None) -> int:
    """Run Windlass on this terminal, if there is one; kill it in the middle of two tasks."""
    click.secho(f"$ windlass {' '.join(args)}", bold=True)
    sys.stdout.flush()
    with stage.windlass(*args, shown_on=sys.stdout, **_looks()) as process:
        try:
            if kill_in is not None:
                _kill_in_the_middle(process, kill_in)
            return process.wait()
        except BaseException:
            process.terminate()  # it stops its agents
            process.wait()
            raise


def _looks() -> dict[str, str]:
    """The variables that decide how a run looks and in which time zone; no others are passed on."""
    from windlass.cli.screens.choice import CI
    from windlass.core.other_tools import IN_AGENT

    names = ("TERM", "TZ", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", *CI, *IN_AGENT)
    return {name: os.environ[name] for name in names if name in os.environ}


def _kill_in_the_middle(process: "subprocess.Popen[str]", project: "Project") -> None:
    """Kill the run once two Players have done something, and a request is in flight."""
    while process.poll() is None:
        if "plan" in project.journals.plans() and (state := project.journals.last_run("plan")):
            heard, _ = project.journals.activities_after("plan", state.run, 0)
            busy = {each.task for each in heard if each.role == "player" and each.kind == "tool"}
            if {"1.2", "1.3"} <= busy and state.held:
                process.send_signal(signal.SIGKILL)
                process.wait()
                click.echo()  # below what it had painted
                return
        try:
            process.wait(LOOK)
        except subprocess.TimeoutExpired:
            continue


def _title(text: str) -> None:
    click.secho(f"\n── {text}\n", bold=True)


def _summary(project: "Project") -> None:
    """What the run proves, and what it cost, from its journal."""
    from windlass.views.cost import of_limit, run_cost

    state = project.journals.last_run("plan")
    if state is None:
        return
    _title("What you saw, and what it proves")
    for word, text in _proofs(project, state):
        click.secho(f"{word:>12}", nl=False, bold=True)
        click.echo(f"  {text}")
    _title("What it cost, at the prices of the real model")
    cost = run_cost(state)
    click.echo(f"   {of_limit(cost, state.settings.max_cost)[0]}")
    if cost.estimated_usd:
        click.echo("   estimated: what the requests that the kill cut off are likely to have cost")
    else:
        click.echo("   no request was in flight at the kill, so nothing is estimated")


def _proofs(project: "Project", state: "RunState") -> "Iterator[tuple[str, str]]":
    """A line for each act that has happened."""
    from windlass.core.events import model as e

    events = [entry.event for entry in project.journals.entries("plan")]
    returned = {each.cause: each.task for each in events if isinstance(each, e.TurnReturned)}
    conflicts = [each.task for each in events if isinstance(each, e.MergeConflicted)]
    if "checks" in returned:
        task = returned["checks"]
        yield "RETURNED", f"{task}: the agent said done, a check said no: the check counts"
    if "review" in returned:
        task = returned["review"]
        yield "RETURNED", f"{task}: checks were green, the Coach wants a test: both must agree"
    if state.resumes:
        yield "RESUMED", "after kill -9: no finished turn was repeated or paid for again"
    if conflicts:
        yield "CONFLICT", f"{conflicts[0]}: two agents changed the same lines; a Player kept both"
    merged = f"{state.index.merged} of {len(state.tasks)} tasks"
    yield "MERGED", f"{merged}, each checked as merged; main moves when you land"


def _farewell(stage: "Stage") -> None:
    from windlass.app.wiring.agents import vendor_of

    _title("Look around")
    if shutil.which("windlass") is None:
        beside = shlex.quote(str(Path(sys.executable).parent))
        click.echo(f"   export PATH={beside}:$PATH")
    click.echo(f"   cd {shlex.quote(str(stage.repo))}")
    click.echo("   windlass status          the state and cost of the run")
    click.echo("   windlass log             what happened")
    click.echo("   windlass diff 1.3        what a task changed")
    click.echo("   windlass land            move your branch to the merged work")
    _title("With a real key, in a repository of your own")
    click.echo(f"   export {vendor_of().keys[0]}=…")
    click.echo("   windlass init            find the project's checks, write windlass.toml")
    click.echo("   windlass plan plan.md    see what Windlass reads in it, at no cost")
    click.echo("   windlass run plan.md --max-cost 5")
