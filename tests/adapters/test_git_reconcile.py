"""Before a run goes on: what the journal speaks of is in git, pinned, or the run does not go on."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from repositories import Run, User
from windlass.adapters.git.reconcile import reconcile
from windlass.core.events import model as e
from windlass.core.plan import Plan, Task, validated
from windlass.core.settings import Settings
from windlass.core.state import Phase, RunState, fold
from windlass.errors import JournalDamaged, RepositoryError
from windlass.runner import Ports, Runner, Session
from windlass.testing.agents import ScriptedAgent
from windlass.testing.journal import MemoryJournal
from windlass.testing.memory import MemoryInbox, VirtualClock, no_signals

pytestmark = pytest.mark.anyio
PINS = "refs/windlass/p/r1"


class Passing:
    """Checks that are always green."""

    async def run(
        self, commit: str, commands: Sequence[str], log: str
    ) -> tuple[e.CheckResult, ...]:
        del commit, log
        return tuple(e.CheckResult(command=c, outcome=e.Outcome.PASS) for c in commands)


class Story:
    """A run of two tasks with real git, to its end."""

    def __init__(self, root: Path) -> None:
        self.user = User(root)
        self.user.commit({"README": "hello\n"})
        self.journal = MemoryJournal()

    async def play(self) -> "Story":
        run = await Run(self.user).open()
        clock = VirtualClock()
        agent = ScriptedAgent({"1.1": ({"one": "1\n"},), "1.2": ({"two": "2\n"},)})
        ports = Ports(
            agent=agent,
            repository=run.repository,
            checks=Passing(),
            clock=clock,
            inbox=MemoryInbox(),
            watch=lambda _: None,
            signals=no_signals,
        )
        tasks = tuple(Task(id=i, title=i) for i in ("1.1", "1.2"))
        plan = Plan(id="p", title="P", dialect="milestone", path="p.md", tasks=tasks)
        first = e.RunStarted(
            at=clock.now(),
            run="r1",
            plan=validated(plan),
            settings=Settings(checks=("test",)),
            base=run.base,
            base_branch="main",
            sandbox="checkout",
            version="0",
        )
        await Runner(ports, Session(self.journal)).run(first)
        return self

    def state(self, events: int | None = None) -> RunState:
        """What the journal says, or its first entries."""
        state = fold([entry.event for entry in self.journal.read()][:events])
        assert state is not None
        return state

    async def reconcile(self, state: RunState | None = None) -> tuple[str, ...]:
        """As wiring does it at the start of a process."""
        run = Run(self.user)
        run.store.open(run.setup_cache.exclude_text())
        found = await reconcile(run.store, run.refs, state or self.state())
        await run.repository.open(run.base)
        return found


@pytest.fixture
async def story(tmp_path: Path, anyio_backend: str) -> Story:
    del anyio_backend
    return await Story(tmp_path).play()


async def test_a_sound_run_is_left_as_it_is(story: Story):
    assert story.state().ended is e.RunEnd.COMPLETED
    before = story.user.refs()
    assert story.user.files(before[f"{PINS}/tip"]) == {
        "README": "hello\n",
        "one": "1\n",
        "two": "2\n",
    }
    assert await story.reconcile() == ("1.1", "1.2")
    assert story.user.refs() == before


async def test_pins_that_were_deleted_are_written_again(story: Story):
    before = story.user.refs()
    for ref in before:
        if ref.startswith(PINS):
            story.user.git("update-ref", "-d", ref)
    await story.reconcile()
    after = story.user.refs()
    assert after[f"{PINS}/tip"] == before[f"{PINS}/tip"]
    assert {ref: at for ref, at in before.items() if after.get(ref) != at} == {}


@pytest.mark.parametrize("lost", ["", "^{tree}"])
async def test_what_a_power_loss_left_of_an_unrecorded_effect_is_let_go(story: Story, lost: str):
    user, new = story.user, ("hash-object", "-w", "--stdin")
    whole = user.git("commit-tree", "-m", "whole", "main^{tree}")
    user.git("update-ref", f"{PINS}/candidate/98", whole)
    before = user.refs()
    tree = user.git("mktree", stdin=f"100644 blob {user.git(*new, stdin='new')}\tnew\n")
    hollow, verdict = user.git("commit-tree", "-m", "x", tree), user.git(*new, stdin="a verdict")
    user.git("update-ref", f"{PINS}/candidate/99", hollow)
    user.git("update-ref", f"{PINS}/task/1.1/1/verdict-9", verdict)
    for name in (user.git("rev-parse", f"{hollow}{lost}"), verdict):
        (user.repo / ".git/objects" / name[:2] / name[2:]).unlink()
    await story.reconcile()
    assert user.refs() == before
    assert user.git("fsck", "--connectivity-only", "--no-dangling") == ""


async def test_texts_that_a_power_loss_took_are_written_again_or_let_go(story: Story):  # B4
    user = story.user
    reviews = {ref: name for ref, name in user.refs().items() if "/verdict-" in ref}
    assert len(reviews) == 2
    began = user.git("hash-object", "-w", "--stdin", stdin="how it began")
    user.git("update-ref", f"{PINS}/began", began)
    for name in {*reviews.values(), began}:
        (user.repo / ".git/objects" / name[:2] / name[2:]).unlink()
    await story.reconcile()
    now = user.refs()
    assert {ref: now.get(ref) for ref in reviews} == reviews
    assert f"{PINS}/began" not in now, "only versions before the mirror wrote it"
    assert user.git("fsck", "--connectivity-only", "--no-dangling") == ""


async def test_a_pin_that_was_moved_is_said_with_the_cure(story: Story):
    ref = f"{PINS}/task/1.1/1/snapshot"
    was = story.user.refs()[ref]
    story.user.git("update-ref", ref, "main")
    with pytest.raises(RepositoryError, match=f"put it back: git update-ref {ref} {was}"):
        await story.reconcile()


@pytest.mark.parametrize("to", ["main", f"{PINS}/candidate/1"])
async def test_a_tip_that_was_put_back_is_refused_before_anything_is_paid(story: Story, to: str):
    # S7
    tip = story.state().tip
    story.user.git("update-ref", f"{PINS}/tip", to)
    put_back = (
        rf"disagree: {PINS}/tip stands at .*git update-ref {PINS}/tip {tip}.*windlass recover"
    )
    with pytest.raises(JournalDamaged, match=put_back):
        await story.reconcile()


async def test_a_tip_that_moved_and_was_not_recorded_is_as_it_should_be(story: Story):  # B4
    events = [entry.event for entry in story.journal.read()]
    moved = max(at for at, event in enumerate(events) if isinstance(event, e.TipMoveStarted))
    [merged] = await story.reconcile(story.state(moved + 1))  # whichever of the two came first
    assert story.state(moved + 1).tasks[merged].phase is Phase.MERGED


async def test_a_merge_that_the_tip_does_not_hold_is_said(story: Story):  # S7
    state = story.state()
    elsewhere = story.user.commit({"other": "history\n"})
    task = replace(state.tasks["1.1"], merge_commit=elsewhere)
    rewritten = replace(state, tasks={**state.tasks, "1.1": task})
    with pytest.raises(JournalDamaged, match=r"does not hold the merge of 1\.1 .*recover"):
        await story.reconcile(rewritten)


async def test_a_merge_that_git_lost_is_said(story: Story):  # S7
    commit = story.state().tasks["1.1"].merge_commit or ""
    (story.user.repo / ".git/objects" / commit[:2] / commit[2:]).unlink()
    with pytest.raises(RepositoryError, match=f"git has lost {commit[:10]}.*the merge of 1.1"):
        await story.reconcile()


async def test_a_commit_that_git_lost_is_said(story: Story):
    ref = f"{PINS}/task/1.2/1/snapshot"
    commit = story.user.refs()[ref]
    (story.user.repo / ".git/objects" / commit[:2] / commit[2:]).unlink()
    with pytest.raises(RepositoryError, match=f"git has lost {commit[:10]}"):
        await story.reconcile()


async def test_a_journal_that_forgot_is_damaged(story: Story):
    events = [entry.event for entry in story.journal.read()]
    second = next(
        at for at, event in enumerate(events)
        if isinstance(event, e.PlayerStarted) and event.task == "1.2"
    )  # fmt: skip
    with pytest.raises(JournalDamaged, match=r"behind git: it knows nothing of .*/task/1\.2/1/"):
        await story.reconcile(story.state(second))
