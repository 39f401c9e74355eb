"""The mirror of a journal in real git: batched with pins, bounded, and whole after a kill."""
# B4 X10

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from repositories import Run, User
from windlass.adapters.git.mirror import JournalMirror, restored
from windlass.core.events import segments as form
from windlass.errors import GitFailed
from windlass.testing.conformance.mirror import Mirror, MirrorContract, Records, record
from windlass.testing.memory_repository import MemoryMirror

pytestmark = pytest.mark.anyio


class TestInMemory(MirrorContract):
    async def make(self, records: Records) -> Mirror:
        return MemoryMirror(records)

    async def reopen(self, mirror: Mirror, records: Records) -> Mirror:
        assert isinstance(mirror, MemoryMirror)
        again = MemoryMirror(records)
        again.stored = list(mirror.stored)
        return again

    async def stored(self, mirror: Mirror) -> list[bytes]:
        assert isinstance(mirror, MemoryMirror)
        return mirror.stored


class TestInGit(MirrorContract):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.root = tmp_path

    async def make(self, records: Records) -> Mirror:
        user = User(Path(tempfile.mkdtemp(dir=self.root)))
        user.commit({"README": "hello\n"})
        self.run = await Run(user).open()
        return JournalMirror(self.run.store, self.run.refs, records)

    async def reopen(self, mirror: Mirror, records: Records) -> Mirror:
        del mirror
        return JournalMirror(self.run.store, self.run.refs, records)

    async def stored(self, mirror: Mirror) -> list[bytes]:
        del mirror
        return await stored(self.run)


async def stored(run: Run) -> list[bytes]:
    held = await run.store.pins(run.refs.journal)
    if not held:
        return []
    found = await restored(run.store, run.refs, held[run.refs.journal])
    assert found.notes == ()
    return found.payloads


class Kept:
    """A run with a journal of made-up records, and its mirror."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.journal = [record(1)]
        self.mirror = JournalMirror(run.store, run.refs, lambda after: self.journal[after:])

    def pin(self, name: str) -> dict[str, str]:
        return {self.run.refs.attempt("1.1", 1, name): self.run.base}


@pytest.fixture
async def kept(tmp_path: Path, anyio_backend: str) -> Kept:
    del anyio_backend
    user = User(tmp_path)
    user.commit({"README": "hello\n"})
    made = Kept(await Run(user).open())
    await made.mirror.open(begun=True)
    return made


async def test_a_pin_comes_with_the_mirror_of_every_fact_before_it(kept: Kept):
    await kept.run.store.pin(kept.pin("start"))
    assert await stored(kept.run) == kept.journal
    kept.journal.append(record(2))
    await kept.run.store.move(kept.run.refs.tip, new=kept.run.base, old=kept.run.base)
    assert await stored(kept.run) == kept.journal


async def test_a_pin_that_is_refused_is_refused_as_ever(kept: Kept):
    await kept.run.store.pin(kept.pin("start"))
    [ref] = kept.pin("start")
    other = await kept.run.store.text("other")
    kept.journal.append(record(2))
    with pytest.raises(GitFailed):
        await kept.run.store.pin({ref: other})
    await kept.mirror.flush()
    assert await stored(kept.run) == kept.journal


async def test_a_mirror_that_was_deleted_or_put_back_is_written_again(kept: Kept):
    user, ref = kept.run.user, kept.run.refs.journal
    await kept.mirror.flush()
    first = user.refs()[ref]
    kept.journal += [record(2)]
    await kept.mirror.flush()
    for undo in (("-d", ref), (ref, first)):
        user.git("update-ref", *undo)
        kept.journal += [record(3)]
        await kept.run.store.pin(kept.pin(f"turn-{len(kept.journal)}"))
        await kept.mirror.flush()
        assert await stored(kept.run) == kept.journal


async def test_of_two_writers_the_second_does_not_overwrite_the_first(kept: Kept):
    await kept.mirror.flush()
    other = Kept(kept.run)
    await other.mirror.open(begun=True)
    kept.journal += [record(2)]
    await kept.mirror.flush()
    other.journal += [record(3)]
    await other.mirror.flush()
    await other.mirror.flush()
    assert await stored(kept.run) == kept.journal
    await other.run.store.pin(kept.pin("start")), "and its pins are written all the same"


async def test_a_long_journal_leaves_nothing_dangling_and_outlives_a_gc(kept: Kept):
    text = b"x" * 1500
    for _ in range(33):
        kept.journal += [b'{"n":%d,"t":"%s"}' % (len(kept.journal), text) for _ in range(100)]
        await kept.mirror.flush()
    user = kept.run.user
    assert user.git("fsck") == ""
    kept.run.store.close()
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "-q", "--prune=now")
    assert await stored(kept.run) == kept.journal
    again = Kept(kept.run)
    again.journal = [*kept.journal, record(7)]
    await again.mirror.open(begun=True)
    await again.mirror.flush()
    assert await stored(kept.run) == again.journal
    assert user.git("fsck") == ""


async def test_every_record_is_written_once_however_it_was_flushed(kept: Kept):
    for n in range(50):
        kept.journal += [b'{"n":%d,"t":"%s"}' % (n, b"y" * 900)] * (1 + n % 3)
        await kept.mirror.flush()
    line = kept.run.user.git("log", "--format=%B", kept.run.refs.journal).splitlines()
    assert sorted(text for text in line if text.startswith("{")) == sorted(
        record.decode() for record in kept.journal
    )


async def test_a_journal_that_has_no_mirror_yet_is_copied_in_objects_of_a_bounded_size(kept: Kept):
    kept.journal += [b'{"t":"%s"}' % (b"y" * 90_000)] * 30
    await kept.mirror.flush()
    sizes = kept.run.user.git("log", "--format=%B%x00", kept.run.refs.journal).split("\0")
    assert max(map(len, sizes)) < form.SEGMENT_BYTES + 100_000
    assert await stored(kept.run) == kept.journal


async def test_a_later_run_goes_on_with_the_line_of_the_one_before(kept: Kept):
    await kept.mirror.flush()
    before = kept.run.user.refs()[kept.run.refs.journal]
    later = await Run(kept.run.user, run="later").open()
    journal = [*kept.journal, record(2)]
    mirror = JournalMirror(later.store, later.refs, lambda after: journal[after:])
    await mirror.open(begun=True)
    await mirror.flush()
    assert await stored(later) == journal
    assert kept.run.user.git("rev-parse", f"{later.refs.journal}^").strip() == before


async def test_a_damaged_mirror_gives_what_proves_itself_and_is_written_anew(kept: Kept):
    for n in range(5):
        kept.journal += [b'{"n":%d,"t":"%s"}' % (n, b"z" * 300)]
        await kept.mirror.flush()
    user, held = kept.run.user, kept.run.user.refs()[kept.run.refs.journal]
    lost = user.git("rev-parse", f"{held}~2").strip()
    kept.run.store.close()
    (user.repo / ".git/objects" / lost[:2] / lost[2:]).unlink()
    found = await restored(kept.run.store, kept.run.refs, held)
    assert found.payloads == kept.journal[:-3]
    assert found.notes == (f"the mirror is damaged after record {len(found.payloads)}",)
    again = Kept(kept.run)
    again.journal = kept.journal
    await again.mirror.open(begun=True)
    await again.mirror.flush()
    assert await stored(kept.run) == kept.journal
    assert user.git("rev-list", "--count", kept.run.refs.journal).strip() == "1"


CHILD = """
import sys, anyio
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from repositories import Run, User
from windlass.adapters.git.mirror import JournalMirror
from windlass.testing.conformance.mirror import record

async def main():
    user = User.__new__(User)
    root = Path(sys.argv[1])
    user.home, user.repo = root / "home", root / "project"
    import os
    user.environment = {"HOME": str(user.home), "PATH": os.environ["PATH"], "LC_ALL": "C",
                        "GIT_CONFIG_NOSYSTEM": "1"}
    run = await Run(user).open()
    journal = []
    mirror = JournalMirror(run.store, run.refs, lambda after: journal[after:])
    await mirror.open(begun=True)
    while True:
        journal += [record(n) * 40 for n in range(len(journal), len(journal) + 3)]
        print(len(journal), flush=True)
        await run.store.pin({run.refs.attempt("1.1", len(journal), "start"): run.base})

anyio.run(main)
"""


def killed(root: Path, at: int) -> tuple[int, int]:
    """Kill a process at its n-th batch of records: what it last told, and how often it went on."""
    tests = str(Path(__file__).parent.parent)
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(root), tests], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    told = [int(child.stdout.readline()) for _ in range(at)]
    child.send_signal(signal.SIGKILL)
    return told[-1], len(child.communicate()[0].split())


@pytest.mark.parametrize("killed_at", [1, 2, 7, 30])
async def test_killed_in_the_middle_the_mirror_is_a_prefix_that_knows_every_pin(
    tmp_path: Path, killed_at: int
):
    user = User(tmp_path)
    user.commit({"README": "hello\n"})
    told, rest = killed(tmp_path, killed_at)
    run = await Run(user).open()
    found = await stored(run)
    written = [record(n) * 40 for n in range(told + 3 * rest + 3)]
    assert found == written[: len(found)]
    pins = [ref.split("/")[-2] for ref in user.refs() if ref.endswith("/start")]
    assert len(found) >= max(map(int, pins), default=0)
    assert len(found) >= told - 3, "the pin before was written with its mirror"
