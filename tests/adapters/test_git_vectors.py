"""Every git call Windlass makes, in a workspace that is one trap: nothing of it is ever executed.

The calls are those of a whole run, with a conflict, a restart, setup, a Coach, and the commands
that only look; that no call of the source is missing is proven, too. Each trap is shown to work
first, on a plain git.
"""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import anyio
import pytest

from git_vectors import NESTED, SWAPPED, USERS, VECTORS, Planter, attackers_repository
from quick import quick_run
from repositories import Run, User
from windlass.adapters.git import inspect
from windlass.adapters.git.landing import Branches
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.publishing import Publisher
from windlass.adapters.git.remains import remains_of
from windlass.adapters.guard import Guard
from windlass.cli.wiring import Project
from windlass.ports import Brief, Expected
from windlass.settings import SandboxSettings, Settings, WorkspaceSettings
from windlass.testing.agents import Play, ScriptedAgent, approval

SOURCE = Path(inspect.__file__).parents[2]
PLAN = """\
# Milestone: Traps

## Task a: One

**Depends on:** none

## Task b: Two

**Depends on:** none
"""
SETTINGS = Settings(
    checks=("test -e README",),
    agents=2,
    sandbox=SandboxSettings(level="checkout"),
    workspace=WorkspaceSettings(setup=("mkdir -p made && echo 1 > made/it",)),
)

TOGETHER = {name for name in VECTORS if name not in SWAPPED | NESTED | USERS} - {
    "gpg by ssh",  # the last word in a configuration counts, and would be this one's
    "includeIf",
    "diff driver",
}
GROUPS = {
    "a whole configuration": tuple(sorted(TOGETHER)),
    "what is left of it": ("gpg by ssh", "includeIf", "diff driver"),
    "the user's own": tuple(sorted(USERS)),
    **{name: (name,) for name in sorted(SWAPPED | NESTED)},
}


class Story:
    """A user, traps, and everything Windlass does with them."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.user = User(root)
        self.user.commit({"README": "hello\n", "src/a": "a\n", "plan.md": PLAN})
        self.planter = Planter(root, lambda c: attackers_repository(root, self.user.environment, c))
        self.log = root / "git.log"
        self.linked = root / "linked"
        self.user.git("worktree", "add", "-q", "--detach", str(self.linked), "main")
        self.user.git("init", "-q", "--bare", str(root / "there.git"), cwd=root)
        self.user.git("remote", "add", "there", str(root / "there.git"))
        shim = root / "bin/git"
        shim.parent.mkdir()
        real = shutil.which("git")
        shim.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {self.log}\nexec {real} "$@"\n')
        shim.chmod(0o755)
        # As some have it: with entries that mean another folder wherever one is.
        self.path = f".:node_modules/.bin:{shim.parent}:{os.environ['PATH']}"
        monkeypatch.setenv("PATH", self.path)

    def run(self, *names: str) -> None:
        """A run that is interrupted, meets a conflict, is reviewed, and whatever only looks."""
        self.planter.plant_in_user(self.user.repo, *names)
        starts = 0

        def play(brief: Brief, workspace: Path) -> Play:
            nonlocal starts
            starts += 1
            if brief.role == "coach":
                self.planter.plant(workspace, *names)
                (workspace / "README").write_text("the Coach's\n")
                return Play(answer=approval(brief.prompt))
            (workspace / "README").write_text(f"by {brief.task} at {brief.n}\n")
            (workspace / "node_modules/x/.git").mkdir(parents=True, exist_ok=True)
            self.planter.plant(workspace, *names)
            for nested in {
                Path(VECTORS[name].nested).parts[0] for name in names if VECTORS[name].nested
            }:
                # What cannot be committed is told, and mended by the next.
                if brief.n > 1:
                    shutil.rmtree(workspace / nested)
            if starts == 1:
                raise OSError("the power is gone")
            return Play()

        agent = ScriptedAgent({"coach a": play, "coach b": play}, default=play)
        self.planter.forget()
        with pytest.raises(OSError, match="power"):
            quick_run(self.user.repo, agent, settings=SETTINGS)
        state = quick_run(self.user.repo, agent, settings=SETTINGS)
        assert sorted(state.merged) == ["a", "b"], state.reason
        assert any(task.attempts[-1].onto for task in state.tasks.values()), "there was a conflict"
        self.look(state.tip, names)

    def look(self, tip: str, names: tuple[str, ...]) -> None:
        """Whatever else Windlass asks git, each as its source does."""
        environment = {**self.user.environment, "PATH": self.path}
        project = Project(self.user.repo, environment)
        project.base(None, "plan")
        base = project.base("main", "plan")
        assert project.why_not_in(base, tip)
        project.full_name(tip)
        project.listed()
        project.git("diff", "--no-ext-diff", "--no-textconv", base.commit, tip, "--")
        Project(self.linked, environment)
        self._publish(project, tip, names)
        anyio.run(self._rest, tip, names)

    def _publish(self, project: Project, tip: str, names: tuple[str, ...]) -> None:
        """As `windlass pr` does."""
        there = Publisher(project.user_git, project.origin, project.environment, attended=False)
        remote = there.remote(there.usual("main"))
        assert there.name_on(there.home_of("main", remote.name), "main") == "main"
        assert there.holds(tip, tip)
        if not USERS & set(names):
            # A push is the user's own git at their word, too.
            refs = Refs("plan", "any")
            assert there.push(remote, refs, tip, there.look(remote, "main"))
            assert there.look(remote, "windlass/plan/integration") == tip

    async def _rest(self, tip: str, names: tuple[str, ...]) -> None:
        run = await Run(self.user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        self.planter.plant(workspace, *names)
        index = run.folders.index("1.1")
        await remains_of(run.store, run.refs)
        wanted = Expected(merges={}, files={"absent.txt": "1.1"}, kept={})
        assert await run.repository.verify(tip, wanted) == ("1.1: absent.txt is not there",)
        await run.store.trees("clean", "-ffdxq", work_tree=workspace, index=index)
        await run.store.parents_of(run.base)
        asked = f"{tip}\n^{run.base}\n"
        await run.store.trees("rev-list", "--stdin", "--max-count=1", stdin=asked)
        await Guard(run.origin, (".windlass/",)).fingerprint()
        if not USERS & set(names):
            # Landing is the user's own git at their word, which runs what they know themselves.
            environment = {**self.user.environment, "PATH": self.path}
            await Branches(run.store, environment).move("main", run.base, tip)

    @property
    def verbs(self) -> set[str]:
        """The commands of git that were called."""
        return {_verb(line.split()) for line in self.log.read_text().splitlines()}


def _verb(words: list[str]) -> str:
    while words[0] in {"-c", "-C"}:
        words = words[2:]
    return words[0]


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    return Story(tmp_path, monkeypatch)


def test_there_are_enough():
    assert len(VECTORS) >= 30


@pytest.mark.parametrize("name", VECTORS)
def test_a_plain_git_falls_for_it(name: str, tmp_path: Path):
    """Else it would be no trap, and nothing that follows would prove anything."""
    user = User(tmp_path)
    user.commit({"README": "hello\n", "src/a": "a\n"})
    user.commit({"src/a": "b\n"})
    naive = tmp_path / "naive"
    user.git("clone", "-q", str(user.repo), str(naive), cwd=tmp_path)
    user.git("checkout", "-qb", "work", cwd=naive)
    (naive / "README").write_text("changed\n")
    planter = Planter(tmp_path, lambda c: attackers_repository(tmp_path, user.environment, c))
    planter.plant_in_user(naive, name)
    planter.plant(naive, name)
    planter.forget()
    done = subprocess.run(
        ["sh", "-c", VECTORS[name].falls],
        cwd=naive,
        env={**user.environment, "GIT_TERMINAL_PROMPT": "0"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=20,
    )
    assert planter.sprung, done.stderr.decode()


@pytest.mark.parametrize("group", GROUPS)
def test_windlass_falls_for_none(group: str, story: Story):  # B5 K0 G7
    story.run(*GROUPS[group])
    assert story.planter.sprung == []


@pytest.mark.sweep
@pytest.mark.parametrize("name", VECTORS)
def test_windlass_falls_for_none_by_itself(name: str, story: Story):  # B5 K0 G7
    story.run(name)
    assert story.planter.sprung == []


def test_the_groups_hold_every_vector():
    assert {name for names in GROUPS.values() for name in names} == set(VECTORS)


def test_no_call_of_the_source_is_left_out(story: Story):  # B5
    """Whoever adds a call must let the story make it, or this fails."""
    story.run("fsmonitor")
    assert _calls_of_the_source() - story.verbs == set()


def _calls_of_the_source() -> set[str]:
    """The commands that the source hands to git, wherever it does."""
    found: set[str] = set()
    for path in [*SOURCE.glob("adapters/**/*.py"), *SOURCE.glob("cli/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            # The repositories of the demo and of rehearsals are no user's.
            theirs = path.name != "demo.py" and "rehearsals" not in path.parts
            if isinstance(node, ast.Call) and theirs:
                found |= _called(node)
    assert {"add", "status", "merge-tree", "update-ref"} <= found, "it finds what is there"
    return found


def _called(call: ast.Call) -> set[str]:
    callee = call.func
    name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
    before = {"Staying": 1, "_look": 2}
    if name not in {"trees", "refs", "ask", "_git", "git", *before}:
        return set()
    words: list[str] = []
    for argument in call.args[before.get(name, 0) :]:
        inner = argument.value if isinstance(argument, ast.Starred) else argument
        parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
        words += [p.value if isinstance(p, ast.Constant) else "" for p in parts]
    return {_verb(words)} - {""} if words else set()
