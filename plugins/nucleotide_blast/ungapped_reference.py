"""Ungapped extension of word hits, one hit at a time along each diagonal.

The extension is first done approximately, four bases at a time as a two-bit database is stored, and again exactly when
the approximate score is promising. Words shorter than eleven letters are extended exactly at once. A hit inside the
part of its diagonal that an earlier hit has explored is passed over.

BLAST keeps its diagonals in a hash for long queries, where one can lose its state to another; then a region may be
extended twice, which the gapped stage undoes. Here every diagonal has a state of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

import numpy as np
from seqloom.core.context import Context
from seqloom.core.records import Column, Records, Seeds
from seqloom.core.stages import ExtendStage
from seqloom.plugins.nucleotide_blast.index_reference import BASES
from seqloom.plugins.nucleotide_blast.scoring import NucleotideScoring
from seqloom.plugins.nucleotide_blast.seed_reference import CHUNK, CHUNK_COLUMN
from seqloom.plugins.nucleotide_blast.strands import SENTINEL, both_strands, mirrored, strand_start

GROUP = 4
SHORTEST_APPROXIMATE_WORD = 11

WORD_COLUMNS = (
    Column("word_query", "i4", "boundary before the first letter of the word hit, in the direction of query_frame"),
    Column("word_target", "i4", "start of the word hit in the target"),
)


@dataclass(frozen=True)
class Segment:
    """An ungapped segment in strand coordinates: starts, length, raw score."""

    query: int
    target: int
    length: int
    score: int


class Extender:
    """Extends word hits between both strands of one query and one chunk of a target.

    strands: u8, ``both_strands`` of the query. bases: u8 (0..3) of the chunk. Query positions count from the start of
    ``strands``, which has a sentinel between the strands.
    """

    def __init__(self, strands: np.ndarray, bases: np.ndarray, scoring: NucleotideScoring, x_drop: int) -> None:
        assert scoring.matrix is not None
        self.matrix = scoring.matrix.tolist()
        self.x_drop = x_drop
        self.query = strands.tobytes() + bytes([SENTINEL])
        self.target = bases.tobytes()
        self.query_groups = packed(strands).tobytes()
        self.target_groups = packed(bases)[::GROUP].tobytes()
        self.group_scores = group_scores(scoring.reward, scoring.penalty)

    def approximate(self, query: int, target: int, word_end: int) -> Segment:
        """Segment of whole groups around a word hit; groups begin at multiples of four in the target.

        word_end: end of the word in the target; the segment reaches at least as far.
        """
        shift = -target % GROUP
        query, target = query + shift, target + shift
        score, start = 0, query
        gain = 0
        for group in range(1, min(query, target) // GROUP + 1):
            gain += self._group_score(query - GROUP * group, target - GROUP * group)
            if gain > 0:
                score, start, gain = score + gain, query - GROUP * group, 0
            if gain < -self.x_drop:
                break
        end = query + 1
        gain = 0
        for group in range(min(len(self.query) - 1 - query, len(self.target) - target) // GROUP):
            gain += self._group_score(query + GROUP * group, target + GROUP * group)
            if gain > 0:
                score, end, gain = score + gain, query + GROUP * (group + 1), 0
            if gain < -self.x_drop:
                break
        target_start = target - (query - start)
        return Segment(start, target_start, max(word_end - target_start, end - start), score)

    def _group_score(self, query: int, target: int) -> int:
        return self.group_scores[self.query_groups[query] ^ self.target_groups[target // GROUP]]

    def exact(self, query: int, target: int) -> Segment:
        """Best segment around a word hit, base by base: to the left of its start, then from its start to the right."""
        score, start = 0, query
        gain = 0
        for back in range(1, min(query, target) + 1):
            gain += self.matrix[self.query[query - back]][self.target[target - back]]
            if gain > 0:
                score, start, gain = score + gain, query - back, 0
            elif gain < -self.x_drop:
                break
        end, floor = query, -self.x_drop
        gain = 0
        for ahead in range(min(len(self.query) - query, len(self.target) - target)):
            gain += self.matrix[self.query[query + ahead]][self.target[target + ahead]]
            if gain > 0:
                score, end, gain = score + gain, query + ahead + 1, 0
                floor = max(-score, -self.x_drop)
            elif gain < floor:
                break
        return Segment(start, target - (query - start), end - start, score)


def packed(codes: np.ndarray) -> np.ndarray:
    """u8[n]: two bits each of the four letters from every position on; codes above 3 spill over their neighbours.

    The last three positions, where no four letters are left, are filled up with A.
    """
    codes = np.pad(codes.astype(np.uint16), (0, GROUP - 1))
    count = len(codes) - GROUP + 1
    sum_of_bits = codes[:count] << 6 | codes[1 : count + 1] << 4 | codes[2 : count + 2] << 2 | codes[3 : count + 3]
    return (sum_of_bits & 255).astype(np.uint8)


def group_scores(reward: int, penalty: int) -> list[int]:
    """Score of four pairs of bases by the exclusive or of their bits."""
    return [sum(penalty if bits >> shift & 3 else reward for shift in (0, 2, 4, 6)) for bits in range(256)]


class UngappedExtension(ExtendStage):
    """Ungapped extension of word hits; keeps the segments that are worth a gapped extension.

    A segment comes with the word hit that it grew from, where a gapped extension may start.
    """

    name = "nucleotide-ungapped"
    takes = (Seeds,)
    gives = Seeds
    reads = (BASES,)
    columns = (CHUNK_COLUMN, *WORD_COLUMNS)
    scoring = NucleotideScoring
    takes_order = ("query", "target", "chunk", "query_frame", "diagonal", "target_pos")
    gives_order = ("query", "target", "chunk")

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        rows: list[tuple[int, ...]] = []
        bases = context.index(BASES)["bases"]
        names = ("query", "target", "chunk", "query_frame", "query_pos", "target_pos", "shift")
        seeds = zip(*(records.data[name].tolist() for name in names), strict=True)
        for (query, target, chunk), group in groupby(seeds, key=lambda seed: seed[:3]):
            context.cancellation.check()
            strands = both_strands(_searched(context, query))
            x_drop = int(context.scoring.xdrop_ungapped[context.queries.locate(query)])
            low = int(context.targets.offsets[context.targets.locate(target)]) + chunk
            high = min(low + CHUNK, int(context.targets.offsets[context.targets.locate(target) + 1]))
            extender = Extender(strands, bases[low:high], context.scoring, x_drop)
            hits = [seed[3:] for seed in group]
            rows += [
                (query, target, chunk, *row) for row in _extend_all(context, extender, query, chunk, hits)
            ]
        table = np.array(rows, np.int64).reshape(-1, 10)
        columns = (
            "query", "target", "chunk", "query_frame", "query_pos", "target_pos", "length", "score", "word_query",
            "word_target",
        )  # fmt: skip
        data = {name: table[:, place] for place, name in enumerate(columns)}
        data["target_frame"] = np.ones(len(table))
        return Seeds(data, self.columns)


def _searched(context: Context, query: int) -> np.ndarray:
    place = int(context.queries.locate(query))
    return context.queries.searched()[context.queries.offsets[place] : context.queries.offsets[place + 1]]


def _extend_all(
    context: Context, extender: Extender, query: int, chunk: int, hits: list[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Rows (frame, query start, target start, length, score, word query, word target) of the segments that pass."""
    scoring, word = context.scoring, context.options.word_size
    place = int(context.queries.locate(query))
    cutoff, reduced = int(scoring.ungapped_cutoff[place]), int(scoring.reduced_cutoff[place])
    length = (len(extender.query) - 1) // 2
    rows = []
    last: tuple[int, int] | None = None
    explored = 0
    for frame, query_pos, target_pos, shift in hits:
        offset = strand_start(frame, length)
        q = mirrored(query_pos, query_pos + word, length, frame)[0] + offset
        t = target_pos - chunk
        if last != (frame, t - q):
            last, explored = (frame, t - q), 0
        if t - shift < explored:
            continue
        context.count("extended")
        if word < SHORTEST_APPROXIMATE_WORD:
            segment = extender.exact(q, t)
        else:
            segment = extender.approximate(q, t, t + word)
            if segment.score >= reduced:
                segment = extender.exact(q, t)
        if segment.score < cutoff:
            explored = t + word
            continue
        explored = segment.target + segment.length
        start = segment.query - offset
        forward = mirrored(start, start + segment.length, length, frame)[0]
        word_query = mirrored(q - offset, q - offset, length, frame)[0]
        rows.append((frame, forward, segment.target + chunk, segment.length, segment.score, word_query, t + chunk))
    return rows
