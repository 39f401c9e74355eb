"""What a repository looks like to its user, without times and random names.

Law: two pictures are equal if a person cannot tell which of the two repositories went through a
fault. Pictures are taken from outside, with the user's git and the files on disk.
"""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from windlass.selftest.place import Place
from windlass.testing.faults.story import PLAN_ID, STATE_FILE

_RUN = re.compile(r"(?<=/)[0-9a-f]{8}(?=/|$)")
"""The id of a run, in the name of a ref."""
_CANDIDATE = re.compile(r"candidate/\d+")
"""A merge before its checks; an interrupted one is built again, under the next number."""
_TEMPORARY = ".windlass-*.tmp"
"""What an interrupted write leaves."""
_OWN = (".windlass/", ".git/refs/windlass/", ".git/refs/heads/windlass/")
"""Where only Windlass writes. Every process that opens the run first removes the locks there."""
_MIRROR = "refs/windlass/plan/RUN/journal"
"""A copy of the journal; it is brought up to date by the next resume at the latest."""
_OURS = frozenset({".git", ".windlass"})
_FOLDERS = ("workspaces", "throwaway", "kept")


def picture(place: Place) -> dict[str, str]:
    """Everything that must be equal, by a readable name."""
    return {**_files(place), **_git_state(place), **_run_state(place), **_remote_refs(place)}


def user_files(place: Place) -> dict[str, str]:
    """The mode and content hash of every file in the checkout, by path."""
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


def leftovers(place: Place) -> Iterator[str]:
    """Files that block the user's own git, or were left in their folders."""
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
        # Times and commits differ from run to run; only the tasks are compared.
        state = json.loads(text.read_text(encoding="utf-8"))
        found[STATE_FILE] = json.dumps(
            [state.get("status"), sorted(state.get("completed_tasks", ()))]
        )
    return {f"the file {path}": content for path, content in found.items()}


def _git_state(place: Place) -> dict[str, str]:
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


def _run_state(place: Place) -> dict[str, str]:
    journals = place.project.journals
    state = journals.last_run(PLAN_ID) if PLAN_ID in journals.plans() else None
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


def _remote_refs(place: Place) -> dict[str, str]:
    if not place.remote.exists():
        return {}
    done = subprocess.run(
        ["git", "for-each-ref", "--format=%(refname) %(objectname)"],
        cwd=place.remote,
        env=place.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return {"the remote": done.stdout}
