"""``sw-targets``: a volume made ready for exact scores of many query batches; on the CPU, its targets interleaved."""

from typing import ClassVar

from seqloom.plugins.common.lanes import LaneInterleaved


class SmithWatermanTargets(LaneInterleaved):
    """Targets made ready for exact Smith–Waterman: interleaved for vectors, or sent to the device."""

    name: ClassVar[str] = "sw-targets"
