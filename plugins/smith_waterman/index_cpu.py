"""``sw-targets``: a volume made ready for exact scores of many query batches; on the CPU, its targets in groups."""

from typing import ClassVar

from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.lanes import LaneInterleaved, grouped


class SmithWatermanTargets(LaneInterleaved):
    """Targets made ready for exact Smith–Waterman: in groups of like lengths for vectors, or sent to the device."""

    name: ClassVar[str] = "sw-targets"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=48 * shape.targets)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        return grouped(batch)
