"""Every git call Windlass makes, in a workspace that is one trap: nothing of it is ever executed.

The calls are those of a whole run, with a conflict, a restart, setup, a Coach, a person's own
work, a landing, a clean-up, a journal lost, and the commands that only look; that no call of the
source is missing is proven, too. Each trap is shown to work first, on a plain git.
"""

import ast
import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from git_vectors import NESTED, SWAPPED, USERS, VECTORS, Planter, attackers_repository
from quick import ENVIRONMENT, quick_run
from repositories import Run, User
from windlass.adapters.git import inspect
from windlass.adapters.git.cleaning import Cleaning
from windlass.adapters.git.inspect import MOST_PATCHED
from windlass.adapters.git.landing import Branches, Move
from windlass.adapters.git.landing_record import Intent, LandingFolder, LandingTarget
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.mirror import copy_at_rest
from windlass.adapters.git.pull_requests import Publisher
from windlass.adapters.git.remains import remains_of
from windlass.adapters.git.signing import Signer
from windlass.adapters.sandbox.guard import Guard
from windlass.app.recover import RecoverRequest, recover
from windlass.app.wiring import Project
from windlass.app.wiring.recovering import plans_in_git, why_lost
from windlass.core.exchange import Expected
from windlass.core.settings import SandboxSettings, Settings, WorkspaceSettings
from windlass.errors import JournalDamaged, RepositoryError
from windlass.ports import Authorship, Brief, Snapshot
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


COMMANDS = set(
    subprocess.run(
        ["git", "--list-cmds=main"], capture_output=True, text=True, check=True
    ).stdout.split()
) - {"rm"}
"""All that git knows. Not `rm`, which is a program of the system's that Windlass calls, too."""
SHIM = """\
#!/bin/sh
printf '%s\\036' "$(printf '%s\\t' "$@")" >> {log}
exec {git} "$@"
"""
"""A git that writes down how it is called, in one piece, for several are called at once."""
REACHES = ("windlass.adapters.git", ".git(", ".git.ask(", "user_git")
"""How a module outside of adapters/git comes to git."""
ELSEWHERE = ("cli/demo.py", "selftest/", "testing/")
"""Modules that work only in repositories which they have made themselves."""


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
        shim.write_text(SHIM.format(log=self.log, git=real))
        shim.chmod(0o755)
        # As some have it: with entries that mean another folder wherever one is.
        self.path = f".:node_modules/.bin:{shim.parent}:{os.environ['PATH']}"
        monkeypatch.setenv("PATH", self.path)
        monkeypatch.setitem(ENVIRONMENT, "PATH", self.path)

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
                return Play(answer=approval(brief))
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
        project.git.base(None, "plan")
        base = project.git.base("main", "plan")
        assert project.git.why_not_in(base, tip)
        project.git.full_name(tip)
        project.files.listed()
        project.git.ask("diff", "--no-ext-diff", "--no-textconv", base.commit, tip, "--")
        project.git.ask(
            "diff", "--no-ext-diff", "--no-textconv", "--stat=120", base.commit, tip, "--"
        )
        changes = project.git.changes([(base.commit, tip)])
        assert project.git.patches(changes)[base.commit, tip].text
        large = tuple(replace(change, added=MOST_PATCHED) for change in changes[base.commit, tip])
        assert project.git.patches({(base.commit, tip): (*large, *changes[base.commit, tip])})
        assert not project.git.has_signature(tip)
        project.git.changed_on("main", "plan")
        # As `init --try` names the commit that it tries.
        project.git.ask("rev-parse", "--verify", "HEAD^{commit}")
        # As landing asks whether the plan's file is of another branch, and status for an older git.
        project.user_git.ask("merge-base", "--is-ancestor", base.commit, "HEAD", ok=(0, 1))
        project.git.ask("status", "--porcelain", "--", "plan.md")
        project.user_git.ask("cat-file", "--batch-check", stdin=f"{tip}\n")
        assert why_lost(project, "plan", plans_in_git(project)["plan"]) is None
        self._recover(project)
        Project(self.linked, environment)
        self.git("config", "remote.there.promisor", "true")
        project.git.base("main", "plan")
        project.git.refuse_own_tracked()
        self.git("config", "--unset", "remote.there.promisor")
        self._publish(project, tip, names)
        self._sign(project, names)
        anyio.run(self._rest, tip, names)
        anyio.run(self._give, names)
        anyio.run(self._clean, tip)

    def git(self, *args: str, cwd: Path | None = None) -> str:
        """The user's own git at their own hands, which falls for no trap here: they are not it."""
        safe = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        return self.user.git(*safe, *args, cwd=cwd)

    def _recover(self, project: Project) -> None:
        """As `windlass recover --dry-run` does, where git has lost a part of the mirror."""
        [run] = plans_in_git(project)["plan"]
        part = self.git("rev-parse", f"{Refs('plan', run).journal}~1")
        lost = self.user.repo / ".git/objects" / part[:2] / part[2:]
        aside = lost.rename(lost.with_name("aside"))
        request = RecoverRequest(plan="plan", dry_run=True)
        assert any("mirror is damaged" in note for note in recover(project, request).notes)
        aside.rename(lost)
        # As a command that records something does, where the journal is behind its mirror.
        refs, folders = Refs("plan", run), project.folders("plan")
        with pytest.raises(JournalDamaged, match="is behind"):
            copy_at_rest(project.origin, folders, refs, [], lambda: project.environment)

    def _publish(self, project: Project, tip: str, names: tuple[str, ...]) -> None:
        """As `windlass pr` does."""
        there = Publisher(project.user_git, project.origin, project.environment, attended=False)
        remote = there.remote(there.default_remote("main"))
        assert there.upstream_branch(there.upstream_remote("main", remote.name), "main") == "main"
        assert there.holds(tip, tip)
        if not USERS & set(names):
            # A push is the user's own git at their word, too.
            refs = Refs("plan", "any")
            assert there.push(remote, refs, tip, there.look(remote, "main"))
            assert there.look(remote, "windlass/plan/integration") == tip
            # Once more, when it stands at what an earlier push of the plan brought there.
            main = self.git("rev-parse", "main")
            assert there.push(remote, Refs("plan", "r1"), main, tip)
            # And when the push before was cut short: what is known of the remote is behind.
            self.git("update-ref", "refs/remotes/there/windlass/plan/integration", tip)
            assert not there.push(remote, Refs("plan", "r1"), main, main)

    def _sign(self, project: Project, names: tuple[str, ...]) -> None:
        """As `[git] sign` does: the user's own program at their word, which fails here."""
        inspect.signs_by_default(project.user_git)
        if not USERS & set(names):
            self.git("config", "gpg.program", "/bin/false")
            signer = Signer(project.user_git, inspect.identity(project.user_git))
            with pytest.raises(RepositoryError, match="no commit can be signed"):
                signer.try_out("sha1")

    async def _rest(self, tip: str, names: tuple[str, ...]) -> None:
        run = await Run(self.user).open()
        workspace = await run.repository.prepare("1.1", 1, run.base, None)
        self.planter.plant(workspace, *names)
        index = run.folders.index("1.1")
        await remains_of(run.store, Refs("plan", "r1"))
        await run.repository.keep("1.1", 1, "verdict-1", "well done")
        assert await run.repository.kept("1.1", 1, "verdict-1") == "well done"
        wanted = Expected(merges={"1.1": (tip, tip)}, files={"absent.txt": "1.1"}, kept={})
        assert await run.repository.verify(tip, wanted) == ("1.1: absent.txt is not there",)
        await run.store.trees("clean", "-ffdxq", work_tree=workspace, index=index)
        await run.store.parents_of(run.base)
        asked = f"{tip}\n^{run.base}\n"
        await run.store.trees("rev-list", "--stdin", "--max-count=1", stdin=asked)
        await Guard(run.origin, (".windlass/",)).fingerprint()
        # A commit whose parent no checkout was made of yet.
        first, second = (
            self.git("commit-tree", "-p", at, "-m", "far", f"{tip}^{{tree}}")
            for at in (run.base, "main")
        )
        far = self.git("commit-tree", "-p", first, "-p", second, "-m", "x", f"{tip}^{{tree}}")
        async with run.repository.throwaway(far, "far"):
            pass
        await self._show(run, tip)
        if not USERS & set(names):
            # Landing is the user's own git at their word, which runs what they know themselves.
            environment = {**self.user.environment, "PATH": self.path}
            branches = Branches(run.store, environment, _readme)
            await self._die_landing(run, tip)
            await branches.look("main", tip, run.base)
            await run.repository.squash(tip, run.base)
            (self.user.repo / "README").write_text("in the way\n")
            await branches.move("main", run.base, tip)
            self.git("update-ref", "refs/heads/nobodys", run.base)
            await branches.move("nobodys", run.base, tip)
            self.git("update-ref", "refs/heads/in-another-form", run.base)
            with self._other_form():
                await branches.move("in-another-form", run.base, tip)

    async def _die_landing(self, run: Run, tip: str) -> None:
        """A landing whose process dies when git has written the files: the next takes it back."""
        home = LandingFolder(run.origin.git_dir, run.origin.git_dir)
        environment = {**self.user.environment, "PATH": self.path}
        with open(os.devnull) as held:  # noqa: ASYNC230, PTH123  (a descriptor that git inherits)
            move = Move(LandingTarget(run.store, environment, home, self.user.repo, held.fileno()))
            line = f"{run.base} {tip} Ann User <ann@example.org> 1700000000 +0000\twindlass land"
            intent = Intent(
                ref="refs/heads/main", old=run.base, new=tip, line=line, logged=True, files=True
            )
            await move.prepare(intent)
            assert await move.refused() is None

    async def _show(self, run: Run, tip: str) -> None:
        """Somebody has moved the integration branch, or keeps refs in another form."""
        theirs = self.git("commit-tree", "-p", run.base, "-m", "theirs", f"{tip}^{{tree}}")
        self.git("update-ref", run.refs.integration, theirs)
        assert "moved by someone else" in await run.repository.move_tip(run.base, tip)
        with self._other_form():
            await run.store.in_use(run.refs.integration)

    @contextmanager
    def _other_form(self) -> Generator[None]:
        """The repository looks as if its refs were in a reftable, which git alone may move."""
        form = self.user.repo / ".git/reftable"
        form.mkdir()
        yield
        form.rmdir()

    async def _give(self, names: tuple[str, ...]) -> None:
        """A person has taken a task, has committed there, and gives it back with every trap."""
        run = await Run(self.user, run="r2").open()
        workspace = await run.repository.prepare("1.2", 1, run.base, None, by_person=True)
        assert isinstance(workspace, Path)
        mine = self.git("commit-tree", "-p", "HEAD", "-m", "mine", "HEAD^{tree}", cwd=workspace)
        (workspace / ".git/HEAD").write_text(f"{mine}\n")
        (workspace / "README").write_text("by hand\n")
        self.planter.plant(workspace, *names)
        author = Authorship(task="1.2", title="Two", n=1, turn=1, by_person=True)
        made = await run.repository.snapshot(author, "snapshot", (run.base,))
        if not (SWAPPED | NESTED) & set(names):  # else what they committed is out of reach
            assert isinstance(made, Snapshot), made
            assert await run.store.parents_of(made.commit) == (mine,)

    async def _clean(self, tip: str) -> None:
        """What that workspace still holds is looked at, pinned, and let go."""
        run = Run(self.user, run="r3")
        cleaning = Cleaning(run.store, max_file_bytes=1e6, keep=())
        folder = run.folders.workspace("1.2")
        (folder / "README").write_text("left\n")
        index = run.folders.index("1.2")
        # As setup asks for its inputs, and whoever looks whether a workspace still stands.
        await run.store.trees("ls-files", "-z", "--stage", "--", work_tree=folder, index=index)
        await run.store.trees("ls-tree", "-z", "--name-only", run.base)
        if not (await cleaning.look(folder, run.refs, run.base, index)).refused:
            await cleaning.save(folder, run.refs, "1.2", run.base, f"{run.refs.root}/kept/1.2/x")
        await cleaning.unpin(await cleaning.pins_in_branches(Refs("plan", "r1"), tip))
        await cleaning.remove(folder)
        await cleaning.close()

    def made(self, words: frozenset[str]) -> bool:
        """Whether git was called with all of these."""
        calls = self.log.read_text().split("\036")
        return any(words.issubset(call.split("\t")) for call in calls)


async def _readme(_checkout: Path, _commit: str) -> list[str]:
    """As if Windlass had written into it."""
    return ["README"]


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
    assert [call for call in _calls_of_the_source() if not story.made(call[1])] == []


def test_every_way_to_git_is_seen():
    """Whatever the function is called by which a command is handed on to git."""
    source = """\
await borrowing("pack-objects", *how, str(pack))
self._reach(remote, "ls-remote", "--heads", remote.name)
asked = ("merge-base", "--is-ancestor", a, b)
git.ask("-C", str(root), "ls-files", "-z", *which)
await act("merge", "--ff-only", *("--no-stat", "--no-squash"), commit)
Staying(self.refs, "update-ref", "--stdin")
print("nothing of git's", errors="replace")
"""
    assert [words for _, words in _calls_in(source)] == [
        {"pack-objects"},
        {"ls-remote", "--heads"},
        {"merge-base", "--is-ancestor"},
        {"ls-files", "-z"},
        {"merge", "--ff-only", "--no-stat", "--no-squash"},
        {"update-ref", "--stdin"},
    ]


def test_git_is_started_in_one_module_only():
    """Else a call could pass by what is looked at here."""
    starts = {
        path.relative_to(SOURCE).as_posix()
        for path in _sources()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.List) and _words(node.elts)[:1] == ["git"]
    }
    assert starts == {"adapters/git/git.py"}


def _sources() -> list[Path]:
    """Every module that works in a user's repository: all but `ELSEWHERE`."""
    every = SOURCE.glob("**/*.py")
    return [p for p in every if not p.relative_to(SOURCE).as_posix().startswith(ELSEWHERE)]


def _calls_of_the_source() -> list[tuple[str, frozenset[str]]]:
    """Place, and the words that the source hands to git there, as far as they are written there."""
    found = [
        (f"{path.relative_to(SOURCE)}:{line}", words)
        for path in _sources()
        if any(way in (text := path.read_text()) for way in REACHES) or path.parent.name == "git"
        for line, words in _calls_in(text)
    ]
    verbs = {word for _, words in found for word in words}
    assert {"add", "status", "merge-tree", "update-ref"} <= verbs, "it finds what is there"
    return found


def _calls_in(source: str) -> list[tuple[int, frozenset[str]]]:
    """A command of git's is one whoever it is handed to: in a call, or in a list kept for one."""
    found: list[tuple[int, frozenset[str]]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            words = _words(node.args)
        elif isinstance(node, ast.Tuple | ast.List):
            words = _words(node.elts)
        else:
            continue
        if words and words[0] in COMMANDS:
            found.append((node.lineno, frozenset(words)))
    return sorted(found, key=lambda each: each[0])


def _words(parts: list[ast.expr]) -> list[str]:
    """The words that are written there, from the command on: where to do it comes before."""
    words: list[str] = []
    rest = iter(parts)
    for part in rest:
        inner = part.value if isinstance(part, ast.Starred) else part
        if isinstance(inner, ast.Tuple | ast.List) and words:
            words += _words(inner.elts)
        if not isinstance(inner, ast.Constant) or not isinstance(inner.value, str):
            continue
        if inner.value in {"-c", "-C"} and not words:
            next(rest, None)
        else:
            words.append(inner.value)
    return words
