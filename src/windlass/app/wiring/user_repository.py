"""Reads the user's repository with their own git; changes nothing in it."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from windlass.adapters.git import inspect
from windlass.adapters.git.inspect import Base, patch_texts
from windlass.adapters.git.inspect import changes as changes_between
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.squash import landed_part
from windlass.adapters.git.store import Origin
from windlass.app.wiring.configuration import FILE as SETTINGS_FILE
from windlass.core.state import RunState
from windlass.errors import WindlassError
from windlass.ports import Changes, Patches
from windlass.views.steps import Ground


class UserRepository:
    """Reads the user's branches, commits and checkout."""

    def __init__(
        self,
        git: inspect.UserGit,
        origin: Origin,
        own_files: Callable[[str | None], tuple[str, ...]],
    ) -> None:
        """`own_files` returns the paths of the checkout that Windlass writes for a plan."""
        self._git = git
        self._origin = origin
        self._own_files = own_files

    def ask(self, *args: str) -> str:
        """Run a git command that only reads; return its output."""
        return self._git.ask(*args).stdout

    def person(self) -> str:
        """The name of the user, as git knows it."""
        return inspect.identity(self._git)["GIT_AUTHOR_NAME"]

    def base(
        self, wanted: str | None, plan_id: str | None = None, read: tuple[str, ...] = ()
    ) -> Base:
        """The commit a new run would work from; it reads the files `read` from the checkout."""
        return inspect.base(self._git, wanted, self._part_of_run(plan_id, read))

    def changed_on(self, branch: str | None, plan_id: str) -> list[str]:
        """Tracked files with uncommitted changes, if the branch is checked out here."""
        if branch is None or self.ask("branch", "--show-current").strip() != branch:
            return []
        return inspect.changed_files(self._git, self._own_files(plan_id))

    def reminders(self, base: str, plan_id: str, read: tuple[str, ...] = ()) -> list[str]:
        """Warnings for a person who resumes a run that began from that commit."""
        return inspect.reminders(self._git, base, self._part_of_run(plan_id, read))

    def _part_of_run(self, plan_id: str | None, read: tuple[str, ...]) -> tuple[str, ...]:
        """Files of the checkout that a run writes, or reads although they are not committed."""
        return (*self._own_files(plan_id), SETTINGS_FILE, *read)

    def refuse_own_tracked(self) -> None:
        """Raise if git tracks a .windlass folder, with commands and records."""
        inspect.refuse_own_tracked(self._git)

    def why_not_in(self, base: Base, commit: str) -> str | None:
        """Why the base does not contain a commit; None if it does."""
        return inspect.why_not_in(self._git, base.commit, commit)

    def branch_commit(self, branch: str) -> str | None:
        """The commit of one of the user's branches; None if there is no such branch."""
        return inspect.branch_commit(self._git, branch)

    def ground(self, state: RunState) -> Ground | None:
        """The current state of the branch that the run began from; None if there is none."""
        if state.base_branch is None:
            return None
        with suppress(WindlassError):
            now = self.branch_commit(state.base_branch)
            holds = now is not None and self.has_all(state, now)
            return Ground(commit=now, holds_tip=holds, has_remote=self.has_remote())
        return None

    def has_all(self, state: RunState, commit: str) -> bool:
        """Whether a commit has all merged work of the run, as it is or squashed."""
        if inspect.why_not_in(self._git, commit, state.tip) is None:
            return True
        return landed_part(self._git.ask, state.base, state.tip, commit).is_all

    def has_signature(self, commit: str) -> bool:
        """Whether a commit carries a signature, of any key."""
        headers = self.ask("cat-file", "commit", commit).partition("\n\n")[0]
        return any(line.startswith("gpgsig") for line in headers.split("\n"))

    def tip(self, state: RunState) -> str:
        """The ref of the run's tip; later runs do not move it."""
        return Refs(state.plan.id, state.run).tip

    def has_remote(self) -> bool:
        """Whether there is a remote to push to."""
        return bool(self.ask("remote").strip())

    def full_name(self, commit: str) -> str:
        """The full hash of a commit."""
        return inspect.full_name(self._git, commit)

    def changes(self, pairs: Iterable[tuple[str, str]]) -> Changes:
        """The sizes of the differences between pairs of commits."""
        return changes_between(self._git, pairs)

    def patches(self, changes: Changes) -> Patches:
        """The patches of these differences; of large ones a part."""
        return patch_texts(self._git, changes)

    def identity(self) -> str:
        """The author for new commits, with address; raises if git knows none."""
        known = inspect.identity(self._git)
        return f"{known['GIT_AUTHOR_NAME']} <{known['GIT_AUTHOR_EMAIL']}>"

    def locks(self) -> list[Path]:
        """Lock files in the git directory: a git is running there, or died there."""
        return sorted(self._origin.git_dir.glob("*.lock"))
