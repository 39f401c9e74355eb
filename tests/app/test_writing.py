"""Use cases that write files but no fact, called from Python: they ask through a callback."""

import zipfile
from pathlib import Path

import pytest

from finished_run import InProcessDesk
from windlass.adapters.locks import PlanLock
from windlass.app.bundle import BundleRequest, bundle
from windlass.app.clean import CleanRequest, Found, clean
from windlass.app.init import Proposed, init, propose
from windlass.app.wiring import Project
from windlass.errors import BadInput, Busy


def test_clean_shows_what_goes_and_deletes_it_only_when_that_is_confirmed(
    done: InProcessDesk, project: Project
):
    cache = done.repo / ".windlass/plans/plan/throwaway/left"
    cache.mkdir(parents=True)
    shown: list[Found] = []

    def refuse(found: Found) -> bool:
        shown.append(found)
        return False

    (kept,) = clean(project, CleanRequest(plan="plan"), confirm=refuse)
    assert (kept.deleted, kept.exit_code) == ((), 0)
    assert cache.exists()
    assert shown[0].going >= 1
    (gone,) = clean(project, CleanRequest(runs=True), confirm=lambda _: True)
    assert ".windlass/plans/plan/throwaway/left" in [item.name for item in gone.deleted]
    assert gone.failed == ()
    assert not cache.exists()


def test_clean_passes_over_a_plan_with_a_live_run_unless_it_is_named(
    done: InProcessDesk, project: Project
):
    with PlanLock(done.repo / ".windlass/plans/plan/lock"):
        (passed,) = clean(project, CleanRequest(), confirm=lambda _: True)
        assert passed.busy is not None
        assert passed.exit_code == 5
        with pytest.raises(Busy):
            clean(project, CleanRequest(plan="plan"), confirm=lambda _: True)


def test_a_bundle_lists_what_is_in_it(done: InProcessDesk, tmp_path: Path):
    made = bundle(done.repo, done.environment, BundleRequest())
    assert made.path == done.repo / ".windlass/windlass-bundle.zip"
    with zipfile.ZipFile(made.path) as archive:
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    assert sizes == dict(made.files)
    assert made.notes == ()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    alone = bundle(elsewhere, done.environment, BundleRequest(output=tmp_path / "b.zip"))
    assert "packed without a repository" in alone.notes[0]
    with pytest.raises(BadInput, match="there is no folder"):
        bundle(done.repo, done.environment, BundleRequest(output=tmp_path / "none/b.zip"))


def test_init_proposes_and_writes_when_that_is_confirmed(done: InProcessDesk, project: Project):
    (done.repo / "go.mod").write_text("module example\n")
    proposed = propose(project)
    assert [each.line for each in proposed.proposal.checks] == ["go test ./..."]
    assert 'checks = [\n    # go.mod is there\n    "go test ./...",\n]' in proposed.text
    asked: list[Proposed] = []

    def refuse(found: Proposed) -> bool:
        asked.append(found)
        return False

    assert init(project, confirm=refuse).path is None
    assert asked == [proposed]
    made = init(project, confirm=lambda _: True)
    assert made.path == done.repo / "windlass.toml"
    assert made.path.read_text() == proposed.text
    with pytest.raises(BadInput, match="exists, and was not changed"):
        init(project, confirm=lambda _: True)
    assert init(project, force=True, confirm=lambda _: True).path is not None
