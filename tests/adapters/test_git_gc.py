"""The user's own gc may run at any moment: what it takes before the pin holds is written again."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from repositories import Run, User, author, write
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed
from windlass.ports import Merged

BASE = {"README": "hello\n", "src/a": "a\n", "src/b": "b\n"}
pytestmark = pytest.mark.anyio


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit(BASE)
    return made


async def prepared(user: User) -> tuple[Run, Path]:
    run = await Run(user).open()
    return run, await run.repository.prepare("1.1", 1, run.base, None)


@pytest.mark.parametrize("moment", ["add", "write-tree", "commit"])
async def test_objects_pruned_before_the_pin_are_written_again(user: User, moment: str):
    run, workspace = await prepared(user)
    write(workspace, {"deep/new": "n\n", "README": "changed\n"})
    after(run.store, moment, lambda: user.git("prune", "--expire=now"))
    made = await run.save("1.1")
    assert user.files(made.commit) == {**BASE, "deep/new": "n\n", "README": "changed\n"}


@pytest.mark.parametrize("lost", ["", "^{tree}", ":deep", ":deep/new"])
async def test_objects_pruned_in_spite_of_the_pin_are_written_again(user: User, lost: str):
    """A gc that looked before the pin was there removes after it."""
    run, workspace = await prepared(user)
    write(workspace, {"deep/new": "n\n"})
    ref = run.refs.attempt("1.1", 1, "snapshot")
    after(run.store, "update-ref", lambda: prune(user, f"{ref}{lost}"))
    made = await run.save("1.1")
    assert user.files(made.commit) == {**BASE, "deep/new": "n\n"}
    assert user.refs(ref) == {ref: made.commit}
    assert user.git("fsck", "--connectivity-only", "--no-dangling") == ""


@pytest.mark.parametrize("moment", ["merge-tree", "commit", "update-ref"])
async def test_a_merge_is_written_again(user: User, moment: str):
    run = await Run(user).open()
    one = await run.play("1.1", {"src/a": "1\n"})
    two = await run.play("1.2", {"src/b": "2\n"})
    ref = run.refs.candidate(1)

    def gc() -> object:
        if moment == "update-ref":
            return prune(user, f"{ref}:src")
        return user.git("prune", "--expire=now")

    after(run.store, moment, gc)
    made = await run.repository.merge(author("1.2"), 1, two.commit, one.commit)
    assert isinstance(made, Merged)
    assert user.files(made.commit) == {**BASE, "src/a": "1\n", "src/b": "2\n"}
    assert user.refs(ref) == {ref: made.commit}


async def test_one_that_never_stops_is_told(user: User):
    run, workspace = await prepared(user)
    write(workspace, {"new": "n\n"})
    ref = run.refs.attempt("1.1", 1, "snapshot")
    after(run.store, "update-ref", lambda: prune(user, f"{ref}:new"), times=9)
    with pytest.raises(GitFailed, match="keep disappearing"):
        await run.save("1.1")
    assert user.refs(ref) == {}


def after(store: Store, command: str, act: Callable[[], object], times: int = 1) -> None:
    """Let something happen right after a git command of the store, as another process might."""
    left = [times]

    def disturbed(call: Callable[..., Awaitable[Any]], first: str | None = None) -> Any:
        async def calling(*args: Any, **more: Any) -> Any:
            answer = await call(*args, **more)
            if left[0] and first in (None, args[0]):
                left[0] -= 1
                act()
            return answer

        return calling

    if command == "update-ref":
        store.pin = disturbed(store.pin)
    elif command == "commit":
        store.commit = disturbed(store.commit)
    else:
        store.trees = disturbed(store.trees, command)


def prune(user: User, name: str) -> None:
    """Take one object away."""
    object_id = user.git("rev-parse", "--verify", name)
    (user.repo / ".git/objects" / object_id[:2] / object_id[2:]).unlink()
