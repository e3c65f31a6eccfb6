"""``rank-targets`` on the CPU: the reference's numpy; alignments are few by now."""

from seqloom.plugins.common.rank_reference import RankTargets


class RankTargetsCpu(RankTargets):
    __doc__ = RankTargets.__doc__
    backend = "cpu"
