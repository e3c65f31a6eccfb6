"""Files of sequences or lines, sorted: by sequence, header or length, stable, with or without doubles.

A record stays as it is in the file, byte for byte. What fits one block is sorted in memory. A larger file is sorted
block by block into temporary files of its own format, the runs, which are then merged: a piece of each run is read, all
records that can't come behind an unread one are sorted together and written, and so on. Of more runs than a block has
room for pieces, neighbours are merged to longer runs first.
"""

import os
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .core.errors import OptionError, StoreError, UnknownNameError
from .core.records import Ragged
from .core.stages import Sorter, row_type
from .core.threads import in_turn
from .inputs import HEAD, Stream, opened
from .record_blocks import UTF8_MARK, Block, blocks, copied, counted, first_of_equal, skip_to_records

FORMATS = ("fasta", "fastq", "lines")
KEYS = ("sequence", "header", "length")
PER_BYTE = 8
"""Bytes of memory that a byte of a block takes, about, where records have twenty bytes or more."""
_PIECE = 1 << 20  # least bytes of a run that are read at a time
_MOST_RUNS = 256  # merged at a time: a process may have a thousand files open, and a run with counts takes two
_ROWS = 1 << 16  # records copied at a time


def sort_file(path: str, write: Callable[[Any], object], sorter: Sorter, format: str | None = None,
              by: str = "sequence", unique: bool = False, block: int | None = None) -> int:
    """Write the records of a file in ascending order of their keys, compared byte by byte; returns how many.

    Args:
        path: FASTA, FASTQ or any lines, plain, gzip or zstd; "-" for standard input. An empty file has no records.
        write: takes the bytes of some records, as a buffer.
        sorter: its ``threads`` are also those of the rest of the work.
        format: "fasta", "fastq" or "lines"; None to tell from the first letter.
        by: "sequence" (letters without white space, as they are written), "header", or "length" of the sequence. A line
            is all three.
        unique: of records with equal keys only the first is written, with the count: ``count=N`` behind the header,
            before the line.
        block: bytes sorted in memory at a time; None for ``default_block()``.

    Raises:
        InputError: the file can't be read or isn't of the format.
        OptionError: ``unique`` by length; ``block`` below 1.
        StoreError: there is no room for the runs.
    """
    if format is not None and format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    if by not in KEYS:
        raise UnknownNameError("key to sort by", by, KEYS)
    if unique and by == "length":
        raise OptionError("--unique needs --by sequence or --by header: records of one length are not the same")
    if block is not None and block < 1:
        raise OptionError(f"a block holds at least one byte, not {block}")
    where = "standard input" if path == "-" else path
    block = block or default_block()
    with tempfile.TemporaryDirectory(prefix="seqloom-sort-") as folder, opened(path, may_be_empty=True) as stream:
        kind = format or {b">": "fasta", b"@": "fastq"}.get(stream.peek(HEAD).removeprefix(UTF8_MARK).lstrip()[:1],
                                                            "lines")
        line = 1 if kind == "lines" else skip_to_records(stream)
        work = _Work(kind, by, unique, sorter, folder)
        runs: list[_Run] = []
        for part, last in blocks(stream, kind, by, where, block, sorter.threads, line):
            rows, counts = work.sorted(part)
            if last and not runs:
                return work.write(write, part.records, rows, counts)
            if len(rows):
                runs.append(work.run([(part, rows, counts)]))
        most = max(2, min(_MOST_RUNS, block // _PIECE))
        while len(runs) > most:
            count = min(most, len(runs) - most + 1)
            first = min(range(len(runs) - count + 1), key=lambda n: sum(run.size for run in runs[n : n + count]))
            runs[first : first + count] = [work.run(work.merged(runs[first : first + count], block))]
        return sum(work.write(write, part.records, rows, counts) for part, rows, counts in work.merged(runs, block))


def default_block() -> int:
    """Bytes that are sorted in memory at a time where nothing else is asked for.

    Such as take a quarter of the machine's memory; not more than 4 GiB, which longer runs make no quicker.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(_PIECE, min(memory // 4, 4 << 30) // PER_BYTE)


class _Run(NamedTuple):
    """A sorted temporary file of ``size`` bytes; beside it, as ``path``.counts, the counts of its records, if any."""

    path: str
    size: int


_Sorted = tuple[Block, np.ndarray, np.ndarray | None]  # records, their rows in order, and the count of each of these


class _Work:
    """How one file is sorted."""

    def __init__(self, kind: str, by: str, unique: bool, sorter: Sorter, folder: str) -> None:
        self._kind, self._by, self._unique, self._sorter, self._folder = kind, by, unique, sorter, folder
        self._runs = 0

    def sorted(self, block: Block, counts: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Rows of a block in order; without doubles, if they are to go, and with the sums of their counts then.

        Args:
            counts: how many records each row stands for; one when left out.
        """
        order = self._sorter.order(block.keys)
        if not self._unique:
            return order, None
        first = first_of_equal(block.keys, order, self._sorter.threads)
        if counts is None:
            return order[first], np.diff(first, append=len(order))
        return order[first], np.add.reduceat(counts[order], first) if len(order) else counts

    def write(self, write: Callable[[Any], object], records: Ragged, rows: np.ndarray,
              counts: np.ndarray | None) -> int:
        """Write some records in this order, with their counts if there are any; returns how many."""
        def text(start: int) -> np.ndarray:
            part = rows[start : start + _ROWS]
            if counts is None:
                return copied(records, part, self._kind)
            return counted(records, part, counts[start : start + _ROWS], self._kind)

        threads, starts = self._sorter.threads, range(0, len(rows), _ROWS)
        for n in range(0, len(starts), threads):
            for piece in in_turn(threads, text, starts[n : n + threads]):
                write(piece)
        return len(rows)

    def run(self, parts: Iterable[_Sorted]) -> _Run:
        """A run of some records that come in order."""
        path = f"{self._folder}/{self._runs}"
        self._runs += 1
        try:
            with open(path, "wb") as run, open(f"{path}.counts", "wb") as sums:
                for part, rows, counts in parts:
                    self.write(run.write, part.records, rows, None)
                    if counts is not None:
                        sums.write(counts.data)
        except OSError as error:
            raise StoreError(f"{self._folder}: a sorted run can't be written: {error.strerror}; make room there, or "
                             "set TMPDIR to a folder with room for a copy of the file") from None
        return _Run(path, os.path.getsize(path))

    def merged(self, runs: list[_Run], block: int) -> Iterator[_Sorted]:
        """Records of some runs in order, earlier runs first among equal keys: some at a time. Removes the runs."""
        size = max(_PIECE, block // (len(runs) + 1))
        sources = [_Pieces(run.path, self._kind, self._by, self._unique, size) for run in runs]
        kept: list[tuple[Block, np.ndarray | None]] = []  # the last record, which may have equals in what comes
        while sources := [source for source in sources if source.unread()]:
            # What is at most the least of the last keys can't come behind what isn't read; of keys equal to it only
            # those of the runs up to that one, for equals of the later runs may still be unread in it.
            bound, number = min((source.last(), n) for n, source in enumerate(sources))
            parts = [*kept, *(source.take(bound, n <= number) for n, source in enumerate(sources))]
            together = Block.concat([part for part, _ in parts])
            counts = np.concatenate([c for _, c in parts if c is not None]) if self._unique else None
            rows, counts = self.sorted(together, counts)
            if counts is not None:
                kept = [(Block.concat([together.part(rows[-1], rows[-1] + 1)]), counts[-1:])]
                rows, counts = rows[:-1], counts[:-1]
            yield together, rows, counts
        for part, counts in kept:
            yield part, np.zeros(1, row_type(1)), counts


class _Pieces:
    """A run, read piece by piece and removed at its end."""

    def __init__(self, path: str, kind: str, by: str, unique: bool, size: int) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed at the end of the file)
        self._blocks = blocks(Stream(self._file, path, file=self._file), kind, by, path, size)
        self._path = path
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
                os.unlink(self._path)
                os.unlink(f"{self._path}.counts")
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
