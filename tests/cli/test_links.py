"""No link and no special file in a checkout leads a write of Windlass elsewhere, in any command."""

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import plans
from desk import Desk
from finished_run import InProcessDesk, finished
from formats import FEATURE, SPEC, SPECKIT, STATE_MD, TASK, XML
from quick import quick_run
from windlass.core.settings import Settings, StateFileSettings
from windlass.testing.agents import ScriptedAgent

WITH_FILE = Settings(state_files=StateFileSettings(milestone=True))
LAYER = "work/tasks/0-setup/L0-001-base.xml"
FORMATS: dict[str, tuple[str, dict[str, str], tuple[str, ...], tuple[str, ...]]] = {
    "milestone": (
        "plan.md",
        {"plan.md": plans.plan_text({"1.1": ()})},
        ("1.1",),
        ("state/plan_state.json",),
    ),
    "feature": (
        ".guardkit/features/FEAT-1.yaml",
        {
            ".guardkit/features/FEAT-1.yaml": FEATURE,
            "tasks/backlog/TASK-1.md": TASK.format(id="TASK-1", more=""),
            "tasks/backlog/TASK-2.md": TASK.format(id="TASK-2", more=""),
        },
        ("TASK-1", "TASK-2"),
        ("tasks/backlog/TASK-1.md", "tasks/backlog/TASK-2.md"),
    ),
    "spec": (
        ".specflow/specs/SPEC-1.md",
        {".specflow/specs/SPEC-1.md": SPEC, ".specflow/STATE.md": STATE_MD},
        ("G1", "G2"),
        (".specflow/STATE.md", ".specflow/execution/archive/SPEC-1-state.json"),
    ),
    "layers": (
        "work/tasks",
        {LAYER: XML.format(id="L0-001", layer="0-setup")},
        ("L0-001",),
        ("work/tasks/execute-state.json",),
    ),
    "speckit": (
        "specs/001-albums",
        {"specs/001-albums/tasks.md": SPECKIT, "specs/001-albums/spec.md": "# Albums\n"},
        ("T001", "T002"),
        ("specs/001-albums/tasks.md",),
    ),
}
"""Of each plan format: the plan, its files, its tasks, and where it writes its state."""

WRITTEN = [
    pytest.param(name, path, id=f"{name}-{path}")
    for name, (_, _, _, paths) in FORMATS.items()
    for path in paths
]


def plant_link(path: Path, home: Path) -> None:
    (path.parent / "planted").symlink_to(home.parent / ".profile")
    (path.parent / "planted").rename(path)


def plant_dangling_link(path: Path, home: Path) -> None:
    (path.parent / "planted").symlink_to(home / "made-by-windlass")
    (path.parent / "planted").rename(path)


def plant_pipe(path: Path, _home: Path) -> None:
    os.mkfifo(path.parent / "planted")
    (path.parent / "planted").rename(path)


def plant_folder_link(path: Path, home: Path) -> None:
    shutil.copytree(path.parent, home / "copy")
    aside = path.parent.with_name(f"aside-{home.name}")  # a write under way still ends in there
    path.parent.rename(aside)
    path.parent.symlink_to(home / "copy")


class Home:
    """The user's own folder, which is to stay as it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / ".profile").write_text("export MINE=1\n")

    def held(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}


@pytest.mark.parametrize("plant", [plant_link, plant_dangling_link, plant_pipe, plant_folder_link])
@pytest.mark.parametrize(("name", "path"), WRITTEN)
def test_a_run_writes_its_state_through_no_link_says_so_and_goes_on(
    tmp_path: Path, name: str, path: str, plant: Callable[[Path, Path], None]
):
    plan, files, tasks, _ = FORMATS[name]
    desk = Desk(tmp_path)
    desk.build(files)
    home, target = Home(desk.home), desk.repo / path
    agent = ScriptedAgent({task: {f"{task}.out": f"{task}\n"} for task in tasks}, default={})
    before: dict[str, bytes] = {}

    class Planting(ScriptedAgent):
        async def work(self, brief, workspace, watch):
            if not before:
                target.parent.mkdir(parents=True, exist_ok=True)
                self.plant()
                before.update(home.held())
            return await agent.work(brief, workspace, watch)

        def plant(self) -> None:
            """In the place of a file that Windlass may be writing at this moment."""
            for attempt in range(1000):
                (home.folder / f"{attempt}").mkdir()
                with suppress(FileExistsError, FileNotFoundError):
                    plant(target, home.folder / f"{attempt}")
                    return

    said: list[str] = []
    state = quick_run(
        desk.repo, Planting({}), plan_path=plan, notice=said.append, settings=WITH_FILE
    )
    assert state.ended == "completed", state.reason
    assert home.held() == before
    kind = "a pipe" if plant is plant_pipe else "a link"
    named = [text for text in said if f"is {kind}, and Windlass" in text]
    assert named, said
    assert all("in its place" in text for text in named)
    assert len(named) == len(set(named)), "each file is said once"


@pytest.fixture
def done(tmp_path: Path) -> InProcessDesk:
    return finished(tmp_path)


def link(desk: InProcessDesk, name: str) -> Home:
    """A link to the user's file at that place of the repository."""
    desk.home.mkdir(exist_ok=True)
    home = Home(desk.home)
    place = desk.repo / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(home.folder / ".profile")
    return home


RUN = ".windlass/plans/plan/runs/r1"


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("windlass.toml", ("init", "--yes", "--force")),
        (f"{RUN}/report.html", ("report",)),
        (f"{RUN}/report.md", ("report", "--format", "markdown")),
        ("docs/report.html", ("report", "--output", "docs/report.html")),
        ("docs/bundle.zip", ("bundle", "--output", "docs/bundle.zip")),
        (".windlass/windlass-bundle.zip", ("bundle",)),
        (".windlass/plans/plan/lock", ("retry", "1.1", "--yes")),
        (".windlass/plans/plan/journal.db", ("retry", "1.1")),
    ],
)
def test_a_command_writes_through_no_link(done: InProcessDesk, name: str, args: tuple[str, ...]):
    home = link(done, name)
    before = home.held()
    answer = done.call(*(str(done.repo / arg) if arg == name else arg for arg in args))
    assert answer.code == 2, answer
    assert name in answer.err
    assert answer.err.count("\n") == 1
    assert home.held() == before
    assert (done.repo / name).is_symlink()


@pytest.mark.parametrize("args", [("report", "--output"), ("bundle", "--output")])
def test_a_folder_of_the_repository_that_is_a_link_is_no_way_out(done: InProcessDesk, args):
    done.home.mkdir(exist_ok=True)
    home = Home(done.home)
    (done.repo / "docs").symlink_to(done.home)
    before = home.held()
    short = done.root / "short"
    short.symlink_to(done.repo)
    for folder in (done.repo / "docs", short / "docs", done.repo / "docs/../docs"):
        answer = done.call(*args, str(folder / "out"))
        assert answer.code == 2, answer
        assert "docs is a link" in answer.err
    assert home.held() == before


def test_a_file_that_you_name_outside_of_the_repository_is_yours_to_link(done: InProcessDesk):
    (done.root / "site").mkdir()
    (done.root / "latest.html").symlink_to(done.root / "site/report.html")
    (done.root / "site/report.html").write_text("old")
    assert done.call("report", "--output", str(done.root / "latest.html")).code == 0
    assert (done.root / "latest.html").is_symlink()
    assert "<html" in (done.root / "site/report.html").read_text()
    assert done.call("report", "--output", os.devnull).code == 0
    assert Path(os.devnull).is_char_device()


def test_a_bundle_is_for_its_owner_alone_from_the_first_byte(done: InProcessDesk):
    path = done.root / "bundle.zip"
    assert done.call("bundle", "--output", str(path)).code == 0
    assert path.stat().st_mode & 0o777 == 0o600


def test_windlass_own_folder_is_no_link(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.build({"plan.md": plans.plan_text({"1.1": ()})})
    home = Home(desk.home)
    (desk.repo / ".windlass").symlink_to(desk.home)
    before = home.held()
    answer = desk.call("run", "plan.md", "--yes")
    assert answer.code == 4, answer
    assert ".windlass is a link" in answer.err
    assert "remove it, or put a plain folder in its place" in answer.err
    assert home.held() == before


def test_guidance_is_read_through_a_link_of_the_repository_and_no_other(tmp_path: Path):
    from windlass.app.wiring.instructions import read_instructions

    root = tmp_path / "repo"
    root.mkdir()
    (tmp_path / "secret").write_text("key")
    (root / "AGENTS.md").write_text("Be kind.")
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    assert read_instructions(root) == {"AGENTS.md": "Be kind.", "CLAUDE.md": "Be kind."}
    for planted in ("../secret", str(tmp_path / "secret")):
        (root / "CLAUDE.md").unlink()
        (root / "CLAUDE.md").symlink_to(planted)
        assert read_instructions(root) == {"AGENTS.md": "Be kind."}
    (root / "CLAUDE.md").unlink()
    os.mkfifo(root / "CLAUDE.md")
    assert read_instructions(root) == {"AGENTS.md": "Be kind."}


def test_a_pipe_in_the_place_of_the_configuration_waits_for_no_one(tmp_path: Path):
    desk = Desk(tmp_path)
    desk.build({"plan.md": plans.plan_text({"1.1": ()})})
    os.mkfifo(desk.repo / "windlass.toml")
    answer = desk.call("run", "plan.md", "--yes")
    assert answer.code == 2
    assert "windlass.toml is not a regular file; replace or remove it" in answer.err
