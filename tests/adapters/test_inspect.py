"""The look before a run: what Windlass cannot work in is refused in one line that says the cure."""

import os
import subprocess
from pathlib import Path

import pytest

from repositories import User
from windlass.adapters.git import inspect
from windlass.adapters.git.layout import Refs
from windlass.adapters.git.paths import MOST_RULES
from windlass.errors import RepositoryError

BASE = {"README": "hello\n", "src/a": "a\n"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


def git(user: User, directory: Path | None = None) -> inspect.UserGit:
    return inspect.UserGit(directory or user.repo, user.environment)


def refused(call: object, *args: object) -> str:
    with pytest.raises(RepositoryError) as caught:
        call(*args)  # pyright: ignore[reportCallIssue]
    assert "\n" not in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


class TestLocate:
    def test_a_repository_is_found_from_any_folder_in_it(self, user: User):
        origin = inspect.locate(git(user, user.repo / "src"))
        assert (origin.root, origin.git_dir) == (user.repo, user.repo / ".git")
        assert (origin.objects, origin.object_format) == ((user.repo / ".git/objects",), "sha1")

    def test_no_repository(self, user: User, tmp_path: Path):
        said = refused(inspect.locate, git(user, tmp_path))
        assert said.startswith(f"{tmp_path} is not in a git repository;")
        assert said.endswith("run this inside one, or create one with `git init`")

    def test_no_folder(self, user: User):
        with pytest.raises(RepositoryError, match="is not a folder"):
            inspect.locate(git(user, user.repo / "README"))

    def test_a_bare_repository(self, user: User, tmp_path: Path):
        bare = tmp_path / "bare.git"
        user.git("clone", "-q", "--bare", str(user.repo), str(bare))
        assert "is a bare repository; Windlass needs a checkout" in refused(
            inspect.locate, git(user, bare)
        )

    def test_a_worktree_of_a_bare_repository(self, user: User, tmp_path: Path):
        bare, linked = tmp_path / "bare.git", tmp_path / "linked"
        user.git("clone", "-q", "--bare", str(user.repo), str(bare))
        user.git("worktree", "add", "-q", str(linked), cwd=bare)
        assert "run this in a plain clone" in refused(inspect.locate, git(user, linked))

    def test_somebody_elses_repository(self, user: User):
        user.environment["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
        said = refused(inspect.locate, git(user))
        assert said == (
            f"{user.repo}: detected dubious ownership in repository at '{user.repo}'; "
            f"if you trust it: git config --global --add safe.directory {user.repo}"
        )

    def test_a_line_break_in_its_path(self, tmp_path: Path):
        odd = tmp_path / "new\nline"
        odd.mkdir()
        user = User(odd)
        assert "a line break in its name" in refused(inspect.locate, git(user))

    def test_how_files_are_written_is_held(self, user: User):
        user.config("core.autocrlf=true", "core.eol=lf", "core.pager=evil")
        user.git("config", "core.autocrlf", "input")
        with (user.repo / ".git/config").open("a") as file:
            file.write("[core]\n\tsymlinks\n")
        assert inspect.locate(git(user)).settings == {
            "core.autocrlf": "input",
            "core.eol": "lf",
            "core.filemode": "true",
            "core.symlinks": "true",
        }

    def test_an_old_git(self, user: User, tmp_path: Path):
        fake = tmp_path / "bin/git"
        fake.parent.mkdir()
        fake.write_text("#!/bin/sh\necho git version 2.30.1\n")
        fake.chmod(0o755)
        user.environment["PATH"] = str(fake.parent)
        assert "'git version 2.30.1' is too old" in refused(inspect.locate, git(user))

    def test_no_git(self, user: User, tmp_path: Path):
        user.environment["PATH"] = str(tmp_path / "nowhere")
        assert "git is not installed" in refused(inspect.locate, git(user))

    def test_nothing_is_changed_by_looking(self, user: User):
        index = user.repo / ".git/index"
        os.utime(user.repo / "README")  # a status that may write would refresh the index
        before = index.read_bytes()
        inspect.locate(git(user))
        inspect.base(git(user), None)
        assert index.read_bytes() == before


class TestBase:
    def test_the_checked_out_branch(self, user: User):
        found = inspect.base(git(user), None)
        assert found == inspect.Base(commit=user.git("rev-parse", "HEAD"), branch="main")

    def test_any_name_of_a_commit(self, user: User):
        first = user.git("rev-parse", "HEAD")
        user.commit({"more": "m\n"})
        user.git("tag", "-a", "-m", "t", "v1", first)
        user.git("branch", "side/line", first)
        found = {name: inspect.base(git(user), name) for name in ("side/line", "v1", "HEAD~1")}
        assert {base.commit for base in found.values()} == {first}
        assert [base.branch for base in found.values()] == ["side/line", None, None]

    def test_a_name_like_an_option_is_harmless(self, user: User):
        for name in ("--help", "-x", "--output=x", "--exec=touch x"):
            why = refused(inspect.base, git(user), name)
            assert f"the base {name!r} is not a commit here" in why
        user.git("update-ref", "refs/heads/-x", "HEAD")
        found = inspect.base(git(user), "refs/heads/-x")
        assert found.commit == user.git("rev-parse", "main")
        assert inspect.base(git(user), "-x").branch == "-x"

    def test_an_unknown_name(self, user: User):
        assert refused(inspect.base, git(user), "nowhere") == (
            "the base 'nowhere' is not a commit here; name a branch or a commit that exists"
        )
        assert "is not a commit" in refused(inspect.base, git(user), "HEAD^{tree}")

    def test_an_empty_repository(self, tmp_path: Path):
        assert "has no commit yet; make a first one" in refused(
            inspect.base, git(User(tmp_path)), None
        )

    def test_a_detached_head_is_a_warning(self, user: User):
        user.git("checkout", "-q", "--detach")
        found = inspect.base(git(user), None)
        assert found.branch is None
        assert found.warnings == (
            "HEAD is detached: the run works from that commit, and no branch will follow",
        )

    def test_commits_that_would_be_signed_are_warned_of(self, user: User):
        for value, warned in (("true", 1), ("false", 0)):
            user.git("config", "commit.gpgSign", value)
            assert inspect.signs_by_default(git(user)) is bool(warned)
            assert inspect.base(git(user), None).warnings == ()

    def test_uncommitted_changes_are_a_warning(self, user: User):
        user.write({"README": "changed\n"})
        [one] = inspect.base(git(user), None).warnings
        short = user.git("rev-parse", "HEAD")[:10]
        rest = f"not part of the run: it works from commit {short}"
        assert one == f"1 uncommitted change is {rest}"
        user.write({"new/a": "a\n", "new/b": "b\n"})
        user.git("add", "new/b")
        for directory in (user.repo, user.repo / "src"):
            assert inspect.base(git(user, directory), None).warnings == (
                f"3 uncommitted changes are {rest}",
            )

    def test_windlasss_own_files_are_none(self, user: User):
        user.write({".windlass/x": "x\n", "state/p_state.json": "{}\n"})
        assert inspect.base(git(user), None, (".windlass/", "state/p_state.json")).warnings == ()

    def test_what_is_part_of_the_run_is_matched_by_whole_names(self, user: User):
        user.write({"plan.md": "p\n", "plan.md.orig": "o\n", "tasks/1.md": "1\n", "tasks2": "x\n"})
        [one] = inspect.base(git(user), None, ("plan.md", "tasks")).warnings
        assert one.startswith("2 uncommitted changes are not part of the run")

    def test_a_submodule(self, user: User):
        head = user.git("rev-parse", "HEAD")
        user.git("update-index", "--add", "--cacheinfo", f"160000,{head},vendor/lib")
        user.git("commit", "-q", "-m", "submodule")
        said = refused(inspect.base, git(user), None)
        assert "a submodule at 'vendor/lib'" in said
        assert inspect.base(git(user), "HEAD~1").commit == head

    @pytest.mark.parametrize(
        "path", [".windlass", ".windlass/plans/p/inbox/1.json", ".Windlass/Plans/x"]
    )
    def test_what_windlass_keeps_is_not_tracked(self, user: User, path: str):
        user.commit({".windlass/coach.md": "instructions may be\n"} if "/" in path else {})
        assert inspect.base(git(user), None).warnings == ()
        user.commit({path: "x\n"})
        said = refused(inspect.base, git(user), None)
        assert said.startswith(f"the repository tracks {path!r}, which belongs to Windlass; ")

    def test_rules_that_no_snapshot_could_be_taken_with(self, user: User):
        half = "x" * (MOST_RULES // 2)
        user.commit({".gitignore": half, "src/.gitattributes": "", "a/.gitignore": half, "b": half})
        assert inspect.base(git(user), None).warnings == ()
        user.commit({"a/b/.gitignore": "y\n"})
        said = refused(inspect.base, git(user), None)
        assert said.startswith(
            ".gitattributes, .gitignore, .gitmodules in 'a/b' and above have more"
        )

    @pytest.mark.parametrize("colour", ["auto", "always"])
    @pytest.mark.parametrize("path", [".gitattributes", "deep/down/.gitattributes"])
    def test_lfs(self, user: User, path: str, colour: str):
        user.config(f"color.ui={colour}", "grep.lineNumber=true")
        user.commit({path: "*.txt text\n*.bin filter=lfs diff=lfs merge=lfs -text\n"})
        assert "the filter 'lfs'" in refused(inspect.base, git(user), None)

    def test_a_filter_counts_when_it_is_configured(self, user: User):
        user.commit({".gitattributes": "[attr]secret filter=crypt.2\n*.key secret\n"})
        assert inspect.base(git(user), None).warnings == ()
        user.git("config", "filter.crypt.2.clean", "cat")
        assert "the filter 'crypt.2'" in refused(inspect.base, git(user), None)

    @pytest.mark.parametrize("where", ["info", "global"])
    def test_a_filter_of_the_users_own_counts_where_it_touches_a_file(self, user: User, where: str):
        user.config("filter.strip.clean=cat")
        if where == "info":
            (user.repo / ".git/info/attributes").write_text("*.ipynb filter=strip\n")
        else:
            (user.home / ".config/git").mkdir(parents=True)
            (user.home / ".config/git/attributes").write_text("*.ipynb filter=strip\n")
        assert inspect.base(git(user), None).warnings == ()
        user.commit({"src/a.ipynb": "{}\n"})
        for directory in (user.repo, user.repo / "src"):
            assert "the filter 'strip'" in refused(inspect.base, git(user, directory), None)

    def test_a_partial_clone(self, user: User, tmp_path: Path):
        user.git("config", "uploadpack.allowFilter", "true")
        user.commit({"README": "newer\n"})
        partial = tmp_path / "partial"
        url = user.repo.as_uri()
        user.git("clone", "-q", "--filter=blob:none", url, str(partial), cwd=tmp_path)
        assert inspect.base(git(user, partial), None).warnings == ()
        said = refused(inspect.base, git(user, partial), "HEAD~1")
        assert "this partial clone lacks 1 of the objects" in said


class TestIdentity:
    def test_it_is_the_users(self, user: User):
        expected = {
            "GIT_AUTHOR_NAME": "Ann User",
            "GIT_AUTHOR_EMAIL": "ann@example.org",
            "GIT_COMMITTER_NAME": "Ann User",
            "GIT_COMMITTER_EMAIL": "ann@example.org",
        }
        assert inspect.identity(git(user)) == expected
        user.environment["GIT_COMMITTER_NAME"] = "Somebody — Ü"
        renamed = {**expected, "GIT_COMMITTER_NAME": "Somebody — Ü"}
        assert inspect.identity(git(user)) == renamed

    def test_none_is_refused_and_not_made_up(self, user: User, tmp_path: Path):
        user.environment["HOME"] = str(tmp_path / "empty")
        assert refused(inspect.identity, git(user)) == (
            "git has no name and email for commits here; "
            'set them: git config user.name "Your Name"; git config user.email you@host'
        )


class TestClashes:
    REFS = Refs("plan", "r1")

    @pytest.mark.parametrize(
        ("taken", "cure"),
        [
            ("windlass", "git branch -m windlass windlass-old"),
            ("windlass/plan", "git branch -m windlass/plan windlass-plan-old"),
            (
                "windlass/plan/integration/x",
                "git branch -m windlass/plan/integration/x windlass-plan-integration-x-old",
            ),
        ],
    )
    def test_a_branch_that_stands_in_the_way(self, user: User, taken: str, cure: str):
        user.git("branch", taken)
        said = refused(inspect.refuse_clashing_branches, git(user), self.REFS)
        goes = "windlass/plan/integration"
        assert said == f"branch {taken!r} is in the way of {goes!r}; rename it: {cure}"
        user.git(*cure.split()[1:])
        inspect.refuse_clashing_branches(git(user), self.REFS)

    def test_others_do_not(self, user: User):
        for name in ("windlass/other", "windlass/plan/integration", "windlass-x", "x/windlass"):
            user.git("branch", name)
        inspect.refuse_clashing_branches(git(user), self.REFS)


def test_looking_runs_nothing_that_a_repository_brings_along(user: User, tmp_path: Path):
    canary = tmp_path / "canary"
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch '{canary}'\n")
    trap.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-commit"):
        (hooks / name).symlink_to(trap)
    user.git("config", "core.fsmonitor", str(trap))
    user.git("config", "core.hooksPath", str(hooks))
    user.git("config", "diff.external", str(trap))
    user.git("config", "diff.evil.textconv", str(trap))
    subprocess.run(["touch", user.repo / "README"], check=True)
    found = git(user)
    inspect.locate(found)
    inspect.identity(found)
    inspect.base(found, None)
    inspect.refuse_clashing_branches(found, Refs("plan", "r1"))
    assert not canary.exists()


def test_what_a_hook_was_told_does_not_lead_elsewhere(tmp_path):
    """Called from a git hook, git's own variables name the repository of the hook."""
    from windlass.adapters.git.inspect import UserGit, locate
    from windlass.testing.stage import Stage

    here, there = Stage(tmp_path / "here", ""), Stage(tmp_path / "there", "")
    for stage in (here, there):
        stage.root.mkdir()
        stage.build({"a": "1"})
    told = {**here.environment, "GIT_DIR": str(there.repo / ".git"), "GIT_INDEX_FILE": "x"}
    assert locate(UserGit(here.repo, told)).root == here.repo
