"""Registration of the stages and maskers that serve several families."""

from __future__ import annotations

from seqloom.core.hookspecs import hookimpl
from seqloom.plugins.common.lanes import LaneInterleaved
from seqloom.plugins.common.lower_case import LowerCase
from seqloom.plugins.common.rank_cpu import RankTargetsCpu
from seqloom.plugins.common.rank_reference import RankTargets
from seqloom.plugins.common.seg import Seg

SEQLOOM_API = 1


@hookimpl
def seqloom_stages():
    return [LaneInterleaved, RankTargets, RankTargetsCpu]


@hookimpl
def seqloom_maskers():
    return [LowerCase, Seg]
