"""Random values of every recorded type, derived from the types, so that none is missing."""

from datetime import UTC, datetime
from functools import cache
from typing import Any, get_args

from hypothesis import strategies as st
from msgspec import inspect

from windlass.core.events.model import Event

EVENT_TYPES: tuple[type[Event], ...] = get_args(Event)


def events() -> st.SearchStrategy[Event]:
    """Any fact."""
    return st.one_of([instances(kind) for kind in EVENT_TYPES])


@cache
def instances(kind: type) -> st.SearchStrategy[Any]:
    """Any value of a struct type."""
    return _values(inspect.type_info(kind))


def _values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: _values(field.type) for field in fields})
        case inspect.VarTupleType(item_type=item):
            return st.lists(_values(item), max_size=2).map(tuple)
        case inspect.Metadata(type=described):
            return _values(described)
        case inspect.UnionType(types=types):
            return st.one_of([_values(each) for each in types])
        case inspect.EnumType(cls=cls):
            return st.sampled_from(cls)
        case inspect.LiteralType(values=values):
            return st.sampled_from(values)
        case _:
            return _scalars(kind)


def _scalars(kind: inspect.Type) -> st.SearchStrategy[Any]:
    match kind:
        case inspect.StrType():
            return st.text(min_size=kind.min_length or 0, max_size=30)
        case inspect.IntType():
            low = -(2**63) if kind.ge is None else kind.ge
            return st.integers(low, 2**63 - 1 if kind.le is None else kind.le)
        case inspect.FloatType():
            return st.floats(
                kind.gt, kind.le, exclude_min=kind.gt is not None, allow_nan=False,
                allow_infinity=False,
            )  # fmt: skip
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.DateTimeType():
            return st.datetimes(datetime(1, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001
        case _:
            raise NotImplementedError(kind)
