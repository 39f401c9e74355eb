"""The footer of a live screen: the state of every task under way, in a few rows.

Law: a pure function of the state, the views and the time, which comes in the person's time zone.
No row is wider than the screen, no text of an agent or a plan can control the terminal, and what
does not fit is counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from windlass.core.events.model import Failure
from windlass.core.state import Phase, RunState, TaskState
from windlass.core.state.selection import blocked
from windlass.core.state.stretches import worked
from windlass.core.state.transitions import HELPLESS, IN_MERGE, WITH_AGENT
from windlass.views.activity import (
    WHOLE,
    TaskView,
    TaskViews,
    held_by_limit,
    idle,
    under_way,
    unreached,
    waits_for,
    whole_name,
)
from windlass.views.columns import ascii_only, columns, cut, fitted, padded
from windlass.views.cost import column, of_limit, run_cost, task_cost
from windlass.views.lines import must_fix
from windlass.views.outcome import STALE_BECAUSE
from windlass.views.progress import turns_allowed
from windlass.views.times import moment
from windlass.views.tree import stage_name
from windlass.views.words import clock, duration, one_line, plural, tokens

MOST_ROWS = 16
LEFT_FREE = 4
"""Rows that a footer leaves for the lines above it."""
_SOME_IDS = 6
_NARROWEST = 24

_MARKS = {"you": "?", "work": "●", "back": "↩", "wait": "◷", "merge": "⇡"}
_ORDER = tuple(_MARKS)

_WORDS: Mapping[Phase, tuple[str, str]] = {
    Phase.PLAYING: ("work", "Player"),
    Phase.PLAYED: ("work", "saving"),
    Phase.SAVING: ("work", "saving"),
    Phase.LEFT: ("work", "saving"),
    Phase.PINNING: ("work", "saving"),
    Phase.FAILED: ("back", "failed"),
    Phase.WAITING: ("wait", "waits"),
    Phase.SAVED: ("wait", "waits"),
    Phase.REFUSED: ("back", "refused"),
    Phase.CHECKING: ("work", "checks"),
    Phase.CHECKED: ("wait", "waits"),
    Phase.REVIEWING: ("work", "Coach"),
    Phase.REVIEWED: ("work", "gate"),
    Phase.UNREVIEWED: ("back", "failed"),
    Phase.WAITING_FOR_COACH: ("wait", "waits"),
    Phase.RETURNED: ("wait", "waits"),
    Phase.APPROVED: ("merge", "approved"),
    Phase.CONFLICTED: ("merge", "conflict"),
    **dict.fromkeys(IN_MERGE, ("merge", "merging")),
    **dict.fromkeys(HELPLESS, ("you", "asks you")),
    Phase.TAKEN: ("you", "taken"),
    Phase.STALE: ("you", "stale"),
    **dict.fromkeys((Phase.PENDING, Phase.MERGED, Phase.ABANDONED), ("wait", "waits")),
}
"""The kind and the word of a task's row. Tasks in the last three phases have no row."""
_WORD_WIDTH = 8


class Row(Struct, frozen=True):
    """One row, in pieces that may be coloured: `("done", "4/14 done")`."""

    pieces: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.pieces)

    def in_ascii(self) -> "Row":
        return Row(tuple((style, ascii_only(text)) for style, text in self.pieces))


class Screen(Struct, frozen=True, kw_only=True):
    """The size of the terminal, and what it can show."""

    columns: int
    rows: int
    ascii: bool = False
    watching: bool = False
    """Whether another process shows it, so that Ctrl-C does not stop the run."""

    @property
    def width(self) -> int:
        """Columns of a row: the last stays free, because a terminal would wrap."""
        return max(0, self.columns - 1)

    @property
    def height(self) -> int:
        """The most rows a footer may have."""
        return max(0, min(MOST_ROWS, self.rows - LEFT_FREE))


def board(state: RunState, views: TaskViews, now: datetime, screen: Screen) -> list[Row]:
    """The rows of the footer."""
    if screen.width < _NARROWEST or screen.height < 1:
        return []
    rows = [_title(state, now, screen.width)]
    below = [row for row in (_stages(state), _rest(state), _end(state, screen)) if row is not None]
    room = screen.height - len(rows)
    # Tasks come first; the sums below them are shown if there is room for some of both.
    kept = below[: max(0, min(len(below), room - min(room, 3)))] if room < len(below) + 1 else below
    rows += _tasks(state, views, now, screen.width, room - len(kept))
    rows += [_fitting(row, screen.width) for row in kept]
    return [row.in_ascii() for row in rows] if screen.ascii else rows


def heartbeat(state: RunState, views: TaskViews, now: datetime) -> str:
    """The state in one line, for a log that has been silent for a while."""
    at_work = [_about(state, task, views.get(task.id), now) for task in _ordered(state)]
    whole = views.get(WHOLE)
    parts = _sums(state, now)
    if whole is not None:
        parts.append(f"{whole_name(state)} {clock(_since(state, whole, now))}")
    parts += [f"{each.id} {each.word} {clock(each.seconds)}" for each in at_work[:_SOME_IDS]]
    parts += [f"+{len(at_work) - _SOME_IDS} more"] if len(at_work) > _SOME_IDS else []
    return " · ".join(parts)


def _title(state: RunState, now: datetime, width: int) -> Row:
    name, cost = fitted(state.plan.id, 30), run_cost(state)
    done, elapsed, spent = _sums(state, now)
    full = [name, state.run[:4], done, elapsed, spent]
    used = [f"{tokens(state.spent_tokens)} tokens"] if state.spent_tokens else []
    # The cost is shortened and never left out: its marks say what is estimated or unknown.
    shorter = [[name, done, elapsed, each] for each in of_limit(cost, state.settings.max_cost)]
    short = column(cost)
    room = max(0, width - columns(_ruled(["", short])))
    layouts = [[*full, *used], full, *shorter, [name, done, short], [name, short]]
    fitting = (_ruled(parts) for parts in layouts if columns(_ruled(parts)) <= width)
    line = next(fitting, cut(_ruled([cut(name, room), short]), width))
    return Row((("title", line + "─" * (width - columns(line))),))


def _ruled(parts: Sequence[str]) -> str:
    return "─ " + " ─ ".join(parts) + " "


def _sums(state: RunState, now: datetime) -> list[str]:
    spent = of_limit(run_cost(state), state.settings.max_cost)[0]
    elapsed = clock(worked(state, state.started_at, now))
    return [f"{state.index.merged}/{len(state.tasks)} done", elapsed, spent]


def _ordered(state: RunState) -> list[TaskState]:
    """The tasks under way: those that wait for a person first, the merge queue last."""
    return sorted(under_way(state), key=lambda task: _ORDER.index(_kind(task)))


def _kind(task: TaskState) -> str:
    return _WORDS[task.phase][0]


class _About(Struct, frozen=True, kw_only=True):
    """The content of a row."""

    kind: str
    id: str
    title: str = ""
    word: str
    seconds: float
    task: TaskState | None = None
    """None for the run as a whole."""
    detail: str

    @property
    def name(self) -> str:
        return f"{self.id} {fitted(self.title, 60)}".rstrip()


def _about(state: RunState, task: TaskState, view: TaskView | None, now: datetime) -> _About:
    word, detail = _doing(state, task, view, now)
    if view is not None and view.setup:
        word, detail = "setup", view.setup
    return _About(
        kind=_kind(task),
        id=task.id,
        title=state.specs[task.id].title,
        word=word,
        seconds=_since(state, view, now),
        task=task,
        detail=detail,
    )


def _since(state: RunState, view: TaskView | None, now: datetime) -> float:
    return worked(state, view.since, now) if view is not None else 0.0


def _doing(
    state: RunState, task: TaskState, view: TaskView | None, now: datetime
) -> tuple[str, str]:
    doing, word = view.doing if view is not None else "", _WORDS[task.phase][1]
    if task.phase is Phase.STALE:
        return word, f"{STALE_BECAUSE}; retry or approve it"
    if task.phase in HELPLESS:
        by = task.last.by if task.phase is Phase.TAKEN and task.attempts else None
        return (word, f"by {by}") if by else ("asks you", task.question or "")
    if task.phase in IN_MERGE:
        return word, _merging(task)
    if task.phase is Phase.APPROVED:
        return word, _queued(state, task)
    if (failure := waits_for(task)) is not None:
        word = "limit" if failure is Failure.USAGE_LIMIT else word
        return word, _waiting(failure, task.wait_until or now, now, unreached(task))
    if (idles := idle(state, task)) is not None:
        what = f"until {moment(idles.until, now)}" if idles.until is not None else idles.text
        answers = _to_answer(task) if task.phase is Phase.RETURNED else ""
        word = "limit" if idles.why == "limit" else word
        return word, " · ".join(part for part in (what, answers) if part)
    if task.phase in WITH_AGENT:
        return word, doing or "starting"
    return word, doing or (task.failed.message if task.failed is not None else "")


def _merging(task: TaskState) -> str:
    return "checks on the merged tree" if task.phase is Phase.CHECKING_MERGE else "onto the tip"


def _queued(state: RunState, task: TaskState) -> str:
    ahead = [id_ for id_ in state.queue if id_ in state.tasks and id_ != task.id]
    first = [id_ for id_ in ahead if state.tasks[id_].phase in IN_MERGE]
    before = first or ahead[: state.queue.index(task.id)] if task.id in state.queue else first
    return f"queued behind {before[-1]}" if before else "to be merged"


def _waiting(failure: Failure, until: datetime, now: datetime, unreached: str) -> str:
    left = clock(max(0.0, (until - now).total_seconds()))
    if unreached:  # first, because a narrow screen cuts the end
        return f"{unreached} · until {moment(until, now)}, in {left}"
    cause = "usage limit" if failure is Failure.USAGE_LIMIT else failure.value
    return f"until {moment(until, now)}, in {left} ({cause})"


def _to_answer(task: TaskState) -> str:
    if found := must_fix(task):
        return f"{len(found)} must_fix to answer"
    first = next((line for line in (task.feedback or "").splitlines() if line.strip()), "")
    return one_line(first, 200)


def _tasks(
    state: RunState, views: TaskViews, now: datetime, width: int, room: int
) -> Iterator[Row]:
    about = [_about(state, task, views.get(task.id), now) for task in _ordered(state)]
    whole = views.get(WHOLE)
    if whole is not None:
        seconds, name = _since(state, whole, now), whole_name(state)
        word, doing = ("setup", whole.setup) if whole.setup else ("checks", whole.doing)
        row = _About(kind="work", id=name, word=word, seconds=seconds, detail=doing)
        about.insert(0, row)
    if len(about) > room:
        about, left = about[: max(0, room - 1)], len(about) - max(0, room - 1)
    else:
        left = 0
    names = max((columns(each.name) for each in about), default=0)
    details = max((columns(each.detail) for each in about), default=0)
    widths = _Widths(width, names, details)
    for each in about:
        yield _fitting(_task(state, each, widths), width)
    if left and room > 0:
        yield _fitting(Row((("dim", f"   +{left} more"),)), width)


class _Widths:
    """The widths of the columns; on a narrow screen the least important are left out."""

    def __init__(self, width: int, names: int, details: int) -> None:
        self.tokens = 9 if width >= 119 else 0  # noqa: PLR2004
        self.cost = 8 if width >= 63 else 0  # noqa: PLR2004
        self.elapsed = 7 if width >= 47 else 0  # noqa: PLR2004
        fixed = 3 + 1 + 4 + 1 + _WORD_WIDTH + self.elapsed + self.tokens + self.cost + 2
        left = max(0, width - fixed)
        self.name = min(names, max(8, left // 2, left - details))
        self.detail = max(0, left - self.name)


def _task(state: RunState, about: _About, widths: _Widths) -> Row:
    turn = spent = used = ""
    if (task := about.task) is not None:
        turn = f"{max(1, task.turn)}/{turns_allowed(state, task)}"
        cost = task_cost(state, task)
        spent, used = column(cost), tokens(cost.tokens)
    elapsed = f"{clock(about.seconds):>{widths.elapsed}}" if widths.elapsed else ""
    detail = fitted(about.detail, widths.detail)
    pieces = [
        (about.kind, f" {_MARKS[about.kind]} "),
        ("", padded(cut(about.name, widths.name), widths.name)),
        ("dim", f" {turn:>4} "),
        (about.kind, f"{about.word:<{_WORD_WIDTH}}"),
        ("", elapsed),
        ("dim", f"{used:>{widths.tokens}}" if widths.tokens else ""),
        ("", f"{spent:>{widths.cost}}" if widths.cost else ""),
        ("dim", f"  {detail}" if detail else ""),
    ]
    return Row(tuple(piece for piece in pieces if piece[1]))


def _stages(state: RunState) -> Row | None:
    """The current stages, and the progress of each."""
    if not state.index.stages:
        return None
    at_work = {state.specs[task.id].stage for task in state.live}
    open_ = [name for name in state.index.stages if state.index.unsettled.get(name)]
    now = [name for name in open_ if name in at_work] or open_[:1]
    parts = [f"{stage_name(state, name)}: {_merged(state, name)}" for name in now[:3]]
    done = len(state.index.stages) - len(open_)
    parts.append(f"{done} of {plural(len(state.index.stages), 'stage')} done")
    return Row((("dim", "   " + " · ".join(parts)),))


def _merged(state: RunState, stage: str) -> str:
    ids = state.index.stages[stage]
    return f"{sum(state.tasks[id_].phase is Phase.MERGED for id_ in ids)}/{len(ids)}"


def _rest(state: RunState) -> Row | None:
    """The tasks that are not under way, counted."""
    lost = blocked(state)
    free = len(state.free)
    begun = state.index.merged + len(under_way(state)) + len(state.index.abandoned)
    waiting = len(state.tasks) - begun - free - len(lost)
    parts = [f"{waiting} waiting for dependencies"] if waiting > 0 else []
    held = held_by_limit(state)
    parts += [f"{held} waiting for the limit"] if held else []
    parts += [f"{free - held} ready to start"] if free > held else []
    if state.index.abandoned:
        parts.append(f"{len(state.index.abandoned)} abandoned ({_ids(state.index.abandoned)})")
    parts += [f"{len(lost)} blocked"] if lost else []
    if state.index.merged:
        parts.append(f"{state.index.merged} done ({_ids(state.done)})")
    return Row((("dim", "   " + " · ".join(parts)),)) if parts else None


def _ids(ids: Sequence[str]) -> str:
    """The newest of them."""
    some = " ".join(ids[-_SOME_IDS:])
    return f"… {some}" if len(ids) > _SOME_IDS else some


def _end(state: RunState, screen: Screen) -> Row:
    """How to stop the run, or that it is stopping."""
    if state.stopping is None:
        leave = "Ctrl-C leaves; the run continues"
        stop = "Ctrl-C stops it; `windlass resume` continues it"
        return Row((("dim", f" {leave if screen.watching else stop}"),))
    if state.stop_as == "pause":
        return Row((("wait", " pausing: turns that have started finish first"),))
    return Row((("wait", " stopping: the agents' work so far is kept"),))


def _fitting(row: Row, width: int) -> Row:
    if columns(row.text) <= width:
        return row
    return Row(((row.pieces[0][0], cut(row.text, width)),))


def bracketed(seconds: float | None) -> str:
    """`[  6m12s]`, or as many spaces."""
    return " " * 10 if seconds is None else f"[{duration(seconds):>8}]"
