"""Query-side index: profiles of queries that are sequences, each made into a model and calibrated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from seqloom.core.context import Context
from seqloom.core.errors import InputError
from seqloom.core.index import Index
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape

from .calibration_reference import random_sequences, statistics
from .hmmfile import ProfileHmm
from .index_reference import KIND
from .profile import SearchProfile, search_profile
from .query_model import QueryModels
from .scoring import HmmScoring

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SequenceProfiles(IndexStage):
    """Protein sequences as calibrated search profiles, of the kind that models give."""

    name = "sequence-profiles"
    side = "query"
    provides = KIND
    scoring = HmmScoring
    uses = ("popen", "pextend", "mx", "mxfile", "EmL", "EmN", "EvL", "EvN", "EfL", "EfN", "Eft", "seed")

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=28 * (4 + 1 + 4 + 4) * shape.query_residues)

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        models, sequences = QueryModels(context.options), random_sequences(context.options)

        def calibrated(profile: SearchProfile, codes: NDArray[np.uint8]) -> dict[str, Any]:
            return statistics(profile, models.rate(codes), sequences, context.options.Eft)._asdict()

        profiles = {}
        for number, query in enumerate(batch.ordinals.tolist()):
            context.cancellation.check()
            profiles[query] = of_query(models, batch, number, search_profile, calibrated)
        return Index(KIND, "query", objects={"profiles": profiles})


def of_query(models: QueryModels, batch: SequenceBatch, number: int,
             configure: Callable[[ProfileHmm], SearchProfile],
             calibrate: Callable[[SearchProfile, NDArray[np.uint8]], dict[str, Any]]) -> SearchProfile:
    """Profile of a query of a batch: its model is configured, calibrated, and carries what was found.

    Raises:
        InputError: random sequences have no scores with the model, or all the same.
    """
    codes = batch[number]
    plain = models.model(codes, batch.names[number], batch.descriptions[number] if batch.descriptions else "")
    profile = configure(plain)
    try:
        found = calibrate(profile, codes)
    except ArithmeticError:
        raise InputError(f"query '{plain.name}' can't be calibrated: random sequences have no scores with it, or all "
                         "the same; leave it out, or write X for its '*', or take another matrix") from None
    return replace(profile, model=replace(plain, **found))
