"""File formats: readers of sequences; BLAST's ways of writing results, PAF, Parquet, Arrow, pages of HTML, plots."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl

SEQLOOM_API = 1


@hookimpl
def seqloom_readers() -> list[Deferred]:
    return deferred(__package__, {
        "fasta": "fasta.FastaReader",
        "fastq": "fastq.FastqReader",
        "ncbi-blastdb": "blast_database.BlastDatabaseReader",
    })


@hookimpl
def seqloom_writers() -> list[Deferred]:
    return deferred(__package__, {
        "0": "writer_pairwise.Pairwise",
        "5": "writer_xml.Xml",
        "6": "writer_tabular.Tabular",
        "7": "writer_tabular.Commented",
        "10": "writer_tabular.CommaSeparated",
        "13": "writer_json.JsonFiles",
        "14": "writer_xml.Xml2Files",
        "15": "writer_json.Json",
        "16": "writer_xml.Xml2",
        "17": "writer_sam.Sam",
        "18": "writer_organisms.Organisms",
        "html": "writer_html.Html",
        "table": "writer_table.Table",
        "paf": "writer_paf.Paf",
        "parquet": "writer_arrow.Parquet",
        "arrow": "writer_arrow.ArrowFile",
        "plot": "writer_plot.Plot",
        "dotplot": "writer_plot.Dotplot",
        "dotplot-png": "writer_plot.DotplotPng",
    }, beside=dict.fromkeys(("paf", "dotplot", "dotplot-png"), ("exact-match", "exact-match-protein")))
