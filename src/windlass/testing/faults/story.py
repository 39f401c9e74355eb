"""The run that is rehearsed under every fault: a small plan that exercises every step.

Two tasks run at once and change the same file, so the second has a conflict to resolve. A check
sends one turn back, the Coach another. A third task depends on both. Setup prepares each checkout,
and the plan has a state file of its own.

Law: what an agent does depends only on the files it finds, never on earlier calls, and each file is
replaced as a whole. So the final tree is the same, wherever a run is interrupted.
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
"""The file that the plan's dialect writes into the user's checkout, as the settings ask."""

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

[state_files]
milestone = true

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
"""The files that the run adds or changes in the tip."""

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
"""What a Player does, as a shell script; its argument is the task."""

COST = Usage(cost_usd=0.01, input_tokens=100, output_tokens=20)
"""The cost of each agent call."""

WORST = Amount(usd=0.03, tokens=200)
"""The amount that is reserved for each agent call."""


def reviewed(brief: Brief, checkout: Path) -> Review:
    """The Coach's review: it sends back the first turn of task c, and approves the rest."""
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
