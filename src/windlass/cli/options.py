"""Arguments and options that several commands share."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from windlass.errors import BadInput

if TYPE_CHECKING:
    from windlass.app.wiring import Project

F = TypeVar("F", bound=Callable[..., Any])


def project_at(repo: Path) -> "Project":
    """The project around that folder, with this process's environment."""
    from windlass.app.wiring import Project

    def notice(text: str) -> None:
        click.echo(text, err=True)

    return Project(repo.resolve(), dict(os.environ), notice)


def repo_option(command: F) -> F:
    """`--repo DIR`."""
    return click.option(
        "--repo",
        type=click.Path(path_type=Path, file_okay=False),
        default=".",
        help="Work in the repository around this folder  [default: the current one]",
    )(command)


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs")(command)


def print_json(value: object) -> None:
    """Print a value as indented JSON."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def dialect_option(command: F) -> F:
    """`--dialect NAME`."""
    return click.option(
        "--dialect", metavar="NAME", help="Read it as this format  [default: as recognised]"
    )(command)


def again_options(command: F) -> F:
    """What to do about a run of the plan that is not finished, where that is not to be asked."""
    options = [
        click.option("--resume", "resumes", is_flag=True, help="Go on with an unfinished run"),
        click.option("--restart", "restarts", is_flag=True, help="Leave it, and begin anew"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def choice_of(*, resumes: bool, restarts: bool) -> Literal["resume", "restart"] | None:
    """Which of them was asked for; both would be one against the other."""
    if resumes and restarts:
        raise BadInput("--resume goes on with the run, and --restart leaves it", hint="take one")
    return "resume" if resumes else "restart" if restarts else None


def mend_options(command: F) -> F:
    """What to do about trouble that an unfinished run is in, for scripts: else it is asked."""
    options = [
        click.option(
            "--retry", "mend", flag_value="retry", help="Go on, abandoned tasks with new turns"
        ),
        click.option(
            "--retry-stage",
            "mend",
            flag_value="retry-stage",
            help="Go on, the stage that failed or did not verify done once more",
        ),
        click.option(
            "--go-on",
            "mend",
            flag_value="go-on",
            help="Go on although a stage did not verify",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def part_options(command: F) -> F:
    """What of the plan is wanted, where not all of it is."""
    options = [
        click.option(
            "--task",
            "only_tasks",
            metavar="ID",
            multiple=True,
            help="Begin only this task, and what it needs (can be repeated)",
        ),
        click.option(
            "--stage", "only_stage", metavar="S", help="Begin only this stage, and what it needs"
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def run_options(command: F) -> F:
    """What `run` and `resume` have in common."""
    from windlass.app.wiring.agents import vendor_of

    options = [
        click.option(
            "--agents", type=int, metavar="N", help="Let N agents work at once  [default: 3]"
        ),
        click.option(
            "--barrier/--no-barrier",
            default=None,
            help="Begin a stage only when the one before is settled  [default: as the plan asks]",
        ),
        click.option(
            "--max-turns", type=int, metavar="N", help="Abandon a task after N turns  [default: 5]"
        ),
        click.option(
            "--model",
            metavar="M",
            help=f"Play with this model  [default: {vendor_of().model}]",
        ),
        click.option(
            "--coach-model",
            metavar="M",
            help="Review with this model  [default: the same]",
        ),
        click.option(
            "--max-cost", type=float, metavar="USD", help="Stop at this cost  [default: 20]"
        ),
        click.option(
            "--max-tokens", type=int, metavar="N", help="Stop after N tokens  [default: no limit]"
        ),
        click.option(
            "--sandbox",
            type=click.Choice(["auto", "bwrap", "seatbelt", "checkout", "none"]),
            help="How strong the sandbox is  [default: auto]",
        ),
        click.option(
            "--red-base",
            type=click.Choice(["ask", "go", "stop"]),
            help="What to do when the base itself fails its checks  [default: ask]",
        ),
        click.option(
            "--e2e/--no-e2e",
            default=None,
            help="Try the plan's E2E scenario on the merged work  [default: no]",
        ),
        click.option(
            "--land/--no-land",
            default=None,
            help="Move your branch to what was merged, once all is  [default: no]",
        ),
        click.option(
            "--pr/--no-pr",
            default=None,
            help="Open a pull request once all is merged  [default: ask on a terminal, else no]",
        ),
        click.option(
            "--reset-task",
            "reset_tasks",
            metavar="ID",
            multiple=True,
            help="Go on, with this task begun anew (can be repeated)",
        ),
        click.option(
            "--notify/--no-notify",
            default=None,
            help="Tell the desktop when it is done or cannot go on; or nobody  [default: as set]",
        ),
        click.option(
            "--metrics-port",
            type=click.IntRange(0, 65_535),
            metavar="N",
            help="Serve metrics for Prometheus at 127.0.0.1:N  [default: no]",
        ),
        click.option(
            "--yes",
            is_flag=True,
            help="Do not ask: resume, without what was abandoned, and pass checkpoints",
        ),
        click.option(
            "--display",
            type=click.Choice(["auto", "live", "plain", "json", "none"]),
            default="auto",
            help="Show a live footer, plain lines, JSON lines or nothing  [default: live on a"
            " terminal, else plain]",
        ),
        click.option("--verbose", is_flag=True, help="Also show what agents say"),
        click.option("--quiet", is_flag=True, help="Show only the end"),
        json_option,
        repo_option,
    ]
    for option in reversed(options):
        command = option(command)
    return command


def settings_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are settings, by their dotted keys."""
    port = options.get("metrics_port")
    return {
        "agents": options.get("agents"),
        "barrier": options.get("barrier"),
        "max_turns": options.get("max_turns"),
        "model": options.get("model"),
        "coach_model": options.get("coach_model"),
        "max_cost": options.get("max_cost"),
        "max_tokens": options.get("max_tokens"),
        "land": options.get("land"),
        "sandbox.level": options.get("sandbox"),
        "e2e.run": options.get("e2e"),
        "policy.red_base": options.get("red_base"),
        "notify.desktop": _desktop(options.get("notify")),
        "telemetry.prometheus": None if port is None else f"127.0.0.1:{port}",
    }


def _desktop(notify: bool | None) -> str | None:  # noqa: FBT001
    """What `--notify` and `--no-notify` come to; silent where there is no desktop."""
    return None if notify is None else "auto" if notify else "off"
