"""`pull_request`: push a run's branch with the user's git, and open its pull request with `gh`.

Law: everything that can be refused is refused before anything is pushed, and a second call finds
the pull request of the first. The journal records none of this: the remote and the forge know how
things stand.
"""

import shlex
from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from windlass.app.acceptance import refuse_stale
from windlass.app.consent import agree
from windlass.app.person import Person
from windlass.app.plans import last_run, plan_to_land
from windlass.app.wiring import Project
from windlass.app.wiring.publishing import (
    GitHub,
    Publisher,
    PullRequest,
    Pushed,
    Remote,
    Words,
    create_command,
    find_github,
    open_publisher,
    refs_of,
    squash,
    write_body,
)
from windlass.core.events.model import RunEnd
from windlass.core.state import RunState
from windlass.errors import BadInput, RepositoryError
from windlass.views.consequences import publishing
from windlass.views.outcome import run_status
from windlass.views.progress import integration_branch, landed_at
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

Notice = Callable[[str], None]


class PullRequestRequest(Struct, frozen=True, kw_only=True):
    """Which run to publish, and how."""

    plan: str | None = None
    """None: the only run here with something to land."""
    base: str | None = None
    """The branch to merge into; None: the branch that the run began from."""
    remote: str | None = None
    """None: the remote that `git push` would use."""
    title: str | None = None
    draft: bool = False
    squash: bool = False
    """Whether to push one commit for each task, and no merges."""
    by_agent: bool = False
    """Whether an agent writes the title and a summary, on the run's budget."""
    attended: bool = False
    """Whether a person is there to answer a login prompt."""
    confirmed: bool = False
    """Do not ask before the branch is pushed."""


class PullRequestResult(Struct, frozen=True, kw_only=True):
    """What was pushed, and the pull request."""

    remote: str
    branch: str
    tip: str
    pushed: bool
    """False if the remote had the tip already."""
    url: str = ""
    """Empty if a person has to open the pull request."""
    updated: bool = False
    """Whether the pull request was open already."""
    notes: tuple[str, ...] = ()
    by_hand: tuple[str, ...] = ()
    """The steps that are left to a person."""


class PullRequestPreview(Struct, frozen=True, kw_only=True):
    """What a pull request would say."""

    branch: str
    tip: str
    base: str | None
    """None if the run began from no branch and the request names none."""
    title: str
    body: str


class _Route(Struct, frozen=True, kw_only=True):
    """From which branch of which remote into which branch."""

    remote: Remote
    """Has the head."""
    home: Remote
    """Has the base; another remote than the head's if that is a fork."""
    base: str
    head: str

    @property
    def repo(self) -> str:
        """The name of the base's repository for gh; empty: gh finds it itself."""
        return f"{self.home.place.host}/{self.home.place.path}" if self.home.place.host else ""

    @property
    def named_head(self) -> str:
        """The head as the base's repository names it: with its owner if it is in a fork."""
        fork = self.remote.place != self.home.place and self.remote.place.owner
        return f"{self.remote.place.owner}:{self.head}" if fork else self.head


def pull_request(
    project: Project,
    request: PullRequestRequest,
    *,
    person: Person | None = None,
    notice: Notice = lambda _text: None,
) -> PullRequestResult:
    """Push the branch of a plan's last run, and open its pull request or update the open one.

    `notice` hears why an agent wrote no usable text.
    """
    state = _find_run(project, request)
    _refuse_unready(state, draft=request.draft)
    act = publishing(state, request.base or state.base_branch)
    agree(act, confirmed=request.confirmed, person=person, by_name=True)
    return publish(project, state, request, notice=notice)


def preview(project: Project, request: PullRequestRequest) -> PullRequestPreview:
    """Write the title and the text of a pull request, and push nothing."""
    state = _find_run(project, request)
    _refuse_unready(state, draft=request.draft)
    return PullRequestPreview(
        branch=integration_branch(state),
        tip=state.tip,
        base=request.base or state.base_branch,
        title=_title(project, state, request),
        body=project.redactor.text(body_of(state)),
    )


def is_publishable(state: RunState) -> bool:
    """Whether a run that has just ended can become a pull request."""
    return state.ended is RunEnd.COMPLETED and state.merges > 0


def is_worth_offering(project: Project, state: RunState) -> bool:
    """Whether to ask a person for it: not if the work has landed, or there is no remote."""
    return is_publishable(state) and landed_at(state) is None and project.git.has_remote()


def publish(
    project: Project,
    state: RunState,
    request: PullRequestRequest,
    *,
    notice: Notice = lambda _text: None,
) -> PullRequestResult:
    """Do the same for a run that the caller has at hand."""
    _refuse_unready(state, draft=request.draft)
    publisher = open_publisher(project, attended=request.attended)
    route = _find_route(publisher, state, request)
    base, notes = _refuse_pointless(project, publisher, route, state)
    github = find_github(project, route.home.place.host)
    # Before anything is pushed: this call shows whether gh works here.
    found = _find_open(github, route) if github is not None else None
    # Last of all that can fail before the push, because it costs money.
    draft = _write_draft(project, state, notice) if request.by_agent else None
    pushed_before = publisher.look(route.remote, route.head)
    pushing = squash(project, state, base) if request.squash else Pushed(commit=state.tip)
    pushed = publisher.push(route.remote, refs_of(state), pushing.commit, pushed_before)
    words = _words(project, state, request, draft, found, pushing.squashed)
    result = PullRequestResult(
        remote=route.remote.name, branch=route.head, tip=pushing.commit, pushed=pushed, notes=notes
    )
    if github is None:
        return replace(result, by_hand=_manual_steps(route, words, draft=request.draft))
    if found is None:
        return _open(github, route, words, request, result)
    return _update(github, route, words, request, found, result)


def _find_run(project: Project, request: PullRequestRequest) -> RunState:
    if request.title is not None and not request.title.strip():
        raise BadInput("the title is empty", hint="leave out --title to use the plan's")
    state = last_run(project, plan_to_land(project, request.plan))
    if not request.draft:
        refuse_stale(project, state, "no pull request is opened")
    return state


def _refuse_unready(state: RunState, *, draft: bool) -> None:
    """Raise if nothing is merged, or if the run is incomplete and no draft was asked for."""
    plan = state.plan.id
    if not state.merges:
        raise BadInput(f"nothing of {plan!r} is merged yet", hint=f"windlass status {plan}")
    if state.ended is not RunEnd.COMPLETED and not draft:
        done = f"{len(state.done)} of {plural(len(state.tasks), 'task')} merged"
        raise BadInput(
            f"the run of {plan!r} is {run_status(state)}, with {done}",
            hint=f"complete it, or open a draft: windlass pr {plan} --draft",
        )


def _find_route(publisher: Publisher, state: RunState, request: PullRequestRequest) -> _Route:
    branch = request.base or state.base_branch
    if branch is None:
        raise BadInput(
            "the run began from a commit without a branch",
            hint="name the branch to merge into: --base BRANCH",
        )
    remote = publisher.remote(request.remote or publisher.default_remote(branch))
    home = publisher.remote(publisher.upstream_remote(branch, remote.name))
    base = publisher.upstream_branch(home.name, branch)
    return _Route(remote=remote, home=home, base=base, head=integration_branch(state))


def _refuse_pointless(
    project: Project, publisher: Publisher, route: _Route, state: RunState
) -> tuple[str, tuple[str, ...]]:
    """Raise if the base is missing or has all of it already.

    Returns the newest commit of the base that is known here, and notes for the person.
    """
    if publisher.holds(state.tip, state.tip) is None:
        raise RepositoryError(
            f"git has lost the commit {state.tip[:10]}", hint="run `windlass doctor`"
        )
    base, home = route.base, route.home.name
    commit = publisher.look(route.home, base)
    if commit is None:
        raise RepositoryError(
            f"{home} has no branch {base!r} to merge into",
            hint=f"push it: git push {home} {base}; or name another: --base BRANCH",
        )
    if publisher.holds(commit, commit) is None:
        return state.base, ()
    if project.git.has_all(state, commit):
        raise BadInput(f"{base} on {home} has all of it already")
    if publisher.holds(commit, state.base) is False:
        missing = f"{base} on {home} lacks commits that the run began from"
        cure = f"to push them: git push {home} {base}"
        return commit, (f"{missing}, so the pull request shows them too; {cure}",)
    return commit, ()


def _find_open(github: GitHub, route: _Route) -> PullRequest | None:
    """The open pull request from this branch into this base."""
    found = github.open_pull_requests(route.head, repo=route.repo, owner=route.remote.place.owner)
    return next((each for each in found if each.base in {None, route.base}), None)


def _write_draft(project: Project, state: RunState, notice: Notice) -> Draft | None:
    from windlass.app.wiring.drafting import write_draft  # slow to import, and rarely needed

    return write_draft(project, state.plan.id, notice)


def _words(
    project: Project,
    state: RunState,
    request: PullRequestRequest,
    draft: Draft | None,
    found: PullRequest | None,
    squashed: Mapping[str, str],
) -> Words:
    summary = summary_of(draft) if draft is not None else ""
    if found is None or found.body is None:
        body = body_of(state, summary=summary, squashed=squashed)
    else:
        body = fitted_into(found.body, state, summary=summary, squashed=squashed)
    title = _title(project, state, request, draft)
    return Words(title=title, body=write_body(project, state, body))


def _title(
    project: Project, state: RunState, request: PullRequestRequest, draft: Draft | None = None
) -> str:
    """The requested title, else the agent's, else the plan's."""
    return project.redactor.text(request.title or title_of(state, draft))


def _open(
    github: GitHub,
    route: _Route,
    words: Words,
    request: PullRequestRequest,
    result: PullRequestResult,
) -> PullRequestResult:
    try:
        url = github.create(
            words, repo=route.repo, head=route.named_head, base=route.base, draft=request.draft
        )
    except RepositoryError as error:
        # Another call may have been quicker, or the answer to our own first try was lost.
        found = _find_open(github, route)
        if found is None:
            raise RepositoryError(
                f"{route.head} was pushed to {route.remote.name}, but no pull request was opened:"
                f" {error.message}",
                hint="fix that and run `windlass pr` again",
            ) from error
        return _update(github, route, words, request, found, result)
    return replace(result, url=url)


def _update(
    github: GitHub,
    route: _Route,
    words: Words,
    request: PullRequestRequest,
    found: PullRequest,
    result: PullRequestResult,
) -> PullRequestResult:
    # A title that a person has changed stays, unless the request has another.
    kept = words if request.title or not found.title else replace(words, title=found.title)
    github.edit(found.number, kept, repo=route.repo)
    notes = result.notes
    if found.is_draft and not request.draft:
        notes = (*notes, f"it is still a draft: gh pr ready {found.number}")
    return replace(result, url=found.url or f"#{found.number}", updated=True, notes=notes)


def _manual_steps(route: _Route, words: Words, *, draft: bool) -> tuple[str, ...]:
    place = route.home.place
    target = Target(host=place.host, path=place.path, base=route.base, head=route.named_head)
    page = (f"open {url}",) if place.host and (url := new_page(target)) else ()
    if place.host and not is_github(place.host):
        step = f"open a merge request of {route.named_head} into {route.base} there"
        body = shlex.quote(str(words.body))
        return (*(page or (step,)), f"use the title {words.title!r} and the text in {body}")
    arguments = create_command(
        words, repo=route.repo, head=route.named_head, base=route.base, draft=draft
    )
    return (f"install gh, then: {shlex.join(('gh', *arguments))}", *page)
