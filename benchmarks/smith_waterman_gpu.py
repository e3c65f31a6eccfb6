"""Exact Smith–Waterman scores on a CUDA device: speed by query length, and agreement with the host.

    python benchmarks/smith_waterman_gpu.py [--letters 200000000] [--fasta FILE --queries FILE…]

Prints one line per query length: seconds, TCUPS (10¹² cells a second) with the volume resident on the device, kernels
compiled before. With ``--fasta`` the scores of real sequences are compared with the reference back end's, all of them.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from numba import cuda
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Scoring
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.recurrence import packed_chunks
from seqloom.plugins.smith_waterman.seed_cuda import DeviceVolume, tile_shape
from seqloom.plugins.smith_waterman.seed_reference import best_scores

AMINO_ACIDS = PROTEIN.encode("ACDEFGHIKLMNPQRSTVWY")


def random_proteins(letters: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random letters and bounds of proteins of natural lengths (log-normal around 300, at most 8,000)."""
    lengths = np.clip(np.exp(generator.normal(5.68, 0.62, letters // 300)), 30, 8000).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return AMINO_ACIDS[generator.integers(0, 20, offsets[-1])], offsets


def records(path: str) -> list[np.ndarray]:
    """Codes of the sequences of a FASTA file."""
    parts = ("\n" + Path(path).read_text()).split("\n>")[1:]
    return [PROTEIN.encode("".join(p.split("\n")[1:])) for p in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=200_000_000)
    parser.add_argument("--lengths", type=int, nargs="*", default=[63, 127, 255, 514, 1042, 2005, 5147])
    parser.add_argument("--fasta")
    parser.add_argument("--queries", nargs="*", default=[])
    arguments = parser.parse_args()
    scoring = Scoring(printed_matrix("BLOSUM62"), 11, 1)
    print(cuda.get_current_device().name)
    if arguments.fasta:
        targets = records(arguments.fasta)
        letters, offsets = np.concatenate(targets), np.concatenate([[0], np.cumsum([len(t) for t in targets])])
        volume = DeviceVolume(letters, offsets)
        for path in arguments.queries:
            query = records(path)[0]
            begin = time.perf_counter()
            found = volume.best_scores(query, scoring)
            wanted = np.concatenate([best_scores(query, p) for _, p in packed_chunks(targets, scoring, 1 << 16)])
            print(f"{path}: {len(targets)} scores, {int((found != wanted).sum())} differ from the host's "
                  f"({time.perf_counter() - begin:.1f} s, compiling included)", flush=True)
    generator = np.random.default_rng(7)
    begin = time.perf_counter()
    letters, offsets = random_proteins(arguments.letters, generator)
    made = time.perf_counter()
    volume = DeviceVolume(letters, offsets)
    cuda.synchronize()
    print(f"{len(letters):,} letters in {len(offsets) - 1:,} targets; made {made - begin:.1f} s, "
          f"packed and sent {time.perf_counter() - made:.1f} s", flush=True)
    for length in arguments.lengths:
        query = AMINO_ACIDS[generator.integers(0, 20, length)]
        begin = time.perf_counter()
        volume.best_scores(query, scoring)
        first = time.perf_counter() - begin
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            volume.best_scores(query, scoring)
            times.append(time.perf_counter() - begin)
        cells = length * len(letters)
        rows, lanes, tiles = tile_shape(length)
        print(f"query {length:5d}: {rows:2d} rows x {lanes:2d} lanes x {tiles} tiles, first {first:6.2f} s, then "
              f"{min(times):.3f} s, {cells / min(times) / 1e12:.2f} TCUPS", flush=True)


if __name__ == "__main__":
    main()
