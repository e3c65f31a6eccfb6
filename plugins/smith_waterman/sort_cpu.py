"""``sw-rank`` on the CPU: the reference's numpy; hits are few by now."""

from .sort_reference import SmithWatermanRank


class SmithWatermanRankCpu(SmithWatermanRank):
    __doc__ = SmithWatermanRank.__doc__
    backend = "cpu"
