"""``sw-scores`` on CUDA devices: all targets scored there, those that may be reported picked out there.

Several devices share the work: many queries by query, each device with all targets; few, or those of which one is as
long as many, by target. Which it was is counted with the run (Munekawa, Ino & Hagihara 2010, section 6.3).
"""

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import ascending, device_memory, on_devices, prepare_devices
from seqloom.plugins.common.stretches_cpu import LEAST_PIECE, Stretches
from seqloom.plugins.common.workspace_cuda import WorkSize
from seqloom.plugins.smith_waterman import all_scores

from .reach import reach_of
from .scoring import SmithWatermanScoring
from .seed_cpu import promising
from .seed_reference import SmithWatermanScores, kept_pairs, strands
from .targets_cuda import ScoredTargets, ScoreRequest, on_device_targets, working_bytes

_LADDER = 1.125
_UNEVEN = 1.5
"""Residues of queries that the busiest device may have, as times of its share, for a split by query; queries of one
length never make it more."""


@dataclass(frozen=True)
class Share:
    """What one device does: some queries, by place in the batch, with some stretches, by number."""

    device: int
    queries: Sequence[int]
    stretches: np.ndarray


def dealt(queries: Sequence[int], lengths: np.ndarray, devices: int) -> list[list[int]]:
    """Queries for each device, longest first to the one that has the fewest residues, so that all end about together.

    Args:
        queries: places in the batch. lengths: i8, of all queries of it.
    """
    loads, hands = [0] * devices, [[] for _ in range(devices)]  # type: tuple[list[int], list[list[int]]]
    for query in sorted(queries, key=lambda query: -int(lengths[query])):
        device = loads.index(min(loads))
        loads[device] += int(lengths[query])
        hands[device].append(query)
    return [sorted(hand) for hand in hands]


def _alike(queries: Sequence[int], lengths: np.ndarray, devices: int) -> bool:
    """Whether all devices have the same targets, each with queries of its own, and none much more than the others."""
    if devices == 1 or len(queries) < 2 * devices:
        return devices == 1
    busiest = max(int(lengths[hand].sum()) for hand in dealt(queries, lengths, devices))
    return busiest * devices <= _UNEVEN * int(lengths[list(queries)].sum())


def shares(queries: Sequence[int], lengths: np.ndarray, stretches: Stretches,
           devices: int) -> tuple[list[Share], str]:
    """The work of a unit divided among devices, and how: "split by query" or "split by target".

    Args:
        queries: places in the batch. lengths: i8, of all queries of it.
    """
    everything = stretches.owners if stretches.whole else np.arange(len(stretches))
    if _alike(queries, lengths, devices):
        how = "split by query" if len(queries) >= 2 * devices else "split by target"
        return [Share(d, hand, everything) for d, hand in enumerate(dealt(queries, lengths, devices))], how
    # Every device gets long and short ones alike.
    order = np.argsort(-stretches.lengths, kind="stable")
    return [Share(d, queries, np.sort(order[d::devices])) for d in range(devices)], "split by target"


class SmithWatermanScoresCuda(SmithWatermanScores):
    __doc__ = SmithWatermanScores.__doc__
    backend = "cuda"
    records_on = "host"
    least_cells = 1 << 36  # 12 ms of a device
    volume_residues = 256_000_000  # 5 ms of the bus, which the host's own work for a volume hides behind

    def footprint(self, shape: Shape) -> Footprint:
        pieces = shape.targets + shape.target_residues // LEAST_PIECE
        need = WorkSize(pieces, shape.target_residues, shape.longest_target, shape.queries, shape.longest_query)
        # The volume itself is the index's.
        return Footprint(host=64 * pieces + 24 * shape.queries * shape.targets, device=working_bytes(need))

    def run(self, context: Context, records: Records | None) -> Pairs:
        queries, targets, scoring = context.queries, context.targets, context.scoring
        if records is None:
            jobs = [(list(range(len(queries))), ascending(len(targets)))]
        else:
            query_places, target_places = queries.locate(records.query), targets.locate(records.target)
            jobs = [([q], distinct(target_places[query_places == q])) for q in distinct(query_places).tolist()]
        reach = reach_of(scoring, queries.lengths.tolist())
        parts: dict[int, Pairs] = {}
        with all_scores.of_unit(context) as note, short_switch_interval():
            for places, wanted in jobs:
                # A device that has all targets cuts the longest itself.
                whole = len(wanted) == len(targets) and _alike(places, queries.lengths, device_count())
                stretches = Stretches.of(targets, wanted, None if whole else reach)
                divided, how = shares(places, queries.lengths, stretches, device_count())
                context.count(how)
                found: dict[int, list[ScoredTargets]] = {q: [] for q in places}
                done = on_devices(partial(_scored, context, stretches, reach), divided,
                                  [share.device for share in divided])
                for share, results in zip(divided, done, strict=True):
                    for query, result in zip(share.queries, results, strict=True):
                        found[query].append(result)
                for query, results in found.items():
                    parts[query] = _pairs(context, query, stretches, results, note)
        return Pairs.concat([parts[q] for q in sorted(parts)]) if parts else Pairs.empty()

    def begin(self, options: Any) -> None:
        super().begin(options)
        prepare_devices()

    def finish(self, options: Any) -> None:
        super().finish(options)
        on_devices(lambda device: device_memory().release_idle(), range(device_count()), range(device_count()))


def _scored(context: Context, stretches: Stretches, reach: int | None, share: Share) -> list[ScoredTargets]:
    """Stretches that may be reported for each query of a share."""
    longest = int(context.queries.lengths[list(share.queries)].max(initial=0))
    with on_device_targets(context.targets, stretches, share.stretches, len(share.queries), longest,
                           context.device_memory, context.cancellation.check, reach) as targets:
        asked = [ScoreRequest(strands(context, query), least_score(context, query)) for query in share.queries]
        found = targets.scores(asked, context.scoring)
        context.count("cells", targets.cells)
        if targets.beyond:
            context.count("scored again in full precision", targets.beyond)
    return found


def least_score(context: Context, query: int) -> int:
    """A score below which no target is asked for by the query at place ``query``."""
    scoring: SmithWatermanScoring = context.scoring
    least = int(context.options.min_score)
    if context.options.all_scores:
        return 0
    if scoring.statistics is None:
        return least
    longest = max(2, context.space.longest, context.targets.longest)
    return _least_score(scoring.statistics, scoring.largest_evalue, scoring.database_residues, longest,
                        int(context.queries.lengths[query]), least)


@lru_cache(1 << 12)
def _least_score(statistics: Any, largest_evalue: float, database_residues: int, longest: int, length: int,
                 least: int) -> int:
    # An E-value grows with the target's length where its share of the database stays, and falls with that: one step of
    # this ladder bounds all lengths between its ends. That leaves some targets for an exact look that don't pass it.
    steps = np.unique((_LADDER ** np.arange(1 + math.log(longest, _LADDER))).astype(np.int64) + 1)
    generous = SmithWatermanScoring(statistics=statistics, largest_evalue=largest_evalue * _LADDER * _LADDER,
                                    database_residues=database_residues)
    low = high = least

    def passes(score: int) -> bool:
        return bool(promising(generous, np.full(len(steps), score), length, steps, 1, len(steps)).any())

    # E-values fall with the score: the smallest one that passes.
    while not passes(high) and high < 1 << 30:
        low, high = high + 1, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle + 1, high)
    return low


def _pairs(context: Context, query: int, stretches: Stretches, found: Sequence[ScoredTargets],
           note: all_scores.Note) -> Pairs:
    """Pairs that may be reported, of all that the devices found for a query."""
    owners = stretches.owners[np.concatenate([f.numbers for f in found])]
    order = np.argsort(owners, kind="stable")
    owners = owners[order]
    firsts = np.flatnonzero(np.diff(owners, prepend=-1))
    places = owners[firsts]
    scores = np.concatenate([f.scores for f in found])[order]
    best = np.maximum.reduceat(scores, firsts) if len(firsts) else scores
    note(query, places, best)
    fits = promising(context.scoring, best, int(context.queries.lengths[query]), context.targets.lengths[places],
                     context.options.min_score, context.options.max_target_seqs)
    return kept_pairs(context, query, places[fits], best[fits])
