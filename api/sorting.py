"""Files of sequences or lines, sorted: by sequence, header or length, stable, with or without doubles.

A record stays as it is in the file, byte for byte. What fits one block is sorted in memory. A larger file is sorted
block by block into runs of its own format, which are then merged: a piece of each run is read, all records that can't
come behind an unread one are sorted together and written, and so on. Of more runs than a block has room for pieces,
neighbours are merged to longer runs first. The runs are stretches of one temporary file that has no name, so that
nothing is left of it however the process ends.
"""

import io
import os
import tempfile
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from .core import output_files
from .core.classes import NamedTuple
from .core.engine.threads import run_tasks
from .core.errors import OptionError, StoreError, UnknownNameError, concerning
from .core.progress import Progress
from .core.records import Ragged
from .core.stages import Sorter, row_type
from .inputs import HEAD, Stream, begin_reading, opened
from .record_blocks import UTF8_MARK, Block, blocks, copied, counted, first_of_equal, skip_to_records

FORMATS = ("fasta", "fastq", "lines")
KEYS = ("sequence", "header", "length")
PER_BYTE = 8
"""Bytes of memory that a byte of a block takes, about, where records have twenty bytes or more."""
_PIECE = 1 << 20  # least bytes of a run that are read at a time
_MOST_RUNS = 256  # merged at a time: a process may have a thousand files open, and a run with counts takes two
_ROWS = 1 << 16  # records copied at a time


def sort_file(path: str, out: "Callable[[Any], object] | str | os.PathLike[str]", sorter: Sorter,
              format: str | None = None, by: str = "sequence", unique: bool = False, block: int | None = None,
              progress: Progress | None = None) -> int:
    """Write the records of a file in ascending order of their keys, compared byte by byte; returns how many.

    Args:
        path: FASTA, FASTQ or any lines, plain or compressed; "-" for standard input. An empty file has no records.
        out: the file to write, which may be the one that is read: it appears only when whole, compressed if its name
            ends in ".gz" or ".zst"; or a function that takes the bytes of some records, as a buffer.
        sorter: its ``threads`` are also those of the rest of the work.
        format: "fasta", "fastq" or "lines"; None to tell from the first character.
        by: "sequence" (characters without white space, as they are written), "header", or "length" of the sequence. A
            line is all three.
        unique: of records with equal keys only the first is written, with the count: ``count=N`` behind the header,
            before the line.
        block: bytes sorted in memory at a time; None for ``default_block()``.
        progress: told of the bytes that are read; its cancellation stops the work.

    Raises:
        InputError: the file can't be read or isn't of the format.
        OptionError: ``unique`` by length; ``block`` below 1.
        StoreError: there is no room for the runs, or the file can't be written.
    """
    if isinstance(out, str | os.PathLike):
        with output_files.binary(out) as stream:
            return sort_file(path, stream.write, sorter, format, by, unique, block, progress)
    write = out
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
    begin_reading(progress, [path])
    with (concerning(where), _Spill() as spill, _Spill() as sums,
          opened(path, may_be_empty=True, progress=progress) as stream):
        kind = format or {b">": "fasta", b"@": "fastq"}.get(stream.peek(HEAD).removeprefix(UTF8_MARK).lstrip()[:1],
                                                            "lines")
        line = 1 if kind == "lines" else skip_to_records(stream)
        work = _Work(kind, by, unique, sorter, spill, sums)
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
    """Sorted records: ``size`` bytes from ``start`` of the temporary file; from ``counts`` of another their counts."""

    start: int
    size: int
    counts: int


class _Spill:
    """A temporary file without a name, made when it is first written to."""

    def __init__(self) -> None:
        self._file: Any = None
        self.end = 0

    def __enter__(self) -> "_Spill":
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, data: Any) -> None:
        """Add bytes at the end.

        Raises:
            StoreError: there is no room.
        """
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115 (closed when all is sorted)
                    buffering=0, dir=_temporary_folder())
            left = memoryview(data).cast("B")
            while left:
                written = os.pwrite(self._file.fileno(), left, self.end)
                self.end, left = self.end + written, left[written:]
        except OSError as error:
            folder = _temporary_folder() or "the temporary folder"
            raise StoreError(f"{folder}: a sorted run can't be written: {error.strerror or error}; make room there, or "
                             "set TMPDIR to a folder with room for a copy of the file") from None

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._file.fileno(), size, start)

    def give_back(self, start: int, end: int) -> None:
        """Let the disk have a stretch again, where the file system can."""
        page = 1 << 12
        start, end = -(-start // page) * page, end // page * page
        if end > start and (free := _punch()):
            free(self._file.fileno(), _KEEP_SIZE | _PUNCH_HOLE, start, end - start)


def _temporary_folder() -> str | None:
    """Where temporary files go, as ``tempfile`` has it, which tries folders out by files that a killed process leaves;
    None where that can't be told without."""
    folders = (tempfile.tempdir, *map(os.environ.get, ("TMPDIR", "TEMP", "TMP")), "/tmp")
    return next((f for f in folders if f and os.path.isdir(f) and os.access(f, os.W_OK | os.X_OK)), None)


_KEEP_SIZE, _PUNCH_HOLE = 1, 2


@cache
def _punch() -> Any:
    """The C library's ``fallocate``, if it has one."""
    import ctypes

    with suppress(OSError, AttributeError):
        found = ctypes.CDLL(None).fallocate64
        found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        return found
    return None


class _Stretch(io.RawIOBase):
    """The records of a run, to be read one behind the other; what has been read is given back to the disk."""

    def __init__(self, spill: _Spill, run: _Run) -> None:
        self._spill, self._at, self._end = spill, run.start, run.start + run.size

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = self._end - self._at if size < 0 else min(size, self._end - self._at)
        data = self._spill.read(self._at, size) if size else b""
        self._spill.give_back(self._at, self._at + len(data))
        self._at += len(data)
        return data


_Sorted = tuple[Block, np.ndarray, np.ndarray | None]  # records, their rows in order, and the count of each of these


class _Work:
    """How one file is sorted."""

    def __init__(self, kind: str, by: str, unique: bool, sorter: Sorter, spill: _Spill,
                 counts: _Spill) -> None:
        self._kind, self._by, self._unique, self._sorter = kind, by, unique, sorter
        self._spill, self._counts = spill, counts

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
            for piece in run_tasks(threads, text, starts[n : n + threads]):
                write(piece)
        return len(rows)

    def run(self, parts: Iterable[_Sorted]) -> _Run:
        """A run of some records that come in order."""
        start, first = self._spill.end, self._counts.end
        for part, rows, counts in parts:
            self.write(self._spill.write, part.records, rows, None)
            if counts is not None:
                self._counts.write(counts)
        return _Run(start, self._spill.end - start, first)

    def merged(self, runs: list[_Run], block: int) -> Iterator[_Sorted]:
        """Records of some runs in order, earlier runs first among equal keys: some at a time. Uses the runs up."""
        size = max(_PIECE, block // (len(runs) + 1))
        counts = self._counts if self._unique else None
        sources = [_RunReader(self._spill, counts, run, self._kind, self._by, size) for run in runs]
        kept: list[tuple[Block, np.ndarray | None]] = []  # the last record, which may have equals in what comes
        while sources := [source for source in sources if source.unread()]:
            # What is at most the least of the last keys can't come behind what isn't read; of keys equal to it only
            # those of the runs up to that one, for equals of the later runs may still be unread in it.
            bound, number = min((source.last(), n) for n, source in enumerate(sources))
            parts = [*kept, *(source.take(bound, n <= number) for n, source in enumerate(sources))]
            together = Block.concat([part for part, _ in parts])
            sums = np.concatenate([c for _, c in parts if c is not None]) if self._unique else None
            rows, sums = self.sorted(together, sums)
            if sums is not None:
                kept = [(Block.concat([together.part(rows[-1], rows[-1] + 1)]), sums[-1:])]
                rows, sums = rows[:-1], sums[:-1]
            yield together, rows, sums
        for part, sums in kept:
            yield part, np.zeros(1, row_type(1)), sums


class _RunReader:
    """A run, read piece by piece."""

    def __init__(self, spill: _Spill, counts: _Spill | None, run: _Run, kind: str, by: str, size: int) -> None:
        self._counts, self._first = counts, run.counts
        self._blocks = blocks(Stream(_Stretch(spill, run), "a sorted run"), kind, by, "a sorted run", size)
        self._block: Block | None = None
        self._row = self._before = 0  # rows taken of this block; rows of the blocks before

    def unread(self) -> bool:
        """Whether there are more records, the first of which are then in memory."""
        while self._block is None or self._row == len(self._block.keys):
            self._before += self._row
            self._block, self._row = next(self._blocks, (None, True))[0], 0
            if self._block is None:
                return False
        return True

    def last(self) -> bytes:
        """The last key in memory."""
        assert self._block is not None
        return self._block.keys[len(self._block.keys) - 1].tobytes()

    def take(self, bound: bytes, inclusive: bool) -> tuple[Block, np.ndarray | None]:
        """The records in memory with keys below a bound, or that and equal to it; and their counts."""
        assert self._block is not None
        keys, first = self._block.keys, self._row

        def beyond(row: int) -> bool:
            key = keys[row].tobytes()
            return key > bound or (key == bound and not inclusive)

        self._row = first + bisect_left(range(first, len(keys)), True, key=beyond)
        counts = None
        if self._counts is not None:
            start, size = self._first + 8 * (self._before + first), 8 * (self._row - first)
            counts = np.frombuffer(self._counts.read(start, size), np.int64)
            self._counts.give_back(start, start + size)
        return self._block.part(first, self._row), counts
