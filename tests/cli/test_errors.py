"""Bad input: one line that says what, where and the cure; the exit code; and nothing changed."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from desk import Desk
from windlass.adapters.git.inspect import NO_FILTERS, NO_SUBMODULES
from windlass.adapters.locks import PlanLock
from windlass.core.events.model import RunEnd
from windlass.core.plan import Task
from windlass.core.settings import Settings
from worlds import World, plan_of, writes

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


def refused(desk: Desk, *args: str, code: int = 2, without: Iterable[str] = (), **more: str) -> str:
    """What Windlass says as it refuses; that it is one line, and that nothing changed."""
    before = desk.everything()
    answer = desk.call(*args, without=without, **more)
    assert answer.code == code, answer
    if "--json" in args:
        problem = json.loads(answer.out)["error"]
        assert problem.keys() == {"what", "where", "cure", "exit"}
        assert problem["exit"] == code
    else:
        assert answer.out == ""
    assert "Traceback" not in answer.err
    assert answer.err.startswith("windlass: "), answer.err
    assert answer.err.count("\n") == 1, answer.err
    assert desk.everything() == before
    return answer.err.removeprefix("windlass: ").removesuffix("\n")


def world(plan_id: str = "p") -> World:
    """A run of one task, from its first fact to its last."""
    plan = replace(plan_of(Task(id="a", title="A")), id=plan_id, path=f"{plan_id}.md")
    made = World(plan, {"a": writes("a", "1")})
    made.go()
    return made


def tasks(*sections: str) -> str:
    return "# Plan\n\n" + "\n".join(sections)


def task(task_id: str, depends_on: str = "none") -> str:
    return f"## Task {task_id}: Title\n\n**Depends on:** {depends_on}\n"


class TestPlans:
    @pytest.mark.parametrize("command", ["plan", "run", "resume"])
    def test_a_cycle_is_named_with_its_path(self, desk: Desk, command: str):
        desk.write("bad.md", tasks(task("a", "b"), task("b", "a")))
        assert refused(desk, command, "bad.md") == (
            "bad.md:3: tasks wait for each other: a → b → a; remove one of these dependencies"
        )

    def test_an_unknown_dependency_is_named(self, desk: Desk):
        desk.write("bad.md", tasks(task("a"), task("b", "zzz")))
        assert refused(desk, "run", "bad.md") == (
            "bad.md:7: task 'b' depends on 'zzz', which is not in the plan; the plan has a, b"
        )

    def test_an_id_that_is_used_twice_is_named(self, desk: Desk):
        desk.write("bad.md", tasks(task("a"), task("A")))
        assert refused(desk, "run", "bad.md") == (
            "bad.md:7: task id 'A' is already used on line 3;"
            " give each task a different id (case does not count)"
        )

    def test_an_id_that_cannot_name_a_ref_is_refused(self, desk: Desk):
        desk.write("bad.md", tasks(task("a..b")))
        assert refused(desk, "run", "bad.md").startswith(
            "bad.md:3: task id 'a..b' cannot name a ref and a folder; an id is letters, digits"
        )

    def test_a_plan_without_tasks_says_what_a_task_is(self, desk: Desk):
        desk.write("bad.md", "# Only a title\n\nand prose\n")
        assert refused(desk, "run", "bad.md") == (
            "bad.md: no tasks found;"
            " a task is a heading such as '## Task 1.1: Title' outside any code block"
        )

    def test_tasks_in_a_code_block_are_no_tasks(self, desk: Desk):  # K1
        desk.write("bad.md", "# Plan\n\n```\n## Task 1.1: Title\n```\n")
        assert refused(desk, "run", "bad.md") == (
            "bad.md:4: no tasks found;"
            " this line looks like a task, but is in the code block that begins on line 3"
        )

    def test_an_empty_file_is_refused(self, desk: Desk):
        desk.write("bad.md", "")
        assert refused(desk, "run", "bad.md").startswith("bad.md: the file is empty; a plan is ")

    def test_garbage_is_refused(self, desk: Desk):
        desk.write("bad.md", b"\x7fELF\x02\x01\x01\x00\x00" + bytes(range(256)) * 9)
        assert refused(desk, "run", "bad.md").startswith(
            "bad.md:1: the file is not text: it has a NUL byte; a plan is Markdown"
        )

    def test_what_is_not_utf_8_is_refused_with_its_line(self, desk: Desk):
        desk.write("bad.md", b"# Plan\n\n## Task 1: Caf\xe9\n")
        assert refused(desk, "run", "bad.md").startswith("bad.md:3: the file is not UTF-8 text; ")

    def test_a_file_that_is_not_there_is_refused(self, desk: Desk):
        assert refused(desk, "run", "nope.md") == (
            "nope.md: no such file or plan; name a Markdown file with tasks"
        )

    def test_a_folder_that_is_no_plan_is_refused(self, desk: Desk):
        desk.write("docs/plan.md", tasks(task("a")))
        assert refused(desk, "run", "docs") == (
            "docs: the folder as a whole is no plan; name a file in it: docs/plan.md"
        )

    def test_a_file_that_cannot_be_read_is_refused(self, desk: Desk):
        desk.write("bad.md", "x")
        (desk.repo / "bad.md").chmod(0)
        desk.without_privileges()
        assert refused(desk, "run", "bad.md") == "bad.md: Permission denied"

    def test_a_folder_that_cannot_be_read_is_refused(self, desk: Desk):
        desk.write("p/sub/a.md", tasks(task("a")))
        (desk.repo / "p/sub").chmod(0)
        desk.without_privileges()
        assert refused(desk, "plan", "p") == "p/sub/: Permission denied"
        (desk.repo / "p/sub").chmod(0o755)

    def test_a_name_with_a_line_break_and_escapes_stays_one_harmless_line(self, desk: Desk):
        assert refused(desk, "run", "no\nsuch\x1b[2J.md") == (
            "no such [2J.md: no such file or plan; name a Markdown file with tasks"
        )

    @pytest.mark.parametrize("name", [b"caf\xe9.md", b"a\nb.md", b"\x1b[2J.md"])
    def test_a_name_that_is_no_text_is_refused(self, desk: Desk, name: bytes):
        typed = os.fsdecode(name)
        desk.write(typed, tasks(task("a")))
        assert refused(desk, "run", typed).endswith(
            ": the file's name is not plain text; rename it"
        )


class TestRepositories:
    def test_outside_of_a_repository(self, desk: Desk, tmp_path: Path):
        desk.directory = tmp_path / "elsewhere"
        desk.directory.mkdir()
        ceiling = str(tmp_path)
        said = refused(desk, "run", "plan.md", GIT_CEILING_DIRECTORIES=ceiling)
        assert said == (
            f"{desk.directory} is not in a git repository;"
            " run this inside one, or create one with `git init`"
        )

    def test_a_folder_that_is_not_there(self, desk: Desk):
        why = refused(desk, "plan", "p.md", "--repo", "nope")
        assert why == f"{desk.repo}/nope is not a folder"

    @pytest.mark.parametrize("command", ["run", "plan"])
    def test_a_bare_repository(self, desk: Desk, tmp_path: Path, command: str):
        desk.directory = tmp_path / "bare.git"
        subprocess.run(["git", "init", "--quiet", "--bare", str(desk.directory)], check=True)
        assert refused(desk, command, "plan.md") == (
            f"{desk.directory} is a bare repository;"
            " Windlass needs a checkout to read the plan from: clone it and run there"
        )

    def test_inside_the_git_directory(self, desk: Desk):
        desk.directory = desk.repo / ".git"
        assert refused(desk, "status") == (
            f"{desk.directory} is inside a git directory; run this in the checkout it belongs to"
        )

    def test_a_folder_whose_name_is_no_text(self, desk: Desk):
        elsewhere = desk.repo.with_name(os.fsdecode(b"caf\xe9"))
        desk.repo.rename(elsewhere)
        desk.repo = desk.directory = elsewhere
        assert refused(desk, "run", "plan.md") == (
            f"{str(elsewhere)!r} is in a folder whose name is not UTF-8; rename the folder"
        )

    def test_a_repository_without_a_commit(self, desk: Desk):
        desk.git("update-ref", "-d", "HEAD")
        assert refused(desk, "run", "plan.md") == (
            "this repository has no commit yet; make a first one: git commit --allow-empty"
        )

    def test_a_submodule(self, desk: Desk):
        head = desk.git("rev-parse", "HEAD").strip()
        desk.git("update-index", "--add", "--cacheinfo", f"160000,{head},vendor/lib")
        desk.git("commit", "--quiet", "--message", "Add a submodule")
        assert refused(desk, "run", "plan.md") == (
            f"the repository has a submodule at 'vendor/lib'; {NO_SUBMODULES}"
        )

    def test_large_file_storage(self, desk: Desk):
        desk.commit("assets/.gitattributes", "*.png filter=lfs diff=lfs merge=lfs -text\n")
        said = refused(desk, "run", "plan.md")
        assert said.startswith("the repository uses the filter 'lfs' (")
        assert said.endswith(f"; {NO_FILTERS}")

    def test_nobody_to_commit_as(self, desk: Desk):
        desk.git("config", "--unset", "user.name")
        desk.git("config", "--unset", "user.email")
        assert refused(desk, "run", "plan.md", GIT_CONFIG_NOSYSTEM="1") == (
            "git has no name and email for commits here;"
            ' set them: git config user.name "Your Name"; git config user.email you@host'
        )

    def test_a_base_that_is_no_commit(self, desk: Desk):
        desk.write("windlass.toml", 'base = "nowhere"\n')
        assert refused(desk, "run", "plan.md") == (
            "the base 'nowhere' is not a commit here; name a branch or a commit that exists"
        )

    def test_a_branch_in_the_way_of_ours(self, desk: Desk):
        desk.git("branch", "windlass/plan")
        assert refused(desk, "run", "plan.md") == (
            "branch 'windlass/plan' is in the way of 'windlass/plan/integration';"
            " rename it: git branch -m windlass/plan windlass-plan-old"
        )

    @pytest.mark.parametrize("hidden", [".windlass", ".windlass/plans/p"])
    def test_what_windlass_keeps_may_not_be_read(self, desk: Desk, hidden: str):
        """It is not lost, and `recover` is no cure: git has the run as well."""
        desk.record("p", world().events)
        desk.git("update-ref", "refs/windlass/p/r1/tip", "HEAD")
        desk.without_privileges()
        (desk.repo / hidden).chmod(0o000)
        try:
            for command in ("status", "report", "log", "resume", "doctor"):
                named = ["p"] if command in {"log", "resume"} else []
                # Without privileges there may be no walls either, which is not the matter here.
                answer = desk.call(command, *named, WINDLASS_SANDBOX_LEVEL="checkout")
                told = answer.out if command == "doctor" else answer.err
                assert "cannot be read: Permission denied" in told, command
                assert f"{desk.repo}/{hidden}" in told
                assert "recover" not in told
                assert answer.code == (0 if command == "doctor" and "plans" in hidden else 2)
        finally:
            (desk.repo / hidden).chmod(0o755)

    def test_a_home_that_is_to_be_read_as_a_whole(self, desk: Desk):
        desk.write("windlass.toml", f'[sandbox]\nread = ["{desk.home}"]\n')
        assert refused(desk, "run", "plan.md") == (
            f"[sandbox] read names '{desk.home}', which holds keys and logins;"
            " name a folder without them, or pass single values with [sandbox] env"
        )


class TestConfiguration:
    CURE = "; `windlass doctor` lists every key and its bounds"

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (
                'model = "m"\nmax_turn = 3\n',
                "windlass.toml:2: unknown key 'max_turn'; did you mean 'max_turns'?",
            ),
            (
                "[workspace]\n\nsetupp = []\n",
                "windlass.toml:3: unknown key 'workspace.setupp'; did you mean 'workspace.setup'?",
            ),
            ("agents = 0\n", "windlass.toml:1: agents: expected `int` >= 1"),
            ('\nagents = "many"\n', "windlass.toml:2: agents: expected `int`, got `str`"),
            (
                '[sandbox]\nlevel = "strong"\n',
                "windlass.toml:2: sandbox.level: invalid enum value 'strong'",
            ),
            ('checks = ["ok", ""]\n', "windlass.toml:1: checks: expected `str` of length >= 1"),
        ],
    )
    def test_a_bad_key_or_value_is_named_with_its_line(self, desk: Desk, text: str, said: str):
        desk.write("windlass.toml", text)
        cure = self.CURE.removeprefix(";") if said.endswith("?") else self.CURE
        assert refused(desk, "run", "plan.md") == said + cure

    def test_a_file_that_is_no_toml(self, desk: Desk):
        desk.write("windlass.toml", "agents = = 3\n")
        assert refused(desk, "run", "plan.md") == (
            "windlass.toml is not TOML: Invalid value (at line 1, column 10); correct that line"
        )

    def test_a_file_that_is_no_text(self, desk: Desk):
        desk.write("windlass.toml", b"model = '\xff'\n")
        assert refused(desk, "run", "plan.md") == (
            "windlass.toml:1: the file is not UTF-8 text; save it as UTF-8"
        )

    def test_a_folder_in_its_place_is_not_passed_over(self, desk: Desk):
        (desk.repo / "windlass.toml").mkdir()
        said = refused(desk, "run", "plan.md")
        assert said == "windlass.toml cannot be read: Is a directory; replace or remove it"

    def test_a_link_that_leads_nowhere_is_not_passed_over(self, desk: Desk):
        (desk.repo / "windlass.toml").symlink_to("nowhere")
        answer = desk.call("run", "plan.md")
        assert (answer.code, answer.out) == (2, "")
        assert answer.err == (
            "windlass: windlass.toml cannot be read: No such file or directory;"
            " replace or remove it\n"
        )

    def test_a_byte_order_mark_is_no_key(self, desk: Desk):
        desk.write("windlass.toml", b"\xef\xbb\xbfagents = 0\r\n")
        assert refused(desk, "run", "plan.md") == (
            "windlass.toml:1: agents: expected `int` >= 1" + self.CURE
        )

    def test_a_bad_key_in_pyproject(self, desk: Desk):
        desk.write("pyproject.toml", '[project]\nname = "x"\n[tool.windlass]\nturns = 3\n')
        assert refused(desk, "run", "plan.md") == (
            "pyproject.toml:4: unknown key 'turns'; did you mean 'max_turns'?"
            + self.CURE.removeprefix(";")
        )

    def test_a_bad_variable(self, desk: Desk):
        assert refused(desk, "run", "plan.md", WINDLASS_AGENTS="banana") == (
            "WINDLASS_AGENTS: agents: expected `int`, got `str`" + self.CURE
        )

    def test_no_sandbox_is_no_setting(self, desk: Desk):  # B5
        assert refused(desk, "run", "plan.md", WINDLASS_SANDBOX_LEVEL="none") == (
            "WINDLASS_SANDBOX_LEVEL: a setting cannot turn the sandbox off;"
            " turn it off for one run: --sandbox none"
        )

    def test_a_bad_option(self, desk: Desk):
        assert refused(desk, "run", "plan.md", "--agents", "0") == (
            "option --agents: agents: expected `int` >= 1" + self.CURE
        )
        assert refused(desk, "run", "plan.md", "--max-cost", "-1") == (
            "option --max-cost: max_cost: expected `float` > 0.0" + self.CURE
        )

    @pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
    def test_walls_that_are_asked_for_and_not_there(self, desk: Desk):
        desk.without_bubblewrap()
        assert refused(desk, "run", "plan.md", "--sandbox", "bwrap") == (
            "the sandbox level 'bwrap' does not work here: bubblewrap (`bwrap`) is not installed;"
            " install bubblewrap (`apt install bubblewrap`), or use `--sandbox checkout`"
        )

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (["--resume", "--restart"], "--resume and --restart exclude each other"),
            (
                ["--quiet", "--verbose"],
                "--quiet and --verbose exclude each other",
            ),
        ],
    )
    def test_options_against_each_other(self, desk: Desk, args: list[str], said: str):
        assert refused(desk, "run", "plan.md", *args) == f"{said}; use one"


class TestUsage:
    """Usage is click's to say, in its own form."""

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (["haul"], "Error: No such command 'haul'."),
            (["run", "--hard", "plan.md"], "Error: No such option '--hard'."),
            (["run"], "Error: Missing argument 'PLAN'."),
            (["run", "plan.md", "--agents", "x"], "'x' is not a valid integer."),
            (["run", "plan.md", "--sandbox", "strong"], "'strong' is not one of 'auto', 'bwrap'"),
            (["run", "plan.md", "again.md"], "Error: Got unexpected extra argument (again.md)"),
        ],
    )
    def test_bad_usage_is_exit_2(self, desk: Desk, args: list[str], said: str):
        before = desk.everything()
        answer = desk.call(*args)
        assert (answer.code, answer.out) == (2, "")
        assert re.match(r"Usage: windlass .*\nTry 'windlass.* --help' for help\.\n", answer.err)
        assert said in answer.err
        assert "Traceback" not in answer.err
        assert desk.everything() == before

    def test_no_command_at_all_is_help(self, desk: Desk):
        answer = desk.call()
        assert (answer.code, answer.out) == (2, "")
        assert answer.err.startswith("Usage: windlass [OPTIONS] COMMAND")


class TestRuns:
    @pytest.mark.parametrize("more", [{}, {"ANTHROPIC_API_KEY": ""}, {"ANTHROPIC_API_KEY": " "}])
    @pytest.mark.parametrize("command", ["run", "resume"])
    def test_no_key(self, desk: Desk, command: str, more: dict[str, str]):
        without = () if more else KEYS
        assert refused(desk, command, "plan.md", without=without, **more) == (
            "no key for the agent in the environment;"
            " set ANTHROPIC_API_KEY, or try `windlass demo`, which needs none"
        )

    @pytest.mark.parametrize("args", [["resume", "plan.md"], ["run", "plan.md", "--resume"]])
    def test_nothing_to_resume(self, desk: Desk, args: list[str]):  # K3
        assert refused(desk, *args) == (
            "nothing to resume: plan 'plan' was never run here;"
            " start a new one: windlass run plan.md"
        )

    @pytest.mark.parametrize("command", ["resume", "stop", "log"])
    def test_no_run_at_all(self, desk: Desk, command: str):  # K3
        assert refused(desk, command) == (
            "there is no unfinished run here; start one: windlass run PLAN"
        )

    def test_status_without_any_run(self, desk: Desk):
        assert refused(desk, "status") == ("no plan was run here yet; start one: windlass run PLAN")
        assert refused(desk, "status", "plan.md", "--json") == (
            "plan 'plan' was never run here; start it: windlass run plan.md"
        )

    def test_diff_of_an_unknown_task(self, desk: Desk):
        assert refused(desk, "diff", "9.9") == (
            "no plan that was run here has a task '9.9'; start one: windlass run PLAN"
        )
        assert refused(desk, "diff", "plan:9.9") == (
            "plan: no such file or plan; did you mean 'plan.md'? name a Markdown file with tasks"
        )

    def test_stop_of_a_plan_that_was_never_run(self, desk: Desk):
        assert refused(desk, "stop", "plan.md") == (
            "plan 'plan' was never run here; start it: windlass run plan.md"
        )

    def test_a_second_run_of_a_plan(self, desk: Desk):  # K4
        desk.record("plan", [])
        desk.write(".windlass/.gitignore", "*\n")
        with PlanLock(desk.repo / ".windlass/plans/plan/lock"):
            said = refused(desk, "run", "plan.md", code=5)
        assert said == (
            f"plan 'plan' is already running (PID {os.getpid()}); `windlass status` shows it"
        )

    def test_a_lock_that_a_dead_run_left_is_harmless(self, desk: Desk):  # K4
        desk.record("p", world().events)
        desk.write(".windlass/plans/p/lock", '{"pid":1,"boot":"","started":"","plan":"p"}')
        assert desk.call("status", "p").code == 0

    def test_a_finished_run_is_not_resumed(self, desk: Desk):  # K3
        desk.write("p.md", tasks(task("a")))
        desk.record("p", world().events)
        told = refused(desk, "resume", "p.md")
        # The plan was written anew, so its one task says something else than what was merged.
        assert told.startswith("nothing to resume: plan 'p' is completed, and the text of a has")
        assert told.endswith("; or run it all again: windlass run p.md --restart")
        assert refused(desk, "resume").startswith(
            "there is no unfinished run here: p (completed); `windlass retry p:a` redoes it"
        )
        desk.write("p.md", "no plan any more")
        assert refused(desk, "resume") == (
            "there is no unfinished run here: p (completed); start one: windlass run PLAN"
        )
        assert refused(desk, "stop", "p") == "no run of 'p' is in progress; `windlass status`"

    def test_an_unfinished_run_needs_a_word(self, desk: Desk):
        desk.write("p.md", tasks(task("a")))
        desk.record("p", world().events[:4])
        answer = desk.call("run", "p.md")
        assert (answer.code, answer.out) == (3, "")
        assert answer.err == (
            "windlass: Run r1 of p is in_progress: 0 of 1 task merged;"
            " continue with `windlass resume p.md`;"
            " `windlass run p.md --restart` starts a new run\n"
        )

    def test_a_run_whose_budget_is_used_up_needs_more_of_it(self, desk: Desk):
        desk.write("p.md", tasks(task("a")))
        budget = Settings(max_cost=0.001)
        spent = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")}, settings=budget)
        spent.go()
        assert spent.state.ended is RunEnd.LIMIT
        desk.record("p", spent.events)
        answer = desk.call("run", "p.md")
        assert answer.code == 3
        assert "continue with `windlass resume p.md --max-cost 0.01`; " in answer.err

    def test_several_unfinished_runs_are_listed(self, desk: Desk):
        for name in ("p", "q"):
            desk.record(name, world(name).events[:4])
        assert refused(desk, "resume") == (
            "several runs are unfinished: p (in_progress), q (in_progress); name the plan"
        )
        assert refused(desk, "diff", "a") == ("several plans have a task 'a'; say which: p:a, q:a")

    def test_a_task_that_the_plan_does_not_have(self, desk: Desk):
        desk.record("p", world().events[:2])
        assert (
            refused(desk, "diff", "p:z") == "plan 'p' has no task 'z'; `windlass status` lists them"
        )
        assert (
            refused(desk, "log", "p:z") == "plan 'p' has no task 'z'; `windlass status` lists them"
        )
        assert refused(desk, "log", "--task", "z") == "plan 'p' has no task 'z'; it has a"
        assert refused(desk, "diff", "a") == (
            "task 'a' has not been started; `windlass status` shows all"
        )

    def test_a_plan_whose_file_is_gone(self, desk: Desk):
        desk.record("p", world().events[:4])
        assert refused(desk, "run", "p") == "p.md: the plan's file is gone; put it back"

    def test_log_of_an_unknown_plan(self, desk: Desk):
        assert refused(desk, "log", "nope") == (
            "nope: no such file or plan; name a Markdown file with tasks"
        )

    def test_log_of_a_plan_that_was_never_run(self, desk: Desk):
        assert refused(desk, "log", "plan.md") == (
            "plan 'plan' was never run here; start it: windlass run plan.md"
        )
