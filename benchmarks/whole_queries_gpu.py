"""Reads looked up whole in an FM-index, on a CUDA device and by threads of the host, by size of the reference.

    python -m benchmarks.whole_queries_gpu FOLDER [--sizes 10000000 100000000] [--reads 1000000] [--threads 16]

References are copies of two genomes (as of ``exact_match``), all but the first two with one base in fifty changed;
reads are 100 bases of them, three in ten with an error. Times are wall seconds of the look-up, from the reads in the
host's memory to all places there, kernels compiled and the index on the device before. Draws a chart.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.options import StrandOptions
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.plugins.exact_match.whole_seed_cuda import WholeQueriesCuda

from .charts import save_chart
from .exact_match import genomes

_LENGTH = 100


def references(letters: int, generator: np.random.Generator) -> SequenceBatch:
    """Copies of the genomes, of so many letters together."""
    bases = [NUCLEOTIDE.encode("".join(line for line in text.splitlines() if line[:1] != ">")) for text in genomes()]
    copies: list[np.ndarray] = []
    while (missing := letters - sum(map(len, copies))) > 0:
        base = bases[len(copies) % 2][:missing]
        changed = generator.random(len(base)) < (0.02 if len(copies) > 1 else 0)
        copies.append(np.where(changed, generator.integers(0, 4, len(base)), base).astype(np.uint8))
    return SequenceBatch.of(NUCLEOTIDE, copies)


def reads_of(targets: SequenceBatch, count: int, generator: np.random.Generator) -> SequenceBatch:
    starts = generator.integers(0, targets.letters - _LENGTH, count)
    reads = targets.residues[starts[:, None] + np.arange(_LENGTH)]
    wrong = np.flatnonzero(generator.random(count) < 0.3)
    at = generator.integers(0, _LENGTH, len(wrong))
    reads[wrong, at] = (reads[wrong, at] + 1) % 4
    return SequenceBatch(NUCLEOTIDE, reads.reshape(-1), np.arange(count + 1, dtype=np.int64) * _LENGTH,
                         np.arange(count, dtype=np.int64))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000_000, 30_000_000, 100_000_000])
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(4)
    series: dict[str, list[tuple[float, float]]] = {}
    for size in arguments.sizes:
        targets = references(size, generator)
        begin = time.perf_counter()
        index = FmIndexCpu().run(Context(), targets)
        print(f"{size:,} letters: index {time.perf_counter() - begin:.1f} s, {index.nbytes / size:.2f} bytes a letter",
              flush=True)
        queries, found = reads_of(targets, arguments.reads, generator), []
        context = Context(queries=queries, targets=targets, indexes={"index.references": index},
                          options=StrandOptions(both=True), threads=arguments.threads)
        for stage in (WholeQueriesCpu(), WholeQueriesCuda()):
            strands = [stage.strand_of(queries, frame, False) for frame in (1, -1)]
            times = []
            for _ in range(5):
                begin = time.perf_counter()
                places = stage.places(context, strands)
                times.append(time.perf_counter() - begin)
            found.append([rows[np.lexsort(rows.T)] for rows in (np.stack(part, axis=1) for part in places)])
            seconds = min(times[1:])
            name = "cuda" if stage.backend == "cuda" else f"cpu, threads: {arguments.threads}"
            series.setdefault(name, []).append((size, arguments.reads / seconds))
            print(f"{name}\t{size}\t{seconds:.4f} s\t{arguments.reads / seconds / 1e6:.2f} M reads/s, both strands\t"
                  f"{sum(map(len, found[-1])):,} places", flush=True)
        if not all(np.array_equal(one, other) for one, other in zip(*found, strict=True)):
            raise AssertionError("the back ends differ")
    title = f"{arguments.reads:,} reads of {_LENGTH} bases, both strands"
    save_chart(arguments.folder / "reads_by_reference.svg", title,
               "letters of the reference", "reads per second", series)


if __name__ == "__main__":
    main()
