"""Registration of the protein BLAST family."""

from __future__ import annotations

from seqloom.core.hookspecs import hookimpl
from seqloom.plugins.protein_blast.dfa_reference import DfaHits, NeighbourhoodDfa
from seqloom.plugins.protein_blast.family import PIPELINES, ProteinBlast
from seqloom.plugins.protein_blast.gapped_reference import PreliminaryGapped
from seqloom.plugins.protein_blast.index_reference import NeighbourhoodWords
from seqloom.plugins.protein_blast.scan_reference import UngappedScan
from seqloom.plugins.protein_blast.score_reference import FiniteSizeEvalue
from seqloom.plugins.protein_blast.seed_reference import WordHits
from seqloom.plugins.protein_blast.sort_diagonal_reference import TwoHitDiagonals
from seqloom.plugins.protein_blast.traceback_reference import FinalTraceback
from seqloom.plugins.protein_blast.ungapped_reference import TwoHitUngapped

SEQLOOM_API = 1


@hookimpl
def seqloom_stages():
    return [
        NeighbourhoodWords,
        UngappedScan,
        WordHits,
        NeighbourhoodDfa,
        DfaHits,
        TwoHitDiagonals,
        TwoHitUngapped,
        PreliminaryGapped,
        FinalTraceback,
        FiniteSizeEvalue,
    ]


@hookimpl
def seqloom_families():
    return [ProteinBlast]


@hookimpl
def seqloom_pipelines():
    return PIPELINES
