"""From moments to places on a line: time in which nobody ran the plan takes little room."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from windlass.views.report.model import Gap

_GAP = 0.04
"""The most of the whole that one gap may take."""
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 10800, 21600, 43200),
    *(86400 * days for days in (1, 2, 7, 14, 28, 91, 365, 3650)),
)
_TICKS = 6
_LETTER, _SPACE = 2.0, 3.0
"""Percent that a letter of a tick's words takes on a phone, and what stays free behind them."""
_DAY, _MINUTE = 86400, 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Scale:
    """Places from 0 to 100."""

    def __init__(self, start: datetime, end: datetime, gaps: Sequence[Gap]) -> None:
        self._spans: list[tuple[datetime, datetime, float, float, bool]] = []
        """From, until, the place it begins at, and how much room it takes; whether it is a gap."""
        away = sum((gap.end - gap.start).total_seconds() for gap in gaps)
        work = max((end - start).total_seconds() - away, 1e-3)
        place, at = 0.0, start
        for gap in gaps:
            place = self._add(at, gap.start, place, (gap.start - at).total_seconds())
            length = (gap.end - gap.start).total_seconds()
            place = self._add(gap.start, gap.end, place, min(length, _GAP * work), gap=True)
            at = gap.end
        self._length = max(self._add(at, end, place, (end - at).total_seconds()), 1e-3)

    def _add(
        self, start: datetime, end: datetime, place: float, room: float, *, gap: bool = False
    ) -> float:
        self._spans.append((start, end, place, max(room, 0.0), gap))
        return place + max(room, 0.0)

    def at(self, moment: datetime) -> float:
        """The place of a moment, in percent."""
        for start, end, place, room, _ in self._spans:
            if moment <= end:
                whole = (end - start).total_seconds()
                part = (moment - start).total_seconds() / whole if whole > 0 else 0.0
                return 100 * (place + room * min(max(part, 0.0), 1.0)) / self._length
        return 100.0

    def gaps(self) -> Iterator[tuple[float, float, float]]:
        """Where each gap begins, how wide it is, and how many seconds it stands for."""
        for start, end, place, room, gap in self._spans:
            if gap:
                lasted = (end - start).total_seconds()
                yield 100 * place / self._length, 100 * room / self._length, lasted

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Round moments, each with its words."""
        step = next((each for each in _STEPS if self._length / each <= _TICKS), _STEPS[-1])
        first, last = self._spans[0][0], self._spans[-1][1]
        form = "%H:%M" if step >= _MINUTE else "%H:%M:%S"
        if (last - first).total_seconds() > _DAY:
            form = "%d %b" if step >= _DAY else "%d %b %H:%M"
        free = 0.0
        for start, end, _, _, gap in self._spans:
            for moment in () if gap else _round(start, end, step):
                place, words = self.at(moment), f"{moment:{form}}"
                wide = _LETTER * len(words)
                if free <= place <= 100 - wide:
                    free = place + wide + _SPACE
                    yield place, words


def _round(start: datetime, end: datetime, step: int) -> Iterator[datetime]:
    since = (start - _EPOCH).total_seconds()
    moment = _EPOCH + timedelta(seconds=-(-since // step) * step)
    while moment <= end:
        yield moment
        moment += timedelta(seconds=step)
