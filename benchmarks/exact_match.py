"""Exact matches beside mummer, suffix arrays beside pydivsufsort, FM-indexes, and the sorters beside numpy.

Genomes are E. coli K-12 and ATCC 11775 of `../shared/data/genomes` where they are there, else a random sequence of
4.6 M letters and a copy with one letter in fifty changed. Keys to sort are the 20-mers of both.
"""

import gzip
import subprocess
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
        for command in (("db", "create", "one.duckdb", "one.fa"), ("index", "build", "one.duckdb")):
            subprocess.run([*SEQLOOM, *command], cwd=folder, check=True, capture_output=True)
        words = ("mum", "--mum", "-l", str(_LENGTH), "-b", "-c", "--backend", "cpu", "--quiet", "-q", "other.fa", "-o",
                 "ours")
        yield from in_turns({
            "seqloom mum, strain pair": (*SEQLOOM, *words, "-d", "one.fa", "--no-store"),
            "seqloom mum, strain pair, 2 threads": (*SEQLOOM, *words, "-d", "one.fa", "--no-store", "-p", "2"),
            "seqloom mum, strain pair, kept": (*SEQLOOM, *words, "-d", "one.fa"),
            "seqloom mum, strain pair, FM-index stored": (*SEQLOOM, *words, "-d", "one.duckdb", "--no-store"),
            "mummer, strain pair": ("mummer", "-mum", "-l", str(_LENGTH), "-b", "-c", "one.fa", "other.fa"),
        }, folder, rounds=_ROUNDS, before=lambda: (folder / "seqloom.duckdb").unlink(missing_ok=True))
    letters = [np.frombuffer("".join(line for line in text.splitlines() if line[:1] != ">").encode(), np.uint8)
               for text in (one, other)]
    yield from _suffix_arrays(letters[0])
    yield from _indexes(letters[0])
    yield from _sorters(np.concatenate(letters))


def _indexes(letters: np.ndarray) -> Iterator[Timing]:
    """Building and reading an FM-index; its size in bits a base."""
    from seqloom.core.alphabet import NUCLEOTIDE
    from seqloom.core.context import Context
    from seqloom.core.sequences import SequenceBatch
    from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
    from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
    from seqloom.storage.sequence_database import SequenceDatabase
    from seqloom.storage.stored_indexes import IndexKey, IndexWriter, read_piece, stored_indexes

    batch = SequenceBatch.of(NUCLEOTIDE, [letters.tobytes().decode()], ["genome"])
    for options in (FmIndexOptions(), FmIndexOptions(bucket=512, sample=64), FmIndexOptions(bucket=64, sample=1)):
        stage = FmIndexCpu(options)
        index = stage.run(Context(), batch)
        what = f"FM-index, bucket {options.bucket}, sample {options.sample}"
        note = f"{8 * index.nbytes / batch.letters:.1f} bits a base"
        yield Timing(f"{what}: built", best(lambda stage=stage: stage.run(Context(), batch)), note)  # type: ignore[misc]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "genome.duckdb"
            SequenceDatabase.create(path, [batch]).close()
            with SequenceDatabase.open(path, read_only=False) as database:
                writer = IndexWriter(database, IndexKey("fm-index", 1, {}, {}))
                writer.add(0, 1, index)
                writer.finish([])
                [stored] = stored_indexes(database)
                yield Timing(f"{what}: read", best(  # type: ignore[misc]
                    lambda database=database, stored=stored: read_piece(database, stored, stored.pieces[0])))


def _suffix_arrays(letters: np.ndarray) -> Iterator[Timing]:
    from seqloom.plugins.exact_match.suffix_array_cpu import suffix_array

    rng = np.random.default_rng(2)
    copy = letters[:1_000_000]
    copies = [np.where(rng.random(len(copy)) < 0.001, ord("A"), copy).astype(np.uint8) for _ in range(50)]
    for what, text in (("genome", letters), ("50 Mb of near-copies", np.concatenate(copies)),
                       ("10 Mb of one letter", np.full(10_000_000, ord("A"), np.uint8)),
                       ("10 Mb of copies", np.tile(copy, 10))):
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
