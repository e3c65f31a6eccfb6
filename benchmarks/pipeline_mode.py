"""What it gains that reading, masking, seeding, extension and writing of consecutive batches of queries overlap.

Whole `megablast` commands of many reads of 150 bases against a genome of *E. coli*, and of pieces of 5,000 bases of
another one, with the overlap and one batch after another (`--in-turn`), in turns: wall seconds, with one thread and
with as many as there are cores. The rows must be the same.
"""

import gzip
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .timing import SEQLOOM, SHARED, Timing, runs_in_turns

GENOMES = SHARED / "data" / "genomes"
GENOME, OTHER = "ecoli_k12_mg1655", "ecoli_atcc11775"
READS, READ, PIECE = 150_000, 150, 5_000
BATCH = 1_000_000
"""Bases of a batch."""
ROUNDS = 5


def bases_of(name: str) -> bytes:
    lines = gzip.decompress((GENOMES / f"{name}.fasta.gz").read_bytes()).split(b"\n")
    return b"".join(line for line in lines if not line.startswith(b">"))


def write_queries(path: Path, genome: bytes, places: list[int], length: int) -> None:
    """Stretches of a genome."""
    with path.open("wb") as target:
        for number, place in enumerate(places):
            target.write(b">%d\n%s\n" % (number, genome[place : place + length]))


def measure() -> Iterator[Timing]:
    """Both kinds of queries."""
    if not GENOMES.is_dir():
        print("benchmark pipeline_mode needs ../shared/data/genomes", file=sys.stderr)
        return
    cores = os.cpu_count() or 1
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {cores} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        genome, other = bases_of(GENOME), bases_of(OTHER)
        (folder / "g.fa").write_bytes(b">g\n" + genome + b"\n")
        subprocess.run((*SEQLOOM, "db", "create", "g.duckdb", "g.fa"), cwd=folder, check=True, capture_output=True)
        random = np.random.default_rng(1)
        write_queries(folder / "reads.fa", genome, random.integers(0, len(genome) - READ, READS).tolist(), READ)
        write_queries(folder / "pieces.fa", other, list(range(0, len(other) - PIECE, PIECE // 2)), PIECE)
        for queries in ("reads", "pieces"):
            for threads in sorted({1, cores}):
                yield from compared(folder, queries, threads)


def compared(folder: Path, queries: str, threads: int) -> Iterator[Timing]:
    """Medians of both ways."""
    common = (*SEQLOOM, "megablast", "-q", f"{queries}.fa", "-d", "g.duckdb", "--no-store", "--quiet", "--backend",
              "cpu", "-p", str(threads), "--batch-residues", str(BATCH), "--outfmt", "6 std btop")
    commands = {"overlapping": (*common, "-o", "overlapping.tsv"), "in turn": (*common, "--in-turn", "-o", "turn.tsv")}
    for words in commands.values():
        subprocess.run(words, cwd=folder, check=True, capture_output=True)  # compiles what has to be
    rows = [(folder / name).read_bytes() for name in ("overlapping.tsv", "turn.tsv")]
    if rows[0] != rows[1] or not rows[0]:
        sys.exit(f"{queries} with {threads} threads: rows are others")
    taken = runs_in_turns(commands, folder, ROUNDS)
    ours = statistics.median(taken["overlapping"])
    for what, seconds in taken.items():
        middle = statistics.median(seconds)
        gain = "" if what == "overlapping" else f"; {100 * (middle / ours - 1):+.0f} %"
        yield Timing(f"{queries}, {threads} thread{'s' * (threads > 1)}: {what}", middle,
                     f"{min(seconds):.2f} to {max(seconds):.2f}; {rows[0].count(10):,} rows{gain}")
