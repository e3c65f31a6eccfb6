"""Stretches of letters in the order in which CUDA kernels take them, and where kernels keep the borders of tiles."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from seqloom.core.jit import kernel as host_kernel

BYTES_PER_STRETCH = 12
"""Of a volume's ``Works`` on the device, without borders."""
BYTES_PER_STRETCH_HERE = 12
"""Of them on the host, lengths included."""
BYTES_PER_COLUMN = 8
"""Of a border."""
_COUNTED_LENGTHS = 1 << 20
"""Lengths that are sorted by counting them."""

Send = Callable[[str, np.ndarray], Any]
"""Copies an array that has a name to the device."""


class Borders(NamedTuple):
    """Where works keep what crosses from one tile of a query to the next.

    Attributes:
        parts: (first, last) works that are done at a time.
        places: i8[works] on the device, where the border of each begins.
        most: columns of the largest part.
    """

    parts: list[tuple[int, int]]
    places: Any
    most: int


@dataclass(eq=False)
class Works:
    """Stretches of letters in the order in which kernels take them, longest first, on host and device.

    Attributes:
        numbers: i8[k], ascending.
        lengths: i8[k], letters of each.
        ranked: i4[k + 1], places in ``numbers`` by falling length. The last one stands there twice: where a register
            holds one stretch only, it is taken for both halves.
        ranked_there: the same on the device.
        begins, ends: i8[k] on the device, first letter and the one behind the last, in the order of ``numbers``.
        send: as of ``of``.
    """

    numbers: np.ndarray
    lengths: np.ndarray
    ranked: np.ndarray
    ranked_there: Any
    begins: Any
    ends: Any
    send: Send
    _borders: dict[int, Borders] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, numbers: np.ndarray, begins: np.ndarray, lengths: np.ndarray, send: Send) -> "Works":
        """The stretches of these numbers (i8), with first letters and lengths (i8) by number."""
        begins, lengths = begins[numbers], lengths[numbers]
        ranked = longest_first(lengths)
        return cls(numbers, lengths, ranked, send("ranked", ranked), send("begins", begins),
                   send("ends", begins + lengths), send)

    @classmethod
    def of_volume(cls, numbers: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, send: Send) -> "Works":
        """All targets of a volume (i8[k + 1] offsets)."""
        bounds = send("bounds", offsets)
        ranked = longest_first(lengths)
        return cls(numbers, lengths, ranked, send("ranked", ranked), bounds, bounds[1:], send)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def longest(self) -> int:
        """Letters of the longest stretch."""
        return int(self.lengths[self.ranked[0]]) if len(self) else 0

    @property
    def order(self) -> np.ndarray:
        """i8[k], numbers of the stretches in the order of the works."""
        return self.at(slice(len(self)))

    def at(self, places: Any) -> np.ndarray:
        """i8, numbers of the stretches at these places of the order."""
        return self.numbers[self.ranked[places]]

    def borders(self, together: int, columns_at_once: int) -> Borders:
        """Those of works of ``together`` stretches each, done in parts of so many columns (one work at least).

        They are sent once: whoever asks again asks for as many columns.
        """
        if together not in self._borders:
            places = np.empty(-(-len(self) // together) + 1, np.int64)
            _sum_columns(self.lengths, self.ranked, together, places)
            parts = _parts(places, columns_at_once)
            most = max(int(places[b] - places[a]) for a, b in parts)
            for a, b in parts:
                places[a:b] -= places[a]
            self._borders[together] = Borders(parts, self.send(f"borders {together}", places[:-1]), most)
        return self._borders[together]


def longest_first(lengths: np.ndarray) -> np.ndarray:
    """i4[k + 1] places by falling length, those of one length in their order; the last one twice."""
    count, longest = len(lengths), int(lengths.max(initial=0))
    ranked = np.empty(count + 1, np.int32)
    if longest < _COUNTED_LENGTHS:
        _count(lengths, longest, np.zeros(longest + 2, np.int32), ranked)
    else:
        ranked[:count] = np.argsort(-lengths, kind="stable")
    ranked[count] = ranked[count - 1] if count else 0
    return ranked


@host_kernel
def _count(lengths, longest, nexts, ranked):
    """Fill ``ranked``; ``nexts`` are zeros."""
    for length in lengths:
        nexts[longest - length + 1] += 1
    for rank in range(longest + 1):
        nexts[rank + 1] += nexts[rank]
    for place in range(len(lengths)):
        rank = longest - lengths[place]
        ranked[nexts[rank]] = place
        nexts[rank] += 1


@host_kernel
def _sum_columns(lengths, ranked, together, places):
    """Fill ``places`` with the columns before each work and of all: as many as its longest stretch has letters."""
    total = 0
    for work in range(len(places) - 1):
        places[work] = total
        total += lengths[ranked[work * together]]
    places[len(places) - 1] = total


def _parts(places: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of works of at most ``most`` columns together, one work at least; ``places`` as of ``_sum_columns``."""
    parts, first = [], 0
    while first < len(places) - 1:
        last = max(first + 1, int(np.searchsorted(places, places[first] + most, "right")) - 1)
        parts.append((first, last))
        first = last
    return parts
