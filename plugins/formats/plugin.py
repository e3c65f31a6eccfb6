"""File formats: readers of sequences, and BLAST's ways of writing results."""

from seqloom.core.hookspecs import hookimpl
from seqloom.core.stages import Reader, Writer

from .fasta import FastaReader
from .fastq import FastqReader
from .writer_pairwise import Pairwise
from .writer_tabular import CommaSeparated, Commented, Tabular

SEQLOOM_API = 1


@hookimpl
def seqloom_readers() -> list[type[Reader]]:
    return [FastaReader, FastqReader]


@hookimpl
def seqloom_writers() -> list[type[Writer]]:
    return [Pairwise, Tabular, Commented, CommaSeparated]
