"""Nucleotide BLAST beside NCBI's blastn: whole commands, warm, in turns, on one core; same rows, which is checked.

Searches genomes from `../shared/data/genomes`: a piece of 100,000 bases by three tasks, and by `megablast` a genome of
*E. coli* and twenty thousand reads against another such genome.
"""

import gzip
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .timing import SEQLOOM, SHARED, Timing, medians, pinned, runs_in_turns

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


def measure() -> Iterator[Timing]:
    """Whole commands of both programs."""
    if not (GENOMES.is_dir() and shutil.which("blastn") and shutil.which("makeblastdb")):
        print("benchmark nucleotide_blast needs ../shared/data/genomes, blastn and makeblastdb", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        for task, query, database in SEARCHES:
            common = ("-task", task, "-query", f"{query}.fasta", "-num_threads", "1", "-outfmt", "6 std btop")
            commands = {
                "seqloom": pinned((0,), (*SEQLOOM, "blastn", *common, "-db", f"{database}.duckdb", "--backend", "cpu",
                                         "--no-store", "-out", "ours.tsv")),
                "blastn": pinned((0,), ("blastn", *common, "-db", database, "-out", "peer.tsv")),
            }
            runs_in_turns({"": commands["seqloom"]}, folder, 1)  # compiles what has to be
            middle = medians(runs_in_turns(commands, folder, ROUNDS))
            rows = (folder / "ours.tsv").read_bytes()
            if rows != (folder / "peer.tsv").read_bytes():
                sys.exit(f"{task}, {query}: the rows are not the peer's")
            count = rows.count(b"\n")
            note = f"{middle['blastn'] / middle['seqloom']:.2f} times the peer's speed; {count:,} equal rows"
            yield Timing(f"{task}, {query}: seqloom", middle["seqloom"], note)
            yield Timing(f"{task}, {query}: blastn", middle["blastn"])
