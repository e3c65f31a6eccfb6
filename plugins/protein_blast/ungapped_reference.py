"""Two hits on a diagonal, and the ungapped X-drop extension that they trigger (cuBLASTP sections 2.1, 3.4).

Diagonal by diagonal, hit by hit, as in the diagonal-based algorithm 3 of the paper, with the rules of BLAST+ 2.12:

- `last` is the target position of the last hit, `extended` whether it stands for an extension instead.
- After an extension, hits before `last` are ignored; the first one behind it only becomes a first hit.
- Otherwise, at distance d = position − last: d ≥ window makes it a first hit; d < word size (overlapping words) ignores
  it and leaves `last` as it is; anything between extends.
- The second word is extended to the left, and to the right only if the left extension reaches the end of the first
  word. Its score counts in either case. Only an extension that went right sets `extended`.
- With window 0 (one-hit mode) every hit that no earlier extension covered is extended.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.options import option
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.protein_blast.scoring import ProteinBlastScoring, read_as_query
from seqloom.plugins.protein_blast.sort_diagonal_reference import ORDER
from seqloom.plugins.protein_blast.words import hits_footprint

Profile = list[list[int]]
"""Matrix rows of the query's residues: `profile[query_pos][target_code]`."""


class Segment(NamedTuple):
    """An ungapped extension; `stop` is the target position where its right extension ended, −1 if it did not run."""

    score: int
    query_start: int
    target_start: int
    length: int
    stop: int


def extend_left(
    profile: Profile, target: bytes, query_pos: int, target_pos: int, x_drop: int, score: int
) -> tuple[int, int]:
    """Extends leftwards, `query_pos` and `target_pos` being the first residues taken. Returns (best score, length)."""
    best, length = score, 0
    for taken in range(1, min(query_pos, target_pos) + 2):
        score += profile[query_pos - taken + 1][target[target_pos - taken + 1]]
        if score > best:
            best, length = score, taken
        if best - score >= x_drop:
            break
    return best, length


def extend_right(
    profile: Profile, target: bytes, query_pos: int, target_pos: int, x_drop: int, score: int
) -> tuple[int, int, int]:
    """Extends rightwards from a running score. Returns (best score, length, target position where it stopped)."""
    best, length = score, 0
    room = min(len(profile) - query_pos, len(target) - target_pos)
    for taken in range(room):
        score += profile[query_pos + taken][target[target_pos + taken]]
        if score > best:
            best, length = score, taken + 1
        if score <= 0 or best - score >= x_drop:
            return best, length, target_pos + taken
    return best, length, target_pos + room


def extend_two_hit(
    profile: Profile, target: bytes, query_pos: int, target_pos: int, word_size: int, first_end: int, x_drop: int
) -> Segment:
    """Extension of the second of two hits. `first_end`: target position behind the first hit's word."""
    best = total = ahead = 0
    for place in range(word_size):
        total += profile[query_pos + place][target[target_pos + place]]
        if total > best:
            best, ahead = total, place + 1
    query_pos, target_pos = query_pos + ahead, target_pos + ahead
    score, left = extend_left(profile, target, query_pos - 1, target_pos - 1, x_drop, 0)
    right, stop = 0, -1
    if left >= target_pos - first_end:
        score, right, stop = extend_right(profile, target, query_pos, target_pos, x_drop, score)
    return Segment(score, query_pos - left, target_pos - left, left + right, stop)


def extend_one_hit(
    profile: Profile, target: bytes, query_pos: int, target_pos: int, word_size: int, x_drop: int
) -> Segment:
    """Extension of a single hit from the best segment inside its word.

    As in the peer, the right extension of a word without a positive segment starts one residue behind the residue after
    it, and the length counts from where the last sum inside the word began, not the best one.
    """
    best = total = begin = best_begin = 0
    end = word_size + 1
    for place in range(word_size):
        total += profile[query_pos + place][target[target_pos + place]]
        if total > best:
            best, best_begin, end = total, begin, place + 1
        elif total <= 0:
            total, begin = 0, place + 1
    score, left = extend_left(profile, target, query_pos + best_begin - 1, target_pos + best_begin - 1, x_drop, best)
    score, right, stop = extend_right(profile, target, query_pos + end, target_pos + end, x_drop, score)
    start = best_begin - left
    length = max(0, left + (end - begin) + right)
    return Segment(score, query_pos + start, target_pos + start, length, stop)


def diagonal_segments(
    hits: list[tuple[int, int]], profile: Profile, target: bytes, word_size: int, window: int, x_drop: int
) -> Iterator[Segment]:
    """Extensions of the hits (query position, target position) of one diagonal, in order of position."""
    last, extended = -window, False
    for query_pos, target_pos in hits:
        if window == 0:
            if target_pos >= last:
                segment = extend_one_hit(profile, target, query_pos, target_pos, word_size, x_drop)
                last = segment.stop - (word_size - 1)
                yield segment
            continue
        if extended:
            if target_pos >= last:
                last, extended = target_pos, False
            continue
        distance = target_pos - last
        if distance >= window:
            last = target_pos
        elif distance >= word_size:
            segment = extend_two_hit(profile, target, query_pos, target_pos, word_size, last + word_size, x_drop)
            extended = segment.stop >= 0
            last = segment.stop - (word_size - 1) if extended else target_pos
            yield segment


@dataclass(frozen=True)
class UngappedOptions:
    """Where scores come from; no result depends on them."""

    scores: str = option("auto", "read scores from the matrix by both residues, or from a position-specific one "
                         "(pssm), made for every query, by position and residue; auto is pssm for few residues on "
                         "CUDA devices", choices=("auto", "matrix", "pssm"))
    buffering: str = option("auto", "on CUDA devices, scores in shared memory where there is room (on), where that is "
                            "quicker (auto), or never (off)", choices=("auto", "on", "off"))


class TwoHitUngapped(ExtendStage):
    """Ungapped X-drop extension of two hits on a diagonal; keeps segments that reach the query's cutoff."""

    name = "two-hit-ungapped"
    backend = "reference"
    takes = (Seeds,)
    gives = Seeds
    takes_order = ORDER
    gives_order = ("query", "target")
    scoring = ProteinBlastScoring
    Options = UngappedOptions
    options: UngappedOptions
    pssm_bytes: ClassVar[int] = 1200
    """What a query residue takes in a position-specific matrix: a list of 28 numbers, of which few may be shared."""
    pssm_up_to: ClassVar[int] = 0
    """Residues of a batch up to which a position-specific matrix is taken for quicker (``auto``)."""

    def by_position(self, residues: int) -> bool:
        """Whether scores of queries with so many residues, all together, come from a position-specific matrix."""
        return self.options.scores == "pssm" or (self.options.scores == "auto" and residues <= self.pssm_up_to)

    def footprint(self, shape: Shape) -> Footprint:
        hits, own = hits_footprint(shape), self.by_position(shape.query_residues)
        return replace(hits, host=hits.host + self.pssm_bytes * shape.query_residues * own)

    def run(self, context: Context, records: Records) -> Seeds:
        """Segments by query and target; within a pair score down, target start up, length down, query start up."""
        scoring, queries = context.scoring, context.queries
        residues = read_as_query(queries.searched())
        rows = scoring.matrix_rows()
        word_size, window = context.options.word_size, context.options.window()
        found: list[tuple[int, int, int, int, int, int]] = []
        names = ("query", "target", "query_pos", "target_pos")
        query_of, target_of, query_pos, target_pos = (records.data[name].tolist() for name in names)
        prepared: dict[int, tuple[Profile, int, int]] = {}
        targets: dict[int, bytes] = {}
        diagonals = group_starts(records.query, records.target, records.target_pos - records.query_pos).tolist()
        for low, high in pairwise(diagonals):
            query, target = query_of[low], target_of[low]
            context.advance(high - low, len(records))
            if query not in prepared:
                place = int(queries.locate(query))
                span = slice(queries.offsets[place], queries.offsets[place + 1])
                profile = [rows[code] for code in residues[span].tolist()]
                if self.by_position(queries.total_residues):
                    profile = scoring.matrix[residues[span]].tolist()
                prepared[query] = (profile, int(scoring.x_drop_ungapped[place]), scoring.ungapped_cutoff(place))
            if target not in targets:
                targets[target] = context.target(target).tobytes()
            profile, x_drop, cutoff = prepared[query]
            hits = list(zip(query_pos[low:high], target_pos[low:high], strict=True))
            for segment in diagonal_segments(hits, profile, targets[target], word_size, window, x_drop):
                context.counters["extensions"] += 1
                if segment.score >= cutoff:
                    found.append((query, target, *segment[:4]))
        found.sort(key=lambda row: (row[0], row[1], -row[2], row[4], -row[5], row[3]))
        return _seeds(found)


def _seeds(rows: list[tuple[int, int, int, int, int, int]]) -> Seeds:
    names = ("query", "target", "score", "query_pos", "target_pos", "length")
    table = np.array(rows, np.int64).reshape(-1, 6)
    frame = np.ones(len(rows), np.int8)
    data = {name: table[:, place] for place, name in enumerate(names)}
    return Seeds({**data, "query_frame": frame, "target_frame": frame})
