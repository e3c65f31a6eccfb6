"""Traceback: final alignments with their paths, over the true bases of the targets.

Preliminary alignments are taken best first, from a start point inside a run of equal bases. What they end in is
re-scored where needed, and of alignments that share an end or lie in one another the best stays. Reported alignments
have query_frame 1; hits on the reverse strand have target_frame -1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Ragged, Records
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.common.culling import Hsp, SavedHsps, drop_contained, purge_common_endpoints
from seqloom.plugins.common.edit_path import count_path, run_lengths
from seqloom.plugins.common.xdrop import BOTH, ROW_ONLY, two_sided_traceback
from seqloom.plugins.nucleotide_blast.gap_cleanup import clean_gaps
from seqloom.plugins.nucleotide_blast.gapped_reference import (
    GappedOptions,
    extends_by_xdrop,
    extends_greedily,
    reach,
    refuse_affine,
    strand_codes,
)
from seqloom.plugins.nucleotide_blast.greedy import PAIR, GreedyAligner, Script
from seqloom.plugins.nucleotide_blast.pieces import aligned_target
from seqloom.plugins.nucleotide_blast.rescore import BaseCosts, TracedHsp, best_part, cut_common_ends
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions, NucleotideScoring
from seqloom.plugins.nucleotide_blast.strands import MINUS, mirrored
from seqloom.plugins.nucleotide_blast.ungapped_reference import searched_query

GOOD_RUN, VERY_GOOD_RUN = 10, 15
"""A start point stays when more than so many equal bases run through it; else the first longer run is looked for."""

Trace = Callable[[Hsp], TracedHsp]


def start_point(hsp: Hsp, query: bytes, target: bytes) -> tuple[int, int]:
    """Where the traceback of a preliminary alignment starts: in a run of equal bases.

    The saved point stays if it lies in a run of more than ``GOOD_RUN``, which may begin before the alignment. Otherwise
    it moves along its diagonal within the alignment: to the first run of more than ``VERY_GOOD_RUN`` bases, half of
    them back from where it exceeds them, or else to the middle of the longest run. In repeats each base matters.
    """
    q, t = hsp.anchor_query, hsp.anchor_target
    run = -1
    for step in (1, -1):
        i, j = q, t
        while (i < hsp.query_end if step > 0 else min(i, j) >= 0) and query[i : i + 1] == target[j : j + 1]:
            run, i, j = run + 1, i + step, j + step
            if run > GOOD_RUN:
                return q, t
    back = min(q - hsp.query_start, t - hsp.target_start)
    first_q, first_t = q - back, t - back
    count = min(hsp.query_end - first_q, hsp.target_end - first_t)
    longest, middle, run = 0, None, 0
    for place in range(count + 1):
        if place < count and query[first_q + place] == target[first_t + place]:
            run += 1
            if run > VERY_GOOD_RUN:
                middle = place - VERY_GOOD_RUN // 2
                break
        else:
            if run > longest:
                longest, middle = run, place - run // 2
            run = 0
    return (q, t) if middle is None else (first_q + middle, first_t + middle)


class Traceback(ExtendStage):
    """What both tracebacks share. Subclasses give the aligner of one strand and target."""

    Options = GappedOptions
    takes = (Alignments,)
    gives = Alignments
    scoring = NucleotideScoring
    takes_order = ("query", "target")
    gives_order = ("query", "target")

    rescores_all = False
    """Whether all alignments are re-scored, and not only those that were cut."""

    @classmethod
    def applies(cls, options: Any) -> bool:
        """Where it is this way of extending, and no alignment goes for the sake of others before it is final."""
        return cls.is_way(options) and not (isinstance(options, NucleotideBlastOptions) and options.winnows())

    @classmethod
    @abstractmethod
    def is_way(cls, options: Any) -> bool:
        """Whether alignments are extended in this way under these options."""

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=4 * shape.longest_target)

    @abstractmethod
    def aligner(self, scoring: NucleotideScoring, x_drop: int, query: bytes, target: bytes) -> Trace:
        """The function that traces a preliminary alignment with this X-drop."""

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Alignments)
        rows: list[dict[str, int]] = []
        paths: list[list[int]] = []
        names = (
            "query", "target", "query_frame", "score", "query_start", "query_end", "target_start", "target_end",
            "anchor_query", "anchor_target",
        )  # fmt: skip
        table = zip(*(records.data[name].tolist() for name in names), strict=True)
        for (query, target, frame), group in groupby(table, key=lambda row: row[:3]):
            bases = context.query(query)
            hsps = [_strand_hsp(row[3:], len(bases), frame) for row in group]
            context.advance(len(hsps), len(records))
            real = context.target(target).tobytes()
            aligned = aligned_target(context.targets, int(context.targets.locate(target)), real)
            for hsp in self._strand(context, query, frame, aligned, hsps):
                row, path = reported(hsp, bases, frame, aligned, real)
                rows.append({"query": query, "target": target, **row})
                paths.append(path)
        data = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
        return Alignments({**data, "path": Ragged.of(paths)} if rows else {})

    def _strand(self, context: Context, query: int, frame: int, target: bytes, hsps: list[Hsp]) -> list[TracedHsp]:
        """Traced alignments of one query strand and one target."""
        scoring, separation = context.scoring, self.options.diagonal_separation
        of_query = scoring.query(int(context.queries.locate(query)))
        cutoff = of_query.strand(frame).cutoff
        searched = strand_codes(searched_query(context, query), frame)
        true = strand_codes(context.query(query), frame)
        trace = self.aligner(scoring, of_query.xdrop_final, searched, target)

        def similar(hsp: TracedHsp) -> bool:
            return is_similar(hsp, true, target, context.options.perc_identity)

        saved = SavedHsps(separation)
        traced = []
        for hsp in hsps:
            if saved.contains(hsp):
                continue
            hsp.anchor_query, hsp.anchor_target = start_point(hsp, searched, target)
            done = trace(hsp)
            # Random bases of the preliminary stage may have been all there was.
            if done.script and (self.rescores_all or similar(done)):
                saved.add(done)
                traced.append(done)
        kept, rest = cut_common_ends(traced)
        if self.rescores_all:
            kept, rest = [], kept + rest
        costs = base_costs(scoring)
        parts = (best_part(hsp, searched, target, costs, cutoff) for hsp in rest)
        kept += [part for part in parts if part is not None and similar(part)]
        return drop_contained(purge_common_endpoints(kept), separation)


class XDropTraceback(Traceback):
    """Traceback by X-drop dynamic programming (blastn)."""

    name = "nucleotide-xdrop-traceback"
    is_way = staticmethod(extends_by_xdrop)

    def aligner(self, scoring: NucleotideScoring, x_drop: int, query: bytes, target: bytes) -> Trace:
        assert scoring.matrix is not None
        matrix = scoring.matrix.tolist()
        x_drop = max(x_drop, scoring.gap_open + scoring.gap_extend)

        def trace(hsp: Hsp) -> TracedHsp:
            q, t = hsp.anchor_query + 1, hsp.anchor_target + 1
            low = max(0, t - reach(scoring, q, x_drop))
            high = min(len(target), t + reach(scoring, len(query) - q, x_drop))
            found = two_sided_traceback(
                query, target[low:high], q, t - low, matrix, scoring.gap_open, scoring.gap_extend, x_drop
            )
            operations = (PAIR if step == BOTH else INSERT if step == ROW_ONLY else DELETE for step in found.steps)
            return TracedHsp(
                found.score, found.row_start, found.row_end, found.column_start + low, found.column_end + low,
                script=[[run & 15, run >> 4] for run in run_lengths(operations)],
            )  # fmt: skip

        return trace


class GreedyTraceback(Traceback):
    """Traceback by greedy alignment; every alignment is re-scored over the true bases (megablast)."""

    name = "nucleotide-greedy-traceback"
    is_way = staticmethod(extends_greedily)
    rescores_all = True

    def aligner(self, scoring: NucleotideScoring, x_drop: int, query: bytes, target: bytes) -> Trace:
        refuse_affine(scoring)
        aligner = GreedyAligner(query, target, scoring.reward, scoring.penalty, x_drop)

        def trace(hsp: Hsp) -> TracedHsp:
            found = aligner.align(hsp.anchor_query, hsp.anchor_target, trace=True)
            script = clean_gaps(
                found.script,
                query[found.query_start : found.query_end],
                target[found.target_start : found.target_end],
            )
            return TracedHsp(
                found.score, found.query_start, found.query_end, found.target_start, found.target_end, script=script
            )

        return trace


def base_costs(scoring: NucleotideScoring) -> BaseCosts:
    """Scores by which alignments are re-scored."""
    assert scoring.matrix is not None
    return BaseCosts.of(
        scoring.matrix.tolist(), scoring.reward, scoring.penalty, scoring.gap_open, scoring.gap_extend
    )


def is_similar(hsp: TracedHsp, query: bytes, target: bytes, percent: float) -> bool:
    """Whether an alignment has at least this share of equal bases.

    It is asked as soon as an alignment has its path, and again only of what is re-scored: one that is left out can't
    take the place of others that share an end with it, and isn't cut to a better part of it.
    """
    if percent <= 0:
        return True
    equal = columns = 0
    i, j = hsp.query_start, hsp.target_start
    for operation, length in hsp.script:
        if operation == PAIR:
            equal += sum(a == b for a, b in zip(query[i : i + length], target[j : j + length], strict=True))
        columns += length
        i += length if operation != DELETE else 0
        j += length if operation != INSERT else 0
    return equal * 100.0 >= columns * percent


def edit_path(script: Script, query: bytes, target: bytes) -> list[int]:
    """Edit operations of a script along the aligned bases, in the direction of the strand."""
    operations: list[int] = []
    i = j = 0
    for operation, length in script:
        if operation == PAIR:
            pairs = zip(query[i : i + length], target[j : j + length], strict=True)
            operations += [MATCH if a == b else MISMATCH for a, b in pairs]
        else:
            operations += [operation] * length
        i += length if operation != DELETE else 0
        j += length if operation != INSERT else 0
    return run_lengths(operations)


def _strand_hsp(row: tuple[int, ...], length: int, frame: int) -> Hsp:
    score, query_start, query_end, target_start, target_end, anchor_query, anchor_target = row
    start, end = mirrored(query_start, query_end, length, frame)
    anchor = mirrored(anchor_query, anchor_query, length, frame)[0]
    return Hsp(score, start, end, target_start, target_end, anchor, anchor_target)


def reported(
    hsp: TracedHsp, query: np.ndarray, frame: int, target: bytes, real: bytes
) -> tuple[dict[str, int], list[int]]:
    """Columns and path of an alignment as it is reported, with the query read forwards.

    As in the peer what is hard-masked in a target counts as other than the query, and shows what it is.

    Args:
        target, real: residues of the target as they were aligned, and as they are.
    """
    start, end = mirrored(hsp.query_start, hsp.query_end, len(query), frame)
    aligned = strand_codes(query, frame)[hsp.query_start : hsp.query_end]
    opposite = target[hsp.target_start : hsp.target_end]
    path = edit_path(hsp.script, aligned, opposite)
    counts = count_path(path, aligned, opposite, None)
    if target is not real:
        path = edit_path(hsp.script, aligned, real[hsp.target_start : hsp.target_end])
    row = {
        "score": hsp.score,
        "query_start": start,
        "query_end": end,
        "target_start": hsp.target_start,
        "target_end": hsp.target_end,
        "query_frame": 1,
        "target_frame": frame,
        **counts._asdict(),
    }
    return row, path[::-1] if frame == MINUS else path
