"""Searches without gaps: the ungapped segments as alignments (BLAST+ 2.12 with ``-ungapped``).

A segment was found with random bases in place of the target's ambiguities. Over the true ones its best part is what
stays, if it reaches the cutoff. Which one lies in the range of a better one of the same target is asked before that.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Alignments, Ragged, Records, Seeds
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.common.culling import Hsp, score_order
from seqloom.plugins.common.winnow import best_of_target
from seqloom.plugins.nucleotide_blast.chunks import Frames, merge_chunks, overlaps
from seqloom.plugins.nucleotide_blast.gapped_reference import strand_codes
from seqloom.plugins.nucleotide_blast.greedy import PAIR
from seqloom.plugins.nucleotide_blast.pieces import aligned_target
from seqloom.plugins.nucleotide_blast.rescore import TracedHsp
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions, NucleotideScoring
from seqloom.plugins.nucleotide_blast.strands import mirrored
from seqloom.plugins.nucleotide_blast.traceback_reference import is_similar, reported
from seqloom.plugins.nucleotide_blast.ungapped_reference import searched_query


class NucleotideSegments(ExtendStage):
    """Ungapped segments as alignments, over the true bases of the targets."""

    name = "nucleotide-segments"
    takes = (Seeds,)
    gives = Alignments
    takes_order = ("query", "target", "chunk")
    gives_order = ("query", "target")
    scoring = NucleotideScoring
    uses = ("ungapped", "subject_besthit")

    @classmethod
    def applies(cls, options: Any) -> bool:
        return isinstance(options, NucleotideBlastOptions) and options.ungapped

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=2 * shape.longest_target)

    def run(self, context: Context, records: Records) -> Alignments:
        rows: list[dict[str, int]] = []
        paths: list[list[int]] = []
        names = ("query", "target", "chunk", "query_frame", "score", "query_pos", "target_pos", "length")
        table = zip(*(records.data[name].tolist() for name in names), strict=True)
        for (query, target), group in groupby(table, key=lambda row: row[:2]):
            place, bases = int(context.queries.locate(query)), context.query(query)
            residues = context.target(target).tobytes()
            aligned = aligned_target(context.targets, int(context.targets.locate(target)), residues)
            chunks = [(chunk, _by_frame(own, chunk, len(bases))) for chunk, own in groupby(group, key=lambda r: r[2])]
            strands = {frame: strand_codes(searched_query(context, query), frame) for frame in (1, -1)}
            real = {frame: strand_codes(bases, frame) for frame in (1, -1)}
            best_of = len(bases) if context.options.subject_besthit else None
            for frame, hsp in self._segments(context, merge_chunks(chunks, overlaps, best_of), len(bases)):
                context.advance(1, len(records))
                strand = context.scoring.query(place).strand(frame)
                if context.scoring.evalue(hsp.score, place, frame) > context.options.evalue:
                    continue
                best = best_stretch(hsp, strands[frame], aligned, context.scoring.matrix, strand.ungapped_cutoff)
                if best is not None and is_similar(best, real[frame], aligned, context.options.perc_identity):
                    row, path = reported(best, bases, frame, aligned, residues)
                    rows.append({"query": query, "target": target, **row})
                    paths.append(path)
        data = {name: np.array([row[name] for row in rows]) for name in rows[0]} if rows else {}
        return Alignments({**data, "path": Ragged.of(paths)} if rows else {})

    def _segments(self, context: Context, frames: Frames, length: int) -> list[tuple[int, Hsp]]:
        """Segments of a query of this length and a target with their frames, those of the plus strand first."""
        found = [(frame, hsp) for frame, hsps in frames.items() for hsp in hsps]
        if not context.options.subject_besthit:
            return found
        order = sorted(range(len(found)), key=lambda at: score_order(found[at][1]))
        ranges = [mirrored(hsp.query_start, hsp.query_end, length, frame) for frame, hsp in found]
        kept = best_of_target([ranges[at] for at in order], [found[at][0] < 0 for at in order])
        return [found[at] for at, stays in sorted(zip(order, kept, strict=True)) if stays]


def _by_frame(rows: Any, chunk: int, length: int) -> Frames:
    """Segments of a chunk by frame, in the coordinates of strand and chunk, those of the plus strand first."""
    frames: Frames = {}
    for *_, frame, score, query_pos, target_pos, bases in sorted(rows, key=lambda row: -row[3]):
        start, end = mirrored(query_pos, query_pos + bases, length, frame)
        first = target_pos - chunk
        frames.setdefault(frame, []).append(Hsp(score, start, end, first, first + bases))
    return frames


def best_stretch(hsp: Hsp, query: bytes, target: bytes, matrix: np.ndarray, cutoff: int) -> TracedHsp | None:
    """The best-scoring stretch of a segment, None if it scores below the cutoff.

    query, target: whole strand and whole target, codes with ambiguities. A stretch ends where its running score falls
    below zero; a better later one replaces it, but only one that scored less than ``cutoff`` is given up for nothing.
    """
    running, best, begin, first, last = 0, 0, 0, 0, 0
    for place in range(hsp.query_end - hsp.query_start):
        running += int(matrix[query[hsp.query_start + place], target[hsp.target_start + place]])
        if running < 0:
            running, begin = 0, place + 1
            if best < cutoff:
                best, first, last = 0, begin, begin
        elif running > best:
            best, first, last = running, begin, place + 1
    if best < cutoff:
        return None
    return TracedHsp(best, hsp.query_start + first, hsp.query_start + last, hsp.target_start + first,
                     hsp.target_start + last, script=[[PAIR, last - first]])
