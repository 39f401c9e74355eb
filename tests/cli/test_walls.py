"""Agents without walls are for a person to allow: asked on a terminal, refused elsewhere."""  # B5

import os
import pty
import select
import shutil
import subprocess
import sys
import time

import pytest

from desk import Answer, Desk
from windlass.app.plans import read_plan
from windlass.app.wiring import Project
from windlass.app.wiring.configuration import configure
from windlass.app.wiring.facts import ended, started
from windlass.core.events import model as e
from windlass.core.settings import Level

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

MISSING = "no sandbox works here (bwrap: bubblewrap (`bwrap`) is not installed; seatbelt: "
INSTALL = "install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`, …"
SAY = "; or allow it: `windlass {command} --sandbox checkout` runs without walls"


def refused(desk: Desk, *args: str) -> str:
    """What Windlass says as it refuses with exit code 3, and that nothing changed."""
    before = desk.everything()
    answer = desk.call(*args)
    assert (answer.code, answer.out) == (3, ""), answer
    assert desk.everything() == before
    return answer.err.removeprefix("windlass: ").removesuffix("\n")


def unfinished(desk: Desk, level: Level) -> None:
    """Record a run that was stopped, at that level."""
    project = Project(desk.repo, desk.environment)
    plan = read_plan(project, "plan.md")
    found = configure(project.root, project.environment, {})
    base = project.git.base(None, plan.id)
    first = started("r1", plan, found.settings, base, level, configured=found.configured)
    desk.record(plan.id, [first, ended(e.RunEnd.STOPPED, "stopped")])


def red(desk: Desk) -> None:
    """Let runs end before any agent begins: the base fails its check."""
    desk.commit("windlass.toml", 'checks = ["false"]\n[policy]\nred_base = "stop"\n')


def on_terminal(desk: Desk, typed: str, *args: str) -> Answer:
    """A command whose questions get this answer."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*desk.under, sys.executable, "-m", "windlass", *args],
        cwd=desk.repo,
        env=desk.environment,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    )
    os.close(theirs)
    os.write(ours, typed.encode())
    said, deadline = b"", time.monotonic() + 60
    while time.monotonic() < deadline and (
        select.select([ours], [], [], 0.1)[0] or process.poll() is None
    ):
        try:
            said += os.read(ours, 4096)
        except OSError:  # the other side has ended
            break
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    return Answer(process.returncode, out, said.decode().replace("\r\n", "\n"))


class TestNoWalls:
    def test_unattended_nothing_begins(self, desk: Desk):
        desk.without_bubblewrap()
        said = refused(desk, "run", "plan.md")
        assert said.startswith(MISSING)
        assert said.endswith(INSTALL + SAY.format(command="run plan.md"))

    def test_an_answer_to_other_questions_is_none_to_this(self, desk: Desk):
        desk.without_bubblewrap()
        assert refused(desk, "run", "plan.md", "--yes").startswith(MISSING)

    def test_asking_for_what_is_the_default_is_no_word(self, desk: Desk):
        desk.without_bubblewrap()
        assert refused(desk, "run", "plan.md", "--sandbox", "auto").startswith(MISSING)

    @pytest.mark.parametrize("typed", ["\n", "n\n"])
    def test_on_a_terminal_the_default_is_no(self, desk: Desk, typed: str):
        desk.without_bubblewrap()
        before = desk.everything()
        answer = on_terminal(desk, typed, "run", "plan.md")
        assert answer.code == 3
        assert "Agents" not in answer.out
        assert "At level checkout, agents can read and write everything that you can." in answer.err
        assert "Continue at level checkout? [y/N]: " in answer.err
        assert desk.everything() == before

    def test_on_a_terminal_a_person_may_allow_it(self, desk: Desk):
        red(desk)
        desk.without_bubblewrap()
        answer = on_terminal(desk, "y\n", "run", "plan.md")
        assert "level checkout: agents are not sandboxed" in answer.err
        state = Project(desk.repo, desk.environment).journals.last_run("plan")
        assert state is not None
        assert (state.sandbox, state.settings.sandbox.level) == ("checkout", "checkout")

    @pytest.mark.parametrize("how", ["option", "file", "variable"])
    def test_words_are_enough(self, desk: Desk, how: str):
        red(desk)
        desk.without_bubblewrap()
        if how == "file":
            text = (desk.repo / "windlass.toml").read_text() + '[sandbox]\nlevel = "checkout"\n'
            desk.commit("windlass.toml", text)
        options = ("--sandbox", "checkout") if how == "option" else ()
        more = {"WINDLASS_SANDBOX_LEVEL": "checkout"} if how == "variable" else {}
        answer = desk.call("run", "plan.md", *options, **more)
        assert "level checkout: agents are not sandboxed" in answer.err
        state = Project(desk.repo, desk.environment).journals.last_run("plan")
        assert state is not None
        assert state.sandbox == "checkout"

    @pytest.mark.parametrize("command", ["demo", "selftest crash"])
    def test_rehearsals_go_by_the_same_rule(self, desk: Desk, command: str):
        desk.without_bubblewrap()
        said = refused(desk, *command.split())
        assert said.startswith("no sandbox works here (bwrap: ")
        assert said.endswith(SAY.format(command=command))

    def test_what_starts_no_agent_needs_no_walls(self, desk: Desk):
        unfinished(desk, "bwrap")
        desk.without_bubblewrap()
        assert desk.call("plan", "plan.md").code == 0
        assert desk.call("status").code == 0


class TestLowerLevels:
    def test_a_run_with_walls_does_not_go_on_without(self, desk: Desk):
        unfinished(desk, "bwrap")
        desk.without_bubblewrap()
        said = refused(desk, "resume", "plan.md")
        assert said.startswith(MISSING)
        assert said.endswith(SAY.format(command="resume plan.md"))

    @pytest.mark.parametrize("verb", ["resume", "run"])
    def test_not_even_where_a_file_says_so(self, desk: Desk, verb: str):
        unfinished(desk, "bwrap")
        desk.write("windlass.toml", '[sandbox]\nlevel = "checkout"\n')
        said = refused(desk, verb, "plan.md")
        assert said.startswith("the run had level bwrap, and would continue at level checkout; ")
        assert said.endswith(SAY.format(command="resume plan.md"))

    def test_on_a_terminal_it_is_asked(self, desk: Desk):
        unfinished(desk, "bwrap")
        desk.write("windlass.toml", '[sandbox]\nlevel = "checkout"\n')
        answer = on_terminal(desk, "n\n", "resume", "plan.md")
        assert answer.code == 3
        assert "The run had level bwrap, and would continue at level checkout." in answer.err
        assert "Continue at level checkout? [y/N]: " in answer.err

    def test_an_option_is_a_word(self, desk: Desk):
        red(desk)
        unfinished(desk, "bwrap")
        answer = desk.call("resume", "plan.md", "--sandbox", "checkout")
        assert "level checkout: agents are not sandboxed" in answer.err

    def test_a_stronger_one_needs_none(self, desk: Desk):
        red(desk)
        unfinished(desk, "checkout")
        answer = desk.call("resume", "plan.md")
        assert "not sandboxed" not in answer.err
        state = Project(desk.repo, desk.environment).journals.last_run("plan")
        assert state is not None
        assert state.sandbox == "bwrap"
