"""Checks and setup with real commands: what they see, what they leave, and how they are judged."""

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import anyio.to_thread
import pytest

from repositories import Run, User, held, write
from windlass.adapters.checks.runner import CommandChecks
from windlass.adapters.checks.setup_cache import MOST_TREES
from windlass.adapters.sandbox import Sandbox
from windlass.adapters.sandbox.bubblewrap import Bubblewrap
from windlass.adapters.sandbox.network import WaysOut
from windlass.adapters.sandbox.plain import Plain
from windlass.core.events.model import Absence, CheckResult, Outcome
from windlass.core.settings import WorkspaceSettings
from windlass.errors import ConfigError, SetupFailed

pytestmark = pytest.mark.anyio

PATH = "/usr/local/bin:/usr/bin:/bin"
SECRETS = {"ANTHROPIC_API_KEY": "sk-ant-very-secret", "DB_PASSWORD": "hunter2-secret"}
BASE = {"README": "hello\n", "src/a": "a\n", "needs.txt": "one\n"}
TOKEN = "head -c 8 /dev/urandom | od -An -tx1 > made/token"


class Bench:
    """A user's repository, a run in it, and checks at one level of sandbox."""

    def __init__(self, root: Path, level: str) -> None:
        self.root = root
        self.level = level
        self.user = User(root)
        self.user.commit(BASE)
        self.marker = f"test-{os.getpid()}/{root.name}"

    def sandbox(self, *hosts: str) -> Sandbox:
        environment = {"PATH": PATH, "HOME": str(self.user.home), **SECRETS}
        if self.level == "checkout":
            home = self.root / "empty"
            home.mkdir(exist_ok=True)
            return Plain("checkout", home=home, environment=environment, marker=self.marker)
        bubblewrap = Bubblewrap(
            home=self.user.home,
            repository=self.user.repo,
            masked=(self.user.repo / ".git",),
            path=PATH,
            environment=environment,
            marker=self.marker,
            ways_out=WaysOut(hosts),
        )
        if reason := bubblewrap.probe():
            pytest.skip(f"bubblewrap does not work here: {reason}")
        return bubblewrap

    async def open(self, *hosts: str, **settings: Any) -> "Bench":
        """A process of the run, with these settings for workspaces, and hosts to reach."""
        settings = WorkspaceSettings(**settings)
        self.run = await Run(self.user, settings=settings, sandbox=self.sandbox(*hosts)).open()
        return self

    def checks(self, *, timeout: float = 30, network: bool = False) -> CommandChecks:
        return CommandChecks(
            self.run.repository.throwaways,
            self.run.sandbox,
            timeout=timeout,
            network=network,
            logs=self.root / "logs",
        )

    async def check(
        self, *commands: str, commit: str | None = None, **limits: Any
    ) -> tuple[CheckResult, ...]:
        return await self.checks(**limits).run(commit or self.run.base, commands, "1.1-1")

    async def said(self, command: str, **more: Any) -> str:
        """What a passing check prints."""
        [result] = await self.check(command, **more)
        assert result.outcome is Outcome.PASS, result.output
        return result.output.strip()


@pytest.fixture(params=["bwrap", "checkout"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    return Bench(tmp_path, request.param)


@pytest.fixture
def boxed(tmp_path: Path) -> Bench:
    return Bench(tmp_path, "bwrap")


def judged(results: Sequence[CheckResult]) -> list[tuple[Outcome, Absence | None, int | None]]:
    return [(result.outcome, result.absence, result.exit_code) for result in results]


class TestJudgement:
    async def test_pass_fail_and_absent(self, bench: Bench):
        await bench.open()
        results = await bench.check(
            "true",
            "exit 3",
            "no-such-program --version",
            "./README",
            "exit 5",
            "sh -c 'exit 5' pytest",
            "kill -9 $$",
        )
        absent = Outcome.ABSENT
        assert judged(results) == [
            (Outcome.PASS, None, 0),
            (Outcome.FAIL, None, 3),
            (absent, Absence.UNABLE_TO_START, 127),
            (absent, Absence.UNABLE_TO_START, 126),
            (Outcome.FAIL, None, 5),
            (absent, Absence.COLLECTED_NOTHING, 5),
            (Outcome.FAIL, None, 137),
        ]
        assert [result.command for result in results][:2] == ["true", "exit 3"]

    async def test_too_long_is_absent_and_the_next_goes_on(self, bench: Bench):
        await bench.open()
        results = await bench.check("echo begun; sleep 60", "echo next", timeout=2)
        assert judged(results) == [
            (Outcome.ABSENT, Absence.TIMED_OUT, None),
            (Outcome.PASS, None, 0),
        ]
        assert results[0].output == "begun"
        assert 2 <= results[0].seconds < 30

    async def test_no_commands_need_no_checkout(self, bench: Bench):
        await bench.open()
        assert await bench.check() == ()
        assert not bench.run.folders.throwaway.exists()


class TestCheckout:
    async def test_it_is_exactly_the_commit(self, bench: Bench):
        """Whatever the user's checkout and the workspace hold meanwhile."""
        await bench.open()
        made = await bench.run.play("1.1", {"new": "n\n", "README": None})
        write(bench.run.folders.workspace("1.1"), {"new": "edited\n", "later": "l\n"})
        bench.user.write({"README": "dirty\n"})
        listed = "find . -name .git -prune -o -type f -print | sort"
        said = await bench.said(f"{listed}; cat new", commit=made.commit)
        assert said.split() == ["./needs.txt", "./new", "./src/a", "n"]
        said = await bench.said(f"{listed}; cat README")
        assert said.split() == ["./README", "./needs.txt", "./src/a", "hello"]

    async def test_commands_follow_each_other_in_one_checkout(self, bench: Bench):
        await bench.open()
        results = await bench.check("echo built > out", "cat out", "rm -r src", "test ! -e src")
        assert {result.outcome for result in results} == {Outcome.PASS}
        assert await bench.said("ls out src 2>&1 || true") != "out src"

    async def test_nothing_is_left_of_it(self, bench: Bench):
        await bench.open()
        before = bench.user.refs()
        await bench.check("mkdir -p a/b; touch a/b/c; chmod 0 a/b; chmod 500 a", "sleep 100 &")
        assert list(bench.run.folders.throwaway.iterdir()) == []
        assert bench.user.refs() == before
        assert bench.user.git("status", "--porcelain") == ""

    async def test_git_works_in_it(self, bench: Bench):
        await bench.open()
        assert await bench.said("git status --porcelain; git log --format=%s") == "user"

    async def test_its_output_is_told_at_the_end_and_kept_whole(self, bench: Bench):
        await bench.open()
        command = (
            "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo é >&2; exit 1"
        )
        results = await bench.check(command, "echo second")
        assert 3900 < len(results[0].output) <= 4000
        assert results[0].output.endswith("line 2999\né")
        log = (bench.root / "logs/1.1-1.log").read_text()
        assert log.startswith(f"$ {command}\nline 0\n")
        assert log.endswith("line 2999\né\n$ echo second\nsecond\n")

    async def test_secrets_are_not_in_it(self, bench: Bench):
        await bench.open()
        said = await bench.said("env; cat /proc/self/environ | tr '\\0' '\\n'; echo CI=$CI")
        assert [value for value in SECRETS.values() if value in said] == []
        assert "CI=true" in said


class TestWalls:
    async def test_there_is_no_network_unless_it_is_asked_for(self, boxed: Bench):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            reach = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\""
            await boxed.open()
            assert judged(await boxed.check(reach, network=True))[0][0] is Outcome.FAIL
            await boxed.open(f"127.0.0.1:{port}")
            assert judged(await boxed.check(reach))[0][0] is Outcome.FAIL
            assert judged(await boxed.check(reach, network=True))[0][0] is Outcome.PASS

    async def test_nothing_outside_can_be_written(self, boxed: Bench):
        await boxed.open()
        workspace = await boxed.run.repository.prepare("1.1", 1, boxed.run.base, None)
        places = (boxed.user.repo, boxed.user.repo / ".git", workspace, boxed.user.home)
        await boxed.check(*(f"touch {place}/trespass" for place in places))
        assert [place for place in places if (place / "trespass").exists()] == []


class TestSetup:
    async def test_it_is_there_for_checks_and_players(self, bench: Bench):
        await bench.open(setup=("mkdir made", "cp needs.txt made/ready"))
        workspace = await bench.run.repository.prepare("1.1", 1, bench.run.base, None)
        assert (workspace / "made/ready").read_text() == "one\n"
        for _ in range(2):
            assert await bench.said("cat made/ready; git status --porcelain") == "one"
        assert bench.user.git("status", "--porcelain", cwd=workspace) == ""

    async def test_what_it_made_is_not_in_a_snapshot(self, bench: Bench):
        odd = "$(printf 'caf\\351 *\\nx')"
        setup = ("mkdir made src/made", f'touch made/x src/made/y top "{odd}" src/"{odd}"')
        await bench.open(setup=setup)
        made = await bench.run.play("1.1", {})
        assert (made.commit, made.changed) == (bench.run.base, False)
        made = await bench.run.play("1.2", {"made/more": "m\n", "src/real": "r\n"})
        assert bench.user.files(made.commit) == {**BASE, "src/real": "r\n"}
        await bench.open(setup=setup)  # and the next process knows it too
        write(bench.run.folders.workspace("1.2"), {"made/again": "m\n"})
        await bench.run.repository.prepare("1.2", 2, made.commit, None)
        assert not (await bench.run.save("1.2", n=2, parents=(made.commit,))).changed

    async def test_what_it_changed_of_the_commit_is_put_back(self, bench: Bench):
        """Or a Player that did nothing would have changed something, and a check another tree."""
        await bench.open(setup=("mkdir made; echo changed >> needs.txt; rm README",))
        made = await bench.run.play("1.1", {})
        assert not made.changed
        for _ in range(2):
            assert await bench.said("cat needs.txt README; ls -d made") == "one\nhello\nmade"

    async def test_a_failure_is_an_environment_that_cannot_start(self, bench: Bench):
        await bench.open(setup=("echo trying", "echo the cause >&2; exit 7", "touch never"))
        results = await bench.check("true", "true")
        assert judged(results) == [(Outcome.ABSENT, Absence.UNABLE_TO_START, None)] * 2
        why = "setup command `echo the cause >&2; exit 7` failed with exit code 7: the cause"
        assert results[0].output.startswith(why)
        with pytest.raises(SetupFailed, match="mend \\[workspace\\] setup"):
            await bench.run.repository.prepare("1.1", 1, bench.run.base, None)
        made = await bench.run.save("1.1")
        assert (made.commit, made.changed) == (bench.run.base, False)

    async def test_a_failure_that_was_mended_is_forgotten(self, bench: Bench):
        await bench.open(setup=("touch half; exit 1",))
        for n in (1, 2):
            with pytest.raises(SetupFailed):
                await bench.run.repository.prepare("1.1", n, bench.run.base, None)
        await bench.open(setup=("touch whole",))
        workspace = await bench.run.repository.prepare("1.1", 3, bench.run.base, None)
        assert held(workspace) == {**BASE, "whole": ""}

    async def test_one_that_was_cut_short_is_done_again(self, bench: Bench):
        """Also in a workspace that a person took away after an earlier start."""
        await bench.open(setup=("touch whole",))
        workspace = await bench.run.repository.prepare("1.1", 1, bench.run.base, None)
        await anyio.to_thread.run_sync(shutil.rmtree, workspace)
        await bench.open(setup=("touch half; exit 1",))
        with pytest.raises(SetupFailed):
            await bench.run.repository.prepare("1.1", 2, bench.run.base, None)
        await bench.open(setup=("touch whole",))
        await bench.run.repository.prepare("1.1", 3, bench.run.base, None)
        assert held(workspace) == {**BASE, "whole": ""}

    async def test_one_that_leaves_a_pipe_in_gits_way_stops_nobody(self, bench: Bench):
        await bench.open(setup=("mkfifo .gitattributes .gitignore src/.gitattributes",))
        assert await bench.said("cat README src/a") == "hello\na"
        assert not (await bench.run.play("1.1", {})).changed

    async def test_a_repository_it_leaves_is_kept_and_stops_nobody(self, bench: Bench):
        """It may be one that git would wait for, or one that was cloned to be built with."""
        inner = "mkdir -p dep/.git/objects dep/.git/refs; mkfifo dep/.git/HEAD"
        await bench.open(setup=(inner, "git init -q other; touch other/x src/made"))
        for _ in range(2):
            told = await bench.said("cat README; ls -d dep/.git/HEAD other/.git/HEAD other/x src/*")
            assert told.split() == [
                "hello", "dep/.git/HEAD", "other/.git/HEAD", "other/x", "src/a", "src/made"
            ]  # fmt: skip
        assert not (await bench.run.play("1.1", {})).changed

    async def test_it_may_use_the_network(self, bench: Bench):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            reach = f"python3 -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\""
            await bench.open(f"127.0.0.1:{port}", setup=(reach,))
            assert await bench.said("echo fit") == "fit"

    async def test_without_walls_it_runs_each_time(self, tmp_path: Path):
        bench = await Bench(tmp_path, "checkout").open(setup=("mkdir made", TOKEN))
        assert await bench.said("cat made/token") != await bench.said("cat made/token")


class TestCache:
    async def tokens(self, bench: Bench, *commits: str) -> list[str]:
        return [await bench.said("cat made/token", commit=commit) for commit in commits]

    async def test_what_setup_made_is_used_again_while_its_inputs_stay(self, boxed: Bench):
        setup = {"setup": ("mkdir made", TOKEN), "inputs": ("need*.txt", "locks/")}
        first = boxed.user.git("rev-parse", "HEAD")
        other_source = boxed.user.commit({"src/a": "changed\n"})
        other_need = boxed.user.commit({"needs.txt": "two\n"})
        other_lock = boxed.user.commit({"locks/x": "x\n"})
        back = boxed.user.commit({"needs.txt": "one\n", "locks/x": None})
        await boxed.open(**setup)
        workspace = await boxed.run.repository.prepare("1.1", 1, first, None)
        token = (workspace / "made/token").read_text().strip()
        commits = (first, other_source, other_need, other_lock, back)
        one, two, three, four, five = await self.tokens(boxed, *commits)
        assert token == one == two == five
        assert len({one, three, four}) == 3
        await boxed.open(**setup)
        assert await self.tokens(boxed, *commits) == [one, two, three, four, five]
        await boxed.open(setup=(*setup["setup"], "true"), inputs=setup["inputs"])
        assert await self.tokens(boxed, first) != [one]

    async def test_without_declared_inputs_the_whole_tree_is_the_input(self, boxed: Bench):
        first = boxed.user.git("rev-parse", "HEAD")
        second = boxed.user.commit({"src/a": "changed\n"})
        await boxed.open(setup=("mkdir made", TOKEN))
        one, again, two = await self.tokens(boxed, first, first, second)
        assert one == again != two

    async def test_it_never_covers_what_the_commit_tracks(self, boxed: Bench):
        """Another commit may track, with other content, what setup made in the first."""
        first = boxed.user.git("rev-parse", "HEAD")
        file = boxed.user.commit({"made": "tracked\n"})
        boxed.user.git("rm", "-q", "made")
        (boxed.user.repo / "made").symlink_to("src")
        link = boxed.user.commit({})
        boxed.user.git("rm", "-q", "made")
        folder = boxed.user.commit({"made/x": "tracked\n", "made/y": "tracked\n"})
        await boxed.open(
            setup=("[ -e made ] || { mkdir made; echo setup > made/x; }", "mkdir also"),
            inputs=("needs.txt",),
        )
        assert await boxed.said("cat made/x", commit=first) == "setup"
        assert await boxed.said("cat made", commit=file) == "tracked"
        assert await boxed.said("readlink made; ls src", commit=link) == "src\na"
        assert await boxed.said("cat made/x made/y", commit=folder) == "tracked\ntracked"

    async def test_a_venv_made_in_one_checkout_works_in_another(self, boxed: Bench):
        setup = (
            "python3 -m venv --without-pip .venv",
            "printf '#!%s\\nprint(\"hello\")\\n' $PWD/.venv/bin/python > .venv/bin/tool",
            "chmod +x .venv/bin/tool",
        )
        await boxed.open(setup=setup, inputs=("needs.txt",))
        workspace = await boxed.run.repository.prepare("1.1", 1, boxed.run.base, None)
        kept = list(boxed.run.folders.setup_results.glob("*/.venv"))
        assert len(kept) == 1
        command = ".venv/bin/tool; .venv/bin/python -c 'import sys; print(sys.prefix)'; pwd"
        tool, prefix, here = (await boxed.said(command)).split()
        assert (tool, prefix) == ("hello", f"{here}/.venv")
        assert (workspace / ".venv/bin/tool").exists()
        assert not (await boxed.run.save("1.1")).changed

    async def test_what_setup_made_of_work_under_way_serves_nobody_else(self, boxed: Bench):
        """It ran what that work says, which nobody has judged yet."""
        setup = ("[ ! -e setup.sh ] || sh setup.sh",)  # as `make deps` or `pip install -e .` would
        await boxed.open(setup=setup, inputs=("needs.txt",))
        evil = {"needs.txt": "two\n", "setup.sh": "mkdir made; echo evil > made/token\n"}
        good = {"needs.txt": "two\n", "setup.sh": "mkdir made; echo good > made/token\n"}
        first = (await boxed.run.play("1.1", evil)).commit
        assert await self.tokens(boxed, first, first) == ["evil", "evil"]
        second = (await boxed.run.play("1.2", good)).commit
        assert await self.tokens(boxed, second) == ["good"]
        assert await self.tokens(boxed, first) == ["evil"]
        tip, _ = await boxed.run.land("1.2", 1, second, boxed.run.base)
        assert await self.tokens(boxed, tip) == ["good"]
        other = {"needs.txt": "two\n", "setup.sh": "exit 1\n"}
        third = (await boxed.run.play("1.3", other)).commit  # now it serves whoever has its inputs
        assert await self.tokens(boxed, third, first) == ["good", "good"]

    async def test_no_work_is_left_out_for_what_the_setup_of_another_tree_makes(self, bench: Bench):
        """A Player may have setup make whatever its siblings work on, and be rejected for it."""
        bench.user.commit({"setup.sh": "mkdir -p made\ntouch made/it\n"})
        settings = {"setup": ("sh setup.sh",), "inputs": ("needs.txt",)}
        await bench.open(**settings)
        theirs = await bench.run.repository.prepare("1.2", 1, bench.run.base, None)
        evil = {"setup.sh": "mkdir -p made src/new; touch src/new/b b.txt\n", "needs.txt": "two\n"}
        rejected = (await bench.run.play("1.1", evil)).commit
        assert await bench.said("ls src/new b.txt", commit=rejected)
        work = {"src/new/b": "b's\n", "b.txt": "b's\n"}
        write(theirs, {**work, "made/it": "changed\n"})
        base = bench.user.files(bench.run.base)
        assert bench.user.files((await bench.run.save("1.2")).commit) == {**base, **work}
        await bench.open(**settings)  # nor in a process after it, nor in a workspace made since
        again = await bench.run.play("1.3", {**work, "made/more": "m\n"})
        assert bench.user.files(again.commit) == {**base, **work}

    async def test_a_workspace_knows_its_own_by_products_whatever_becomes_of_the_cache(
        self, bench: Bench
    ):
        settings = {"setup": ("mkdir made", TOKEN), "inputs": ("needs.txt",)}
        await bench.open(**settings)
        await bench.said("cat made/token")
        workspace = await bench.run.repository.prepare("1.1", 1, bench.run.base, None)
        shutil.rmtree(bench.run.folders.setup_results, ignore_errors=True)
        await bench.open(**settings)
        assert (workspace / "made/token").exists()
        assert not (await bench.run.save("1.1")).changed
        assert bench.user.git("status", "--porcelain", cwd=workspace) == ""

    async def test_no_more_trees_are_remembered_than_are_of_use(self, boxed: Bench):
        await boxed.open(setup=("mkdir made", TOKEN))
        commits = [boxed.user.commit({"src/a": f"{n}\n"}) for n in range(MOST_TREES + 2)]
        first, *_ = await self.tokens(boxed, *commits[:MOST_TREES])
        assert await self.tokens(boxed, commits[0]) == [first]
        await self.tokens(boxed, *commits[MOST_TREES:])
        kept = [path for path in boxed.run.folders.setup_results.iterdir() if path.is_dir()]
        assert len(kept) == MOST_TREES
        assert await self.tokens(boxed, commits[0]) == [first]

    async def test_it_is_never_written_through_a_link(self, boxed: Bench, tmp_path: Path):
        """A tree may have a link where setup made a file; it may lead anywhere."""
        precious = tmp_path / "precious"
        precious.write_text("mine\n")
        await boxed.open(setup=("echo setup > made.txt",), inputs=("needs.txt",))
        assert await boxed.said("cat made.txt") == "setup"
        boxed.user.git("rm", "-q", "-r", "--ignore-unmatch", "made.txt")
        (boxed.user.repo / "made.txt").symlink_to(precious)
        linked = boxed.user.commit({})
        assert await boxed.said("readlink made.txt", commit=linked) == str(precious)
        assert precious.read_text() == "mine\n"

    async def test_an_interrupted_copy_is_never_used(self, boxed: Bench):
        await boxed.open(setup=("mkdir made", TOKEN))
        [token] = await self.tokens(boxed, boxed.run.base)
        [kept] = [path for path in boxed.run.folders.setup_results.iterdir() if path.is_dir()]
        kept.rename(kept.with_suffix(".building"))
        (kept.with_suffix(".building") / "made/token").write_text("half")
        fresh, again = await self.tokens(boxed, boxed.run.base, boxed.run.base)
        assert fresh == again
        assert fresh not in {token, "half"}


class TestKeep:
    """Folders that checks fill, such as a compiler's cache."""

    settings: ClassVar = {"keep": ("cache", "web/cache"), "inputs": ("needs.txt",)}
    fill = "ls; mkdir -p cache web/cache; echo x > cache/x; echo y > web/cache/y"

    async def test_what_checks_of_merged_code_left_is_there_the_next_time(self, boxed: Bench):
        await boxed.open(**self.settings)
        assert await boxed.said(self.fill) == "README\nneeds.txt\nsrc"
        assert await boxed.said("cat cache/x web/cache/y") == "x\ny"
        workspace = await boxed.run.repository.prepare("1.1", 1, boxed.run.base, None)
        assert (workspace / "web/cache/y").read_text() == "y\n"
        await boxed.open(**self.settings)  # and for the next process
        assert await boxed.said("cat cache/x") == "x"

    async def test_other_inputs_have_other_ones(self, boxed: Bench):
        await boxed.open(**self.settings)
        await boxed.check(self.fill)
        other = (await boxed.run.play("1.1", {"needs.txt": "two\n"})).commit
        assert await boxed.said("ls", commit=other) == "README\nneeds.txt\nsrc"
        same = (await boxed.run.play("1.2", {"src/a": "two\n"})).commit
        assert await boxed.said("cat cache/x", commit=same) == "x"

    async def test_what_an_agent_or_its_work_left_serves_nobody_else(self, boxed: Bench):
        await boxed.open(**self.settings)
        workspace = await boxed.run.repository.prepare("1.1", 1, boxed.run.base, None)
        write(workspace, {"cache/x": "evil\n", "src/a": "evil\n"})
        made = await boxed.run.save("1.1")
        assert await boxed.said(self.fill, commit=made.commit) == "README\nneeds.txt\nsrc"
        async with boxed.run.repository.throwaway(boxed.run.base, "coach") as place:
            write(Path(place.path), {"cache/x": "evil\n"})
        await boxed.run.repository.release("1.1")
        assert await boxed.said("ls") == "README\nneeds.txt\nsrc"
        second = await boxed.run.repository.prepare("1.2", 1, boxed.run.base, None)
        assert not (second / "cache").exists()

    async def test_what_is_there_stays_and_no_link_is_followed(self, boxed: Bench, tmp_path: Path):
        await boxed.open(**self.settings)
        await boxed.check(self.fill)
        tracked = boxed.user.commit({"cache/x": "tracked\n"})
        assert await boxed.said("cat cache/x", commit=tracked) == "tracked"
        (tmp_path / "elsewhere").mkdir()
        (boxed.user.repo / "web").symlink_to(tmp_path / "elsewhere")
        linked = boxed.user.commit({})
        await boxed.check("true", commit=linked)
        assert not list((tmp_path / "elsewhere").iterdir())

    async def test_a_folder_outside_is_refused(self, boxed: Bench):
        for folder in ("../x", "a/../../x", "/", ".git/objects"):
            with pytest.raises(ConfigError, match="not a folder inside a checkout"):
                await boxed.open(keep=(folder,))


def test_the_machine_has_what_these_tests_need():
    """A python3 on the bare PATH, for the venv and the sockets above."""
    done = subprocess.run(["python3", "--version"], env={"PATH": PATH}, check=False)
    assert done.returncode == 0
