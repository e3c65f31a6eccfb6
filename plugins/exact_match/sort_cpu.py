"""``unique-matches`` and ``match-rank`` on the CPU: the reference's numpy, with the sorters of this back end."""

from .sort_reference import MatchRank, UniqueMatches


class UniqueMatchesCpu(UniqueMatches):
    __doc__ = UniqueMatches.__doc__
    backend = "cpu"


class MatchRankCpu(MatchRank):
    __doc__ = MatchRank.__doc__
    backend = "cpu"
