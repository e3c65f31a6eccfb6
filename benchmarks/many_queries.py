"""A great many short queries beside what is used for them: reads by exact matches, short peptides by blastp and sw.

Reads are exact stretches of 100 bases of *E. coli*, of both strands: `mum` beside mummer, `exact` beside bowtie
(`-v 0 -a`), as text and as Parquet, 200,000 and a million. Peptides are stretches of 8 to 30 residues of proteins:
`blastp` beside blastp, `sw` beside ssearch36. Whole commands on one core, in turns, processor seconds and the most
memory; rows are compared where both programs print the same.
"""

import gzip
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from .timing import SEQLOOM, SHARED, Timing, medians, pinned, used

GENOME = SHARED / "data" / "genomes" / "ecoli_k12_mg1655.fasta.gz"
PROTEINS = SHARED / "data" / "proteins" / "small.fasta"
READ = 100
READS = (200_000, 1_000_000)
PEPTIDES = {"blastp": 20_000, "sw": 10_000}
ROUNDS = 3


def write_reads(genome: bytes, path: Path, count: int) -> None:
    """Exact stretches of both strands; the same at every call."""
    random = np.random.default_rng(1)
    forward = np.frombuffer(genome, np.uint8)
    other = np.zeros(256, np.uint8)
    other[[*b"ACGT"]] = [*b"TGCA"]
    with path.open("wb") as target:
        for number, (place, turned) in enumerate(zip(random.integers(0, len(forward) - READ, count).tolist(),
                                                     (random.random(count) < 0.5).tolist(), strict=True)):
            read = forward[place : place + READ]
            target.write(b">%d\n%s\n" % (number, (other[read[::-1]] if turned else read).tobytes()))


def write_peptides(proteins: Sequence[str], path: Path, count: int) -> None:
    """Stretches of proteins of 8 to 30 residues; the same at every call."""
    random = np.random.default_rng(2)
    long = [protein for protein in proteins if len(protein) >= 30]
    with path.open("w") as target:
        for number, which in enumerate(random.integers(0, len(long), count).tolist()):
            length = int(random.integers(8, 31))
            begin = int(random.integers(0, len(long[which]) - length + 1))
            target.write(f">{number}\n{long[which][begin : begin + length]}\n")


def turns(what: str, commands: Mapping[str, Sequence[str]], folder: Path, count: int, rounds: int) -> Iterator[Timing]:
    """Median processor seconds of commands in turns, and how they compare with ours, the first."""
    there = {name: pinned((0,), words) for name, words in commands.items() if shutil.which(words[0])}
    taken: dict[str, list[tuple[float, int]]] = {name: [] for name in there}
    for _ in range(rounds):
        for name, words in there.items():
            taken[name].append(used(words, folder))
    seconds = medians({name: [run[0] for run in runs] for name, runs in taken.items()})
    ours = next(iter(seconds.values()))
    for name, runs in taken.items():
        times = "" if seconds[name] == ours else f"{seconds[name] / ours:.2f} times as long; "
        yield Timing(f"{what}: {name}", seconds[name],
                     f"{times}{count / seconds[name]:,.0f} a second; {max(run[1] for run in runs)} MiB")


def of_reads(folder: Path, count: int, rounds: int) -> Iterator[Timing]:
    genome = b"".join(gzip.decompress(GENOME.read_bytes()).split(b"\n")[1:])
    (folder / "g.fa").write_bytes(b">g\n" + genome + b"\n")
    write_reads(genome, folder / "r.fa", count)
    run(folder, *SEQLOOM, "db", "create", "g.duckdb", "g.fa")
    run(folder, *SEQLOOM, "index", "build", "g.duckdb")
    same = ("-q", "r.fa", "-d", "g.duckdb", "--backend", "cpu", "--no-store", "--quiet", "-p", "1")
    matching = ("-maxmatch", "-l", str(READ), "-b", "-c")
    both: dict[str, Sequence[str]] = {"seqloom": (*SEQLOOM, "mum", *matching, *same, "-o", "ours.txt")}
    if shutil.which("mummer"):
        both["mummer"] = ("sh", "-c", f"exec mummer {' '.join(matching)} g.fa r.fa > peer.txt")
    yield from turns(f"mum, {count:,} reads", both, folder, count, rounds)
    if "mummer" in both and (folder / "ours.txt").read_bytes() != (folder / "peer.txt").read_bytes():
        sys.exit(f"mum of {count:,} reads: the lines are not mummer's")
    exact = (*SEQLOOM, "exact", "--both", *same)
    commands = {"seqloom": (*exact, "-o", "exact.tsv"), "Parquet": (*exact, "-f", "parquet", "-o", "exact.parquet")}
    if shutil.which("bowtie"):
        run(folder, "bowtie-build", "-q", "g.fa", "g")
        commands["bowtie"] = ("bowtie", "-v", "0", "-a", "-f", "-p", "1", "--quiet", "g", "r.fa", "bowtie.txt")
    yield from turns(f"exact, {count:,} reads", commands, folder, count, rounds)
    if "bowtie" in commands:
        ours, peers = ((folder / name).read_bytes().count(b"\n") for name in ("exact.tsv", "bowtie.txt"))
        if ours != peers:
            sys.exit(f"exact of {count:,} reads: {ours:,} rows, bowtie has {peers:,}")


def of_peptides(folder: Path, rounds: int) -> Iterator[Timing]:
    text = PROTEINS.read_text()
    (folder / "p.fa").write_text(text)
    proteins = ["".join(record.split("\n")[1:]) for record in text.split(">")[1:]]
    run(folder, *SEQLOOM, "db", "create", "p.duckdb", "p.fa")
    for pipeline, count in PEPTIDES.items():
        write_peptides(proteins, folder / "q.fa", count)
        commands: dict[str, Sequence[str]] = {"seqloom": (
            *SEQLOOM, pipeline, "-q", "q.fa", "-d", "p.duckdb", "--backend", "cpu", "--no-store", "--quiet", "-p", "1",
            "-e", "0.001", "-o", "ours.tsv")}
        if pipeline == "blastp" and shutil.which("blastp"):
            run(folder, "makeblastdb", "-in", "p.fa", "-dbtype", "prot", "-out", "p")
            commands["blastp"] = ("blastp", "-query", "q.fa", "-db", "p", "-evalue", "0.001", "-outfmt", "6",
                                  "-num_threads", "1", "-out", "peer.tsv")
        if pipeline == "sw" and shutil.which("ssearch36"):
            commands["ssearch36"] = ("ssearch36", "-q", "-T", "1", "-E", "0.001", "-m", "8", "-O", "peer.tsv", "q.fa",
                                     "p.fa")
        yield from turns(f"{pipeline}, {count:,} peptides", commands, folder, count, rounds)
        if pipeline == "blastp" and "blastp" in commands:
            ours, peers = ((folder / name).read_bytes() for name in ("ours.tsv", "peer.tsv"))
            if ours != peers:
                sys.exit(f"blastp of {count:,} peptides: the rows are not the peer's")


def run(folder: Path, *words: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True)


def measure() -> Iterator[Timing]:
    """Reads and peptides; the quicker searches in turns three times, those of a million reads once."""
    if not GENOME.exists():
        return
    with tempfile.TemporaryDirectory() as name:
        for count in READS:
            yield from of_reads(Path(name), count, ROUNDS if count < 500_000 else 1)
            for database in Path(name).glob("g.duckdb*"):
                shutil.rmtree(database) if database.is_dir() else database.unlink()
        yield from of_peptides(Path(name), 1)
