"""The commands that write, each with a repository in which it has something to do.

Law: in every scene the user has uncommitted work: a changed file, a staged file and an untracked
file. No command may touch them, whatever fault it meets.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from windlass.errors import WindlassError
from windlass.selftest.place import Place, Rehearsals
from windlass.testing.faults.story import PLAN, PLAN_ID
from windlass.views.outcome import Exit

USER_WORK = MappingProxyType(
    {
        "README.md": "A folder of words.\nA thought of mine.\n",
        "staged.txt": "staged, not committed\n",
        "scratch.txt": "not known to git\n",
    }
)
"""The user's uncommitted work, which Windlass must leave alone."""

_TASK = "a"


class Scene(Struct, frozen=True, kw_only=True):
    """One command in one situation."""

    command: str
    about: str = ""
    """What is special about the situation; empty for the usual one."""
    argv: tuple[str, ...]
    begins: str
    """The run before it: `new` (none), `done` or `unfinished`."""
    arrange: Callable[[Rehearsals], None] = lambda _rehearsals: None
    """Prepares the rest of the situation."""
    code: int = 0
    """The exit code without a fault."""
    rebuilds: bool = False
    """Whether it replaces the journal."""

    @property
    def name(self) -> str:
        """The command and what is special about the situation."""
        return f"{self.command} ({self.about})" if self.about else self.command


def set_up(rehearsals: Rehearsals, scene: Scene) -> Path:
    """Create the repository of a scene; returns the copy that `reset` restores."""
    place = rehearsals.place
    template = place.folder / f"scene-{scene.name.replace(' ', '-')}"
    place.untouched = _beginning(rehearsals, scene.begins)
    shutil.rmtree(place.untouched_remote, ignore_errors=True)
    place.reset()
    scene.arrange(rehearsals)
    for path, text in USER_WORK.items():
        (place.repo / path).write_text(text, encoding="utf-8")
    place.git("add", "staged.txt")
    if place.remote.exists():
        place.remote.rename(place.untouched_remote)
    place.repo.rename(template)
    place.untouched = template
    place.reset()
    return template


def _beginning(rehearsals: Rehearsals, name: str) -> Path:
    place, template = rehearsals.place, rehearsals.place.folder / name
    if template.exists():
        return template
    place.untouched = place.folder / "untouched"
    place.reset()
    if name == "done":
        _expect(rehearsals, rehearsals.run(), 0)
    elif name == "unfinished":  # the checks of one task fail in its first and only turn
        _expect(rehearsals, rehearsals.run(max_turns=1, agents=1), Exit.FAILED)
    place.repo.rename(template)
    return template


def _expect(rehearsals: Rehearsals, code: int, wanted: int) -> None:
    if code != wanted:
        output = rehearsals.place.read_output()
        raise WindlassError(f"before any fault it ends with {code}, not {wanted}: {output}")


def _committed(rehearsals: Rehearsals) -> None:
    """The user has committed to their branch since."""
    place = rehearsals.place
    (place.repo / "mine.txt").write_text("mine\n", encoding="utf-8")
    place.git("add", "mine.txt")
    place.git("commit", "--quiet", "--message", "Mine")


def _switched(rehearsals: Rehearsals) -> None:
    rehearsals.place.git("switch", "--quiet", "--create", "elsewhere")


def _filtered(rehearsals: Rehearsals) -> None:
    """The checkout has a filter and line ends that change files, and leaves out one file."""
    place = rehearsals.place
    place.git("config", "filter.marked.smudge", "sed 's/^/> /'")
    place.git("config", "filter.marked.clean", "sed 's/^> //'")
    (place.repo / ".git/info").mkdir(exist_ok=True)
    (place.repo / ".git/info/attributes").write_text("*.txt filter=marked eol=crlf\n", "utf-8")
    place.git("sparse-checkout", "set", "--no-cone", "/*", "!/b.txt")
    (place.repo / "shared.txt").unlink()
    place.git("checkout", "--", "shared.txt")


def _with_remote(rehearsals: Rehearsals) -> None:
    place = rehearsals.place
    place.git("init", "--quiet", "--bare", "--template=", str(place.remote))
    place.git("remote", "add", "origin", str(place.remote))
    place.git("push", "--quiet", "--set-upstream", "origin", "main")


def _taken(rehearsals: Rehearsals) -> None:
    """A person has taken a task and changed a file."""
    _expect(rehearsals, rehearsals.call("take", _TASK), 0)
    workspace = rehearsals.place.repo / f".windlass/plans/{PLAN_ID}/workspaces" / _TASK
    (workspace / "a.txt").write_text("a, by hand\n", encoding="utf-8")


def _aborted(rehearsals: Rehearsals) -> None:
    """A run was aborted, and a workspace holds an uncommitted file."""
    workspace = rehearsals.place.repo / f".windlass/plans/{PLAN_ID}/workspaces" / _TASK
    (workspace / "more.txt").write_text("not committed\n", encoding="utf-8")
    _expect(rehearsals, rehearsals.call("abort", PLAN_ID, "--yes"), 0)


def _landed(rehearsals: Rehearsals) -> None:
    """The merged work is on the user's branch, and git has packed some of the pins."""
    _expect(rehearsals, rehearsals.call("land", PLAN_ID), 0)
    rehearsals.place.git("pack-refs", "--all")
    rehearsals.place.git("tag", "--annotate", "--message", "one", "one")
    rehearsals.place.git("pack-refs", "--all")


def _claimed(rehearsals: Rehearsals) -> None:
    """Another tool has done a task, and its state file says so."""
    place = rehearsals.place
    (place.repo / "a.txt").write_text("a\n", encoding="utf-8")
    place.git("add", "a.txt")
    place.git("commit", "--quiet", "--message", "Write a")
    state = {
        "milestone_id": PLAN_ID,
        "plan_path": PLAN,
        "completed_tasks": [_TASK],
        "task_results": {_TASK: {"commit": place.git("rev-parse", "HEAD")}},
    }
    (place.repo / "old_state.json").write_text(json.dumps(state), encoding="utf-8")


def _journal_lost(rehearsals: Rehearsals) -> None:
    home = rehearsals.place.repo / ".windlass/plans" / PLAN_ID
    for path in home.glob("journal.db*"):
        path.unlink()


def _not_set_up(rehearsals: Rehearsals) -> None:
    place: Place = rehearsals.place
    place.git("rm", "--quiet", "windlass.toml")
    place.git("commit", "--quiet", "--message", "Not set up yet")


SCENES: tuple[Scene, ...] = (
    Scene(command="land", argv=("land", PLAN_ID), begins="done"),
    Scene(
        command="land",
        about="the branch has moved",
        argv=("land", PLAN_ID),
        begins="done",
        arrange=_committed,
    ),
    Scene(
        command="land",
        about="not checked out",
        argv=("land", PLAN_ID),
        begins="done",
        arrange=_switched,
    ),
    Scene(
        command="land",
        about="filters, sparse",
        argv=("land", PLAN_ID),
        begins="done",
        arrange=_filtered,
    ),
    Scene(
        command="land",
        about="squashed",
        argv=("land", PLAN_ID, "--squash"),
        begins="done",
    ),
    Scene(
        command="land",
        about="squashed, moved",
        argv=("land", PLAN_ID, "--squash"),
        begins="done",
        arrange=_committed,
    ),
    # There is no program that opens pull requests, so that step is left to the user.
    Scene(
        command="pr",
        argv=("pr", PLAN_ID),
        begins="done",
        arrange=_with_remote,
        code=Exit.NEEDS_HUMAN,
    ),
    Scene(
        command="pr",
        about="squashed",
        argv=("pr", PLAN_ID, "--squash"),
        begins="done",
        arrange=_with_remote,
        code=Exit.NEEDS_HUMAN,
    ),
    Scene(command="take", argv=("take", _TASK), begins="unfinished"),
    Scene(command="give", argv=("give", _TASK), begins="unfinished", arrange=_taken),
    Scene(command="reset", argv=("reset", _TASK), begins="unfinished"),
    Scene(command="retry", argv=("retry", _TASK), begins="unfinished"),
    Scene(
        command="clean",
        argv=("clean", "--yes"),
        begins="unfinished",
        arrange=_aborted,
    ),
    Scene(
        command="clean",
        about="pins",
        argv=("clean", "--pins", "--yes"),
        begins="done",
        arrange=_landed,
    ),
    Scene(
        command="adopt",
        argv=("adopt", "old_state.json", "--plan", PLAN, "--yes"),
        begins="new",
        arrange=_claimed,
    ),
    Scene(
        command="recover",
        argv=("recover", PLAN_ID),
        begins="done",
        arrange=_journal_lost,
        rebuilds=True,
    ),
    Scene(command="abort", argv=("abort", PLAN_ID, "--yes"), begins="unfinished"),
    Scene(command="init", argv=("init", "--yes"), begins="new", arrange=_not_set_up),
)

COMMANDS = tuple(dict.fromkeys(scene.command for scene in SCENES))
"""Every command that is swept."""
