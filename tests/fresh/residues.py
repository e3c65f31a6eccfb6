"""Random sequences: cut from real ones, mutated, shuffled, joined, repeated, of low complexity, with odd residues."""

import gzip
import random
from functools import cache
from pathlib import Path

from tests.shared import SHARED

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"
BASES = "ACGT"
ODD = {AMINO_ACIDS: "XBZJUO*", BASES: "NRYKMSWBDHV"}
_MOST_READ = 2_000_000
_PROTEINS = ("proteins/small.fasta", "proteins/batch100.fasta")
_GENOMES = ("genomes/lambda.fasta", "genomes/mito_human.fasta", "genomes/q100k.fasta", "genomes/qhuman.fasta")


@cache
def real(kind: str) -> str:
    """Real residues without ends between sequences, or random ones where there are no sample data."""
    files = [SHARED / "data" / name for name in (_PROTEINS if kind == AMINO_ACIDS else _GENOMES)]
    texts = [_residues(path, kind) for path in files if path.exists()]
    if texts:
        return "".join(texts)
    source = random.Random(kind)
    return "".join(source.choices(kind, k=200_000))


def _residues(path: Path, kind: str) -> str:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return "".join(c for line in text[:_MOST_READ].splitlines() if line[:1] != ">" for c in line.upper() if c in kind)


class Draw:
    """Random decisions of one case.

    Attributes:
        kind: residues of the sequences, ``AMINO_ACIDS`` or ``BASES``.
        folder: where the files of the case go.
    """

    def __init__(self, seed: str, kind: str, folder: Path) -> None:
        self.random, self.kind, self.folder = random.Random(seed), kind, folder

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def length(self, low: int, high: int) -> int:
        """Between both, small ones as likely as large ones."""
        return round(low * (high / low) ** self.random.random())

    def some(self, options: dict[str, list], probability: float) -> dict[str, str]:
        """Each option with this probability, with one of its values."""
        return {name: str(self.random.choice(values)) for name, values in options.items() if self.chance(probability)}

    def piece(self, length: int) -> str:
        """Real residues."""
        text = real(self.kind)
        start = self.random.randrange(max(1, len(text) - length))
        return text[start : start + length]

    def low_complexity(self, length: int) -> str:
        """Repeats of a few residues, some of them changed."""
        unit = "".join(self.random.choices(self.kind, k=self.random.choice((1, 1, 2, 2, 3, 3, 4, 6, 9, 13))))
        return self.mutated((unit * (length // len(unit) + 1))[:length], self.random.choice((0, 0, 0.02, 0.1)))

    def sequence(self, length: int) -> str:
        """Of one of many kinds."""
        way = self.random.random()
        if way < 0.5:
            return self.piece(length)
        if way < 0.6:
            return self.low_complexity(length)
        if way < 0.7:
            return "".join(self.random.choices(self.random.sample(self.kind, self.random.randint(2, 4)), k=length))
        if way < 0.8:
            unit = self.piece(max(1, length // self.random.randint(2, 5)))
            return "".join(self.mutated(unit, 0.1) for _ in range(length // len(unit) + 1))[:length]
        third = max(1, length // 3)
        return (self.piece(third) + self.low_complexity(third) + self.piece(third))[:length]

    def mutated(self, text: str, rate: float) -> str:
        """With substitutions at this rate, and a tenth as many insertions and deletions of up to five residues."""
        residues = []
        skip = 0
        for residue in text:
            if skip:
                skip -= 1
                continue
            draw = self.random.random()
            if draw < rate * 0.05:
                skip = self.random.randrange(5)
                continue
            if draw < rate * 0.1:
                residues += self.random.choices(self.kind, k=self.random.randint(1, 5))
            residues.append(self.random.choice(self.kind) if draw < rate else residue)
        return "".join(residues)

    def odd(self, text: str, rate: float) -> str:
        """With ambiguity codes at this rate, and now and then a run of the unknown residue."""
        residues = [self.random.choice(ODD[self.kind]) if self.chance(rate) else residue for residue in text]
        if self.chance(0.3) and len(residues) > 4:
            start = self.random.randrange(len(residues))
            end = min(len(residues), start + self.length(1, 120))
            residues[start:end] = ODD[self.kind][0] * (end - start)
        return "".join(residues)

    def turned(self, text: str) -> str:
        """The reverse complement."""
        return text[::-1].translate(str.maketrans("ACGTRYKMBDHV", "TGCAYRMKVHDB"))

    def relative(self, text: str) -> str:
        """A part of a sequence, mutated, between other residues; half of the nucleotides from the other strand."""
        start = self.random.randrange(max(1, len(text) - 10))
        part = text[start : start + self.length(10, max(11, len(text)))]
        part = self.mutated(part, self.random.choice((0, 0.01, 0.03, 0.1, 0.2, 0.35)))
        if self.chance(0.2):
            cut = self.random.randrange(max(1, len(part)))
            part = part[:cut] + self.sequence(self.length(1, 60)) + part[cut:]
        if self.kind == BASES and self.chance(0.5):
            part = self.turned(part)
        return self.sequence(self.length(1, 200)) + part + self.sequence(self.length(1, 200))

    def soft(self, text: str) -> str:
        """With stretches in lower case."""
        start = self.random.randrange(len(text) + 1)
        end = self.random.randrange(start, len(text) + 1)
        return text[:start] + text[start:end].lower() + text[end:]

    def repeats(self, length: int, units: list[str]) -> str:
        """Tandem and dispersed copies of a few units, mutated, some of them from the other strand."""
        parts: list[str] = []
        while sum(map(len, parts)) < length:
            if self.chance(0.25):
                parts.append(self.piece(self.length(5, 80)))
                continue
            copies = self.random.choice(units) * self.random.choice((1, 1, 2, 4, 10))
            copies = self.mutated(copies[: self.length(5, 200)], self.random.choice((0, 0, 0.03, 0.1)))
            parts.append(self.turned(copies) if self.kind == BASES and self.chance(0.4) else copies)
        return "".join(parts)[:length]

    def write(self, name: str, sequences: list[str], prefix: str, lower: float = 0.0) -> str:
        """A FASTA file of these sequences; returns its name."""
        width = self.random.choice((60, 70, 10**9))
        lines = []
        for number, text in enumerate(sequences):
            text = self.soft(text) if self.chance(lower) else text
            lines.append(f">{prefix}{number}" + (f" about {number}" if self.chance(0.3) else ""))
            lines += [text[at : at + width] for at in range(0, len(text), width)]
        (self.folder / name).write_text("\n".join(lines) + "\n")
        return name

    def search(self, query_length: tuple[int, int], queries: int, targets: int) -> tuple[list[str], list[str]]:
        """Queries, and targets of which most are relatives of them."""
        odd = self.random.choice((0.0, 0.0, 0.0, 0.01, 0.1))
        asked = [self.sequence(self.length(*query_length)) for _ in range(self.random.randint(1, queries))]
        found = []
        for _ in range(self.random.randint(1, targets)):
            found.append(self.relative(self.random.choice(asked)) if self.chance(0.8) else self.sequence(200))
        if self.chance(0.2):
            found += [self.random.choice(found)] * self.random.randint(1, 3)
        if odd and self.chance(0.6):
            asked = [self.odd(text, odd) for text in asked]
        if odd and self.chance(0.6):
            found = [self.odd(text, odd) for text in found]
        return asked, found
