"""A live terminal: results scroll by, and a small footer shows the current state.

Law: it only paints what `views.board` and `views.questions` drew. The footer is at the end of the
ordinary screen and is repainted in place: no alternate screen, no hidden cursor, no mode of the
display that outlives a write. So scrolling back shows all that happened. The terminal echoes what a
person types; Windlass reads it only to know how far it moved the cursor. While a question is open,
and only then, Windlass takes every key itself: see `prompt`.
"""

import os
import select
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Self, TextIO

import anyio
import anyio.to_thread

from windlass.app.desk import Desk
from windlass.cli.screens.prompt import Keyboard, Typed
from windlass.cli.screens.terminal import BY_STYLE, BY_WORD, coloured
from windlass.core.events import model as e
from windlass.core.state import RunState
from windlass.errors import WindlassError
from windlass.ports import Activity
from windlass.views.activity import TaskViews, after_activity, after_event, setup_line
from windlass.views.board import Row, Screen, board, bracketed
from windlass.views.columns import ascii_only, columns, folded
from windlass.views.lines import Line
from windlass.views.questions import Prompt, Question, prompt_rows, questions
from windlass.views.story import line_of
from windlass.views.words import one_line

GAP = 0.1
"""Seconds between two paintings, at least: more could not be seen."""
TICK = 1.0
"""Seconds after which it is painted even if nothing happened, for the clocks."""

_LOOK = 0.2
"""Seconds between two looks for a question to ask."""
_KEYS = 0.05
"""Seconds in which the rest of a key's sequence arrives; Esc alone has no rest."""
_AGAIN = 5.0
"""Seconds after which a question is asked again whose answer did not reach the run."""

_INDENT = 24
_NARROW = 20

_AT_ONCE, _DONE = "\x1b[?2026h", "\x1b[?2026l"
"""Paint everything at once, if the terminal can."""
_CUT, _WRAP = "\x1b[?7l", "\x1b[?7h"
"""Do not wrap rows of the footer, however the terminal counts columns."""

_SHOWN_BELOW = (
    e.PlayerStarted,
    e.ChecksStarted,
    e.ChecksFinished,
    e.CoachStarted,
    e.CoachAnswered,
    e.BaselineStarted,
    e.VerificationStarted,
)
"""Facts that the footer shows; only their results are printed above it."""


class LiveScreen:
    """Lines above, a footer below."""

    def __init__(
        self,
        stream: TextIO,
        *,
        now: Callable[[], datetime],
        colour: bool,
        verbose: bool = False,
        plain_letters: bool = False,
        watching: bool = False,
        size: Callable[[], os.terminal_size] | None = None,
        entered: Callable[[], str] | None = None,
        zone: tzinfo = UTC,
        desk: Desk | None = None,
    ) -> None:
        self._stream = stream
        self._now = now
        self._colour = colour
        self._verbose = verbose
        self._ascii = plain_letters
        self._watching = watching
        self._zone = zone
        """The time zone of the person who looks at it."""
        self._size = size or (lambda: _size(stream))
        self._entered = entered or _entered_at(stream)
        self._state: RunState | None = None
        self._views: TaskViews = {}
        self._lines: list[str] = []
        """Lines to print above the footer with the next painting."""
        self._footer: list[str] = []
        """The rows on the terminal, and how many columns each takes."""
        self._widths: list[int] = []
        self._painted: os.terminal_size | None = None
        self._painting = False
        self._changed = anyio.Event()
        self._desk = desk
        self._keyboard = Keyboard()
        self._typed = Typed()
        self._asked: Question | None = None
        """The question on the screen."""
        self._note = ""
        self._later: set[Question] = set()
        """Questions that the person left for later."""
        self._sent: dict[Question, float] = {}
        """Questions that were answered, until the run has recorded it; and when."""

    def entry(self, entry: e.Entry, state: RunState) -> None:
        self.remember(entry, state)
        if self._verbose or not isinstance(entry.event, _SHOWN_BELOW):
            line = line_of(entry.event, state, self._zone)
            if line is not None:
                self._write(line)
        if isinstance(entry.event, e.HelpAwaited):
            self._later.clear()  # nothing else can continue: ask again
        if self._asked is not None and self._asked not in questions(state):
            self._drop_question()
        self._changed.set()

    def remember(self, entry: e.Entry, state: RunState) -> None:
        """Update the footer, and print nothing."""
        self._state, self._views = state, after_event(self._views, entry.event, state)

    def activity(self, activity: Activity) -> None:
        """Show in the footer what an agent does; with --verbose also print it above.

        A setup command is printed when it has ended, with its time.
        """
        self._views = after_activity(self._views, activity)
        if activity.kind == "setup":
            if activity.took is not None:
                self._write(setup_line(activity, self._state))
        elif self._verbose:
            arrow = "→" if activity.kind == "tool" else "·"
            for each in self._folded(f"{activity.task} {arrow} {one_line(activity.text, 500)}"):
                self._put(f"{'':{_INDENT}}{each}")
        self._changed.set()

    def say(self, word: str, text: str) -> None:
        self._write(Line(word, one_line(text, 1000)))

    def closing(self, state: RunState, seq: int, lines: Sequence[Line]) -> None:  # noqa: ARG002
        """Remove the footer, and print the last lines."""
        self._put("")
        for line in lines:
            self._write(line)
        self._rest()

    async def keep(self) -> None:
        """Paint on every change, at most every GAP and at least every TICK seconds."""
        with anyio.open_signal_receiver(signal.SIGTSTP, signal.SIGWINCH) as signals:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._answer, signals)
                if self._desk is not None:
                    tasks.start_soon(self._ask, self._desk)
                self._painting = True
                while True:
                    self._changed = anyio.Event()
                    self.paint()
                    await anyio.sleep(GAP)
                    with anyio.move_on_after(TICK - GAP):
                        await self._changed.wait()

    async def _answer(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for each in signals:
            if each is signal.SIGTSTP:
                self._drop_question()
                self._rest()
                # SIGSTOP cannot be caught: the shell has the terminal until `fg`.
                os.kill(os.getpid(), signal.SIGSTOP)
                self._painting = True
            self._changed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop_question()
        self._rest()

    async def _ask(self, desk: Desk) -> None:
        """Ask one question after the other, and send the answers, until cancelled."""
        while True:
            self._show_question()
            if self._asked is None:
                await anyio.sleep(_LOOK)
                continue
            keys = await self._keys()
            await self._take(desk, keys)

    async def _take(self, desk: Desk, keys: str) -> None:
        asked = self._asked
        if not keys or asked is None:  # answered elsewhere while the person typed
            return
        line = self._typed.feed(keys)
        self._changed.set()
        if line is not None:
            await self._answered(desk, asked, "" if line == Typed.ESCAPED else line)

    async def _keys(self) -> str:
        with anyio.move_on_after(TICK):
            await anyio.wait_readable(self._keyboard.descriptor)
            keys = self._keyboard.read()
            if keys == Typed.ESCAPED:
                with anyio.move_on_after(_KEYS):
                    await anyio.wait_readable(self._keyboard.descriptor)
                    keys += self._keyboard.read()
            return keys
        return ""

    async def _answered(self, desk: Desk, asked: Question, line: str) -> None:
        """Send the answer of a person; an empty one leaves the question for later."""
        alone = self._state is not None and bool(self._state.awaiting)
        if asked.is_left(line):
            self._later.add(asked)
            self._write(Line("LATER", f"{asked.head}: {asked.later}"))
            self._drop_question()
            if alone and not self._waiting_questions():
                await anyio.to_thread.run_sync(desk.leave)
            return
        command = asked.command_for(line)
        if command is None:
            self._note = f"type {asked.choice}, then Enter; or Esc"
            self._typed = Typed()
            return
        self._sent[asked] = anyio.current_time()
        self._drop_question()
        try:
            await anyio.to_thread.run_sync(desk.reply, command, asked.subject, line)
        except (WindlassError, OSError) as error:
            self.say("NOTE", f"{asked.head}: the answer was not taken: {error}")

    def _waiting_questions(self) -> list[Question]:
        """The open questions, without those that were answered or left for later."""
        if self._state is None:
            return []
        late = anyio.current_time() - _AGAIN
        self._sent = {each: at for each, at in self._sent.items() if at > late}
        held = self._later | self._sent.keys()
        return [each for each in questions(self._state) if each not in held]

    def _show_question(self) -> None:
        """Keep the open question on the screen, or open the next one."""
        waiting = self._waiting_questions() if self._painting and self._in_foreground() else []
        if self._asked in waiting and self._keyboard.is_open:
            return
        self._drop_question()
        if waiting:
            self.paint()  # reads what was typed before, which moved the cursor
            self._keyboard.open()
            self._asked = waiting[0]
            self._changed.set()

    def _drop_question(self) -> None:
        """Take the question off the screen, and restore the terminal."""
        if self._asked is None and not self._keyboard.is_open:
            return
        self._asked, self._typed, self._note = None, Typed(), ""
        if self._in_foreground():
            self._keyboard.close()
        self._changed.set()

    def _prompt(self, size: os.terminal_size) -> list[Row]:
        if self._asked is None or self._state is None:
            return []
        waiting = self._waiting_questions()
        prompt = Prompt(
            question=self._asked,
            typed=self._typed.text,
            note=self._note,
            more=len(waiting) - (self._asked in waiting),
            alone=bool(self._state.awaiting),
        )
        rows = prompt_rows(prompt, width=max(0, size.columns - 1), height=size.lines // 2)
        return [row.in_ascii() for row in rows] if self._ascii else rows

    def paint(self) -> None:
        """Print the waiting lines, and the footer below them, in one write."""
        if not self._in_foreground():
            return
        size = self._size()
        prompt = self._prompt(size)
        rows = self._rows(
            Screen(
                columns=size.columns,
                rows=size.lines - len(prompt),
                ascii=self._ascii,
                watching=self._watching,
            )
        )
        rows = [*prompt, *rows]
        shown = [self._coloured(row) for row in rows]
        moved = self._moved(size.columns)
        if not self._lines and shown == self._footer and not moved:
            return
        out = [_AT_ONCE, self._back(size.columns, moved)]
        # A resized terminal has wrapped rows: erase them before painting others.
        out += ["\x1b[J"] if size != self._painted else []
        out += [f"{line}\x1b[K\n" for line in self._taken()]
        out += [_CUT, "\x1b[K\n".join(shown), "\x1b[J", _WRAP, _DONE]
        self._painted = size
        self._footer, self._widths = shown, [columns(row.text) for row in rows]
        self._send("".join(out))

    def _rows(self, screen: Screen) -> Sequence[Row]:
        if self._state is None or self._state.ended is not None:
            return ()
        return board(self._state, self._views, self._now().astimezone(self._zone), screen)

    def _rest(self) -> None:
        """Remove the footer and print the waiting lines, until the next painting."""
        self._painting = False
        size = self._size()
        moved = self._moved(size.columns) if self._in_foreground() else 0
        back = self._back(size.columns, moved) + "\x1b[J" if self._footer else ""
        self._footer, self._widths = [], []
        text = back + "".join(f"{line}\n" for line in self._taken())
        if text:
            self._send(text)

    def _moved(self, width: int) -> int:
        """How many rows the cursor has moved down because a person pressed Enter."""
        if not self._footer or self._keyboard.is_open:
            return 0  # the input is for a question, or for another program
        *lines, _ = self._entered().split("\n")
        rows, at = 0, self._widths[-1]
        for line in lines:
            rows += max(0, at + columns(line) - 1) // max(1, width) + 1
            at = 0
        return rows

    def _back(self, width: int, moved: int) -> str:
        """Move to the first column of the footer's first row, also after a resize."""
        if not self._footer:
            return ""
        # A terminal that was narrowed has wrapped rows that are wider than it is now.
        rows = moved + sum(max(1, -(-taken // max(1, width))) for taken in self._widths)
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "")

    def _taken(self) -> list[str]:
        lines, self._lines = self._lines, []
        return lines

    def _write(self, line: Line) -> None:
        word = f"{line.word:>12}"
        shown = coloured(word, BY_WORD.get(line.word, "")) if self._colour else word
        first, *more = self._folded(line.text)
        self._put(f"{shown} {bracketed(line.took)} {first}")
        for detail in (*more, *(each for d in line.details for each in self._folded(d))):
            self._put(f"{'':{_INDENT}}{detail}")

    def _folded(self, text: str) -> list[str]:
        width = self._size().columns - _INDENT - 1
        return folded(text, width) if width >= _NARROW else [text]

    def _put(self, text: str) -> None:
        self._lines.append(ascii_only(text.rstrip()) if self._ascii else text.rstrip())
        if self._painting:
            self._changed.set()
        else:
            self._rest()

    def _coloured(self, row: Row) -> str:
        if not self._colour:
            return row.text
        return "".join(coloured(text, BY_STYLE.get(style, "")) for style, text in row.pieces)

    def _in_foreground(self) -> bool:
        """Whether the terminal is ours: a run in the background paints no footer."""
        try:
            return os.tcgetpgrp(self._stream.fileno()) == os.getpgrp()
        except (OSError, ValueError):
            return True

    def _send(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except BlockingIOError:
            self._footer = []


def _entered_at(stream: TextIO) -> Callable[[], str]:
    """Reads the input of the terminal that is painted on; nothing if stdin is elsewhere."""
    try:
        here = os.ttyname(0) == os.ttyname(stream.fileno())
    except (OSError, ValueError):
        here = False
    return _entered if here else str


def _entered() -> str:
    typed = b""
    try:
        while select.select([0], [], [], 0)[0] and (part := os.read(0, 4096)):
            typed += part
    except OSError:  # the terminal has hung up
        pass
    return typed.decode(errors="replace")


def _size(stream: TextIO) -> os.terminal_size:
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return os.terminal_size((80, 24))
    return size if size.columns and size.lines else os.terminal_size((80, 24))
