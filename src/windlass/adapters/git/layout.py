"""Where things are: the names of pins, branches and folders. Exactly as the design has them.

A ref cannot be both a name and a folder, so every pin ends in a word of its own.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

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
    def began(self) -> str:
        """The run's first fact, as text."""
        return f"{self.root}/began"

    def told(self, number: int | None = None) -> str:
        """A fact that no commit shows, as text; without a number, where all of them lie."""
        return f"{self.root}/told" if number is None else f"{self.root}/told/{number}"

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
    def furnished(self) -> Path:
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


def shown_of_git(checkout: Path) -> Mapping[Path, Path]:
    """What a box shows of git beside its checkout: by the place it has there, the folder."""
    home = checkout.parent.parent
    index = checkout.with_name("index")
    if checkout.parent.name == "workspaces":
        index = home / "private" / checkout.name / "index"
    shown = {history(index): history(index)}
    if stand_in(index).is_dir():
        shown[Path(os.fsdecode(stands_in_for(index).read_bytes()))] = stand_in(index)
    return {place: folder for place, folder in shown.items() if folder.is_dir()}
