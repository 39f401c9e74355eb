"""Arguments and options that several commands share."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from windlass.errors import BadInput

if TYPE_CHECKING:
    from windlass.app.run_settings import RunSettings
    from windlass.app.wiring import Project

F = TypeVar("F", bound=Callable[..., Any])


def project_at(repo: Path) -> "Project":
    """The project around that folder, with the environment of this process."""
    from windlass.app.wiring import Project

    def notice(text: str) -> None:
        click.echo(text, err=True)

    return Project(_existing(repo, notice), dict(os.environ), notice)


def _existing(repo: Path, notice: Callable[[str], None]) -> Path:
    """The folder; if the current one was removed, the nearest one above it that is there.

    A workspace is removed when its task is merged, also under a shell that stands in it.
    """
    try:
        return repo.resolve()
    except FileNotFoundError:
        gone = Path(os.environ.get("PWD", ""))
    above = next((each for each in gone.parents if each.is_dir()), None)
    if above is None:
        raise BadInput("the current folder no longer exists", hint="cd into your repository")
    notice(f"{gone} no longer exists; using the repository around it")
    return above / repo


def print_json(value: object) -> None:
    import msgspec

    # A path or a text from git may hold bytes that are not UTF-8, which JSON cannot.
    text = msgspec.json.encode(msgspec.to_builtins(value, enc_hook=str)).decode()
    click.echo(msgspec.json.format(text, indent=2))


def print_result(result: object, text: str, *, as_json: bool) -> int:
    """Print the result of a command: its values as JSON, else a text; 0, its exit code."""
    if as_json:
        print_json(result)
    else:
        click.echo(text)
    return 0


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, in the order in which --help lists them."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


LEVELS = click.Choice(["auto", "bwrap", "seatbelt", "checkout", "none"])

repo_option = click.option(
    "--repo",
    type=click.Path(path_type=Path, file_okay=False),
    default=".",
    help="Use the repository around this folder  [default: the current one]",
)
yes_option = click.option("--yes", is_flag=True, help="Do not ask")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON")
dialect_option = click.option(
    "--dialect", metavar="NAME", help="Read the plan in this format  [default: detected]"
)
again_options = _together(
    click.option("--resume", "resumes", is_flag=True, help="Continue the unfinished run"),
    click.option(
        "--restart", "restarts", is_flag=True, help="Leave the unfinished run and start a new one"
    ),
)
"""Replaces the question what to do with an unfinished run of the plan."""
mend_options = _together(
    click.option(
        "--retry", "mend", flag_value="retry", help="Continue; give abandoned tasks new turns"
    ),
    click.option(
        "--retry-stage",
        "mend",
        flag_value="retry-stage",
        help="Continue; redo the stage that failed or did not verify",
    ),
    click.option(
        "--go-on", "mend", flag_value="go-on", help="Continue although a stage did not verify"
    ),
)
"""Replaces the question how to continue a run that failed."""
part_options = _together(
    click.option(
        "--task",
        "only_tasks",
        metavar="ID",
        multiple=True,
        help="Run only this task and what it needs; repeatable",
    ),
    click.option(
        "--stage", "only_stage", metavar="S", help="Run only this stage and what it needs"
    ),
)


def choice_of(*, resumes: bool, restarts: bool) -> Literal["resume", "restart"] | None:
    if resumes and restarts:
        raise BadInput("--resume and --restart exclude each other", hint="use one")
    return "resume" if resumes else "restart" if restarts else None


class _ModelOption(click.Option):
    """An option whose help names the agent's own model.

    Only --help asks the agent for it: to import one takes half a second, and the first word of a
    run must not wait for that.
    """

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from windlass.app.wiring.agents import vendor_of

        record = super().get_help_record(ctx)
        return record and (record[0], f"{record[1]}  [default: {vendor_of().model}]")


def run_options(command: F) -> F:
    """The options of `run`, `resume` and `feature-build`."""
    return _together(
        click.option(
            "--agents", type=int, metavar="N", help="Run at most N agents at once  [default: 3]"
        ),
        click.option(
            "--barrier/--no-barrier",
            default=None,
            help="Start a stage only when the one before is done  [default: as the plan says]",
        ),
        click.option(
            "--max-turns", type=int, metavar="N", help="Abandon a task after N turns  [default: 5]"
        ),
        click.option(
            "--model",
            cls=_ModelOption,
            metavar="M",
            help="Use this model for Players",
        ),
        click.option(
            "--coach-model",
            metavar="M",
            help="Use this model for Coaches  [default: the same]",
        ),
        click.option(
            "--max-cost", type=float, metavar="USD", help="Stop the run at this cost  [default: 20]"
        ),
        click.option(
            "--max-tokens",
            type=int,
            metavar="N",
            help="Stop the run after N tokens  [default: no limit]",
        ),
        click.option(
            "--sandbox",
            type=LEVELS,
            help="Run agents and checks in this sandbox  [default: auto, the strongest]",
        ),
        click.option(
            "--red-base",
            type=click.Choice(["ask", "go", "stop"]),
            help="Choose what to do when the base fails its checks  [default: ask]",
        ),
        click.option(
            "--e2e/--no-e2e",
            default=None,
            help="Run the plan's E2E scenario on the merged work  [default: no]",
        ),
        click.option(
            "--land/--no-land",
            default=None,
            help="Move your branch to the merged work at the end  [default: no]",
        ),
        click.option(
            "--pr/--no-pr",
            default=None,
            help="Open a pull request at the end  [default: ask on a terminal, else no]",
        ),
        click.option(
            "--reset-task",
            "reset_tasks",
            metavar="ID",
            multiple=True,
            help="Continue; start this task again from the tip; repeatable",
        ),
        click.option(
            "--notify/--no-notify",
            default=None,
            help="Notify the desktop when the run ends or needs you  [default: as configured]",
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
            help="Do not ask: resume, leave abandoned tasks out, let complex tasks start",
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
    )(command)


def settings_of(options: Mapping[str, Any]) -> "RunSettings":
    """The options that are settings of a run."""
    from windlass.app.run_settings import RunSettings

    return RunSettings(**{name: options.get(name) for name in RunSettings.__struct_fields__})
