"""A tasks folder with layer folders is a plan (X1)."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus import CORPUS, needs_corpus
from windlass.core.plan import Plan
from windlass.errors import PlanError
from windlass.formats import layers, load, writes
from windlass.formats.dialect import Source

FOLDER = "docs/tasks/slack"

API = """\
<?xml version="1.0" encoding="UTF-8"?>
<task>
  <meta>
    <id>L2-001</id>
    <name>Task API
      endpoints</name>
    <layer>2-backend</layer>
    <priority>1</priority>
    <estimated-files>2</estimated-files>
  </meta>
  <context><prd-excerpt>Users make <requirement>s. Run: `rm`</prd-excerpt></context>
  <dependencies>
    <dependency task="L1-001-user-model">
      <interface-contract>def all() -> list<User></interface-contract>
    </dependency>
    <interface name="User" type="model">class User</interface>
  </dependencies>
  <objective>Serve tasks.</objective>
  <requirements>
    <requirement id="R1">
      Create file: src/api.py

        GET / returns list<Task> &amp; a count
        - 404 if a < b && c
    </requirement>
    <requirement id="R2"><![CDATA[<b>bold</b>]]></requirement>
    <requirement id="R3"></requirement>
  </requirements>
  <test-requirements>
    <test id="T1">Test: POST returns 201</test>
  </test-requirements>
  <files-to-create>
    <file>src/api.py</file>
    <file path="tests/test_api.py">the tests</file>
    <file>`src/x.py` - new</file>
    <file>all of the others</file>
  </files-to-create>
  <verification>
    <step>Run: `alembic upgrade head` - `head` applies</step>
    <step>Run: test -f Makefile && echo "OK"</step>
    <step>Run: ls -la - shows files</step>
    <step>Run: pytest -v — all pass.</step>
    <step>Run: make dev (in background)</step>
    <step>Run `a` and `b`, then `c` with `d`</step>
    <step>`make lint`</step>
    <step>Run the migration</step>
    <step>Verify: all 5 tests pass</step>
    <step></step>
    <step>Run:
```bash
# first
cd api
$ pytest
```</step>
    <command>`ruff check .`</command>
    <command> </command>
  </verification>
  <exports><interface name="Router" type="router">router</interface></exports>
</task>
"""

USER = "<task><meta><id>L1-001</id><name>User</name><layer>1</layer></meta></task>"

MARKDOWN = """\
# L3-001: The page

**Priority:** 2
**Depends on:** L2-001, Task L2-002 and the weather

- **Layer:** 3-frontend

## Objective
Show it.

## Requirements
- a list
  - with one inside
- more

## Test Requirements
Prose only.

## Files to Create
- `src/page.ts`
- src/other.ts

## Verification
- Run: `npm test`
- Verify: it looks good
- In a script:
  ```sh
  npm run lint
  ```

```python
not for a shell
```

> Run: `nothing`

Run: `npm run build`
Done.

    make all

## Notes
- no criterion
"""


def folder(**more: str) -> dict[str, str]:
    files = {"1-foundation/L1-001-user.xml": USER, "2-backend/L2-001-api.xml": API}
    files |= {name.replace("__", "/"): text for name, text in more.items()}
    return {f"{FOLDER}/{name}": text for name, text in files.items()}


def read(files: dict[str, str]) -> Plan:
    return load(FOLDER, files)


def one(body: str = "", meta: str = "") -> dict[str, str]:
    text = f"<task><meta><id>L0-001</id><name>N</name>{meta}</meta>{body}</task>"
    return {f"{FOLDER}/0-setup/L0-001-a.xml": text}


def test_the_whole_of_an_xml_task():
    plan = read(folder())
    assert (plan.id, plan.title, plan.dialect, plan.path) == ("slack", "slack", "layers", FOLDER)
    assert [stage.name for stage in plan.stages] == ["1-foundation", "2-backend"]
    task = plan.task("L2-001")
    assert (task.title, task.stage) == ("Task API endpoints", "2-backend")
    assert (task.path, task.line) == (f"{FOLDER}/2-backend/L2-001-api.xml", 2)
    assert task.depends_on == ("L1-001",)
    assert task.text == API.partition("\n")[2].strip()
    assert task.acceptance_criteria == (
        "Create file: src/api.py\n\n  GET / returns list<Task> & a count\n  - 404 if a < b && c",
        "<b>bold</b>",
        "Test: POST returns 201",
        "Run: make dev (in background)",
        "Run the migration",
        "Verify: all 5 tests pass",
    )
    assert task.files == ("src/api.py", "tests/test_api.py", "src/x.py")
    assert task.checks == (
        "alembic upgrade head",
        'test -f Makefile && echo "OK"',
        "ls -la",
        "pytest -v",
        "a",
        "b",
        "c",
        "make lint",
        "set -e\ncd api\npytest",
        "ruff check .",
    )
    assert [(note.line, note.text) for note in plan.notes] == [
        (
            1 + API[: API.index("Run: ls")].count("\n"),
            "of 'ls -la - shows files' only 'ls -la' is run; put the command in backticks",
        ),
        (
            1 + API[: API.index("Run: make dev")].count("\n"),
            "'make dev (in background)' is not run: write the command alone in backticks",
        ),
    ]
    assert {note.path for note in plan.notes} == {task.path}
    assert writes(plan) == (f"{FOLDER}/execute-state.json",)


def test_the_whole_of_a_markdown_task():
    second = USER.replace("L1-001", "L2-002").replace("<layer>1", "<layer>2")
    page = {"3-frontend__page.md": MARKDOWN, "3-frontend__SUMMARY.md": "# All\n"}
    plan = read(folder(**page, **{"2-backend__L2-002.xml": second}))
    task = plan.task("L3-001")
    assert (task.title, task.stage, task.line) == ("The page", "3-frontend", 1)
    assert task.text == MARKDOWN.strip()
    assert task.depends_on == ("L2-001", "L2-002")
    assert task.acceptance_criteria == (
        "a list\n- with one inside",
        "more",
        "Prose only.",
        "Verify: it looks good",
    )
    assert task.files == ("src/page.ts", "src/other.ts")
    assert task.checks == ("npm test", "npm run lint", "npm run build", "make all")
    told = {(note.path.rsplit("/", 1)[-1], note.line): note.text for note in plan.notes}
    assert told["page.md", 4] == "'the weather' names no task, so it is no dependency"
    assert "not run" in told["page.md", 31]
    assert "is not a task" in told["SUMMARY.md", 1]


def test_markdown_by_frontmatter_and_labels():
    text = """\
---
id: L4-002
title: Wire
layer: 4
priority: high
status: Done
dependencies: [L4-001, ~, {a: b}]
---
**Acceptance Criteria:** it works
- really

**Files:** `a.py`, b.py

**Checks:** `make a`, `make b`
- `make c`

**Layer:** 9
**Status:** open

### Status
done

## Depends on
none

## Files
c.py (new)

## Requirements
"""
    plan = read(folder(**{"4-integration__x.md": text, "4-integration__L4-001-y.md": "Prose\n"}))
    task = plan.task("L4-002")
    assert (task.title, task.marked_done, task.depends_on) == ("Wire", True, ("L4-001",))
    assert task.acceptance_criteria == ("it works", "really")
    assert task.files == ("c.py", "a.py", "b.py")
    assert task.checks == ("make a", "make b", "make c")
    assert [each.id for each in plan.tasks[-2:]] == ["L4-001", "L4-002"]
    assert plan.task("L4-001").title == "L4-001"
    assert "priority 'high' is not a number" in plan.notes[-1].text


def test_layers_come_by_number_and_tasks_by_priority_then_name():
    def xml(task_id: str, priority: str) -> str:
        meta = f"<id>{task_id}</id><priority>{priority}</priority>"
        return f"<task><meta>{meta}</meta></task>"

    files = {
        "10-late/L10-001.xml": xml("L10-001", ""),
        "2-b/L2-010.xml": xml("L2-010", ""),
        "2-b/L2-009.xml": xml("L2-009", ""),
        "2-b/L2-011.xml": xml("L2-011", "2"),
        "2-b/L2-012.xml": xml("L2-012", "1"),
        "2-b/L2-013.xml": xml("L2-013", "soon"),
    }
    plan = read({f"{FOLDER}/{name}": text for name, text in files.items()})
    assert [stage.name for stage in plan.stages] == ["2-b", "10-late"]
    ids = ["L2-012", "L2-011", "L2-009", "L2-010", "L2-013", "L10-001"]
    assert [task.id for task in plan.tasks] == ids
    assert [note.text[:20] for note in plan.notes] == ["the priority 'soon' "]


def test_several_tasks_in_a_file_attributes_and_other_spellings():
    text = """<tasks>
      <task id="L0-001" name="A" priority="2" status="completed">
        <acceptanceCriteria>
          - one
          - two
        </acceptanceCriteria>
        <files_to_modify>
          - a.py
          b c d
        </files_to_modify>
        <verification>
          - Run: `make`
          - `only this`

          Run: go test ./...
        </verification>
      </task>
      <task id="L0-002" depends-on="L0-001"><requirements>All of it.</requirements>
        <context><acceptance-criteria>
          <criterion id="1">When a, then b.</criterion>
          <from-feature slug="x"><criterion id="1">Else c.</criterion></from-feature>
        </acceptance-criteria></context>
      </task>
      <task id="L0-003"><dependencies>
        <task>L0-001</task><dependency>prose of L0-002</dependency><dependency ref="L0-002"/>
      </dependencies></task>
      <task id="L0-004"><dependencies>L0-001, L0-002</dependencies></task>
      <task id="L0-005"><dependencies>See L0-001</dependencies></task>
    </tasks>"""
    plan = read({f"{FOLDER}/0-setup/all.xml": text})
    one, two, three, four, five = sorted(plan.tasks, key=lambda task: task.id)
    assert plan.tasks[0] is one
    assert one.marked_done
    assert (one.acceptance_criteria, one.files) == (("one", "two"), ("a.py",))
    assert one.checks == ("make", "only this", "go test ./...")
    assert two.acceptance_criteria == ("When a, then b.", "Else c.", "All of it.")
    assert two.depends_on == ("L0-001",)
    assert three.depends_on == four.depends_on == ("L0-001", "L0-002")
    assert five.depends_on == ()


def test_commands_run_in_the_folder_that_the_task_names():
    step = "<verification><step>Run: `pytest`</step></verification>"
    assert read(one(step, "<cwd>a b/</cwd>")).tasks[0].checks == ("cd 'a b' && { pytest\n}",)
    assert read(one(step, "<cwd>.</cwd>")).tasks[0].checks == ("pytest",)
    for wrong in ("../x", "/etc", "a/../../b", "~/x"):
        with pytest.raises(PlanError, match=r"L0-001-a\.xml:1: <cwd> cannot be"):
            read(one(step, f"<cwd>{wrong}</cwd>"))


MANIFESTS = [
    {"prd_slug": "My Plan", "tasks": [
        {"id": "L1-001", "layer": "1-foundation", "file": "1-foundation/L1-001-user.xml"},
        {"id": "L1-002", "layer": 1, "depends_on": ["L1-001"]}, {"name": "?"}, True]},
    {"prd": {"slug": "My Plan", "name": "The  plan"}, "layers": [
        {"id": "1-foundation", "tasks": ["L1-001", {"id": "L1-002", "dependencies": "L1-001"}]}]},
    {"slug": "My Plan", "layers": {"1": ["L1-001-user", "L1-002"], "2": {"task_count": 0}},
     "tasks": {"L1-002": {"priority": 1, "dependsOn": [{"task": "L1-001"}]}}},
    {"slug": "My Plan", "dependency_graph": {"L1-001": [], "L1-002": ["L1-001"]}},
    {"slug": "My Plan", "dependency_graph": [{"task": "L1-002", "depends_on": ["L1-001"]}, {}]},
]  # fmt: skip


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_names_the_plan_and_orders_its_tasks(manifest):
    second = USER.replace("L1-001", "L1-002")
    plan = read(
        {
            f"{FOLDER}/1-foundation/L1-001-user.xml": USER,
            f"{FOLDER}/1-foundation/L1-002.xml": second,
            f"{FOLDER}/manifest.json": json.dumps(manifest),
        }
    )
    assert plan.id == "My-Plan"
    assert plan.title == ("The plan" if "prd" in manifest else "My-Plan")
    assert [task.depends_on for task in plan.tasks] == [(), ("L1-001",)]
    unlisted = [note for note in plan.notes if "is not in the manifest" in note.text]
    assert len(plan.notes) == len(unlisted)


def test_where_manifest_and_files_differ_the_files_win_and_it_is_noted():
    manifest = """{"layers": {"1-base": {"tasks": ["L1-001"]}}, "tasks": [
        {"id": "L9-009", "status": "done"},
        {"id": "L1-001", "file": "gone/x.xml", "depends_on": ["L0-004"]},
        {"id": "L2-001", "depends_on": []}]}"""
    graph = '{"dependency_graph": {"L2-001": ["L1-001"], "L2-002": ["L2-001"]}}'
    extra = {"2-backend__L2-002.md": "# L2-002: X\n"}
    plan = read(folder(**{"manifest.json": manifest, "layer_plan.json": graph}, **extra))
    assert plan.task("L1-001").depends_on == ()
    assert plan.task("L2-001").depends_on == ("L1-001",), "as its own file says"
    assert plan.task("L2-002").depends_on == ("L2-001",), "as the layer plan says"
    told = [
        (note.path.rsplit("/", 1)[-1], note.line, note.text)
        for note in plan.notes
        if "backticks" not in note.text
    ]
    assert told == [
        ("L2-002.md", 1, "'L2-002' is not in the manifest; it is a task all the same"),
        ("manifest.json", 1, "lists 'L1-001' in layer '1-base'; it is in '1-foundation'"),
        ("manifest.json", 1, f"lists 'L1-001' as 'gone/x.xml'; it is '{plan.tasks[0].path}'"),
        ("manifest.json", 2, "lists 'L9-009', which has no file, so it is not a task"),
        ("manifest.json", 3, "says 'L1-001' depends on 'L0-004', which has no file: ignored"),
        ("manifest.json", 4, "says 'L2-001' depends on nothing; L1-001 is used"),
    ]


def test_an_interface_that_one_earlier_task_exports_is_waited_for():
    def xml(task_id: str, needs: str = "", exports: str = "") -> str:
        inside = "".join(f'<interface name="{each}"/>' for each in needs.split())
        out = "".join(f'<export name="{each}"/>' for each in exports.split())
        body = f"<dependencies>{inside}</dependencies><exports>{out}</exports>"
        return f"<task><meta><id>{task_id}</id></meta>{body}</task>"

    plan = read(
        {
            f"{FOLDER}/1-a/L1-001.xml": xml("L1-001", "Late Twice", "Early Twice"),
            f"{FOLDER}/1-a/L1-002.xml": xml("L1-002", "Early Twice Unknown", "Late Twice"),
        }
    )
    assert [task.depends_on for task in plan.tasks] == [(), ("L1-001",)]


STATES = [
    '{"tasks": {"L1-001": {"status": "completed"}, "L2-001": {"status": "failed"}}}',
    '{"completed": ["L1-001-user", "L7-001"], "tasks": []}',
]


@pytest.mark.parametrize("state", STATES)
def test_another_tools_state_is_a_claim_and_no_part_of_the_plan(state):
    plan = read(folder(**{"execute-state.json": state}))
    assert {task.id: task.marked_done for task in plan.tasks} == {"L1-001": True, "L2-001": False}
    broken = read(folder(**{"execute-state.json": '{"tasks": '}))
    assert "cannot be read" in broken.notes[-1].text
    assert broken.tasks == read(folder()).tasks


def test_layers_that_a_file_says_otherwise():
    said = USER.replace("<layer>1<", "<layer>3-frontend<")
    plan = read({f"{FOLDER}/1-foundation/L1-001.xml": said, f"{FOLDER}/L1-002.xml": USER.replace(
        "L1-001", "L1-002"), f"{FOLDER}/L5-001.xml": "<task><meta/></task>"})  # fmt: skip
    assert [(task.id, task.stage) for task in plan.tasks] == [
        ("L1-001", "1-foundation"), ("L1-002", "1-foundation"), ("L5-001", "5"),
    ]  # fmt: skip
    assert [note.text for note in plan.notes] == [
        "says layer '3-frontend', but is in '1-foundation'",
        "has no <id>, so its id is the file's name: 'L5-001'",
    ]


def test_folders_without_numbers_are_layers_where_none_has_one():
    plan = read({f"{FOLDER}/setup/a.xml": USER.replace("<layer>1<", "<layer>Setup<")})
    assert [task.stage for task in plan.tasks] == ["setup"]
    beside = read(folder(**{"archive__L1-001.xml": USER}))
    assert "is in no layer's folder" in beside.notes[-1].text
    assert len(beside.tasks) == 2


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"1-a/L1-001.xml": "<!DOCTYPE t [<!ENTITY a 'b'>]><task/>"}, ":1: the XML has a declar"),
        ({"1-a/L1-001.xml": "<note>x</note>"}, ":1: <note> is not a <task>"),
        ({"1-a/x.xml": "<task><name>x</name></task>"}, "x.xml:1: the task has no id"),
        ({"x.xml": "<task id='x'/>"}, "x.xml:1: the task has no layer"),
        ({"1-a/x.xml": "<task id='../../x'/>"}, "'../../x' cannot name a ref"),
        ({"1-a/x.xml": "<task id='-rf'/>"}, "'-rf' cannot name a ref"),
        ({"1-a/x.xml": "<task id='a/b'/>"}, "'a/b' cannot name a ref"),
        ({"1-a/x.xml": USER, "2-b/y.xml": USER}, "'L1-001' is already used in docs/tasks/slack/1"),
        ({"1-a/x.xml": "<task id='L1-1' depends-on='L1-9'/>"}, "depends on 'L1-9', which is not"),
        ({"1-a/x.xml": "<task id='L1-1' depends-on='L2-1'/>", "2-b/y.xml": "<task id='L2-1'/>"},
         "'L1-1' depends on 'L2-1' of the later layer '2-b'"),
        ({"slack/1-a/x.xml": USER}, "are deeper, in 'docs/tasks/slack/slack'; name that folder"),
        ({"1-a/x.xml": USER, "manifest.json": "{"}, "manifest.json:1: the file is not JSON"),
        ({"1-a/x.xml": USER, "manifest.json": "[]"}, "manifest.json:1: the file is not a JSON"),
        ({"1-a/x.xml": USER, "manifest.json": '{"a": 1, "b": 2, "a": 1}'}, "the key 'a' twice"),
        ({"1-a/x.xml": USER, "manifest.json": "[" * 100_000}, "is nested too deep"),
        ({"1-a/x.xml": USER, "manifest.json": '{"a": ' + "9" * 5000 + "}"}, "limit (4300 digits)"),
        ({"1-a/L1-001.md": "---\nid: [a\n---\n"}, "L1-001.md:"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_says_where(files, why):
    with pytest.raises(PlanError) as refused:
        read({f"{FOLDER}/{name}": text for name, text in files.items()})
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("files", "meant"),
    [
        ({"1-a/x.xml": USER}, True),
        ({"1-a/x.xml": "<!-- a --><?b?>\n<!-- <c> --><task>"}, True),
        ({"1-a/L1-001-x.xml": "broken"}, True),
        ({"1-a/pom.xml": "<project/>", "1-a/b.md": "# B\n"}, False),
        ({"1-a/x.md": "# Task L1-001: X\n"}, True),
        ({"1-a/x.md": "---\nid: L1-001\n---\n"}, True),
        ({"1-a/x.md": "---\nid: 'L1-001\n---\n"}, False),
        ({"x.md": "# L1-001: X\n"}, False),
        ({"001-feature/tasks.md": "# Tasks\n- [ ] T001 x\n"}, False),
        ({"backlog/TASK-1.md": "---\nid: TASK-1\nstatus: x\n---\n"}, False),
        ({"1-a/manifest.json": "{}"}, False),
    ],
)
def test_it_is_known_by_what_it_contains(files, meant):
    texts = {f"{FOLDER}/{name}": text for name, text in files.items()}
    assert layers.LAYERS.recognises(Source(path=FOLDER, texts=texts)) is meant


def test_a_file_is_never_meant_and_the_folder_may_be_here():
    assert not layers.LAYERS.recognises(Source(path="x.xml", texts={"x.xml": USER}))
    with pytest.raises(PlanError, match="a file has no layers; name the folder"):
        load("x.xml", USER, dialect="layers")
    here = load(".", {"1-a/L1-001.xml": USER, "manifest.json": '{"slug": "s"}'})
    assert (here.id, here.tasks[0].stage, writes(here)) == ("s", "1-a", ("execute-state.json",))
    assert load("t/", {"t/1-a/L1-001.xml": USER}).tasks[0].stage == "1-a"


def big(count: int) -> dict[str, str]:
    files = {
        f"{FOLDER}/2-b/L2-{n}.xml": API.replace("L2-001", f"L2-{n}").replace(
            "L1-001-user-model", f"L2-{n - 1}"
        )
        for n in range(1, count)
    }
    files[f"{FOLDER}/2-b/L2-0.xml"] = USER.replace("L1-001", "L2-0")
    listed = [{"id": f"L2-{n}", "depends_on": [f"L3-{n}"]} for n in range(count)]
    files[f"{FOLDER}/manifest.json"] = json.dumps({"tasks": listed})
    return files


def test_reading_takes_time_in_proportion_to_the_folder():
    def seconds(files: dict[str, str]) -> float:
        began = time.process_time()
        assert len(read(files).tasks) == len(files) - 1
        return time.process_time() - began

    small, large = big(100), big(800)
    assert min(seconds(large) for _ in range(2)) < 8 * 3 * min(seconds(small) for _ in range(3))


def test_a_huge_folder_is_refused_before_it_is_read():
    with pytest.raises(PlanError, match="more than 10,000 tasks"):
        read({f"{FOLDER}/2-b/L3-{n}.xml": "<task>" for n in range(20_000)})


FRAGMENTS = [
    *API.splitlines(keepends=True), *MARKDOWN.splitlines(keepends=True), "<task>",
    "</task>", "---\n", "id: L1-001\n", "<", "&", "```\n", "- Run: ", "`", "- ",
    "<dependencies>L1-2",
]  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=30), st.sampled_from(["xml", "md"])
)
def test_whatever_the_files_hold_it_is_a_plan_or_one_clear_line(pieces, kind):
    path = f"{FOLDER}/1-a/L1-001.{kind}"
    try:
        plan = read({path: "".join(pieces) or "x", f"{FOLDER}/manifest.json": "{}"})
    except PlanError as refused:
        plan, line = None, str(refused)
    if plan is None:
        assert "\n" not in line
    else:
        assert all(task.path == path and all(task.checks) for task in plan.tasks)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["L1-001", "L9-1", "done", ""]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["tasks", "layers", "id", "task", "depends_on", "L1-001", "status", "layer",
                         "dependency_graph", "dependencies", "prd", "slug", "completed", "file"]),
        inner, max_size=5),
    max_leaves=20,
)  # fmt: skip


@given(JSON, st.sampled_from(["manifest.json", "layer_plan.json", "execute-state.json"]))
def test_whatever_the_lists_hold_invents_no_task(data, leaf):
    try:
        plan = read({f"{FOLDER}/1-a/x.xml": USER, f"{FOLDER}/{leaf}": json.dumps(data)})
    except PlanError as refused:
        plan, line = None, str(refused)
    if plan is None:
        assert "\n" not in line
    else:
        assert [task.id for task in plan.tasks] == ["L1-001"]


@needs_corpus
def test_real_documents_of_other_kinds_are_not_taken():
    for kind in CORPUS.iterdir():
        texts = {
            f"{name}/{path.name}": path.read_text(encoding="utf-8")
            for path in kind.iterdir()
            for name in ("x", "x/1-foundation")
        }
        assert not layers.LAYERS.recognises(Source(path="x", texts=texts)), kind
