"""How much differs between commits, told by two calls of git."""  # K7

from pathlib import Path

import pytest

from repositories import User
from windlass.adapters.git.inspect import UserGit, changes
from windlass.ports import Change


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


def test_every_pair_is_told_for_itself_and_what_is_gone_is_left_out(user: User):
    first = user.commit({"a": "1\n2\n3\n", "b": b"\x00\x01"})
    second = user.commit({"a": "1\n2\nthree\nfour\n", "b": b"\x00\x02", "new\tname": "x\n"})
    third = user.commit({"a": None, "b": b"\x00\x02"})
    git = UserGit(user.repo, user.environment)
    gone = "f" * 40
    pairs = [(first, second), (second, third), (first, first), (first, gone), (second, first)]
    found = changes(git, pairs)
    assert found.keys() == {(first, second), (second, third), (first, first), (second, first)}
    assert found[first, second] == (
        Change(path="a", added=2, deleted=1),
        Change(path="b", added=None, deleted=None),
        Change(path="new\tname", added=1, deleted=0),
    )
    assert found[first, first] == ()
    assert Change(path="a", added=0, deleted=4) in found[second, third]
    assert found[second, first][0] == Change(path="a", added=1, deleted=2)


def test_nothing_is_asked_of_git_where_it_has_nothing(user: User):
    user.commit({"a": "1\n"})
    git = UserGit(user.repo, user.environment)
    assert changes(git, []) == {}
    assert changes(git, [("c1", "c2"), ("e" * 40, "f" * 40)]) == {}


def test_no_program_that_the_user_or_the_tree_names_is_run(user: User, tmp_path: Path):
    trap = tmp_path / "trap"
    user.config(f"diff.external=touch {trap}", f"diff.x.textconv=touch {trap}; cat")
    first = user.commit({".gitattributes": "* diff=x\n", "a": "1\n"})
    second = user.commit({"a": "2\n"})
    found = changes(UserGit(user.repo, user.environment), [(first, second)])
    assert found[first, second] == (Change(path="a", added=1, deleted=1),)
    assert not trap.exists()
