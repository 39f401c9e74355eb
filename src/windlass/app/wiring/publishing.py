"""From a run to a pull request: the branch pushed by the user's git, the rest by their gh.

Law: all that can be refused is refused before anything is pushed, and a second call finds what the
first one made. Nothing of this is in the journal: the remote and the forge say how they stand.
"""

import shlex
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.files import make_folder, write_durably
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.pull_requests import (
    GitHub,
    Publisher,
    PullRequest,
    Remote,
    Words,
    creating,
)
from windlass.app.wiring.project import Project
from windlass.core.events.model import RunEnd
from windlass.core.state import RunState
from windlass.errors import BadInput, RepositoryError
from windlass.views.outcome import run_status
from windlass.views.progress import integration_branch
from windlass.views.pull_request import (
    Draft,
    Target,
    body_of,
    fitted_into,
    is_github,
    new_page,
    summary_of,
    title_of,
)
from windlass.views.words import plural

FILE = "pull-request.md"


class Wanted(Struct, frozen=True, kw_only=True):
    """What the person asked for."""

    base: str | None = None
    remote: str | None = None
    title: str | None = None
    draft: bool = False
    attended: bool = False
    """Whether somebody sits there who could be asked for a login."""


class Published(Struct, frozen=True, kw_only=True):
    """What came of it."""

    remote: str
    branch: str
    tip: str
    pushed: bool
    """Whether the remote had not got it before."""
    url: str = ""
    """Empty where it is left to a person to open it."""
    updated: bool = False
    notes: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    """What is left to do, where no program of ours could."""


class _Way(Struct, frozen=True, kw_only=True):
    """From which branch of which remote into which."""

    remote: Remote
    home: Remote
    base: str
    head: str
    repo: str
    """How gh is to name the repository of the base; empty where it is to find that itself."""

    @property
    def named_head(self) -> str:
        """The head as the base's repository knows it: with its owner where that is a fork's."""
        fork = self.remote.place != self.home.place and self.remote.place.owner
        return f"{self.remote.place.owner}:{self.head}" if fork else self.head


def words(
    project: Project, state: RunState, wanted: Wanted, draft: Draft | None, there: str | None
) -> Words:
    """Title and body; the body in its file, where a person finds it as well."""
    summary = summary_of(draft) if draft is not None else ""
    if there is None:
        body = body_of(state, summary=summary)
    else:
        body = fitted_into(there, state, summary=summary)
    folder = project.folders(state.plan.id).run(state.run)
    make_folder(folder)
    # Plans are recorded as they are, and a pull request is read by strangers.
    write_durably(folder / FILE, project.redactor.text(body))
    return Words(title=title_for(project, state, wanted, draft), body=folder / FILE)


def title_for(project: Project, state: RunState, wanted: Wanted, draft: Draft | None = None) -> str:
    """The one that was asked for, as it is; else an agent's, or the plan's."""
    return project.redactor.text(wanted.title or title_of(state, draft))


def refuse_unready(state: RunState, *, draft: bool) -> None:
    """Raise where there is nothing to show, or not all of it and no draft was asked for."""
    plan = state.plan.id
    if not state.merges:
        raise BadInput(
            f"there is nothing to show: nothing of {plan!r} was merged",
            hint=f"windlass status {plan}",
        )
    if state.ended is not RunEnd.COMPLETED and not draft:
        done = f"{len(state.done)} of {plural(len(state.tasks), 'task')} merged"
        raise BadInput(
            f"the run of {plan!r} is {run_status(state)}, with {done}",
            hint=f"let it come to its end, or show what there is: windlass pr {plan} --draft",
        )


def publish(
    project: Project,
    state: RunState,
    wanted: Wanted,
    write: Callable[[], Draft | None] = lambda: None,
) -> Published:
    """Push the run's branch, and have its pull request say how the run stands.

    `write` is called once nothing speaks against it any more, for it may cost something.
    """
    refuse_unready(state, draft=wanted.draft)
    publisher = Publisher(
        project.user_git, project.origin, project.environment, attended=wanted.attended
    )
    way = _way(publisher, state, wanted)
    notes = _refuse_pointless(publisher, way, state)
    github = GitHub.found(project.root, project.environment)
    host = way.home.place.host
    if github is not None and host and not is_github(host) and not github.knows(host):
        github = None
    way = replace(way, repo=f"{host}/{way.home.place.path}" if host else "")
    # Before anything is pushed: whether gh works here shows in this.
    found = _found(github, way) if github is not None else None
    draft = write()
    refs = Refs(state.plan.id, state.run)
    stands = publisher.look(way.remote, way.head)
    pushed = publisher.push(way.remote, refs, state.tip, stands)
    said = words(project, state, wanted, draft, found.body if found is not None else None)
    result = Published(
        remote=way.remote.name, branch=way.head, tip=state.tip, pushed=pushed, notes=notes
    )
    if github is None:
        return replace(result, by_hand=_by_hand(way, said, draft=wanted.draft))
    if found is None:
        return _opened(github, way, said, wanted, result)
    return _edited(github, way, said, wanted, found, result)


def _way(publisher: Publisher, state: RunState, wanted: Wanted) -> _Way:
    branch = wanted.base or state.base_branch
    if branch is None:
        raise BadInput(
            "the run began from a commit that no branch stood at",
            hint="say what to merge into: --base BRANCH",
        )
    remote = publisher.remote(wanted.remote or publisher.usual(branch))
    home = publisher.remote(publisher.home_of(branch, remote.name))
    base = publisher.name_on(home.name, branch)
    return _Way(remote=remote, home=home, base=base, head=integration_branch(state), repo="")


def _refuse_pointless(publisher: Publisher, way: _Way, state: RunState) -> tuple[str, ...]:
    """Raise where the base is not there or has it all; what else a person should know."""
    if publisher.holds(state.tip, state.tip) is None:
        raise RepositoryError(
            f"git has no commit {state.tip[:10]} any more", hint="`windlass doctor` looks at it"
        )
    stands = publisher.look(way.home, way.base)
    if stands is None:
        raise RepositoryError(
            f"{way.home.name} has no branch {way.base!r} to merge into",
            hint=f"push it: git push {way.home.name} {way.base}; or name another: --base BRANCH",
        )
    if publisher.holds(stands, state.tip):
        raise BadInput(f"{way.base} on {way.home.name} has all of it already")
    if publisher.holds(stands, state.base) is False:
        told = f"{way.base} on {way.home.name} has not all that the run began from"
        cure = f"git push {way.home.name} {way.base} brings it there"
        return (f"{told}, and shows those commits as well; {cure}",)
    return ()


def _found(github: GitHub, way: _Way) -> PullRequest | None:
    """The one that is open from this branch into this base."""
    ones = github.open_ones(way.head, repo=way.repo, owner=way.remote.place.owner)
    return next((each for each in ones if each.base in {None, way.base}), None)


def _opened(github: GitHub, way: _Way, said: Words, wanted: Wanted, result: Published) -> Published:
    try:
        url = github.create(
            said, repo=way.repo, head=way.named_head, base=way.base, draft=wanted.draft
        )
    except RepositoryError as error:
        # Somebody may have been quicker, or the answer to our own first try was lost.
        found = _found(github, way)
        if found is None:
            raise RepositoryError(
                f"{way.head} was pushed to {way.remote.name}, and no pull request was opened:"
                f" {error.message}",
                hint="mend that and call `windlass pr` again",
            ) from error
        return _edited(github, way, said, wanted, found, result)
    return replace(result, url=url)


def _edited(
    github: GitHub,
    way: _Way,
    said: Words,
    wanted: Wanted,
    found: PullRequest,
    result: Published,
) -> Published:
    # A title that people have changed is theirs, unless another was asked for.
    kept = said if wanted.title or not found.title else replace(said, title=found.title)
    github.edit(found.number, kept, repo=way.repo)
    notes = result.notes
    if found.is_draft and not wanted.draft:
        notes = (*notes, f"it is still a draft: gh pr ready {found.number}")
    return replace(result, url=found.url or f"#{found.number}", updated=True, notes=notes)


def _by_hand(way: _Way, said: Words, *, draft: bool) -> tuple[str, ...]:
    place = way.home.place
    target = Target(host=place.host, path=place.path, base=way.base, head=way.named_head)
    page = (f"open {url}",) if place.host and (url := new_page(target)) else ()
    if place.host and not is_github(place.host):
        asked = f"open a merge request of {way.named_head} into {way.base} there"
        return (*(page or (asked,)), f"what to say: title {said.title!r}, text {_at(said.body)}")
    told = creating(said, repo=way.repo, head=way.named_head, base=way.base, draft=draft)
    return (f"install gh, then: {shlex.join(('gh', *told))}", *page)


def _at(path: Path) -> str:
    return shlex.quote(str(path))
