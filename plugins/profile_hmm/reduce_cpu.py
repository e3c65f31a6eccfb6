"""``domain-statistics`` and ``rank-hmm-targets`` on the CPU: few hits, which arrays of numpy serve well enough."""

from .score_domains_reference import DomainStatistics
from .sort_rank_reference import RankTargets


class DomainStatisticsCpu(DomainStatistics):
    __doc__ = DomainStatistics.__doc__
    backend = "cpu"


class RankTargetsCpu(RankTargets):
    __doc__ = RankTargets.__doc__
    backend = "cpu"
