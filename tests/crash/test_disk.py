"""What a power loss leaves, by the strict reading of what a sync promises."""

from pathlib import Path

import pytest

from windlass.testing.faults.disk import Disk, Line


class Story:
    """Things done to a folder, and what is left of it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "log"
        self._before = folder / "before"
        (self._before / "sub").mkdir(parents=True)
        (self._before / "old").write_text("old")
        self._disk = Disk(folder / "root", self._before, self._log)
        self._n = 0

    def do(self, what: str, path: str, other: str = "", content: str | None = None) -> None:
        self._n += 1
        if content is not None:
            (self._folder / f"log.{self._n}").write_text(content)
        root = self._folder / "root"
        second = other if what == "symlink" or not other else str(root / other)
        self._disk.do(Line(self._n, what, str(root / path), second))

    def left(self, survival: str = "lost", seed: int = 0) -> dict[str, str]:
        target = self._folder / f"left-{survival}-{seed}-{self._n}"
        self._disk.write(target, survival, seed)
        files = (path for path in target.rglob("*") if path.is_file())
        return {str(path.relative_to(target)): path.read_text() for path in files}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    return Story(tmp_path)


def test_what_was_there_before_is_safe(story: Story):
    assert story.left() == {"old": "old"}


def test_a_new_file_is_there_once_it_and_its_folder_are_synced(story: Story):
    story.do("create", "new")
    story.do("write", "new")
    assert story.left() == {"old": "old"}
    assert story.left("named") == {"old": "old", "new": ""}
    story.do("sync", "new", content="whole")
    assert story.left() == {"old": "old"}, "its name lives in its folder"
    story.do("sync", ".")
    assert story.left() == {"old": "old", "new": "whole"}


def test_a_file_falls_back_to_its_last_sync(story: Story):
    story.do("write", "old")
    assert story.left("named") == {"old": "old"}
    story.do("sync", "old", content="newer")
    story.do("write", "old")
    assert story.left() == {"old": "newer"}


def test_a_rename_that_was_not_synced_is_undone(story: Story):
    story.do("create", "sub/temp")
    story.do("sync", "sub/temp", content="new")
    story.do("sync", "sub")
    story.do("rename", "sub/temp", "old")
    assert story.left() == {"old": "old", "sub/temp": "new"}
    story.do("sync", ".")
    assert story.left()["old"] == "new"


def test_a_file_that_was_removed_comes_back(story: Story):
    story.do("gone", "old")
    assert story.left() == {"old": "old"}
    story.do("sync", ".")
    assert story.left() == {}


def test_a_folder_needs_its_own_name_too(story: Story):
    story.do("mkdir", "sub/deep")
    story.do("create", "sub/deep/file")
    story.do("sync", "sub/deep/file", content="here")
    story.do("sync", "sub/deep")
    assert story.left() == {"old": "old"}
    story.do("sync", "sub")
    assert story.left() == {"old": "old", "sub/deep/file": "here"}


def test_a_batch_of_git_is_safe_with_the_one_sync_at_its_end(story: Story):
    story.do("create", "sub/tmp_obj")
    story.do("range", "sub/tmp_obj", content="object")
    story.do("sync", "sub")
    assert story.left()["sub/tmp_obj"] == ""
    story.do("create", "sub/bulk_fsync_x")
    story.do("sync", "sub/bulk_fsync_x", content="")
    assert story.left()["sub/tmp_obj"] == "object"


def test_all_is_safe_after_a_sync_of_everything(story: Story, tmp_path: Path):
    story.do("create", "sub/new")
    made = tmp_path / "log.2"
    made.mkdir()
    (made / "by an agent").write_text("unseen")
    story.do("all", ".")
    assert story.left() == {"by an agent": "unseen"}


def test_by_chance_any_part_of_the_names_survives(story: Story):
    for name in "abc":
        story.do("create", name)
    seen = {frozenset(story.left("chance", seed)) for seed in range(40)}
    assert frozenset({"old"}) in seen
    assert len(seen) > 4
