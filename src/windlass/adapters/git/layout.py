"""The names of pins, branches and folders, and the small files that say what is in use.

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
        """Below this lies every pin of the run."""
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
        """The run's place among the runs of its plan; of several, the highest counts."""
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
    def told(self) -> str:
        """Facts that no commit shows, as texts by number; versions before the mirror wrote them."""
        return f"{self.root}/told"

    def candidate(self, number: int) -> str:
        """A merge before its checks ran."""
        return f"{self.root}/candidate/{number}"

    def attempt(self, task: str, n: int, what: str) -> str:
        """A pin of the n-th start of a task's Player."""
        return f"{self.root}/task/{task}/{n}/{what}"

    @property
    def integration(self) -> str:
        """The branch that shows the tip to people."""
        return f"refs/heads/windlass/{self.plan}/integration"


def orders(refs: Iterable[str], plan: str) -> dict[str, int]:
    """The place of each run of a plan, by the names of its pins. Newer runs have higher places.

    The order is counted and never read from a clock: two runs may begin within one second, and a
    clock may be set back. Runs of earlier versions have no place.
    """
    found: dict[str, int] = {}
    for ref in refs:
        named = _ORDER.fullmatch(ref)
        if named is not None and named["plan"] == plan:
            found[named["run"]] = max(int(named["number"]), found.get(named["run"], 0))
    return found


def is_order(ref: str) -> bool:
    """Whether a pin does nothing but say the place of its run."""
    return _ORDER.fullmatch(ref) is not None


class Folders(Struct, frozen=True):
    """The folders of one plan under `.windlass`."""

    root: Path
    """The main worktree's `.windlass`."""
    plan: str

    @property
    def home(self) -> Path:
        """All that belongs to the plan."""
        return self.root / "plans" / self.plan

    @property
    def lock(self) -> Path:
        """Held by whoever runs the plan; kept for ever."""
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
        """Windlass's own git directory, from which hostile trees are looked at."""
        return self.home / "git"

    @property
    def workspaces(self) -> Path:
        """Every task's own checkout, by its id."""
        return self.home / "workspaces"

    def workspace(self, task: str) -> Path:
        """A task's own checkout."""
        return self.workspaces / task

    def index(self, task: str) -> Path:
        """The index of that checkout that no agent can reach."""
        return self.home / "private" / task / "index"

    @property
    def kept(self) -> Path:
        """Workspaces of other runs, set aside under names of their own."""
        return self.home / "kept"

    def index_aside(self, name: str) -> Path:
        """What `index` is for one that was set aside; no task's id begins with a dot."""
        return self.home / "private" / ".kept" / name / "index"

    def prepared(self, task: str) -> Path:
        """What that checkout was last prepared for."""
        return self.home / "private" / task / "prepared.json"

    @property
    def throwaway(self) -> Path:
        """Checkouts that live as long as a check or a setup."""
        return self.home / "throwaway"

    @property
    def pool(self) -> Path:
        """Checkouts that were used, cleaned for the next."""
        return self.home / "pool"

    @property
    def histories(self) -> Path:
        """Packs of what the commits of a run reach, as long as its process lives."""
        return self.home / "histories"

    @property
    def setup_results(self) -> Path:
        """What setup commands made, by the hash of their inputs."""
        return self.home / "furnished"

    def run(self, run: str) -> Path:
        """One run's state file, logs and activity."""
        return self.home / "runs" / run


def history(index: Path) -> Path:
    """The objects that the checkout of this index shows: a folder that no agent can write."""
    return index.with_name("history")


def stand_in(index: Path) -> Path:
    """What a box has in place of the user's note of a linked worktree: a small git directory."""
    return index.with_name("stand-in")


def stands_in_for(index: Path) -> Path:
    """A file that holds the path of that note."""
    return index.with_name("stands-in-for")


def git_folders_shown(checkout: Path) -> Mapping[Path, Path]:
    """What a box shows of git beside its checkout: by the place it has there, the folder."""
    home = checkout.parent.parent
    index = checkout.with_name("index")
    if checkout.parent.name == "workspaces":
        index = home / "private" / checkout.name / "index"
    shown = {history(index): history(index)}
    if stand_in(index).is_dir():
        shown[Path(os.fsdecode(stands_in_for(index).read_bytes()))] = stand_in(index)
    return {place: folder for place, folder in shown.items() if folder.is_dir()}


class Prepared(Struct, frozen=True, kw_only=True):
    """What a workspace was last made ready for; written once it is."""

    run: str
    n: int
    start: str
    onto: str | None
    by_person: bool = False
    """Whether its `.git` is a person's, who may have commits there."""


def is_ready(folders: Folders, run: str, task: str, n: int) -> bool:
    """Whether a workspace was last made ready for that start of the task."""
    found = note_of(folders, task)
    return found is not None and (found.run, found.n) == (run, n)


def note_of(folders: Folders, task: str) -> Prepared | None:
    """What the note says, if there is one that can be read."""
    try:
        return msgspec.json.decode(folders.prepared(task).read_bytes(), type=Prepared)
    except (OSError, msgspec.MsgspecError):
        return None


HEADS = "refs/heads/"
MOST_LINKS = 5
"""How many symbolic refs in a row are followed; git's own bound."""


def in_use(git_dir: Path, root: Path, branch: str) -> str:
    """What somebody does with a branch and where, in words; empty when nobody does anything."""
    for own, place in worktrees(git_dir, root):
        if branch in _stands_at(git_dir, own):
            return f"is checked out in {place}"
        if word := _in_the_middle(own, branch):
            return f"is being {word} in {place}"
    return ""


def in_progress(git_dir: Path, root: Path, branch: str) -> str:
    """What git is about to finish with a branch and where, in words; empty when nothing."""
    for own, place in worktrees(git_dir, root):
        if word := _in_the_middle(own, branch):
            return f"is being {word} in {place}"
    return ""


def _in_the_middle(own: Path, branch: str) -> str:
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


def _stands_at(git_dir: Path, own: Path) -> Iterator[str]:
    """The branch that HEAD names; where that is a name for another, that one too."""
    at = own / "HEAD"
    for _ in range(MOST_LINKS):
        name = _named(at)
        if not name:
            return
        yield name
        at = git_dir / name


def _named(ref: Path) -> str:
    """The ref that a ref is another name for."""
    if ref.is_symlink():  # how old repositories say it
        return str(ref.readlink())
    said, _, name = _text(ref).partition(":")
    return name.strip() if said == "ref" else ""


def _rebased(own: Path) -> set[str]:
    """The branches that a rebase in this worktree will move when it is done."""
    held = ("rebase-merge/head-name", "rebase-merge/update-refs", "rebase-apply/head-name")
    return {line.strip() for name in held for line in _text(own / name).splitlines()}


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""


class Workspace(Struct, frozen=True, kw_only=True):
    """A task's workspace, as found from a folder in it."""

    root: Path
    """The repository whose run it belongs to."""
    plan: str
    task: str
    below: Path
    """The folder, as seen from the workspace."""


def workspace_around(folder: Path) -> Workspace | None:
    """The workspace that the folder lies in, if any.

    The path says so, and a note that Windlass wrote. An agent can make any folder and any
    repository inside its workspace, but it cannot write that note: so the outermost one counts.
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
