"""Questions asked in place, on a real terminal: while others work, and when nothing else can."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager

import pytest

from e2e.conftest import Play
from e2e.test_screen import OnTerminal
from plans import book, files
from waiting import eventually
from windlass.core.events import model as e
from windlass.testing.model.script import Book, Call, Hang, Script
from windlass.testing.sample import playing, write

pytestmark = pytest.mark.e2e

MakeStage = Callable[[Mapping[str, str], Book], Play]
ALONE = {"a": ()}
BESIDE = {"a": (), "b": ()}


class AtTheKeyboard(OnTerminal):
    """A person at the controlling terminal of a Windlass process."""

    def __init__(self, process: subprocess.Popen[bytes], far: int, near: int) -> None:
        super().__init__(process, far)
        self._near = near
        self.at_first = termios.tcgetattr(near)

    @property
    def is_restored(self) -> bool:
        return termios.tcgetattr(self._near) == self.at_first

    def asks(self, text: str, after: int = 0) -> None:
        """The question is on the screen, and the process takes every key."""
        eventually(lambda: text in self.look()[after:] and not self.is_restored, timeout=60)

    def now(self) -> str:
        """What the screen shows now, without what has scrolled away above the prompt."""
        self.look()
        return self.left.text


@contextmanager
def keyboard(
    play: Play, *args: str, rows: int = 40, columns: int = 120
) -> Generator[AtTheKeyboard]:
    far, near = pty.openpty()
    termios.tcsetwinsize(near, (rows, columns))
    process = subprocess.Popen(
        [sys.executable, "-m", "windlass", *args],
        cwd=play.repo,
        env={**play.environment, "TERM": "xterm-256color", "NO_COLOR": "1"},
        stdin=near,
        stdout=near,
        stderr=near,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(near, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    try:
        yield AtTheKeyboard(process, far, near)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        os.close(near)
        os.close(far)


def asking(question: str) -> Script:
    return Script(
        (
            write("a.txt", "half\n"),
            Call("StructuredOutput", {"summary": "half", "question": question}),
        )
    )


def with_answer(tasks: dict[str, tuple[str, ...]], question: str, answer: str, **more: Script):
    """Task a asks, and its next Player knows the answer."""
    made = book(tasks, a=asking(question), **more)
    knows = playing(write("a.txt", f"{answer}\n"), summary="Done.")
    key = f"Role: Player|Task: a\n|Answer: {answer}"
    return Book(scripts={**made.scripts, key: knows}, default=made.default)


def complex_plan(tasks: dict[str, tuple[str, ...]]) -> dict[str, str]:
    given = files(tasks)
    given["plan.md"] = given["plan.md"].replace(
        "**Depends on:** none", "**Depends on:** none\n\n**Complexity:** 8", 1
    )
    return given


class TestWhileOthersWork:
    def test_a_question_is_answered_and_the_other_task_goes_on(self, stage: MakeStage):  # K5
        hangs = Script((write("b.txt", "by b\n"), Hang()))
        play = stage(files(BESIDE), with_answer(BESIDE, "tabs or spaces?", "spaces", b=hangs))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("? a Write a.txt asks you")
            assert "tabs or spaces?" in person.now()
            assert "● b Write b.txt" in person.now(), "the footer stays below the question"
            person.types("spaxes\x7f\x7f\x7fces")
            eventually(lambda: " > spaces_" in person.now())
            person.types("\r")
            person.shows("DONE")
            assert person.is_restored
            assert "● b Write b.txt" in person.now(), "b still works"
            person.types("\x03")
            assert person.ends() == 4
            assert person.is_restored
        [answered] = [fact for fact in play.journal() if isinstance(fact, e.Answered)]
        assert (answered.text, answered.by) == ("spaces", play.git("config", "user.name").strip())
        assert play.git("show", "windlass/plan/integration:a.txt") == "spaces\n"
        assert "tabs or spaces?" in person.left.text, "the question stays in the scrollback"
        assert " > " not in person.left.text

    def test_escape_leaves_it_for_later_with_the_command(self, stage: MakeStage):
        hangs = Script((write("b.txt", "by b\n"), Hang()))
        play = stage(files(BESIDE), with_answer(BESIDE, "tabs or spaces?", "spaces", b=hangs))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("? a Write a.txt asks you")
            person.types("\x1b")
            person.shows("LATER")
            eventually(lambda: person.is_restored)
            assert 'windlass answer plan:a "…"' in person.now()
            assert "? a Write a.txt asks you" not in person.now()
            assert play.run("answer", "plan:a", "spaces")[0] == 0, "from another terminal"
            person.shows("DONE")
            person.types("\x03")
            assert person.ends() == 4


class TestNothingElseCanRun:
    def test_a_checkpoint_is_passed_in_place_and_the_run_completes(self, stage: MakeStage):  # G8
        play = stage(complex_plan(ALONE), book(ALONE))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("needs your approval to start")
            assert play.seen == [], "nothing is spent before"
            person.types("what?\r")
            person.shows("type approve or yes, then Enter; or Esc")
            person.types("approve\r")
            assert person.ends() == 0
            assert person.is_restored
        kinds = [type(fact) for fact in play.journal()]
        assert kinds.index(e.HelpAwaited) < kinds.index(e.CheckpointPassed)
        assert play.journal()[0].attended

    @pytest.mark.parametrize("key", ["\x03", "\x1b", "\r", "skip\r"])
    def test_leaving_ends_it_with_3_and_the_next_command(self, stage: MakeStage, key: str):
        play = stage(complex_plan(ALONE), book(ALONE))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("needs your approval to start")
            person.types(key)
            assert person.ends() == 3
            assert person.is_restored
        assert "windlass approve plan:a" in person.left.text
        assert "Ctrl-C" not in person.left.text
        end = play.journal()[-1]
        assert isinstance(end, e.RunEnded)
        assert end.status is e.RunEnd.NEEDS_HUMAN
        code, _, err = play.run("resume", "plan.md")
        assert code == 3, "without a terminal it ends as before"
        assert "windlass approve plan:a" in err
        assert play.run("approve", "a")[0] == 0
        assert play.run("resume", "plan.md")[0] == 0

    def test_several_questions_queue(self, stage: MakeStage):
        given = files(BESIDE)
        given["plan.md"] = given["plan.md"].replace(
            "**Depends on:** none", "**Depends on:** none\n\n**Complexity:** 8"
        )
        play = stage(given, book(BESIDE))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("? a Write a.txt needs your approval to start (+1 more)")
            before = len(person.painted)
            person.types("yes\r")
            person.asks("? b Write b.txt needs your approval to start", before)
            person.types("a\r")
            assert person.ends() == 0
        assert play.merges() == ["a", "b"] or play.merges() == ["b", "a"]

    def test_a_red_base_is_accepted_in_place(self, stage: MakeStage):
        play = stage(files(ALONE, checks="test -e a.txt"), book(ALONE))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("? The base does not pass its checks")
            assert "test -e a.txt" in person.now()
            person.types("go\r")
            assert person.ends() == 0
        assert any(isinstance(fact, e.BaseAccepted) for fact in play.journal())

    def test_a_killed_prompt_is_asked_again_by_the_next_process(self, stage: MakeStage):
        play = stage(complex_plan(ALONE), book(ALONE))
        with keyboard(play, "run", "plan.md") as person:
            person.asks("needs your approval to start")
            person.process.kill()
            person.process.wait()
        assert play.run("resume", "plan.md")[0] == 3
        with keyboard(play, "resume", "plan.md") as person:
            person.asks("needs your approval to start")
            person.types("approve\r")
            assert person.ends() == 0

    @pytest.mark.parametrize("option", ["--yes", "--quiet", "--display=plain", "--json"])
    def test_where_it_may_not_ask_it_ends_as_without_a_terminal(
        self, stage: MakeStage, option: str
    ):
        play = stage(complex_plan(ALONE), book(ALONE))
        with keyboard(play, "run", "plan.md", option) as person:
            assert person.ends() == (0 if option == "--yes" else 3)
        assert not play.journal()[0].attended


def test_ctrl_z_restores_the_terminal_and_the_question_comes_back(stage: MakeStage):
    play = stage(complex_plan(ALONE), book(ALONE))
    with keyboard(play, "run", "plan.md") as person:
        person.asks("needs your approval to start")
        os.kill(person.process.pid, signal.SIGTSTP)

        def stopped() -> bool:
            with open(f"/proc/{person.process.pid}/stat") as file:  # noqa: PTH123
                return file.read().rpartition(")")[2].split()[0] == "T"

        eventually(stopped)
        assert person.is_restored
        assert " > " not in person.now()
        before = len(person.painted)
        os.kill(person.process.pid, signal.SIGCONT)
        person.asks("needs your approval to start", before)
        person.types("yes\r")
        assert person.ends() == 0
        assert person.is_restored


HOSTILE = "safe\x1b[2J\x1b[1;1H\x1b]0;owned\x07 and\u202e back\rgone\n" + "word " * 300 + "END"


def test_text_of_an_agent_cannot_act_on_80_columns(stage: MakeStage):  # B5
    play = stage(files(ALONE), with_answer(ALONE, HOSTILE, "spaces"))
    with keyboard(play, "run", "plan.md", rows=24, columns=80) as person:
        person.asks("? a Write a.txt asks you")
        eventually(lambda: "windlass status plan:a" in person.now())
        shown = person.now().splitlines()
        assert all(len(line) < 80 for line in shown)
        prompt = shown[shown.index(next(line for line in shown if line.startswith(" ? a"))) :]
        assert len(prompt) <= 20
        assert prompt[1].strip().startswith("safe")
        assert "─ plan" in "\n".join(prompt), "the footer is below"
        person.types("spaces\r")
        assert person.ends() == 0
    # `left` would have refused an escape that Windlass does not use itself.
    assert person.left.at_rest
    assert not re.search("\x1b\\]|\u202e|\x1b\\[2J", person.painted)
