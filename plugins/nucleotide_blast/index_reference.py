"""Indexes of nucleotide BLAST: words of the queries, and the targets with a base in place of every ambiguity.

A word table holds the words of both strands of a query. Its words may be narrower than the words that seed: the scan
then reads every ``stride``-th place of a target only, and a mini-extension completes each table word to a seeding word.
Every seeding word is found whatever the width; the width decides at which of its places a hit is recorded first. BLAST
chooses it by the number of words (small table, or megablast table with a presence vector; G-BLASTN section 2.1), and
so does this table, for each query alone. (BLAST counts the words of all queries that it searches together.)
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape
from seqloom.plugins.nucleotide_blast.random_bases import replace_ambiguities
from seqloom.plugins.nucleotide_blast.strands import SENTINEL, both_strands

WORDS = "nucleotide-words"
BASES = "nucleotide-bases"

BYTES_PER_WORD = 24
"""Of the arrays of a word table and what its making takes, per base of a strand."""

WIDEST_SMALL = 8
"""Bases of the widest words of a small table."""
MOST_SMALL = 1 << 15
"""Places of words that a small table can name."""

# Word size: (fewer words than, table width), the last entry for any number.
_ANY = 1 << 62
_WIDTHS: dict[int, tuple[tuple[int, int], ...]] = {
    7: ((250, 6), (_ANY, 7)),
    8: ((8_500, 7), (_ANY, 8)),
    9: ((1_250, 7), (21_000, 8), (_ANY, 9)),
    10: ((1_250, 7), (8_500, 8), (18_000, 9), (_ANY, 10)),
    11: ((12_000, 8), (180_000, 10), (_ANY, 11)),
    12: ((8_500, 8), (18_000, 9), (60_000, 10), (900_000, 11), (_ANY, 12)),
    13: ((8_500, 8), (300_000, 11), (_ANY, 12)),
}


@cache
def table_width(word_size: int, words: int) -> int:
    """Bases of a table word for seeding words of ``word_size`` and about so many ``words`` in the query."""
    if word_size < min(_WIDTHS):
        return word_size
    return next(width for limit, width in _WIDTHS[min(word_size, max(_WIDTHS))] if words < limit)


def word_codes(bases: np.ndarray, width: int, stride: int = 1) -> np.ndarray:
    """i32 words of ``width`` bases at every ``stride``-th position of u8 bases (0..3), first base highest."""
    count = max(0, (len(bases) - width) // stride + 1)
    codes = np.zeros(count, np.int32)
    for base in range(width):
        codes <<= 2
        codes |= bases[base : base + (count - 1) * stride + 1 : stride] if count else 0
    return codes


def true_stretches(flags: np.ndarray) -> np.ndarray:
    """i64[k, 2]: half-open stretches of True in bool[n]."""
    return np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]))).reshape(-1, 2)


def indexed_positions(strands: np.ndarray, allowed: np.ndarray, word_size: int, width: int) -> np.ndarray:
    """bool[n]: where a table word begins that is free of masks and ambiguities, in a stretch that fits a whole word."""
    usable = np.zeros(len(strands), bool)
    for start, end in true_stretches(allowed).tolist():
        if end - start >= word_size:
            usable[start:end] = True
    usable &= strands < 4
    return runs_of(usable, width)


def runs_of(flags: np.ndarray, length: int) -> np.ndarray:
    """bool[n]: whether the ``length`` flags from a position on are all True."""
    total = np.concatenate([[0], np.cumsum(flags)])
    full = np.zeros(len(flags), bool)
    count = len(flags) - length + 1
    if count > 0:
        full[:count] = total[length:] - total[:count] == length
    return full


class NucleotideWords(IndexStage):
    """Words of both query strands for a table, as wide as BLAST would make them.

    Arrays of the index, per query from ``strand_offsets[i]`` and ``word_offsets[i]`` on:
        strands u8, both strands (``both_strands``); masked bool, bases that may not seed; indexed bool, where a table
        word begins; words i32, and positions i32, where in ``strands`` each begins, ascending.
    Per query: width i32 and stride i32.
    """

    name = "nucleotide-word-table"
    side = "query"
    provides = WORDS

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=2 * BYTES_PER_WORD * shape.query_residues)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        word_size = context.options.word_size
        parts = []
        for strands, searched in searched_strands(batch, context.options.strand):
            stretches = true_stretches(searched)
            width = table_width(word_size, int((stretches[:, 1] - stretches[:, 0] - 1).sum()))
            indexed = indexed_positions(strands, searched, word_size, width)
            positions = np.flatnonzero(indexed)
            words = word_codes(np.minimum(strands, 3), width)[positions]
            parts.append((strands, searched, indexed, words, positions, width, word_size - width + 1))
        return index_of_parts(context, WORDS, parts)


def searched_strands(batch: SequenceBatch, strand: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Both strands of every query, u8[2n + 1], and which of their bases may seed, bool[2n + 1]."""
    residues, allowed = batch.searched(), batch.indexable()
    for low, high in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
        open_bases = allowed[low:high]
        plus, minus = open_bases & (strand != "minus"), open_bases[::-1] & (strand != "plus")
        yield both_strands(residues[low:high]), np.concatenate([plus, [False], minus])


Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, int, int]
"""Strands, bases that may seed, starts of table words, words, their positions, width, stride."""


def index_of_parts(context: Context, kind: str, parts: list[Part]) -> Index:
    """The index of a batch from the parts of its queries."""
    def joined(arrays: list[np.ndarray], dtype: type) -> np.ndarray:
        return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype)

    arrays = {
        "strands": joined([part[0] for part in parts], np.uint8),
        "masked": ~joined([part[1] for part in parts], np.bool_),
        "indexed": joined([part[2] for part in parts], np.bool_),
        "words": joined([part[3] for part in parts], np.int32),
        "positions": joined([part[4] for part in parts], np.int32),
        "width": np.array([part[5] for part in parts], np.int32),
        "stride": np.array([part[6] for part in parts], np.int32),
        "strand_offsets": np.cumsum([0, *(len(part[0]) for part in parts)], dtype=np.int64),
        "word_offsets": np.cumsum([0, *(len(part[3]) for part in parts)], dtype=np.int64),
    }
    context.count("words", len(arrays["words"]))
    return Index(kind, "query", arrays, {"word_size": context.options.word_size, "strand": context.options.strand})


def compared_strands(index: Index) -> tuple[np.ndarray, np.ndarray]:
    """The strands of a word index as its words are completed to hits, and the places that are shut to these.

    Words of a small table are completed by two bits of each base, and an ambiguity is the base that the low bits of its
    code are: N is G. What is completed over one is treated as a hit over a masked base, and may be moved on behind it.
    Other tables compare codes, which an ambiguity never has in common with a base.

    Returns:
        u8 codes and bool, whether they are shut, both parallel to ``strands``.
    """
    def make() -> tuple[np.ndarray, np.ndarray]:
        strands, masked = index["strands"], index["masked"]
        ambiguous = (strands > 3) & (strands != SENTINEL)
        if index.kind != WORDS or not ambiguous.any():
            return strands, masked
        lengths, ends = np.diff(index["strand_offsets"]), index["word_offsets"][1:]
        first = lengths // 2 + 1 if index.parameters["strand"] == "minus" else 0
        last = np.append(index["positions"], 0)[ends - 1]  # of queries without words it doesn't matter
        small = (index["width"] <= WIDEST_SMALL) & (last - first < MOST_SMALL)
        ambiguous &= np.repeat(small, lengths)
        return np.where(ambiguous, strands & np.uint8(3), strands), masked | ambiguous

    made: tuple[np.ndarray, np.ndarray] = index.kept("compared", make)
    return made


class NucleotideBases(IndexStage):
    """Targets with a random base in place of every ambiguity, as the stages before the traceback see them.

    Array ``bases`` u8, parallel to the residues of the volume.
    """

    name = "nucleotide-bases"
    side = "target"
    provides = BASES

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=shape.target_residues + 2 * shape.longest_target, stays=shape.target_residues)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        bases = batch.residues.copy()
        for low, high in zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True):
            bases[low:high] = replace_ambiguities(batch.residues[low:high])
        return Index(BASES, "target", {"bases": bases})
