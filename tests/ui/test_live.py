"""The live screen on a terminal: what stays, what scrolls, what is left when it ends."""  # G12 K6

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta, timezone

import pytest

from recorded_run import RecordedRun, tasks
from terminal import Terminal
from windlass.cli.screens.live import LiveScreen
from windlass.core.events import model as e
from windlass.core.events.model import Entry
from windlass.core.plan import Task
from windlass.core.state import RunState, apply
from windlass.ports import Activity
from windlass.views.lines import Line
from worlds import NOON, World, plan_of, writes

HOSTILE = "\x1b[2J\x1b[H\x1b]0;owned\x07[bold]x[/bold]\rback\x1b[?1049h"


ENDED = apply(None, World(plan_of(Task(id="a", title="A")), {}).first(None, None))
"""Some state: this screen shows lines alone at the end."""


class Watched:
    """A live screen on a terminal, with a clock of its own."""

    def __init__(self, *, columns: int = 80, verbose: bool = False, **more: bool) -> None:
        self.terminal = Terminal()
        self.size = os.terminal_size((columns, 24))
        self.now = NOON
        self.typed = ""
        self.screen = LiveScreen(
            self.terminal,  # pyright: ignore[reportArgumentType]
            now=lambda: self.now,
            colour=more.get("colour", False),
            verbose=verbose,
            plain_letters=more.get("plain_letters", False),
            size=lambda: self.size,
            entered=self._take,
        )
        self.screen._painting = True

    def types(self, text: str) -> None:
        """As a terminal shows it, where the cursor stands."""
        self.typed += text
        self.terminal.write(text)

    def _take(self) -> str:
        text, self.typed = self.typed, ""
        return text

    def play(self, world: World, until: Callable[[e.Event], bool]) -> RunState:
        state = None
        for seq, event in enumerate(world.events, 1):
            state = apply(state, event)
            self.screen.entry(Entry(seq=seq, event=event), state)
            self.screen.paint()
            if until(event):
                break
        assert state is not None
        return state


def ran(*tasks: Task) -> World:
    world = World(plan_of(*tasks), {task.id: writes(task.id, "x") for task in tasks})
    world.go()
    return world


A, B = Task(id="a", title="First"), Task(id="b", title="Second", depends_on=("a",))


def second_player(event: e.Event) -> bool:
    return isinstance(event, e.PlayerStarted) and event.task == "b"


def test_results_scroll_and_one_footer_stays():
    watched = Watched()
    watched.play(ran(A, B), second_player)
    text = watched.terminal.text
    assert text.count("─ p ─ r1 ─") == 1
    assert text.index("START") < text.index("DONE") < text.index("─ p ─ r1 ─ 1/2 done")
    assert " ● b Second  1/5 Player" in text
    assert "PLAYER" not in text  # the footer says so
    assert watched.terminal.at_rest


def test_at_the_end_the_footer_is_gone_and_what_happened_is_there():
    watched = Watched()
    watched.play(ran(A, B), second_player)
    watched.screen.closing(
        ENDED, 1, [Line("Summary", "2 tasks", (), 7651.0), Line("Next", "windlass land")]
    )
    text = watched.terminal.text
    assert "─ p ─" not in text
    assert "Ctrl-C" not in text
    assert "     Summary [2h07m31s] 2 tasks\n        Next            windlass land" in text
    assert watched.terminal.lines[-1] == ""


def test_a_crash_leaves_no_footer():
    watched = Watched()

    def crash() -> None:
        with watched.screen:
            watched.play(ran(A, B), second_player)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        crash()
    assert "Ctrl-C" not in watched.terminal.text
    assert "DONE" in watched.terminal.text
    assert watched.terminal.at_rest


def test_nothing_an_agent_says_moves_the_cursor():
    watched = Watched(verbose=True)
    watched.play(ran(A, B), second_player)
    watched.screen.activity(Activity(task="b", kind="tool", text=HOSTILE))
    watched.screen.activity(Activity(task="b", kind="text", text=HOSTILE))
    watched.screen.say("NOTE", HOSTILE)
    watched.screen.paint()  # the terminal raises for what it is not to be told
    assert "[bold]x[/bold] back" in watched.terminal.text
    assert watched.terminal.text.count("─ p ─ r1 ─") == 1


def test_what_agents_say_is_folded_beside_the_words():
    watched = Watched(verbose=True)
    watched.play(ran(A, B), second_player)
    long = "Running: python -m pytest -q tests/test_sessions.py tests/test_passwords.py --no-header"
    watched.screen.activity(Activity(task="b", kind="tool", text=long))
    watched.screen.paint()
    lines = watched.terminal.text.splitlines()
    at = next(n for n, line in enumerate(lines) if "Running" in line)
    assert max(map(len, lines)) <= 80
    assert lines[at].startswith(" " * 24 + "b → Running:")
    assert lines[at + 1].startswith(" " * 24 + "tests/")


def test_nothing_is_written_where_nothing_has_changed():
    watched = Watched()
    watched.play(ran(A, B), second_player)
    written: list[str] = []
    watched.terminal.write = written.append  # pyright: ignore[reportAttributeAccessIssue]
    watched.screen.paint()
    assert written == []
    watched.now += timedelta(seconds=1)
    watched.screen.paint()
    assert len(written) == 1


def test_a_terminal_that_is_made_narrower_keeps_no_old_rows():
    watched = Watched(columns=120)
    watched.play(ran(A, B), second_player)
    # As a terminal does: what is wider than it is now goes on in the next line.
    terminal = watched.terminal
    terminal.lines = [
        line[i : i + 60] for line in terminal.lines for i in range(0, len(line) or 1, 60)
    ]
    terminal.row = len(terminal.lines) - 1
    watched.size = os.terminal_size((60, 24))
    watched.screen.paint()
    assert terminal.text.count("─ p ─") == 1
    assert terminal.text.count("● b Second") == 1


@pytest.mark.parametrize("typed", ["\n", "\n\n\n", "hello?\n", "ls\n\n -l\n"])
def test_what_a_person_enters_leaves_no_old_rows(typed: str):
    watched = Watched()
    watched.play(ran(A, B), second_player)
    before = watched.terminal.text
    watched.types(typed)
    watched.screen.paint()
    assert watched.terminal.text == before
    watched.types(typed)
    watched.screen.closing(ENDED, 1, [])
    assert "Ctrl-C" not in watched.terminal.text
    assert "─ p ─" not in watched.terminal.text


def test_a_long_line_that_a_person_enters_is_counted_by_its_rows():
    watched = Watched()
    watched.play(ran(A, B), second_player)
    before, last = watched.terminal.text, len(watched.terminal.lines[-1])
    typed = "x" * 200
    watched.typed += f"{typed}\n"
    # As a terminal does: what does not fit goes on in the next row.
    row = " " * last + typed
    for start in range(0, len(row), 80):
        watched.terminal.write(f"{row[max(start, last) : start + 80]}\n")
    watched.screen.paint()
    assert watched.terminal.text == before


def test_long_lines_are_folded_below_their_text():
    watched = Watched()
    watched.screen.say("WARNING", "word " * 30)
    watched.screen.closing(ENDED, 1, [])
    lines = [line for line in watched.terminal.lines if line]
    assert lines[0].startswith("     WARNING            word word")
    assert all(line.startswith(" " * 24 + "word") for line in lines[1:])
    assert all(len(line) < 80 for line in lines)


def test_without_other_letters_only_ascii_is_written():
    watched = Watched(plain_letters=True)
    watched.play(ran(A, B), second_player)
    assert watched.terminal.text.isascii()
    assert "- p - r1 -" in watched.terminal.text


def test_colour_ends_where_it_began():
    watched, written = Watched(colour=True), list[str]()
    plain = watched.terminal.write
    watched.terminal.write = lambda text: written.append(text) or plain(text)  # pyright: ignore[reportAttributeAccessIssue]
    watched.play(ran(A, B), second_player)
    said = "".join(written)
    assert "\x1b[32m        DONE\x1b[0m" in said
    codes = re.findall(r"\x1b\[([0-9;]*)m", said)
    assert set(codes[1::2]) == {"0"}
    assert "0" not in codes[::2]


def test_lines_and_footer_show_the_time_of_the_person_who_looks():
    run = RecordedRun(*tasks(1)).play("T-01").limited("T-01", NOON + timedelta(minutes=20))
    terminal = Terminal()
    screen = LiveScreen(
        terminal,  # pyright: ignore[reportArgumentType]
        now=lambda: run.at,
        colour=False,
        size=lambda: os.terminal_size((80, 24)),
        entered=str,
        zone=timezone(timedelta(hours=2)),
    )
    for seq, (event, state) in enumerate(run.history, 1):
        screen.entry(Entry(seq=seq, event=event), state)
    screen.paint()
    limit, footer = (line for line in terminal.text.splitlines() if "14:20+02" in line)
    assert "quota until 14:20+02; T-01 waits" in limit
    assert footer.startswith(" ◷ T-01 ")
    assert "Z" not in limit + footer


def test_the_time_zone_stays_when_the_secrets_are_forgotten():
    code = (
        "from windlass.app.wiring import LOCAL_TIME, now\n"
        "from windlass.cli.process import forget_secrets\n"
        "forget_secrets()\n"
        "print(now().astimezone(LOCAL_TIME).utcoffset())"
    )
    env = {"PATH": os.environ["PATH"], "TZ": "<+0530>-5:30", "SECRET": "x"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "5:30:00\n"
