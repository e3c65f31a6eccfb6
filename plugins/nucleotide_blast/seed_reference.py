"""Word hits: scan of the targets, look-up in the query's word table, mini-extension to whole words.

Source: G-BLASTN sections 2.1, 3.1 and 3.2; the mini-extension reaches to the left first.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.records import Column, Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape
from seqloom.plugins.nucleotide_blast.index_reference import (
    BASES,
    WORDS,
    compared_strands,
    runs_of,
    table_width,
    word_codes,
)
from seqloom.plugins.nucleotide_blast.paper_tables_reference import look_up as look_up_in
from seqloom.plugins.nucleotide_blast.paper_tables_reference import table_of
from seqloom.plugins.nucleotide_blast.pieces import CHUNK, TargetPieces, pieces_of
from seqloom.plugins.nucleotide_blast.strands import MINUS, PLUS, SENTINEL

_NO_BASE = SENTINEL + 1

CHUNK_COLUMN = Column("chunk", "i4", "where the chunk of the target begins that the hit was found in")
SHIFT_COLUMN = Column("shift", "i4", "bases by which the hit was moved on behind a masked stretch")


BYTES_PER_SEED = 120
"""Memory of a seed while it is made."""


def scan_footprint(shape: Shape, stride: int, words: int, whole_words: int, tables: int = 1) -> Footprint:
    """Words of the targets, a presence vector, what one query finds in a chunk, and seeds of all.

    Seeds are those to be expected among unrelated sequences, and as many as there are where the queries occur once.

    Args:
        stride: bases from one word of a target to the next.
        words, whole_words: how many different words there can be in a table, and of the size that makes seeds.
        tables: words that begin at a base.
    """
    chunk = min(CHUNK, shape.longest_target)
    scanned = 4 * tables * shape.target_residues // stride
    found = 2 * shape.longest_query * chunk // (words * stride)
    seeds = 2 * shape.query_residues * shape.target_residues // whole_words + shape.query_residues // stride
    return Footprint(host=scanned + 2 * chunk // stride + words + BYTES_PER_SEED * (found + seeds))


def scan_seconds(shape: Shape) -> float:
    """Words of every target are looked up once for each query, some at a time; and there are stages behind."""
    return shape.queries * (shape.target_residues / 5e6 + shape.targets / 3e4)


@dataclass(frozen=True)
class QueryWords:
    """The word table of one query, words ascending; see ``NucleotideWords`` for the arrays.

    Strands and masked places are those of ``compared_strands``.
    """

    strands: np.ndarray
    masked: np.ndarray
    indexed: np.ndarray
    words: np.ndarray
    positions: np.ndarray
    width: int
    stride: int

    @classmethod
    def of(cls, index: Index, query: int) -> QueryWords:
        """The table of the query at a position of the batch."""
        strands = slice(*index["strand_offsets"][query : query + 2])
        own = slice(*index["word_offsets"][query : query + 2])
        order = np.argsort(index["words"][own], kind="stable")
        codes, shut = compared_strands(index)
        return cls(
            codes[strands], shut[strands], index["indexed"][strands],
            index["words"][own][order], index["positions"][own][order], int(index["width"][query]),
            int(index["stride"][query]),
        )  # fmt: skip


def open_stretches_of(context: Context, pieces: TargetPieces) -> Iterator[tuple[int, int, int, int]]:
    """Of each stretch that may have words its target's number, where its piece begins there, and its places in the
    volume, the first one and the one behind."""
    numbers = context.targets.ordinals[pieces.targets]
    piece = pieces.of_opens
    return zip(numbers[piece].tolist(), pieces.begins[piece].tolist(), *pieces.opens.T.tolist(), strict=True)


def look_up(table: QueryWords, target_words: np.ndarray, words: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of (position in the strands, place in ``target_words``) of equal words, by place then position.

    words: how many different words there can be. A presence vector first picks the places where there is anything.
    """
    present = np.zeros(words, bool)
    present[table.words] = True
    places = np.flatnonzero(present[target_words])
    first = np.searchsorted(table.words, target_words[places], "left")
    count = np.searchsorted(table.words, target_words[places], "right") - first
    within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    return table.positions[np.repeat(first, count) + within].astype(np.int64), np.repeat(places, count)


def mini_extend(
    strands: np.ndarray, bases: np.ndarray, query: np.ndarray, target: np.ndarray, width: int, word_size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Complete table words to seeding words.

    query, target: i64[n], starts of equal words of ``width`` bases. Equal bases to the left are taken first, as
    many as are needed and there are, then equal bases to the right.
    Returns the starts of the hits that reach ``word_size`` bases.
    """
    need = word_size - width
    strands = np.pad(strands, need + 1, constant_values=SENTINEL)
    bases = np.pad(bases, need + 1, constant_values=_NO_BASE)
    query, target = query + need + 1, target + need + 1
    left = _equal_bases(strands, bases, query - 1, target - 1, -1, need)
    right = _equal_bases(strands, bases, query + width, target + width, 1, need)
    whole = left + right >= need
    return (query - left - need - 1)[whole], (target - left - need - 1)[whole]


def _equal_bases(
    strands: np.ndarray, bases: np.ndarray, query: np.ndarray, target: np.ndarray, step: int, most: int
) -> np.ndarray:
    """i64[n]: how many bases are equal in a row from the given places on, ``most`` at most."""
    count = np.zeros(len(query), np.int64)
    going = np.arange(len(query))
    for base in range(most):
        going = going[strands[query[going] + step * base] == bases[target[going] + step * base]]
        count[going] += 1
    return count


def skip_masked(
    table: QueryWords, bases: np.ndarray, query: np.ndarray, target: np.ndarray, word_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits whose words are free of masked bases, moved to the right where only their beginning is masked.

    The last table word of a hit must be free. The start moves to the first free table word, and the hit must still
    have ``word_size`` bases from there on, all equal and free. Returns query and target starts and the shifts.
    """
    shift = np.zeros(len(query), np.int64)
    if table.width == word_size:
        return query, target, shift
    free = runs_of(~table.masked, word_size)
    kept = free[query]
    for hit in np.flatnonzero(~kept).tolist():
        q, t = int(query[hit]), int(target[hit])
        if not table.indexed[q + word_size - table.width]:
            continue
        moved = int(np.argmax(table.indexed[q:]))
        new, old = slice(q + moved, q + moved + word_size), slice(t + moved, t + moved + word_size)
        if free[q + moved] and np.array_equal(table.strands[new], bases[old]):
            kept[hit], shift[hit] = True, moved
    return (query + shift)[kept], (target + shift)[kept], shift[kept]


class WordHits(SeedStage):
    """Exact word matches between both query strands and the targets.

    Seeds come by query, target, chunk, place in the target; ``length`` is the word size.
    """

    name = "nucleotide-word-hits"
    reads = (WORDS, BASES)
    columns = (CHUNK_COLUMN, SHIFT_COLUMN)
    takes = (None,)
    gives_order = ("query", "target")

    def footprint(self, shape: Shape) -> Footprint:
        return scan_footprint(shape, *self.word_counts(shape))

    @staticmethod
    def word_counts(shape: Shape) -> tuple[int, int, int]:
        """The stride, and how many different words there can be in a table and of the size that makes seeds."""
        word_size = shape.options.word_size if shape.options else 11
        width = table_width(word_size, 2 * shape.longest_query)
        return word_size - width + 1, 4**width, 4 ** min(word_size, 31)  # more than any database has words

    def seconds(self, shape: Shape) -> float:
        return scan_seconds(shape)

    def run(self, context: Context, records: Records | None) -> Seeds:
        index, bases = context.index(WORDS), context.index(BASES)["bases"]
        word_size = context.options.word_size
        parts = []
        scanned: dict[tuple[int, int, int, int], np.ndarray] = {}
        pieces, before = pieces_of(context), context.targets.offsets
        everything = len(context.queries) * context.targets.total_residues
        for query, ordinal in enumerate(context.queries.ordinals.tolist()):
            table = QueryWords.of(index, query)
            if len(table.words) == 0:
                continue
            own, late = table_of(index, table.width), pieces.first_word(table.stride)
            for number, chunk, low, high in open_stretches_of(context, pieces):
                piece = bases[low:high]
                key = (low, high, table.width, table.stride)
                if key not in scanned:
                    scanned[key] = word_codes(piece[late:], table.width, table.stride)
                if own is None:
                    found, places = look_up(table, scanned[key], 4**table.width)
                else:
                    bounds = index["strand_offsets"][query : query + 2].tolist()
                    found, places = look_up_in(own, scanned[key], *bounds)
                context.count("table_hits", len(found))
                places = late + places * table.stride
                whole_words = mini_extend(table.strands, piece, found, places, table.width, word_size)
                starts, opposite, shift = skip_masked(table, piece, *whole_words, word_size)
                opposite = opposite + low - int(before[context.targets.locate(number)]) - chunk
                parts.append(forward_seeds(ordinal, number, chunk, starts, opposite, shift, table.strands, word_size))
                context.advance(len(piece), everything)
        return Seeds.concat(parts) if parts else Seeds.empty(self.columns)


def forward_seeds(
    query: int, target: int, chunk: int, starts: np.ndarray, opposite: np.ndarray, shift: np.ndarray,
    strands: np.ndarray, word_size: int,
) -> Seeds:  # fmt: skip
    """Hits in strand coordinates as seeds in forward ones."""
    length = len(strands) // 2
    minus = starts > length
    forward = np.where(minus, 2 * length + 1 - starts - word_size, starts)
    count = len(starts)
    return Seeds(
        {
            "query": np.full(count, query),
            "target": np.full(count, target),
            "query_pos": forward,
            "target_pos": opposite + chunk,
            "length": np.full(count, word_size),
            "query_frame": np.where(minus, MINUS, PLUS),
            "target_frame": np.full(count, PLUS),
            "chunk": np.full(count, chunk),
            "shift": shift,
        },
        (CHUNK_COLUMN, SHIFT_COLUMN),
    )
