"""Query-side index: search profiles in the three precisions of the pipeline (CUDAMPF++ section 2.1)."""

from __future__ import annotations

from typing import ClassVar

from seqloom.core.context import Context
from seqloom.core.index import Index, Side
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape

from .profile import SearchProfile, search_profile
from .scoring import HmmScoring, ProfileScoring

KIND = "hmm-profiles"
MODEL_BYTES = 192
"""Of a node of a model, about, beside its profile: of models that are read for a batch or a volume."""


class HmmProfiles(IndexStage):
    """Models as 8-bit, 16-bit and floating-point search profiles."""

    name = "hmm-profiles"
    side: ClassVar[Side] = "query"
    provides = KIND
    scoring: ClassVar[type[ProfileScoring]] = HmmScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=(28 * (4 + 1 + 4 + 4) + MODEL_BYTES) * shape.query_residues)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, ModelBatch)
        profiles = {int(n): search_profile(batch[i]) for i, n in enumerate(batch.ordinals)}
        return Index(KIND, "query", objects={"profiles": profiles})


def profile_of(context: Context, query: int) -> SearchProfile:
    """Search profile of a query by its global number."""
    return context.index(KIND).objects["profiles"][query]
