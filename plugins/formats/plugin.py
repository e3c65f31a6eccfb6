"""File formats: readers of sequences."""

from seqloom.core.hookspecs import hookimpl
from seqloom.core.stages import Reader

from .fasta import FastaReader
from .fastq import FastqReader

SEQLOOM_API = 1


@hookimpl
def seqloom_readers() -> list[type[Reader]]:
    return [FastaReader, FastqReader]
