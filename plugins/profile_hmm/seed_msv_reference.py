"""Seeding: the MSV score of every target, and the pairs that pass the first threshold (CUDAMPF++ section 2.1).

SSV is the same stage without the J state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.records import Pairs, Records
from seqloom.core.stages import Footprint, SeedStage, Shape

from .columns import PAIR_COLUMNS, residues_of
from .index_reference import KIND, profile_of
from .msv_reference import LANES, msv_scores, ssv_scores
from .p_values import bits, gumbel_survival
from .profile import SearchProfile, null_score
from .scoring import HmmScoring, ProfileScoring

if TYPE_CHECKING:
    from numpy.typing import NDArray


class MsvFilter(SeedStage):
    """Pairs whose best ungapped segments reach P ≤ F1, with their MSV score.

    Attributes:
        multihit: whether several segments count together (MSV), or the best one counts alone (SSV).
    """

    name = "msv"
    gives = Pairs
    gives_order = ("query", "target")
    reads: ClassVar[tuple[str, ...]] = (KIND,)
    columns = PAIR_COLUMNS
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring
    multihit: ClassVar[bool] = True
    counts_queries = True
    cells_per_second = 5e7

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=LANES * (10 * shape.longest_query + shape.longest_target) + 64 * shape.targets)

    def run(self, context: Context, records: Records | None) -> Pairs:
        found = [
            _scan(context, int(query), profile_of(context, int(query)), candidates(context, int(query), records),
                  msv_scores if self.multihit else ssv_scores)
            for query in context.queries.ordinals
        ]
        return Pairs.concat(found) if found else Pairs.empty(PAIR_COLUMNS)


class SsvFilter(MsvFilter):
    """Pairs whose best single ungapped segment reaches P ≤ F1, with their SSV score.

    MSV without the J state (CUDAMPF++, algorithm 7), with MSV's distribution of scores; HMMER has it before MSV, never
    in its place. Pairs are some of those of ``msv``: what passes by several segments together alone isn't among them.
    """

    name = "ssv"
    multihit = False


def candidates(context: Context, query: int, records: Records | None) -> NDArray[np.int64]:
    """Global numbers of the targets to scan: all that aren't empty, or those paired with the query before."""
    targets = context.targets
    numbers = targets.ordinals if records is None else distinct(records.target[records.query == query])
    return numbers[targets.lengths[targets.locate(numbers)] > 0]


def _scan(context: Context, query: int, profile: SearchProfile, numbers: NDArray[np.int64],
          scores_of: Callable[..., NDArray[np.float32]]) -> Pairs:
    residues = residues_of(context.targets, numbers)
    everything = len(context.queries) * context.targets.total_residues
    scores = scores_of(profile.bytes, residues, lambda residues: context.advance(residues, everything))
    nulls = np.array([null_score(len(r)) for r in residues], np.float32)
    mu, rate = profile.model.msv_mu, profile.model.msv_lambda
    over_null = [float(bits(score, null)) for score, null in zip(scores, nulls, strict=True)]
    p_values = np.array([gumbel_survival(score, mu, rate) for score in over_null], np.float64)
    pairs = Pairs(
        {
            "query": np.full(len(numbers), query),
            "target": numbers,
            "score": scores,
            "filter_p": p_values,
            "filter_null": nulls,
        },
        PAIR_COLUMNS,
    )
    kept = pairs.take(p_values <= context.options.largest_p("F1"))
    context.count("passed", len(kept))
    return kept
