"""Preliminary gapped extension: scores and ends of gapped alignments, without their paths.

Segments are taken best first. One that lies in a finished alignment and on nearly the same diagonal is passed over.
Two aligners: X-drop dynamic programming (blastn; Zhang, Berman & Miller 1998) and greedy (megablast; Zhang et al.
2000).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.errors import OptionError
from seqloom.core.options import option
from seqloom.core.records import Alignments, Records, Seeds
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.common.culling import Hsp, SavedHsps, purge_common_endpoints
from seqloom.plugins.common.xdrop import extend_score, two_sided
from seqloom.plugins.nucleotide_blast.chunks import merge_chunks
from seqloom.plugins.nucleotide_blast.greedy import GreedyAligner
from seqloom.plugins.nucleotide_blast.index_reference import BASES
from seqloom.plugins.nucleotide_blast.pieces import CHUNK, GROUP, pieces_of
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions, NucleotideScoring
from seqloom.plugins.nucleotide_blast.seed_reference import CHUNK_COLUMN
from seqloom.plugins.nucleotide_blast.strands import both_strands, mirrored, strand_start
from seqloom.plugins.nucleotide_blast.ungapped_reference import WORD_COLUMNS, searched_query

START_ROOM, START_SHIFT = 8, 3
"""Where the segment reaches at least START_ROOM bases beyond the start of its word hit, START_SHIFT are skipped."""


@dataclass(frozen=True)
class GappedOptions:
    """Options of gapped extension and traceback."""

    diagonal_separation: int = option(
        50, "diagonals from which on a segment inside a finished alignment is extended all the same", minimum=0
    )


@dataclass(frozen=True)
class Segment:
    """An ungapped segment with its word hit, in the coordinates of one strand and one chunk."""

    query: int
    target: int
    length: int
    score: int
    word_query: int
    word_target: int

    def as_hsp(self) -> Hsp:
        return Hsp(self.score, self.query, self.query + self.length, self.target, self.target + self.length)


Extend = Callable[[Segment], Hsp]


def strand_codes(codes: np.ndarray, frame: int) -> bytes:
    """The strand of a query (u8 codes) that a frame names."""
    start = strand_start(frame, len(codes))
    return both_strands(codes)[start : start + len(codes)].tobytes()


def extends_by_xdrop(options: Any) -> bool:
    """Whether alignments are extended with gaps, by X-drop."""
    return not (isinstance(options, NucleotideBlastOptions) and (options.greedy or options.ungapped))


def extends_greedily(options: Any) -> bool:
    """Whether alignments are extended with gaps, greedily."""
    return not (isinstance(options, NucleotideBlastOptions) and (options.ungapped or not options.greedy))


class GappedExtension(ExtendStage):
    """What both preliminary gapped extensions share. Subclasses give the aligner of one strand and chunk."""

    Options = GappedOptions
    preliminary = True
    takes = (Seeds,)
    gives = Alignments
    reads = (BASES,)
    columns = (CHUNK_COLUMN, *WORD_COLUMNS)
    scoring = NucleotideScoring
    uses = ("subject_besthit",)
    takes_order = ("query", "target", "chunk")
    gives_order = ("query", "target")

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=4 * min(CHUNK, shape.longest_target))

    @abstractmethod
    def aligner(self, scoring: NucleotideScoring, x_drop: int, query: bytes, target: bytes) -> Extend:
        """The function that extends a segment between this strand and this chunk with this X-drop."""

    def run(self, context: Context, records: Records) -> Alignments:
        assert isinstance(records, Seeds)
        rows: list[tuple[int, ...]] = []
        for (query, target), chunks in _by_pair(records):
            context.advance(sum(len(segments) for _, segments in chunks), len(records))
            place = int(context.queries.locate(query))
            length = int(context.queries.lengths[place])
            found = merge_chunks(
                [(chunk, self._chunk(context, query, target, chunk, segments)) for chunk, segments in chunks],
                best_of=length if context.options.subject_besthit else None,
            )
            for frame, hsps in found.items():
                for hsp in hsps:
                    if context.scoring.evalue(hsp.score, place, frame) <= context.options.evalue:
                        rows.append((query, target, *_forward(hsp, length, frame)))
        return _alignments(rows)

    def _chunk(
        self, context: Context, query: int, target: int, chunk: int, segments: list[tuple[int, ...]]
    ) -> dict[int, list[Hsp]]:
        """Alignments of one chunk by frame, in chunk coordinates."""
        codes = searched_query(context, query)
        scoring = context.scoring.query(int(context.queries.locate(query)))
        offsets = context.targets.offsets
        place = int(context.targets.locate(target))
        low = int(offsets[place]) + chunk
        bases = context.index(BASES)["bases"][low : int(pieces_of(context).ends(low))].tobytes()
        found = {}
        for frame in sorted({row[0] for row in segments}, reverse=True):
            strand = [_strand_segment(row, len(codes), chunk) for row in segments if row[0] == frame]
            strand.sort(key=lambda s: (-s.score, s.target, -s.length, s.query))
            align = self.aligner(context.scoring, scoring.xdrop_gapped, strand_codes(codes, frame), bases)
            cutoff = scoring.strand(frame).cutoff
            found[frame] = purge_common_endpoints(self._strand(context, strand, align, cutoff))
        return found

    def _strand(self, context: Context, segments: list[Segment], align: Extend, cutoff: int) -> Iterator[Hsp]:
        saved = SavedHsps(self.options.diagonal_separation)
        for segment in segments:
            if saved.contains(segment.as_hsp()):
                continue
            context.count("extended")
            hsp = align(segment)
            if hsp.score >= cutoff:
                saved.add(hsp)
                yield hsp


class XDropExtension(GappedExtension):
    """Preliminary gapped extension by X-drop dynamic programming (blastn)."""

    name = "nucleotide-xdrop"
    applies = staticmethod(extends_by_xdrop)

    def aligner(self, scoring: NucleotideScoring, x_drop: int, query: bytes, target: bytes) -> Extend:
        assert scoring.matrix is not None
        refuse_linear(scoring)
        matrix = scoring.matrix.tolist()

        def extend(segment: Segment) -> Hsp:
            q, t = segment.word_query, segment.word_target
            if segment.target + segment.length >= t + START_ROOM:
                q, t = q + START_SHIFT, t + START_SHIFT
            split = GROUP - t % GROUP
            if q + split > len(query) or t + split > len(target):
                split -= GROUP
            score, target_start, target_end, query_start, query_end = _windowed(
                scoring, matrix, query, target, max(0, q + split), max(0, t + split), min(x_drop, segment.score)
            )
            return Hsp(score, query_start, query_end, target_start, target_end, q, t)

        return extend


def refuse_linear(scoring: NucleotideScoring) -> None:
    """X-drop extension is for affine gap costs."""
    if scoring.linear_gaps:
        raise OptionError("X-drop extension needs gap costs: give --gapopen and --gapextend, such as 5 and 2")


def reach(scoring: NucleotideScoring, bases: Any, x_drop: int) -> Any:
    """How many bases of one sequence an alignment with so many bases of the other (an integer, or some) can take in.

    Gap bases must be paid for by matches and the X-drop. (In targets of 90,000 bases and more the peer looks no
    further than 3,000 bases beyond the query's reach.)
    """
    return bases + (scoring.reward * bases + x_drop) // max(1, scoring.gap_extend) + 1


def _windowed(
    scoring: NucleotideScoring, matrix: Any, query: bytes, target: bytes, q: int, t: int, x_drop: int
) -> tuple[int, int, int, int, int]:
    """``two_sided`` with rows from the target, within the part of the target that can matter."""
    x_drop = max(x_drop, scoring.gap_open + scoring.gap_extend)
    low = max(0, t - reach(scoring, q, x_drop))
    high = min(len(target), t + reach(scoring, len(query) - q, x_drop))
    score, target_start, target_end, query_start, query_end = two_sided(
        extend_score, target[low:high], query, t - low, q, matrix, scoring.gap_open, scoring.gap_extend, x_drop
    )
    return score, target_start + low, target_end + low, query_start, query_end


class GreedyExtension(GappedExtension):
    """Preliminary gapped extension by greedy alignment with linear gap costs (megablast)."""

    name = "nucleotide-greedy"
    applies = staticmethod(extends_greedily)

    def aligner(self, scoring: NucleotideScoring, x_drop: int, query: bytes, target: bytes) -> Extend:
        refuse_affine(scoring)
        aligner = GreedyAligner(query, target, scoring.reward, scoring.penalty, x_drop)

        def extend(segment: Segment) -> Hsp:
            middle = segment.length // 2
            found = aligner.align(segment.query + middle, segment.target + middle)
            return Hsp(
                found.score, found.query_start, found.query_end, found.target_start, found.target_end,
                found.anchor_query, found.anchor_target,
            )  # fmt: skip

        return extend


def refuse_affine(scoring: NucleotideScoring) -> None:
    """The greedy aligner here knows linear gap costs only; BLAST's has an affine variant."""
    if not scoring.linear_gaps:
        raise OptionError("greedy alignment has linear gap costs: leave --gapopen and --gapextend at 0, or give "
                          "--no-greedy")


_SEGMENT = ("query_frame", "query_pos", "target_pos", "length", "score", "word_query", "word_target")


def _by_pair(seeds: Seeds) -> Iterator[tuple[tuple[int, int], list[tuple[int, list[tuple[int, ...]]]]]]:
    """Segments of each query and target, chunk by chunk."""
    names = ("query", "target", "chunk", *_SEGMENT)
    rows = zip(*(seeds.data[name].tolist() for name in names), strict=True)
    for pair, group in groupby(rows, key=lambda row: row[:2]):
        yield pair, [(chunk, [row[3:] for row in part]) for chunk, part in groupby(group, key=lambda row: row[2])]


def _strand_segment(row: tuple[int, ...], length: int, chunk: int) -> Segment:
    """A segment from record columns (``_SEGMENT``) to the coordinates of its strand and chunk."""
    frame, query_pos, target_pos, bases, score, word_query, word_target = row
    start = mirrored(query_pos, query_pos + bases, length, frame)[0]
    word = mirrored(word_query, word_query, length, frame)[0]
    return Segment(start, target_pos - chunk, bases, score, word, word_target - chunk)


def _forward(hsp: Hsp, length: int, frame: int) -> tuple[int, ...]:
    """Record columns of an alignment: score, coordinates, frames, anchor."""
    query_start, query_end = mirrored(hsp.query_start, hsp.query_end, length, frame)
    anchor = mirrored(hsp.anchor_query, hsp.anchor_query, length, frame)[0]
    return (hsp.score, query_start, query_end, hsp.target_start, hsp.target_end, frame, 1, anchor, hsp.anchor_target)


def _alignments(rows: list[tuple[int, ...]]) -> Alignments:
    names = (
        "query", "target", "score", "query_start", "query_end", "target_start", "target_end", "query_frame",
        "target_frame", "anchor_query", "anchor_target",
    )  # fmt: skip
    table = np.array(rows, np.int64).reshape(-1, len(names))
    return Alignments({name: table[:, place] for place, name in enumerate(names)})
