"""Word hits on the CPU: one scan of the targets for all queries whose tables have words of one width.

Such queries share a table. Where they have far more words than a target, as whole genomes and many reads do, the table
is made of the target's words instead (``query_words_cpu.py``).
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
from seqloom.plugins.nucleotide_blast.index_reference import BASES, WORDS
from seqloom.plugins.nucleotide_blast.packed_cpu import Piece, packed_bases
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import ChainedTable, SmallTable, as_tuple
from seqloom.plugins.nucleotide_blast.paper_tables_cpu import scanner as scan_in
from seqloom.plugins.nucleotide_blast.paper_tables_reference import table_of
from seqloom.plugins.nucleotide_blast.query_words_cpu import (
    QueryWords,
    TargetWords,
    are_kept,
    hits_of_query_words,
    is_less_by_target,
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
    chunk_starts,
)
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable

BYTES_PER_ROW = 12

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
    query = query_table(index, length)
    work = [(target, chunk) for target, length_ in enumerate(targets.lengths.tolist())
            for chunk in chunk_starts(length_)]
    found: list[list[np.ndarray]] = [[] for _ in work]
    of_widths = [QueryWords(width, index) for width in distinct(index["width"]).tolist()]
    of_widths = [queries for queries in of_widths if queries.total]
    for own in of_widths:
        width, stride = own.width, int(index["stride"][index["width"] == own.width][0])
        made = table_of(index, width)
        turned = made is None and whole_words and is_less_by_target(own.total, targets.total_residues // stride,
                                                                    len(work))
        table = as_tuple(made) if made is not None else None if turned else own.table(query.begins, kinds(width))
        kept = are_kept(context.space.total_residues, context.space.sequences, width, length)
        look_up = scanner(width, stride, table)

        def look(at: int, own: QueryWords = own, table: AnyTable | None = table, look_up: Scan = look_up,
                 kept: bool = kept) -> tuple[list[np.ndarray], int]:
            target, chunk = work[at]
            low = int(targets.offsets[target]) + chunk
            piece = bases.piece(low, min(low + CHUNK, int(targets.offsets[target + 1])))
            if table is None:
                make = partial(TargetWords.of, piece, own.width, length)
                tables = context.index(BASES).kept((own.width, length, target, chunk), make) if kept else make()
                rows, looked_up = hits_of_query_words(context.threads, own, piece, length, query, tables)
            else:
                rows, looked_up = all_hits(3, lambda found, at: look_up(piece, table, query, found, at))
            context.advance(piece.size, len(of_widths) * targets.total_residues)
            return rows, looked_up

        threads = 1 if turned else context.threads
        for at, (rows, looked_up) in enumerate(run_tasks(threads, look, range(len(work)))):
            found[at] += rows
            context.count("table_hits", looked_up)
    chunks = np.array([(targets.ordinals[target], chunk) for target, chunk in work], np.int64).reshape(-1, 2)
    hits = scanned(Places(query.begins, query.blocks), found, chunks)
    make = ScannedSeeds(hits, query.begins, length, queries.ordinals, follow)
    return Seeds.later(len(hits.hits), make, (CHUNK_COLUMN, SHIFT_COLUMN))


def shared_scan_seconds(shape: Shape) -> float:
    """One scan of the targets for all queries; and there are stages behind."""
    return shape.target_residues / 1e8 + shape.query_residues * shape.target_residues / 1e12


def shared_scan_footprint(shape: Shape, stride: int, words: int, whole_words: int, tables: int = 1) -> Footprint:
    """Presence bits with ranks, what is known of every place of the queries, hits of chunks, and seeds.

    Args:
        stride: bases from one word of a target to the next.
        words, whole_words: how many different words there can be in a table, and of the size that makes seeds.
        tables: words that begin at a base.
    """
    places, chunk = 2 * shape.query_residues, min(CHUNK, shape.longest_target)
    found = ROOM + 4 * tables * places * chunk // (words * stride)
    seeds = 2 * shape.query_residues * shape.target_residues // whole_words + shape.query_residues // stride
    return Footprint(host=words // 8 + words // 16 + (10 + 16 * tables) * places
                     + BYTES_PER_ROW * shape.threads * found + BYTES_PER_SEED * seeds)


class WordHitsCpu(WordHits):
    __doc__ = WordHits.__doc__
    backend = "cpu"
    batch_residues, flight = 2_000_000, 4
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        return shared_scan_footprint(shape, *self.word_counts(shape))

    def seconds(self, shape: Shape) -> float:
        return shared_scan_seconds(shape)

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
