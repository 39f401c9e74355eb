"""The user's remotes and their `gh`, for the use case `pull_request`."""

from pathlib import Path

from windlass.adapters.files import make_folder, write_durably
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.pull_requests import (
    GitHub,
    Publisher,
    PullRequest,
    Remote,
    Words,
    create_command,
)
from windlass.app.wiring.project import Project
from windlass.core.state import RunState
from windlass.views.pull_request import is_github

__all__ = [
    "GitHub",
    "Publisher",
    "PullRequest",
    "Remote",
    "Words",
    "create_command",
    "find_github",
    "open_publisher",
    "refs_of",
    "write_body",
]

FILE = "pull-request.md"


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
