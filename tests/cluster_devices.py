"""A cluster of workers with a device each and one without: the rows of one process, however the units fall.

    python -m tests.cluster_devices [--devices N] [--scale K] [--cpu] [--backend auto|cuda] [--pipeline NAME]

makes such a cluster with N devices of this machine (``--cpu``: and a worker without one), runs pipelines on it, ends
the worker of a device in the middle of one, and compares all rows with those of one process on the CPU; K is how large
the work is. In the tests the device is simulated.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import seqloom
from seqloom.cluster import executor
from seqloom.results import Results

PROTEINS, BASES = "ARNDCQEGHILKMFPSTWYV", "ACGT"


@contextmanager
def devices_and_processors(devices: list[dict[str, str]], processors: int = 1) -> Iterator[Any]:
    """A client of a cluster with a worker for each of ``devices`` (what its environment has) and some without.

    Dask does not profile them: Python before 3.11.8 and 3.12.1 breaks when it looks at the frames of threads while
    others begin and end, as those of a simulated device do all the time
    (https://github.com/python/cpython/issues/106883).
    """
    import dask.config
    import distributed

    hidden = {"NUMBA_ENABLE_CUDASIM": "0", "CUDA_VISIBLE_DEVICES": ""}
    settings = [*devices, *[hidden] * processors]
    workers = {n: {"cls": distributed.Nanny, "options": {"nthreads": 2, "host": "127.0.0.1", "env": env}}
               for n, env in enumerate(settings)}
    scheduler = {"cls": distributed.Scheduler, "options": {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}}
    with (dask.config.set({"distributed.worker.profile.enabled": False}),
          distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=50) as cluster,
          distributed.Client(cluster, set_as_default=False) as client):
        client.wait_for_workers(len(settings), timeout=120)
        yield client


@contextmanager
def members() -> Iterator[dict[str, Any]]:
    """What a caller knows of its workers when a search ends, by address."""
    seen: dict[str, Any] = {}
    leave = executor.ClusterExecutor.__exit__

    def leaving(made: executor.ClusterExecutor, *error: object) -> None:
        seen.update({worker.address: worker for worker in made._session.workers.values()})
        leave(made, *error)

    with mock.patch.object(executor.ClusterExecutor, "__exit__", leaving):
        yield seen


def drawn(alphabet: str, count: int, length: int, seed: int, of: dict[str, str] | None = None) -> dict[str, str]:
    """Random sequences, or stretches of others with one residue in twelve changed."""
    generator, made = random.Random(seed), {}
    for n in range(count):
        if of is None:
            text = "".join(generator.choices(alphabet, k=generator.randint(length // 2, length)))
        else:
            whole = generator.choice([*of.values()])
            begin = generator.randrange(max(1, len(whole) - length))
            text = "".join(generator.choice(alphabet) if generator.random() < 1 / 12 else residue
                           for residue in whole[begin : begin + length])
        made[f"{'t' if of is None else 'q'}{n}"] = text
    return made


def works(scale: int) -> dict[str, tuple[dict[str, str], dict[str, str], dict[str, Any]]]:
    """Queries, targets and settings by pipeline."""
    proteins, genome = drawn(PROTEINS, 4000 * scale, 400, 1), drawn(BASES, 40, 50_000 * scale, 2)
    protein_queries = drawn(PROTEINS, 20, 300, 3, proteins)
    reads = drawn(BASES, 400, 1000, 4, genome)
    cut = {"batch_queries": 5, "volume_residues": 200_000 * scale}
    return {"sw": (protein_queries, proteins, cut),
            "blastp": (protein_queries, proteins, cut),
            "blastn": (reads, genome, {"batch_queries": 100, "volume_residues": 500_000 * scale}),
            "exact": (drawn(BASES, 5000, 40, 5, genome), genome, {"batch_queries": 1000})}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_devices", description=__doc__)
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--scale", type=int, default=1)
    parser.add_argument("--cpu", action="store_true", help="a worker without a device takes part")
    parser.add_argument("--backend", choices=("auto", "cuda"), default="auto", help="cuda: where all workers have one")
    parser.add_argument("--pipeline", action="append", choices=("sw", "blastp", "blastn", "exact"),
                        help="may be repeated; all")
    given = parser.parse_args()
    problems = 0
    environments = [{"CUDA_VISIBLE_DEVICES": str(n)} for n in range(given.devices)]
    with (tempfile.TemporaryDirectory() as folder,
          devices_and_processors(environments, int(given.cpu)) as client, members() as seen):
        store = Path(folder) / "results.duckdb"
        for pipeline, (queries, targets, cut) in works(given.scale).items():
            if pipeline not in (given.pipeline or [pipeline]):
                continue
            texts, database = Path(folder) / f"{pipeline}.fasta", Path(folder) / f"{pipeline}.duckdb"
            texts.write_text("".join(f">{name}\n{residues}\n" for name, residues in targets.items()))
            seqloom.Database.create(database, texts).close()
            alone = seqloom.search(pipeline, queries, database, store=False, backend="cpu", **cut)
            moment = 0.0
            for turn in ("first", "again", "one is lost"):
                seen.clear()
                begin = time.perf_counter()
                if turn == "one is lost":
                    process = max(client.run(_process_of_a_device).values())
                    threading.Timer(moment, os.kill, [process, signal.SIGKILL]).start()  # its nanny starts another
                found = seqloom.search(pipeline, queries, database, results=store, cluster=client,
                                       backend=given.backend, **cut)
                taken = time.perf_counter() - begin
                moment = taken / 2
                same = found.hits.to_pylist() == alone.hits.to_pylist()
                problems += not same
                print(f"{pipeline}, {turn}: {len(found):,} hits, {'the same' if same else 'NOT THE SAME'}, "
                      f"{taken:.2f} s", flush=True)
                for account in Results(store).show("last")["provenance"]["workers"]:
                    print(f"    {account['device']}: {account['units']} units, {account['seconds']} s, "
                          f"{account['failed']} lost", flush=True)
    return 1 if problems else 0


def _process_of_a_device() -> int:
    """0 in a worker that has none."""
    return os.getpid() if os.environ.get("CUDA_VISIBLE_DEVICES") else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
