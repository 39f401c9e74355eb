"""`windlass pr`: a real push to a bare repository, and a gh that records its arguments."""  # K8

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from desk import Desk
from finished_run import BRANCH, PLAN, TITLE, InProcessDesk, finished
from forge import Forge
from windlass.adapters.git.pull_requests import Place, place_of
from windlass.app.plans import read_plan
from windlass.app.wiring import Project
from windlass.cli.pr import offer
from windlass.cli.running import request_of, run_plan
from windlass.core.events import model as e
from windlass.testing.agents import Play, ScriptedAgent
from windlass.testing.model import Book, Call, Script
from windlass.testing.stage import scripted_model


@pytest.fixture
def done(tmp_path: Path) -> Desk:
    return finished(tmp_path)


@pytest.fixture
def forge(done: Desk, tmp_path: Path) -> Forge:
    return Forge(done, tmp_path / "forge")


def option(call: dict[str, object], name: str) -> str:
    argv = call["argv"]
    assert isinstance(argv, list)
    return argv[argv.index(name) + 1]


def tip(desk: Desk) -> str:
    return desk.git("rev-parse", "refs/windlass/plan/r1/tip").strip()


class TestOpening:
    def test_base_head_title_and_body_are_right_and_a_second_call_updates(self, done, forge):
        bare = forge.remote()
        answer = done.call("pr", **forge.environment)
        assert (answer.code, answer.out) == (0, "https://github.com/acme/app/pull/1\n")
        assert forge.branch_commit(bare) == tip(done)
        [created] = forge.calls("create")
        assert option(created, "--base") == "main"
        assert option(created, "--head") == BRANCH
        assert option(created, "--title") == TITLE
        assert option(created, "--repo") == "github.com/acme/app"
        assert "--draft" not in created["argv"]
        assert created["prompts"] == "1"
        body = created["body"]
        assert "| 1\\.1 Add the endpoint | completed | 1 | 1 pass |" in body
        assert "- met: answers @\u200beveryone" in body
        assert "\n# " not in body
        assert "<b>" not in body
        assert not list(done.root.rglob("owned"))

        again = done.call("pr", "plan", **forge.environment)
        assert (again.code, again.out) == (0, answer.out)
        assert "Updated" in again.err
        assert len(forge.prs) == 1
        assert len(forge.calls("create")) == 1
        [edited] = forge.calls("edit")
        assert edited["argv"][2] == "1"
        assert option(edited, "--title") == TITLE
        assert edited["body"] == body

    def test_what_people_changed_there_stays(self, done, forge):
        forge.remote()
        done.call("pr", **forge.environment)
        [made] = forge.prs
        made["title"], made["body"] = "By hand", f"Hello\n\n{made['body']}"
        (forge.home / "prs.json").write_text(json.dumps([made]))
        done.call("pr", **forge.environment)
        assert forge.prs[0]["title"] == "By hand"
        assert forge.prs[0]["body"] == made["body"]
        done.call("pr", "--title", "Asked for", **forge.environment)
        assert forge.prs[0]["title"] == "Asked for"

    @pytest.mark.parametrize("title", ['a "b" `c` $(touch owned) $HOME', "two\nlines", "-x; rm *"])
    def test_a_title_is_passed_on_as_it_is(self, done, forge, title: str):
        forge.remote()
        assert done.call("pr", "--title", title, **forge.environment).code == 0
        assert option(forge.calls("create")[0], "--title") == title
        assert not list(done.root.rglob("owned"))

    def test_a_remote_that_is_a_folder_is_left_to_gh(self, done, forge):
        bare = forge.remote(host="")
        assert done.call("pr", **forge.environment).code == 0
        assert "--repo" not in forge.calls("create")[0]["argv"]
        assert forge.branch_commit(bare) == tip(done)

    def test_a_fork_is_pushed_to_and_the_request_is_made_at_home(self, done, forge):
        forge.remote("upstream", "acme/app.git")
        fork = forge.remote("origin", "ann/app.git")
        done.git("config", "branch.main.remote", "upstream")
        done.git("config", "branch.main.merge", "refs/heads/main")
        assert done.call("pr", "--remote", "origin", **forge.environment).code == 0
        assert forge.branch_commit(fork) == tip(done)
        [created] = forge.calls("create")
        assert option(created, "--head") == f"ann:{BRANCH}"
        assert option(created, "--repo") == "github.com/acme/app"

    def test_the_base_is_called_what_the_remote_calls_it(self, done, forge):
        bare = forge.remote()
        done.git("push", "--quiet", str(bare), "main:trunk")
        done.git("config", "branch.main.remote", "origin")
        done.git("config", "branch.main.merge", "refs/heads/trunk")
        assert done.call("pr", **forge.environment).code == 0
        assert option(forge.calls("create")[0], "--base") == "trunk"
        assert done.call("pr", "--base", "nowhere", **forge.environment).code == 2

    def test_a_github_of_ones_own_is_known_by_its_login(self, done, forge):
        forge.remote(host="git.example.com")
        assert done.call("pr", **forge.environment).code == 0
        assert option(forge.calls("create")[0], "--repo") == "git.example.com/acme/app"

    def test_an_answer_that_was_lost_makes_no_second_one(self, done, forge):
        forge.remote()
        forge.set("lies")
        answer = done.call("pr", **forge.environment)
        assert (answer.code, len(forge.prs)) == (0, 1)
        assert "Updated" in answer.err

    def test_anothers_fork_with_such_a_branch_is_not_taken_for_ours(self, done, forge):
        forge.remote()
        theirs = {"number": 9, "state": "OPEN", "headRefName": BRANCH, "title": "Theirs"}
        theirs |= {"headRepositoryOwner": {"login": "mallory"}, "baseRefName": "main"}
        closed = {**theirs, "number": 8, "headRepositoryOwner": None, "state": "MERGED"}
        (forge.home / "prs.json").write_text(json.dumps([theirs, closed]))
        forge.set("shows-all")
        assert done.call("pr", **forge.environment).code == 0
        assert [made["title"] for made in forge.prs] == ["Theirs", "Theirs", TITLE]
        assert forge.calls("edit") == []

    def test_commits_of_the_base_that_nobody_has_there_are_said(self, done, forge):
        bare = forge.remote()
        older = done.git("commit-tree", "main^{tree}", "-m", "older").strip()
        done.git("push", "--quiet", "--force", str(bare), f"{older}:refs/heads/main")
        answer = done.call("pr", **forge.environment)
        assert answer.code == 0
        assert "to push them: git push origin main" in answer.err

    def test_dry_run_reaches_nobody(self, done, forge):
        bare = forge.remote()
        answer = done.call("pr", "--dry-run", **forge.environment)
        assert answer.code == 0
        assert answer.out.startswith(TITLE)
        assert forge.branch_commit(bare) == ""
        assert forge.calls() == []


class TestPushing:
    def test_what_an_earlier_run_pushed_is_replaced(self, done, forge):
        bare = forge.remote()
        other = done.git("commit-tree", "main^{tree}", "-p", "main", "-m", "1.1: older run").strip()
        done.git("update-ref", "refs/windlass/plan/r0/tip", other)
        done.git("push", "--quiet", str(bare), f"{other}:refs/heads/{BRANCH}")
        assert done.call("pr", **forge.environment).code == 0
        assert forge.branch_commit(bare) == tip(done)

    @pytest.mark.parametrize("known", [True, False])
    def test_a_commit_of_somebody_else_is_never_pushed_over(self, done, forge, known: bool):  # noqa: FBT001
        bare = forge.remote()
        assert done.call("pr", **forge.environment).code == 0
        git = ("--git-dir", str(bare)) if not known else ()
        theirs = done.git(*git, "commit-tree", "main^{tree}", "-p", BRANCH, "-m", "x").strip()
        done.git(
            *git, *(() if git else ("push", "-q", str(bare), f"{theirs}:refs/heads/{BRANCH}")),
            *(("update-ref", f"refs/heads/{BRANCH}", theirs) if git else ()),
        )  # fmt: skip
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert "which no run of this plan made; nothing was pushed" in answer.err
        assert "git fetch origin" in answer.err
        assert forge.branch_commit(bare) == theirs
        assert forge.calls("edit") == []

    def test_a_remote_that_refuses_is_said_and_nothing_is_opened(self, done, forge):
        bare = forge.remote()
        hook = bare / "hooks" / "pre-receive"
        hook.write_text("#!/bin/sh\necho 'branches of robots are not wanted' >&2\nexit 1\n")
        hook.chmod(0o755)
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert "branches of robots are not wanted" in answer.err
        assert forge.calls("create") == []
        assert forge.prs == []

    def test_a_pre_push_hook_of_the_user_is_not_passed_by(self, done, forge):
        bare = forge.remote()
        hook = done.repo / ".git" / "hooks" / "pre-push"
        hook.write_text("#!/bin/sh\necho 'a key is in there' >&2\nexit 1\n")
        hook.chmod(0o755)
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert "a key is in there" in answer.err
        assert forge.branch_commit(bare) == ""

    def test_a_login_in_an_address_is_never_shown(self, done, forge):
        done.git("remote", "add", "origin", "http://ann:hunter2hunter2@127.0.0.1:9/acme/app.git")
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert "hunter2" not in answer.err + answer.out
        assert "http://127.0.0.1:9/acme/app.git" in answer.err


class TestByHand:
    def test_without_gh_the_branch_is_pushed_and_the_command_is_said(self, done, forge):
        bare = forge.remote()
        forge.without_gh()
        answer = done.call("pr", **forge.environment)
        assert (answer.code, answer.out) == (3, "")
        assert forge.branch_commit(bare) == tip(done)
        command = answer.err.partition("install gh, then: ")[2].splitlines()[0]
        # A shell takes it as it was meant.
        shown = subprocess.run(
            ["sh", "-c", f'gh() {{ printf "%s\\n" "$@"; }}; {command}'],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        assert shown[:4] == ["pr", "create", "--repo", "github.com/acme/app"]
        assert shown[shown.index("--title") + 1] == TITLE
        body = Path(shown[shown.index("--body-file") + 1]).read_text()
        assert "Add the endpoint" in body
        assert f"https://github.com/acme/app/compare/main...{BRANCH}?expand=1" in answer.err

    @pytest.mark.parametrize(
        ("host", "said"),
        [
            ("gitlab.com", "https://gitlab.com/acme/app/-/merge_requests/new?"),
            ("git.else.example", f"open a merge request of {BRANCH} into main there"),
        ],
    )
    def test_another_forge_is_told_of(self, done, forge, host: str, said: str):
        bare = forge.remote(host=host)
        answer = done.call("pr", **forge.environment)
        assert answer.code == 3
        assert said in answer.err
        assert "pull-request.md" in answer.err
        assert forge.branch_commit(bare) == tip(done)
        assert forge.calls("create") == []


class TestRefusing:
    def test_without_a_remote(self, done, forge):
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert answer.err == (
            "windlass: this repository has no remote to push to; git remote add origin URL\n"
        )
        named = done.call("pr", "--remote", "--upload-pack=x", **forge.environment)
        assert (named.code, "there is no remote" in named.err) == (2, True)

    def test_several_remotes(self, done, forge):
        forge.remote("one")
        forge.remote("two", "acme/two.git")
        answer = done.call("pr", **forge.environment)
        assert (answer.code, "--remote NAME" in answer.err) == (2, True)
        assert done.call("pr", "--remote", "two", **forge.environment).code == 0

    def test_without_the_base_there(self, done, forge):
        bare = forge.remote()
        done.git("--git-dir", str(bare), "update-ref", "-d", "refs/heads/main")
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert "origin has no branch 'main' to merge into; push it: git push origin" in answer.err
        assert forge.branch_commit(bare) == ""

    def test_where_the_base_has_it_all(self, done, forge):
        bare = forge.remote()
        done.git("push", "--quiet", str(bare), f"{tip(done)}:refs/heads/main")
        answer = done.call("pr", **forge.environment)
        assert (answer.code, "has all of it already" in answer.err) == (2, True)

    def test_without_a_login(self, done, forge):
        bare = forge.remote()
        forge.set("logged-out")
        answer = done.call("pr", **forge.environment)
        assert (answer.code, "gh auth login" in answer.err) == (2, True)
        assert forge.branch_commit(bare) == ""

    def test_what_gh_says_is_said(self, done, forge):
        forge.remote()
        forge.set("refuses")
        answer = done.call("pr", **forge.environment)
        assert answer.code == 2
        assert f"{BRANCH} was pushed to origin, but no pull request was opened" in answer.err
        assert "GraphQL: no · more" in answer.err

    def test_a_run_that_is_not_complete_is_shown_as_a_draft_only(self, tmp_path: Path):
        half = finished(tmp_path, failing="bad")
        forge = Forge(half, tmp_path / "forge")
        forge.remote()
        answer = half.call("pr", **forge.environment)
        assert answer.code == 2
        assert "is failed, with 1 of 2 tasks merged" in answer.err
        assert half.call("pr", "--draft", **forge.environment).code == 0
        assert "--draft" in forge.calls("create")[0]["argv"]
        assert "## Not included\n\n- 1\\.2 Document it: abandoned" in forge.prs[0]["body"]

    def test_what_was_never_run(self, desk: Desk):
        assert desk.call("pr").code == 2
        assert desk.call("pr", "plan.md").code == 2
        empty = desk.call("pr", "--title", " ")
        assert (empty.code, "the title is empty" in empty.err) == (2, True)


class TestByAgent:
    DRAFT = Call(
        "StructuredOutput",
        {"title": "Answer health checks, fixes #9", "summary": "Adds it.\n\n@bob: look at $(x)."},
    )

    @pytest.mark.e2e
    def test_the_real_agent_writes_and_its_cost_is_the_runs(self, done, forge, tmp_path: Path):
        forge.remote()
        book = Book(scripts={"Role: Pull request": Script((self.DRAFT,))})
        before = json.loads(done.call("status", "plan", "--json").out)["metrics"]
        with scripted_model(book, tmp_path / "log.jsonl") as url:
            done.model_url = url
            answer = done.call("pr", "--by-agent", **forge.environment)
        assert answer.code == 0, answer
        [created] = forge.calls("create")
        assert option(created, "--title") == "Answer health checks, fixes #\u200b9"
        assert "\nAdds it.\n\n@\u200bbob: look at \\$(x).\n" in created["body"]
        assert "| 1\\.1 Add the endpoint |" in created["body"]
        after = json.loads(done.call("status", "plan", "--json").out)["metrics"]
        assert after["cost_usd"] > before["cost_usd"]
        assert after["elapsed_seconds"] == before["elapsed_seconds"]
        roles = json.loads(done.call("costs", "plan", "--json").out)["role"]
        assert set(roles) == {"player", "coach", "pull request"}
        assert not (done.repo / ".windlass/plans/plan/throwaway/pull-request").exists()
        # The run is as it was, and can still be landed.
        assert done.call("land", "plan").code == 0

    def test_where_nothing_comes_of_it_the_pull_request_goes_without(self, done, forge):
        forge.remote()
        state = Project(done.repo, done.environment).journals.last_run("plan")
        assert state is not None
        spent = e.SpendSettled(at=state.at, id="x", task="1.1", usage=e.Usage(cost_usd=1e6))
        with Project(done.repo, done.environment).journals.session("plan") as session:
            session.note(spent)
        answer = done.call("pr", "--by-agent", **forge.environment)
        assert answer.code == 0, answer
        assert "the pull request is opened without it" in answer.err
        assert option(forge.calls("create")[0], "--title") == TITLE

    def test_without_a_key_nothing_is_pushed(self, done, forge):
        bare = forge.remote()
        without = ("ANTHROPIC_API_KEY",)
        answer = done.call("pr", "--by-agent", without=without, **forge.environment)
        assert (answer.code, "leave --by-agent out" in answer.err) == (2, True)
        assert forge.branch_commit(bare) == ""


class TestAtTheEndOfARun:
    @pytest.mark.parametrize("typed", [b"\n", b"y\n"])
    def test_it_is_asked_on_a_terminal_and_enter_says_no(self, done, forge, typed: bytes):
        forge.remote()
        script = (
            "import os, sys; from pathlib import Path; from windlass.cli.pr import offer;"
            "from windlass.app.wiring import Project;"
            "project = Project(Path('.').resolve(), dict(os.environ));"
            "sys.exit(offer(project, project.journals.last_run('plan'), wish=None))"
        )
        ours, theirs = pty.openpty()
        try:
            with subprocess.Popen(
                [sys.executable, "-c", script],
                cwd=done.repo,
                env={**done.environment, **forge.environment},
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
            ) as process:
                os.write(ours, typed)
                out, _ = process.communicate(timeout=60)
            said = os.read(ours, 10_000).decode()
        finally:
            os.close(ours)
            os.close(theirs)
        assert (process.returncode, out) == (0, "")
        assert "Windlass pushes windlass/plan/integration to your remote" in said
        assert "Create PR for this milestone? [y/N]: " in said
        agreed = typed == b"y\n"
        assert ("https://github.com/acme/app/pull/1" in said) is agreed
        assert len(forge.prs) == agreed

    @pytest.mark.parametrize("wish", [True, False, None])
    def test_a_run_opens_one_only_when_told(self, tmp_path: Path, wish: bool | None):  # noqa: FBT001
        fresh = InProcessDesk(tmp_path)
        fresh.build({"plan.md": PLAN, "README.md": "hello\n"})
        forge = Forge(fresh, tmp_path / "forge")
        forge.remote()
        options = {"pr": wish, "quiet": True, "sandbox": "checkout", "red_base": "go"}
        agent = ScriptedAgent({}, default=lambda brief, _: Play(edits={f"{brief.task}.txt": "x"}))
        environment = {**fresh.environment, **forge.environment}
        with patch.dict(os.environ, environment, clear=True):
            project = Project(fresh.repo, environment)
            request = request_of("plan.md", options, None, agent=agent)
            code = run_plan(project, read_plan(project, "plan.md"), request, options)
        assert code == 0
        assert len(forge.prs) == (1 if wish else 0)

    def test_one_that_cannot_be_opened_needs_a_person(self, done, forge, capsys):
        project = Project(done.repo, done.environment)
        state = project.journals.last_run("plan")
        assert state is not None
        assert offer(project, state, wish=True) == 3
        assert "no remote to push to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("git@github.com:acme/app.git", Place(host="github.com", path="acme/app")),
        ("https://u:p@GitHub.com/acme/app/", Place(host="github.com", path="acme/app")),
        ("ssh://git@github.com:22/acme/app.git", Place(host="github.com", path="acme/app")),
        ("https://gitlab.com/a/b/c.git", Place(host="gitlab.com", path="a/b/c")),
        ("git@github-work:acme/app.git", Place()),
        ("/srv/git/app.git", Place()),
        ("../app.git", Place()),
        ("C:/app.git", Place()),
        ("file:///srv/app.git", Place()),
        ("ext::sh -c x", Place()),
    ],
)
def test_where_a_remote_lies(url: str, place: Place):
    assert place_of(url) == place
