"""Sorting files beside GNU sort, and the sorters by one and two threads beside numpy and other libraries.

The file has a line for each 20-mer of two genomes (as of ``exact_match``), 9.7 M lines. Whole commands in wall seconds,
on one core and on two; GNU sort compares bytes (``LC_ALL=C``).
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from .exact_match import genomes
from .sorting_plots import best_time
from .timing import SEQLOOM, Timing, in_turns, pinned

_LENGTH = 20
_ROUNDS = 3


def measure() -> Iterator[Timing]:
    """Whole commands, then the sorters alone."""
    characters = np.concatenate([np.frombuffer("".join(line for line in text.splitlines() if line[:1] != ">").encode(),
                                            np.uint8) for text in genomes()])
    table = np.full((len(characters) - _LENGTH + 1, _LENGTH + 1), 10, np.uint8)
    table[:, :_LENGTH] = np.lib.stride_tricks.sliding_window_view(characters, _LENGTH)
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        table.tofile(folder / "words.txt")
        for count in (1, 2)[: len(cores)]:
            ours = pinned(cores[:count], (*SEQLOOM, "sort", "words.txt", "-o", "ours", "-p", str(count)))
            theirs = pinned(cores[:count], ("env", "LC_ALL=C", "sort", f"--parallel={count}", "words.txt",
                                              "-o", "theirs"))
            yield from in_turns({
                f"seqloom sort, cores: {count}": ours,
                f"seqloom sort in runs, cores: {count}": (*ours, "--memory", "512M"),
                f"GNU sort, cores: {count}": theirs,
            }, folder, rounds=_ROUNDS)
            if (folder / "ours").read_bytes() != (folder / "theirs").read_bytes():
                raise AssertionError("seqloom sort and GNU sort differ")
    yield from _sorters(np.ascontiguousarray(table[:, :_LENGTH]).reshape(-1), len(cores))


def _sorters(keys: np.ndarray, cores: int) -> Iterator[Timing]:
    from seqloom.core.records import Ragged
    from seqloom.installed import registry

    count = len(keys) // _LENGTH
    ragged = Ragged.even(keys.reshape(count, _LENGTH))
    for name in ("msd-radix", "lsd-radix", "multikey-quicksort"):
        for threads in (1, 2)[:cores]:
            sorter = registry().sorter(name, "cpu")
            sorter.threads = threads
            seconds = best_time(lambda sorter=sorter: sorter.order(ragged))  # type: ignore[misc]
            yield Timing(f"{name}, {count:,} 20-mers, threads: {threads}", seconds)
    for what, sort in _libraries(keys, count).items():
        yield Timing(f"{what}, {count:,} 20-mers, threads: 1", best_time(sort, 1))


def _libraries(keys: np.ndarray, count: int) -> dict[str, Callable[[], object]]:
    """What libraries that are installed do with the same keys: each by its quickest way that was found."""
    table = keys.view(f"S{_LENGTH}")
    found: dict[str, Callable[[], object]] = {"np.sort of S20": lambda: np.sort(table)}
    if find_spec("pyarrow"):
        import pyarrow
        from pyarrow.compute import sort_indices

        fixed = pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(_LENGTH), count,
                                                          [None, pyarrow.py_buffer(keys)])
        texts = pyarrow.StringArray.from_buffers(
            count, pyarrow.py_buffer(np.arange(count + 1, dtype=np.int32) * _LENGTH), pyarrow.py_buffer(keys))
        found["pyarrow sort_indices of binary(20)"] = lambda: sort_indices(fixed)
        if find_spec("polars"):
            os.environ["POLARS_MAX_THREADS"] = "1"
            import polars

            column = polars.Series(texts)
            found["polars Series.sort"] = column.sort
        if find_spec("duckdb"):
            import duckdb

            connection = duckdb.connect(config={"threads": 1})
            connection.register("words", pyarrow.table({"word": texts}))
            query = "SELECT word FROM words ORDER BY word"
            found["duckdb ORDER BY"] = lambda: connection.execute(query).to_arrow_table()
    return found
