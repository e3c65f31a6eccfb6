"""Protein BLAST beside NCBI's blastp: whole commands, warm, in turns, pinned to cores; same rows, which is checked.

Searches `../shared/data/proteins/main.fasta.gz` (20,000 proteins, 9.06 M residues) for a batch of a hundred proteins
and for three single ones, without SEG and with a hit list that cuts nothing, each with composition-based statistics
(mode 2, the default of both) and without. Then the
time of every slot, and the scan's cell updates per second beside the machine's limit: two saturating additions (of as
many cells each as a vector has bytes) in every cycle of the clock, which is measured too, or one where the CPU takes
one.
"""

import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .timing import SEQLOOM, SHARED, Timing, alone, medians, pinned, runs_in_turns

PROTEINS = SHARED / "data" / "proteins"
BATCH = "batch100"
QUERIES = {BATCH: 3, "q127": 7, "q514": 7, "q1042": 7}
"""Queries by file name, and how many rounds they are timed."""
COLUMNS = "6 std qlen slen nident positive gaps score btop"
ENOUGH = "20000"

PROBE = """
import json, sys, time
import numba
import numpy as np
import seqloom

@numba.njit(error_model="numpy")
def chain(steps):
    x = np.uint64(1)
    for _ in range(steps):
        x = (x * np.uint64(6364136223846793005)) ^ np.uint64(1442695040888963407)
    return x

def clock(steps=200_000_000):
    chain(1)
    begin = time.process_time()
    chain(steps)
    return 4 * steps / (time.process_time() - begin)  # a product takes three cycles, an exclusive or one

query, database, threads, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
found = []
for _ in range(rounds + 1):
    begin = time.perf_counter()
    run = seqloom.search("blastp", query, database, backend="cpu", threads=threads, store=False, max_target_seqs=20000)
    found.append((time.perf_counter() - begin, run.slots.to_pylist()))
from seqloom.core.kernels.simd import BYTE_LANES, SATURATES_ON_ONE_PORT, WORKS_BY_HALVES
found = sorted(found[1:], key=lambda pair: pair[0])
print(json.dumps({"seconds": [s for s, _ in found], "slots": found[len(found) // 2][1], "clock": clock(),
                  "cells": BYTE_LANES * (1 if SATURATES_ON_ONE_PORT or WORKS_BY_HALVES else 2)}, default=str))
"""
"""Searches several times in one process, the first time not counted.

Prints seconds, slots, the clock in hertz and how many cells a cycle of it can take.
"""


def prepare(folder: Path) -> int:
    """Put queries and databases into ``folder``; gives the residues of the database."""
    with gzip.open(PROTEINS / "main.fasta.gz") as source, (folder / "main.fasta").open("wb") as target:
        shutil.copyfileobj(source, target)
    for name in QUERIES:
        shutil.copy(PROTEINS / f"{name}.fasta", folder)
    for command in ((*SEQLOOM, "db", "create", "main.duckdb", "main.fasta"),
                    ("makeblastdb", "-dbtype", "prot", "-in", "main.fasta", "-out", "main")):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return residues(folder / "main.fasta")


def residues(path: Path) -> int:
    return sum(len(line.strip()) for line in path.read_text().splitlines() if not line.startswith(">"))


def commands(query: str, threads: int, mode: str) -> dict[str, tuple[str, ...]]:
    """Our command and the peer's for one file of queries."""
    cores = range(threads)
    common = ("-query", f"{query}.fasta", "-max_target_seqs", ENOUGH, "-comp_based_stats", mode, "-seg", "no",
              "-num_threads", str(threads), "-outfmt", COLUMNS)
    ours = (*SEQLOOM, "blastp", *common, "-db", "main.duckdb", "--backend", "cpu", "--no-store", "-out", "ours.tsv")
    peer = ("blastp", *common, "-db", "main", "-out", "peer.tsv")
    return {"seqloom": pinned(cores, ours), "blastp": pinned(cores, peer)}


def compare(folder: Path, query: str) -> int:
    """Check that the last outputs are the same; gives their number of lines."""
    ours, peer = ((folder / name).read_bytes() for name in ("ours.tsv", "peer.tsv"))
    if ours != peer:
        sys.exit(f"{query}: the rows are not the peer's; compare {folder}/ours.tsv and peer.tsv")
    return ours.count(b"\n")


def probe(folder: Path, query: str, threads: int, rounds: int) -> dict:
    words = (sys.executable, "-c", PROBE, f"{query}.fasta", "main.duckdb", str(threads), str(rounds))
    done = subprocess.run(pinned(range(threads), words), cwd=folder, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def measure() -> Iterator[Timing]:
    """Whole commands of both programs, then slots and the share of the machine's limit."""
    if not (PROTEINS.is_dir() and shutil.which("blastp") and shutil.which("makeblastdb")):
        print("benchmark blastp needs ../shared/data/proteins, blastp and makeblastdb", file=sys.stderr)
        return
    print(f"load of the machine before: {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores", file=sys.stderr)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        database = prepare(folder)
        single: dict[str, float] = {}
        for query, rounds in QUERIES.items():
            many = query == BATCH and (os.cpu_count() or 1) > 1
            for mode, threads in (("2", 1), ("2", 2), ("0", 1)) if many else (("2", 1), ("0", 1)):
                both = commands(query, threads, mode)
                runs_in_turns({"": both["seqloom"]}, folder, 1)  # compiles what has to be
                taken = runs_in_turns(both, folder, rounds)
                rows, middle = compare(folder, query), medians(taken)
                where = f"{query}, mode {mode}, {threads} thread{'s' if threads > 1 else ''}"
                speed = f"{middle['blastp'] / middle['seqloom']:.2f} times the peer's speed; {rows:,} equal rows"
                if threads == 1:
                    single[query] = middle["seqloom"]
                else:
                    speed += f"; {single[query] / middle['seqloom']:.2f} times one thread's"
                spread = {what: f"{min(s):.2f} to {max(s):.2f} in {len(s)}" for what, s in taken.items()}
                yield Timing(f"{where}: seqloom", middle["seqloom"], f"{spread['seqloom']}; {speed}")
                yield Timing(f"{where}: blastp", middle["blastp"], spread["blastp"])
        yield from alone("blastp", f"{BATCH}.fasta", "main.duckdb", folder, 5, max_target_seqs=int(ENOUGH))
        for query in QUERIES:
            found = probe(folder, query, 1, 3)
            yield Timing(f"{query}: the search itself", statistics.median(found["seconds"]), "start-up left out")
            if query == BATCH:
                yield from slots(found, residues(folder / f"{query}.fasta") * database)


def slots(found: dict, cells: int) -> Iterator[Timing]:
    """The time of every slot, with what the scan reaches of the machine's limit."""
    limit = found["clock"] * found["cells"]
    for slot in found["slots"]:
        note = f"{slot['records_out']:,} out"
        if slot["slot"] == "seed.scan":
            rate = cells / slot["seconds"]
            note += (f"; {rate / 1e9:.0f} GCUPS, {100 * rate / limit:.0f} % of {limit / 1e9:.0f} "
                     f"({found['cells']} cells a cycle at {found['clock'] / 1e9:.2f} GHz)")
        yield Timing(f"  {slot['slot']}", slot["seconds"], note)
