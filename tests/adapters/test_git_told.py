"""Texts that are pinned: a power loss may leave a pin's name and take what it held."""

from pathlib import Path

import pytest

from repositories import Run, User
from windlass.adapters.git.told import ToldPins
from windlass.events import model as e
from windlass.plan import Task
from worlds import World, plan_of, writes

pytestmark = pytest.mark.anyio


@pytest.fixture
async def run(tmp_path: Path, anyio_backend: str) -> Run:
    del anyio_backend
    user = User(tmp_path)
    user.commit({"README": "hello\n"})
    return await Run(user).open()


def lose(run: Run, ref: str) -> str:
    """As a power loss does that comes between the sync of a ref and that of an object's name."""
    blob = run.user.git("rev-parse", ref).strip()
    (run.user.repo / ".git/objects" / blob[:2] / blob[2:]).unlink()
    return blob


async def test_a_verdict_whose_text_is_lost_was_never_kept(run: Run):  # B4
    await run.repository.keep("1.1", 1, "verdict-1", "approved")
    lose(run, run.refs.attempt("1.1", 1, "verdict-1"))
    assert await run.repository.kept("1.1", 1, "verdict-1") is None
    await run.repository.keep("1.1", 1, "verdict-1", "another word")
    assert await run.repository.kept("1.1", 1, "verdict-1") == "another word"
    assert run.user.git("fsck", "--connectivity-only", "--no-dangling") == ""


@pytest.fixture(scope="module")
def facts() -> list[e.Event]:
    world = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")})
    world.go()
    return [event for event in world.events if isinstance(event, e.RunStarted)]


async def test_how_a_run_began_is_written_again_where_it_was_lost(
    run: Run, facts: list[e.Event]
):  # B4
    blob = run.user.git("hash-object", "-w", "--stdin", stdin="the same in other words").strip()
    run.user.git("update-ref", run.refs.began, blob)
    lose(run, run.refs.began)
    await ToldPins(run.store, run.refs).catch_up(facts)
    assert run.user.git("cat-file", "-t", run.refs.began).strip() == "blob"
    assert run.user.git("fsck", "--connectivity-only", "--no-dangling") == ""
