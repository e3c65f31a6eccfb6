"""Registration of the nucleotide BLAST family."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline

from .pipelines import PIPELINES

SEQLOOM_API = 1


@hookimpl
def seqloom_stages() -> list[Deferred]:
    return deferred(__package__, {
        "nucleotide-word-table reference": "index_reference.NucleotideWords",
        "nucleotide-bases reference": "index_reference.NucleotideBases",
        "nucleotide-word-hits reference": "seed_reference.WordHits",
        "discontiguous-word-table reference": "discontiguous_reference.DiscontiguousWords",
        "discontiguous-word-hits reference": "discontiguous_reference.DiscontiguousWordHits",
        "strand-diagonal reference": "sort_reference.StrandDiagonal",
        "nucleotide-ungapped reference": "ungapped_reference.UngappedExtension",
        "nucleotide-xdrop reference": "gapped_reference.XDropExtension",
        "nucleotide-greedy reference": "gapped_reference.GreedyExtension",
        "nucleotide-xdrop-traceback reference": "traceback_reference.XDropTraceback",
        "nucleotide-greedy-traceback reference": "traceback_reference.GreedyTraceback",
        "search-space-evalue reference": "score_reference.SearchSpaceEvalue",
    })


@hookimpl
def seqloom_families() -> list[Deferred]:
    return deferred(__package__, {
        "nucleotide-blast": "scoring.NucleotideBlast",
        "discontiguous-blast": "discontiguous_reference.DiscontiguousBlast",
    })


@hookimpl
def seqloom_pipelines() -> list[Pipeline]:
    return PIPELINES


@hookimpl
def seqloom_maskers() -> list[Deferred]:
    return deferred(__package__, {
        "dust": "dust.Dust",
    })
