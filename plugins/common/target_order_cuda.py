"""Stretches of residues in the order in which CUDA kernels take them, and where kernels keep the borders of tiles."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.kernels.jit import kernel as host_kernel
from seqloom.plugins.common.stretches_cpu import LEAST_PIECE

BYTES_PER_STRETCH = 12
"""Of a volume's ``TargetOrder`` on the device, without borders."""
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


class SplitTargets(NamedTuple):
    """Overlapping pieces of the longest targets of a volume, which stand for these.

    A long one would keep some lanes at work when all others are done. How far pieces have to overlap depends on the
    queries, so that they aren't part of what is kept of a volume.

    Attributes:
        cut: how many targets they are of.
        owners, begins, lengths: i8[p], target, first residue and residues of each, longest first. There is an even
            number of them, so that none shares a register with a target: the last one may be empty.
    """

    cut: int
    owners: np.ndarray
    begins: np.ndarray
    lengths: np.ndarray


@dataclass(eq=False)
class TargetOrder:
    """Stretches of residues in the order in which kernels take them, longest first, on host and device.

    Attributes:
        numbers: i8[k], ascending.
        lengths: i8[k], residues of each.
        ranked: i4[k + 1], places in ``numbers`` by falling length. The last one stands there twice: where a register
            holds one stretch only, it is taken for both halves.
        ranked_there: the same on the device.
        begins, ends: i8[k] on the device, first residue and the one behind the last, in the order of ``numbers``.
        send: as of ``of``.
        pieces: they come first on the device, in place of the stretches that rank first; numbers and places of them
            follow those of all stretches.
    """

    numbers: np.ndarray
    lengths: np.ndarray
    ranked: np.ndarray
    ranked_there: Any
    begins: Any
    ends: Any
    send: Send
    pieces: SplitTargets | None = None
    _borders: dict[int, Borders] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, numbers: np.ndarray, begins: np.ndarray, lengths: np.ndarray, send: Send) -> "TargetOrder":
        """The stretches of these numbers (i8), with first residue and length (i8) of each."""
        ranked = longest_first(lengths)
        return cls(numbers, lengths, ranked, send("ranked", ranked), send("begins", begins),
                   send("ends", begins + lengths), send)

    @classmethod
    def of_volume(cls, numbers: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, send: Send) -> "TargetOrder":
        """All targets of a volume (i8[k + 1] offsets)."""
        bounds = send("bounds", offsets)
        ranked = longest_first(lengths)
        return cls(numbers, lengths, ranked, send("ranked", ranked), bounds, bounds[1:], send)

    @cached_property
    def firsts(self) -> np.ndarray:
        """i8[k], first residue of each where they lie one behind the other, as those of a volume."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    def __len__(self) -> int:
        return len(self.numbers) + (len(self.pieces.begins) - self.pieces.cut if self.pieces else 0)

    @property
    def longest(self) -> int:
        """Residues of the longest stretch."""
        if self.pieces:
            return int(self.pieces.lengths[0])
        return int(self.lengths[self.ranked[0]]) if len(self) else 0

    @property
    def order(self) -> np.ndarray:
        """i8[k], numbers of the stretches in the order of the works."""
        return self.at(np.arange(len(self)))

    def at(self, places: np.ndarray) -> np.ndarray:
        """i8, numbers of the stretches at these places of the order."""
        if not self.pieces:
            return self.numbers[self.ranked[places]]
        count = len(self.pieces.begins)
        uncut = self.numbers[self.ranked[np.maximum(places - count, 0) + self.pieces.cut]]
        return np.where(places < count, len(self.numbers) + places, uncut)

    def split_longest(self, begins: np.ndarray, reach: int | None) -> SplitTargets | None:
        """Pieces of the targets that are much longer than ``reach``, residues of which an alignment can take.

        None where no target is, or the reach has no bound. begins: i8[k], first residues.
        """
        step = 0 if reach is None else max(LEAST_PIECE, 4 * reach)
        if reach is None or self.longest <= step + reach:
            return None
        cut = bisect_left(range(len(self)), True, key=lambda rank: self.lengths[self.ranked[rank]] <= step + reach)
        owners = self.ranked[:cut].astype(np.int64)
        counts = -(-(self.lengths[owners] - reach) // step)
        owners, firsts = np.repeat(owners, counts), np.repeat(np.cumsum(counts) - counts, counts)
        starts = (np.arange(len(owners)) - firsts) * step
        lengths = np.minimum(self.lengths[owners] - starts, step + reach)
        order = np.argsort(-lengths, kind="stable")
        owners, starts, lengths = owners[order], begins[owners[order]] + starts[order], lengths[order]
        if len(owners) % 2:
            owners, starts = np.append(owners, owners[-1]), np.append(starts, starts[-1])
            lengths = np.append(lengths, 0)
        return SplitTargets(cut, owners, starts, lengths)

    def borders(self, together: int, columns_at_once: int) -> Borders:
        """Those of works of ``together`` stretches each, done in parts of so many columns (one work at least).

        They are sent once: whoever asks again asks for as many columns.
        """
        if together not in self._borders:
            places, lengths, ranked = np.empty(-(-len(self) // together) + 1, np.int64), self.lengths, self.ranked
            if self.pieces:
                first = np.arange(len(lengths), len(lengths) + len(self.pieces.begins), dtype=np.int32)
                lengths = np.concatenate([lengths, self.pieces.lengths])
                ranked = np.concatenate([first, ranked[self.pieces.cut :]])
            _sum_columns(lengths, ranked, together, places)
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
    """Fill ``places`` with the columns before each work and of all: as many as its longest stretch has residues."""
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
