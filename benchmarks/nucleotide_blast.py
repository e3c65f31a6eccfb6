"""Nucleotide BLAST beside NCBI's blastn: whole commands, warm, in turns, on one core; same rows, which is checked.

Seconds are those of the processor, as other work on the machine matters less to them; wall seconds stand beside them.

Searches genomes from `../shared/data/genomes`: a piece of 100,000 bases by three tasks, and by `megablast` a genome of
*E. coli* and twenty thousand reads against another such genome.
"""

import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from .timing import SEQLOOM, SHARED, Timing, pinned, used

GENOMES = SHARED / "data" / "genomes"
PACKED = ("ecoli_k12_mg1655", "ecoli_atcc11775", "salmonella_lt2", "human_chr1_first3Mb", "reads100")
SEARCHES = (
    ("megablast", "q100k", "all"), ("blastn", "q100k", "all"), ("dc-megablast", "q100k", "all"),
    ("megablast", "ecoli_atcc11775", "ecoli_k12_mg1655"), ("megablast", "reads100", "ecoli_k12_mg1655"),
)  # fmt: skip
"""Task, queries and database."""
ROUNDS = 3


def prepare(folder: Path) -> None:
    """Put queries and databases into ``folder``."""
    for name in PACKED:
        with gzip.open(GENOMES / f"{name}.fasta.gz") as source, (folder / f"{name}.fasta").open("wb") as target:
            shutil.copyfileobj(source, target)
    shutil.copy(GENOMES / "q100k.fasta", folder)
    with (folder / "all.fasta").open("wb") as target:
        for name in PACKED[:4]:
            target.write((folder / f"{name}.fasta").read_bytes())
    for database in ("all", PACKED[0]):
        for command in ((*SEQLOOM, "db", "create", f"{database}.duckdb", f"{database}.fasta"),
                        ("makeblastdb", "-dbtype", "nucl", "-in", f"{database}.fasta", "-out", database)):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)


def timed(words: Sequence[str], folder: Path) -> tuple[float, float]:
    """Seconds of the processor and of the wall that a command takes."""
    begin = time.perf_counter()
    processor, _ = used(words, folder)
    return processor, time.perf_counter() - begin


def measure() -> Iterator[Timing]:
    """Whole commands of both programs."""
    if not (GENOMES.is_dir() and shutil.which("blastn") and shutil.which("makeblastdb")):
        print("benchmark nucleotide_blast needs ../shared/data/genomes, blastn and makeblastdb", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        core = min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
        for task, query, database in SEARCHES:
            common = ("-task", task, "-query", f"{query}.fasta", "-num_threads", "1", "-outfmt", "6 std btop")
            ours = (*SEQLOOM, "blastn", *common, "-db", f"{database}.duckdb", "--backend", "cpu", "--no-store")
            commands = {
                "seqloom": pinned((core,), (*ours, "-out", "ours.tsv")),
                "blastn": pinned((core,), ("blastn", *common, "-db", database, "-out", "peer.tsv")),
            }
            timed(commands["seqloom"], folder)  # compiles what has to be
            taken: dict[str, list[tuple[float, float]]] = {who: [] for who in commands}
            for _ in range(ROUNDS):
                for who, words in commands.items():
                    taken[who].append(timed(words, folder))
            rows = (folder / "ours.tsv").read_bytes()
            if rows != (folder / "peer.tsv").read_bytes():
                sys.exit(f"{task}, {query}: the rows are not the peer's")
            count = rows.count(b"\n")
            middle = {who: [statistics.median(kind) for kind in zip(*times)] for who, times in taken.items()}
            gain = f"{middle['blastn'][0] / middle['seqloom'][0]:.2f} times the peer's speed; {count:,} equal rows"
            for who, (processor, wall) in middle.items():
                note = f"wall {wall:.2f}"
                yield Timing(f"{task}, {query}: {who}", processor, f"{note}; {gain}" if who == "seqloom" else note)
