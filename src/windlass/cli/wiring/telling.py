"""The state files of a run: what is rendered from which state, and where it is written."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from windlass.adapters.files import read_plainly
from windlass.adapters.projections import Projections, Shown
from windlass.cli.wiring.project import Project
from windlass.dialects import continue_here_path, shares, writes
from windlass.dialects import project as project_dialect
from windlass.dialects.taskfile_state import unstamped
from windlass.state import RunState
from windlass.views.continue_here import continue_here, pointer
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

    return Projections(render, memory=folder / "projected.json", notice=notice)


def tell(project: Project, state: RunState, seq: int, notice: Notice) -> None:
    """Write the state files of a run that a command has changed; nobody else is at it."""
    told = projections(project, state.plan.id, state.run, notice)
    told.show(state, seq)
    told.close()


def written_alone(
    project: Project, state: RunState, seq: int, committed: Mapping[str, str]
) -> list[str]:
    """Of the files of the plan's state, those that differ by that alone from what is committed."""
    texts = {path: text for path in committed if (text := _text(project.root / path)) is not None}
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
    found = ((path, _text(root / path)) for path in writes(state.plan))
    texts = {path: text for path, text in found if text is not None}
    shared = shares(state.plan)
    return {
        root / path: Shown(text, shared=path in shared)
        for path, text in project_dialect(state, seq, texts, redact).items()
    }


def _where_it_rests(project: Project, state: RunState, seq: int) -> dict[Path, Shown]:
    """continue-here, which all plans share: another plan's is written over, never taken away."""
    path = project.root / continue_here_path(state.plan)
    there = read_plainly(path)
    named = pointer(there) if there is not None else None
    ours = named is not None and named.plan == state.plan.id
    text = continue_here(state, seq, project.redactor.text)
    if text is None:
        return {path: Shown(None)} if ours else {}
    shown = {path: Shown(text, gives_way=not ours)}
    if there is None or named is not None:
        return shown
    # Another tool has such a file too, and somebody may want to know what it said.
    mark = hashlib.sha256(there.encode()).hexdigest()[:8]
    return {path.with_name(f"{path.name}.before-{mark}"): Shown(there), **shown}


def _text(path: Path) -> str | None:
    """A file of the user's as it is at this moment; None where it is gone, or no text now."""
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError):
        return None
