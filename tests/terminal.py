"""A terminal for tests: it computes what the screen shows after all writes."""

import re

_PIECE = re.compile(r"\x1b\[(\??[0-9;]*)([A-Za-z])|(\n|\r)|([^\x1b\n\r]+)|(\x1b.?)")


class Terminal:
    """Knows only the escapes that Windlass may use, and raises for all others."""

    def __init__(self) -> None:
        self.lines = [""]
        self.row = 0
        self.column = 0
        self.modes: dict[str, bool] = {}

    def write(self, text: str) -> int:
        for code, verb, move, plain, unknown in _PIECE.findall(text):
            assert not unknown, f"unknown escape {unknown!r}"
            if verb:
                self._control(code, verb)
            elif move:
                self.column = 0
                self.row += move == "\n"
                self.lines += [""] * (self.row + 1 - len(self.lines))
            else:
                self._type(plain)
        return len(text)

    def _control(self, code: str, verb: str) -> None:
        match verb:
            case "A":
                self.row -= int(code)
                assert self.row >= 0, "the cursor left what was written"
            case "K":
                self.lines[self.row] = self.lines[self.row][: self.column]
            case "J":
                self.lines[self.row] = self.lines[self.row][: self.column]
                del self.lines[self.row + 1 :]
            case "h" | "l":
                assert code in {"?2026", "?7"}, f"mode {code}"
                self.modes[code] = verb == "h"
            case _:
                assert verb == "m", f"{code}{verb}"

    def _type(self, text: str) -> None:
        line = self.lines[self.row].ljust(self.column)
        self.lines[self.row] = line[: self.column] + text + line[self.column + len(text) :]
        self.column += len(text)

    def flush(self) -> None:
        """Nothing is buffered."""

    def fileno(self) -> int:
        raise OSError

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)

    @property
    def at_rest(self) -> bool:
        """Whether every mode has its initial value."""
        return self.modes.get("?7", True) and not self.modes.get("?2026", False)
