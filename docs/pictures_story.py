"""The run that the pictures of the documentation show: a plan, and a scripted model that plays it.

Everything in it happens in life: a check sends work back, a Coach does, an account's limit is
reached, a question is asked, a task is given up and blocks another.
"""

from windlass.testing.model.script import Answer, Book, Call, Flaky, Limit, Script, Step, Tokens

_TEST = (
    "import unittest\n\n\nclass {name}(unittest.TestCase):\n"
    "    def test_it(self):\n        {body}\n"
)
_USED = Tokens(input_tokens=2_400, output_tokens=1_100, cache_read_input_tokens=38_000)
_TASKS = (
    ("T-01", "Hash passwords with argon2", (), ("`verify()` takes at least 50 ms", "a test")),
    ("T-02", "Store sessions in Redis", ("T-01",), ("a session outlives a restart", "a test")),
    ("T-03", "Rate-limit login", ("T-01",), ("429 after five tries", "the window resets")),
    ("T-04", "Refresh tokens", ("T-01",), ("a token is used once", "a test proves it")),
    ("T-05", "CSRF middleware", ("T-02",), ("a form without a token is refused",)),
    ("T-06", "Password reset by mail", ("T-02", "T-04"), ("the link works once",)),
    ("T-07", "Export the audit log", ("T-03",), ("every login is in it", "CSV")),
    ("T-08", "Audit dashboard", ("T-07",), ("shows the last 30 days",)),
    ("T-09", "Tell operators about it", ("T-01",), ("docs/auth.md names every setting",)),
)


def files() -> dict[str, str]:
    """The repository before the run."""
    tasks = "\n".join(_section(*task) for task in _TASKS)
    return {
        "README.md": "# shop\n",
        "tests/__init__.py": "",
        "tests/test_shop.py": _TEST.format(name="Shop", body="self.assertTrue(True)"),
        "windlass.toml": (
            'checks = ["python3 -B -m unittest discover -q"]\nagents = 3\nmax_turns = 2\n'
            'max_cost = 20.0\n[policy]\non_failure = "block"\n'
        ),
        "auth-hardening.md": f"# Milestone: Harden sign-in\n\n{tasks}",
    }


def _section(id_: str, title: str, after: tuple[str, ...], criteria: tuple[str, ...]) -> str:
    listed = "\n".join(f"- [ ] {each}" for each in criteria)
    waits = f"**Depends on:** {', '.join(after) or 'none'}\n"
    return f"## Task {id_}: {title}\n\n{waits}\n**Acceptance Criteria:**\n{listed}\n"


def book(pause: float) -> Book:
    """What the model says to each agent; a pause before each answer makes it human."""
    scripts = {f"Role: Player|Task: {id_}\n": _player(id_, pause) for id_, *_ in _TASKS}
    red = _write("tests/test_limit.py", _TEST.format(name="Limit", body="self.fail('429 != 200')"))
    scripts["Role: Player|Task: T-03\n|Turn: 1\n"] = _script(
        _read("src/login.py"), _write("src/T_03.py", "WINDOW = 0\n"), red, pause=pause
    )
    mended = _write("tests/test_limit.py", _TEST.format(name="Limit", body="self.assertTrue(1)"))
    scripts["Role: Player|Task: T-03\n|Turn: 2\n"] = _script(
        _write("src/T_03.py", "WINDOW = 60\nTRIES = 5\n"), mended, pause=pause
    )
    scripts["Role: Player|Task: T-02\n|Turn: 2\n"] = _script(
        _write("src/T_02.py", "TTL = 3600\nPREFIX = 'session:'\n"), pause=pause
    )
    for turn in (1, 2):
        body = f"self.assertEqual(rows(), {turn})"
        scripts[f"Role: Player|Task: T-07\n|Turn: {turn}\n"] = _script(
            _write("tests/test_audit.py", _TEST.format(name="Audit", body=body)), pause=pause
        )
    limited = Flaky((Limit(pause * 12),), _answer(_read("src/token.py"), pause))
    scripts["Role: Player|Task: T-04\n"] = _script(
        limited, _write("src/T_04.py", "USES = 1\n"), pause=pause
    )
    scripts["Role: Coach"] = _coach(pause)
    scripts["Role: Coach|Task: T-02\n|Turn: 1\n"] = _coach(
        pause,
        decision="feedback",
        summary="Stores them, but none of them ever expires.",
        issues=[
            {
                "severity": "must_fix",
                "category": "logic",
                "description": "no session ever expires",
                "file": "src/T_02.py:1",
                "suggestion": "give every key a time to live",
            }
        ],
        feedback="Let sessions expire.",
    )
    scripts["Role: Coach|Task: T-06\n"] = _coach(
        pause,
        decision="feedback",
        summary="Everything is there but the sender.",
        question="Which address should the mails come from?",
    )
    return Book(scripts=scripts)


def _player(id_: str, pause: float) -> Script:
    name = id_.replace("-", "_")
    return _script(
        _read("README.md"),
        _write(f"src/{name}.py", f'"""What {id_} is about."""\n\nDONE = True\n'),
        _write(f"tests/test_{name}.py", _TEST.format(name=name, body="self.assertTrue(True)")),
        _tests(),
        pause=pause,
    )


def _coach(pause: float, **review: object) -> Script:
    answer: dict[str, object] = {
        "decision": "approve",
        "summary": "Everything asked for is there, and tests prove it.",
        "test_results": {"passed": True, "coverage": None, "failures": []},
        "evidence": [
            {"criterion": n, "met": True, "evidence": "ran the tests; read the change"}
            for n in (1, 2)
        ],
        "issues": [],
        **review,
    }
    steps = (_tests(), Call("StructuredOutput", answer))
    return Script(tuple(_answer(step, pause) for step in steps))


def _script(*steps: Step, pause: float) -> Script:
    done = Call("StructuredOutput", {"summary": "Implemented it, with a test for each criterion."})
    paced = (_answer(s, pause) if isinstance(s, Call) else s for s in (*steps, done))
    return Script(tuple(paced))


def _answer(step: Call, pause: float) -> Answer:
    return Answer(blocks=(step,), delay=pause, usage=_USED)


def _read(path: str) -> Call:
    return Call("Grep", {"pattern": path.rpartition("/")[2]})


def _tests() -> Call:
    command = "python3 -B -m unittest discover -q"
    return Call("Bash", {"command": command, "description": "Run the tests"})


def _write(path: str, content: str) -> Call:
    folder = path.rpartition("/")[0]
    script = f"mkdir -p {folder}\ncat > {path} <<'END_OF_FILE'\n{content}END_OF_FILE"
    return Call("Bash", {"command": script, "description": f"Write {path}"})
