"""Exact Smith–Waterman scores of every query against every target."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from seqloom.core.context import Context, Scoring
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, SeedStage, Shape
from seqloom.plugins.smith_waterman import all_scores

from .recurrence_reference import Packed, packed_chunks
from .scoring import SmithWatermanScoring

_CHUNK_RESIDUES = 1 << 16  # some twelve arrays of so many numbers stay in a core's cache


class SmithWatermanScores(SeedStage):
    """Exact Smith–Waterman score of every pair; keeps those that can be among the reported ones.

    Kept are pairs that reach ``min_score`` and whose E-value isn't above the limit, and of these the best
    ``max_target_seqs`` of each query in this volume, by the order of the ranking. Given ``Pairs``, it scores only
    those. Residues are read as stored, hard-masked ones as the unknown residue. The option ``all_scores`` names a file
    that gets every score computed.

    Source: Munekawa, Ino & Hagihara 2010, section 4 (matrix filling step).
    """

    name: ClassVar[str] = "sw-scores"
    gives: ClassVar[type[Records]] = Pairs
    gives_order: ClassVar[tuple[str, ...] | None] = ("query", "target")
    scoring: ClassVar[type[Scoring]] = SmithWatermanScoring

    def footprint(self, shape: Shape) -> Footprint:
        residues = max(_CHUNK_RESIDUES, shape.longest_target)
        return Footprint(host=8 * 48 * residues + 24 * shape.queries * shape.targets)

    def run(self, context: Context, records: Records | None) -> Pairs:
        queries, targets = context.queries, context.targets
        everything = np.arange(len(targets))
        if records is None:
            jobs = [(np.arange(len(queries)), everything)]
        else:
            pairs = [queries.locate(records.query), targets.locate(records.target)]
            wanted = np.unique(np.stack(pairs, axis=1), axis=0)
            jobs = [(np.array([q]), wanted[wanted[:, 0] == q, 1]) for q in np.unique(wanted[:, 0])]
        parts = []
        with all_scores.of_unit(context) as note:
            for query_places, target_places in jobs:
                for query, row in zip(query_places, self.table(context, query_places, target_places), strict=True):
                    note(int(query), target_places, row)
                    parts.append(kept_pairs(context, int(query), target_places, row))
        return Pairs.concat(parts) if parts else Pairs.empty()

    def begin(self, options: Any) -> None:
        if options.all_scores:
            all_scores.begin(options.all_scores)

    def finish(self, options: Any) -> None:
        if options.all_scores:
            all_scores.finish(options.all_scores)

    def discard(self, options: Any) -> None:
        if options.all_scores:
            all_scores.discard(options.all_scores)

    def parts(self, options: Any) -> Path | None:
        return all_scores.parts_folder(options.all_scores) if options.all_scores else None

    def table(self, context: Context, query_places: np.ndarray, target_places: np.ndarray) -> np.ndarray:
        """i8[q, t]: scores of some queries with some targets, both by place in batch and volume; the better strand."""
        targets = context.targets
        residues = targets.searched()
        wanted = [residues[targets.offsets[t] : targets.offsets[t + 1]] for t in target_places]
        scores = np.zeros((len(query_places), len(target_places)), np.int64)
        cells = context.queries.total_residues * targets.total_residues * len(context.scoring.frames)
        for first, packed in packed_chunks(wanted, context.scoring, _CHUNK_RESIDUES):
            last = first + len(packed.lengths)
            for n, q in enumerate(query_places):
                for strand in strands(context, int(q)):
                    context.count("cells", len(strand) * len(packed.residues))
                    np.maximum(scores[n, first:last], best_scores(strand, packed), out=scores[n, first:last])
                    context.advance(len(strand) * len(packed.residues), cells)
        return scores


def strands(context: Context, place: int) -> list[np.ndarray]:
    """u8 residues of the query at ``place`` as searched, on each strand that is to be aligned."""
    queries = context.queries
    query = queries.searched()[queries.offsets[place] : queries.offsets[place + 1]]
    return [query if frame > 0 else queries.alphabet.complement[query][::-1] for frame in context.scoring.frames]


def best_scores(query: np.ndarray, packed: Packed) -> np.ndarray:
    """i8[k]: best local alignment score of u8[m] ``query`` with each packed target; 0 where nothing scores above 0."""
    best = np.zeros(len(packed.residues), packed.ramp.dtype)
    for row in packed.rows(query):
        np.maximum(best, row.h, out=best)
    return np.maximum.reduceat(best, packed.starts - 1).astype(np.int64)


def kept_pairs(context: Context, query: int, target_places: np.ndarray, scores: np.ndarray) -> Pairs:
    """Pairs of the query at place ``query`` that may be reported, in order of targets."""
    scoring, targets = context.scoring, context.targets
    high = np.flatnonzero(scores >= context.options.min_score)
    length = int(context.queries.lengths[query])
    evalues = scoring.evalues(scores[high], length, targets.lengths[target_places[high]])
    # Without statistics all E-values are absent: none is above the limit, and the ranking is by score.
    fits = ~(evalues > scoring.largest_evalue)
    high, evalues = high[fits], np.nan_to_num(evalues[fits])
    ranked = np.lexsort([target_places[high], -scores[high], evalues])[: context.options.max_target_seqs]
    high = high[np.sort(ranked)]
    return Pairs({"query": np.full(len(high), context.queries.ordinals[query]),
                  "target": targets.ordinals[target_places[high]], "score": scores[high]})
