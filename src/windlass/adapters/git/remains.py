"""What git shows of a run beside its journal: its mirror, its commits and its pins. Read-only."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from windlass.adapters.git.layout import Refs, is_order
from windlass.adapters.git.mirror import restored
from windlass.adapters.git.store import Store
from windlass.core.events import codec
from windlass.core.events import model as e
from windlass.core.events.review import Review
from windlass.core.exchange import MAX_LISTED
from windlass.core.state.remains import Kept, Made, Remains
from windlass.errors import GitFailed, JournalTooNew, RepositoryError, WindlassError

_ATTEMPT = re.compile(r"/task/(?P<task>[^/]+)/(?P<n>[1-9]\d*)/(?P<what>[^/]+)")
_RUN = re.compile(r"refs/windlass/(?P<plan>[^/]+)/(?P<run>[^/]+)/(?!(?:base|tip|order-\d+)$)")
"""A pin that proves a run: those of base, tip and order are made before its first fact."""
_CANDIDATE = re.compile(r"/candidate/(?P<n>[1-9]\d*)")
_TRAILERS = "%x00".join(
    f"%(trailers:key=Windlass-{key},valueonly,separator=%x2C)"
    for key in ("Run", "Task", "Turn", "Text")
)
_FORMAT = f"--format=%H%x00%T%x00%P%x00%ct%x00{_TRAILERS}%x00"
_FIELDS = 8


class Recorded(Struct, frozen=True):
    """The journal of a run, read from git."""

    payloads: list[bytes]
    """The records of the mirror, byte for byte; empty if the run has no mirror."""
    facts: list[e.Event]
    """The facts in them; without a mirror, the run's first fact and the last edit of its plan."""
    notes: tuple[str, ...] = ()


class _PinnedFact(Struct, frozen=True, kw_only=True):
    """A fact that no commit shows, as versions before the mirror pinned it."""

    record: Raw


async def pinned_runs(store: Store) -> dict[str, list[str]]:
    """Every plan that has pins in the repository, with its runs.

    A run that died before its first record does not count.
    """
    found: dict[str, list[str]] = {}
    for ref in await store.pins("refs/windlass/"):
        named = _RUN.match(ref)
        if named is not None and named["run"] not in found.setdefault(named["plan"], []):
            found[named["plan"]].append(named["run"])
    return found


async def recorded_in_git(store: Store, refs: Refs) -> Recorded:
    """The run's journal from its mirror, or from what an older version pinned.

    Raises JournalTooNew if a newer Windlass wrote the mirror.
    """
    pins = await store.pins(refs.journal, refs.began, refs.pinned_facts)
    if (mirror := pins.get(refs.journal)) is not None:
        found = await restored(store, refs, mirror)
        facts: list[e.Event] = []
        try:
            for payload in found.payloads:
                facts.append(codec.decode(payload))  # noqa: PERF401  keeps those read before an error
        except JournalTooNew:
            raise
        except WindlassError as error:
            note = f"record {len(facts) + 1} of the mirror cannot be read: {error.message}"
            return Recorded(found.payloads[: len(facts)], facts, (*found.notes, note))
        return Recorded(found.payloads, facts, found.notes)
    return await _of_older_version(store, refs, pins)


async def _of_older_version(store: Store, refs: Refs, pins: dict[str, str]) -> Recorded:
    """The run's first fact and the last edit of its plan, pinned by versions before the mirror."""
    root = refs.pinned_facts
    numbers = (ref.removeprefix(f"{root}/") for ref in pins if ref != refs.began)
    later = (f"{root}/{n}" for n in sorted((n for n in numbers if n.isdigit()), key=int))
    facts, notes, edits = list[e.Event](), list[str](), list[e.Event]()
    for ref in (refs.began, *later):
        if ref not in pins:
            continue
        try:
            [text] = await store.contents([pins[ref]])
            if ref != refs.began:
                text = bytes(msgspec.json.decode(text, type=_PinnedFact).record)
            fact = codec.decode(text)
        except (WindlassError, msgspec.MsgspecError) as error:
            notes.append(f"{ref} cannot be read: {error}")
            continue
        if isinstance(fact, e.RunStarted):
            facts.append(fact)
        elif isinstance(fact, e.PlanRevised):
            edits = [fact]
        else:
            notes.append(f"ignored in {ref}: {type(fact).__name__}")
    return Recorded([], [*facts, *edits] if facts else [], tuple(notes))


async def remains_of(store: Store, refs: Refs, base: str | None = None) -> Remains:
    """Everything that git shows of a run beside its journal; `base` is the journal's."""
    return await _Reading(store, refs).remains(base)


class _Pins(Struct, frozen=True, kw_only=True):
    """The run's pins by kind, without commits that git has lost."""

    commits: dict[str, str]
    texts: dict[str, str]


class _Reading:
    """Reads one run."""

    def __init__(self, store: Store, refs: Refs) -> None:
        self._store = store
        self._refs = refs
        self._notes: list[str] = []

    async def remains(self, base: str | None) -> Remains:
        pins = await self._pins()
        base = pins.commits.get(self._refs.base) or base
        if base is None:
            raise RepositoryError(
                f"the base of run {self._refs.run} is no longer pinned",
                hint=f"restore {self._refs.base} with `git update-ref`, and recover again",
            )
        shown = (await self._store.pins(self._refs.integration)).get(self._refs.integration)
        seen = {*pins.commits.values(), *((shown,) if shown is not None else ())}
        commits = await self._commits(base, seen)
        ours = shown if shown in commits and commits[shown].run == self._refs.run else None
        return Remains(
            run=self._refs.run,
            base=base,
            tip=pins.commits.get(self._refs.tip) or ours,
            tip_is_pinned=self._refs.tip in pins.commits,
            commits=commits,
            attempts=await self._attempts(pins, commits),
            candidates={
                int(found["n"]): commit
                for ref, commit in pins.commits.items()
                if (found := _CANDIDATE.fullmatch(ref.removeprefix(self._refs.root)))
            },
            notes=tuple(self._notes),
        )

    async def _pins(self) -> _Pins:
        pins = await self._store.pins(self._refs.root)
        # Of an order only the name counts, and the mirror is read by itself.
        held = {ref: name for ref, name in pins.items() if not is_order(ref)}
        held.pop(self._refs.journal, None)
        asked = "".join(f"{name}\n" for name in held.values())
        answer = await self._store.trees("cat-file", "--batch-check=%(objecttype)", stdin=asked)
        kinds = dict(zip(held, answer.text.splitlines(), strict=True))
        commits = {ref: name for ref, name in held.items() if kinds[ref] == "commit"}
        blobs = {r: n for r, n in held.items() if kinds[r] == "blob" and _is_of_task(r, self._refs)}
        for ref, name in held.items():
            if kinds[ref] not in {"commit", "blob"}:
                self._notes.append(f"git has lost {name[:10]} ({ref})")
        texts = await self._store.contents(list(blobs.values()))
        decoded = (text.decode(errors="replace") for text in texts)
        return _Pins(commits=commits, texts=dict(zip(blobs, decoded, strict=True)))

    async def _commits(self, base: str, seen: Iterable[str]) -> dict[str, Made]:
        """The base, and every commit above it that these reach."""
        wanted = "".join(f"{commit}\n" for commit in seen)
        try:
            first = await self._store.trees("log", "--no-walk", _FORMAT, base)
            rest = await self._store.trees("log", "--stdin", _FORMAT, stdin=f"{wanted}^{base}\n")
        except GitFailed as failure:
            raise RepositoryError(
                f"git has lost objects of run {self._refs.run}: {failure.stderr.strip()}",
                hint="restore the objects from a copy of the repository, and recover again",
            ) from failure
        return {made.commit: made for made in _made(first.stdout + rest.stdout)}

    async def _attempts(self, pins: _Pins, commits: dict[str, Made]) -> dict[str, dict[int, Kept]]:
        found: dict[str, dict[int, Kept]] = {}
        for ref, value in (*pins.commits.items(), *pins.texts.items()):
            if (named := _ATTEMPT.fullmatch(ref.removeprefix(self._refs.root))) is None:
                continue
            n, of_task = int(named["n"]), found.setdefault(named["task"], {})
            of_task[n] = self._with(of_task.get(n) or Kept(n=n), ref, named["what"], value)
        for of_task in found.values():
            for n, kept in of_task.items():
                of_task[n] = await self._whole(kept, commits)
        return found

    def _with(self, kept: Kept, ref: str, what: str, value: str) -> Kept:
        name, _, number = what.partition("-")
        match name:
            case "start" | "tip":
                return replace(kept, start=value)
            case "onto":
                return replace(kept, onto=value)
            case "snapshot" | "partial":
                return replace(kept, kind=name, commit=value)
            case "turn" if number.isdigit():
                return replace(kept, turn=int(number))
            case "verdict" if number.isdigit():
                try:
                    review = msgspec.json.decode(value, type=Review)
                except msgspec.MsgspecError as error:
                    self._notes.append(f"{ref} cannot be read: {error}")
                    return kept
                return replace(kept, reviews={**kept.reviews, int(number): review})
            case _:
                return kept

    async def _whole(self, kept: Kept, commits: dict[str, Made]) -> Kept:
        """The attempt with the changed files and the turn of its commit."""
        made = commits.get(kept.commit or "")
        if made is None or kept.start is None:
            return kept
        paths = await self._store.changed_paths(kept.start, made.commit)
        files = tuple(paths)[:MAX_LISTED]
        created = tuple(path for path in files if paths[path] == "A")
        deleted = tuple(path for path in files if paths[path] == "D")
        turn = made.turn or kept.turn
        return replace(kept, files=files, created=created, deleted=deleted, turn=turn)


def _is_of_task(ref: str, refs: Refs) -> bool:
    return ref.startswith(f"{refs.root}/task/")


def _made(text: str) -> Iterator[Made]:
    fields = text.split("\0")[:-1]
    for at in range(0, len(fields), _FIELDS):
        commit, tree, parents, seconds, run, task, turn, text = fields[at : at + _FIELDS]
        yield Made(
            commit=commit.strip("\n"),
            tree=tree,
            parents=tuple(parents.split()),
            at=datetime.fromtimestamp(int(seconds), UTC),
            run=run,
            task=task,
            turn=int(turn) if turn.isdigit() else None,
            text=text,
        )
