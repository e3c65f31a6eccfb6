"""``sw-statistics`` on the CPU: the reference's own arithmetic; pairs are few by now."""

from .score_reference import SmithWatermanStatistics


class SmithWatermanStatisticsCpu(SmithWatermanStatistics):
    __doc__ = SmithWatermanStatistics.__doc__
    backend = "cpu"
