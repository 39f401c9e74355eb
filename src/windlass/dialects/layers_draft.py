"""What one task file of a layers folder says, before the folder as a whole is looked at.

The rules that XML and Markdown task files share are here: what in a verification step is a command
that Windlass runs, what is a condition for the Coach to judge, and what names a path.
"""

import re
from collections.abc import Iterable

from msgspec import Struct, field

from windlass.dialects import markdown
from windlass.dialects.markdown import Block, Document
from windlass.plan import Note

ID = re.compile(r"L(?P<layer>[0-9]{1,3})-[0-9]{1,6}", re.IGNORECASE)
"""How an id in such a folder begins: the layer and the number in it."""
DONE = frozenset({"complete", "completed", "done", "merged"})
"""What other tools call a task that is done."""

_RUN = re.compile(r"(?:Run|Execute|Command)\s*(?P<colon>:)?\s*", re.IGNORECASE)
_SHELLS = frozenset({"", "bash", "sh", "shell", "console", "zsh"})
_LINKS = frozenset({"", "and", "then", "and then", ",", ";", ", then", ", and"})
_DASH = re.compile(r"\s+[–—]\s")  # noqa: RUF001
_HYPHEN = re.compile(r"\s+-+\s+(?=[A-Za-z])")
_ASIDE = re.compile(r"\s\([^()]*\)\.?$")
_FULL_STOP = re.compile(r"(?<=[A-Za-z0-9])\.$")
_BEFORE_PATH = re.compile(r"\s+(?:[-–—(:]|#).*|\s*$")  # noqa: RUF001
_PRIORITY = re.compile(r"[0-9]{1,6}")


class Draft(Struct, kw_only=True):
    """A task as its own file tells it."""

    id: str
    title: str
    text: str
    path: str
    line: int
    layer: str = ""
    """As the file says; the folder it lies in knows better."""
    priority: int | None = None
    done: bool = False
    depends_on: list[str] | None = None
    """The ids it names; None where it names none."""
    needs: list[str] = field(default_factory=list[str])
    """The interfaces it builds on, by name."""
    exports: list[str] = field(default_factory=list[str])
    criteria: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    creates: list[str] = field(default_factory=list[str])
    """Those of them that it calls files to create."""
    checks: list[str] = field(default_factory=list[str])
    notes: list[Note] = field(default_factory=list[Note])

    def note(self, line: int, text: str) -> None:
        """Say of a line in the task's file that it was seen and not used."""
        self.notes.append(Note(path=self.path, line=line, text=text))

    def take_priority(self, line: int, said: str) -> None:
        """Its place in the layer; 1 comes first."""
        if _PRIORITY.fullmatch(said):
            self.priority = int(said)
        elif said:
            self.note(line, f"the priority {said!r} is no number, so it comes last in its layer")

    def take_step(self, line: int, step: str) -> None:
        """One verification step: a command to run, else a condition for the Coach."""
        run = _RUN.match(step)
        spans = _leading_spans(step[run.end() :] if run else step)
        whole = not run and len(spans) == 1 and spans[0] == step.strip("` ")
        if spans and (run or whole):
            self.checks += spans
        elif run and run["colon"] and (command := self.unquoted(line, step[run.end() :])):
            self.checks.append(command)
        elif step[run.end() if run else 0 :].strip():
            self.criteria.append(step)

    def unquoted(self, line: int, rest: str) -> str:
        """The command on a line that has it without backticks; "" where there is none to be had."""
        first = rest.split("\n", maxsplit=1)[0].strip()
        if _ASIDE.search(first):
            self.note(line, f"{first!r} is not run: write the command alone in backticks")
            return ""
        command = _DASH.split(first)[0]
        cut = _HYPHEN.split(command)[0]
        if cut != command:
            self.note(line, f"of {first!r} only {cut!r} is run; backticks would make it certain")
        return _FULL_STOP.sub("", cut.strip())

    def take_steps(self, document: Document, blocks: Iterable[Block], above: int = 0) -> None:
        """Steps written as Markdown: the items of lists, scripts, and lines that begin with Run."""
        for block in blocks:
            line = above + block.first
            if block.kind == "list":
                for item in block.children:
                    self.take_item(document, item, above)
            elif block.kind in ("fence", "code"):
                self.take_script(line, document.lines[block.first - 1 : block.last])
            elif block.kind in ("paragraph", "underlined"):
                for number, each in enumerate(block.text.split("\n"), line):
                    if _RUN.match(each):
                        self.take_step(number, each.strip())

    def take_item(self, document: Document, item: Block, above: int = 0) -> None:
        """One item of a list of steps; a script in it is what it runs."""
        scripts = [child for child in item.children if child.kind == "fence"]
        for script in scripts:
            self.take_script(above + script.first, document.lines[script.first - 1 : script.last])
        if not scripts:
            self.take_step(above + item.first, document.item(item))

    def take_script(self, line: int, source: list[str]) -> None:
        """The commands of a code block, as one, for one may stand on what the one before did."""
        head = source[0].strip()
        fenced = head[:3] in ("```", "~~~")
        if fenced and head.strip("`~ ").casefold() not in _SHELLS:
            self.note(line, "is a code block in no language of a shell, so it is not run")
            return
        lines = [each.strip() for each in (source[1:] if fenced else source)]
        if lines and fenced and lines[-1][:3] == head[:3]:
            lines.pop()
        commands = [each.removeprefix("$ ") for each in lines if each and each[0] != "#"]
        if len(commands) > 1:
            commands = ["\n".join(["set -e", *commands])]
        self.checks += commands


def listed(document: Document, blocks: Iterable[Block]) -> list[str]:
    """The items of the lists among these blocks, each with all that belongs to it."""
    return [text for item in markdown.items(blocks) if (text := document.item(item))]


def path_in(line: str) -> str:
    """The path that a line names, in backticks or as its one word; "" where it names none."""
    first = line.strip().split("\n")[0]
    spans = markdown.code_spans(first) if "`" in first else []
    word = spans[0] if spans else _BEFORE_PATH.sub("", first)
    return word if len(word.split()) == 1 and re.search(r"\w", word) else ""


def short(task_id: str) -> str:
    """The layer and number that an id begins with: `l2-001` of `L2-001-auth-api`."""
    found = ID.match(task_id)
    return found.group().casefold() if found else ""


def _leading_spans(text: str) -> list[str]:
    """The code that the text begins with; what stands after a word of prose is no command."""
    spans: list[str] = []
    for is_code, part in markdown.segments(text) if "`" in text else ():
        if is_code:
            spans += [part.strip()] if part.strip() else []
        elif part.strip().casefold() not in _LINKS:
            break
    return spans
