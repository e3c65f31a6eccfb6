"""Masking of queries, as the family of a pipeline asks for it."""

from dataclasses import replace

from ..errors import CompositionError
from ..pipeline import Plan
from ..registry import Registry
from ..sequences import Intervals, SequenceBatch
from .failures import naming


def masked(queries: SequenceBatch, plan: Plan, registry: Registry) -> SequenceBatch:
    """Queries with the stretches that a run of ``plan`` masks, softly or hard.

    Raises:
        CompositionError: a masker isn't for such sequences.
        StageError: a masker failed.
    """
    soft, hard = Intervals.empty(), Intervals.empty()
    for request in plan.family.masking(plan.options):
        masker_type = registry.masker(request.masker)
        masker = masker_type(masker_type.Options(**request.options))
        if queries.alphabet.name not in masker.alphabets:
            raise CompositionError(f"masker '{request.masker}' is not for {queries.alphabet.name} sequences")
        with naming(registry, "masking of queries", "masker", request.masker):
            found = masker.intervals(queries)
        if request.soft:
            soft = soft.merged(found)
        else:
            hard = hard.merged(found)
    return replace(queries, soft=soft, hard=hard)
