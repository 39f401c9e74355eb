"""Reads the records of a plan on disk, as far as possible, for a bug report."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from windlass.adapters.files import open_to_read
from windlass.adapters.git import inspect
from windlass.adapters.journal.sqlite import salvage
from windlass.app.wiring.project import Project
from windlass.core.settings import Settings, is_secret, leaves, mask
from windlass.errors import JournalError, WindlassError

MOST = 256 * 1024
"""Bytes that are read from the end of the activity and of a check's log."""


class Records(Struct, frozen=True, kw_only=True):
    """A plan's records as plain data."""

    journal: tuple[tuple[int, Any], ...]
    """Facts with their sequence numbers."""
    trouble: str = ""
    """Why the journal is incomplete or damaged."""
    state: Any = None
    run: str = ""
    activity: tuple[Any, ...] = ()
    logs: Mapping[str, int] = {}
    """The sizes of the checks' logs, by name."""


def read_records(project: Project, plan_id: str) -> Records:
    """Read the records of a plan; damage is reported in `trouble`, not raised."""
    journal, trouble = _journal(project, plan_id)
    if not (folders := project.journals.run_folders(plan_id)):
        return Records(journal=journal, trouble=trouble)
    newest = folders[-1]
    return Records(
        journal=journal,
        trouble=trouble,
        state=_json(newest / "state.json"),
        run=newest.name,
        activity=_activity(newest / "activity.jsonl"),
        logs={path.name: path.stat().st_size for path in sorted((newest / "logs").glob("*"))},
    )


def end_of_log(project: Project, plan_id: str, run: str, log: str) -> str:
    return _end(project.folders(plan_id).run(run) / "logs" / log).decode(errors="replace")


def personal_names(project: Project | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Personal names and paths, each with its placeholder."""
    names: dict[str, str] = {}
    if project is not None:
        names |= {str(project.root): "REPOSITORY", str(project.directory): "REPOSITORY"}
        try:
            identity = inspect.identity(project.user_git)
        except WindlassError:
            identity = {}
        for role in ("AUTHOR", "COMMITTER"):
            names |= {identity.get(f"GIT_{role}_NAME", ""): "PERSON"}
            names |= {identity.get(f"GIT_{role}_EMAIL", ""): "PERSON@HOST"}
    home = environment.get("HOME", "").rstrip("/")
    users = {environment.get(name, "") for name in ("USER", "LOGNAME")} | {Path(home).name}
    # `root` and `home` are ordinary words, and identify no person.
    names |= dict.fromkeys(users - {"root", "home"}, "USER")
    names |= {home: "~", platform.node(): "HOST"}
    return {name: shown for name, shown in names.items() if len(name) > 2}  # noqa: PLR2004  shorter ones match inside words


def _journal(project: Project, plan_id: str) -> tuple[tuple[tuple[int, Any], ...], str]:
    try:
        entries = project.journals.entries(plan_id)
    except (JournalError, OSError) as error:
        rows = salvage(project.folders(plan_id).journal)
        facts = tuple((seq, _decoded(payload)) for seq, payload in rows)
        return facts, f"{error}; {len(facts)} records could be read from a copy"
    return tuple((each.seq, msgspec.to_builtins(each.event)) for each in entries), ""


def _decoded(payload: bytes) -> Any:
    """The fact of a record; only the length of one that cannot be decoded."""
    try:
        record = msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError):
        return {"type": "unreadable", "length": len(payload)}
    return _masked(record.get("event", record))


def _masked(fact: Any) -> Any:
    """The fact with secret settings masked: older versions of Windlass recorded them."""
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
