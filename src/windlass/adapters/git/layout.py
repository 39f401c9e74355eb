"""The names of pins, branches and folders, and the small files that record their use.

A ref cannot be both a name and a folder, so every pin ends in a word of its own. The note beside a
workspace (`Prepared`) is written when the workspace is durable and removed before anything in it is
undone, so a workspace without a note was never given to an agent or a person. Whether a branch is
checked out, rebased or bisected is read from git's own files; asking git costs a third of a merge.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

_ORDER = re.compile(r"refs/windlass/(?P<plan>[^/]+)/(?P<run>[^/]+)/order-(?P<number>[1-9]\d*)")


class Refs(Struct, frozen=True):
    """The refs of one run in the user's repository."""

    plan: str
    run: str

    @property
    def root(self) -> str:
        """The prefix of every pin of the run."""
        return f"refs/windlass/{self.plan}/{self.run}"

    @property
    def base(self) -> str:
        """The commit the run works from."""
        return f"{self.root}/base"

    @property
    def tip(self) -> str:
        """The newest merged commit: the only pin that moves."""
        return f"{self.root}/tip"

    def order(self, number: int) -> str:
        """The run's position among the runs of its plan; of several, the highest counts."""
        return f"{self.root}/order-{number}"

    @property
    def journal(self) -> str:
        """The mirror of the journal."""
        return f"{self.root}/journal"

    @property
    def began(self) -> str:
        """The run's first fact, as text; versions before the mirror wrote it."""
        return f"{self.root}/began"

    @property
    def pinned_facts(self) -> str:
        """Facts that no commit shows, as texts by number; versions before the mirror wrote them."""
        return f"{self.root}/told"

    def candidate(self, number: int) -> str:
        """A merge before its checks ran."""
        return f"{self.root}/candidate/{number}"

    def squash(self, onto: str, tip: str, *, signed: bool) -> str:
        """The last of the commits that stand for the merges up to the tip, on top of `onto`."""
        return f"{self.root}/squash/{onto}-{tip}{'-signed' if signed else ''}"

    def attempt(self, task: str, n: int, what: str) -> str:
        """A pin of the n-th start of a task's Player."""
        return f"{self.root}/task/{task}/{n}/{what}"

    @property
    def integration(self) -> str:
        """The branch that shows the tip to people."""
        return f"refs/heads/windlass/{self.plan}/integration"


def orders(refs: Iterable[str], plan: str) -> dict[str, int]:
    """The position of each run of a plan, from the names of its pins; newer runs have higher ones.

    The order is counted and never read from a clock: two runs may begin within one second, and a
    clock may be set back. Runs of earlier versions have no position.
    """
    found: dict[str, int] = {}
    for ref in refs:
        named = _ORDER.fullmatch(ref)
        if named is not None and named["plan"] == plan:
            found[named["run"]] = max(int(named["number"]), found.get(named["run"], 0))
    return found


def is_order(ref: str) -> bool:
    """Whether a pin only records the position of its run."""
    return _ORDER.fullmatch(ref) is not None


class Folders(Struct, frozen=True):
    """The folders of one plan under `.windlass`."""

    root: Path
    """The main worktree's `.windlass`."""
    plan: str

    @property
    def home(self) -> Path:
        """Everything that belongs to the plan."""
        return self.root / "plans" / self.plan

    @property
    def lock(self) -> Path:
        """Held by the process that runs the plan; the file is never removed."""
        return self.home / "lock"

    @property
    def journal(self) -> Path:
        """The only record of decisions."""
        return self.home / "journal.db"

    @property
    def inbox(self) -> Path:
        """Commands from people."""
        return self.home / "inbox"

    @property
    def git(self) -> Path:
        """Windlass's own git directory, through which it reads hostile trees."""
        return self.home / "git"

    @property
    def workspaces(self) -> Path:
        """The workspaces of all tasks, by task id."""
        return self.home / "workspaces"

    def workspace(self, task: str) -> Path:
        return self.workspaces / task

    def index(self, task: str) -> Path:
        """The index of a task's workspace, where no agent can reach it."""
        return self.home / "private" / task / "index"

    @property
    def kept(self) -> Path:
        """Workspaces that were set aside under other names."""
        return self.home / "kept"

    def index_aside(self, name: str) -> Path:
        """The index of a workspace that was set aside; no task's id begins with a dot."""
        return self.home / "private" / ".kept" / name / "index"

    def prepared(self, task: str) -> Path:
        """The note about what a workspace was last prepared for."""
        return self.home / "private" / task / "prepared.json"

    @property
    def throwaway(self) -> Path:
        """Checkouts that exist only while a check or a setup runs."""
        return self.home / "throwaway"

    @property
    def pool(self) -> Path:
        """Used checkouts, cleaned for the next task."""
        return self.home / "pool"

    @property
    def histories(self) -> Path:
        """Packs of the objects that a run's commits reach; they last as long as its process."""
        return self.home / "histories"

    @property
    def setup_results(self) -> Path:
        """The results of setup commands, by the hash of their inputs."""
        return self.home / "furnished"

    def run(self, run: str) -> Path:
        """One run's state file, logs and activity."""
        return self.home / "runs" / run


def history(index: Path) -> Path:
    """The objects that the checkout of this index shows, in a folder that no agent can write."""
    return index.with_name("history")


def box_git_dir(index: Path) -> Path:
    """A small git directory that a box shows in place of a linked worktree's own."""
    return index.with_name("stand-in")


def box_git_dir_target(index: Path) -> Path:
    """A file with the path at which a box shows that git directory."""
    return index.with_name("stands-in-for")


def git_folders_shown(checkout: Path) -> Mapping[Path, Path]:
    """The git folders that a box shows beside its checkout, by their path in the box."""
    home = checkout.parent.parent
    index = checkout.with_name("index")
    if checkout.parent.name == "workspaces":
        index = home / "private" / checkout.name / "index"
    shown = {history(index): history(index)}
    if box_git_dir(index).is_dir():
        target = Path(os.fsdecode(box_git_dir_target(index).read_bytes()))
        shown[target] = box_git_dir(index)
    return {place: folder for place, folder in shown.items() if folder.is_dir()}


class Prepared(Struct, frozen=True, kw_only=True):
    """What a workspace was last prepared for; written once it is ready."""

    run: str
    n: int
    start: str
    onto: str | None
    by_person: bool = False
    """Whether a person works there, who may have made commits."""


def is_ready(folders: Folders, run: str, task: str, n: int) -> bool:
    """Whether a workspace was last prepared for that start of the task."""
    found = note_of(folders, task)
    return found is not None and (found.run, found.n) == (run, n)


def note_of(folders: Folders, task: str) -> Prepared | None:
    """The note beside a workspace; None if there is none or it cannot be read."""
    try:
        return msgspec.json.decode(folders.prepared(task).read_bytes(), type=Prepared)
    except (OSError, msgspec.MsgspecError):
        return None


HEADS = "refs/heads/"
MOST_LINKS = 5
"""How many symbolic refs in a row are followed; git's own limit."""


def in_use(git_dir: Path, root: Path, branch: str) -> str:
    """Which worktree uses a branch and how, in words; empty if none does."""
    for own, place in worktrees(git_dir, root):
        if branch in _checked_out(git_dir, own):
            return f"is checked out in {place}"
        if word := _operation(own, branch):
            return f"is being {word} in {place}"
    return ""


def in_progress(git_dir: Path, root: Path, branch: str) -> str:
    """Which worktree rebases or bisects a branch, in words; empty if none does."""
    for own, place in worktrees(git_dir, root):
        if word := _operation(own, branch):
            return f"is being {word} in {place}"
    return ""


def _operation(own: Path, branch: str) -> str:
    if branch in _rebased(own):
        return "rebased"
    bisected = {branch, branch.removeprefix(HEADS)}
    return "bisected" if _text(own / "BISECT_START").strip() in bisected else ""


def worktrees(git_dir: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    """The folder in which git keeps each worktree's own state, and the worktree."""
    yield git_dir, root
    for own in sorted((git_dir / "worktrees").glob("*")):
        dot_git = _text(own / "gitdir").strip()
        yield own, (own / dot_git).parent if dot_git else own


def _checked_out(git_dir: Path, own: Path) -> Iterator[str]:
    """The branch that HEAD names; if that is a symbolic ref, also the branch it names."""
    at = own / "HEAD"
    for _ in range(MOST_LINKS):
        name = _symbolic_target(at)
        if not name:
            return
        yield name
        at = git_dir / name


def _symbolic_target(ref: Path) -> str:
    """The ref that a symbolic ref names; empty for any other ref."""
    if ref.is_symlink():  # as in old repositories
        return str(ref.readlink())
    kind, _, name = _text(ref).partition(":")
    return name.strip() if kind == "ref" else ""


def _rebased(own: Path) -> set[str]:
    """The branches that a rebase in this worktree will move at its end."""
    held = ("rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name")
    return {line.strip() for name in held for line in _text(own / name).splitlines()}


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""


class Workspace(Struct, frozen=True, kw_only=True):
    """A task's workspace, found from a folder in it."""

    root: Path
    """The repository whose run it belongs to."""
    plan: str
    task: str
    below: Path
    """The folder, relative to the workspace."""


def workspace_around(folder: Path) -> Workspace | None:
    """The workspace that contains the folder, if any.

    The path and a note that Windlass wrote decide. An agent can make any folder and any repository
    inside its workspace, but cannot write that note, so the outermost one counts.
    """
    parts = folder.parts
    for at in range(1, len(parts) - 4):
        match parts[at : at + 5]:
            case (".windlass", "plans", plan, "workspaces", task):
                root = Path(*parts[:at])
                if note_of(Folders(root / ".windlass", plan), task) is not None:
                    below = Path(*parts[at + 5 :])
                    return Workspace(root=root, plan=plan, task=task, below=below)
            case _:
                pass
    return None
