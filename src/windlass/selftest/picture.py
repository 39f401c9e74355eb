"""What a repository looks like to its user, apart from times and names that chance gave.

Law: two pictures are the same when a person could not tell which of two repositories was broken and
mended on its way. It is taken from outside, with the user's git and the files on disk.
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from windlass.app.wiring import Project
from windlass.selftest.place import Place
from windlass.testing.faults.story import PLAN_ID, STATE_FILE

_RUN = re.compile(r"(?<=/)[0-9a-f]{8}(?=/|$)")
"""The name of a run, in that of a ref."""
_CANDIDATE = re.compile(r"candidate/\d+")
"""A merge before its checks ran: one that was cut short is built anew, under the next number."""
_TEMPORARY = ".windlass-*.tmp"
"""What a writer leaves that was cut short."""
_OWN = (".windlass/", ".git/refs/windlass/", ".git/refs/heads/windlass/")
"""Where only Windlass writes: every process that opens the run removes locks there first."""
_MIRROR = "refs/windlass/plan/RUN/journal"
"""A copy of the journal: it follows that, at the next resume at latest."""
_OURS = frozenset({".git", ".windlass"})
_FOLDERS = ("workspaces", "throwaway", "kept")


def picture(place: Place) -> dict[str, str]:
    """Every thing that counts, by a name for people."""
    return {**_files(place), **_of_git(place), **_of_the_run(place), **_of_the_remote(place)}


def user_files(place: Place) -> dict[str, str]:
    """Every file of the checkout, by its content."""
    root, found = place.repo, dict[str, str]()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if Path(folder) != root or name not in _OURS]
        for path in (Path(folder, name) for name in names):
            shown = str(path.relative_to(root))
            if path.is_symlink():
                found[shown] = f"-> {path.readlink()}"
            else:
                executable = "x" if os.access(path, os.X_OK) else "-"
                found[shown] = f"{executable} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    return found


def litter(place: Place) -> Iterator[str]:
    """What stands in the way of the user's own git, or lies about in their folders."""
    root = place.repo
    locks = sorted(str(path.relative_to(root)) for path in root.rglob("*.lock"))
    if blocking := [lock for lock in locks if not lock.startswith(_OWN)]:
        yield f"stale locks: {blocking}"
    if (root / ".git/windlass-land").exists():
        yield "a landing is left in .git"
    for folder in (root, root / ".git"):
        if left := sorted(path.name for path in folder.glob(_TEMPORARY)):
            yield f"left in {folder.relative_to(root.parent)}: {left}"


def _files(place: Place) -> dict[str, str]:
    found = user_files(place)
    if (text := place.repo / STATE_FILE).is_file():
        # It tells times and commits; what it says of tasks is what counts.
        told = json.loads(text.read_text(encoding="utf-8"))
        found[STATE_FILE] = json.dumps(
            [told.get("status"), sorted(told.get("completed_tasks", ()))]
        )
    return {f"the file {path}": content for path, content in found.items()}


def _of_git(place: Place) -> dict[str, str]:
    git = place.git
    refs: dict[str, list[str]] = {}
    listed = git("for-each-ref", "--format=%(refname) %(objecttype) %(objectname) %(tree)")
    for line in listed.splitlines():
        name, kind, _, *tree = line.split()
        known = _CANDIDATE.sub("candidate", _RUN.sub("RUN", name))
        if known == _MIRROR:
            continue
        refs.setdefault(known, []).append(tree[0] if kind == "commit" else kind)
    found = {f"the ref {name}": " ".join(sorted({*trees})) for name, trees in refs.items()}
    status = git("status", "--porcelain", "--untracked-files=all").splitlines()
    found["git status"] = "\n".join(line for line in status if ".windlass/" not in line)
    found["the index"] = git("ls-files", "--stage")
    found["HEAD"] = git("symbolic-ref", "HEAD")
    log = git("log", "--first-parent", "--format=%s", "main")
    found["the log of main"] = log
    reflog = git("reflog", "show", "--format=%gs", "main").splitlines()
    found["the reflog of main"] = "\n".join(reflog)
    git("fsck", "--connectivity-only", "--no-dangling")
    return found


def _of_the_run(place: Place) -> dict[str, str]:
    project = Project(place.repo, place.environment)
    state = project.journals.last_run(PLAN_ID) if PLAN_ID in project.journals.plans() else None
    if state is None:
        return {"the run": "none"}
    found = {f"task {name}": str(task.phase) for name, task in state.tasks.items()}
    landed = state.landing is not None and state.landing.landed is not None
    found["the run"] = f"{state.ended} landed {landed} merges {state.merges}"
    home = place.repo / ".windlass/plans" / PLAN_ID
    for name in _FOLDERS:
        found[name] = " ".join(sorted(path.name for path in (home / name).glob("*")))
    for workspace in (home / "workspaces").glob("*"):
        files = [
            f"{path.relative_to(workspace)} {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
            for path in sorted(workspace.rglob("*"))
            if path.is_file() and ".git" not in path.relative_to(workspace).parts
        ]
        found[f"workspace {workspace.name}"] = "\n".join(files)
    return found


def _of_the_remote(place: Place) -> dict[str, str]:
    if not place.remote.exists():
        return {}
    asked = ["git", "for-each-ref", "--format=%(refname) %(objectname)"]
    done = subprocess.run(
        asked, cwd=place.remote, env=place.environment, capture_output=True, text=True, check=True
    )
    return {"the remote": done.stdout}
