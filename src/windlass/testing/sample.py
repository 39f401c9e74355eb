"""A small project, a plan for it, and scripts for a model that carries out the plan.

The demo and tests use it. The Players write with their shell, by relative paths, so the same script
works in every sandbox. One Player gets a detail wrong in its first turn, and a check sends it back.
Two parallel Players add a line at the same place of one file, and the second resolves the conflict.
"""

from windlass.testing.model.script import Answer, Book, Call, Say, Script, Step

FILES = {
    "README.md": "# tally\n\nCounts the words of a text.\n",
    "CHANGES.md": "# Changes\n\n",
    "tally/__init__.py": '"""Counts the words of a text."""\n',
    "tests/__init__.py": "",
    "tests/test_package.py": (
        "import unittest\n\nimport tally\n\n\n"
        "class PackageTest(unittest.TestCase):\n"
        "    def test_says_what_it_does(self):\n"
        '        self.assertIn("words", tally.__doc__)\n'
    ),
    "windlass.toml": (
        "# How Windlass proves this project's work.\n"
        'checks = ["python3 -B -m unittest discover -q"]\n'
    ),
    "plan.md": """\
# Milestone: Word counts

## Task 1.1: Split a text into words

**File:** `tally/words.py`

**Description:**
`words(text)` gives the words of a text in lower case, without punctuation.

**Acceptance Criteria:**
- [ ] `words("To be, or not to be.")` is `["to", "be", "or", "not", "to", "be"]`
- [ ] a test proves it

## Task 1.2: Count them

**File:** `tally/count.py`
**Depends on:** 1.1

**Description:**
`count(text)` gives each word with the number of times it occurs.

**Acceptance Criteria:**
- [ ] `count("to be or not to be")["be"]` is 2
- [ ] a test proves it
- [ ] `CHANGES.md` has a line about it

## Task 1.3: Format a table

**File:** `tally/table.py`
**Depends on:** 1.1

**Description:**
`table(counts)` gives a line for each word, the most frequent first, ties in alphabetical order.

**Acceptance Criteria:**
- [ ] the most frequent word comes first
- [ ] words that occur equally often stand in alphabetical order
- [ ] a test proves it
- [ ] `CHANGES.md` has a line about it

## Task 1.4: Make it a program

**File:** `tally/__main__.py`
**Depends on:** 1.2, 1.3

**Description:**
`python -m tally FILE` prints the table of a file's words.

**Acceptance Criteria:**
- [ ] `python -m tally FILE` prints the table
- [ ] a test proves it

## Task 1.5: Tell people about it

**File:** `README.md`
**Depends on:** 1.2

**Description:**
The README shows how to count words from Python.

**Acceptance Criteria:**
- [ ] the README has an example that uses `count`
""",
}

_WORDS = '''\
"""The words of a text."""

import re


def words(text):
    """In lower case, without punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower())
'''
_COUNT = '''\
"""How often each word occurs."""

from collections import Counter

from tally.words import words


def count(text):
    """Each word with the number of times it occurs."""
    return Counter(words(text))
'''
_TABLE = '''\
"""Counts as a table."""


def table(counts):
    """A line for each word, the most frequent first, ties in alphabetical order."""
    rows = sorted(counts.items(), key=lambda item: {key})
    return "\\n".join(f"{{times:>5}}  {{word}}" for word, times in rows)
'''
_TABLE_TEST = """\
import unittest

from tally.table import table


class TableTest(unittest.TestCase):
    def test_most_frequent_first_then_by_alphabet(self):
        lines = table({"b": 1, "a": 1, "c": 7}).splitlines()
        self.assertEqual([line.split()[1] for line in lines], ["c", "a", "b"])
"""
_MAIN = '''\
"""python -m tally FILE"""

import pathlib
import sys

from tally.count import count
from tally.table import table

print(table(count(pathlib.Path(sys.argv[1]).read_text())))
'''


def _test(name: str, imports: str, body: str) -> str:
    return (
        f"import unittest\n\n{imports}\n\n\n"
        f"class {name}Test(unittest.TestCase):\n    def test_it(self):\n        {body}\n"
    )


def write(path: str, content: str) -> Call:
    """A shell command that writes one file below the working directory."""
    folder = path.rpartition("/")[0] or "."
    script = f"mkdir -p {folder}\ncat > {path} <<'END_OF_FILE'\n{content}END_OF_FILE"
    return Call("Bash", {"command": script, "description": f"Write {path}"})


def _announce(line: str) -> Call:
    """A shell command that appends a line to the list of changes."""
    script = f"printf '%s\\n' '- {line}' >> CHANGES.md"
    return Call("Bash", {"command": script, "description": "Add a line to CHANGES.md"})


_SETTLE = Call(
    "Bash",
    {
        "command": "sed -i.bak -E '/^(<{7}|={7}|>{7})/d' CHANGES.md && rm CHANGES.md.bak",
        "description": "Keep both lines of CHANGES.md",
    },
)


def playing(*steps: Step, summary: str, pause: float = 0.0) -> Script:
    """A Player that takes the steps, one answer each, and summarizes its work."""
    return _paced((*steps, Call("StructuredOutput", {"summary": summary})), pause)


def reviewing(*steps: Step, pause: float = 0.0, **review: object) -> Script:
    """A Coach that takes the steps and answers by schema; by default it approves."""
    answer: dict[str, object] = {
        "decision": "approve",
        "summary": "Everything asked for is there, and tests prove it.",
        "test_results": {"passed": True, "coverage": None, "failures": []},
        # More numbers than any task here has criteria; the rest are ignored.
        "evidence": [
            {"criterion": number, "met": True, "evidence": "ran the tests, read the change"}
            for number in range(1, 11)
        ],
        "issues": [],
        **review,
    }
    return _paced((*steps, Call("StructuredOutput", answer)), pause)


def _paced(steps: tuple[Step, ...], pause: float) -> Script:
    return Script(
        tuple(
            Answer(blocks=(step,), delay=pause) if isinstance(step, Call | Say) else step
            for step in steps
        )
    )


def book(pause: float = 0.0) -> Book:
    """The answers of the scripted model; a pause before each makes the demo easier to follow."""
    look = Call("Glob", {"pattern": "**/*.py"})
    good, bad = _TABLE.format(key="(-item[1], item[0])"), _TABLE.format(key="-item[1]")
    settled = "What was settled: both lines of CHANGES.md are kept."
    plays = {
        "Task: 1.2\n|conflict markers": playing(_SETTLE, summary=settled, pause=pause),
        "Task: 1.3\n|conflict markers": playing(_SETTLE, summary=settled, pause=pause),
        "Task: 1.1\n": playing(
            look,
            write("tally/words.py", _WORDS),
            write(
                "tests/test_words.py",
                _test(
                    "Words",
                    "from tally.words import words",
                    'self.assertEqual(words("To be, or"), ["to", "be", "or"])',
                ),
            ),
            summary="What was implemented: words(text).\nFiles: tally/words.py, a test.",
            pause=pause,
        ),
        "Task: 1.2\n": playing(
            look,
            write("tally/count.py", _COUNT),
            write(
                "tests/test_count.py",
                _test(
                    "Count",
                    "from tally.count import count",
                    'self.assertEqual(count("to be or not to be")["be"], 2)',
                ),
            ),
            _announce("`tally.count` counts the words of a text"),
            summary="What was implemented: count(text).\nKey decisions: a Counter.",
            pause=pause,
        ),
        "Task: 1.2\n|Turn: 2\n": playing(
            write(
                "tests/test_count.py",
                _test(
                    "Count",
                    "from tally.count import count",
                    'self.assertEqual(count("to be or not to be")["be"], 2)\n'
                    '        self.assertEqual(count(""), {})',
                ),
            ),
            summary="What was added: a test for an empty text.",
            pause=pause,
        ),
        "Task: 1.3\n": playing(
            write("tally/table.py", bad),
            write("tests/test_table.py", _TABLE_TEST),
            _announce("`tally.table` shows counts as a table"),
            summary="What was implemented: table(counts). All done, every test passes.",
            pause=pause,
        ),
        "Task: 1.3\n|Turn: 2\n": playing(
            Call("Grep", {"pattern": "sorted"}),
            write("tally/table.py", good),
            summary="What was mended: ties now stand in alphabetical order.",
            pause=pause,
        ),
        "Task: 1.4\n": playing(
            write("tally/__main__.py", _MAIN),
            write(
                "tests/test_main.py",
                _test(
                    "Main",
                    "import subprocess\nimport sys",
                    "out = subprocess.run([sys.executable, '-m', 'tally', 'README.md'],"
                    " capture_output=True, check=True).stdout\n"
                    "        self.assertIn(b'words', out)",
                ),
            ),
            summary="What was implemented: python -m tally FILE.",
            pause=pause,
        ),
        "Task: 1.5\n": playing(
            write(
                "README.md",
                FILES["README.md"] + "\n    from tally.count import count\n    count('to be')\n",
            ),
            summary="What was implemented: an example in the README.",
            pause=pause,
        ),
    }
    tests = Call("Bash", {"command": "python3 -B -m unittest discover", "description": "Test"})
    reviews = {
        "Role: Coach": reviewing(tests, pause=pause),
        "Role: Coach|Task: 1.2\n|Turn: 1\n": reviewing(
            tests,
            pause=pause,
            decision="feedback",
            summary="Right for the example, and nothing says what it does with no words at all.",
            issues=[
                {
                    "severity": "must_fix",
                    "category": "tests",
                    "description": "no test for an empty text",
                    "file": "tests/test_count.py",
                    "suggestion": "assert that count('') is empty",
                }
            ],
            feedback="Prove what happens with an empty text.",
        ),
    }
    players = {f"Role: Player|{key}": script for key, script in plays.items()}
    return Book(scripts={**players, **reviews})
