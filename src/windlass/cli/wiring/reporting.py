"""A plan's last run as a report: its journal, what git says of its commits, and what time it is."""

import os
from pathlib import Path

from msgspec.structs import replace

from windlass.adapters.clock import SystemClock
from windlass.adapters.files import make_folder, write_durably
from windlass.cli.wiring.project import Project
from windlass.errors import BadInput
from windlass.ports import Changes
from windlass.secrets import redacted
from windlass.state import RunState
from windlass.views.report import Report, compared, report_of


def gathered(project: Project, plan_id: str) -> Report:
    """The report; only looks, and is safe beside a live run."""
    # Asked before the journal is read: whoever is gone by then has written all there will be.
    live = project.live_pid(plan_id) is not None
    entries, state = project.entries(plan_id), project.last_run(plan_id)
    if state is None:
        raise BadInput(
            f"plan {plan_id!r} was never run here", hint=f"start it: windlass run {plan_id}"
        )
    workspaces = project.folders(plan_id).workspaces.relative_to(project.root)
    told = report_of(
        entries,
        plan=plan_id,
        workspaces=str(workspaces),
        live=live and state.ended is None,
        now=SystemClock().now(),
        ground=project.ground(state),
        changes=_changes(project, state),
    )
    assert told is not None  # noqa: S101  there is a state, so there is a run
    # A page to hand on: what was recorded before something was known to be a secret is not in it.
    return redacted(told, project.redactor.text)


def put(project: Project, path: Path, text: str, *, own: bool) -> None:
    """Write a report; only Windlass's own folders are made where they are missing."""
    if own:
        make_folder(path.parent, inside=project.root)
    else:
        refuse_without_folder(path)
    write_named(project.root, path, text.encode(errors="replace"))


def write_named(root: Path | None, path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file that a person named; in the repository, never through a link.

    Outside of it, links, pipes and devices are the person's own: what a task can have committed is
    in the repository.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder", hint="name a file")
    path = Path(os.path.abspath(path))  # noqa: PTH100  what a link makes of `..` must not count
    for folder in reversed(path.parents):
        real = Path(os.path.realpath(folder))
        if root is not None and real.is_relative_to(root):
            write_durably(real / path.relative_to(folder), data, inside=root, mode=mode)
            return
    if path.exists() and not path.is_file():
        # A pipe or a device, which must not be replaced by a file.
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(data)
        return
    target = Path(os.path.realpath(path))
    within = root if root is not None and target.is_relative_to(root) else None
    write_durably(target, data, inside=within, mode=mode)


def refuse_without_folder(path: Path) -> None:
    """No folder of the user's is made on the way to a file that they name: it may be misspelt."""
    folder = Path(os.path.abspath(path)).parent  # noqa: PTH100  as above
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}", hint="make it, or name another")


def _changes(project: Project, state: RunState) -> Changes:
    """Names of files come from git, so the journal has not redacted them."""
    hidden = project.redactor.text
    return {
        pair: tuple(replace(change, path=hidden(change.path)) for change in found)
        for pair, found in project.changes(compared(state)).items()
    }
