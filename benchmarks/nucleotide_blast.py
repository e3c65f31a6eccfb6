"""Nucleotide BLAST beside NCBI's blastn: whole commands, warm, in turns, on one core; same rows, which is checked.

Searches genomes from `../shared/data/genomes`: a piece of 100,000 bases, a piece of human chromosome 1 and a query of
500 bases by three tasks; a genome of *E. coli* by two, and twenty thousand reads by `megablast`, against another such
genome.
Times are seconds of the processor, which other work on the machine changes less than those of the clock; notes have the
most memory. Then what two threads gain, a million reads of 100 bases beside blastn and minimap2, and the scan alone.
"""

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.pipeline import compose
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry

from .timing import SEQLOOM, SHARED, Timing, alone, medians, pinned, used

GENOMES = SHARED / "data" / "genomes"
PACKED = ("ecoli_k12_mg1655", "ecoli_atcc11775", "salmonella_lt2", "human_chr1_first3Mb", "reads100")
TASKS = ("megablast", "blastn", "dc-megablast")
QUERIES = ("q100k", "qhuman", "q500")
SEARCHES = (
    *((task, query, "all") for query in QUERIES for task in TASKS),
    ("megablast", "ecoli_atcc11775", "ecoli_k12_mg1655"), ("blastn", "ecoli_atcc11775", "ecoli_k12_mg1655"),
    ("megablast", "reads100", "ecoli_k12_mg1655"),
)  # fmt: skip
"""Task, queries and database."""
SHARED_BY_TWO = SEARCHES[1], *SEARCHES[-2:]
"""What two threads are timed with beside one."""
APART = {SEARCHES[-2]: 2}
"""Rows that only one of both programs may have: blastn splits so long a query, and finds an alignment where pieces meet
from another place."""
ROUNDS = 3
QUERY, SCANNED = 10_000, 64_000_000
"""Bases of the query and of the targets of which the scan alone is timed."""
MILLION, READ, WRONG = 1_000_000, 100, 0.01
"""Reads, their bases, and the share of them that are replaced."""


def prepare(folder: Path) -> None:
    """Put queries and databases into ``folder``."""
    for name in PACKED:
        with gzip.open(GENOMES / f"{name}.fasta.gz") as source, (folder / f"{name}.fasta").open("wb") as target:
            shutil.copyfileobj(source, target)
    for name in QUERIES:
        shutil.copy(GENOMES / f"{name}.fasta", folder)
    with (folder / "all.fasta").open("wb") as target:
        for name in PACKED[:4]:
            target.write((folder / f"{name}.fasta").read_bytes())
    for database in ("all", PACKED[0]):
        for command in ((*SEQLOOM, "db", "create", f"{database}.duckdb", f"{database}.fasta"),
                        ("makeblastdb", "-dbtype", "nucl", "-in", f"{database}.fasta", "-out", database)):
            subprocess.run(command, cwd=folder, check=True, capture_output=True)


def write_reads(genome: Path, path: Path, count: int) -> None:
    """Reads of a genome's forward strand at random places, with some bases replaced; the same at every call."""
    random = np.random.default_rng(1)
    bases = np.frombuffer("".join(genome.read_text().splitlines()[1:]).encode(), np.uint8)
    with path.open("w") as target:
        for number, place in enumerate(random.integers(0, len(bases) - READ, count).tolist()):
            read = bases[place : place + READ].copy()
            wrong = random.random(READ) < WRONG
            read[wrong] = np.frombuffer(b"ACGT", np.uint8)[random.integers(0, 4, int(wrong.sum()))]
            target.write(f">{number}\n{read.tobytes().decode()}\n")


def commands(task: str, query: str, database: str) -> dict[str, tuple[str, ...]]:
    """Our command and the peer's, on one core."""
    common = ("-task", task, "-query", f"{query}.fasta", "-num_threads", "1", "-outfmt", "6 std btop")
    return {
        "seqloom": pinned((0,), (*SEQLOOM, "blastn", *common, "-db", f"{database}.duckdb", "--backend", "cpu",
                                 "--no-store", "-out", "ours.tsv")),
        "blastn": pinned((0,), ("blastn", *common, "-db", database, "-out", "peer.tsv")),
    }


def compared(folder: Path, task: str, query: str, database: str, rounds: int, apart: int = 0) -> Iterator[Timing]:
    """Median processor seconds of both programs over some rounds, in each of which both run once.

    apart: rows that only one of them may have; what blastn finds for a query depends on those it is searched with, and
        on where it splits it.
    """
    both = commands(task, query, database)
    taken: dict[str, list[tuple[float, int]]] = {what: [] for what in both}
    for _ in range(rounds):
        for what, words in both.items():
            taken[what].append(used(words, folder))
    rows, theirs = (folder / "ours.tsv").read_bytes(), (folder / "peer.tsv").read_bytes()
    others = len({*rows.splitlines()} ^ {*theirs.splitlines()}) if apart else int(rows != theirs)
    if others > apart:
        sys.exit(f"{task}, {query}: the rows are not the peer's")
    seconds = medians({what: [run[0] for run in runs] for what, runs in taken.items()})
    memory = {what: max(run[1] for run in runs) for what, runs in taken.items()}
    speed = f"{seconds['blastn'] / seconds['seqloom']:.2f} times the peer's speed"
    count = rows.count(b"\n")
    equal = f"{count:,} rows, {others} of which only one of both has" if others else f"{count:,} equal rows"
    note = f"{speed}; {equal}; {memory['seqloom']} MiB"
    yield Timing(f"{task}, {query}: seqloom", seconds["seqloom"], note)
    yield Timing(f"{task}, {query}: blastn", seconds["blastn"], f"{memory['blastn']} MiB")


def of_a_million(folder: Path) -> Iterator[Timing]:
    """A million reads by `megablast`, once each, and through minimap2 where it is installed."""
    genome = PACKED[0]
    write_reads(folder / f"{genome}.fasta", folder / "million.fasta", MILLION)
    yield from compared(folder, "megablast", "million", genome, 1, apart=20)
    if shutil.which("minimap2"):
        words = ("minimap2", "-x", "sr", "-t", "1", f"{genome}.fasta", "million.fasta")
        seconds, memory = used(pinned((0,), words), folder)
        yield Timing("million: minimap2", seconds, f"{MILLION / seconds:,.0f} reads a second; {memory} MiB")


def scans() -> Iterator[Timing]:
    """The seed stage of each task alone: a random query, and random targets that nothing is like."""
    names, random = registry(), np.random.default_rng(2)
    queries, targets = (SequenceBatch.of(NUCLEOTIDE, [random.integers(0, 4, count).astype(np.uint8)])
                        for count in (QUERY, SCANNED))
    for task in TASKS:
        plan = compose(names, names.pipeline(task), {}, "cpu")
        context = Context(queries=queries, targets=targets, options=plan.options)
        made = [filled.stage.run(context, queries if filled.stage.side == "query" else targets)
                for filled in plan.indexes("query") + plan.indexes("target")]
        context = replace(context, indexes={index.kind: index for index in made})
        [stage] = [filled.stage for filled in plan.stages if filled.slot.name == "seed.words"]
        taken = []
        for _ in range(1 + ROUNDS):
            begin = time.thread_time()
            seeds = stage.run(context, None)
            taken.append(time.thread_time() - begin)
        seconds = min(taken)
        yield Timing(f"{task}: scan for {QUERY:,} bases", seconds,
                     f"{SCANNED / seconds / 1e9:.2f} G bases/s; {len(seeds):,} hits")


def measure() -> Iterator[Timing]:
    """Whole commands of both programs, two threads, and many reads."""
    if not (GENOMES.is_dir() and shutil.which("blastn") and shutil.which("makeblastdb")):
        print("benchmark nucleotide_blast needs ../shared/data/genomes, blastn and makeblastdb", file=sys.stderr)
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", file=sys.stderr)
    yield from scans()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        for task, query, database in SEARCHES:
            used(commands(task, query, database)["seqloom"], folder)  # compiles what has to be
            yield from compared(folder, task, query, database, ROUNDS, APART.get((task, query, database), 0))
        for task, query, database in SHARED_BY_TWO:
            options = {"task": task} if task == "blastn" else {}
            for timing in alone(task, f"{query}.fasta", f"{database}.duckdb", folder, ROUNDS, **options):
                yield Timing(f"{query}, {timing.what}", timing.seconds, timing.note)
        yield from of_a_million(folder)
