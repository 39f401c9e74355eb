"""What git shows of a run when its journal is gone. Only looks; what follows is for others to say.

Where the tip's own pin is lost or was put back, it stood at least where a Player was started from:
nobody starts from a merge that the tip does not have. What is assumed so is said.
"""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from windlass.adapters.git.layout import Refs, orders
from windlass.adapters.git.store import Store
from windlass.errors import GitFailed, RepositoryError, WindlassError
from windlass.events.model import RunStarted
from windlass.events.review import Review
from windlass.ports import MAX_LISTED
from windlass.state.remains import Kept, Made, Remains, Told, chain, read_began, read_told

_ATTEMPT = re.compile(r"/task/(?P<task>[^/]+)/(?P<n>[1-9]\d*)/(?P<what>[^/]+)")
_RUN = re.compile(r"refs/windlass/(?P<plan>[^/]+)/(?P<run>[^/]+)/(?!(?:base|tip|order-\d+)$)")
"""A pin that shows a run: those of base, tip and order are made before its first fact."""
_CANDIDATE = re.compile(r"/candidate/(?P<n>[1-9]\d*)")
_TRAILERS = "%x00".join(
    f"%(trailers:key=Windlass-{key},valueonly,separator=%x2C)"
    for key in ("Run", "Task", "Turn", "Text")
)
_FORMAT = f"--format=%H%x00%T%x00%P%x00%ct%x00{_TRAILERS}%x00"
_FIELDS = 8


async def pinned_runs(store: Store) -> dict[str, list[str]]:
    """Every plan that has pins in the repository, with its runs.

    One that died before it recorded anything, and so never was, is none of them.
    """
    found: dict[str, list[str]] = {}
    for ref in await store.pins("refs/windlass/"):
        named = _RUN.match(ref)
        if named is not None and named["run"] not in found.setdefault(named["plan"], []):
            found[named["plan"]].append(named["run"])
    return found


async def remains_of(store: Store, refs: Refs) -> Remains:
    """All that git shows of a run."""
    return await _Reading(store, refs).remains()


class _Pins(Struct, frozen=True, kw_only=True):
    """The run's pins by what they are; commits that git has lost are left out."""

    commits: dict[str, str]
    texts: dict[str, str]


class _Reading:
    """One look at one run."""

    def __init__(self, store: Store, refs: Refs) -> None:
        self._store = store
        self._refs = refs
        self._notes: list[str] = []

    async def remains(self) -> Remains:
        """All of it."""
        pins = await self._pins()
        began = self._began(pins.texts.get(self._refs.began))
        base = pins.commits.get(self._refs.base) or (began.base if began is not None else None)
        if base is None:
            raise RepositoryError(
                f"where run {self._refs.run} began is not pinned any more",
                hint=f"put {self._refs.base} back with `git update-ref`, and recover again",
            )
        shown = (await self._store.pins(self._refs.integration)).get(self._refs.integration)
        seen = {*pins.commits.values(), *((shown,) if shown is not None else ())}
        commits = await self._commits(base, seen)
        attempts = await self._attempts(pins, commits)
        return Remains(
            run=self._refs.run,
            order=orders(pins.commits, self._refs.plan).get(self._refs.run, 0),
            began=began,
            told=tuple(self._told(pins.texts)),
            told_until=max(self._numbers(pins.texts), default=0),
            base=base,
            tip=self._tip(pins, base, commits, attempts, shown),
            commits=commits,
            attempts=attempts,
            candidates={
                int(found["n"]): commit
                for ref, commit in pins.commits.items()
                if (found := _CANDIDATE.fullmatch(ref.removeprefix(self._refs.root)))
            },
            notes=tuple(self._notes),
        )

    async def _pins(self) -> _Pins:
        held = await self._store.pins(self._refs.root)
        asked = "".join(f"{name}\n" for name in held.values())
        answer = await self._store.trees("cat-file", "--batch-check=%(objecttype)", stdin=asked)
        kinds = dict(zip(held, answer.text.splitlines(), strict=True))
        commits = {ref: name for ref, name in held.items() if kinds[ref] == "commit"}
        blobs = {ref: name for ref, name in held.items() if kinds[ref] == "blob"}
        for ref in held.keys() - commits.keys() - blobs.keys():
            self._notes.append(f"git has lost {held[ref][:10]} ({ref})")
        texts = {
            ref: (await self._store.trees("cat-file", "blob", name)).stdout
            for ref, name in blobs.items()
        }
        return _Pins(commits=commits, texts=texts)

    def _began(self, text: str | None) -> RunStarted | None:
        try:
            return read_began(text) if text is not None else None
        except WindlassError as error:
            self._notes.append(f"how the run began cannot be read: {error.message}")
            return None

    def _told(self, texts: dict[str, str]) -> Iterator[Told]:
        """What was said, in its order, as far as it can be read."""
        for number in self._numbers(texts):
            try:
                yield read_told(texts[self._refs.told(number)])
            except (WindlassError, msgspec.MsgspecError) as error:
                self._notes.append(f"{self._refs.told(number)} cannot be read: {error}")

    def _numbers(self, texts: Iterable[str]) -> list[int]:
        below = f"{self._refs.told()}/"
        numbers = (ref.removeprefix(below) for ref in texts if ref.startswith(below))
        return sorted(int(number) for number in numbers if number.isdigit())

    async def _commits(self, base: str, seen: Iterable[str]) -> dict[str, Made]:
        """The base, and every commit that these lead to beyond it."""
        wanted = "".join(f"{commit}\n" for commit in seen)
        try:
            first = await self._store.trees("log", "--no-walk", _FORMAT, base)
            rest = await self._store.trees("log", "--stdin", _FORMAT, stdin=f"{wanted}^{base}\n")
        except GitFailed as failure:
            raise RepositoryError(
                f"git has lost something of run {self._refs.run}: {failure.stderr.strip()}",
                hint="bring the objects back from a copy of the repository, and recover again",
            ) from failure
        return {made.commit: made for made in _made(first.stdout + rest.stdout)}

    async def _attempts(self, pins: _Pins, commits: dict[str, Made]) -> dict[str, dict[int, Kept]]:
        found: dict[str, dict[int, Kept]] = {}
        for ref, value in (*pins.commits.items(), *pins.texts.items()):
            if (named := _ATTEMPT.fullmatch(ref.removeprefix(self._refs.root))) is None:
                continue
            n, of_task = int(named["n"]), found.setdefault(named["task"], {})
            before = of_task.get(n) or Kept(n=n, turn=1 if n == 1 else None)
            of_task[n] = self._with(before, ref, named["what"], value)
        for of_task in found.values():
            for n, kept in of_task.items():
                of_task[n] = await self._whole(kept, commits)
        return found

    def _with(self, kept: Kept, ref: str, what: str, value: str) -> Kept:
        name, _, number = what.partition("-")
        match name:
            case "start" | "onto" | "tip":
                return replace(kept, **{name: value})
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
        """With what its commit says of itself."""
        made = commits.get(kept.commit or "")
        if made is None or kept.start is None:
            return kept
        paths = await self._store.changed_paths(kept.start, made.commit)
        files = tuple(paths)[:MAX_LISTED]
        created = tuple(path for path in files if paths[path] == "A")
        deleted = tuple(path for path in files if paths[path] == "D")
        turn = made.turn or kept.turn
        return replace(kept, files=files, created=created, deleted=deleted, turn=turn)

    def _tip(
        self,
        pins: _Pins,
        base: str,
        commits: dict[str, Made],
        attempts: dict[str, dict[int, Kept]],
        shown: str | None,
    ) -> str:
        """Where the tip stood, at least; its own pin's word, unless a Player started beyond it."""
        every = [kept for of_task in attempts.values() for kept in of_task.values()]
        starts = [
            at for kept in every for at in (kept.start, kept.onto, kept.tip) if at is not None
        ]
        pinned = pins.commits.get(self._refs.tip)
        known = [at for at in (*starts, shown) if at is not None]
        lines = {at: line for at in known if (line := self._line(commits, base, at)) is not None}
        farthest = max(lines, key=lambda at: len(lines[at]), default=base)
        if pinned is None:
            self._notes.append(
                f"the tip's pin is lost; it stood at {farthest[:10]}, as far as Players started "
                "from it and the integration branch tell"
            )
            return farthest
        passed = {base, *(made.commit for made in lines.get(farthest, ()))}
        if pinned == farthest or pinned not in passed:
            return pinned
        self._notes.append(
            f"the tip's pin was put back to {pinned[:10]}; Players started from {farthest[:10]}, "
            "or the integration branch shows it, and there it is put again"
        )
        return farthest

    def _line(self, commits: dict[str, Made], base: str, at: str) -> tuple[Made, ...] | None:
        """The run's merges from the base to there; None where anything else is among them."""
        line = chain(commits, base, at)
        ours = line is not None and all(made.run == self._refs.run and made.task for made in line)
        return line if ours and all(len(made.parents) > 1 for made in line or ()) else None


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
