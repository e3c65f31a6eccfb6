"""``sw-scores`` on the CPU: eight-bit lanes over interleaved targets, the few scores beyond them again in wider."""

import math

import numpy as np
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.jit import kernel
from seqloom.core.records import Pairs, Records
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.karlin_altschul import GappedParameters
from seqloom.plugins.common.lanes import KIND, interleaved
from seqloom.plugins.smith_waterman.recurrence_cpu import LANES, Profile, Workers, lane_scores
from seqloom.plugins.smith_waterman.scalar_cpu import scalar_score
from seqloom.plugins.smith_waterman.scoring import SmithWatermanScoring
from seqloom.plugins.smith_waterman.seed_reference import SmithWatermanScores, kept_pairs, strands

_SLACK = 1 + 1e-6
"""Factor on the E-value limit within which an estimate doesn't decide; it is good to some 1e-12."""


@kernel
def _mark_letters(residues, seen):
    for letter in residues:
        seen[letter] = True


def letters_of(residues: np.ndarray) -> np.ndarray:
    """i8[k]: the codes that occur in u8[n] ``residues``, ascending."""
    seen = np.zeros(256, bool)
    _mark_letters(residues, seen)
    return np.flatnonzero(seen)


@kernel
def _room(length, deviation):
    reduced = length / deviation
    fits = math.erfc(-reduced / math.sqrt(2.0)) / 2.0
    return length * fits + deviation * 0.3989422804014327 * math.exp(-0.5 * reduced * reduced), fits


@kernel
def _within(scores, lengths, query_length, least, limit, database, parameters, kept):
    """Mark the scores whose E-value, estimated as ``GappedParameters.evalue`` does it, isn't above ``limit``."""
    cost, lambda_, k, alpha, alpha_v, sigma, plain_alpha, plain_alpha_v = parameters
    for n in range(len(scores)):
        raw = scores[n]
        kept[n] = False
        if raw < least:
            continue
        shift = alpha * raw + 2 * cost * (plain_alpha - alpha)
        variance = max(2 * alpha_v / lambda_, alpha_v * raw + 2 * cost * (plain_alpha_v - alpha_v))
        covariance = max(2 * sigma / lambda_, sigma * raw + 2 * cost * (plain_alpha_v - sigma))
        deviation = math.sqrt(variance)
        query_mean, query_fits = _room(query_length - shift, deviation)
        target_mean, target_fits = _room(lengths[n] - shift, deviation)
        area = query_mean * target_mean + covariance * query_fits * target_fits
        kept[n] = not area * k * math.exp(-lambda_ * raw) * (database / lengths[n]) > limit


def promising(scoring: SmithWatermanScoring, scores: np.ndarray, query_length: int, target_lengths: np.ndarray,
              least: int) -> np.ndarray:
    """bool[n]: scores of at least ``least`` that may pass the E-value limit; surely all that do, hardly any other."""
    statistics = scoring.statistics
    high = scores >= least
    if not isinstance(statistics, GappedParameters):
        # None at all, or E-values that don't depend on the target.
        different, which = np.unique(scores, return_inverse=True)
        evalues = scoring.evalues(different, query_length, np.ones(len(different), np.int64))
        return high & ~(evalues > scoring.largest_evalue)[which]
    karlin = statistics.karlin
    parameters = np.array([statistics.gap_open + statistics.gap_extend, karlin.lambda_, karlin.k, statistics.alpha,
                           statistics.alpha_v, statistics.sigma, statistics.ungapped_alpha,
                           statistics.ungapped_alpha_v], np.float64)
    kept = np.empty(len(scores), bool)
    _within(scores, target_lengths, query_length, least, scoring.largest_evalue * _SLACK,
            float(scoring.database_letters), parameters, kept)
    return kept


def exact_scores(profile: Profile, scoring: SmithWatermanScoring, targets: SequenceBatch, lanes: Index,
                 workers: Workers) -> np.ndarray:
    """i8[k]: best local alignment score of a query with each interleaved target, in the order of ``lanes["order"]``.

    Args:
        targets: the volume that was interleaved.
    """
    order = lanes["order"]
    scores = np.zeros(len(order), np.int64)
    if not profile.length:
        return scores
    left = np.arange(len(order))
    for arithmetic in profile.widths:
        found = lane_scores(profile, arithmetic, lanes, workers)
        scores[left] = found
        left = left[found >= arithmetic.ceiling]
        if not len(left):
            return scores
        # Interleaving keeps the order, which is that of length.
        lanes = interleaved(targets, LANES, order[left])
    residues = targets.searched()
    for place in left.tolist():
        workers.check()
        target = residues[targets.offsets[order[place]] : targets.offsets[order[place] + 1]]
        scores[place] = scalar_score(profile.rows, profile.places, target, scoring.gap_open, scoring.gap_extend)
    return scores


class SmithWatermanScoresCpu(SmithWatermanScores):
    __doc__ = SmithWatermanScores.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # Rows of h and e in sixteen-bit lanes; column scores; 64-bit rows for single pairs; the overflowing targets,
        # interleaved once more (or all of those wanted, where only some pairs are); records of all pairs.
        rows = 4 * LANES * shape.longest_query + (1 << 17)
        again = 2 * (shape.target_letters * 5 // 4 + shape.longest_target * LANES)
        each = rows + again + 32 * shape.longest_target + 48 * shape.targets
        return Footprint(host=shape.threads * each + 24 * shape.queries * shape.targets)

    def run(self, context: Context, records: Records | None) -> Pairs:
        queries, targets, scoring = context.queries, context.targets, context.scoring
        letters = letters_of(targets.searched())
        wanted: dict[int, np.ndarray | None] = dict.fromkeys(range(len(queries)))
        volume = None
        if records is None:
            volume = _volume_lanes(context)
        else:
            query_places, target_places = queries.locate(records.query), targets.locate(records.target)
            wanted = {q: np.unique(target_places[query_places == q]) for q in np.unique(query_places).tolist()}
        # Many queries: one to a thread. Few: all threads at one query, each with a part of the targets.
        workers = Workers(context.threads, context.cancellation.check)
        by_query = len(wanted) >= 2 * context.threads
        context.count("split by query" if by_query else "split by target")

        def pairs(item: tuple[int, np.ndarray | None]) -> Pairs:
            lanes = interleaved(targets, LANES, item[1]) if volume is None else volume
            return _pairs(context, item[0], lanes, letters, workers.alone() if by_query else workers)

        items = list(wanted.items())
        parts = workers.map(pairs, items) if by_query else [pairs(item) for item in items]
        both = len(scoring.frames)
        context.count("cells", both * sum(int(queries.lengths[q]) * int(
            (targets.lengths if places is None else targets.lengths[places]).sum()) for q, places in items))
        return Pairs.concat(parts) if parts else Pairs.empty()


def _volume_lanes(context: Context) -> Index:
    """The interleaved volume that an earlier slot made, or one made now."""
    for index in context.indexes.values():
        if index.kind == KIND and index.parameters["lanes"] == LANES:
            return index
    return interleaved(context.targets)


def _pairs(context: Context, query: int, lanes: Index, letters: np.ndarray, workers: Workers) -> Pairs:
    """Pairs of the query at place ``query`` with interleaved targets that may be reported."""
    queries, targets, scoring, order = context.queries, context.targets, context.scoring, lanes["order"]
    best = np.zeros(len(targets), np.int64)
    for strand in strands(context, query):
        workers.check()
        scores = exact_scores(Profile(strand, scoring, letters), scoring, targets, lanes, workers)
        best[order] = np.maximum(best[order], scores)
    places = np.sort(order)
    fits = promising(scoring, best[places], int(queries.lengths[query]), targets.lengths[places],
                     context.options.min_score)
    return kept_pairs(context, query, places[fits], best[places[fits]])
