"""Word hits on the CPU: one scan of the targets for all queries whose tables have words of one width.

Such queries share a table. Where they have far more words than the targets, as whole genomes and many reads do, the
table is made of the targets' words instead (``query_words_cpu.py``), or read with the database. Or all hits are found
by words of another width, of which there are fewer pairs (``sampled_words_cpu.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.nucleotide_blast.index_reference import BASES, WORDS
from seqloom.plugins.nucleotide_blast.packed_cpu import ALL, Open, Piece, eights, packed_bases
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import ChainedTable, SmallTable, as_tuple
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import scanner as scan_in
from seqloom.plugins.nucleotide_blast.paper_tables_reference import table_of
from seqloom.plugins.nucleotide_blast.pieces import CHUNK, TargetPieces, pieces_of
from seqloom.plugins.nucleotide_blast.query_words_cpu import (
    KEPT_SHARE,
    WIDE,
    Chunks,
    QueryWords,
    Sampling,
    TargetWords,
    Way,
    are_kept,
    best_sampling,
    bytes_made,
    cheapest,
    hits_of_query_words,
    is_sampled,
    parts_of,
)
from seqloom.plugins.nucleotide_blast.sampled_words_cpu import (
    HitFilter,
    most_rows,
    room_for_sampled,
    sampled_table,
    scan_sampled,
)
from seqloom.plugins.nucleotide_blast.scan_cpu import (
    ROOM,
    QueryTable,
    all_hits,
    query_table,
    room_for_present,
    scan,
    scan_whole,
)
from seqloom.plugins.nucleotide_blast.scanned_cpu import OPPOSITE, Places, Scanned, ScannedSeeds, by_words, scanned
from seqloom.plugins.nucleotide_blast.scoring import NucleotideScoring
from seqloom.plugins.nucleotide_blast.seed_reference import (
    BYTES_PER_SEED,
    CHUNK_COLUMN,
    SHIFT_COLUMN,
    WordHits,
)
from seqloom.plugins.nucleotide_blast.target_words_cpu import stored_words
from seqloom.plugins.nucleotide_blast.ungapped_cpu import (
    grouped,
    laid_out_strands,
    scores_of_groups,
    strand_limits,
)
from seqloom.plugins.nucleotide_blast.ungapped_reference import SHORTEST_APPROXIMATE_WORD
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable

BYTES_PER_ROW = 12
_WORTH_A_PART, _PARTS_PER_THREAD = 1 << 16, 8
"""Words of a chunk from which on another part is made of it, and parts of a unit for each thread."""

AnyTable: TypeAlias = WordTable | SmallTable | ChainedTable
Scan = Callable[[Piece, Open, AnyTable, QueryTable, np.ndarray, int], tuple[int, int, int]]


def word_seeds(context: Context, kind: str, length: int, kinds: Callable[[int], int], scanner: Callable,
               whole_words: bool, follow: bool) -> Seeds:
    """Seeds of all words of the index of a kind, by query, target, chunk and as ``scanner`` finds them.

    Args:
        length: bases of a hit.
        kinds: how many different words of a width there can be.
        scanner: gives for a width, a stride and the table the function that scans a chunk.
        whole_words: whether words are of neighbouring bases, so that others can be looked for in their place, and those
            of a target put into a table.
        follow: whether ``scanner`` finds the hits of a diagonal in the order of their places.
    """
    index, targets = context.index(kind), context.targets
    query: QueryTable = index.kept(("query", length), lambda: query_table(index, length))
    pieces = pieces_of(context)
    search = _Search(context, index, query, length, pieces)
    of_widths = [QueryWords(width, index) for width in distinct(index["width"]).tolist()]
    of_widths = [queries for queries in of_widths if queries.total]
    share = targets.total_residues / max(context.space.total_residues, targets.total_residues, 1)
    ways = [search.way(own, whole_words, share) for own in of_widths]
    sampling = best_sampling(sum(own.total for own in of_widths), targets.total_residues, length, share)
    chunks_of = np.stack([targets.ordinals[pieces.targets], pieces.begins], axis=1)

    def by_query(search: _Search) -> Scanned:
        return scanned(Places(query.begins, query.blocks), search.found, chunks_of, context.threads)

    sampled = whole_words and not pieces.masked and sampling.work < sum(effort for effort, _ in ways)
    if sampled:
        search.sample(sampling, hit_filter_for(context, length))
    else:
        for own, (_, way) in zip(of_widths, ways, strict=True):
            if way == "targets":
                search.look_up_in_targets(own, len(of_widths))
            else:
                search.look_for(own, kinds(own.width), scanner, len(of_widths))
    context.count("table_hits", search.looked_up)
    kept, dropped = by_query(search), search.dropped

    def all_hits() -> Scanned:
        found = kept
        if dropped:
            again = _Search(context, index, query, length, pieces)
            again.sample(sampling, HitFilter.all_hits())
            found = by_query(again)
        return by_words(found, index["stride"].astype(np.int64))

    make = ScannedSeeds(kept, query.begins, length, context.queries.ordinals, follow, all_hits if sampled else None)
    return Seeds.later(search.hits, make, (CHUNK_COLUMN, SHIFT_COLUMN))


def keeps_saved(context: Context, length: int) -> bool:
    """Whether hits of so many bases that the next stage doesn't save needn't be kept: it takes no two of them together.
    """
    return extends_single_hits(context.options, length) and isinstance(context.scoring, NucleotideScoring)


def extends_single_hits(options: Any, length: int) -> bool:
    """Whether each hit of so many bases is extended, groups of bases at a time."""
    return not options.window_size and length >= SHORTEST_APPROXIMATE_WORD


def hit_filter_for(context: Context, length: int) -> HitFilter:
    """Of hits of so many bases."""
    if not keeps_saved(context, length):
        return HitFilter.all_hits()
    rules = np.ascontiguousarray(context.scoring.matrix), scores_of_groups(context.scoring)
    return HitFilter(False, rules, *laid_out_strands(context), eights(grouped(context)), strand_limits(context))


class _Search:
    """Looks for the words of an index in the chunks of a volume.

    Attributes:
        found: rows of each chunk, in the order of the scan.
        dropped: how many more were found, and not kept.
        looked_up: pairs of equal words.
    """

    def __init__(self, context: Context, index: Index, query: QueryTable, length: int, pieces: TargetPieces) -> None:
        self.found: list[list[np.ndarray]] = [[] for _ in pieces.spans]
        self.looked_up, self.dropped = 0, 0
        self._context, self._index, self._query, self._length = context, index, query, length
        self._pieces, self._spans = pieces, pieces.spans
        self._bases = packed_bases(context)

    @property
    def hits(self) -> int:
        """How many were found."""
        return self.dropped + sum(len(rows) for parts in self.found for rows in parts)

    def _stride(self, own: QueryWords) -> int:
        return int(self._index["stride"][self._index["width"] == own.width][0])

    def way(self, own: QueryWords, whole_words: bool, share: float) -> tuple[float, Way]:
        """As ``cheapest``: no work where a table is there, or nothing else finds hits in what a mask leaves alone."""
        residues, stride = self._context.targets.total_residues, self._stride(own)
        if self._pieces.masked:
            return 0, "queries"
        if whole_words and stored_words(self._context, own.width, self._length):
            return 0, "targets"
        if not whole_words or table_of(self._index, own.width) is not None:
            return 0, "queries"
        return cheapest(own.total, residues // stride, len(parts_of(self._spans, stride)), own.width,
                        self._length, share)

    def sample(self, sampling: Sampling, hit_filter: HitFilter) -> None:
        """Look for hits of all queries by other words than BLAST's, and keep those that are wanted."""
        width, stride, _ = sampling
        widths = self._index["width"]
        table: WordTable = self._index.kept(
            ("sampled", width, self._length),
            partial(sampled_table, self._query, self._index, self._length, width, self._context.threads))
        most = most_rows(self._length, stride, widths)

        def look_up(piece: Piece, opens: Open, found: np.ndarray, first: int) -> tuple[int, int, int]:
            totals = np.zeros(1, np.int64)
            done: tuple[int, int, int] = scan_sampled(piece, self._length, width, stride, table, self._query, widths,
                                                      most, hit_filter, totals, found, first, *room_for_sampled())
            counts.append(int(totals[0]))
            return done

        counts: list[int] = []
        self._scan(look_up, stride, 1)
        self.dropped = sum(counts) - self.hits

    def look_for(self, own: QueryWords, kinds: int, scanner: Callable, turns: int) -> None:
        """Look for the words of queries of one width, of which there can be so many; see ``word_seeds``."""
        width, stride, made = own.width, self._stride(own), table_of(self._index, own.width)
        table: AnyTable = as_tuple(made) if made is not None else self._index.kept(
            ("table", width), partial(own.table, self._query.begins, kinds, self._context.threads))
        scan: Scan = scanner(width, stride, table)
        self._scan(lambda piece, opens, found, first: scan(piece, opens, table, self._query, found, first), stride,
                   turns, kinds // 4**width)

    def _scan(self, look_up: Callable[[Piece, Open, np.ndarray, int], tuple[int, int, int]], stride: int, turns: int,
              templates: int = 1) -> None:
        """Look for words that are ``stride`` apart in all chunks; this is one of so many ``turns``."""
        context, everything, pieces = self._context, turns * self._context.targets.total_residues, self._pieces
        first_word, bounds = pieces.first_word(stride), pieces.scanned_together(CHUNK)

        def look(part: tuple[int, int, int]) -> tuple[int, list[np.ndarray], int]:
            at, first, behind = part
            own = slice(bounds[at], bounds[at + 1])
            low, high = int(self._spans[own.start, 0]), int(self._spans[own.stop - 1, 1])
            piece = self._bases.piece(low, high, behind)
            opens = Open(pieces.opens[pieces.bounds[own.start] : pieces.bounds[own.stop]] - low, first_word)
            if behind == ALL:
                context.advance(piece.size, everything)
            return at, *all_hits(3, partial(look_up, piece, opens), first)

        words = (self._spans[bounds[1:] - 1, 1] - self._spans[bounds[:-1], 0]) // stride * templates
        for at, more, looked_up in run_tasks(context.threads, look, parts_of_chunks(words, context.threads)):
            for piece, rows in self._by_piece(int(bounds[at]), int(bounds[at + 1]), more):
                self.found[piece].append(rows)
            self.looked_up += looked_up

    def _by_piece(self, first: int, last: int, parts: list[np.ndarray]) -> Iterator[tuple[int, np.ndarray]]:
        """Hits that were looked for together, by the piece that they are in; their places count from the first one's
        begin."""
        for rows in parts:
            if last - first == 1 or not len(rows):
                yield first, rows
                continue
            low = self._spans[first, 0]
            piece = self._pieces.holding(low + rows[:, OPPOSITE])
            rows[:, OPPOSITE] += low - self._spans[piece, 0]
            cuts = np.flatnonzero(np.diff(piece)) + 1
            yield from zip(piece[np.append(0, cuts)].tolist(), np.split(rows, cuts), strict=True)

    def look_up_in_targets(self, own: QueryWords, turns: int) -> None:
        """Look the words of queries of one width up in a stored table of the targets, or in tables of some chunks."""
        context, stride = self._context, self._stride(own)
        stored = stored_words(context, own.width, self._length)
        for first, last in [(0, len(self._spans))] if stored else parts_of(self._spans, stride):
            chunks = Chunks.of(self._bases, self._spans[first:last], own.width, stride)
            words = stored or target_words(context, chunks, own.width, self._length, first)
            rows, looked_up = hits_of_query_words(context.threads, own, chunks, self._length, self._query, words)
            for at, some in enumerate(rows, first):
                self.found[at].append(some)
            self.looked_up += looked_up
            context.advance(int(chunks.sizes.sum()), turns * context.targets.total_residues)


def parts_of_chunks(words: np.ndarray, threads: int) -> list[tuple[int, int, int]]:
    """Chunks for each task: its number, its first word and the one behind its last: a few chunks in several parts.

    Args:
        words: i8[c], how many words of chunks are looked for, about.
    """
    several = _PARTS_PER_THREAD * threads // max(1, len(words)) if threads > 1 else 1
    if several < 2:
        return [(chunk, 0, ALL) for chunk in range(len(words))]
    parts = []
    for chunk, count in enumerate(words.tolist()):
        cuts = [first for first, _ in even_parts(count, threads, min(several, count / _WORTH_A_PART))] or [0]
        parts += [(chunk, first, behind) for first, behind in zip(cuts, [*cuts[1:], ALL], strict=True)]
    return parts


def target_words(context: Context, chunks: Chunks, width: int, length: int, first: int) -> TargetWords:
    """Tables of the words of chunks of the volume, from the ``first``-th on; kept where those of all are small."""
    make, space = partial(TargetWords.of, chunks, width, length, context.threads), context.space
    if not are_kept(space.total_residues, space.sequences, width, length):
        return make()
    kept: TargetWords = context.index(BASES).kept((width, length, first), make)
    return kept


def shared_scan_seconds(shape: Shape, words: int) -> float:
    """One scan of the targets for all queries, and what follows for each hit; ``words``: how many different ones of its
    size there can be."""
    hits = 2 * shape.query_residues * shape.target_residues / min(words, 4**WIDE)
    return shape.target_residues / 1e9 + 5e-8 * hits


def shared_scan_footprint(shape: Shape, stride: int, words: int, whole_words: int, tables: int = 1, kept: int = 1
                          ) -> Footprint:
    """Presence bits with ranks, what is known of every place of the queries, hits of chunks, and seeds.

    Args:
        stride: bases from one word of a target to the next.
        words, whole_words: how many different words there can be in a table, and of the size that makes hits and seeds.
        tables: words that begin at a base.
        kept: of so many hits by chance one is kept.
    """
    places, chunk = 2 * shape.query_residues, min(CHUNK, shape.longest_target)
    found = ROOM + 4 * tables * places * chunk // min(whole_words, 4**WIDE) // kept
    seeds = 2 * shape.query_residues * shape.target_residues // whole_words // kept + shape.query_residues // stride
    return Footprint(host=words // 8 + words // 16 + (10 + 16 * tables) * places
                     + BYTES_PER_ROW * shape.threads * found + BYTES_PER_SEED * seeds)


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 4
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        counts, options = self.word_counts(shape), shape.options
        few = options and extends_single_hits(options, options.word_size) and is_sampled(shape, *counts[:2])
        scan = shared_scan_footprint(shape, *counts, kept=KEPT_SHARE if few else 1)
        return Footprint(host=scan.host + bytes_made(shape, *counts[:2]))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape, self.word_counts(shape)[2])

    def run(self, context: Context, records: Records | None) -> Seeds:
        size = context.options.word_size

        def scanner(width: int, stride: int, table: AnyTable | None) -> Scan:
            if isinstance(table, SmallTable | ChainedTable):
                in_table = scan_in(isinstance(table, ChainedTable))
                return lambda piece, opens, table, query, found, first: in_table(
                    piece, opens, size, width, stride, table, query, found, first, room_for_present())
            if width == size:
                return lambda piece, opens, table, _, found, first: scan_whole(
                    piece, opens, width, stride, table, found, first, room_for_present())
            return lambda piece, opens, table, query, found, first: scan(
                piece, opens, size, width, stride, table, query, found, first, room_for_present())

        return word_seeds(context, WORDS, size, lambda width: 4**width, scanner, True, True)
