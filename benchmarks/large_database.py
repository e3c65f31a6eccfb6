"""`megablast` of short queries against a large database, beside blastn: with a stored table of its words and without.

The database has mutated copies of three bacterial genomes, a billion bases. Queries are reads of human chromosome 1,
which find nothing, reads of *E. coli*, which find each of its copies, and one of 500 bases. One core, seconds of the
processor, warm, in turns; rows are held to blastn's.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .nucleotide_blast import GENOMES, PACKED, compared, prepare, write_reads
from .timing import SEQLOOM, Timing

COPIES, CHANGED = 70, 0.02
"""Copies of each genome, and the share of their bases that are replaced."""
READS = {"human_chr1_first3Mb": 20_000, "ecoli_k12_mg1655": 1_000}
"""Of each genome."""
ROUNDS, APART = 3, 30
"""Rows that only one of both may have: what blastn finds for a read depends on those that it is searched with."""


def write_copies(folder: Path, path: Path) -> None:
    """Mutated copies of the genomes in ``folder``; the same at every call."""
    random, bases = np.random.default_rng(5), np.frombuffer(b"ACGT", np.uint8)
    with path.open("wb") as target:
        for name in PACKED[:3]:
            lines = (folder / f"{name}.fasta").read_text().splitlines()
            genome = np.frombuffer("".join(line for line in lines if line[:1] != ">").encode(), np.uint8)
            for number in range(COPIES):
                changed = random.random(len(genome)) < CHANGED
                copy = np.where(changed, bases[random.integers(0, 4, len(genome))], genome).tobytes()
                target.write(f">{name}_{number}\n".encode())
                target.writelines(copy[at : at + 100_000] + b"\n" for at in range(0, len(copy), 100_000))


def measure() -> Iterator[Timing]:
    """Searches without the table, then with it."""
    if not (GENOMES.is_dir() and shutil.which("blastn")):
        print("benchmark large_database needs ../shared/data/genomes and blastn", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        write_copies(folder, folder / "large.fasta")
        queries = ["q500"]
        for name, count in READS.items():
            queries.append(f"reads_{name}")
            write_reads(folder / f"{name}.fasta", folder / f"{queries[-1]}.fasta", count)
        for command in ((*SEQLOOM, "db", "create", "large.duckdb", "large.fasta"),
                        ("makeblastdb", "-dbtype", "nucl", "-in", "large.fasta", "-out", "large")):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)
        for query in queries:
            yield from compared(folder, "megablast", query, "large", ROUNDS, APART)
        subprocess.run((*SEQLOOM, "index", "build", "large.duckdb", "--index", "target-word-table", "--set",
                        "word_size=28"), cwd=folder, check=True, capture_output=True)
        for query in queries:
            for timing in compared(folder, "megablast", query, "large", ROUNDS, APART):
                yield Timing(f"{timing.what}, with a stored table", timing.seconds, timing.note)
