"""``sw-targets`` on CUDA devices."""

from seqloom.plugins.common.resident_index_cuda import ResidentTargets

from .index_cpu import SmithWatermanTargets


class SmithWatermanTargetsCuda(ResidentTargets, SmithWatermanTargets):
    __doc__ = SmithWatermanTargets.__doc__
