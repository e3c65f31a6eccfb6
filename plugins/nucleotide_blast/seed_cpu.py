"""Word hits on the CPU: one scan of the targets for all queries whose tables have words of one width.

Such queries share a table. Where they have far more words than the targets, as whole genomes and many reads do, the
table is made of the targets' words instead (``query_words_cpu.py``), or read with the database. Narrow words of many
queries are looked for by wider ones (``wide_words_cpu.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import run_tasks
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.nucleotide_blast.index_reference import BASES, WORDS
from seqloom.plugins.nucleotide_blast.packed_cpu import ALL, Piece, packed_bases
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import ChainedTable, SmallTable, as_tuple
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import scanner as scan_in
from seqloom.plugins.nucleotide_blast.paper_tables_reference import table_of
from seqloom.plugins.nucleotide_blast.query_words_cpu import (
    WIDE,
    Chunks,
    QueryWords,
    TargetWords,
    are_kept,
    bytes_made,
    cheapest,
    chunk_spans,
    hits_of_query_words,
    parts_of,
    wider_by,
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
from seqloom.plugins.nucleotide_blast.scanned_cpu import Places, ScannedSeeds, scanned
from seqloom.plugins.nucleotide_blast.seed_reference import (
    BYTES_PER_SEED,
    CHUNK,
    CHUNK_COLUMN,
    SHIFT_COLUMN,
    WordHits,
)
from seqloom.plugins.nucleotide_blast.target_words_cpu import stored_words
from seqloom.plugins.nucleotide_blast.wide_words_cpu import room_for_wide, scan_wide, wide_tables
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable

BYTES_PER_ROW = 12
_WORTH_A_PART, _PARTS_PER_THREAD = 1 << 16, 8
"""Words of a chunk from which on another part is made of it, and parts of a unit for each thread."""

Tables: TypeAlias = tuple[WordTable, WordTable]
AnyTable: TypeAlias = WordTable | SmallTable | ChainedTable
Scan = Callable[[Piece, AnyTable, QueryTable, np.ndarray, int], tuple[int, int, int]]


def word_seeds(context: Context, kind: str, length: int, kinds: Callable[[int], int], scanner: Callable,
               whole_words: bool, follow: bool) -> Seeds:
    """Seeds of all words of the index of a kind, by query, target, chunk and as ``scanner`` finds them.

    Args:
        length: bases of a hit.
        kinds: how many different words of a width there can be.
        scanner: gives for a width, a stride and the table the function that scans a chunk.
        whole_words: whether words are of neighbouring bases, so that those of a target can be put into a table, too.
        follow: whether ``scanner`` finds the hits of a diagonal in the order of their places.
    """
    index, bases = context.index(kind), packed_bases(context)
    queries, targets = context.queries, context.targets
    query: QueryTable = index.kept(("query", length), lambda: query_table(index, length))
    work, spans = chunk_spans(np.asarray(targets.offsets))
    found: list[list[np.ndarray]] = [[] for _ in work]
    of_widths = [QueryWords(width, index) for width in distinct(index["width"]).tolist()]
    of_widths = [queries for queries in of_widths if queries.total]
    share = targets.total_residues / max(context.space.total_residues, targets.total_residues, 1)
    for own in of_widths:
        width, stride = own.width, int(index["stride"][index["width"] == own.width][0])
        made, stored = table_of(index, width), stored_words(context, width, length) if whole_words else None
        parts, way = [(0, len(spans))] if stored else parts_of(spans, stride), "targets" if stored else "queries"
        if made is None and whole_words and not stored:
            way = cheapest(own.total, targets.total_residues // stride, len(parts), width, length, share)
        if way == "targets":
            for first, last in parts:
                chunks = Chunks.of(bases, spans[first:last], width, stride)
                words = stored or target_words(context, chunks, width, length, first)
                rows, looked_up = hits_of_query_words(context.threads, own, chunks, length, query, words)
                for at, some in enumerate(rows, first):
                    found[at].append(some)
                context.count("table_hits", looked_up)
                context.advance(int(chunks.sizes.sum()), len(of_widths) * targets.total_residues)
            continue
        look_up: Callable[[Piece, np.ndarray, int], tuple[int, int, int]]
        if way == "wide":
            wide: Tables = index.kept(
                ("wide", width, length), partial(wide_tables, own, query, length, context.threads))
            look_up = partial(_scan_wide, own.width, length, stride, wide, query)
        else:
            table = as_tuple(made) if made is not None else index.kept(
                ("table", width), partial(own.table, query.begins, kinds(width), context.threads))
            look_up = partial(_scan, scanner(width, stride, table), table, query)

        def look(part: tuple[int, int, int], look_up: Callable = look_up) -> tuple[int, list[np.ndarray], int]:
            at, first, behind = part
            low, high = spans[at].tolist()
            piece = bases.piece(low, high, behind)
            if behind == ALL:
                context.advance(piece.size, len(of_widths) * targets.total_residues)
            return at, *all_hits(3, partial(look_up, piece), first)

        words = (spans[:, 1] - spans[:, 0]) // stride * (kinds(width) // 4**width)
        for at, more, looked_up in run_tasks(context.threads, look, parts_of_chunks(words, context.threads)):
            found[at] += more
            context.count("table_hits", looked_up)
    chunks_of = np.stack([targets.ordinals[work[:, 0]], work[:, 1]], axis=1)
    hits = scanned(Places(query.begins, query.blocks), found, chunks_of, context.threads)
    make = ScannedSeeds(hits, query.begins, length, queries.ordinals, follow)
    return Seeds.later(len(hits.hits), make, (CHUNK_COLUMN, SHIFT_COLUMN))


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


def _scan(scanner: Scan, table: AnyTable, query: QueryTable, piece: Piece, found: np.ndarray, first: int
          ) -> tuple[int, int, int]:
    return scanner(piece, table, query, found, first)


def _scan_wide(width: int, size: int, stride: int, tables: Tables, query: QueryTable, piece: Piece, found: np.ndarray,
               first: int) -> tuple[int, int, int]:
    more = wider_by(width, size)
    done: tuple[int, int, int] = scan_wide(piece, size, width, more, stride, *tables, query, found, first,
                                           *room_for_wide())
    return done


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


def shared_scan_footprint(shape: Shape, stride: int, words: int, whole_words: int, tables: int = 1) -> Footprint:
    """Presence bits with ranks, what is known of every place of the queries, hits of chunks, and seeds.

    Args:
        stride: bases from one word of a target to the next.
        words, whole_words: how many different words there can be in a table, and of the size that makes hits and seeds.
        tables: words that begin at a base.
    """
    places, chunk = 2 * shape.query_residues, min(CHUNK, shape.longest_target)
    found = ROOM + 4 * tables * places * chunk // min(whole_words, 4**WIDE)
    seeds = 2 * shape.query_residues * shape.target_residues // whole_words + shape.query_residues // stride
    return Footprint(host=words // 8 + words // 16 + (10 + 16 * tables) * places
                     + BYTES_PER_ROW * shape.threads * found + BYTES_PER_SEED * seeds)


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 4
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        counts = self.word_counts(shape)
        scan = shared_scan_footprint(shape, *counts)
        return Footprint(host=scan.host + bytes_made(shape, *counts[:2]))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape, self.word_counts(shape)[2])

    def run(self, context: Context, records: Records | None) -> Seeds:
        size = context.options.word_size

        def scanner(width: int, stride: int, table: AnyTable | None) -> Scan:
            if isinstance(table, SmallTable | ChainedTable):
                in_table = scan_in(isinstance(table, ChainedTable))
                return lambda piece, table, query, found, first: in_table(piece, size, width, stride, table, query,
                                                                          found, first, room_for_present())
            if width == size:
                return lambda piece, table, _, found, first: scan_whole(piece, width, stride, table, found, first,
                                                                        room_for_present())
            return lambda piece, table, query, found, first: scan(piece, size, width, stride, table, query, found,
                                                                  first, room_for_present())

        return word_seeds(context, WORDS, size, lambda width: 4**width, scanner, True, True)
