"""The state files of a run: what is rendered from which state, and where it is written."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from windlass.adapters.files import open_to_read, read_plainly, refuse_unsafe
from windlass.adapters.projections import Projections, Shown
from windlass.app.wiring.project import Project
from windlass.core.state import RunState
from windlass.errors import UnsafePath
from windlass.formats import continue_here_path, shares, writes
from windlass.formats import project as project_dialect
from windlass.formats.taskfile import unstamped
from windlass.views.closing import continue_here_text, pointer
from windlass.views.progress import progress

Notice = Callable[[str], None]


def projections(project: Project, plan_id: str, run: str, notice: Notice) -> Projections:
    """What keeps the run's state files in step with it."""
    folder = project.folders(plan_id).run(run)

    def render(state: RunState, seq: int) -> Mapping[Path, Shown]:
        own = msgspec.json.format(msgspec.json.encode(progress(state, seq)), indent=2).decode()
        return {
            folder / "state.json": Shown(own + "\n"),
            **_of_dialect(project, state, seq),
            **_where_it_rests(project, state, seq),
        }

    memory = folder / "projected.json"
    return Projections(render, inside=project.root, memory=memory, notice=notice)


def tell(project: Project, state: RunState, seq: int, notice: Notice) -> None:
    """Write the state files of a run that a command has changed; nobody else is at it."""
    told = projections(project, state.plan.id, state.run, notice)
    told.show(state, seq)
    told.close()


def written_alone(
    project: Project, state: RunState, seq: int, committed: Mapping[str, str]
) -> list[str]:
    """Of the files of the plan's state, those that differ by that alone from what is committed."""
    texts = {path: text for path in committed if (text := _text(project, path)) is not None}
    now, then = (
        {**held, **project_dialect(state, seq, held, project.redactor.text)}
        for held in (texts, {path: committed[path] for path in texts})
    )
    new = (path for path in texts if texts[path] != committed[path])
    return [path for path in new if _plain(state, now[path]) == _plain(state, then[path])]


def _plain(state: RunState, text: str | None) -> str:
    return unstamped(text or "", state.run)


def _of_dialect(project: Project, state: RunState, seq: int) -> dict[Path, Shown]:
    root, redact = project.root, project.redactor.text
    paths = list(writes(state.plan))
    texts = {path: text for path in paths if (text := _text(project, path)) is not None}
    shared = shares(state.plan)
    shown = {
        root / path: Shown(text, shared=path in shared)
        for path, text in project_dialect(state, seq, texts, redact).items()
    }
    # A file that is not written for want of its text is said as well, where a link is the reason.
    unsafe = {root / path: _unsafe(project, path) for path in paths if root / path not in shown}
    shown |= {path: Shown(None, trouble=error) for path, error in unsafe.items() if error}
    return shown


def _where_it_rests(project: Project, state: RunState, seq: int) -> dict[Path, Shown]:
    """continue-here, which all plans share: another plan's is written over, never taken away."""
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
    # Another tool has such a file too, and somebody may want to know what it said.
    mark = hashlib.sha256(there.encode()).hexdigest()[:8]
    return {path.with_name(f"{path.name}.before-{mark}"): Shown(there), **shown}


def _text(project: Project, path: str) -> str | None:
    """A file of the user's as it is at this moment; None where it is gone, or no text now."""
    try:
        with open_to_read(project.root / path, inside=project.root) as file:
            return file.read().decode()
    except (OSError, UnicodeDecodeError):
        return None


def _unsafe(project: Project, path: str) -> UnsafePath | None:
    """Why the file is neither read nor written, where a link or a special file stands there."""
    try:
        refuse_unsafe(project.root / path, inside=project.root)
    except UnsafePath as error:
        return error
    except OSError:
        return None
    return None
