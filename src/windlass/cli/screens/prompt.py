"""What a person types at a question: the keyboard, and the line that they edit.

Law: the terminal's mode is changed only while a question is open, and restored before the process
stops, ends or leaves the terminal to another. Ctrl-C and Ctrl-Z keep their meaning.
"""

import codecs
import os
import termios
from contextlib import suppress

from windlass.core.plan.names import without_terminal_codes

MAX_CHARS = 20_000
_ESCAPE, _BACK, _CLEAR, _WORD, _END = "\x1b", "\x7f\x08", "\x15", "\x17", "\x04"


class Keyboard:
    """The terminal that the process reads from: no echo and no line editing of its own."""

    def __init__(self, descriptor: int = 0) -> None:
        self.descriptor = descriptor
        self._before: list[int | list[bytes | int]] | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_open(self) -> bool:
        return self._before is not None

    def open(self) -> None:
        """Take every key; what was typed before the question was shown is dropped."""
        if self._before is not None:
            return
        before = termios.tcgetattr(self.descriptor)
        now = [*before]
        now[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self.descriptor, termios.TCSAFLUSH, now)
        self._before = before
        self._decoder.reset()

    def close(self) -> None:
        """Restore the terminal; a second call does nothing."""
        before, self._before = self._before, None
        if before is not None:
            with suppress(termios.error, OSError):  # the terminal has hung up
                termios.tcsetattr(self.descriptor, termios.TCSADRAIN, before)

    def read(self) -> str:
        """What was typed since; empty if nothing was."""
        with suppress(OSError):
            return self._decoder.decode(os.read(self.descriptor, 4096))
        return ""


class Typed:
    """One line of text, edited at its end."""

    def __init__(self) -> None:
        self.text = ""

    def feed(self, keys: str) -> str | None:
        """Take keys; return the line if it was entered, and `Typed.ESCAPED` for Esc.

        Several lines at once were pasted: only the end of the last one enters them.
        """
        if keys in {_ESCAPE, _END} and (keys == _ESCAPE or not self.text):
            return self.ESCAPED
        plain = without_terminal_codes(keys).replace("\r", "\n")
        entered = plain.endswith("\n")
        for key in plain.rstrip("\n").replace("\n", " ").replace("\t", " "):
            self._take(key)
        return self.text.strip() if entered else None

    ESCAPED = "\x1b"

    def _take(self, key: str) -> None:
        if key in _BACK:
            self.text = self.text[:-1]
        elif key == _CLEAR:
            self.text = ""
        elif key == _WORD:
            self.text = self.text.rstrip().rpartition(" ")[0]
        elif key.isprintable() and len(self.text) < MAX_CHARS:
            self.text += key
