"""Registration of the nucleotide BLAST family."""

from __future__ import annotations

from seqloom.core.hookspecs import hookimpl
from seqloom.plugins.nucleotide_blast.discontiguous_reference import (
    DiscontiguousBlast,
    DiscontiguousWordHits,
    DiscontiguousWords,
)
from seqloom.plugins.nucleotide_blast.dust import Dust
from seqloom.plugins.nucleotide_blast.family import PIPELINES
from seqloom.plugins.nucleotide_blast.gapped_reference import GreedyExtension, XDropExtension
from seqloom.plugins.nucleotide_blast.index_reference import NucleotideBases, NucleotideWords
from seqloom.plugins.nucleotide_blast.score_reference import SearchSpaceEvalue
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlast
from seqloom.plugins.nucleotide_blast.seed_reference import WordHits
from seqloom.plugins.nucleotide_blast.sort_reference import StrandDiagonal
from seqloom.plugins.nucleotide_blast.traceback_reference import GreedyTraceback, XDropTraceback
from seqloom.plugins.nucleotide_blast.ungapped_reference import UngappedExtension

SEQLOOM_API = 1


@hookimpl
def seqloom_stages():
    return [
        NucleotideWords,
        NucleotideBases,
        WordHits,
        DiscontiguousWords,
        DiscontiguousWordHits,
        StrandDiagonal,
        UngappedExtension,
        XDropExtension,
        GreedyExtension,
        XDropTraceback,
        GreedyTraceback,
        SearchSpaceEvalue,
    ]


@hookimpl
def seqloom_families():
    return [NucleotideBlast, DiscontiguousBlast]


@hookimpl
def seqloom_pipelines():
    return PIPELINES


@hookimpl
def seqloom_maskers():
    return [Dust]
