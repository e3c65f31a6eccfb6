"""One query against a database of Swiss-Prot's size: whole commands beside blastp's, warm and cold, and what they take.

The database is `../shared/data/proteins/main.fasta.gz` sixteen times, all copies but the first with the residues of
every protein shuffled: 320,000 proteins, 144.9 M residues. Single queries are searched without composition-based
statistics, in turns with the peer and pinned to cores; rows must be the same. Then the same by two threads, with the
database's files out of the system's cache, and exact alignment and profile search, which read residues likewise.
"""

import gzip
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from .timing import SEQLOOM, SHARED, Timing, pinned, used

PROTEINS = SHARED / "data" / "proteins"
MODEL = SHARED / "data" / "hmms" / "fn3.hmm"
QUERIES = ("q127", "q514")
COPIES = 16
ROUNDS = 5

Taken = dict[str, list[tuple[float, float, int]]]
"""Seconds on the clock and of the processor, and MiB at most, of each round of each command."""


def write_copies(path: Path) -> None:
    """The database's sequences: always the same."""
    generator = np.random.default_rng(1)
    with gzip.open(PROTEINS / "main.fasta.gz", "rt") as source:
        records = [record.partition("\n") for record in f"\n{source.read()}".split("\n>")[1:]]
    with path.open("w") as target:
        for copy in range(COPIES):
            for header, _, lines in records:
                residues = np.frombuffer(lines.replace("\n", "").encode(), np.uint8)
                name, _, rest = header.partition(" ")
                if copy:
                    residues, name = generator.permutation(residues), f"copy{copy}_{name.replace('|', '_')}"
                text = residues.tobytes().decode()
                target.write(f">{name} {rest}\n")
                target.writelines(f"{text[place : place + 60]}\n" for place in range(0, len(text), 60))


def taken(commands: Mapping[str, Sequence[str]], folder: Path, rounds: int,
          before: Callable[[], None] = lambda: None) -> Taken:
    """What each command takes, in turns."""
    found: Taken = {what: [] for what in commands}
    for _ in range(rounds):
        for what, words in commands.items():
            before()
            begin = time.perf_counter()
            processor, memory = used(words, folder)
            found[what].append((time.perf_counter() - begin, processor, memory))
    return found


def timings(where: str, found: Taken) -> Iterator[Timing]:
    """One for each command: medians, and what they are in those of the last one."""
    middle = {what: [statistics.median(column) for column in zip(*rows, strict=True)] for what, rows in found.items()}
    peer = middle[[*middle][-1]]
    for what, (seconds, processor, memory) in middle.items():
        walls = [row[0] for row in found[what]]
        note = f"{min(walls):.2f} to {max(walls):.2f} in {len(walls)}; processor {processor:.2f} s, {memory:.0f} MiB"
        if middle[what] is not peer:
            note += f"; {peer[0] / seconds:.2f} times the peer's speed, by the processor {peer[1] / processor:.2f}"
        yield Timing(f"{where}: {what}", seconds, note)


def searches(query: str, threads: int) -> dict[str, tuple[str, ...]]:
    """Our command and the peer's."""
    common = ("-query", f"{query}.fasta", "-comp_based_stats", "0", "-num_threads", str(threads), "-outfmt", "6")
    ours = (*SEQLOOM, "blastp", *common, "-db", "many.duckdb", "--backend", "cpu", "--no-store", "-out", "ours.tsv")
    return {"seqloom": pinned(range(threads), ours),
            "blastp": pinned(range(threads), ("blastp", *common, "-db", "many", "-out", "peer.tsv"))}


def forget(folder: Path) -> None:
    """Have the system forget what it holds of the databases' files, which have been written to disk."""
    for path in folder.glob("many.*"):
        file = os.open(path, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def measure() -> Iterator[Timing]:
    """Making the databases, single queries, two threads, a cold cache, and other searches of the same residues."""
    if not (PROTEINS.is_dir() and shutil.which("blastp") and shutil.which("makeblastdb")):
        print("benchmark one_query needs ../shared/data/proteins, blastp and makeblastdb", file=sys.stderr)
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_copies(folder / "many.fasta")
        made = {"db create": pinned((0,), (*SEQLOOM, "db", "create", "many.duckdb", "many.fasta")),
                "makeblastdb": pinned((0,), ("makeblastdb", "-dbtype", "prot", "-in", "many.fasta", "-out", "many"))}
        yield from timings("database", taken(made, folder, 1))
        for query in QUERIES:
            shutil.copy(PROTEINS / f"{query}.fasta", folder)
            taken({"": searches(query, 1)["seqloom"]}, folder, 1)  # compiles what has to be
            for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
                found = taken(searches(query, threads), folder, ROUNDS)
                ours, peer = ((folder / name).read_bytes() for name in ("ours.tsv", "peer.tsv"))
                if ours != peer:
                    sys.exit(f"{query}: the rows are not the peer's")
                yield from timings(f"{query}, {threads} thread{'s' * (threads > 1)}", found)
            if hasattr(os, "posix_fadvise"):
                found = taken(searches(query, 1), folder, 2, lambda: forget(folder))
                yield from timings(f"{query}, files not in memory", found)
        others = {f"sw {query}": ("sw", "-q", f"{query}.fasta", "-d", "many.duckdb") for query in QUERIES}
        others["hmmsearch fn3"] = ("hmmsearch", str(MODEL), "many.duckdb")
        for what, words in others.items():
            command = {"seqloom": pinned((0,), (*SEQLOOM, *words, "--backend", "cpu", "--no-store", "-o", "other"))}
            taken(command, folder, 1)
            yield from timings(what, taken(command, folder, ROUNDS))
