"""The Smith–Waterman recurrence with affine gaps, one query against many targets at once, one query residue at a time.

All targets lie one behind the other with a separator before each, and a row of the dynamic programme is one numpy
expression over all of them. The gap along a row needs no loop either: with a ramp that grows by the price of a residue
per column, the best start of a gap is a running maximum; the ramp jumps at each separator by more than the target
before it can score, so that no gap reaches across.

    diagonal[i, j] = h[i-1, j-1] + matrix[query[i], target[j]]
    f[i, j] = max(f[i-1, j] - extend, h[i-1, j] - open - extend)     query residues against a gap
    e[i, j] = max(e[i, j-1] - extend, h[i, j-1] - open - extend)     target residues against a gap
    h[i, j] = max(0, diagonal, f, e)

Source: Gotoh 1982; equations 1 to 3 of Munekawa, Ino & Hagihara 2010, where a gap's first residue costs open + extend.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Scoring


class Row(NamedTuple):
    """One row of the dynamic programme, over the columns of a ``Packed``. The arrays are reused for later rows.

    ``above`` is ``h`` of the row before. Values of ``e`` and ``f`` below zero say no more than that.
    """

    h: np.ndarray
    diagonal: np.ndarray
    e: np.ndarray
    f: np.ndarray
    above: np.ndarray


@dataclass(frozen=True)
class Packed:
    """Targets one behind the other, a separator column before each.

    Attributes:
        residues: u8[n], codes; 0 in separator columns.
        starts: i8[k], column of the first residue of each target; its separator is the column before.
        lengths: i8[k], residues of each target.
        scoring: matrix and gap costs.
    """

    residues: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    scoring: Scoring

    @classmethod
    def of(cls, targets: Sequence[np.ndarray], scoring: Scoring) -> "Packed":
        """From the code arrays of some targets."""
        lengths = np.array([len(t) for t in targets], np.int64)
        starts = np.cumsum(lengths + 1) - lengths
        residues = np.zeros(int((lengths + 1).sum()), np.uint8)
        for start, target in zip(starts.tolist(), targets, strict=True):
            residues[start : start + len(target)] = target
        return cls(residues, starts, lengths, scoring)

    @property
    def matrix(self) -> np.ndarray:
        """i4[a, a], rows query residues."""
        assert self.scoring.matrix is not None
        return self.scoring.matrix

    @cached_property
    def ramp(self) -> np.ndarray:
        """i4[n] or i8[n]: the price of all residues up to a column, and of all separators."""
        best = max(0, int(self.matrix.max()))
        steps = np.full(len(self.residues), self.scoring.gap_extend, np.int64)
        steps[self.starts - 1] += np.r_[0, self.lengths[:-1] * best + 1]
        ramp = np.cumsum(steps)
        room = int(ramp[-1]) + int(self.lengths.max()) * best + self.scoring.gap_open if len(ramp) else 0
        return ramp.astype(np.int32) if room < 1 << 30 else ramp

    @cached_property
    def _profile(self) -> dict[int, np.ndarray]:
        return {}

    def profile(self, residue: int) -> np.ndarray:
        """Score of a query residue against every column; separators score below anything an alignment can reach."""
        if residue not in self._profile:
            row = self.matrix[residue].astype(self.ramp.dtype)[self.residues]
            row[self.starts - 1] = -(1 << (30 if row.dtype == np.int32 else 40))
            self._profile[residue] = row
        return self._profile[residue]

    def rows(self, query: np.ndarray) -> Iterator[Row]:
        """Rows of the dynamic programme for u8[m] query codes, from the first residue to the last."""
        columns, dtype = len(self.residues), self.ramp.dtype
        first, further = self.scoring.gap_open + self.scoring.gap_extend, self.scoring.gap_extend
        h, above, e, scratch = (np.zeros(columns, dtype) for _ in range(4))
        f = np.full(columns, -first, dtype)
        diagonal = np.full(columns, -1, dtype)
        falling = self.ramp + dtype.type(self.scoring.gap_open)
        for residue in query.tolist():
            above, h = h, above
            np.add(above[:-1], self.profile(residue)[1:], out=diagonal[1:])
            np.subtract(above, first, out=scratch)
            np.subtract(f, further, out=f)
            np.maximum(f, scratch, out=f)
            np.maximum(diagonal, f, out=h)
            np.maximum(h, 0, out=h)
            # A gap that starts behind another gap of its own direction is never the better one, so h without e will do.
            np.add(h, self.ramp, out=scratch)
            np.maximum.accumulate(scratch, out=scratch)
            np.subtract(scratch[:-1], falling[1:], out=e[1:])
            np.maximum(h, e, out=h)
            yield Row(h, diagonal, e, f, above)


def packed_chunks(targets: Sequence[np.ndarray], scoring: Scoring, residues: int) -> Iterator[tuple[int, Packed]]:
    """Consecutive targets of at most ``residues`` residues together (one target at least): (first target, packed)."""
    first, size = 0, 0
    for number, target in enumerate(targets):
        if number > first and size + len(target) > residues:
            yield first, Packed.of(targets[first:number], scoring)
            first, size = number, 0
        size += len(target)
    if len(targets):
        yield first, Packed.of(targets[first:], scoring)
