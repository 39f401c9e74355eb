"""What a stage should have left, looked for in real git: names of any kind, and few calls."""

import os
from collections.abc import Iterable
from pathlib import Path

import anyio
import pytest

from repositories import Run, User, write
from windlass.core.exchange import Expected
from windlass.core.settings import WorkspaceSettings

ODD = os.fsdecode(b"src/caf\xe9 \xff.py")
TOLD = "src/caf\ufffd \ufffd.py"
FILES = {"src/deep/down/a.py": "a\n", ODD: "b\n", "new\nline": "c\n", "plain": "d\n"}


@pytest.fixture
def user(tmp_path: Path) -> User:
    made = User(tmp_path)
    made.commit({"README": "hello\n", ".gitignore": "dist/\n*.local\n"})
    return made


def verified(user: User, *, files: Iterable[str] = (), lost: str = "") -> tuple[str, ...]:
    """What is said of a tip with one task merged, and perhaps of a task that was given up."""

    async def go() -> tuple[str, ...]:
        run = await Run(user).open()
        made = await run.play("1", FILES)
        tip, _ = await run.land("1", 1, made.commit, run.base)
        kept: dict[str, str] = {}
        if lost:
            kept["2"] = (await run.play("2", {"half": "h\n"})).commit
            spoil(run.folders.workspace("2"), lost)
        expected = Expected(
            merges={"1": (tip, made.commit)}, files=dict.fromkeys(files, "1"), kept=kept
        )
        return await run.repository.verify(tip, expected)

    return anyio.run(go)


def spoil(workspace: Path, how: str) -> None:
    if how == "changed":
        write(workspace, {"half": "more\n"})
    elif how == "removed":
        write(workspace, {"half": None})
    elif how == "by-product":
        write(workspace, {"dist/x": "1\n", "__pycache__/half.pyc": "2\n"})
    elif how == "pipe":
        os.mkfifo(workspace / ".gitattributes")


def test_files_are_found_by_whatever_names_they_have(user: User) -> None:  # S6
    assert verified(user, files=["src/deep/down/a.py", TOLD, "new\nline", "plain"]) == ()


def test_a_folder_that_a_plan_names_is_there_with_what_is_in_it(user: User) -> None:  # S6
    assert verified(user, files=["src", "src/", "src/deep", "src/deep/down/"]) == ()


@pytest.mark.parametrize("path", ["other", "src/deep/down/b.py", "plain/file", "SRC", "../plain"])
def test_what_is_not_there_is_told(user: User, path: str) -> None:  # S6
    assert verified(user, files=[path]) == (f"1: {path} is not there",)


def test_what_the_project_ignores_is_in_no_commit_and_not_missed(user: User) -> None:
    said = verified(user, files=["dist/bundle.js", ".env.local", "node_modules/x", "dist2/y"])
    assert said == ("1: dist2/y is not there",)


@pytest.mark.parametrize("outside", ["../plain", "src/../../plain", "/etc/none"])
def test_a_path_that_leads_outside_keeps_no_answer_from_those_after_it(
    user: User, outside: str
) -> None:
    said = verified(user, files=[outside, "dist/bundle.js"])
    assert said == (f"1: {outside} is not there",)


@pytest.mark.parametrize("how", ["changed", "removed", "pipe"])
def test_work_that_was_given_up_and_changed_since_is_told(user: User, how: str) -> None:  # S6
    said = verified(user, lost=how)
    assert len(said) == 1
    assert said[0].startswith("2: its workspace has ")


@pytest.mark.parametrize("how", ["nothing", "by-product"])
def test_work_that_was_given_up_and_pinned_is_fine(user: User, how: str) -> None:
    assert verified(user, lost=how) == ()


def test_what_setup_made_where_work_was_given_up_is_no_work(user: User) -> None:
    settings = WorkspaceSettings(setup=("mkdir vendor && echo x > vendor/x",))

    async def go() -> None:
        run = await Run(user, settings=settings).open()
        made = await run.play("1", {"half": "h\n"})
        expected = Expected(merges={}, files={}, kept={"1": made.commit})
        assert await run.repository.verify(run.base, expected) == ()
        write(run.folders.workspace("1"), {"more": "m\n"})
        assert len(await run.repository.verify(run.base, expected)) == 1

    anyio.run(go)


def test_sixty_tasks_are_looked_at_with_as_many_calls_as_one(user: User, tmp_path: Path) -> None:
    """# S13"""
    calls = tmp_path / "calls"
    real = os.environ["PATH"]
    wrapper = tmp_path / "bin"
    wrapper.mkdir()
    (wrapper / "git").write_text(f'#!/bin/sh\necho "$@" >> {calls}\nPATH={real} exec git "$@"\n')
    (wrapper / "git").chmod(0o755)

    async def go() -> None:
        run = await Run(user).open()
        tip, merges, files = run.base, dict[str, tuple[str, str]](), dict[str, str]()
        for number in range(1, 61):
            tree = await run.store.tree_of(tip)
            made = await run.store.commit(tree, (tip,), f"{number}\n")
            merge = await run.store.commit(tree, (tip, made), f"merge {number}\n")
            tip, merges[str(number)] = merge, (merge, made)
            files[f"file{number}"] = str(number)
        run.store.trees._environment["PATH"] = f"{wrapper}:{real}"
        said = await run.repository.verify(tip, Expected(merges=merges, files={}, kept={}))
        assert said == ()
        assert len(calls.read_text().splitlines()) == 1
        said = await run.repository.verify(tip, Expected(merges={}, files=files, kept={}))
        assert len(said) == 60
        assert len(calls.read_text().splitlines()) <= 3

    anyio.run(go)
