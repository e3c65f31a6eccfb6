"""Words of queries on the CPU, and the scan the other way round.

Where queries have far more words than the targets, as whole genomes and many reads do, the table is made of the
targets' words, and those of the queries are looked up in it. So they are where such a table is stored with the database
(``target_words_cpu.py``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.jit import inline, kernel
from seqloom.core.kernels.simd import prefetch
from seqloom.core.stages import Shape
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.nucleotide_blast.hits_by_word_cpu import by_word
from seqloom.plugins.nucleotide_blast.packed_cpu import ALL, WORD, PackedBases, Piece, bases_from, eights, word_from
from seqloom.plugins.nucleotide_blast.pieces import CHUNK
from seqloom.plugins.nucleotide_blast.scan_cpu import QueryTable, all_hits, may_grow, whole_word
from seqloom.plugins.nucleotide_blast.seed_reference import WordHits
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable, bit_of, rank_of, word_table

WIDE = 12
"""Bases of words that are looked for in place of narrow ones, which are in tables of targets many times by chance."""
FETCHED, _ENTRIES = 64, 8
"""Words whose presence bits are fetched before the first of them is looked for, and places of each whose bases are: so
many that all of them stay in the first cache."""
Way: TypeAlias = Literal["queries", "targets"]
_LOOKED_UP, _PAIR, _ORDERED = 20, 10, 15
"""Words that are looked up in the time that one takes to be put into a table, that a pair of equal words takes, and
that a hit takes to be brought into the order of targets."""
_WORTH_A_PART = 1 << 20
"""Bases of strands from which on another part is made of them."""
SAMPLED = range(8, 14)
"""Bases of words that hits may be looked for by in place of BLAST's words; presence bits of wider ones take more than
caches have."""
KEPT_SHARE = 4
"""Of hits by chance, for which there is room, one in so many is kept where those that aren't saved needn't be."""
MOST_KEPT = 1 << 27
"""Bytes of tables of all targets that are kept from batch to batch of queries."""
MOST_WORDS, _BYTES_PER_WORD = CHUNK, 28
"""Words of targets in a table that is made for one batch, unless a single chunk has more, and what each takes then: a
word, wider ones and their numbers, starts and entries."""


@inline
def _eight(bases):
    """Eight bases, one in each byte of a u8 and the first one lowest, as a word of two bits each."""
    bases = (bases << np.uint64(2) | bases >> np.uint64(8)) & np.uint64(0x000F000F000F000F)
    bases = (bases << np.uint64(4) | bases >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
    return np.int64((bases << np.uint64(8) | bases >> np.uint64(32)) & np.uint64(0xFFFF))


class Chunks(NamedTuple):
    """Chunks of targets one behind the other, and the words at every ``stride``-th base of each.

    Attributes:
        bits, words: as of ``Piece``.
        begins, sizes: i8[c], where each begins in ``bits``, and its bases.
        firsts: i8[c + 1], number of the first word of each; the last is how many words there are.
        stride: bases from one word to the next.
    """

    bits: np.ndarray
    words: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray
    firsts: np.ndarray
    stride: int

    @classmethod
    def of(cls, bases: PackedBases, spans: np.ndarray, width: int, stride: int) -> Chunks:
        """Of i8[c, 2] stretches of a volume's bases, with words of ``width`` bases."""
        sizes = spans[:, 1] - spans[:, 0]
        counts = np.maximum(0, (sizes - width) // stride + 1)
        return cls(bases.bits, eights(bases.bits), bases.first + spans[:, 0], sizes,
                   np.concatenate([[0], np.cumsum(counts)]), stride)

    @property
    def total(self) -> int:
        """How many words there are."""
        return int(self.firsts[-1])


@kernel
def _every(chunks, width, words):
    """All words of the chunks."""
    for chunk in range(len(chunks.sizes)):
        place = chunks.begins[chunk]
        for number in range(chunks.firsts[chunk], chunks.firsts[chunk + 1]):
            words[number] = word_from(chunks.words, place, width)
            place += chunks.stride


@inline
def _chunk_of(chunks, number):
    """The chunk that a word is in."""
    low, high = 0, len(chunks.sizes)
    while high - low > 1:
        middle = (low + high) // 2
        if chunks.firsts[middle] <= number:
            low = middle
        else:
            high = middle
    return low


@inline
def _place_of(chunks, number):
    """Where a word begins in the bits."""
    chunk = _chunk_of(chunks, number)
    return chunks.begins[chunk] + (number - chunks.firsts[chunk]) * chunks.stride


@inline
def _bases_of(piece, place, count):
    """Bases of a piece from a place on as a word; −1 where there are less."""
    if place < 0 or place + count > piece.size:
        return np.int64(-1)
    return np.int64(word_from(piece.words, piece.begin + place, count))


@inline
def _bases_at(bases, words, place, count):
    """Up to eight bases from a place on as a word; −1 where one isn't a base, or there are less."""
    if place < 0 or place + count > len(bases):
        return np.int64(-1)
    if place < len(words):
        eight = words[place]
        if eight & (np.uint64(0xFCFCFCFCFCFCFCFC) >> np.uint64(8 * (8 - count))):
            return np.int64(-1)
        return _eight(eight) >> np.int64(2 * (8 - count))
    word = np.int64(0)
    for k in range(count):
        if bases[place + k] > 3:
            return np.int64(-1)
        word = word << 2 | bases[place + k]
    return word


@inline
def _widened_by(word, after, before, width, more):
    """A word with the ``more`` bases after it, and with those before it; −1 where there are none of these."""
    ahead, back = np.int64(-1), np.int64(-1)
    if after >= 0:
        ahead = word << 2 * more | after
    if before >= 0:
        back = before << 2 * width | word
    return ahead, back


@inline
def words_at(piece, place, width, more):
    """The words at a place of a piece with ``more`` bases ahead of and behind it; −1 where there are less."""
    begin = place - more
    if begin >= 0 and place + width + more <= piece.size and width + 2 * more <= WORD:
        bases = bases_from(piece.words, piece.begin + begin)
        down = np.uint64(64 - 2 * (width + more))
        return np.int64(bases << np.uint64(2 * more) >> down), np.int64(bases >> down)
    word = np.int64(word_from(piece.words, piece.begin + place, width))
    after, before = _bases_of(piece, place + width, more), _bases_of(piece, begin, more)
    return _widened_by(word, after, before, width, more)


@inline
def query_words_at(query, place, width, more):
    """As ``words_at``, at a place of the strands of ``QueryTable`` where a word begins."""
    word = _bases_at(query.strands, query.eights, place, min(width, 8))
    for k in range(8, width):
        word = word << 2 | query.strands[place + k]
    after = _bases_at(query.strands, query.eights, place + width, more)
    before = _bases_at(query.strands, query.eights, place - more, more)
    return _widened_by(word, after, before, width, more)


@kernel
def _widened(chunks, width, more, wide, numbers, back):
    """Words with ``more`` bases ahead of or behind them, where there are such, and their numbers; how many."""
    count = 0
    for chunk in range(len(chunks.sizes)):
        piece = Piece(chunks.bits, chunks.words, chunks.begins[chunk], chunks.sizes[chunk], ALL)
        place = np.int64(0)
        for number in range(chunks.firsts[chunk], chunks.firsts[chunk + 1]):
            ahead, behind = words_at(piece, place, width, more)
            word = behind if back else ahead
            if word >= 0:
                wide[count], numbers[count] = word, number
                count += 1
            place += chunks.stride
    return count


@kernel
def _scan_words(width, widths, high, chunks, size, more, ahead, back, query, keys, ranks, found, low):
    """As ``scan``, of chunks in tables, for words that begin at places ``low`` … ``high`` − 1 of the strands.

    A hit that needs ``more`` bases on either side of its word has so many equal ones on one side at least: it is looked
    for by wider words, which are there less often by chance. What one table gives, the other needn't.

    Args:
        width, widths: of the words, and of those of each query; queries with others are left out.
        more: bases by which words are wider; 0 if all hits are looked for in ``ahead``.
        ahead, back: tables of the chunks' words with ``more`` bases ahead of and behind them; entries are numbers.
        query: ``QueryTable``.
        keys, ranks: i8[2, ``FETCHED``], wider words, −1 where there is none; i8[2 · ``FETCHED``, 3] for ``_fetch``.
        found: a fourth column has the number of the chunks' word.
    """
    count = looked_up = begun = seen = 0
    for number in range(len(widths)):
        end = min(high, query.begins[number + 1])
        if widths[number] != width or end <= low:
            continue
        for block in range(max(low, query.begins[number]), end, FETCHED):
            last_of_block = min(block + FETCHED, end)
            if more:
                there = _wide_present(query, block, last_of_block, width, more, ahead.bits, back.bits, keys, ranks)
            else:
                there = _present(query, block, last_of_block, width, ahead.bits, ranks)
            _fetch(chunks, width, ahead, back, ranks[:there])
            known = -1
            for row in range(there):
                at, side, rank = ranks[row, 0], ranks[row, 1], ranks[row, 2]
                first, last = _entries(back, rank) if side else _entries(ahead, rank)
                if at != known:
                    known, begun, seen = at, count, looked_up
                if count + last - first > len(found):
                    return begun, seen, block + at
                for entry in range(first, last):
                    word = np.int64(back.entries[entry] if side else ahead.entries[entry])
                    chunk = _chunk_of(chunks, word)
                    piece = Piece(chunks.bits, chunks.words, chunks.begins[chunk], chunks.sizes[chunk], ALL)
                    target = (word - chunks.firsts[chunk]) * chunks.stride
                    if side and keys[0, at] >= 0 and (
                            keys[0, at] & (np.int64(1) << 2 * more) - 1
                            == _bases_of(piece, target + width, more)):
                        continue
                    looked_up += 1
                    count += _hit(piece, query, block + at, target, width, size, found, count, word)
    return count, looked_up, -1


@inline
def _entries(table, rank):
    """First and last entry of a word, behind it."""
    return table.starts[rank], table.starts[rank + 1]


@kernel
def _present(query, low, high, width, bits, ranks):
    """Note which words that begin at places ``low`` … ``high`` − 1 are there: i8[n, 3] number, 0 and word; how many.

    Without a branch: which words are there can't be foreseen.
    """
    ahead, first = np.uint64(width - 1), np.uint64(low)
    word, mask, there = np.uint64(0), (np.uint64(1) << np.uint64(2 * width)) - np.uint64(1), np.uint64(0)
    high = min(high, len(query.strands) - width + 1)
    if high <= low:
        return 0
    for at in range(ahead):
        word = word << np.uint64(2) | np.uint64(query.strands[first + np.uint64(at)]) & np.uint64(3)
    for at in range(np.uint64(high) - first):
        place = first + np.uint64(at)
        word = (word << np.uint64(2) | np.uint64(query.strands[place + ahead]) & np.uint64(3)) & mask
        ranks[there, 0], ranks[there, 2] = at, word
        there += bit_of(bits, word) & np.uint64(query.indexed[place])
    for row in range(np.int64(there)):
        ranks[row, 1] = 0
    return np.int64(there)


@kernel
def _wide_present(query, low, high, width, more, ahead, back, keys, ranks):
    """As ``_present``, of words with ``more`` bases ahead of or behind them, of which u8 ``ahead`` and ``back`` are the
    presence bits: i8[n, 3] number, whether they are behind, and word."""
    for at in range(high - low):
        place = low + at
        keys[0, at] = keys[1, at] = -1
        if query.indexed[place]:
            keys[0, at], keys[1, at] = query_words_at(query, place, width, more)
            prefetch(ahead, keys[0, at] >> 6)
            prefetch(back, keys[1, at] >> 6)
    there = 0
    for at in range(high - low):
        for side in range(2):
            key = keys[side, at]
            if key >= 0 and bit_of(back if side else ahead, np.uint64(key)):
                ranks[there, 0], ranks[there, 1], ranks[there, 2] = at, side, key
                there += 1
    return there


@kernel
def _fetch(chunks, width, ahead, back, ranks):
    """Put ranks in place of the words in ``_present``'s rows.

    All that is known of one is far from what is known of others, so each is fetched before the first is looked at.
    """
    for at in range(len(ranks)):
        prefetch(back.ranks if ranks[at, 1] else ahead.ranks, ranks[at, 2] >> 6)
    for at in range(len(ranks)):
        side, key = ranks[at, 1], ranks[at, 2]
        ranks[at, 2] = rank_of(back if side else ahead, np.uint64(key))
        prefetch(back.starts if side else ahead.starts, ranks[at, 2])
    for at in range(len(ranks)):
        side, rank = ranks[at, 1], ranks[at, 2]
        prefetch(back.entries if side else ahead.entries, back.starts[rank] if side else ahead.starts[rank])
    for at in range(len(ranks)):
        side, rank = ranks[at, 1], ranks[at, 2]
        first, last = _entries(back, rank) if side else _entries(ahead, rank)
        for entry in range(first, min(last, first + _ENTRIES)):
            number = np.int64(back.entries[entry] if side else ahead.entries[entry])
            prefetch(chunks.bits, _place_of(chunks, number) + width >> 2)


@inline
def _hit(piece, query, place, target, width, size, found, row, number):
    """Write the hit of a word of that number, if it is one, to a row; whether it is."""
    if not may_grow(piece, query, place, target, width, size):
        return False
    whole, begin, opposite, shift = whole_word(piece, query, place, target, width, size)
    if whole:
        found[row, 0], found[row, 1], found[row, 2], found[row, 3] = begin, opposite, shift, number
    return whole


@kernel
def _gather(width, widths, word_offsets, all_words, positions, begins, words, places):
    """The words of ``QueryWords``, and where these are in the strands of the whole batch."""
    count = 0
    for query in range(len(widths)):
        if widths[query] == width:
            for number in range(word_offsets[query], word_offsets[query + 1]):
                words[count], places[count] = all_words[number], begins[query] + positions[number]
                count += 1


class QueryWords(NamedTuple):
    """Words of the queries of a batch that have words of one width, in an index of words."""

    width: int
    words: Index

    @property
    def total(self) -> int:
        return int(np.diff(self.words["word_offsets"])[self.words["width"] == self.width].sum())

    def gathered(self, begins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """i4[m] words, and their places in strands that begin at ``begins``."""
        words, places = np.empty((2, self.total), np.int32)
        index = self.words
        _gather(self.width, index["width"], index["word_offsets"], index["words"], index["positions"], begins, words,
                places)
        return words, places

    def table(self, begins: np.ndarray, kinds: int, threads: int = 1) -> WordTable:
        """Of words of as many kinds, at places in strands that begin at ``begins``."""
        return word_table(*self.gathered(begins), kinds, threads)


def _wide_table(chunks: Chunks, width: int, more: int, back: bool, threads: int) -> WordTable:
    wide, numbers = np.empty((2, chunks.total), np.int32)
    count = _widened(chunks, width, more, wide, numbers, back)
    return word_table(wide[:count], numbers[:count], 4 ** (width + more), threads)


class TargetWords(NamedTuple):
    """Words of chunks at every ``stride``-th base, in tables whose entries are their numbers.

    Attributes:
        more: bases by which words are wider than those of queries; 0 where they aren't.
        ahead, back: tables of words with ``more`` bases ahead of and behind them; the same where these are none.
    """

    more: int
    ahead: WordTable
    back: WordTable

    @classmethod
    def of(cls, chunks: Chunks, width: int, size: int, threads: int = 1) -> TargetWords:
        """Of chunks, for words of ``width`` bases that grow to ``size``."""
        more = wider_by(width, size)
        if more:
            ahead, back = (_wide_table(chunks, width, more, side, threads) for side in (False, True))
        else:
            words = np.empty(chunks.total, np.int32)
            _every(chunks, width, words)
            ahead = back = word_table(words, np.arange(len(words), dtype=np.int32), 4**width, threads)
        return cls(more, ahead, back)

    @staticmethod
    def bytes_of(residues: int, targets: int, width: int, size: int) -> int:
        """What those of so many residues and targets take, about."""
        more, words = wider_by(width, size), residues // (size - width + 1)
        bits = 4 ** (width + more) // 8
        return (2 if more else 1) * (tables_of(words, targets) * (bits + bits // 2) + 8 * words)


def tables_of(words: int, targets: int) -> int:
    """In how many tables so many words of targets are, about."""
    return max(1, min(-(-2 * words // MOST_WORDS), words // CHUNK + targets))


def wider_by(width: int, size: int) -> int:
    """Bases by which words of targets are wider than those of queries that grow to ``size``."""
    more = WIDE - width
    return more if more > 1 and 2 * more <= size - width else 0


def parts_of(spans: np.ndarray, stride: int) -> list[tuple[int, int]]:
    """First chunk of each table, and the one behind its last, of chunks with i8[c, 2] spans."""
    parts, first, words = [], 0, 0
    for chunk, size in enumerate((spans[:, 1] - spans[:, 0]).tolist()):
        if words and words + size // stride > MOST_WORDS:
            parts.append((first, chunk))
            first, words = chunk, 0
        words += size // stride
    return [*parts, (first, len(spans))] if len(spans) else []


def hits_of_query_words(threads: int, queries: QueryWords, chunks: Chunks, size: int, query: QueryTable,
                        target_words: TargetWords) -> tuple[list[np.ndarray], int]:
    """Hits of the words of queries in each chunk, as ``scan`` finds them, and how many equal words there were."""
    width, widths = queries.width, queries.words["width"]
    more, ahead, back = target_words

    def part(rows: tuple[int, int]) -> tuple[list[np.ndarray], int]:
        low, high = rows
        keys, ranks = np.empty((2, FETCHED), np.int64), np.empty((2 * FETCHED, 3), np.int64)
        return all_hits(4, lambda found, at: _scan_words(width, widths, high, chunks, size, more, ahead, back, query,
                                                         keys, ranks, found, at), low)

    parts = run_tasks(threads, part, even_parts(len(query.strands), threads, len(query.strands) / _WORTH_A_PART))
    rows, bounds = by_word(threads, [rows for some, _ in parts for rows in some], chunks.firsts)
    return [rows[a:b] for a, b in pairwise(bounds.tolist())], sum(looked_up for _, looked_up in parts)


def cheapest(words: int, of_targets: int, tables: int, width: int, size: int, share: float) -> tuple[float, Way]:
    """Which tables are least work for a volume, and how much, in words that are looked for: of the ``words`` of
    queries, which have that width and grow to a size; or so many of the words of the targets.

    share: of all that is searched, which tables of queries are made once for.
    """
    more, pairs, hits = wider_by(width, size), words * of_targets / 4**width, words * of_targets / 4**size
    sides, fewer = (2 if more else 1), pairs / 4**more
    by_queries = share * _LOOKED_UP * words + of_targets + _PAIR * pairs
    by_targets = sides * (_LOOKED_UP * of_targets + tables * words + _PAIR * fewer) + _ORDERED * hits
    return (by_queries, "queries") if by_queries <= by_targets else (by_targets, "targets")


class Sampling(NamedTuple):
    """Words of the queries by which all hits are found, whatever BLAST's own are (``sampled_words_cpu.py``).

    Attributes:
        width, stride: bases of each, and from one to the next in a target.
        work: as of ``cheapest``.
    """

    width: int
    stride: int
    work: float


def best_sampling(words: int, residues: int, size: int, share: float) -> Sampling:
    """For so many words of queries, and residues of targets; ``size`` and ``share`` as of ``cheapest``."""
    def sampling(width: int) -> Sampling:
        stride = size - width + 1
        return Sampling(width, stride, share * _LOOKED_UP * words + residues / stride * (1 + _PAIR * words / 4**width))

    return min((sampling(width) for width in {min(width, size) for width in SAMPLED}), key=lambda found: found.work)


def are_kept(residues: int, targets: int, width: int, size: int) -> bool:
    """Whether tables of the words of all targets that are searched are small enough to be kept."""
    return TargetWords.bytes_of(residues, targets, width, size) <= MOST_KEPT


def _tables(shape: Shape, width: int, stride: int) -> Way | Sampling:
    """Which tables are made for such queries and targets."""
    words, all_residues = shape.target_residues // stride, max(shape.database_residues, shape.target_residues, 1)
    size, share, of_queries = width + stride - 1, shape.target_residues / all_residues, 2 * shape.query_residues
    work, way = cheapest(of_queries, words, tables_of(words, shape.targets), width, size, share)
    sampling = best_sampling(of_queries, shape.target_residues, size, share)
    return sampling if sampling.work < work else way


def is_sampled(shape: Shape, stride: int, kinds: int) -> bool:
    """Whether hits are found by sampled words, where the usual table has so many kinds."""
    return isinstance(_tables(shape, kinds.bit_length() // 2, stride), Sampling)


def bytes_made(shape: Shape, stride: int, kinds: int) -> int:
    """What it takes to make tables of sampled words, or of those of targets, where the usual one has so many kinds."""
    made = _tables(shape, kinds.bit_length() // 2, stride)
    if isinstance(made, Sampling):
        return 3 * 4**made.width // 16 + 16 * 2 * shape.query_residues
    return _BYTES_PER_WORD * min(MOST_WORDS, shape.target_residues // stride) if made == "targets" else 0


def bytes_kept(shape: Shape) -> int:
    """What tables of a volume's words take where they are kept."""
    stride, kinds, _ = WordHits.word_counts(shape)
    width = kinds.bit_length() // 2
    residues, targets = shape.database_residues or shape.target_residues, shape.database_targets or shape.targets
    if not are_kept(residues, targets, width, width + stride - 1) or _tables(shape, width, stride) != "targets":
        return 0
    return TargetWords.bytes_of(shape.target_residues, shape.targets, width, width + stride - 1)
