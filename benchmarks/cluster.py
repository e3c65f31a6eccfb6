"""A search on worker processes of this machine beside one process, and what the model foretells of larger clusters.

    python -m benchmarks cluster                      commands, 1, 2 and 4 workers beside one process, costs of a unit
    python -m benchmarks.cluster costs                what the model rests on, measured here
    python -m benchmarks.cluster foretell [FOLDER]    its table, and its chart in a folder

Costs are processor seconds, so that other work on the machine doesn't count; they come from two runs of the same search
that is cut into few and into many units.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqloom.core.engine.balance import Costs, Work, best_cut, efficiency, foretold

from .charts import save_chart
from .timing import SAMPLE, SEQLOOM, SHARED, Timing

ROUNDS = 3
COPIES = 8
"""Of the queries, for work of some 20 seconds."""
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
DATABASES = (10**8, 10**9, 10**10, 10**11, 10**12)
"""Residues; Swiss-Prot has some 2 × 10^8, all known proteins some 10^11."""
CELLS_PER_SECOND = 1.4e11
"""Of blastp by one thread of the machine of docs/performance/cluster.md."""
QUERIES, QUERY_RESIDUES = 1000, 350_000
FINEST = 100_000
"""Units that a foretold run may have."""
PAPER = Work(256, 256 * 287, 90_588_910, 2280)
PAPER_COSTS = Costs(start=0, unit=0.7, caller=0.03, load=0, prepare=0, reduce=0, link=1e8)
"""Munekawa, Ino and Hagihara (2010), 6.3: 256 queries take one node some 38 minutes, and three minutes more for 256
tasks by a master; databases are on each node before."""
PAPER_NODES, PAPER_QUERIES = (1, 2, 4, 8, 16, 32), (8, 16, 32, 64, 128, 256)
MEASURED = Costs(start=1.5, unit=0.024, caller=0.0065, load=3.3e-9, prepare=1.5e-6, reduce=5e-6, link=1e8)
"""As ``costs`` gave them; a link of a gigabit a second."""


def data() -> tuple[Path, Path]:
    """Queries and targets."""
    large = SHARED / "data" / "proteins"
    return (large / "batch100.fasta", large / "main.fasta.gz") if large.is_dir() else (SAMPLE / "proteins.fasta",) * 2


def measure() -> Iterator[Timing]:
    """Whole commands; then, on clusters that are there, work of some 20 seconds by 1, 2 and 4 workers of a thread each,
    as long as there are cores for them; what a unit costs beside its work; and the start of two workers."""
    yield from _commands()
    yield from _scaling()
    yield from _units()


def _commands() -> Iterator[Timing]:
    """Wall and processor seconds of whole commands, in turns."""
    queries, targets = data()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([*SEQLOOM, "db", "create", "t.duckdb", str(targets), "--quiet"], cwd=folder, check=True)
        words = (*SEQLOOM, "blastp", "-q", str(queries), "-d", "t.duckdb", "--no-store", "-o", "o.tsv", "--quiet")
        ways = {"one process": words, "local:1": (*words, "--cluster", "local:1"),
                "local:2": (*words, "--cluster", "local:2")}
        taken: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, command in ways.items():
                before, begin = _children(), time.perf_counter()
                subprocess.run(command, cwd=folder, check=True, capture_output=True)
                taken[way].append((time.perf_counter() - begin, _children() - before))
        for way, times in taken.items():
            wall, processor = (statistics.median(some) for some in zip(*times, strict=True))
            yield Timing(f"blastp, {way}", wall, f"{processor:.2f} s of processors")


def _scaling() -> Iterator[Timing]:
    """Wall seconds of the same work on more and more workers, two rounds in turns."""
    import seqloom

    queries, targets = data()
    records = [f">{record}" for record in queries.read_text().split(">") if record]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as name:
        path, many = Path(name) / "t.duckdb", Path(name) / "q.fasta"
        subprocess.run([*SEQLOOM, "db", "create", str(path), str(targets), "--quiet"], check=True)
        many.write_text("".join(record.replace(">", f">{copy}_", 1) for copy in range(COPIES) for record in records))

        def seconds(client: Any) -> float:
            begin = time.perf_counter()
            seqloom.search("blastp", many, path, store=False, cluster=client, evalue=1e-3)
            return time.perf_counter() - begin

        with ExitStack() as stack:
            clients: dict[str, Any] = {"one process": None}
            starts = {}
            for workers in [count for count in (1, 2, 4) if count <= max(2, cores)]:
                way = f"{workers} worker{'s' * (workers > 1)}"
                clients[way], starts[workers] = stack.enter_context(_workers(workers))
            for client in clients.values():
                seqloom.search("blastp", queries, path, store=False, cluster=client, evalue=1e-3)  # kernels are loaded
            taken = {way: [] for way in clients}
            for _ in range(2):
                for way, client in clients.items():
                    taken[way].append(seconds(client))
        best = {way: min(times) for way, times in taken.items()}
        yield Timing("start of 2 worker processes", starts[2])
        for way, wall in best.items():
            yield Timing(f"blastp of {COPIES * len(records):,} queries, {way}", wall,
                         f"{best['1 worker'] / wall:.2f} times as fast as one worker, "
                         f"{best['one process'] / wall:.2f} as one process")


def _units() -> Iterator[Timing]:
    """What a unit costs beside its work."""
    found = costs()
    yield Timing("a unit more, at its worker", found["unit"], "with its work; processor seconds")
    yield Timing("a unit more, at the caller", found["caller"], "processor seconds")
    yield Timing("a unit more, in one process", found["unit in one process"], "with its work; processor seconds")
    overhead = found["unit"] + found["caller"] - found["unit in one process"]
    yield Timing("overhead of a unit", overhead, "what a cluster adds, at worker and caller; processor seconds")


@contextmanager
def _workers(count: int) -> Iterator[tuple[Any, float]]:
    """The client of so many workers of one thread, and the wall seconds of their start."""
    from distributed import Client, LocalCluster

    begin = time.perf_counter()
    with (LocalCluster(n_workers=count, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                       memory_limit=0, silence_logs=50) as cluster,
          Client(cluster, set_as_default=False) as client):
        client.wait_for_workers(count)
        yield client, time.perf_counter() - begin


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def costs() -> dict[str, float]:
    """What the model rests on, in seconds."""
    import seqloom
    from seqloom.core.progress import Progress

    queries, targets = data()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "t.duckdb"
        subprocess.run([*SEQLOOM, "db", "create", str(path), str(targets), "--quiet"], check=True)
        with _workers(1) as (client, start):

            def run(where: Any = client, **cut: int) -> tuple[int, float, float]:
                """Units, and processor seconds of the caller and of its worker."""
                progress = Progress()
                here, [there] = time.process_time(), client.run(time.process_time).values()
                seqloom.search("blastp", queries, path, store=False, cluster=where, progress=progress, **cut)
                [then] = client.run(time.process_time).values()
                return progress.parts, time.process_time() - here, then - there

            run()
            run(None)
            fine = {"batch_queries": 50, "volume_residues": 100_000 if SHARED.is_dir() else 5000}
            few, many = run(batch_queries=50), run(**fine)
            few_here, many_here = run(None, batch_queries=50), run(None, **fine)
            by_batch = run(batch_queries=1)
        more = many[0] - few[0]
        return {"start": start, "unit": (many[2] - few[2]) / more, "caller": (many[1] - few[1]) / more,
                "unit in one process": (many_here[1] - few_here[1]) / (many_here[0] - few_here[0]),
                "unit of a batch of one query": (by_batch[2] - few[2]) / (by_batch[0] - few[0]),
                "caller of a batch of one query": (by_batch[1] - few[1]) / (by_batch[0] - few[0]),
                "search in the worker": few[2], **_of_stages(queries, path)}


def _of_stages(queries: Path, path: Path) -> dict[str, float]:
    """Seconds for a residue: of a volume that is read and indexed, of a batch that is masked and indexed."""
    from seqloom.core.context import SearchSpace
    from seqloom.core.engine.planning import Settings
    from seqloom.core.engine.runner import Runner
    from seqloom.core.pipeline import compose
    from seqloom.core.progress import Progress
    from seqloom.installed import registry
    from seqloom.opening import opened
    from seqloom.queries import load_queries

    plan = compose(registry(), registry().pipeline("blastp"), {})
    batch: Any = load_queries("protein", queries, "error")
    with opened([path], "protein", None, None, 1) as source:
        space = SearchSpace(source.total_residues, source.sequences, source.longest)
        runner = Runner(plan, registry(), source, space, Settings(), Progress())
        [span] = source.plan(source.total_residues)
        taken = []
        for _ in range(2):  # kernels are there the second time
            begin = time.process_time()
            runner.prepare_volume(span)
            middle = time.process_time()
            prepared = runner.prepare_batch(batch)
            for kind in prepared.indexes:
                prepared.indexes[kind]
            taken.append((middle - begin, time.process_time() - middle))
    return {"load": taken[1][0] / source.total_residues, "prepare": taken[1][1] / batch.total_residues}


def works() -> dict[int, Work]:
    """A thousand queries against databases of many sizes."""
    return {size: Work(QUERIES, QUERY_RESIDUES, size, QUERY_RESIDUES * size / CELLS_PER_SECOND, QUERIES * 5e4)
            for size in DATABASES}


def foretell() -> Iterator[tuple[int, int, int, int, float, float]]:
    """Residues of the database, workers, batches and volumes by the plan's choice, seconds, efficiency."""
    for size, work in works().items():
        first = max(1, size // 64_000_000)
        for workers in WORKERS:
            by_batch, by_volume = best_cut(work, MEASURED, workers, 1, first, FINEST)
            cut = by_batch, first * by_volume
            yield (size, workers, *cut, foretold(work, MEASURED, workers, *cut),
                   efficiency(work, MEASURED, workers, *cut))


def ways(workers: int = 32) -> Iterator[tuple[int, float, float, float]]:
    """Efficiency by number of queries: cut by query alone, by database alone, as the plan does; 10^9 residues."""
    for queries in (1, 4, 16, 64, 256, 1024):
        work = replace(works()[10**9], queries=queries, query_residues=350 * queries,
                       seconds=350 * queries * 10**9 / CELLS_PER_SECOND)
        chosen = best_cut(work, MEASURED, workers, 1, 16, FINEST)
        yield (queries, efficiency(work, MEASURED, workers, queries, 16),
               efficiency(work, MEASURED, workers, 1, max(16, workers)),
               efficiency(work, MEASURED, workers, chosen[0], 16 * chosen[1]))


def paper() -> Iterator[tuple[int, int, float, float, float]]:
    """Figures 9 to 11 of Munekawa, Ino and Hagihara (2010), with their costs: nodes, queries, seconds, speed-up over
    one node and 10^9 cells a second; cut by query as they do."""
    for nodes in PAPER_NODES:
        for queries in PAPER_QUERIES:
            work = replace(PAPER, queries=queries, query_residues=queries * PAPER.query_residues // PAPER.queries,
                           seconds=PAPER.seconds * queries / PAPER.queries)
            seconds = foretold(work, PAPER_COSTS, nodes, queries, 1)
            cells = work.query_residues * work.target_residues
            yield nodes, queries, seconds, foretold(work, PAPER_COSTS, 1, queries, 1) / seconds, cells / seconds / 1e9


def show_paper(folder: Path | None) -> None:
    """Print the table of ``paper``, and draw its seconds (figure 9), speed-up (10) and cells a second (11)."""
    rows = [*paper()]
    print("\n| nodes | queries | seconds | speed-up | GCUPS |\n| --- | --- | --- | --- | --- |")
    for nodes, queries, seconds, speedup, gcups in rows:
        if queries in (8, 32, 256):
            print(f"| {nodes} | {queries} | {seconds:.1f} | {speedup:.1f} | {gcups:.1f} |")
    if folder:
        for column, name, title, up in ((2, "cluster_paper_seconds", "Seconds", "seconds"),
                                        (3, "cluster_paper", "Speed-up", "times as fast as one node"),
                                        (4, "cluster_paper_rates", "Cells a second", "10⁹ cells a second")):
            lines = {f"{queries} queries": [(float(row[0]), row[column]) for row in rows if row[1] == queries]
                     for queries in PAPER_QUERIES}
            save_chart(folder / f"{name}.svg", f"{title} by nodes, cut by query (the paper's costs, foretold)", "nodes",
                       up, lines)


def show(folder: Path | None) -> None:
    """Print the table of ``foretell``; draw its chart."""
    lines: dict[str, list[tuple[float, float]]] = {}
    print("| residues | workers | batches × volumes | hours | efficiency |\n| --- | --- | --- | --- | --- |")
    for size, workers, batches, volumes, seconds, part in foretell():
        lines.setdefault(f"10^{len(str(size)) - 1} residues", []).append((workers, 100 * part))
        if workers in (1, 8, 64, 1000):
            print(f"| 10^{len(str(size)) - 1} | {workers:,} | {batches:,} × {volumes:,} | {seconds / 3600:.3g} | "
                  f"{part:.0%} |")
    print("\n| queries | by query | by database | as planned |\n| --- | --- | --- | --- |")
    for queries, *parts in ways():
        print(f"| {queries:,} | " + " | ".join(f"{part:.0%}" for part in parts) + " |")
    if folder:
        save_chart(folder / "cluster_efficiency.svg", f"Efficiency by workers, {QUERIES:,} queries (foretold)",
                   "workers", "percent", lines)


if __name__ == "__main__":
    os.environ.setdefault("SEQLOOM_BACKEND", "cpu")
    if sys.argv[1:2] == ["costs"]:
        print(json.dumps(costs(), indent=2))
    elif sys.argv[1:2] == ["foretell"]:
        given = Path(sys.argv[2]) if len(sys.argv) > 2 else None
        show(given)
        show_paper(given)
    else:
        sys.exit(__doc__)
