"""What an FM-index holds: the Burrows–Wheeler transform of a text, counts in buckets, and some or all of its suffixes.

It answers three questions, and from them all others: which symbol stands before the suffix in a row, how often a symbol
occurs in the transform before a row, and where in the text the suffix of a row begins. Rows are those of the suffix
array. Neither the text nor the suffix array is needed: both can be read back (``unpacked``).

Nucleotides take two bits in the transform. Residues other than A, C, G and T, and what stands between and behind the
sequences, are in it as A; which rows really hold them is kept apart: exact, and at no cost where there are none. Other
alphabets take a byte a residue.

Source: P. Ferragina & G. Manzini, "Opportunistic data structures with applications", FOCS 2000; A. Drozd's thesis on
string sorting and BWT alignment, 3.4 and 3.5, where counts and transform lie apart; here they share cache lines.
"""


import numpy as np
from seqloom.core.alphabet import Alphabet
from seqloom.core.classes import NamedTuple
from seqloom.core.distinct import distinct
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch

from .suffix_array import occurrence_counts, transform
from .symbols import end, residues_in_order, target_text

KIND = "fm-index"
BASES = "ACGT"
"""Residues that take two bits; the code of each is its place here."""
FLAG = np.uint64(1 << 63)
"""In the first count of a block: some of its rows hold symbols without a code."""
SMALLER, ODD, CODE = range(3)
"""Columns of ``Tables.symbols``."""


class Tables(NamedTuple):
    """An FM-index in the order in which kernels take it.

    Attributes:
        symbols: i8[s + 1, 3], for each symbol: how many symbols of the text are smaller (last: the length of the text);
            where its rows begin in ``odd_rows``; its two-bit code, or −1.
        blocks: u8[blocks, …]: for each code (each symbol, where residues take a byte) the symbols that are smaller plus
            its occurrences before the block, which is the row that the suffix before would have; then the block's
            residues, 32 (8) to a word, the first in the lowest bits.
        odd_rows: u4 (u8 from 4 G rows on) [m]: rows of symbols without a code, by symbol, ascending.
        shift: two to this power are the rows of a block.
        packed: whether residues take two bits.
        samples: u4 (u8) [k]: places in the text of the suffixes in marked rows, by row; of all rows without ``marks``.
        marks: u8[n / 64 + 1, 2]: how many rows are marked before 64 of them, and which of the 64 are.
    """

    symbols: np.ndarray
    blocks: np.ndarray
    odd_rows: np.ndarray
    shift: np.uint64
    packed: bool
    samples: np.ndarray
    marks: np.ndarray


class IndexPart(NamedTuple):
    """The index of a stretch of a text.

    Attributes:
        begin: place in the text where it begins. places: how many places of it are its own: it may reach into the next.
        text: u1, the symbols of the stretch, and the end symbol.
    """

    fm: Tables
    begin: int
    places: int
    text: np.ndarray

    @property
    def whole(self) -> bool:
        """Whether it is of all of the text."""
        return self.begin == 0 and self.places == len(self.text)


def tables_of(index: Index) -> Tables:
    """The tables of an index of kind ``fm-index``, stored or fresh."""
    return Tables(shift=np.uint64(index.parameters["bucket"].bit_length() - 1),
                  packed=bool((index["symbols"][:, CODE] >= 0).any()), **index.arrays)


def text_of(index: Index, targets: SequenceBatch) -> np.ndarray:
    """u1[n]: the symbols that an index was made of, from its targets; kept with it."""
    text: np.ndarray = index.kept("text", lambda: target_text(targets, acgt_only=False)[0])
    return text


def symbol_codes(residues: Alphabet) -> np.ndarray:
    """i8[s + 1]: the two-bit code of each symbol of exact matching, −1 for all others and at the end."""
    codes = np.full(end(residues) + 2, -1, np.int64)
    if residues.name == "nucleotide":
        for code, residue in enumerate(BASES):
            codes[residues_in_order(residues).index(residue)] = code
    return codes


def row_type(count: int) -> np.dtype:
    """The integer type that numbers the rows of a text of ``count`` symbols."""
    return np.dtype(np.uint32 if count < 1 << 32 else np.uint64)


def symbol_table(text: np.ndarray, residues: Alphabet) -> np.ndarray:
    """``Tables.symbols`` of u1[n] symbols."""
    codes = symbol_codes(residues)
    counts = np.bincount(text, minlength=len(codes))
    odd = np.where(codes < 0, counts, 0) if (codes >= 0).any() else np.zeros_like(counts)
    return np.stack([np.cumsum(counts) - counts, np.cumsum(odd) - odd, codes], axis=1)


def block_shape(rows: int, residues: Alphabet, bucket: int) -> tuple[int, int]:
    """Shape of ``Tables.blocks`` for a text of so many symbols."""
    counts, per_word = (4, 32) if residues.name == "nucleotide" else (end(residues) + 1, 8)
    return rows // bucket + 1, counts + bucket // per_word


def packed(text: np.ndarray, suffixes: np.ndarray, residues: Alphabet, bucket: int,
           sample: int) -> dict[str, np.ndarray]:
    """The arrays of ``Tables``, from u1[n] symbols and their suffix array.

    Args:
        bucket: rows of a block, a power of two from 32 on.
        sample: every such place of the text is kept; 1 keeps the whole suffix array.
    """
    kind, bwt, symbols = row_type(len(text)), transform(text, suffixes), symbol_table(text, residues)
    values, coded = bwt, [*range(len(symbols) - 1)]  # of the residues in a block, and which symbols have them
    odd_rows = np.empty(0, np.int64)
    blocks = np.zeros(block_shape(len(text), residues, bucket), np.uint64)
    if (symbols[:, CODE] >= 0).any():
        odd = np.flatnonzero(symbols[bwt, CODE] < 0)
        odd_rows = odd[np.argsort(bwt[odd], kind="stable")]
        values, coded = np.maximum(symbols[bwt, CODE], 0), np.argsort(symbols[:, CODE], kind="stable")[-4:].tolist()
    counts = occurrence_counts(bwt, len(symbols) - 1, bucket)[:, coded]
    blocks[:, : len(coded)] = symbols[coded, SMALLER] + counts
    blocks[distinct(odd_rows // bucket), 0] |= FLAG
    per_word = bucket // (blocks.shape[1] - len(coded))
    padded = np.zeros(len(blocks) * bucket, np.uint64)
    padded[: len(bwt)] = values
    shifts = np.arange(per_word, dtype=np.uint64) * np.uint64(64 // per_word)
    blocks[:, len(coded) :] = np.bitwise_or.reduce(padded.reshape(len(blocks), -1, per_word) << shifts, axis=2)
    marked = suffixes % sample == 0
    bits = np.zeros((len(text) // 64 + 1 if sample > 1 else 0, 64), bool)
    if sample > 1:
        bits.reshape(-1)[: len(text)] = marked
    before = np.cumsum(bits.sum(axis=1)) - bits.sum(axis=1)
    which = np.bitwise_or.reduce(bits.astype(np.uint64) << np.arange(64, dtype=np.uint64), axis=1)
    return {"symbols": symbols, "blocks": blocks, "odd_rows": odd_rows.astype(kind),
            "samples": suffixes[marked].astype(kind), "marks": np.stack([before.astype(np.uint64), which], axis=1)}


def transform_of(tables: Tables) -> np.ndarray:
    """u1[n]: the Burrows–Wheeler transform that an index holds."""
    symbols, blocks = tables.symbols, tables.blocks
    counts = 4 if tables.packed else len(symbols) - 1
    per_word = (1 << int(tables.shift)) // (blocks.shape[1] - counts)
    bits = np.uint64(64 // per_word)
    shifts = np.arange(per_word, dtype=np.uint64) * bits
    values = (blocks[:, counts:, None] >> shifts & ((np.uint64(1) << bits) - np.uint64(1))).reshape(-1)
    bwt = values[: symbols[-1, SMALLER]].astype(np.uint8)
    if tables.packed:
        bwt = np.argsort(symbols[:, CODE], kind="stable")[-4:].astype(np.uint8)[bwt]
        bwt[tables.odd_rows] = np.repeat(np.arange(len(symbols) - 1), np.diff(symbols[:, ODD]))
    return bwt


def unpacked(index: Index) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """u1[n] text, i8[n] suffix array and u1[n] transform, read back from an index by the inverse transform.

    A stable sort of the transform takes each row to that of the suffix that begins one place earlier (thesis, 3.4.1).
    """
    bwt = transform_of(tables_of(index))
    earlier = np.empty(len(bwt), np.int64)
    earlier[np.argsort(bwt, kind="stable")] = np.arange(len(bwt))
    text, suffixes = np.empty(len(bwt), np.uint8), np.empty(len(bwt), np.int64)
    row = len(bwt) - 1  # the last row is the suffix that is the end alone
    for place in range(len(bwt) - 1, -1, -1):
        suffixes[row] = place
        text[place - 1] = bwt[row]
        row = earlier[row]
    return text, suffixes, bwt
