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


@pytest.fixture(scope="module")
def facts() -> list[e.Event]:
    world = World(plan_of(Task(id="a", title="a")), {"a": writes("a", "1")})
    world.go()
    return [event for event in world.events if isinstance(event, e.RunStarted)]


async def test_how_a_run_began_is_written_again_where_it_was_lost(
    run: Run, facts: list[e.Event]
):  # B4
    await ToldPins(run.store, run.refs).catch_up(facts)
    assert run.user.git("cat-file", "-t", run.refs.began).strip() == "blob"
