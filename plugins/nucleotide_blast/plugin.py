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
        "nucleotide-word-table cpu": "index_cpu.NucleotideWordsCpu",
        "small-word-table reference": "paper_tables_reference.SmallWords",
        "small-word-table cpu": "paper_tables_cpu.SmallWordsCpu",
        "small-word-table cuda": "paper_tables_cuda.SmallWordsCuda",
        "megablast-word-table reference": "paper_tables_reference.ChainedWords",
        "megablast-word-table cpu": "paper_tables_cpu.ChainedWordsCpu",
        "megablast-word-table cuda": "paper_tables_cuda.ChainedWordsCuda",
        "nucleotide-bases reference": "index_reference.NucleotideBases",
        "nucleotide-bases cpu": "index_cpu.NucleotideBasesCpu",
        "nucleotide-bases cuda": "packed_cuda.NucleotideBasesCuda",
        "target-word-table cpu": "target_words_cpu.TargetWordTable",
        "nucleotide-word-hits reference": "seed_reference.WordHits",
        "nucleotide-word-hits cpu": "seed_cpu.WordHitsCpu",
        "nucleotide-word-hits cuda": "seed_cuda.WordHitsCuda",
        "discontiguous-word-table reference": "discontiguous_reference.DiscontiguousWords",
        "discontiguous-word-table cpu": "discontiguous_cpu.DiscontiguousWordsCpu",
        "discontiguous-word-hits reference": "discontiguous_reference.DiscontiguousWordHits",
        "discontiguous-word-hits cpu": "discontiguous_cpu.DiscontiguousWordHitsCpu",
        "discontiguous-word-hits cuda": "seed_cuda.DiscontiguousWordHitsCuda",
        "strand-diagonal reference": "sort_reference.StrandDiagonal",
        "strand-diagonal cpu": "sort_cpu.StrandDiagonalCpu",
        "nucleotide-ungapped reference": "ungapped_reference.UngappedExtension",
        "nucleotide-ungapped cpu": "ungapped_cpu.UngappedExtensionCpu",
        "nucleotide-ungapped cuda": "ungapped_cuda.UngappedExtensionCuda",
        "nucleotide-segments reference": "segments_reference.NucleotideSegments",
        "nucleotide-segments cpu": "segments_cpu.NucleotideSegmentsCpu",
        "nucleotide-xdrop reference": "gapped_reference.XDropExtension",
        "nucleotide-xdrop cpu": "gapped_cpu.XDropExtensionCpu",
        "nucleotide-greedy reference": "gapped_reference.GreedyExtension",
        "nucleotide-greedy cpu": "gapped_cpu.GreedyExtensionCpu",
        "nucleotide-greedy cuda": "gapped_cuda.GreedyExtensionCuda",
        "nucleotide-xdrop-traceback reference": "traceback_reference.XDropTraceback",
        "nucleotide-xdrop-traceback cpu": "traceback_cpu.XDropTracebackCpu",
        "nucleotide-greedy-traceback reference": "traceback_reference.GreedyTraceback",
        "nucleotide-greedy-traceback cpu": "traceback_cpu.GreedyTracebackCpu",
        "nucleotide-greedy-traceback cuda": "traceback_cuda.GreedyTracebackCuda",
        "winnowed-nucleotide-xdrop reference": "winnowed_reference.WinnowedXDrop",
        "winnowed-nucleotide-xdrop cpu": "winnowed_cpu.WinnowedXDropCpu",
        "winnowed-nucleotide-greedy reference": "winnowed_reference.WinnowedGreedy",
        "winnowed-nucleotide-greedy cpu": "winnowed_cpu.WinnowedGreedyCpu",
        "search-space-evalue reference": "score_reference.SearchSpaceEvalue",
        "search-space-evalue cpu": "score_cpu.SearchSpaceEvalueCpu",
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
        "repeats": "repeats.Repeats",
        "windowmasker": "windowmasker.WindowMasker",
    })
