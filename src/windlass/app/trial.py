"""Try the setup and the checks of a project once, before any run depends on them."""

from collections.abc import Callable
from typing import Literal

import anyio
from msgspec import Struct

from windlass.app.wiring import Project
from windlass.app.wiring.trial import open_trial
from windlass.core.events.model import CheckResult
from windlass.core.events.values import Outcome
from windlass.core.settings import Settings
from windlass.errors import BadInput, NoWalls, WindlassError

Kind = Literal["setup", "check"]


class Tried(Struct, frozen=True, kw_only=True):
    """One command, and what became of it."""

    kind: Kind
    result: CheckResult

    @property
    def works(self) -> bool:
        """Whether it succeeded; setup may run no tests."""
        return self.result.outcome is Outcome.PASS or (
            self.kind == "setup" and self.result.exit_code == 0
        )


class Attempt(Struct, frozen=True, kw_only=True):
    """All commands that were tried, in order."""

    commit: str
    tried: tuple[Tried, ...]
    untried: tuple[str, ...] = ()
    """Checks that were not tried, because setup failed."""
    reached: tuple[str, ...] = ()
    """Public hosts that setup reached."""
    refused: tuple[str, ...] = ()
    """Hosts that a command asked for and did not reach."""

    @property
    def works(self) -> bool:
        return bool(self.tried) and not self.untried and all(each.works for each in self.tried)


class Watch(Struct, frozen=True, kw_only=True):
    """What is told while commands are tried."""

    begins: Callable[[str, str], None] = lambda _commit, _level: None
    """With the commit and the sandbox's level."""
    starts: Callable[[Kind, str], None] = lambda _kind, _command: None
    ends: Callable[[Tried], None] = lambda _tried: None


def attempt(project: Project, settings: Settings, watch: Watch) -> Attempt:
    """Run setup and then each check on a throwaway checkout of HEAD, in the sandbox."""
    try:
        commit = project.git.ask("rev-parse", "--verify", "HEAD^{commit}").strip()
    except WindlassError as error:
        cure = "commit the project's files first"
        raise BadInput("there is no commit to try the commands on", hint=cure) from error
    try:
        return anyio.run(_attempt, project, settings, commit, watch)
    except NoWalls as error:
        cure = "try the commands yourself in a fresh clone; `windlass doctor` has the details"
        raise NoWalls(error.message, hint=cure) from error


async def _attempt(project: Project, settings: Settings, commit: str, watch: Watch) -> Attempt:
    tried: list[Tried] = []

    def begins(level: str) -> None:
        watch.begins(commit, level)

    async with open_trial(project, settings, commit, begins) as trial:
        for command in settings.workspace.setup:
            watch.starts("setup", command)
            tried.append(Tried(kind="setup", result=await trial.set_up(command)))
            watch.ends(tried[-1])
            if not tried[-1].works:
                break
        ready = all(each.works for each in tried)
        for command in settings.checks if ready else ():
            watch.starts("check", command)
            tried.append(Tried(kind="check", result=await trial.check(command)))
            watch.ends(tried[-1])
        return Attempt(
            commit=commit,
            tried=tuple(tried),
            untried=() if ready else settings.checks,
            reached=tuple(trial.reached),
            refused=tuple(trial.refused),
        )
