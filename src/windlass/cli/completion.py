"""`windlass completion SHELL`, and what can follow on a command line: plans and tasks run here.

Law: completing reads a few small files and asks neither git nor a journal, because a person waits
for it at every Tab.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import click
from click.shell_completion import CompletionItem, get_completion_class

_VARIABLE = "_WINDLASS_COMPLETE"
_OF_FILES = frozenset({"run", "plan"})
"""Commands whose PLAN is usually a file that was never run."""


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the completion script of SHELL; it completes commands, options, plans and task ids.

    Add one of these lines to ~/.bashrc, to ~/.zshrc after compinit, or to
    ~/.config/fish/config.fish.

    \b
    Examples:
      eval "$(windlass completion bash)"
      eval "$(windlass completion zsh)"
      windlass completion fish | source
    """  # noqa: D301
    kind = get_completion_class(shell)
    assert kind is not None, shell  # noqa: S101  click has all three
    click.echo(kind(context.find_root().command, {}, "windlass", _VARIABLE).source())
    return 0


class _Plan(click.types.StringParamType):
    """A plan that was run here, or else a file."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        known = [] if ctx.info_name in _OF_FILES else [path.name for path in _plans(ctx)]
        found = [CompletionItem(name) for name in known if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")]


class _Task(click.types.StringParamType):
    """A task of the last run of any plan here."""

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        del param
        found = {id_: status for plan in _plans(ctx) for id_, status in _tasks(plan)}
        return [
            CompletionItem(id_, help=status)
            for id_, status in found.items()
            if id_.startswith(incomplete)
        ]


_KINDS: Mapping[str, click.ParamType[Any, Any]] = {
    "plan": _Plan(),
    **dict.fromkeys(("task", "tasks", "what", "only_tasks", "reset_tasks"), _Task()),
    "file": click.Path(),
}
"""What completes a parameter, by the parameter's name."""


def complete_parameters(command: click.Command) -> None:
    """Let the shell complete the plans and tasks of a command."""
    for param in command.params:
        if param.name in _KINDS:
            param.type = _KINDS[param.name]


def _plans(ctx: click.Context) -> Iterator[Path]:
    """The folders of the plans that were run in the repository around the current folder."""
    here = Path(ctx.params.get("repo") or ".")
    with suppress(OSError):
        start = here.resolve()
        tops = (folder / ".windlass" / "plans" for folder in (start, *start.parents))
        home = next((folder for folder in tops if folder.is_dir()), None)
        if home is not None:
            yield from sorted(path for path in home.iterdir() if path.is_dir())


def _tasks(plan: Path) -> Iterator[tuple[str, str]]:
    """The tasks of the plan's last run and their statuses, from its state file."""
    with suppress(OSError, ValueError):
        files = sorted(plan.glob("runs/*/state.json"), key=lambda path: path.stat().st_mtime)
        state: Any = json.loads(files[-1].read_bytes()) if files else {}
        tasks = cast("Mapping[str, Mapping[str, str]]", state.get("tasks", {}))
        yield from ((id_, each.get("status", "")) for id_, each in tasks.items())
