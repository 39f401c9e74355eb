"""The user's remotes and their `gh`, for the use case `pull_request`."""

from collections.abc import Mapping
from pathlib import Path

import anyio
from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.files import make_folder, write_durably
from windlass.adapters.git import inspect
from windlass.adapters.git.commits import Commits, Merges
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.paths import excludes
from windlass.adapters.git.pull_requests import (
    GitHub,
    Publisher,
    PullRequest,
    Remote,
    Words,
    create_command,
    remove_stale_lock,
)
from windlass.adapters.git.signing import Signer
from windlass.adapters.git.squash import Squashes, landed_in
from windlass.adapters.git.store import Store
from windlass.app.wiring.project import Project
from windlass.app.wiring.signatures import git_settings, refuse_unsigned
from windlass.core.state import RunState
from windlass.errors import GitFailed, RepositoryError
from windlass.ports import Conflict
from windlass.views.pull_request import is_github

__all__ = [
    "GitHub",
    "Publisher",
    "PullRequest",
    "Pushed",
    "Remote",
    "Words",
    "create_command",
    "find_github",
    "open_publisher",
    "refs_of",
    "squash",
    "write_body",
]

FILE = "pull-request.md"


class Pushed(Struct, frozen=True, kw_only=True):
    """The commit to push for a run, and which commit stands for each merge if it is squashed."""

    commit: str
    squashed: Mapping[str, str] = {}


def squash(project: Project, state: RunState, base: str) -> Pushed:
    """Write one commit for each merge that the remote's base lacks, and pin the last.

    They stand on the commit that the run began from, so that the last has exactly the tip's files,
    unless the remote's base has a part of the work already.
    """
    settings = git_settings(project)
    refuse_unsigned(project, sign=settings.signs_landings)
    identity = inspect.identity(project.user_git)
    store = Store(replace(project.origin, identity=identity), project.folders(state.plan.id))
    commits = Commits(
        store, run=state.run, settings=settings, signer=Signer(project.user_git, identity)
    )
    squashes = Squashes(store, refs_of(state), Merges(store, commits), commits)

    # A pull request is made without the plan's lock, so only a lock that stays is a dead one's.
    for lock in (project.origin.git_dir / refs_of(state).root / "squash").glob("*.lock"):
        remove_stale_lock(lock)

    async def write() -> Pushed:
        store.open(excludes(keep=(), user=project.origin.excludes))
        part = await landed_in(store, state.base, state.tip, base)
        made = await squashes.build(state.base, state.tip, base if part.held else state.base)
        if isinstance(made, Conflict):
            raise RepositoryError(
                f"the merges of {state.plan.id!r} do not fit onto {base[:10]}: {made.detail}",
                hint="open it without --squash",
            )
        await store.settle()
        written = await landed_in(store, state.base, state.tip, made.commit)
        return Pushed(commit=made.commit, squashed=written.squashed)

    try:
        return anyio.run(write)
    except GitFailed as error:
        raise RepositoryError(error.message, hint=error.hint) from error
    finally:
        store.close()


def open_publisher(project: Project, *, attended: bool) -> Publisher:
    """Access to the user's remotes; `attended`: a person is there to answer a login prompt."""
    return Publisher(project.user_git, project.origin, project.environment, attended=attended)


def find_github(project: Project, host: str) -> GitHub | None:
    """The user's `gh`; None if there is none, or if it is not logged in at another host."""
    github = GitHub.found(project.root, project.environment)
    if github is not None and host and not is_github(host) and not github.is_logged_in(host):
        return None
    return github


def refs_of(state: RunState) -> Refs:
    return Refs(state.plan.id, state.run)


def write_body(project: Project, state: RunState, body: str) -> Path:
    """Write the text of a pull request into the folder of the run; a person finds it there too."""
    folder = project.folders(state.plan.id).run(state.run)
    make_folder(folder)
    # Plans are recorded as they are, and strangers read a pull request.
    write_durably(folder / FILE, project.redactor.text(body))
    return folder / FILE
