"""The user's repository, asked through their own git; nothing in it is changed."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from windlass.adapters.git import inspect
from windlass.adapters.git.inspect import Base
from windlass.adapters.git.inspect import changes as changes_between
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.store import Origin
from windlass.core.state import RunState
from windlass.errors import WindlassError
from windlass.ports import Changes
from windlass.views.steps import Ground


class UserRepository:
    """What git says about the user's branches, commits and checkout."""

    def __init__(
        self,
        git: inspect.UserGit,
        origin: Origin,
        own_files: Callable[[str | None], tuple[str, ...]],
    ) -> None:
        """`own_files` says which paths of the checkout Windlass itself writes for a plan."""
        self._git = git
        self._origin = origin
        self._own_files = own_files

    def ask(self, *args: str) -> str:
        """Ask the user's git something that only reads."""
        return self._git.ask(*args).stdout

    def person(self) -> str:
        """The name of the person at work here, as git knows it."""
        return inspect.identity(self._git)["GIT_AUTHOR_NAME"]

    def base(self, wanted: str | None, plan_id: str | None = None) -> Base:
        """The commit a new run would work from."""
        return inspect.base(self._git, wanted, self._own_files(plan_id))

    def reminders(self, base: str, plan_id: str) -> list[str]:
        """What a person should know who goes on with a run that began from that commit."""
        return inspect.reminders(self._git, base, self._own_files(plan_id))

    def refuse_own_tracked(self) -> None:
        """Raise where the checkout itself brings a .windlass folder with commands and records."""
        inspect.refuse_own_tracked(self._git)

    def why_not_in(self, base: Base, commit: str) -> str | None:
        """Why the base does not hold a commit, or None where it does."""
        return inspect.why_not_in(self._git, base.commit, commit)

    def stands(self, branch: str) -> str | None:
        """Where one of the user's branches stands; None where there is none of that name."""
        return inspect.branch_stands(self._git, branch)

    def ground(self, state: RunState) -> Ground | None:
        """Where the branch stands now that the run began from; None where there is none to ask."""
        if state.base_branch is None:
            return None
        with suppress(WindlassError):
            now = self.stands(state.base_branch)
            holds = now is not None and inspect.why_not_in(self._git, now, state.tip) is None
            return Ground(commit=now, holds_tip=holds, has_remote=self.has_remote())
        return None

    def tip(self, state: RunState) -> str:
        """The ref that holds all that the run has merged, whatever other runs come after it."""
        return Refs(state.plan.id, state.run).tip

    def has_remote(self) -> bool:
        """Whether there is any place to push to."""
        return bool(self.ask("remote").strip())

    def full_name(self, commit: str) -> str:
        """The whole hash of a commit that is there."""
        return inspect.full_name(self._git, commit)

    def changes(self, pairs: Iterable[tuple[str, str]]) -> Changes:
        """How much differs between pairs of commits."""
        return changes_between(self._git, pairs)

    def identity(self) -> str:
        """Whose name commits carry; raises where git does not know."""
        known = inspect.identity(self._git)
        return f"{known['GIT_AUTHOR_NAME']} <{known['GIT_AUTHOR_EMAIL']}>"

    def locks(self) -> list[Path]:
        """Lock files in the git directory: a git is at work there, or died at it."""
        return sorted(self._origin.git_dir.glob("*.lock"))
