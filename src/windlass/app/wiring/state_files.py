"""Renders and writes the state files of a run."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from windlass.adapters.files import open_to_read, read_plainly, refuse_unsafe
from windlass.adapters.projections import Projections, Shown, remembered
from windlass.app.wiring.project import Project
from windlass.core.state import RunState
from windlass.errors import UnsafePath
from windlass.formats import continue_here_path, shares, writes
from windlass.formats import project as project_dialect
from windlass.views.closing import continue_here_text, pointer
from windlass.views.progress import progress

Notice = Callable[[str], None]

MEMORY = "projected.json"
"""What a run has written into state files, in the folder of the run."""


def projections(project: Project, plan_id: str, run: str, notice: Notice) -> Projections:
    """Keeps the state files of a run up to date."""
    folder = project.folders(plan_id).run(run)

    def render(state: RunState, seq: int) -> Mapping[Path, Shown]:
        own = msgspec.json.format(msgspec.json.encode(progress(state, seq)), indent=2).decode()
        return {
            folder / "state.json": Shown(own + "\n"),
            **_dialect_files(project, state),
            **_continue_here(project, state, seq),
        }

    memory = folder / MEMORY
    return Projections(
        render,
        inside=project.root,
        memory=memory,
        notice=notice,
        earlier=written_by_runs(project, plan_id),
    )


def written_by_runs(project: Project, plan_id: str) -> dict[str, frozenset[str]]:
    """The hashes of what the plan's runs wrote last, by the path below the repository."""
    folder = project.folders(plan_id).home / "runs"
    found: dict[str, frozenset[str]] = {}
    for memory in folder.glob(f"*/{MEMORY}"):
        for name, each in remembered(memory, project.root).items():
            found[name] = found.get(name, frozenset()) | frozenset(each.hashes)
    return found


def write_state_files(project: Project, state: RunState, seq: int, notice: Notice) -> None:
    """Write the state files of a run that is not live."""
    files = projections(project, state.plan.id, state.run, notice)
    files.show(state, seq)
    files.close()


def only_state_differs(
    project: Project, state: RunState, committed: Mapping[str, str]
) -> list[str]:
    """The state files that differ from their committed text only by the state."""
    texts = {path: text for path in committed if (text := _text(project, path)) is not None}
    now, then = (
        {**held, **project_dialect(state, held, project.redactor.text)}
        for held in (texts, {path: committed[path] for path in texts})
    )
    new = (path for path in texts if texts[path] != committed[path])
    return [path for path in new if (now[path] or "") == (then[path] or "")]


def _dialect_files(project: Project, state: RunState) -> dict[Path, Shown]:
    root, redact = project.root, project.redactor.text
    paths = list(writes(state.plan))
    texts = {path: text for path in paths if (text := _text(project, path)) is not None}
    shared = shares(state.plan)
    shown = {
        root / path: Shown(text, shared=path in shared)
        for path, text in project_dialect(state, texts, redact).items()
    }
    # A file without a readable text is reported too, if a link is the reason.
    unsafe = {root / path: _unsafe(project, path) for path in paths if root / path not in shown}
    shown |= {path: Shown(None, trouble=error) for path, error in unsafe.items() if error}
    return shown


def _continue_here(project: Project, state: RunState, seq: int) -> dict[Path, Shown]:
    """The continue-here file. All plans share it: another plan's is overwritten, never deleted."""
    path = project.root / continue_here_path(state.plan)
    there = read_plainly(path, inside=project.root)
    named = pointer(there) if there is not None else None
    ours = named is not None and named.plan == state.plan.id
    text = continue_here_text(state, seq, project.redactor.text)
    if text is None:
        return {path: Shown(None)} if ours else {}
    shown = {path: Shown(text, gives_way=not ours)}
    if there is None or named is not None:
        return shown
    # Another tool has such a file too: its text is kept.
    mark = hashlib.sha256(there.encode()).hexdigest()[:8]
    return {path.with_name(f"{path.name}.before-{mark}"): Shown(there), **shown}


def _text(project: Project, path: str) -> str | None:
    """The text of a file of the user's; None if it is missing or not text."""
    try:
        with open_to_read(project.root / path, inside=project.root) as file:
            return file.read().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _unsafe(project: Project, path: str) -> UnsafePath | None:
    """Why the file is neither read nor written: it is a link or a special file."""
    try:
        refuse_unsafe(project.root / path, inside=project.root)
    except UnsafePath as error:
        return error
    except OSError:
        return None
    return None
