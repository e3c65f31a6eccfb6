"""The experiments of G-BLASTN (Zhao & Chu 2014, sections 3 and 4): measured as a table, drawn as charts.

    python -m benchmarks.nucleotide_blast_paper measure TABLE FASTA … [--parts profile speed sets] [--bases 500000000]
                                                [--threads 16] [--queries 100] [--blastn PROGRAM] [--tiny]
    python -m benchmarks.nucleotide_blast_paper draw TABLE [TABLE …] FOLDER

The database is made of the genomes in FASTA files and random sequences of the same lengths, ``--bases`` in all, or
mutated copies of them (``--targets copies``); queries are pieces of the genomes with 3 % of their bases replaced. The
parts, with the paper's figures and tables:

    profile   what the slots of a search take on one thread of the CPU, for queries of 500 to 100,000 bases (figure 3)
    speed     searches for each of these queries: on a device, on threads of the CPU, and by NCBI's blastn (figure 12)
    sets      sets of ``--queries`` queries of 500, 10,000 and 100,000 bases, by `blastn` of 500 alone as in the paper,
              or of ``--lengths`` (tables 2 to 4): normal mode, in which a batch of ``--batch`` queries is searched and
              written after another, pipeline mode, in which the same batches overlap, and all queries in batches as
              they are cut otherwise; beside blastn

Our searches go from files to files in this process, in which kernels have been compiled and the device has been opened;
blastn's are whole commands. Times are wall seconds, the least of ``--rounds``. All ways have to write the same rows,
which is checked: notes say DIFFERENT where they don't. Without a device the rest is measured all the same, and so it is
without ``blastn`` and ``makeblastdb`` beside it. ``--tiny`` takes a few short sequences, which numba's simulator is
through with in moments (``NUMBA_ENABLE_CUDASIM=1``), with one thread, as simulated devices have one at a time. What
fails is told, and the other parts are measured all the same.

The table has a line per measurement: part, database, bases of a query, what, place, seconds, note; apart by tabs.
``draw`` writes the same as tables for people, and how many times as fast the ways are, beside the charts.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.backends import cuda_available, simulated
from seqloom.core.sequences import SequenceBatch

from .charts import save_bars, save_chart, save_groups
from .measurements import Row, carry_out, commands, drawn, written
from .nucleotide_blast_gpu import among_random, copies, pieces
from .smith_waterman_gpu import records, write_fasta

TASKS = ("megablast", "blastn")
LENGTHS = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
"""Of the queries of ``profile`` and ``speed``."""
SETS = {"megablast": (500, 10_000, 100_000), "blastn": (500,)}
"""Lengths of the queries of a set."""
PHASES = {"index": "setting up", "seed": "scan and look-up", "sort": "scan and look-up",
          "extend.ungapped": "ungapped extension", "extend.gapped": "gapped extension",
          "extend.greedy": "gapped extension", "extend.traceback": "traceback", "extend.greedy-traceback": "traceback"}
"""What slots do, by their names or what comes before the dot."""
OTHER = "other"
NORMAL, PIPELINE, AT_ONCE = "normal mode", "pipeline mode", "batches as usual"
_TINY = (60, 80)


@dataclass(frozen=True)
class Way:
    """A way to search: back end, threads, and one of the modes."""

    backend: str
    threads: int
    mode: str = ""

    def __str__(self) -> str:
        return ", ".join([self.backend, f"{self.threads} thread{'s' * (self.threads > 1)}", *filter(None, [self.mode])])


class Bench:
    """A database, in files, and how often things are measured.

    Args:
        folder: where files are made.
        own: what queries are drawn from.
        targets: the database.
        blastn: the peer's program.
    """

    def __init__(self, folder: Path, own: SequenceBatch, targets: SequenceBatch, arguments: argparse.Namespace) -> None:
        self.folder, self.name, self.tiny = folder, arguments.name, arguments.tiny
        self.threads, self.rounds = arguments.threads, 1 if arguments.tiny else arguments.rounds
        self.tasks, self.batch = arguments.tasks, arguments.batch
        self.number = 2 if self.tiny else arguments.queries
        self.lengths = _TINY if self.tiny else LENGTHS
        self.sets: Mapping[str, Sequence[int]] = dict.fromkeys(TASKS, self.lengths[:1]) if self.tiny else {
            task: arguments.lengths or SETS[task] for task in TASKS}
        self._own, self._targets, self._generator = own, targets, np.random.default_rng(11)
        self.blastn = beside(arguments.blastn)
        self._warm = set[tuple[str, str]]()

    @cached_property
    def database(self) -> Path:
        """A database file of ours; that of blastn lies beside it."""
        from seqloom import Database

        write_fasta(self.folder / "targets.fasta", self._targets)
        Database.create(self.folder / "targets.duckdb", self.folder / "targets.fasta").close()
        if self.blastn:
            made = [str(Path(self.blastn).with_name("makeblastdb")), "-dbtype", "nucl", "-in", "targets.fasta", "-out",
                    "targets"]
            subprocess.run(made, cwd=self.folder, check=True, capture_output=True)
        return self.folder / "targets.duckdb"

    def drawn(self, number: int, length: int) -> Path:
        """A file of queries."""
        path = self.folder / f"{number}x{length}.fasta"
        if not path.exists():
            write_fasta(path, pieces(self._own, number, length, self._generator))
        return path

    def search(self, task: str, queries: Path, backend: str, threads: int, **more: Any) -> tuple[float, str, Any]:
        """Wall seconds of a search, the rows that it wrote, and the run."""
        import seqloom
        from seqloom.outputs import Output

        path = self.folder / "rows.tsv"
        path.unlink(missing_ok=True)
        begin = time.perf_counter()
        run = seqloom.search(task, str(queries), str(self.database), task=task, backend=backend, threads=threads,
                             store=False, outputs=[Output("6", lambda run: run.write(path, "6"))], **more)
        return time.perf_counter() - begin, path.read_text(), run

    def peer(self, task: str, queries: Path, threads: int) -> tuple[float, str]:
        """The same of blastn."""
        path = self.folder / "peer.tsv"
        words = [self.blastn, "-task", task, "-query", str(queries), "-db", self.database.stem, "-outfmt", "6", "-out",
                 str(path), "-num_threads", str(threads)]
        begin = time.perf_counter()
        subprocess.run(words, cwd=self.folder, check=True, capture_output=True)
        return time.perf_counter() - begin, path.read_text()

    def best(self, task: str, queries: Path, way: Way) -> tuple[float, str]:
        """The least seconds of some searches, and the rows of the last one."""
        if way.backend == "blastn":
            taken = [self.peer(task, queries, way.threads) for _ in range(self.rounds)]
        else:
            cut: dict[str, Any] = {NORMAL: {"in_turn": True, "batch_queries": self.batch},
                                   PIPELINE: {"batch_queries": self.batch}}.get(way.mode, {})
            self.warm(task, way.backend)
            taken = [self.search(task, queries, way.backend, way.threads, **cut)[:2] for _ in range(self.rounds)]
        return min(seconds for seconds, _ in taken), taken[-1][1]

    def warm(self, task: str, backend: str) -> None:
        """Search once, so that kernels are compiled and the device is open."""
        if not self.tiny and (task, backend) not in self._warm:
            self.search(task, self.drawn(1, self.lengths[0]), backend, self.threads)
            self._warm.add((task, backend))

    def compared(self, part: str, length: int, task: str, queries: Path, ways: Sequence[Way]) -> Iterator[Row]:
        """A row for each way, held to the rows of the first one."""
        expected: str | None = None
        normal: dict[str, float] = {}
        for way in ways:
            seconds, rows = self.best(task, queries, way)
            expected = rows if expected is None else expected
            notes = [f"{rows.count(chr(10)):,} rows"]
            if way.backend == "blastn":
                theirs, ours = Counter(rows.splitlines()), Counter(expected.splitlines())
                if theirs != ours:
                    notes.insert(0, f"DIFFERENT: {(theirs - ours).total()} and {(ours - theirs).total()} of one alone")
            elif rows != expected:
                notes.insert(0, "DIFFERENT")
            if way.mode == NORMAL:
                normal[way.backend] = seconds
            elif way.mode == PIPELINE:
                notes.append(f"pipeline {100 * (normal[way.backend] / seconds - 1):+.0f} %")
            yield Row(part, self.name, length, task, str(way), seconds, "; ".join(notes))

    @property
    def backends(self) -> tuple[str, ...]:
        return ("cuda", "cpu") if cuda_available() else ("cpu",)

    @property
    def peers(self) -> list[Way]:
        """blastn with one thread and with all, where it is there."""
        return [Way("blastn", threads) for threads in self.one_and_all] if self.blastn else []

    @property
    def one_and_all(self) -> list[int]:
        return sorted({1, self.threads})


def beside(blastn: str) -> str:
    """Where blastn is, if makeblastdb is there as well, or ""."""
    program = shutil.which(blastn)
    if program and Path(program).with_name("makeblastdb").exists():
        return program
    print(f"without {blastn} and makeblastdb beside it: install BLAST+, or say where it is (--blastn)", file=sys.stderr)
    return ""


def profile(bench: Bench) -> Iterator[Row]:
    """Figure 3."""
    for task in bench.tasks:
        bench.warm(task, "cpu")
        for length in bench.lengths:
            seconds, rows, run = min((bench.search(task, bench.drawn(1, length), "cpu", 1, in_turn=True)
                                      for _ in range(bench.rounds)), key=lambda taken: taken[0])
            phases = dict.fromkeys([*PHASES.values(), OTHER], 0.0)
            for slot in run.slots.to_pylist():
                phases[phase_of(slot["slot"])] += slot["seconds"]
            phases[OTHER] += max(0.0, seconds - sum(phases.values()))
            for phase, taken in phases.items():
                yield Row("profile", bench.name, length, phase, task, taken,
                          f"whole search {seconds:.4f} s, {rows.count(chr(10)):,} rows")


def phase_of(slot: str) -> str:
    """What a slot does."""
    return PHASES.get(slot, PHASES.get(slot.split(".")[0], OTHER))


def speed(bench: Bench) -> Iterator[Row]:
    """Figure 12."""
    ways = [*(Way("cuda", bench.threads) for backend in bench.backends if backend == "cuda"),
            *(Way("cpu", threads) for threads in reversed(bench.one_and_all)), *bench.peers]
    for task in bench.tasks:
        for length in bench.lengths:
            yield from bench.compared("speed", length, task, bench.drawn(1, length), ways)


def sets(bench: Bench) -> Iterator[Row]:
    """Tables 2 to 4."""
    ways = [Way(backend, bench.threads, mode) for backend in bench.backends for mode in (NORMAL, PIPELINE, AT_ONCE)]
    ways += [Way("cpu", 1, AT_ONCE)] * (bench.threads > 1) + bench.peers
    for task in bench.tasks:
        for length in bench.sets[task]:
            yield from bench.compared("sets", length, task, bench.drawn(bench.number, length), ways)


PARTS: Mapping[str, Callable[[Bench], Iterable[Row]]] = {"profile": profile, "speed": speed, "sets": sets}


def small_for_the_simulator() -> None:
    """Few threads and little room at first, so that a simulated device is done in moments."""
    from seqloom.plugins.common import radix_cuda
    from seqloom.plugins.nucleotide_blast import scan_cuda

    scan_cuda.THREADS, scan_cuda.PER_THREAD, scan_cuda.HITS = 4, 4, 3
    radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD = 5, 2


def measure(arguments: argparse.Namespace) -> int:
    """Write the table; how many parts failed."""
    if simulated():
        arguments.threads = 1
        small_for_the_simulator()
    if not cuda_available():
        print("there is no CUDA device: the CPU's share is measured", file=sys.stderr)
    generator = np.random.default_rng(7)
    if arguments.tiny:
        texts = ["".join(generator.choice(list("ACGT"), length)) for length in (110, 90)]
    elif not arguments.fasta:
        raise SystemExit("say which FASTA files have the genomes")
    else:
        texts = [text for path in arguments.fasta for text in records(path)]
    own = SequenceBatch.of(NUCLEOTIDE, texts)
    make = copies if arguments.targets == "copies" else among_random
    targets = make(texts, 2 * own.total_residues if arguments.tiny else arguments.bases, generator)
    arguments.name = arguments.name or ("tiny" if arguments.tiny else arguments.targets)
    print(f"{arguments.name}: {len(targets):,} sequences, {targets.total_residues:,} bases", flush=True)
    with tempfile.TemporaryDirectory() as folder, arguments.table.open("w", encoding="utf-8") as table:
        bench = Bench(Path(folder), own, targets, arguments)
        return written(table, bench.name, {part: partial(PARTS[part], bench) for part in arguments.parts})


TIMES = "times as fast"


def draw(arguments: argparse.Namespace) -> int:
    """Draw the charts, and write the table anew."""
    return drawn(arguments, "nucleotide_blast_paper", draw_part)


def draw_part(folder: Path, name: str, part: str, database: str, rows: list[Row]) -> str | None:
    """The charts of a part, and for sets of queries a table of the same."""
    if part == "profile":
        for task in dict.fromkeys(row.place for row in rows):
            save_profile(folder / f"{name}_{task}.svg", f"{task} by length of the query, one thread, {database}",
                         [row for row in rows if row.place == task])
        return None
    tasks = {task: [row for row in rows if row.what == task] for task in dict.fromkeys(row.what for row in rows)}
    if part == "sets":
        for task, mine in tasks.items():
            names = [f"{query:,}" for query in dict.fromkeys(row.query for row in mine)]
            save_groups(folder / f"{name}_{task}.svg", f"{task}: sets of queries, {database}", "bases of a query",
                        TIMES, names, ratios(mine))
        return "\n".join(speed_ups(task, mine) for task, mine in tasks.items())
    for task, mine in tasks.items():
        first = mine[0].place
        ours = {row.query: row.seconds for row in mine if row.place == first}
        times: dict[str, list[tuple[float, float]]] = {}
        for row in mine:
            if row.place != first:
                times.setdefault(row.place, []).append((row.query, row.seconds / ours[row.query]))
        if times:
            save_chart(folder / f"{name}_{task}.svg", f"{task}: {first} beside the others, {database}",
                       "bases of the query", f"{TIMES} as", times)
    return None


def save_profile(path: Path, title: str, rows: Sequence[Row]) -> None:
    """Figure 3: bars of shares."""
    seconds = {(row.what, row.query): row.seconds for row in rows}
    queries = list(dict.fromkeys(row.query for row in rows))
    whole = {query: sum(row.seconds for row in rows if row.query == query) for query in queries}
    parts = {phase: [100 * seconds[phase, query] / whole[query] for query in queries]
             for phase in dict.fromkeys(row.what for row in rows)}
    save_bars(path, title, "bases of the query", "per cent of the time", [f"{query:,}" for query in queries], parts, {})


def by_place(rows: Sequence[Row]) -> dict[str, dict[int, float]]:
    """Seconds of each way by the bases of a query."""
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        found.setdefault(row.place, {})[row.query] = row.seconds
    return found


def ratios(rows: Sequence[Row]) -> dict[str, list[float]]:
    """How many times as fast as their peers the modes of the first back end are, by set.

    Peers are blastn's, or the CPU's where there is none.
    """
    found, queries = by_place(rows), list(dict.fromkeys(row.query for row in rows))
    backend = rows[0].place.split(",")[0]
    ours = {place: times for place, times in found.items() if place.startswith(backend) and place.endswith("mode")}
    peers = {place: times for place, times in found.items() if place.startswith("blastn")} or {
        place: times for place, times in found.items() if place.startswith("cpu") and place.endswith(AT_ONCE)}
    return {f"{place.split(', ')[-1]} beside {other.removesuffix(f', {AT_ONCE}')}": [
        theirs.get(query, float("nan")) / times.get(query, float("nan")) for query in queries]
        for other, theirs in peers.items() for place, times in ours.items()}


def speed_ups(task: str, rows: Sequence[Row]) -> str:
    """Tables 2 to 4 for people: a line for each set, with what the pipeline gains."""
    found, times, none = by_place(rows), ratios(rows), float("nan")
    backends = [place.removesuffix(f", {PIPELINE}") for place in found if place.endswith(PIPELINE)]
    heads = ["bases of a query", *times, *(f"pipeline's gain, {backend}" for backend in backends)]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for n, query in enumerate(dict.fromkeys(row.query for row in rows)):
        gains = (found[f"{backend}, {NORMAL}"].get(query, none) / found[f"{backend}, {PIPELINE}"].get(query, none) - 1
                 for backend in backends)
        cells = [f"{query:,}", *(f"{values[n]:.2f}" for values in times.values()),
                 *(f"{100 * gain:+.0f} %" for gain in gains)]
        lines.append(f"| {' | '.join(cells)} |")
    return f"{task}, {TIMES}:\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    parser, command = commands(__doc__, measure, draw)
    command.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    command.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    command.add_argument("--bases", type=int, default=500_000_000, help="of the database")
    command.add_argument("--targets", default="random", choices=("random", "copies"),
                         help="what is searched beside the genomes")
    command.add_argument("--name", default="", help="of the database in tables; else what it is made of")
    command.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    command.add_argument("--queries", type=int, default=100, metavar="NUMBER", help="of each set")
    command.add_argument("--lengths", type=int, nargs="+", help="of the queries of sets")
    command.add_argument("--batch", type=int, default=1, help="queries of a batch of normal and pipeline mode")
    command.add_argument("--blastn", default="blastn", help="the peer's program")
    command.add_argument("--rounds", type=int, default=2)
    command.add_argument("--tiny", action="store_true", help="a few short sequences, once")
    carry_out(parser)


if __name__ == "__main__":
    main()
