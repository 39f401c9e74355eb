"""What lies on the disk of a plan, for a bug report: as far as it can be read."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from windlass.adapters.files import open_to_read
from windlass.adapters.git import inspect
from windlass.adapters.journal.salvage import salvage
from windlass.cli.wiring.project import Project
from windlass.cli.wiring.reporting import write_named
from windlass.errors import JournalError, WindlassError
from windlass.settings import Settings, is_secret, leaves, mask

MOST = 256 * 1024
"""Of what agents said, and of a check's log, no more than this: its end."""


class Found(Struct, frozen=True, kw_only=True):
    """A plan's records as plain data."""

    journal: tuple[tuple[int, Any], ...]
    """Facts with their positions."""
    trouble: str = ""
    """Why it is not all of it, or not to be trusted."""
    state: Any = None
    run: str = ""
    activity: tuple[Any, ...] = ()
    logs: Mapping[str, int] = {}
    """The names of the checks' logs, and how long each is."""


def found(project: Project, plan_id: str) -> Found:
    """All there is of one plan; what cannot be read is said, and is no reason to give up."""
    journal, trouble = _journal(project, plan_id)
    if not (folders := project.run_folders(plan_id)):
        return Found(journal=journal, trouble=trouble)
    newest = folders[-1]
    return Found(
        journal=journal,
        trouble=trouble,
        state=_json(newest / "state.json"),
        run=newest.name,
        activity=_activity(newest / "activity.jsonl"),
        logs={path.name: path.stat().st_size for path in sorted((newest / "logs").glob("*"))},
    )


def tail(project: Project, plan_id: str, run: str, log: str) -> str:
    """The end of a check's log."""
    return _end(project.folders(plan_id).run(run) / "logs" / log).decode(errors="replace")


def people(project: Project | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Names of persons and of places of theirs, each with what stands for it."""
    names: dict[str, str] = {}
    if project is not None:
        names |= {str(project.root): "REPOSITORY", str(project.directory): "REPOSITORY"}
        try:
            identity = inspect.identity(project.user_git)
        except WindlassError:
            identity = {}
        for role in ("AUTHOR", "COMMITTER"):
            names |= {identity.get(f"GIT_{role}_NAME", ""): "SOMEBODY"}
            names |= {identity.get(f"GIT_{role}_EMAIL", ""): "SOMEBODY@HOST"}
    home = environment.get("HOME", "").rstrip("/")
    users = {environment.get(name, "") for name in ("USER", "LOGNAME")} | {Path(home).name}
    # `root` and `home` are words as well, and say nothing of anybody.
    names |= dict.fromkeys(users - {"root", "home"}, "USER")
    names |= {home: "~", platform.node(): "HOST"}
    return {name: told for name, told in names.items() if len(name) > 2}  # noqa: PLR2004  no word


def keep(project: Project | None, path: Path, data: bytes) -> None:
    """Write the bundle, for its owner alone to read."""
    write_named(project.root if project is not None else None, path, data, mode=0o600)


def _journal(project: Project, plan_id: str) -> tuple[tuple[tuple[int, Any], ...], str]:
    try:
        entries = project.entries(plan_id)
    except (JournalError, OSError) as error:
        rows = salvage(project.folders(plan_id).journal)
        facts = tuple((seq, _decoded(payload)) for seq, payload in rows)
        return facts, f"{error}; {len(facts)} records could be read of a copy"
    return tuple((each.seq, msgspec.to_builtins(each.event)) for each in entries), ""


def _decoded(payload: bytes) -> Any:
    """A record's fact; one that cannot be read is told by its length."""
    try:
        record = msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        return {"type": "unreadable", "length": len(payload)}
    return _masked(record.get("event", record))


def _masked(fact: Any) -> Any:
    """A fact without the settings that are secret: an older Windlass recorded them."""
    for key in (key for key, kind in leaves(Settings) if is_secret(kind)):
        place: Any = fact
        *sections, name = ("settings", *key.split("."))
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if isinstance(place, dict) and name in place:
            place[name] = mask(place[name])
    return fact


def _json(path: Path) -> Any:
    try:
        with open_to_read(path) as file:
            return msgspec.json.decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None


def _activity(path: Path) -> tuple[Any, ...]:
    lines: list[Any] = []
    for line in _end(path).splitlines()[-200:]:
        try:
            lines.append(msgspec.json.decode(line))
        except (msgspec.MsgspecError, UnicodeError):
            continue
    return tuple(lines)


def _end(path: Path) -> bytes:
    try:
        with open_to_read(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MOST))
            return file.read()
    except OSError:
        return b""
