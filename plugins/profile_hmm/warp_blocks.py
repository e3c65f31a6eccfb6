"""Sequences as warps of a device take them: columns of residues side by side, cut into blocks.

A block has ``WIDTH`` columns. In a column sequences follow each other, each with an end mark behind it, and what is
left of it up to the block's longest column is padding; so a row of a block is one stretch of memory, and lanes of a
warp that have a column each read neighbouring bytes. End marks and padding are codes that no residue has.

Which column a sequence comes into is Algorithm 1 of the paper: one to each column first, the longest ones, then the
others, from the last column to the first and again, each into the next column that stays within the longest one; where
there is none, into the last one.

Source: Jiang, Ganesan & Yao 2018 (CUDAMPF++), section 3.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import offsets_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

END, PADDING, CODES = 30, 31, 32
"""The end mark, the padding, and how many codes there are with them."""
WIDTH = 128
"""Columns of a block: bytes that a warp gets from memory at a time."""


class Balance(NamedTuple):
    """How even blocks are (table 3 of the paper).

    Attributes:
        blocks: their number.
        rows, rows_deviation: mean and standard deviation of a block's rows.
        ends, ends_deviation: the same of the sequences in it.
        padding, residues: of all blocks.
    """

    blocks: int
    rows: float
    rows_deviation: float
    ends: float
    ends_deviation: float
    padding: int
    residues: int

    @property
    def padding_to_real(self) -> float:
        """PRR: padding for each residue."""
        return self.padding / max(1, self.residues)


class Columns(NamedTuple):
    """Sequences in columns, of which each block has ``WIDTH``.

    Attributes:
        members: i4[n], numbers of the sequences, column by column.
        firsts: i4[columns + 1], where the members of each column begin.
        lengths: i4[columns], residues and end marks in each column.
        rows: i4[blocks], of each block's longest column.
        residues: u1, and starts: i8[columns], where each column begins in it. ``stride`` bytes lie between a row and
            the next one: ``WIDTH`` in blocks, 1 where columns stand one behind the other.
    """

    members: NDArray[np.int32]
    firsts: NDArray[np.int32]
    lengths: NDArray[np.int32]
    rows: NDArray[np.int32]
    residues: NDArray[np.uint8]
    starts: NDArray[np.int64]
    stride: int

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self[:-1])

    def balance(self) -> Balance:
        rows = self.rows
        if not len(rows):
            return Balance(0, 0.0, 0.0, 0.0, 0.0, 0, 0)
        ends = np.diff(self.firsts).reshape(-1, WIDTH).sum(axis=1)
        real, everything = int(self.lengths.sum()), WIDTH * int(rows.sum())
        return Balance(len(rows), float(rows.mean()), float(rows.std()), float(ends.mean()), float(ends.std()),
                       everything - real, real - len(self.members))


def block_count(sequences: int, most: int) -> int:
    """Blocks for so many sequences: ``most``, which keep all warps at work, or fewer, so that no column is empty for
    want of sequences but in the last block."""
    return min(most, -(-sequences // WIDTH))


def in_blocks(residues: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64],
              blocks: int) -> Columns:
    """Sequences in balanced blocks.

    Args:
        residues: u1, in which sequence n has ``lengths[n]`` residues from i8 ``begins[n]`` on.
        blocks: how many; ``block_count``.
    """
    order = np.argsort(-lengths, kind="stable")
    columns = np.empty(len(order), np.int32)
    filled = np.zeros(blocks * WIDTH, np.int64)
    _choose_columns(lengths[order], filled, columns)
    # Members of a column stand in the order in which they came to it.
    members = order[np.argsort(columns, kind="stable")].astype(np.int32)
    firsts = offsets_of(np.bincount(columns, minlength=len(filled))).astype(np.int32)
    rows = filled.reshape(blocks, WIDTH).max(axis=1)
    tops = offsets_of(rows) * WIDTH
    starts = (tops[:-1, None] + np.arange(WIDTH)).reshape(-1)
    laid = np.full(int(tops[-1]), PADDING, np.uint8)
    _fill(residues, begins, lengths, members, firsts, starts, WIDTH, laid)
    return Columns(members, firsts, filled.astype(np.int32), rows.astype(np.int32), laid, starts, WIDTH)


def in_sequence(residues: NDArray[np.uint8], begins: NDArray[np.int64], lengths: NDArray[np.int64],
                blocks: int) -> Columns:
    """The same sequences as they come, one column behind the other, of about as many residues each: what blocks are
    compared with (table 6 of the paper)."""
    ends = np.cumsum(lengths + 1)
    total, columns = int(ends[-1]) if len(ends) else 0, blocks * WIDTH
    bounds = np.searchsorted(ends, np.arange(1, columns) * total // max(1, columns), "right")
    firsts = np.concatenate([[0], bounds, [len(ends)]]).astype(np.int32)[: columns + 1]
    before = np.concatenate([[0], ends])
    starts = before[firsts[:-1]]
    filled = before[firsts[1:]] - starts
    members = np.arange(len(lengths), dtype=np.int32)
    laid = np.empty(total, np.uint8)
    _fill(residues, begins, lengths, members, firsts, starts, 1, laid)
    return Columns(members, firsts, filled.astype(np.int32), filled.reshape(blocks, WIDTH).max(axis=1).astype(np.int32),
                   laid, starts.astype(np.int64), 1)


@kernel
def _choose_columns(lengths, filled, columns):
    """Algorithm 1: the column of each sequence.

    lengths: i8[n], longest first. filled: i8, 0; gets the residues and end marks of each column. columns: i4[n].
    """
    last = len(filled) - 1
    longest = np.int64(0)
    for n in range(min(len(lengths), len(filled))):
        columns[n] = n
        filled[n] = lengths[n] + 1
        longest = max(longest, filled[n])
    at = last
    for n in range(len(filled), len(lengths)):
        size = lengths[n] + 1
        while at >= 0 and filled[at] + size > longest:
            at -= 1
        if at < 0:
            at = last
        columns[n] = at
        filled[at] += size
        longest = max(longest, filled[at])
        at -= 1
        if at < 0:
            at = last


@kernel
def _fill(residues, begins, lengths, members, firsts, starts, stride, laid):
    """Lay sequences out in u1 ``laid``, which holds padding where none comes."""
    for column in range(len(starts)):
        at = starts[column]
        for place in range(firsts[column], firsts[column + 1]):
            member = members[place]
            begin = begins[member]
            for n in range(begin, begin + lengths[member]):
                laid[at] = residues[n]
                at += stride
            laid[at] = END
            at += stride
