"""Best alignment of a pair by the whole dynamic programme, with its edit path.

Several alignments may have the best score. The one reported ends at the smallest query position, then at the smallest
target position. Traced back from its end, it pairs two residues where that is as good as any gap, else sets query
residues against a gap where that is as good, else target residues; a gap ends (seen from behind) as soon as that costs
nothing. The alignment begins where the score first falls to 0, seen from behind: it has no prefix that scores 0.
"""

from typing import ClassVar

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context, Scoring
from seqloom.core.distinct import distinct
from seqloom.core.records import DELETE, INSERT, MATCH, MISMATCH, Alignments, Hits, Ragged, Records
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.common.edit_path import count_path, run_lengths

from .recurrence_reference import Packed, packed_chunks
from .scoring import SmithWatermanScoring

_ALIVE, _PAIRS, _INSERTS, _INSERT_OPENS, _DELETE_OPENS = 1, 2, 4, 8, 16
"""Bits of a cell: above 0; reached by a pair of residues; by query residues against a gap; the gap in query or in
target residues that ends here has one residue."""
_MOST_CELLS = 1 << 26
_USUAL_REACH = 16  # target residues per query residue; with BLOSUM62 and 11/1 it's 12


class Traced(NamedTuple):
    """An alignment in the coordinates of the strings aligned, 0-based half-open; ``path`` is run-length."""

    score: int
    query_start: int
    query_end: int
    target_start: int
    target_end: int
    path: list[int]


class SmithWatermanTraceback(ExtendStage):
    """The best alignment of each hit, by the full dynamic programme with affine gaps; nothing with ``score_only``.

    Among equally good ones the choice is fixed (see the module's first lines); of two strands, plus wins a tie.

    Source: Munekawa, Ino & Hagihara 2010, section 4 (backtracing step); Gotoh 1982.
    """

    name: ClassVar[str] = "sw-traceback"
    takes: ClassVar[tuple[type[Records] | None, ...]] = (Hits,)
    gives: ClassVar[type[Records]] = Hits
    gives_order: ClassVar[tuple[str, ...] | None] = None
    scoring: ClassVar[type[Scoring]] = SmithWatermanScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint() if shape.options and shape.options.score_only else self.tracing_footprint(shape)

    def tracing_footprint(self, shape: Shape) -> Footprint:
        """What it takes to trace alignments."""
        cells = shape.longest_query * min(shape.longest_target + 1, 2 * _USUAL_REACH * shape.longest_query)
        return Footprint(host=2 * max(_MOST_CELLS, cells) + 8 * 48 * shape.longest_target)

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        if context.options.score_only:
            return records
        parts = [_alignments(context, records, query) for query in distinct(records.query).tolist()]
        return records.with_alignments(Alignments.concat(parts) if parts else Alignments.empty())


def _alignments(context: Context, hits: Hits, query: int) -> Alignments:
    """Best alignments of one query's hits, in their order."""
    queries, targets, scoring = context.queries, context.targets, context.scoring
    place = int(queries.locate(query))
    residues = queries.searched()[queries.offsets[place] : queries.offsets[place + 1]]
    target_residues = targets.searched()
    numbers = hits.target[hits.query == query]
    wanted = [target_residues[targets.offsets[t] : targets.offsets[t + 1]] for t in targets.locate(numbers)]
    best: list[tuple[int, Traced]] = []
    for frame in scoring.frames:
        strand = residues if frame > 0 else queries.alphabet.complement[residues][::-1]
        windows = _windows(context, strand, wanted)
        parts = [target[start:end] for target, (start, end) in zip(wanted, windows, strict=True)]
        traced = []
        for _, packed in packed_chunks(parts, scoring, _MOST_CELLS // max(1, len(residues))):
            context.cancellation.check()
            traced += trace(strand, packed)
        found = [(frame, t._replace(target_start=t.target_start + start, target_end=t.target_end + start))
                 for t, (start, _) in zip(traced, windows, strict=True)]
        best = [max(pair, key=lambda f: f[1].score) for pair in zip(best, found, strict=True)] if best else found
    return _records(context, query, residues, numbers, wanted, best)


def _windows(context: Context, query: np.ndarray, targets: list[np.ndarray]) -> list[tuple[int, int]]:
    """Stretch of each target that decides over its best alignment: all of it, or what reaches to the end of the best.

    An alignment of m query residues scores at most m times the best residue score, so that its gaps take a bounded
    number of target residues. Twice that before the end holds the alignment and all that its choice depends on.
    """
    scoring = context.scoring
    windows = [(0, len(target)) for target in targets]
    if not scoring.gap_extend:
        return windows
    reach = len(query) + len(query) * max(0, int(scoring.matrix.max())) // scoring.gap_extend
    for n, target in enumerate(targets):
        if len(target) > 2 * reach:
            context.cancellation.check()
            (_, _, last), = best_ends(query, Packed.of([target], scoring))
            windows[n] = (max(0, last + 1 - 2 * reach), last + 1)
    return windows


def _records(context: Context, query: int, residues: np.ndarray, numbers: np.ndarray, wanted: list[np.ndarray],
             best: list[tuple[int, Traced]]) -> Alignments:
    """Alignments as records: forward coordinates, counts, statistics."""
    scoring, matrix = context.scoring, context.scoring.matrix.tolist()
    frames = np.array([frame for frame, _ in best], np.int64)
    traced = [t for _, t in best]
    reverse = context.queries.alphabet.complement[residues][::-1] if -1 in frames else residues
    counts = [count_path(t.path, (residues if frame > 0 else reverse)[t.query_start : t.query_end].tobytes(),
                         target[t.target_start : t.target_end].tobytes(), matrix)
              for (frame, t), target in zip(best, wanted, strict=True)]
    starts, ends = np.array([(t.query_start, t.query_end) for t in traced], np.int64).reshape(-1, 2).T
    scores = np.array([t.score for t in traced], np.int64)
    lengths = np.array([len(w) for w in wanted], np.int64)
    return Alignments({
        "query": np.full(len(best), query), "target": numbers, "score": scores,
        "query_start": np.where(frames > 0, starts, len(residues) - ends),
        "query_end": np.where(frames > 0, ends, len(residues) - starts),
        "target_start": [t.target_start for t in traced], "target_end": [t.target_end for t in traced],
        "query_frame": frames, "target_frame": np.ones(len(best)),
        "bit_score": scoring.bit_scores(scores), "evalue": scoring.evalues(scores, len(residues), lengths),
        **{name: [getattr(c, name) for c in counts]
           for name in ("length", "identities", "positives", "mismatches", "gap_opens", "gaps")},
        "path": Ragged.of([t.path for t in traced]),
    })


def best_ends(query: np.ndarray, packed: Packed) -> list[tuple[int, int, int]]:
    """Per packed target: best score, and query and target position (0-based) of the last pair; (0, −1, −1) if none."""
    best = _Best(packed)
    for i, row in enumerate(packed.rows(query)):
        best.see(i, row.h)
    return best.ends(packed)


class _Best:
    """Best score of each column, and the first row that has it."""

    def __init__(self, packed: Packed) -> None:
        self.score = np.zeros(len(packed.residues), packed.ramp.dtype)
        self.row = np.zeros(len(packed.residues), np.int64)

    def see(self, i: int, h: np.ndarray) -> None:
        better = np.flatnonzero(h > self.score)
        self.score[better] = h[better]
        self.row[better] = i

    def ends(self, packed: Packed) -> list[tuple[int, int, int]]:
        """As ``best_ends``: the smallest query position, then the smallest target position that has the best score."""
        found = []
        for start, length in zip(packed.starts.tolist(), packed.lengths.tolist(), strict=True):
            mine = slice(start, start + length)
            score = int(self.score[mine].max(initial=0))
            columns = np.flatnonzero(self.score[mine] == score)
            column = int(columns[np.argmin(self.row[mine][columns])]) if score else -1
            found.append((score, int(self.row[mine][column]) if score else -1, column))
        return found


def trace(query: np.ndarray, packed: Packed) -> list[Traced]:
    """Best alignment of u8[m] ``query`` with each packed target; an empty one where nothing scores above 0."""
    first = packed.scoring.gap_open + packed.scoring.gap_extend
    columns = len(packed.residues)
    cells = np.empty((len(query), columns), np.uint8)
    best = _Best(packed)
    for i, row in enumerate(packed.rows(query)):
        bits = cells[i]
        bits[:] = (row.h > 0) * np.uint8(_ALIVE)
        bits |= (row.h == row.diagonal) * np.uint8(_PAIRS)
        bits |= (row.h == row.f) * np.uint8(_INSERTS)
        bits |= (row.f == row.above - first) * np.uint8(_INSERT_OPENS)
        bits[1:] |= (row.e[1:] == row.h[:-1] - first) * np.uint8(_DELETE_OPENS)
        best.see(i, row.h)
    traced = []
    for start, length, (score, i, j) in zip(packed.starts.tolist(), packed.lengths.tolist(), best.ends(packed),
                                            strict=True):
        if not score:
            traced.append(Traced(0, 0, 0, 0, 0, []))
            continue
        mine = slice(start - 1, start + length)
        table = np.ascontiguousarray(cells[:, mine]).tobytes()
        traced.append(_walk(table, length + 1, i, j + 1, score, query, packed.residues[mine]))
    return traced


def _walk(table: bytes, width: int, i: int, j: int, score: int, query: np.ndarray, target: np.ndarray) -> Traced:
    """Follow the cells back from row ``i`` and column ``j``; column 0 is the separator before the target."""
    query_end, target_end = i + 1, j
    operations = []
    gap = 0
    while i >= 0:
        cell = table[i * width + j]
        if not gap:
            if not cell & _ALIVE:
                break
            if cell & _PAIRS:
                operations.append(MATCH if query[i] == target[j] else MISMATCH)
                i, j = i - 1, j - 1
                continue
            gap = INSERT if cell & _INSERTS else DELETE
        operations.append(gap)
        if gap == INSERT:
            i -= 1
            gap = 0 if cell & _INSERT_OPENS else gap
        else:
            j -= 1
            gap = 0 if cell & _DELETE_OPENS else gap
    return Traced(score, i + 1, query_end, j, target_end, run_lengths(reversed(operations)))
