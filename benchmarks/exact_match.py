"""Exact matches beside mummer, suffix arrays beside pydivsufsort and libsais, FM-indexes, and the sorters beside numpy.

Genomes are E. coli K-12 and ATCC 11775 of `../shared/data/genomes` where they are there, else a random sequence of
4.6 M residues and a copy with one residue in fifty changed. Keys to sort are the 20-mers of both.
"""

import ctypes
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .timing import SEQLOOM, Timing, in_turns, used

GENOMES = Path(__file__).parents[2] / "shared" / "data" / "genomes"
_ROUNDS = 3
_LENGTH = 20
_COPIES = 20
"""Mutated copies of the genome, whose index searches map."""
_READS = 100_000


def genomes() -> tuple[str, str]:
    """FASTA text of a genome and of a relative."""
    names = ("ecoli_k12_mg1655", "ecoli_atcc11775")
    if all((GENOMES / f"{name}.fasta.gz").exists() for name in names):
        one, other = (gzip.decompress((GENOMES / f"{name}.fasta.gz").read_bytes()).decode() for name in names)
        return one, other
    rng = np.random.default_rng(1)
    residues = np.frombuffer(b"ACGT", np.uint8)
    genome = rng.choice(residues, 4_600_000)
    relative = np.where(rng.random(len(genome)) < 0.02, rng.choice(residues, len(genome)), genome)
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
    residues = [np.frombuffer("".join(line for line in text.splitlines() if line[:1] != ">").encode(), np.uint8)
               for text in (one, other)]
    yield from _mapped(residues[0])
    yield from _suffix_arrays(*residues)
    yield from _indexes(residues[0])
    yield from _look_ups(residues[0])
    yield from _sorters(np.concatenate(residues))


def _mapped(residues: np.ndarray) -> Iterator[Timing]:
    """Searches that map a large stored index beside such that read it from the database: processor seconds, memory."""
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with open(folder / "copies.fa", "wb") as file:
            for number in range(_COPIES):
                copy = np.where(rng.random(len(residues), np.float32) < 0.02, rng.permutation(residues), residues)
                file.write(b">copy%d\n%s\n" % (number, copy.tobytes()))
        starts = rng.integers(0, len(residues) - 100, 100)
        (folder / "reads.fa").write_text("".join(
            f">read{n}\n{copy[start : start + 100].tobytes().decode()}\n" for n, start in enumerate(starts)))
        (folder / "long.fa").write_text(f">long\n{copy[:20_000].tobytes().decode()}\n")
        for command in (("db", "create", "mapped.duckdb", "copies.fa"), ("index", "build", "mapped.duckdb", "--map")):
            subprocess.run([*SEQLOOM, *command], cwd=folder, check=True, capture_output=True)
        shutil.copy(folder / "mapped.duckdb", folder / "chunks.duckdb")  # without its images
        same = ("--backend", "cpu", "--no-store", "--quiet")
        searches = (("exact, 100 reads", "exact", "reads.fa"), ("mum, 20,000 bases", "mum", "long.fa"))
        for what, pipeline, query in searches:
            found = {kind: [used((*SEQLOOM, pipeline, "-q", query, "-d", f"{kind}.duckdb", "-o", kind, *same), folder)
                            for _ in range(_ROUNDS)] for kind in ("chunks", "mapped")}
            if (folder / "chunks").read_bytes() != (folder / "mapped").read_bytes():
                sys.exit(f"{what}: mapping the index changes the rows")
            for kind, taken in found.items():
                yield Timing(f"{what}, {kind}", min(taken)[0], f"processor; {min(taken)[1]:,} MiB resident at most")


def _indexes(residues: np.ndarray) -> Iterator[Timing]:
    """Building and reading an FM-index; its size in bits a base."""
    from seqloom.core.alphabet import NUCLEOTIDE
    from seqloom.core.context import Context
    from seqloom.core.sequences import SequenceBatch
    from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
    from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
    from seqloom.storage.sequences.database import SequenceDatabase
    from seqloom.storage.sequences.stored_indexes import IndexKey, IndexWriter, read_piece, stored_indexes

    batch = SequenceBatch.of(NUCLEOTIDE, [residues.tobytes().decode()], ["genome"])
    for options in (FmIndexOptions(), FmIndexOptions(bucket=512, sample=64), FmIndexOptions(bucket=64, sample=1)):
        stage = FmIndexCpu(options)
        index = stage.run(Context(), batch)
        what = f"FM-index, bucket {options.bucket}, sample {options.sample}"
        note = f"{8 * index.nbytes / batch.total_residues:.1f} bits a base"
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


def _look_ups(residues: np.ndarray) -> Iterator[Timing]:
    """Reads and matches by FM-index and by compressed suffix array, one thread; bits a base of each."""
    from seqloom.core.alphabet import NUCLEOTIDE
    from seqloom.core.context import Context
    from seqloom.core.sequences import SequenceBatch
    from seqloom.plugins.exact_match.compressed_array_cpu import CompressedArrayCpu
    from seqloom.plugins.exact_match.compressed_array_reference import CompressedArrayOptions
    from seqloom.plugins.exact_match.compressed_seed_cpu import CompressedMatchesCpu, CompressedQueriesCpu
    from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
    from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
    from seqloom.plugins.exact_match.options import MatchOptions, StrandOptions
    from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu

    rng = np.random.default_rng(4)
    targets = SequenceBatch.of(NUCLEOTIDE, [residues.tobytes().decode()])
    starts = rng.integers(0, len(residues) - 100, _READS)
    changed = np.where(rng.random(len(residues), np.float32) < 0.02, rng.permutation(residues), residues)
    reads = SequenceBatch.of(NUCLEOTIDE, [changed[start : start + 100].tobytes().decode() for start in starts])
    whole = SequenceBatch.of(NUCLEOTIDE, [changed.tobytes().decode()])
    stages = [("FM-index", FmIndexCpu(), WholeQueriesCpu(), FmMatchesCpu())]
    stages += [(f"compressed suffix array, block {block}, sample {sample}",
                CompressedArrayCpu(CompressedArrayOptions(block, sample)), CompressedQueriesCpu(),
                CompressedMatchesCpu()) for block, sample in ((32, 8), (128, 32))]
    for what, make, whole_queries, matches in stages:
        index = make.run(Context(), targets)
        indexes, note = {index.kind: index}, f"{8 * index.nbytes / len(residues):.1f} bits a base"
        yield Timing(f"{what}: built", best(lambda make=make: make.run(Context(), targets)), note)  # type: ignore[misc]
        for stage, name, queries, options in (
                (whole_queries, f"{_READS:,} reads of 100", reads, StrandOptions()),
                (matches, "all matches of 20", whole, MatchOptions(length=_LENGTH, maxmatch=True))):
            context = Context(queries=queries, targets=targets, indexes=indexes, options=options)
            yield Timing(f"{what}: {name}", best(
                lambda stage=stage, context=context: stage.run(context, None)), note)  # type: ignore[misc]


def _suffix_arrays(residues: np.ndarray, other: np.ndarray) -> Iterator[Timing]:
    from seqloom.plugins.exact_match.suffix_array_cpu import suffix_array

    libsais = _libsais()
    rng = np.random.default_rng(2)
    copy = residues[:1_000_000]
    copies = [np.where(rng.random(len(copy)) < 0.001, ord("A"), copy).astype(np.uint8) for _ in range(50)]
    for what, text in (("genome", residues), ("two strains", np.concatenate([residues, other])),
                       ("5 M random residues of proteins", rng.integers(65, 85, 5_000_000, np.uint8)),
                       ("50 Mb of near-copies", np.concatenate(copies)),
                       ("10 Mb of one residue", np.full(10_000_000, ord("A"), np.uint8)),
                       ("10 Mb of a unit of 37 bases", np.tile(rng.integers(65, 69, 37, np.uint8), 270_000)),
                       ("10 Mb of a unit of two bases", np.tile(np.frombuffer(b"AC", np.uint8), 5_000_000)),
                       ("10 Mb of runs of 100 bases", np.repeat(rng.integers(65, 69, 100_000, np.uint8), 100)),
                       ("10 Mb of copies", np.tile(copy, 10))):
        ended = np.append(text, np.uint8(127))
        yield Timing(f"suffix array, {what}", best(lambda text=ended: suffix_array(text)))  # type: ignore[misc]
        if find_spec("pydivsufsort"):
            from pydivsufsort import divsufsort

            yield Timing(f"pydivsufsort, {what}", best(lambda text=ended: divsufsort(text)))  # type: ignore[misc]
        if libsais is not None:
            yield Timing(f"libsais, {what}", best(lambda text=ended: _by_libsais(libsais, text)))  # type: ignore[misc]


def _libsais() -> Any:
    """The library libsais, installed or where the environment variable LIBSAIS says; None where there is none."""
    path = os.environ.get("LIBSAIS") or find_library("sais")
    if path is None:
        print("libsais isn't installed (libsais-dev; or LIBSAIS=/path/to/libsais.so): left out", file=sys.stderr)
    return path and ctypes.CDLL(path)


def _by_libsais(library: Any, text: np.ndarray) -> np.ndarray:
    order = np.empty(len(text), np.int32)
    if library.libsais(text.ctypes.data_as(ctypes.c_void_p), order.ctypes.data_as(ctypes.c_void_p), len(text), 0, None):
        raise MemoryError("libsais has no memory")
    return order


def _sorters(residues: np.ndarray) -> Iterator[Timing]:
    from seqloom.core.records import Ragged
    from seqloom.installed import registry

    keys = np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(residues, _LENGTH)).reshape(-1)
    count = len(keys) // _LENGTH
    ragged = Ragged(np.arange(count + 1, dtype=np.int64) * _LENGTH, keys)
    strings = keys.view(f"S{_LENGTH}")
    for name in ("msd-radix", "lsd-radix", "multikey-quicksort"):
        sorter = registry().sorter(name, "cpu")
        yield Timing(f"{name}, {count:,} 20-mers", best(lambda sorter=sorter: sorter.order(ragged)))  # type: ignore[misc]
    yield Timing(f"np.sort of S20, {count:,} 20-mers", best(lambda: np.sort(strings)))
