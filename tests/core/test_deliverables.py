"""What a plan says is to be there, and what a stage that is done is held to."""  # S6

import pytest
from msgspec.structs import replace

from windlass.core.plan import Task
from windlass.core.scheduler.deliverables import expected_after, work_of
from windlass.core.state import Phase, TaskState, apply
from windlass.core.state.model import Attempt
from windlass.formats import load
from windlass.formats.words import certain_paths
from worlds import NOON, World, plan_of

XML = """<task>
<meta><id>L1-001</id><name>Users</name><layer>1-core</layer></meta>
<files-to-create>
  <file path="src/users.py"/>
  <file path="src/*.sql"/>
  <file>tests/{name}_test.py</file>
</files-to-create>
<files-to-modify><file path="src/app.py"/></files-to-modify>
</task>
"""
MARKDOWN = """# L1-002: Sessions

## Files to Create
- `src/sessions.py` - the store
- ./docs/sessions.md

## Files to Modify
- `src/app.py`
"""
LABELLED = (
    "# L1-003: Mail\n\n**Files to Create:** `src/mail.py`, `src/mail/`\n**Files:** `src/b.py`\n"
)

SPEC = """---
id: SPEC-001
status: draft
---

# SPEC-001: Resume

## Task Groups
| Group | Wave | Tasks | Dependencies |
|---|---|---|---|
| G1 | 1 | Write `templates/state.json` and `docs/state.md` | - |
| G2 | 2 | Write `commands/pause.md`, change `commands/run.md` | G1 |
| G3 | 2 | Read `docs/state.md` | G1 |

## Files to Create
| File | Purpose |
|------|---------|
| `templates/state.json` | State file, like `templates/other.json` |
| `commands/pause.md` | Pause |
| `docs/state.md` | named by two groups |
| `docs/nobody.md` | named by none |

## Files to Modify
| `commands/run.md` | add an option |

## G3: Reader
### Files to create
- `src/reader.py`
"""


def test_layers_hold_a_task_to_its_files_to_create():
    texts = {f"tasks/1-core/L1-00{n}.{kind}": text for n, kind, text in (
        (1, "xml", XML), (2, "md", MARKDOWN), (3, "md", LABELLED),
    )}  # fmt: skip
    plan = load("tasks", texts, dialect="layers")
    one, two, three = plan.tasks
    assert one.creates == ("src/users.py",)
    assert "src/app.py" in one.files
    assert two.creates == ("src/sessions.py", "docs/sessions.md")
    assert three.creates == ("src/mail.py", "src/mail/")
    assert three.files == ("src/mail.py", "src/mail/", "src/b.py")


def test_a_spec_holds_a_group_to_the_files_that_are_its_own():
    plan = load("SPEC-001.md", {"SPEC-001.md": SPEC}, dialect="spec")
    assert {task.id: task.creates for task in plan.tasks} == {
        "G1": ("templates/state.json",),
        "G2": ("commands/pause.md",),
        "G3": ("src/reader.py",),
    }


def test_a_task_file_holds_its_task_to_what_its_frontmatter_names():
    text = (
        "---\nid: TASK-A1\ntitle: A\nstatus: backlog\nfiles_to_create: [src/a.py]\n"
        "files_to_modify: [src/b.py]\n---\n# A\n"
    )
    (task,) = load("tasks/TASK-A1.md", {"tasks/TASK-A1.md": text}, dialect="taskfile").tasks
    assert task.creates == ("src/a.py",)
    assert task.files == ("src/a.py", "src/b.py")


@pytest.mark.parametrize(
    "path", ["/etc/x", "~/x", "$HOME/x", "../x", "a/../b", "src/*", "{x}.py", "<x>", "a…b", "a://b"]
)
def test_what_may_be_a_pattern_or_lie_elsewhere_is_not_certain_paths(path):
    assert certain_paths([path]) == ()


def test_what_is_certain_is_named_once_and_as_git_has_it():
    assert certain_paths(["./a.py", "a.py", "app/[id]/page.tsx", "", "src/"]) == (
        "a.py",
        "app/[id]/page.tsx",
        "src/",
    )


def merged_task(*attempts: tuple[str, str, int]) -> TaskState:
    """A merged task with attempts, each from a start to a commit in a turn."""
    return TaskState(
        id="a",
        phase=Phase.MERGED,
        merge_commit="merge",
        attempts=tuple(
            Attempt(n=n, turn=turn, start=start, onto=None, started_at=NOON, commit=commit)
            for n, (start, commit, turn) in enumerate(attempts, 1)
        ),
    )


@pytest.mark.parametrize(
    ("task", "approved"),
    [
        (merged_task(("base", "one", 1), ("one", "two", 2)), "two"),
        # A Player that was interrupted had done all of it; the next one changed nothing more.
        (merged_task(("base", "one", 1), ("one", "one", 1)), "one"),
        # Done once more with its stage, and nobody found anything to change: its merge stands.
        (merged_task(("base", "one", 1), ("tip", "tip", 2)), "one"),
        # A scenario is tried on the tip as it stands.
        (merged_task(("base", "one", 1), ("tip", "tip", 0)), "merge"),
        (merged_task(("base", "base", 1)), "merge"),
    ],
)
def test_a_merge_is_held_to_the_commit_that_was_approved(task: TaskState, approved: str):
    world = World(plan_of(Task(id="a", title="a", stage="1")), {})
    started = apply(None, world.first(None, None))
    state = replace(started, tasks={"a": task})
    assert expected_after(work_of(state, "1")).merges == {"a": ("merge", approved)}
