"""What a person named is read under bounds, and nothing is read that they did not name."""

import os
import socket
from pathlib import Path

import pytest

from windlass.adapters import plan_files
from windlass.adapters.plan_files import PlanFiles
from windlass.errors import PlanError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "repo"
    made.mkdir()
    return made


def put(root: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def read(root: Path, name: str) -> PlanFiles:
    files = PlanFiles(root)
    files.read(root / name, name)
    return files


def refused(root: Path, name: str) -> str:
    with pytest.raises(PlanError) as caught:
        read(root, name)
    return str(caught.value)


class TestFile:
    def test_any_file_that_is_named_is_read(self, root: Path):
        put(root, **{"plan.text": "hello"})
        assert read(root, "plan.text").texts == {"plan.text": "hello"}

    def test_what_is_not_utf_8_is_kept_for_the_dialects_to_refuse(self, root: Path):
        put(root, **{"plan.md": b"caf\xe9"})
        assert read(root, "plan.md").texts == {"plan.md": "caf\udce9"}

    def test_a_pipe_is_refused_without_waiting_for_a_writer(self, root: Path):
        os.mkfifo(root / "plan.md")
        assert refused(root, "plan.md").startswith("plan.md: not a plain file; ")

    def test_a_device_and_a_socket_are_refused(self, root: Path):
        assert refused(root, "/dev/zero").startswith("/dev/zero: not a plain file; ")
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(os.path.relpath(root / "s.md"))
            assert refused(root, "s.md").startswith("s.md: not a plain file; ")

    def test_a_file_that_is_too_long_is_not_read(self, root: Path):
        put(root, **{"plan.md": ""})
        os.truncate(root / "plan.md", 2_000_000_000)
        cure = "split the plan into a folder of files"
        assert refused(root, "plan.md") == f"plan.md: more than 10 MB; {cure}"

    def test_a_file_that_is_longer_than_it_says_is_not_read_to_its_end(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ):
        monkeypatch.setattr(plan_files, "MAX_FILE", 10)
        assert Path("/proc/self/status").stat().st_size == 0
        assert "more than" in refused(root, "/proc/self/status")


class TestFolder:
    def test_files_that_may_hold_tasks_are_read_in_order(self, root: Path):
        put(root, **{"p/b.md": "b", "p/a.yaml": "a", "p/sub/c.XML": "c", "p/state.json": "{}"})
        put(root, **{"p/d.txt": "d", "p/e.py": "e", "other.md": "o"})
        files = read(root, "p")
        assert list(files.texts) == ["p/a.yaml", "p/b.md", "p/state.json", "p/sub/c.XML"]
        assert files.notes == []

    def test_what_is_hidden_or_others_own_is_left_alone(self, root: Path):
        put(root, **{f"{folder}/x.md": "x" for folder in (".git", ".windlass", ".venv")})
        put(root, **{"node_modules/x.md": "x", ".hidden.md": "x", "a.md": "a"})
        assert list(read(root, ".").texts) == ["a.md"]

    def test_a_hidden_folder_that_is_named_is_read(self, root: Path):
        put(root, **{".claude/tasks/a.md": "a"})
        assert list(read(root, ".claude/tasks").texts) == [".claude/tasks/a.md"]

    def test_json_that_is_no_text_is_noted(self, root: Path):
        put(root, **{"p/a.md": "a", "p/x.json": b"\xff\xfe", "p/y.json": b"{}\0"})
        put(root, **{"p/z.json": b" " * 1_000_001, "p/empty.json": ""})
        files = read(root, "p")
        assert list(files.texts) == ["p/a.md"]
        assert [(note.path, note.text) for note in files.notes] == [
            ("p/x.json", "the file is not UTF-8 text"),
            ("p/y.json", "the file is not text: it has a NUL byte"),
            ("p/z.json", "more than 1 MB"),
        ]

    def test_a_manifest_is_never_passed_over(self, root: Path):
        put(root, **{"p/a.md": "a", "p/manifest.json": b"\xff"})
        assert read(root, "p").texts["p/manifest.json"] == "\udcff"

    def test_an_empty_file_holds_no_task_and_is_noted(self, root: Path):
        put(root, **{"p/a.md": "a", "p/b.md": "\n "})
        files = read(root, "p")
        assert list(files.texts) == ["p/a.md"]
        assert [note.path for note in files.notes] == ["p/b.md"]

    def test_a_file_that_may_hold_tasks_and_cannot_be_read_is_refused(self, root: Path):
        put(root, **{"p/a.md": "a"})
        os.mkfifo(root / "p/b.md")
        assert refused(root, "p").startswith("p/b.md: not a plain file; ")

    def test_a_name_that_is_no_text_is_refused(self, root: Path):
        put(root, **{"p/a\nb.md": "a"})
        assert "name is not plain text" in refused(root, "p")

    def test_a_folder_without_any_is_refused(self, root: Path):
        put(root, **{"p/a.txt": "a"})
        assert refused(root, "p").startswith("p: no file in this folder can be a plan; ")


class TestBounds:
    @pytest.mark.parametrize(
        ("bound", "most", "said"),
        [
            ("MAX_FILES", 3, "p: more than 3 files; name the plan's own file"),
            ("MAX_ENTRIES", 3, "p: more than 3 files and folders; "),
            ("MAX_TOTAL", 3, "p/3.md: more than 0 MB in all; "),
            ("MAX_DEPTH", 1, "p: more than 1 folders within each other; "),
        ],
    )
    def test_each_ends_the_reading(
        self, root: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int, said: str
    ):
        put(root, **{f"p/{number}.md": "a" for number in range(5)}, **{"p/s/x.txt": "x"})
        monkeypatch.setattr(plan_files, bound, most)
        assert refused(root, "p").startswith(said)

    def test_depth_of_any_kind_ends(self, root: Path):
        deep = root / "p"
        for _ in range(60):
            deep /= "d"
        deep.mkdir(parents=True)
        assert refused(root, "p").startswith("p: more than 16 folders within each other; ")


class TestLinks:
    def test_one_within_the_repository_is_followed(self, root: Path):
        put(root, **{"p/a.md": "a", "shared/b.md": "b"})
        (root / "p/b.md").symlink_to("../shared/b.md")
        assert read(root, "p").texts == {"p/a.md": "a", "p/b.md": "b"}

    def test_one_to_a_file_that_is_read_anyway_is_read_once(self, root: Path):
        put(root, **{"p/b.md": "b"})
        (root / "p/a.md").symlink_to("b.md")
        assert list(read(root, "p").texts) == ["p/b.md"]

    def test_one_that_leads_out_is_refused(self, root: Path):
        put(root.parent, **{"secret.md": "s"})
        put(root, **{"p/a.md": "a"})
        (root / "p/b.md").symlink_to("../../secret.md")
        assert refused(root, "p") == (
            "p/b.md: the link leads out of the repository; put the file itself there"
        )

    def test_json_that_leads_out_or_nowhere_is_noted(self, root: Path):
        put(root.parent, **{"secret.json": "{}"})
        put(root, **{"p/a.md": "a"})
        (root / "p/b.json").symlink_to("../../secret.json")
        (root / "p/c.json").symlink_to("c.json")
        files = read(root, "p")
        assert list(files.texts) == ["p/a.md"]
        assert [(note.path, note.text) for note in files.notes] == [
            ("p/b.json", "the link leads out of the repository"),
            ("p/c.json", "the link leads nowhere"),
        ]

    def test_one_that_leads_nowhere_is_refused(self, root: Path):
        put(root, **{"p/a.md": "a"})
        (root / "p/b.md").symlink_to("b.md")
        assert refused(root, "p").startswith("p/b.md: the link leads nowhere; ")

    def test_a_link_to_a_folder_is_never_entered(self, root: Path):
        put(root, **{"p/a.md": "a", "p/s/b.md": "b"})
        (root / "p/s/up").symlink_to("..")
        files = read(root, "p")
        assert list(files.texts) == ["p/a.md", "p/s/b.md"]
        assert [note.path for note in files.notes] == ["p/s/up"]


class TestFurther:
    """Files that the plan's own text names."""

    @pytest.fixture
    def files(self, root: Path) -> PlanFiles:
        put(
            root, **{"feature.yaml": "f", "tasks/a.md": "a", ".git/x.md": "g", "tasks/key.pem": "k"}
        )
        put(root.parent, **{"out.md": "o"})
        return read(root, "feature.yaml")

    def test_those_that_are_there_are_read_once(self, files: PlanFiles):
        files.read_also(["tasks/a.md", "tasks/a.md", "tasks/none.md", "feature.yaml"])
        assert files.texts == {"feature.yaml": "f", "tasks/a.md": "a"}

    @pytest.mark.parametrize(
        "name",
        [
            "../out.md", "tasks/../../out.md", "/etc/a.md", "", ".", "tasks", "tasks//a.md",
            "./tasks/a.md", "tasks/key.pem", ".git/x.md", "a\0.md", "a\n.md", "x" * 300 + ".md",
        ],
    )  # fmt: skip
    def test_what_may_not_be_read_by_that_name_is_not_there(self, files: PlanFiles, name: str):
        files.read_also([name])
        assert list(files.texts) == ["feature.yaml"]

    def test_a_link_that_leads_out_is_refused(self, root: Path, files: PlanFiles):
        (root / "tasks/out.md").symlink_to("../../out.md")
        (root / "away").symlink_to("..")
        for name in ("tasks/out.md", "away/out.md"):
            with pytest.raises(PlanError, match="leads out of the repository"):
                files.read_also([name])

    def test_a_pipe_is_refused(self, root: Path, files: PlanFiles):
        os.mkfifo(root / "tasks/p.md")
        with pytest.raises(PlanError, match="not a plain file"):
            files.read_also(["tasks/p.md"])

    def test_they_count(self, files: PlanFiles, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(plan_files, "MAX_FILES", 1)
        with pytest.raises(PlanError, match="more than 1 files"):
            files.read_also(["tasks/a.md"])
