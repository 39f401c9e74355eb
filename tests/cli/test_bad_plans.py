"""Hostile plans through the real command line: one clear line, exit 2, nothing written.

Every command has half a gigabyte of memory and a time after which it would count as hanging; both
guard, and measure nothing.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from desk import Desk
from windlass.core.plan import Task
from worlds import World, plan_of, writes

MEMORY_KB = 500_000
TASK = "## Task 1: One\n\n**Acceptance Criteria:**\n- [ ] done\n"
FRONT = "---\nid: T-1\nstatus: backlog\n{}---\n\n# One\n"

BOMB = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    + [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    + [""]
)
ENTITIES = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
XML = (
    f'<?xml version="1.0"?><!DOCTYPE t [<!ENTITY e0 "x">{ENTITIES}'
    '<!ENTITY out SYSTEM "file:///etc/passwd">]>'
    "<task><id>&out;</id><title>&e11;</title></task>\n"
)


@pytest.fixture
def small(desk: Desk) -> Desk:
    desk.under = ("sh", "-c", f'ulimit -v {MEMORY_KB} && exec "$@"', "sh")
    return desk


def refused(desk: Desk, *args: str) -> str:
    """What is said; that it is one line, and that nothing was written."""
    before = snapshot_of(desk.root)
    answer = desk.call("plan", *args)
    assert (answer.code, answer.out) == (2, ""), answer
    assert "Traceback" not in answer.err
    assert re.fullmatch(r"windlass: [^\n]{10,2000}\n", answer.err), answer.err[:500]
    assert snapshot_of(desk.root) == before
    return answer.err.removeprefix("windlass: ").removesuffix("\n")


def snapshot_of(root: Path) -> dict[str, tuple[int, int]]:
    """All that lies there, by size and time: much of it is too big to be read, or no file."""
    # Whoever reads a journal beside others leaves these two; they say nothing.
    found = (path for path in root.rglob("*") if not path.name.endswith(("-shm", "-wal")))
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in found}


FILES: dict[str, tuple[str, str | bytes, str]] = {
    "yaml-alias": ("a.md", FRONT.format("a: &x [1]\nb: *x\n"), r"a\.md:\d+: .*"),
    "yaml-bomb": ("a.md", FRONT.format(BOMB), r"a\.md:\d+: .*"),
    "yaml-bomb-file": ("a.yaml", f"id: F\nname: f\n{BOMB}", r"a\.yaml.*"),
    "yaml-deep": ("a.md", FRONT.format(f"a: {'[' * 900}{']' * 900}\n"), r"a\.md:\d+: .*"),
    "yaml-deep-file": ("a.yaml", f"id: F\ntasks: {'[' * 900}{']' * 900}\n", r"a\.yaml.*"),
    "yaml-deep-block": (
        "a.yaml",
        "id: F\ntasks:\n" + "".join(f"{' ' * n}a:\n" for n in range(900)),
        r"a\.yaml.*",
    ),
    "yaml-key-twice": ("a.md", FRONT.format("id: T-2\n"), r"a\.md:\d+: .*twice.*"),
    "yaml-long": ("a.md", FRONT.format("a: b\n" * 200_000), r"a\.md.*"),
    "lists-deep": ("a.md", "".join(f"{'  ' * n}- a\n" for n in range(900)), r"a\.md: no tasks.*"),
    "quotes-deep": ("a.md", f"{'>' * 900} ## Task 1: One\n", r"a\.md.*"),
    "tasks-20000": (
        "a.md",
        "".join(f"## Task {n}: Do {n}\n\n- [ ] done\n\n" for n in range(20_000)),
        r"a\.md: .* more than 10,000 .*",
    ),
    "line-10-mb": ("a.md", f"{TASK}\n{'x' * 9_900_000}\n", r"a\.md:6: .*1,000,000 characters.*"),
    "lines-450000": ("a.md", f"{TASK}{'- a' + chr(10)}" * 90_000, r"a\.md: .*more than.*"),
    "text-11-mb": ("a.md", f"{TASK}\n" * 250_000, r"a\.md: more than 10 MB; .*"),
    "brackets": ("a.md", f"{'[' * 50_000}\n\n{'`' * 50_000}\n\n{'*' * 50_000}\n", r"a\.md: no .*"),
    "xml-entities": ("a.xml", XML, r"a\.xml.*"),
    "not-utf-8": ("a.md", TASK.encode() + b"\n\xff\xfe\n", r"a\.md:6: .*not UTF-8.*"),
    "nul": ("a.md", f"{TASK}\n\0\n", r"a\.md:6: .*NUL.*"),
    "utf-16": ("a.md", TASK.encode("utf-16"), r"a\.md:1: .*"),
    "empty": ("a.md", "", r"a\.md: the file is empty; .*"),
    **{
        f"id-{number}": ("a.md", f"## Task {name}: One\n", r"a\.md:1: task id .*")
        for number, name in enumerate(
            ["../../x", "-rf", "a/b", "a..b", ".hidden", "a.lock", "a" * 65, "%00", "a\\b"]
        )
    },
}


@pytest.mark.parametrize("case", FILES)
def test_a_file(small: Desk, case: str):
    name, content, said = FILES[case]
    small.write(name, content)
    assert re.fullmatch(said, refused(small, name))


@pytest.mark.parametrize("case", FILES)
def test_a_folder_with_only_that_file(small: Desk, case: str):
    name, content, _ = FILES[case]
    small.write(f"plans/{name}", content)
    assert refused(small, "plans").startswith("plans")


def many(folder: Path) -> None:
    for number in range(30_000):
        (folder / f"{number}.md").touch()


def deep(folder: Path) -> None:
    for _ in range(300):
        folder /= "d"
        folder.mkdir()


def sparse(folder: Path) -> None:
    (folder / "a.md").touch()
    os.truncate(folder / "a.md", 2_000_000_000)


def large_in_all(folder: Path) -> None:
    for number in range(5):
        (folder / f"{number}.md").write_bytes(b"a line\n" * 700_000)


FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "30000-files": (many, r"plans: more than 5,000 files; .*"),
    "300-deep": (deep, r"plans: more than 16 folders within each other; .*"),
    "2-gigabytes": (sparse, r"plans/a\.md: more than 10 MB; .*"),
    "large-in-all": (large_in_all, r"plans/4\.md: more than 20 MB in all; .*"),
    "pipe": (lambda folder: os.mkfifo(folder / "a.md"), r"plans/a\.md: not a plain file; .*"),
    "link-loop": (
        lambda folder: (folder / "a.md").symlink_to("a.md"),
        r"plans/a\.md: the link leads nowhere; .*",
    ),
    "folder-loop": (
        lambda folder: (folder / "loop").symlink_to("."),
        r"plans: no file in this folder can be a plan; .*",
    ),
    "other-link-loop": (
        lambda folder: (folder / "loop").symlink_to("loop"),
        r"plans: no file in this folder can be a plan; .*",
    ),
    "link-out": (
        lambda folder: (folder / "a.md").symlink_to("/etc/passwd"),
        r"plans/a\.md: the link leads out of the repository; .*",
    ),
    "odd-name": (
        lambda folder: (folder / "a\x1b[2J.md").write_text(TASK),
        r"plans/a \[2J\.md: the file's name is not plain text; rename it",
    ),
    "nothing": (lambda _folder: None, r"plans: no file in this folder can be a plan; .*"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder(small: Desk, case: str):
    make, said = FOLDERS[case]
    folder = small.repo / "plans"
    folder.mkdir()
    make(folder)
    assert re.fullmatch(said, refused(small, "plans"))


class TestNames:
    def test_a_pipe(self, small: Desk):
        os.mkfifo(small.repo / "a.md")
        assert refused(small, "a.md").startswith("a.md: not a plain file; ")

    def test_a_device(self, small: Desk):
        assert refused(small, "/dev/zero").startswith("/dev/zero: not a plain file; ")

    def test_a_link_to_itself(self, small: Desk):
        (small.repo / "a.md").symlink_to("a.md")
        assert refused(small, "a.md") == "a.md: the link leads nowhere; name the plan's file"

    @pytest.mark.parametrize("name", ["x" * 5000, "/".join(["x" * 200] * 30), "../../../x.md"])
    def test_a_name_that_names_nothing(self, small: Desk, name: str):
        assert "no such file or plan" in refused(small, name)

    def test_2_gigabytes(self, small: Desk):
        sparse(small.repo)
        assert refused(small, "a.md").startswith("a.md: more than 10 MB; ")


class TestRecorded:
    """Whatever can be made of a plan's files now, its runs are found by its path."""

    def record(self, desk: Desk, path: str, dialect: str) -> None:
        plan = replace(plan_of(Task(id="a", title="A")), id="p", path=path, dialect=dialect)
        world = World(plan, {"a": writes("a", "1")})
        world.go()
        desk.record("p", world.events[:4])

    def test_a_folder(self, desk: Desk):
        self.record(desk, "plans", "milestone")
        (desk.repo / "plans").mkdir()
        assert '"plan": "p"' in desk.call("status", "plans", "--json").out
        assert refused(desk, "p").startswith("plans: no file in this folder can be a plan; ")
        assert refused(desk, "plans").startswith("plans: no file in this folder can be a plan; ")

    def test_a_file_that_is_broken_now(self, desk: Desk):
        self.record(desk, "both.md", "milestone")
        desk.write("both.md", "\0")
        assert '"plan": "p"' in desk.call("status", "both.md", "--json").out

    def test_a_run_goes_on_in_the_dialect_it_was_started_with(self, desk: Desk):
        self.record(desk, "both.md", "taskfile")
        # Left to itself it would be a milestone; as a task file it is broken.
        desk.write("both.md", "---\nid: p\nstatus: x\ncomplexity: 99\n---\n\n## Task 1: One\n")
        assert "dialect milestone" in desk.call("plan", "both.md").out
        said = desk.call("resume", "both.md").err
        assert said.startswith("windlass: both.md:4: 'complexity' is not a number from 0 to 10; ")
