"""The run that is rehearsed under every fault: small, and with all in it that can go wrong.

Two tasks are played at once and change one file, so that the second has a conflict to settle; a
check sends one turn back, the Coach another; a third task needs both; setup prepares each checkout;
the plan has a state file of its own.

Law: what an agent does follows from the files it finds, never from how often it was called, and
each file is replaced whole. So however a run is broken, the same tree comes out in the end.
"""

from pathlib import Path

from windlass.core.events.model import Usage
from windlass.core.events.review import Issue, Review, TestResults
from windlass.core.events.values import Amount
from windlass.ports import Brief
from windlass.testing.agents import approval

PLAN = "plan.md"
PLAN_ID = "plan"
TASKS = ("a", "b", "c")
AGENTS = 2

STATE_FILE = "state/plan_state.json"
"""What the plan's own dialect writes into the user's checkout."""

FILES = {
    "README.md": "A folder of words.\n",
    "shared.txt": "words\n",
    "check.sh": "test -f .venv/ready && ! grep -q draft *.txt\n",
    PLAN: """\
# Milestone: Words

## Task a: Write a

**Depends on:** none

**Acceptance Criteria:**
- [ ] a.txt is there

## Task b: Write b

**Depends on:** none

**Acceptance Criteria:**
- [ ] b.txt is there

## Task c: Write c

**Depends on:** a, b

**Acceptance Criteria:**
- [ ] c.txt is there
""",
    "windlass.toml": """\
checks = ["sh check.sh"]
agents = 2

[workspace]
setup = ["mkdir .venv && echo ready > .venv/ready"]
inputs = ["check.sh"]
""",
}

RESULT = {
    "a.txt": "a, whole\n",
    "b.txt": "b\n",
    "c.txt": "c, reviewed\n",
    "shared.txt": "words\na\nb\nc\n",
}
"""What the tip holds in the end, beside what it began with."""

SCRIPT = """
set -e
rm -f new.tmp
put() { cat > new.tmp; mv new.tmp "$1"; }
case $1 in
    a) if [ -f a.txt ]; then echo 'a, whole'; else echo 'a, a draft'; fi | put a.txt ;;
    b) echo b | put b.txt ;;
    c) if [ -f c.txt ]; then echo 'c, reviewed'; else echo 'c'; fi | put c.txt ;;
esac
{ echo words; { grep -x '[abc]' shared.txt || true; echo "$1"; } | sort -u; } | put shared.txt
"""
"""What a Player does, as a program of the shell; its one word is the task."""

COST = Usage(cost_usd=0.01, input_tokens=100, output_tokens=20)
"""What each call of an agent costs."""

WORST = Amount(usd=0.03, tokens=200)
"""What is reserved for it."""


def reviewed(brief: Brief, checkout: Path) -> Review:
    """What a Coach says: the first that task c brings is not yet good enough."""
    made = checkout / f"{brief.task}.txt"
    if not made.exists() or made.read_text(encoding="utf-8") == "c\n":
        return Review(
            decision="feedback",
            summary="Not yet.",
            test_results=TestResults(passed=True),
            evidence=(),
            issues=(Issue(severity="must_fix", category="bug", description="it says too little"),),
            feedback="say more",
        )
    return approval(brief)
