"""``sw-traceback`` on the CPU: targets of a query side by side in lanes; those alone, or too large, one by one."""

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct, ranked
from seqloom.core.kernels.jit import kernel
from seqloom.core.records import DELETE, INSERT, MATCH, Alignments, Hits, Ragged, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.stretches_cpu import Stretches

from .extend_reference import SmithWatermanTraceback
from .reach import interleaved_bytes, reach_of, usual_piece
from .recurrence_cpu import LANES, Profile, Workers
from .seed_cpu import exact_scores
from .seed_reference import strands
from .trace_cpu import MOST_BYTES, round_bytes, trace_bytes, trace_lanes
from .wavefront_cpu import scalar_bytes, scalar_trace

SCORE, QUERY_START, QUERY_END, TARGET_START, TARGET_END, SIMILAR = range(6)
"""Columns of an alignment as it comes from the kernels."""


class SmithWatermanTracebackCpu(SmithWatermanTraceback):
    __doc__ = SmithWatermanTraceback.__doc__
    backend = "cpu"

    def tracing_footprint(self, shape: Shape) -> Footprint:
        longest = usual_piece(shape)
        alone, together = (f(shape.longest_query, longest) for f in (scalar_bytes, round_bytes))
        each = max(alone, together) + 2 * interleaved_bytes(shape) + 4 * LANES * shape.longest_query + (1 << 20)
        return Footprint(host=min(shape.threads, max(1, shape.queries)) * each)

    def run(self, context: Context, records: Records) -> Hits:
        assert isinstance(records, Hits)
        if context.options.score_only:
            return records
        workers = Workers(context.threads, context.cancellation.check)
        queries = distinct(records.query).tolist()

        def of_query(query: int) -> Alignments:
            found = self._alignments(context, records, query, workers.alone())
            context.advance(1, len(queries))
            return found

        parts = workers.map(of_query, queries)
        return records.with_alignments(Alignments.concat(parts) if parts else Alignments.empty())

    def best_parts(self, context: Context, directions: list[np.ndarray], profiles: list[Profile],
                   stretches: Stretches, said: np.ndarray | None,
                   workers: Workers) -> tuple[np.ndarray, list[Stretches]]:
        """i8[strands, k] best scores of each strand of a query with each stretch, and where to look for alignments.

        That is for each strand the stretches themselves, or parts of them that hold all best alignments which end
        where the first of them does; of those that don't score most of their target, anything.

        said: scores that may be taken for the best ones, as it will be seen whether they are.
        """
        if said is not None:
            return said, [stretches]
        lanes = stretches.interleaved(np.arange(len(stretches)))
        scores = [exact_scores(profile, context.scoring, stretches, lanes, workers) for profile in profiles]
        return np.stack(scores), [stretches] * len(profiles)

    def _alignments(self, context: Context, hits: Hits, query: int, workers: Workers) -> Alignments:
        """Best alignments of one query's hits, in their order."""
        queries, targets, scoring = context.queries, context.targets, context.scoring
        place = int(queries.locate(query))
        mine = hits.query == query
        numbers = hits.target[mine]
        places = targets.locate(numbers)
        wanted, back = ranked(places)
        stretches = Stretches.of(targets, wanted, reach_of(scoring, [int(queries.lengths[place])]))
        directions = strands(context, place)
        residues = stretches.occurring()
        profiles = [Profile(strand, scoring, residues) for strand in directions]
        said = np.zeros(len(wanted), np.int64)
        said[back] = hits.score[mine]
        found = None
        if len(directions) == 1 and len(stretches) == len(wanted) and (said > 0).all():
            found = self._traced(context, directions, profiles, stretches, wanted, said[None], workers)
        if found is None:
            found = self._traced(context, directions, profiles, stretches, wanted, None, workers)
        assert found is not None
        chosen, rows, paths = found
        return _records(context, query, profiles[0].length, numbers, places, np.array(scoring.frames)[chosen[back]],
                        rows[back], paths.take(back))

    def _traced(self, context: Context, directions: list[np.ndarray], profiles: list[Profile], stretches: Stretches,
                wanted: np.ndarray, said: np.ndarray | None,
                workers: Workers) -> tuple[np.ndarray, np.ndarray, Ragged] | None:
        """Of each target, at places i8[k] ``wanted``, the strand of its best alignment, that one's numbers, its path.

        ``stretches`` are of these targets. None if the scores that hits said aren't the best ones.
        """
        scores, parts = self.best_parts(context, directions, profiles, stretches, said, workers)
        best = np.maximum.reduceat(scores, np.searchsorted(stretches.owners, wanted), axis=1)
        chosen = best.argmax(axis=0)  # of equal scores the first
        # Of a target that is cut, all pieces with its best score are traced; the earliest end of them is the target's.
        owner = np.searchsorted(wanted, stretches.owners)
        rows = np.zeros((len(stretches), 6), np.int64)
        paths, at, count = [Ragged.of([()])], np.zeros(len(stretches), np.int64), 1  # the first of what isn't traced
        candidate = np.zeros(len(stretches), bool)
        for n, (strand, profile) in enumerate(zip(directions, profiles, strict=True)):
            mine = np.flatnonzero((chosen[owner] == n) & (scores[n] == best[n, owner]) & (scores[n] > 0))
            candidate[mine] = True
            traced = _trace(context, profile, np.ascontiguousarray(strand), parts[n], mine, scores[n])
            if traced is None:
                return None
            for some, found, path in traced:
                rows[some], at[some] = found, np.arange(count, count + len(some))
                paths.append(path)
                count += len(some)
            rows[mine, TARGET_START] += parts[n].starts[mine]
            rows[mine, TARGET_END] += parts[n].starts[mine]
        order = np.lexsort([rows[:, TARGET_END], rows[:, QUERY_END], ~candidate, owner])
        picked = order[np.searchsorted(owner, np.arange(len(wanted)))]
        return chosen, rows[picked], Ragged.concat(paths).take(at[picked])


def _trace(context: Context, profile: Profile, strand: np.ndarray, stretches: Stretches, mine: np.ndarray,
           scores: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, Ragged]] | None:
    """Alignments of ``mine``, numbers of stretches: some of these at a time, their rows and paths.

    None if the best scores aren't ``scores[mine]``.
    """
    scoring = context.scoring
    traced = []
    left = mine[np.argsort(-stretches.lengths[mine], kind="stable")]
    for arithmetic in profile.widths:
        fits = (scores[left] < arithmetic.ceiling) & (trace_bytes(len(strand), stretches.lengths[left]) <= MOST_BYTES)
        if fits.sum() == 1:  # whose diagonals fill vectors better
            continue
        now, left = left[fits], left[~fits]
        if len(now):
            found = trace_lanes(profile, arithmetic, stretches, now, strand, scores[now], scoring.gap_open,
                                scoring.gap_extend, context.cancellation.check)
            if found is None:
                return None
            traced.append((now, *found))
    for n in left.tolist():
        context.cancellation.check()
        *row, path = scalar_trace(profile.rows, profile.places, strand, stretches[n], scoring.gap_open,
                                  scoring.gap_extend)
        traced.append((np.array([n]), np.array([row]), Ragged.of([path])))
    return traced if all((rows[:, SCORE] == scores[some]).all() for some, rows, _ in traced) else None


@kernel
def _count(offsets, paths, counts):
    """Per path: columns by operation (insert, delete, match, mismatch) and gap runs."""
    for n in range(len(offsets) - 1):
        for k in range(offsets[n], offsets[n + 1]):
            length, operation = np.int64(paths[k] >> 4), np.int64(paths[k] & 15)
            if operation == INSERT:
                counts[n, 0] += length
            elif operation == DELETE:
                counts[n, 1] += length
            elif operation == MATCH:
                counts[n, 2] += length
            else:
                counts[n, 3] += length
            if operation in (INSERT, DELETE):
                counts[n, 4] += 1


def _records(context: Context, query: int, length: int, numbers: np.ndarray, places: np.ndarray, frames: np.ndarray,
             rows: np.ndarray, paths: Ragged) -> Alignments:
    """Alignments as records: forward coordinates, counts, statistics."""
    scoring = context.scoring
    counts = np.zeros((len(rows), 5), np.int64)
    _count(paths.offsets, paths.values, counts)
    inserted, deleted, equal, unequal, opens = counts.T
    starts, ends, scores = rows[:, QUERY_START], rows[:, QUERY_END], rows[:, SCORE]
    return Alignments({
        "query": np.full(len(rows), query), "target": numbers, "score": scores,
        "query_start": np.where(frames > 0, starts, length - ends),
        "query_end": np.where(frames > 0, ends, length - starts),
        "target_start": rows[:, TARGET_START], "target_end": rows[:, TARGET_END],
        "query_frame": frames, "target_frame": np.ones(len(rows)),
        "bit_score": scoring.bit_scores(scores),
        "evalue": scoring.evalues(scores, length, context.targets.lengths[places]),
        "length": inserted + deleted + equal + unequal, "identities": equal, "positives": equal + rows[:, SIMILAR],
        "mismatches": unequal, "gap_opens": opens, "gaps": inserted + deleted, "path": paths,
    })
