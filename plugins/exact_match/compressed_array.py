"""What a compressed suffix array holds: where the suffix behind each suffix stands (Psi), in differences, and places.

``psi[row]`` is the row of the suffix that begins one place further. Rows that begin with one symbol have ascending
values, and with a small alphabet most differences are small: they are kept in Elias' gamma code, with the first value
of every so many rows beside them. From the first symbol of a row, which the counts of symbols tell, and from Psi, text
and suffixes can be read; a part of the suffixes is kept, so that places are found in few steps.

A number d takes 2 L + 1 bits where two to the power of L is the greatest that isn't greater: L zeros, a one, and what d
exceeds that power by, from the lowest bit of a word on.

Source: A. Drozd's thesis on string sorting and BWT alignment, 3.4.2; R. Grossi & J. S. Vitter, "Compressed suffix
arrays and suffix trees", STOC 2000; K. Sadakane, "New text indexing functionalities of the compressed suffix arrays",
J. Algorithms 2003.
"""

from typing import Any

import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.classes import NamedTuple
from seqloom.core.index import Index

from .fm_index import row_type
from .symbols import end

KIND = "compressed-suffix-array"
SPARE = 4
"""Words of ``PsiTables.bits`` behind those that differences take, so that none is looked for behind them."""


class PsiTables(NamedTuple):
    """A compressed suffix array in the order in which kernels take it.

    Attributes:
        smaller: i8[s + 1], for each symbol how many symbols of the text are smaller, which is the first row that begins
            with it; last the length of the text.
        heads: u4 (u8 from 4 G rows on) [blocks], Psi of the first row of each block.
        begins: u4 (u8 from 4 G bits on) [blocks + 1], the bit of ``bits`` where the differences of each block begin.
        bits: u8, gamma codes of the differences of one row's value and the next one's, modulo the length of the text;
            none for first rows of blocks. ``SPARE`` words more than they take.
        shift: two to this power are the rows of a block.
        samples: u4 (u8) [k], places in the text of the suffixes in marked rows, by row: every so many places.
        marks: u8[n / 64 + 1, 2], how many rows are marked before 64 of them, and which of the 64 are.
    """

    smaller: np.ndarray
    heads: np.ndarray
    begins: np.ndarray
    bits: np.ndarray
    shift: np.uint64
    samples: np.ndarray
    marks: np.ndarray


def psi_tables(index: Index) -> PsiTables:
    """The tables of an index of kind ``compressed-suffix-array``, stored or fresh."""
    return PsiTables(shift=np.uint64(index.parameters["block"].bit_length() - 1), **index.arrays)


def smaller_symbols(text: np.ndarray, residues: Alphabet) -> np.ndarray:
    """``PsiTables.smaller`` of u1[n] symbols."""
    return np.concatenate([[0], np.cumsum(np.bincount(text, minlength=end(residues) + 1))])


def bit_type(count: int) -> np.dtype:
    """The integer type that numbers so many bits."""
    return row_type(count + 1)


def compressed(text: np.ndarray, suffixes: np.ndarray, residues: Alphabet, block: int,
               sample: int) -> dict[str, np.ndarray]:
    """The arrays of ``PsiTables``, from u1[n] symbols and their suffix array.

    Args:
        block: rows of a block, a power of two.
        sample: every such place of the text is kept.
    """
    count, kind = len(text), row_type(len(text))
    rank = np.empty(count, np.int64)
    rank[suffixes] = np.arange(count)
    psi = rank[(suffixes.astype(np.int64) + 1) % count]
    steps = np.diff(psi) % count
    rows = np.arange(1, count)
    inside = rows % block != 0
    length = np.zeros(count, np.int64)  # bits of each row's code, and of its last part
    tail = np.floor(np.log2(np.maximum(1, steps))).astype(np.int64)
    tail += (np.int64(1) << (tail + 1)) <= steps  # a logarithm may be rounded either way
    tail -= (np.int64(1) << tail) > steps
    length[1:][inside] = 2 * tail[inside] + 1
    ends = np.cumsum(length)
    begins = np.append((ends - length)[::block], ends[-1])
    bits = np.zeros(int(ends[-1]) // 64 + 1 + SPARE, np.uint64)
    one = (ends[1:] - 1 - tail)[inside].astype(np.uint64)
    rest = (steps - (np.int64(1) << tail))[inside].astype(np.uint64)
    _put(bits, one, np.ones(len(one), np.uint64))
    _put(bits, one + np.uint64(1), rest)
    marked = suffixes % sample == 0
    flags = np.zeros((count // 64 + 1, 64), bool)
    flags.reshape(-1)[:count] = marked
    before = np.cumsum(flags.sum(axis=1)) - flags.sum(axis=1)
    which = np.bitwise_or.reduce(flags.astype(np.uint64) << np.arange(64, dtype=np.uint64), axis=1)
    return {"smaller": smaller_symbols(text, residues), "heads": psi[::block].astype(kind),
            "begins": begins.astype(bit_type(int(ends[-1]))), "bits": bits, "samples": suffixes[marked].astype(kind),
            "marks": np.stack([before.astype(np.uint64), which], axis=1)}


def _put(bits: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
    """Set what is set in u8 values from bits on, whose numbers are given."""
    word, inside = places >> np.uint64(6), places & np.uint64(63)
    np.bitwise_or.at(bits, word, values << inside)
    over = inside > 0
    np.bitwise_or.at(bits, word[over] + np.uint64(1), values[over] >> (np.uint64(64) - inside[over]))


def psi_of(tables: PsiTables) -> np.ndarray:
    """i8[n]: Psi, read back from the differences one by one."""
    flags = np.unpackbits(tables.bits.view(np.uint8), bitorder="little").tolist()
    count, block = int(tables.smaller[-1]), 1 << int(tables.shift)
    psi, place, value = np.empty(count, np.int64), 0, 0
    for row in range(count):
        if row % block == 0:
            value, place = int(tables.heads[row // block]), int(tables.begins[row // block])
        else:
            tail = flags.index(1, place) - place
            place += tail + 1
            value += (1 << tail) + sum(1 << n for n in range(tail) if flags[place + n])
            place += tail
        psi[row] = value = value % count
    return psi


def read_back(index: Index) -> tuple[np.ndarray, np.ndarray]:
    """u1[n] text and i8[n] suffix array, by following Psi from the suffix that is the whole text."""
    tables: Any = psi_tables(index)
    psi = psi_of(tables)
    first = np.repeat(np.arange(len(tables.smaller) - 1), np.diff(tables.smaller)).astype(np.uint8)
    text, suffixes = np.empty(len(psi), np.uint8), np.empty(len(psi), np.int64)
    row = psi[-1]  # the last row is the suffix that is the end alone
    for place in range(len(psi)):
        text[place], suffixes[row] = first[row], place
        row = psi[row]
    return text, suffixes
