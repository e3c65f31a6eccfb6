"""The sample sequences of the package, loaded for tests of whole pipelines."""

from functools import cache
from pathlib import Path

from seqloom import inputs
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Queries
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry

SAMPLE = Path(inputs.__file__).parent / "sample"


@cache
def proteins() -> SequenceBatch:
    return inputs.load_sequences(str(SAMPLE / "proteins.fasta"), registry(), PROTEIN)


@cache
def mitochondria() -> tuple[SequenceBatch, SequenceBatch]:
    """Genomes of human and orang-utan."""
    human, orang = (inputs.load_sequences(str(SAMPLE / f"mito_{name}.fasta"), registry(), NUCLEOTIDE)
                    for name in ("human", "orang"))
    return human, orang


@cache
def globin_model() -> Queries:
    return inputs.load_models(str(SAMPLE / "globins4.hmm"), registry())


def pieces(batch: SequenceBatch, size: int, count: int) -> SequenceBatch:
    """The first ``count`` stretches of ``size`` residues of the first sequence, as sequences of their own."""
    residues = batch[0]
    parts = [residues[n * size : (n + 1) * size] for n in range(count)]
    return SequenceBatch.of(batch.alphabet, parts, [f"piece_{n + 1}" for n in range(count)])
