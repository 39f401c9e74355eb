"""Without walls a trespass cannot be prevented, but it is noticed, and nothing else is."""

from collections.abc import Callable, Sequence
from pathlib import Path, PurePath

import pytest

from repositories import Run, User, write
from windlass.adapters.checks.runner import CommandChecks
from windlass.adapters.files import write_durably
from windlass.adapters.sandbox.guard import Guard, GuardedAgent, GuardedChecks
from windlass.core.events.model import CheckResult, Outcome
from windlass.errors import Trespass
from windlass.ports import Brief, Report, Watch

pytestmark = pytest.mark.anyio

OWN = (".windlass/", "state/p_state.json")
BASE = {"README": "hello\n", "src/a": "a\n", ".gitignore": "*.log\n"}


class Deed:
    """Checks and an agent that do one thing."""

    def __init__(self, deed: Callable[[], object]) -> None:
        self.deed = deed

    async def run(self, commit: str, commands: Sequence[str], log: str) -> tuple[CheckResult, ...]:
        del commit, commands, log
        self.deed()
        return ()

    async def work(self, brief: Brief, workspace: PurePath, watch: Watch) -> Report:
        del brief, workspace, watch
        self.deed()
        return Report(summary="done")


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    made.write({"dirty": "d\n", "src/a": "dirty\n"})
    return made


async def watched(user: User, deed: Callable[[], object]) -> None:
    guard = Guard(Run(user).origin, OWN)
    await GuardedChecks(Deed(deed), guard).run("", (), "1.1-1")


TRESPASSES: dict[str, Callable[[User], object]] = {
    "files: a new file": lambda user: user.write({"new": "n\n"}),
    "files: a new file in a new folder": lambda user: user.write({"deep/new": "n\n"}),
    "files: a tracked file": lambda user: user.write({"README": "changed\n"}),
    "files: a file that was changed before": lambda user: user.write({"src/a": "again!\n"}),
    "files: an untracked file": lambda user: user.write({"dirty": "other\n"}),
    "files: a removed file": lambda user: user.write({"README": None}),
    "files: a mode": lambda user: (user.repo / "README").chmod(0o755),
    "files: the index": lambda user: user.git("add", "dirty"),
    "refs: a branch": lambda user: user.git("branch", "new"),
    "refs: a tag": lambda user: user.git("tag", "new"),
    "refs, files: a commit": lambda user: user.git("commit", "-q", "-a", "-m", "x"),
    "files, HEAD: another branch": lambda user: user.git("symbolic-ref", "HEAD", "refs/heads/x"),
    "config: a setting": lambda user: user.git("config", "core.pager", "evil"),
    "refs, files, hooks, HEAD, config: all of it": lambda user: (user.repo / ".git").rename(
        user.repo / "away"
    ),
    "hooks: a hook": lambda user: write(user.repo / ".git/hooks", {"pre-commit": "evil\n"}),
    "info/attributes: one": lambda user: write(user.repo / ".git/info", {"attributes": "* x\n"}),
    "objects/info/alternates: one": lambda user: write(
        user.repo / ".git/objects/info", {"alternates": "/nowhere\n"}
    ),
}

HARMLESS: dict[str, Callable[[User], object]] = {
    "nothing": lambda user: None,
    "the folder": lambda user: user.write({".windlass/plans/p/x": "x\n"}),
    "a projection": lambda user: user.write({"state/p_state.json": "{}\n"}),
    "a projection under way": lambda user: user.write({"state/.windlass-0a1b.tmp": "{"}),
    "a pin": lambda user: user.git("update-ref", "refs/windlass/p/r1/tip", "HEAD"),
    "the branch": lambda user: user.git("branch", "windlass/p/integration"),
    "a look": lambda user: user.git("status"),
}


@pytest.mark.parametrize("name", TRESPASSES)
async def test_a_trespass_is_noticed(user: User, name: str):
    with pytest.raises(Trespass) as caught:
        await watched(user, lambda: TRESPASSES[name](user))
    what = name.partition(":")[0]
    assert caught.value.message.startswith(what)
    assert caught.value.message.endswith("of project changed while the checks of 1.1-1 ran")
    assert caught.value.hint


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_windlass_writes_itself_is_none(user: User, name: str):
    await watched(user, lambda: HARMLESS[name](user))


async def test_an_agent_is_watched_as_checks_are(user: User):
    guard = Guard(Run(user).origin, OWN)
    brief = Brief(task="1.1", n=1, role="player", prompt="", model="")
    report = await GuardedAgent(Deed(lambda: None), guard).work(brief, user.repo, print)
    assert report.summary == "done"
    with pytest.raises(Trespass, match=r"while the Player of 1\.1 ran"):
        await GuardedAgent(Deed(lambda: user.write({"new": "n\n"})), guard).work(
            brief, user.repo, print
        )


@pytest.mark.parametrize(("role", "who"), [("player", "the Player"), ("coach", "the Coach")])
async def test_a_trespass_is_blamed_on_the_agent_that_ran(user: User, role: str, who: str):  # B16
    guard = Guard(Run(user).origin, OWN)
    agent = GuardedAgent(Deed(lambda: user.write({"new": "n\n"})), guard)
    brief = Brief(task="1.1", n=1, role=role, prompt="", model="")  # pyright: ignore[reportArgumentType]
    with pytest.raises(Trespass, match=f"changed while {who} of 1.1 ran"):
        await agent.work(brief, PurePath(), lambda _: None)


async def test_real_checks_at_level_checkout(user: User, tmp_path: Path):
    run = await Run(user).open()
    checks = GuardedChecks(
        CommandChecks(
            run.repository.throwaways,
            run.sandbox,
            timeout=30,
            network=False,
            logs=tmp_path / "logs",
        ),
        Guard(run.origin, OWN),
    )
    commit = (await run.play("1.1", {"new": "n\n"})).commit
    [passed] = await checks.run(commit, ("cat new; touch made",), "1.1-1")
    assert passed.outcome is Outcome.PASS
    with pytest.raises(Trespass):
        await checks.run(commit, (f"touch {user.repo}/trespass",), "1.1-1")


async def test_a_projection_written_while_it_looks_is_none(user: User):
    """It is written beside its place and renamed; no moment of that is a trespass."""
    for text in ("{}\n", '{"more": 1}\n'):
        (user.repo / "state").mkdir(exist_ok=True)
        await watched(user, lambda text=text: write_durably(user.repo / "state/p_state.json", text))
