"""Registration of the protein BLAST family."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline

from .pipelines import PIPELINES

SEQLOOM_API = 1


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "neighbourhood-words reference": "index_reference.NeighbourhoodWords",
        "neighbourhood-words cpu": "index_cpu.NeighbourhoodWordsCpu",
        "neighbourhood-dfa reference": "dfa_reference.NeighbourhoodDfa",
        "neighbourhood-dfa cpu": "dfa_cpu.NeighbourhoodDfaCpu",
        "ungapped-scan reference": "scan_reference.UngappedScan",
        "ungapped-scan cpu": "scan_cpu.UngappedScanCpu",
        "segment-diagonals reference": "diagonals_reference.SegmentDiagonals",
        "segment-diagonals cpu": "diagonals_cpu.SegmentDiagonalsCpu",
        "segment-diagonals cuda": "diagonals_cuda.SegmentDiagonalsCuda",
        "word-hits reference": "seed_reference.WordHits",
        "word-hits cpu": "seed_cpu.WordHitsCpu",
        "binned-hits cuda": "hits_cuda.BinnedHits",
        "binned-dfa-hits cuda": "dfa_cuda.BinnedDfaHits",
        "dfa-hits reference": "dfa_reference.DfaHits",
        "dfa-hits cpu": "dfa_cpu.DfaHitsCpu",
        "dfa-hits cuda": "dfa_cuda.DfaHitsCuda",
        "two-hit-diagonals reference": "sort_diagonal_reference.TwoHitDiagonals",
        "two-hit-diagonals cpu": "sort_diagonal_cpu.TwoHitDiagonalsCpu",
        "two-hit-ungapped reference": "ungapped_reference.TwoHitUngapped",
        "two-hit-ungapped cpu": "ungapped_cpu.TwoHitUngappedCpu",
        "diagonal-ungapped cuda": "ungapped_cuda.DiagonalUngapped",
        "hit-ungapped cuda": "ungapped_cuda.HitUngapped",
        "window-ungapped cuda": "ungapped_cuda.WindowUngapped",
        "coarse-ungapped cuda": "coarse_cuda.CoarseUngapped",
        "preliminary-gapped reference": "gapped_reference.PreliminaryGapped",
        "preliminary-gapped cpu": "gapped_cpu.PreliminaryGappedCpu",
        "preliminary-gapped cuda": "gapped_cuda.PreliminaryGappedCuda",
        "adjusted-traceback reference": "adjusted_reference.AdjustedTraceback",
        "adjusted-traceback cpu": "adjusted_cpu.AdjustedTracebackCpu",
        "final-traceback reference": "traceback_reference.FinalTraceback",
        "final-traceback cpu": "traceback_cpu.FinalTracebackCpu",
        "segment-alignments reference": "segments_reference.SegmentAlignments",
        "segment-alignments cpu": "segments_cpu.SegmentAlignmentsCpu",
        "winnowed-alignments reference": "winnowed_reference.WinnowedProteins",
        "winnowed-alignments cpu": "winnowed_cpu.WinnowedProteinsCpu",
        "finite-size-evalue reference": "score_reference.FiniteSizeEvalue",
        "finite-size-evalue cpu": "score_cpu.FiniteSizeEvalueCpu",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "protein-blast": "family.ProteinBlast",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return PIPELINES
