"""``sequence-profiles`` on the CPU."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.core.stages import Footprint, Shape

from .calibration_cpu import RandomTargets, random_sequences, statistics
from .forward_cpu import SPECIALS, WIDE
from .index_reference import KIND
from .kept_states_cpu import KeptStates
from .profile import SearchProfile
from .profile_cpu import search_profile
from .query_index_reference import SequenceProfiles, of_query
from .query_model import QueryModels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SequenceProfilesCpu(SequenceProfiles):
    __doc__ = SequenceProfiles.__doc__
    backend = "cpu"

    def footprint(self, shape: Shape) -> Footprint:
        # Profiles stay; each thread has one laid out for every kernel, and states of some random sequences.
        laid_out = (28 * 4 * 4 + 100 + 128 + 24 * WIDE) * (shape.longest_query + 64)
        return Footprint(host=28 * (4 + 1 + 4 + 4) * shape.query_residues
                         + shape.threads * (laid_out + 4 * SPECIALS * WIDE * 256) + (1 << 18))

    def run(self, context: Context, batch: SequenceBatch | ModelBatch) -> Index:
        assert isinstance(batch, SequenceBatch)
        models, targets, tail = QueryModels(context.options), _targets(context.options), context.options.Eft

        def calibrated(profile: SearchProfile, codes: NDArray[np.uint8]) -> dict[str, Any]:
            return statistics(profile, models.rate(codes), targets, tail)._asdict()

        def profile_of(number: int) -> SearchProfile:
            context.cancellation.check()
            return of_query(models, batch, number, search_profile, calibrated)

        profiles = run_tasks(context.threads, profile_of, range(len(batch)))
        return Index(KIND, "query", objects={"profiles": dict(zip(batch.ordinals.tolist(), profiles, strict=True)),
                                             "states": KeptStates()})


class _Drawn(NamedTuple):
    """What random sequences depend on."""

    seed: int
    EmN: int
    EmL: int
    EvN: int
    EvL: int
    EfN: int
    EfL: int


def _targets(options: Any) -> RandomTargets:
    """Those of a search: the same for all of its batches, unless an arbitrary seed is asked for."""
    drawn = _Drawn(*(getattr(options, name) for name in _Drawn._fields))
    return _made(drawn) if drawn.seed else RandomTargets(random_sequences(drawn))


@lru_cache(maxsize=2)
def _made(drawn: _Drawn) -> RandomTargets:
    return RandomTargets(random_sequences(drawn))
