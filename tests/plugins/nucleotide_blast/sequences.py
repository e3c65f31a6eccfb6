"""Random nucleotide sequences and relatives of them, for tests."""

import random

from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.sequences import SequenceBatch

BASES = "ACGT"


def random_bases(source: random.Random, length: int) -> str:
    return "".join(source.choice(BASES) for _ in range(length))


def relative(source: random.Random, sequence: str, rate: float) -> str:
    """``sequence`` with substitutions at ``rate``, a tenth of them single-base insertions or deletions."""
    bases = []
    for base in sequence:
        draw = source.random()
        if draw < rate * 0.1:
            continue
        if draw < rate * 0.2:
            bases.append(source.choice(BASES))
        bases.append(source.choice(BASES) if draw < rate else base)
    return "".join(bases)


def ambiguous(source: random.Random, sequence: str, rate: float) -> str:
    """``sequence`` with ambiguities in place of bases at ``rate``."""
    return "".join(source.choice("RYMKWSBDHVN") if source.random() < rate else base for base in sequence)


def reverse_complement(sequence: str) -> str:
    return sequence[::-1].translate(str.maketrans("ACGT", "TGCA"))


def batch(*sequences: str) -> SequenceBatch:
    return SequenceBatch.of(NUCLEOTIDE, sequences)


def homologues(seed: int = 1, length: int = 600) -> tuple[SequenceBatch, SequenceBatch]:
    """A few queries and targets that hold relatives of them on both strands, ambiguities and repeats included."""
    source = random.Random(seed)
    first, second = random_bases(source, length), random_bases(source, length)
    queries = [first, reverse_complement(second[100:500]), first[: length // 2] + "NNNN" + second[:200], "ACAC" * 30]
    targets = [random_bases(source, 200) + relative(source, first, 0.02 * step) for step in range(6)]
    targets += [reverse_complement(relative(source, second, 0.02 * step)) for step in range(6)]
    targets += [first[:200] + "N" * 20 + first[200:400], "CACA" * 50 + second[50:300], random_bases(source, 500)]
    return batch(*queries), batch(*targets)
