"""Registration of the protein BLAST family."""

from __future__ import annotations

from seqloom.core.hookspecs import hookimpl
from seqloom.plugins.protein_blast.dfa_reference import DfaHits, NeighbourhoodDfa
from seqloom.plugins.protein_blast.diagonals_cpu import SegmentDiagonalsCpu
from seqloom.plugins.protein_blast.diagonals_reference import SegmentDiagonals
from seqloom.plugins.protein_blast.family import PIPELINES, ProteinBlast
from seqloom.plugins.protein_blast.gapped_cpu import PreliminaryGappedCpu
from seqloom.plugins.protein_blast.gapped_reference import PreliminaryGapped
from seqloom.plugins.protein_blast.index_cpu import NeighbourhoodWordsCpu
from seqloom.plugins.protein_blast.index_reference import NeighbourhoodWords
from seqloom.plugins.protein_blast.scan_cpu import UngappedScanCpu
from seqloom.plugins.protein_blast.scan_reference import UngappedScan
from seqloom.plugins.protein_blast.score_cpu import FiniteSizeEvalueCpu
from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue
from seqloom.plugins.protein_blast.seed_cpu import WordHitsCpu
from seqloom.plugins.protein_blast.seed_reference import WordHits
from seqloom.plugins.protein_blast.sort_diagonal_cpu import TwoHitDiagonalsCpu
from seqloom.plugins.protein_blast.sort_diagonal_reference import TwoHitDiagonals
from seqloom.plugins.protein_blast.traceback_cpu import FinalTracebackCpu
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback
from seqloom.plugins.protein_blast.ungapped_cpu import TwoHitUngappedCpu
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped

SEQLOOM_API = 1


@hookimpl
def seqloom_stages():
    return [
        NeighbourhoodWords, NeighbourhoodWordsCpu, NeighbourhoodDfa,
        UngappedScan, UngappedScanCpu, SegmentDiagonals, SegmentDiagonalsCpu,
        WordHits, WordHitsCpu, DfaHits,
        TwoHitDiagonals, TwoHitDiagonalsCpu,
        TwoHitUngapped, TwoHitUngappedCpu,
        PreliminaryGapped, PreliminaryGappedCpu,
        FinalTraceback, FinalTracebackCpu,
        FiniteSizeEvalue, FiniteSizeEvalueCpu,
    ]


@hookimpl
def seqloom_families():
    return [ProteinBlast]


@hookimpl
def seqloom_pipelines():
    return PIPELINES
