"""Immutable mappings with a cheap change of one key, independent of their size.

A state is a frozen value, so every fact makes a new mapping. Copying a large one for each fact
would slow a run down as it grows. Here a small layer of changes lies over a large shared mapping
and is merged into it from time to time.

Law: it reads like the dict that results from the same changes, including the order of its keys.
"""

from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from math import isqrt
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_LEAST = 16
"""The largest layer over a small mapping. Over a large one it is the square root of its size, so
that copying the layer and merging it cost about the same."""


class Layered(Mapping[K, V]):
    """An immutable mapping under an immutable layer of changes."""

    __slots__ = ("_below", "_over", "_room", "_size")

    def __init__(self, below: Mapping[K, V], over: Mapping[K, V], *, size: int, room: int) -> None:
        self._below = below
        self._over = over
        self._size = size
        """The number of keys in both."""
        self._room = room
        """The largest allowed layer."""

    def having(self, key: K, value: V) -> "Layered[K, V]":
        """The same mapping with that key changed."""
        over = {**self._over, key: value}
        if len(over) > self._room:
            return laid({**self._below, **over})
        size = self._size if key in self else self._size + 1
        return Layered(self._below, over, size=size, room=self._room)

    def __getitem__(self, key: K) -> V:
        over = self._over
        return over[key] if key in over else self._below[key]

    def __contains__(self, key: object) -> bool:
        return key in self._over or key in self._below

    def __iter__(self) -> Iterator[K]:
        return iter(self._merged())

    def __len__(self) -> int:
        return self._size

    def items(self) -> ItemsView[K, V]:
        return self._merged().items()

    def values(self) -> ValuesView[V]:
        return self._merged().values()

    def __repr__(self) -> str:
        return repr(self._merged())

    def _merged(self) -> dict[K, V]:
        return {**self._below, **self._over}


def laid(mapping: Mapping[K, V]) -> Layered[K, V]:
    """The mapping with an empty layer."""
    return Layered(mapping, {}, size=len(mapping), room=max(_LEAST, isqrt(len(mapping))))


def having(mapping: Mapping[K, V], key: K, value: V) -> Mapping[K, V]:
    """The mapping with that key set, at a cost that does not grow with it."""
    layered = mapping if isinstance(mapping, Layered) else laid(mapping)
    return layered.having(key, value)
