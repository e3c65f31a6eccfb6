"""Exact matches beside mummer, suffix arrays beside pydivsufsort, and the sorters beside numpy.

Genomes are E. coli K-12 and ATCC 11775 of `../shared/data/genomes` where they are there, else a random sequence of
4.6 M letters and a copy with one letter in fifty changed. Keys to sort are the 20-mers of both.
"""

import gzip
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .timing import SEQLOOM, Timing, in_turns

GENOMES = Path(__file__).parents[2] / "shared" / "data" / "genomes"
_ROUNDS = 3
_LENGTH = 20


def genomes() -> tuple[str, str]:
    """FASTA text of a genome and of a relative."""
    names = ("ecoli_k12_mg1655", "ecoli_atcc11775")
    if all((GENOMES / f"{name}.fasta.gz").exists() for name in names):
        one, other = (gzip.decompress((GENOMES / f"{name}.fasta.gz").read_bytes()).decode() for name in names)
        return one, other
    rng = np.random.default_rng(1)
    letters = np.frombuffer(b"ACGT", np.uint8)
    genome = rng.choice(letters, 4_600_000)
    relative = np.where(rng.random(len(genome)) < 0.02, rng.choice(letters, len(genome)), genome)
    return f">one\n{genome.tobytes().decode()}\n", f">other\n{relative.tobytes().decode()}\n"


def best(work: Callable[[], Any]) -> float:
    """Least processor seconds of some runs, the first of which may have to compile."""
    times = []
    for _ in range(_ROUNDS + 1):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times[1:])


def measure() -> Iterator[Timing]:
    """Whole commands in wall seconds; suffix arrays and sorters in processor seconds."""
    one, other = genomes()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "one.fa").write_text(one)
        (folder / "other.fa").write_text(other)
        words = ("mum", "--mum", "-l", str(_LENGTH), "-b", "-c", "--backend", "cpu", "--quiet", "-d", "one.fa", "-q",
                 "other.fa", "-o", "ours")
        yield from in_turns({
            "seqloom mum, strain pair": (*SEQLOOM, *words, "--no-store"),
            "seqloom mum, strain pair, stored": (*SEQLOOM, *words),
            "mummer, strain pair": ("mummer", "-mum", "-l", str(_LENGTH), "-b", "-c", "one.fa", "other.fa"),
        }, folder, rounds=_ROUNDS, before=lambda: (folder / "seqloom.duckdb").unlink(missing_ok=True))
    letters = [np.frombuffer("".join(line for line in text.splitlines() if line[:1] != ">").encode(), np.uint8)
               for text in (one, other)]
    yield from _suffix_arrays(letters[0])
    yield from _sorters(np.concatenate(letters))


def _suffix_arrays(letters: np.ndarray) -> Iterator[Timing]:
    from seqloom.plugins.exact_match.suffix_array_cpu import suffix_array

    rng = np.random.default_rng(2)
    copy = letters[:1_000_000]
    copies = [np.where(rng.random(len(copy)) < 0.001, ord("A"), copy).astype(np.uint8) for _ in range(10)]
    for what, text in (("genome", letters), ("10 Mb of near-copies", np.concatenate(copies))):
        ended = np.append(text, np.uint8(127))
        yield Timing(f"suffix array, {what}", best(lambda text=ended: suffix_array(text)))  # type: ignore[misc]
        try:
            from pydivsufsort import divsufsort
        except ImportError:
            continue
        yield Timing(f"pydivsufsort, {what}", best(lambda text=ended: divsufsort(text)))  # type: ignore[misc]


def _sorters(letters: np.ndarray) -> Iterator[Timing]:
    from seqloom.core.records import Ragged
    from seqloom.installed import registry

    keys = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(letters, _LENGTH)).reshape(-1)
    count = len(keys) // _LENGTH
    ragged = Ragged(np.arange(count + 1, dtype=np.int64) * _LENGTH, keys)
    strings = keys.view(f"S{_LENGTH}")
    for name in ("msd-radix", "lsd-radix", "multikey-quicksort"):
        sorter = registry().sorter(name, "cpu")
        yield Timing(f"{name}, {count:,} 20-mers", best(lambda sorter=sorter: sorter.order(ragged)))  # type: ignore[misc]
    yield Timing(f"np.sort of S20, {count:,} 20-mers", best(lambda: np.sort(strings)))
