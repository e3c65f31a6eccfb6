"""Files of sequences or lines, sorted: by sequence, header or length, stable, with or without doubles.

A record stays as it is in the file, byte for byte. What fits one block is sorted in memory. A larger file is sorted
block by block into temporary files of its own format, the runs, which are then merged: a piece of each run is read, all
records that can't come behind an unread one are sorted together and written, and so on.
"""

import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .core.errors import OptionError, UnknownNameError
from .core.records import Ragged
from .core.stages import Sorter
from .core.threads import in_turn
from .inputs import HEAD, Stream, opened
from .record_blocks import Block, blocks, copied, counted, first_of_equal

FORMATS = ("fasta", "fastq", "lines")
KEYS = ("sequence", "header", "length")
BLOCK = 256 << 20
"""Bytes that are sorted in memory at a time."""
PER_BYTE = 8
"""Bytes of memory that a byte of a block takes, about, where records have twenty bytes or more."""
_PIECE = 1 << 20  # least bytes of a run that are read at a time
_ROWS = 1 << 16  # records copied at a time


def sort_file(path: str, write: Callable[[Any], object], sorter: Sorter, format: str | None = None,
              by: str = "sequence", unique: bool = False, block: int = BLOCK) -> int:
    """Write the records of a file in ascending order of their keys, compared byte by byte; returns how many.

    Args:
        path: FASTA, FASTQ or any lines, plain, gzip or zstd; "-" for standard input.
        write: takes the bytes of some records, as a buffer.
        sorter: its ``threads`` are also those of the rest of the work.
        format: "fasta", "fastq" or "lines"; None to tell from the first letter.
        by: "sequence" (letters without white space, as they are written), "header", or "length" of the sequence. A line
            is all three.
        unique: of records with equal keys only the first is written, with the count: ``count=N`` behind the header,
            before the line.
        block: bytes sorted in memory at a time.

    Raises:
        InputError: the file can't be read or isn't of the format.
        OptionError: ``unique`` by length.
    """
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    if by not in KEYS:
        raise UnknownNameError("key to sort by", by, KEYS)
    if unique and by == "length":
        raise OptionError("--unique needs --by sequence or --by header: records of one length are not the same")
    where = "standard input" if path == "-" else path
    with tempfile.TemporaryDirectory(prefix="seqloom-sort-") as folder, opened(path) as stream:
        head = stream.peek(HEAD)[:1]
        kind = format or {b">": "fasta", b"@": "fastq"}.get(head, "lines")
        runs: list[str] = []
        for part, last in blocks(stream, kind, by, where, block, sorter.threads):
            rows, counts = _sorted(part, np.ones(len(part.keys), np.int64) if unique else None, sorter)
            if last and not runs:
                return _write(write, part.records, rows, counts, kind, sorter.threads)
            runs.append(f"{folder}/{len(runs)}")
            with open(runs[-1], "wb") as run:
                _write(run.write, part.records, rows, None, kind, sorter.threads)
            if counts is not None:
                counts.tofile(f"{runs[-1]}.counts")
        sources = [_Run(name, kind, by, unique, max(_PIECE, block // (len(runs) + 1))) for name in runs]
        return sum(_write(write, part.records, rows, counts, kind, sorter.threads)
                   for part, rows, counts in _merged(sources, unique, sorter))


def _sorted(block: Block, counts: np.ndarray | None, sorter: Sorter) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows of a block in order; with ``counts`` the first of equal ones only, and the sums of their counts."""
    order = sorter.order(block.keys)
    if counts is None or not len(order):
        return order, counts
    first = first_of_equal(block.keys, order, sorter.threads)
    return order[first], np.add.reduceat(counts[order], first)


def _write(write: Callable[[Any], object], records: Ragged, rows: np.ndarray, counts: np.ndarray | None, kind: str,
           threads: int) -> int:
    """Write some records in this order, with their counts if there are any; returns how many."""
    def text(start: int) -> np.ndarray:
        part = slice(start, start + _ROWS)
        return copied(records, rows[part]) if counts is None else counted(records, rows[part], counts[part], kind)

    starts = range(0, len(rows), _ROWS)
    for n in range(0, len(starts), threads):
        for piece in in_turn(threads, text, starts[n : n + threads]):
            write(piece)
    return len(rows)


class _Run:
    """A sorted temporary file, read piece by piece."""

    def __init__(self, path: str, kind: str, by: str, unique: bool, size: int) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed at the end of the file)
        self._blocks = blocks(Stream(self._file, path, file=self._file), kind, by, path, size)
        self._counts = np.memmap(f"{path}.counts", np.int64, "r") if unique else None
        self._block: Block | None = None
        self._row = self._before = 0  # rows taken of this block; rows of the blocks before

    def unread(self) -> bool:
        """Whether there are more records, the first of which are then at hand."""
        while self._block is None or self._row == len(self._block.keys):
            self._before += self._row
            self._block, self._row = next(self._blocks, (None, True))[0], 0
            if self._block is None:
                self._file.close()
                return False
        return True

    def last(self) -> bytes:
        """The last key at hand."""
        assert self._block is not None
        return self._block.keys[len(self._block.keys) - 1].tobytes()

    def take(self, bound: bytes, inclusive: bool) -> tuple[Block, np.ndarray | None]:
        """The records at hand with keys below a bound, or that and equal to it; and their counts."""
        assert self._block is not None
        keys, first = self._block.keys, self._row

        def beyond(row: int) -> bool:
            key = keys[row].tobytes()
            return key > bound or (key == bound and not inclusive)

        self._row = first + bisect_left(range(first, len(keys)), True, key=beyond)
        counts = None
        if self._counts is not None:
            counts = np.array(self._counts[self._before + first : self._before + self._row])
        return self._block.part(first, self._row), counts


def _merged(runs: list[_Run], unique: bool,
            sorter: Sorter) -> Iterator[tuple[Block, np.ndarray, np.ndarray | None]]:
    """Records of all runs in order, earlier runs first among equal keys: some at a time, their order and counts."""
    kept: list[tuple[Block, np.ndarray | None]] = []  # the last record, which may have equals in what comes
    while runs := [run for run in runs if run.unread()]:
        # What is at most the least of the last keys can't come behind what isn't read; of keys equal to it only those
        # of the runs up to that one, for equals of the later runs may still be unread in it.
        bound, number = min((run.last(), n) for n, run in enumerate(runs))
        parts = [*kept, *(run.take(bound, n <= number) for n, run in enumerate(runs))]
        block = Block.concat([part for part, _ in parts])
        counts = np.concatenate([c for _, c in parts if c is not None]) if unique else None
        rows, counts = _sorted(block, counts, sorter)
        if counts is not None:
            kept = [(Block.concat([block.part(rows[-1], rows[-1] + 1)]), counts[-1:])]
            rows, counts = rows[:-1], counts[:-1]
        yield block, rows, counts
    for part, counts in kept:
        yield part, np.zeros(1, np.int64), counts
