"""Mappings that change by one key at a time, and cost as much however many keys they have.

A state is a frozen value, so every fact makes a new mapping. Copying a large one for each fact
would make a run slower with every task of its plan and every hour of its life; here a small layer
of what changed lies over a large one that is shared, and is merged into it now and then.

Law: it reads as the dict would that is made by the same changes, the order of its keys included.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from math import isqrt
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_LEAST = 16
"""How many changes may lie over a small mapping; over a large one as many as its root, so that
copying the layer and merging it cost about the same."""


class Layered(Mapping[K, V]):
    """A mapping under a layer of changes, neither of which ever changes."""

    __slots__ = ("_below", "_over", "_room", "_size")

    def __init__(self, below: Mapping[K, V], over: Mapping[K, V], *, size: int, room: int) -> None:
        self._below = below
        self._over = over
        self._size = size
        """How many keys both have together."""
        self._room = room
        """How many changes may lie over what is below."""

    def having(self, key: K, value: V) -> "Layered[K, V]":
        """The same, but for that key."""
        over = {**self._over, key: value}
        if len(over) > self._room:
            return laid({**self._below, **over})
        size = self._size if key in self else self._size + 1
        return Layered(self._below, over, size=size, room=self._room)

    def __getitem__(self, key: K) -> V:
        """The value of that key."""
        over = self._over
        return over[key] if key in over else self._below[key]

    def __contains__(self, key: object) -> bool:
        """Whether there is that key."""
        return key in self._over or key in self._below

    def __iter__(self) -> Iterator[K]:
        """The keys, in the order they first came."""
        return iter(self._merged())

    def __len__(self) -> int:
        """How many keys there are."""
        return self._size

    def items(self) -> ItemsView[K, V]:
        """Keys and values, in the order the keys first came."""
        return self._merged().items()

    def values(self) -> ValuesView[V]:
        """The values, in that order."""
        return self._merged().values()

    def __repr__(self) -> str:
        """As the dict it reads as."""
        return repr(self._merged())

    def _merged(self) -> dict[K, V]:
        return {**self._below, **self._over}


def laid(mapping: Mapping[K, V]) -> Layered[K, V]:
    """The mapping with nothing over it yet."""
    return Layered(mapping, {}, size=len(mapping), room=max(_LEAST, isqrt(len(mapping))))


def having(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """The mapping with that key of that value, at a cost that does not grow with it."""
    layered = mapping if isinstance(mapping, Layered) else laid(mapping)
    return layered.having(key, value)
