"""Registration of the stages and maskers that serve several families."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl

SEQLOOM_API = 1


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "resident-targets cuda": "resident_index_cuda.TargetsOnDevices",
        "lane-interleaved cpu": "lanes.LaneInterleaved",
        "rank-targets reference": "rank_reference.RankTargets",
        "rank-targets cpu": "rank_cpu.RankTargetsCpu",
    })


@hookimpl
def seqloom_maskers() -> list[Deferred]:
    return deferred(__package__, {
        "lower-case": "lower_case.LowerCase",
        "seg": "seg_masker.Seg",
    })
