"""``sw-scores`` on the CPU: eight-bit lanes over interleaved targets, the few scores beyond them again in wider."""

import math

import numpy as np
from seqloom.core.context import Context, Scoring
from seqloom.core.distinct import distinct, ranked
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import LOOKUP_ENTRIES
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.karlin_altschul import GappedParameters
from seqloom.plugins.common.lanes import FEW, KIND
from seqloom.plugins.common.residues_cpu import residues_of
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.smith_waterman import all_scores

from .reach import interleaved_bytes, reach_of, usual_piece
from .recurrence_cpu import LANES, Profile, Workers, lane_scores
from .scoring import SmithWatermanScoring
from .seed_reference import SmithWatermanScores, kept_pairs, strands
from .wavefront_cpu import scalar_score

_KEPT_SCORES = 1024
_SLACK = 1 + 1e-5
"""Factor on an E-value within which an estimate doesn't decide; it is good to some 1e-6, as its error function isn't
BLAST's."""


@kernel
def _room(length, deviation):
    reduced = length / deviation
    fits = math.erfc(-reduced / math.sqrt(2.0)) / 2.0
    return length * fits + deviation * 0.3989422804014327 * math.exp(-0.5 * reduced * reduced), fits


@kernel
def _estimate(scores, lengths, query_length, least, database, parameters, evalues):
    """E-values of scores, computed as ``GappedParameters.evalue`` does it; infinite for scores below ``least``.

    What doesn't depend on the target is kept for scores that have been met, which are few.
    """
    cost, lambda_, k, alpha, alpha_v, sigma, plain_alpha, plain_alpha_v = parameters
    met, kept = np.full(_KEPT_SCORES, -1), np.empty((_KEPT_SCORES, 5))
    for n in range(len(scores)):
        raw = scores[n]
        evalues[n] = np.inf
        if raw < least:
            continue
        place = raw % _KEPT_SCORES
        if met[place] != raw:
            shift = alpha * raw + 2 * cost * (plain_alpha - alpha)
            variance = max(2 * alpha_v / lambda_, alpha_v * raw + 2 * cost * (plain_alpha_v - alpha_v))
            covariance = max(2 * sigma / lambda_, sigma * raw + 2 * cost * (plain_alpha_v - sigma))
            deviation = math.sqrt(variance)
            mean, fits = _room(query_length - shift, deviation)
            met[place] = raw
            row = kept[place]
            row[0], row[1], row[2], row[3] = shift, deviation, mean, covariance * fits
            row[4] = k * math.exp(-lambda_ * raw)
        row = kept[place]
        shift, deviation, query_mean, query_part, rate = row[0], row[1], row[2], row[3], row[4]
        target_mean, target_fits = _room(lengths[n] - shift, deviation)
        evalues[n] = (query_mean * target_mean + query_part * target_fits) * rate * (database / lengths[n])


def promising(scoring: SmithWatermanScoring, scores: np.ndarray, query_length: int, target_lengths: np.ndarray,
              least: int, most: int) -> np.ndarray:
    """bool[n]: scores of at least ``least`` that may pass the E-value limit and be among the best ``most``.

    Surely all that do, hardly any other.
    """
    statistics = scoring.statistics
    high = scores >= least
    if not isinstance(statistics, GappedParameters):
        # None at all, or E-values that don't depend on the target.
        different, which = ranked(scores)
        evalues = scoring.evalues(different, query_length, np.ones(len(different), np.int64))
        return high & ~(evalues > scoring.largest_evalue)[which]
    karlin = statistics.karlin
    parameters = np.array([statistics.gap_open + statistics.gap_extend, karlin.lambda_, karlin.k, statistics.alpha,
                           statistics.alpha_v, statistics.sigma, statistics.ungapped_alpha,
                           statistics.ungapped_alpha_v], np.float64)
    evalues = np.empty(len(scores), np.float64)
    _estimate(scores, target_lengths, query_length, least, float(scoring.database_residues), parameters, evalues)
    limit = scoring.largest_evalue
    if len(scores) > most:
        limit = min(limit, float(np.partition(evalues, most - 1)[most - 1]))
    return high & (evalues <= limit * _SLACK)


def exact_scores(profile: Profile, scoring: Scoring, stretches: Stretches, lanes: Index,
                 workers: Workers) -> np.ndarray:
    """i8[k]: best local alignment score of a query with each stretch.

    Args:
        lanes: all stretches interleaved; its order holds their numbers.
    """
    scores = np.zeros(len(stretches), np.int64)
    if not profile.length:
        return scores
    left = lanes["order"]
    for arithmetic in profile.widths:
        if len(left) == 1:  # whose diagonals fill vectors better
            break
        found = lane_scores(profile, arithmetic, lanes, workers)
        scores[lanes["order"]] = found
        left = lanes["order"][found >= arithmetic.ceiling]
        if not len(left):
            return scores
        lanes = stretches.interleaved(left)
    for number in left.tolist():
        workers.check()
        scores[number] = scalar_score(profile.rows, profile.places, stretches[number], scoring.gap_open,
                                      scoring.gap_extend)
    return scores


class SmithWatermanScoresCpu(SmithWatermanScores):
    __doc__ = SmithWatermanScores.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # For all threads: the volume interleaved for many queries; records. For each:
        # rows of h and e in sixteen-bit lanes and column scores; overflowing targets, interleaved once more; profile
        # and rows of single pairs.
        rows = 4 * LANES * shape.longest_query + (1 << 17)
        each = rows + interleaved_bytes(shape) + 4 * (LOOKUP_ENTRIES + 8) * usual_piece(shape) + 48 * shape.targets
        return Footprint(host=interleaved_bytes(shape) + shape.threads * each + 24 * shape.queries * shape.targets)

    def run(self, context: Context, records: Records | None) -> Pairs:
        queries, targets, scoring = context.queries, context.targets, context.scoring
        residues = residues_of(targets.searched())
        everything = np.arange(len(targets))
        wanted = dict.fromkeys(range(len(queries)), everything)
        reach = reach_of(scoring, queries.lengths.tolist())
        shared = None
        if records is None:
            stretches = Stretches.of(targets, everything, reach)
            shared = stretches, _lanes(context, stretches)
        else:
            query_places, target_places = queries.locate(records.query), targets.locate(records.target)
            wanted = {q: distinct(target_places[query_places == q]) for q in distinct(query_places).tolist()}
        # Many queries: one to a thread. Few: all threads at one query, each with a part of the targets.
        cells = len(scoring.frames) * sum(int(queries.lengths[q]) * int(targets.lengths[places].sum())
                                          for q, places in wanted.items())
        workers = Workers(context.threads, context.cancellation.check, lambda done: context.advance(done, cells))
        by_query = len(wanted) >= 2 * context.threads
        context.count("split by query" if by_query else "split by target")

        def pairs(item: tuple[int, np.ndarray]) -> Pairs:
            query, places = item
            part = Stretches.of(targets, places, reach) if shared is None else shared[0]
            lanes = part.grouped(np.arange(len(part))) if shared is None else shared[1]
            return _pairs(context, query, part, lanes, residues, workers.alone() if by_query else workers, note)

        items = list(wanted.items())
        with all_scores.of_unit(context) as note:
            parts = workers.map(pairs, items) if by_query else [pairs(item) for item in items]
        context.count("cells", cells)
        return Pairs.concat(parts) if parts else Pairs.empty()


def _lanes(context: Context, stretches: Stretches) -> Index:
    """All stretches side by side: with columns for many queries, else in groups, of the index that an earlier slot made
    if no target is cut."""
    numbers = np.arange(len(stretches))
    if len(context.queries) > FEW:
        return stretches.interleaved(numbers)
    index = context.indexes.get(KIND)
    if index is not None and index.parameters["lanes"] == LANES and len(stretches) == len(context.targets):
        return index
    return stretches.grouped(numbers)


def _pairs(context: Context, query: int, stretches: Stretches, lanes: Index, residues: np.ndarray,
           workers: Workers, note: all_scores.Note) -> Pairs:
    """Pairs of the query at place ``query`` with the targets of these stretches that may be reported."""
    targets, scoring = context.targets, context.scoring
    best = np.zeros(len(targets), np.int64)
    for strand in strands(context, query):
        workers.check()
        np.maximum.at(best, stretches.owners,
                      exact_scores(Profile(strand, scoring, residues), scoring, stretches, lanes, workers))
    places = distinct(stretches.owners)
    note(query, places, best[places])
    fits = promising(scoring, best[places], int(context.queries.lengths[query]), targets.lengths[places],
                     context.options.min_score, context.options.max_target_seqs)
    return kept_pairs(context, query, places[fits], best[places[fits]])
