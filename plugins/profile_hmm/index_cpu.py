"""``hmm-profiles`` on the CPU."""

from __future__ import annotations

from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import ModelBatch, SequenceBatch

from .index_reference import KIND, HmmProfiles
from .kept_states_cpu import KeptStates
from .packed_models import profile_of_model


class HmmProfilesCpu(HmmProfiles):
    __doc__ = HmmProfiles.__doc__
    backend = "cpu"

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, ModelBatch)
        profiles = {int(n): profile_of_model(batch[i]) for i, n in enumerate(batch.ordinals)}
        return Index(KIND, "query", objects={"profiles": profiles, "states": KeptStates()})
