"""Files of sequences or lines, sorted: by sequence, header or length, stable, with or without doubles.

A record stays as it is in the file, byte for byte. What fits one block is sorted in memory; a larger file is sorted
block by block into temporary files, which are then merged.
"""

import heapq
import struct
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from typing import IO, NamedTuple

import numpy as np

from .core.errors import InputError, OptionError, UnknownNameError
from .core.keys import byte_keys
from .core.records import Ragged
from .core.stages import Sorter
from .inputs import HEAD, Stream, opened

FORMATS = ("fasta", "fastq", "lines")
KEYS = ("sequence", "header", "length")
BLOCK = 128 << 20
"""Bytes that are sorted in memory at a time."""
_ROWS = 1 << 16  # records written at a time
_FRAME = struct.Struct("<III")  # of a record in a temporary file: bytes of the key, bytes of the record, count


class _Block(NamedTuple):
    """Some records: their bytes, header without its first letter, and sequence, row by row."""

    records: Ragged
    headers: Ragged
    sequences: Ragged


def sort_file(path: str, write: Callable[[bytes], object], sorter: Sorter, format: str | None = None,
              by: str = "sequence", unique: bool = False, block: int = BLOCK) -> int:
    """Write the records of a file in ascending order of their keys, compared byte by byte; returns how many.

    Args:
        path: FASTA, FASTQ or any lines, plain, gzip or zstd; "-" for standard input.
        write: takes the bytes of some records.
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
    written = 0
    with tempfile.TemporaryDirectory(prefix="seqloom-sort-") as folder, opened(path) as stream:
        head = stream.peek(HEAD)[:1]
        kind = format or {b">": "fasta", b"@": "fastq"}.get(head, "lines")
        runs: list[str] = []
        blocks = _blocks(stream, kind, where, block)
        first, second = next(blocks), next(blocks, None)
        if second is None:
            for rows, counts in _sorted(first, by, unique, sorter):
                write(_counted(first.records, rows, counts, kind) if unique else
                      first.records.take(rows).values.tobytes())
                written += len(rows)
            return written
        for number, part in enumerate(chain((first, second), blocks)):
            runs.append(f"{folder}/{number}")
            with open(runs[-1], "wb") as run:
                _keep(run, part, by, unique, sorter)
        for record, count in _merged(runs, unique):
            write(_with_count(record, count, kind) if unique else record)
            written += 1
    return written


def _blocks(stream: Stream, kind: str, where: str, size: int) -> Iterator[_Block]:
    """Blocks of whole records, of ``size`` bytes about; a record larger than that makes a larger one."""
    rest, line = b"", 1
    while True:
        more = stream.read(size)
        ended = len(more) < size
        data = rest + more
        if ended and data and not data.endswith(b"\n"):
            data += b"\n"
        cut = len(data) if ended else _last_record(data, kind)
        if cut:
            taken, rest = np.frombuffer(data[:cut], np.uint8), data[cut:]
            yield _PARSERS[kind](taken, where, line)
            line += int((taken == 10).sum())
        else:
            rest = data
        if ended:
            return


def _last_record(data: bytes, kind: str) -> int:
    """Where the last record begins that may go on beyond ``data``; 0 if none is whole."""
    if kind == "fasta":
        return max(0, data.rfind(b"\n>") + 1)
    if kind == "lines":
        return data.rfind(b"\n") + 1
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 10)
    whole = len(ends) // 4 * 4
    return int(ends[whole - 1]) + 1 if whole else 0


def _lines(data: np.ndarray, where: str, line: int) -> _Block:
    ends = np.flatnonzero(data == 10)
    starts = np.append(0, ends + 1)
    rows = Ragged(starts - np.arange(len(starts)), data[data != 10])
    return _Block(Ragged(starts, data), rows, rows)


def _fasta(data: np.ndarray, where: str, line: int) -> _Block:
    starts = np.flatnonzero((data == ord(">")) & (np.append(10, data[:-1]) == 10))
    if not len(starts) or starts[0]:
        raise InputError(f"{where}: line {line}: a FASTA record begins with '>'; give --format lines to sort lines")
    ends = np.flatnonzero(data == 10)
    header_ends = ends[np.searchsorted(ends, starts)]
    change = np.zeros(len(data) + 1, np.int8)
    change[starts] += 1
    change[header_ends] -= 1
    header = np.cumsum(change[:-1], dtype=np.int8) > 0
    offsets = np.append(starts, len(data))
    named = header & (data != 13)
    named[starts] = False
    return _Block(Ragged(offsets, data), _chosen(data, named, offsets), _chosen(data, ~header & (data > 32), offsets))


def _fastq(data: np.ndarray, where: str, line: int) -> _Block:
    bounds = np.append(0, np.flatnonzero(data == 10) + 1)
    count = (len(bounds) - 1) // 4
    whole = len(bounds) - 1 == 4 * count
    table = bounds[: 4 * count].reshape(-1, 4)
    wrong = np.flatnonzero((data[table[:, 0]] != ord("@")) | (data[table[:, 2]] != ord("+")))
    if len(wrong) or not whole:
        place = int(wrong[0]) if len(wrong) else count
        raise InputError(f"{where}: line {line + 4 * place}: a FASTQ record is four lines, the first with '@', the "
                         "third with '+'; repair the file or give --format lines")
    offsets = bounds[::4]
    kind = np.repeat(np.tile(np.arange(4, dtype=np.int8), count), np.diff(bounds))
    named = (kind == 0) & (data != 13) & (data != 10)
    named[offsets[:-1]] = False
    letters = (kind == 1) & (data > 32)
    return _Block(Ragged(offsets, data), _chosen(data, named, offsets), _chosen(data, letters, offsets))


_PARSERS = {"fasta": _fasta, "fastq": _fastq, "lines": _lines}


def _chosen(data: np.ndarray, mask: np.ndarray, offsets: np.ndarray) -> Ragged:
    """The bytes of each row where ``mask`` is set."""
    before = np.append(0, np.cumsum(mask))
    return Ragged(before[offsets], data[mask])


def _keys(block: _Block, by: str) -> Ragged:
    if by == "length":
        return byte_keys([np.diff(block.sequences.offsets)])
    return block.headers if by == "header" else block.sequences


def _sorted(block: _Block, by: str, unique: bool, sorter: Sorter) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of a block in order, some at a time, and how many records each stands for."""
    keys = _keys(block, by)
    order = sorter.order(keys)
    counts = np.ones(len(order), np.int64)
    if unique and len(order):
        new = np.ones(len(order), bool)
        for start in range(1, len(order), _ROWS):
            new[start : start + _ROWS] = _differ(keys, order[start - 1 : start + _ROWS])
        first = np.flatnonzero(new)
        order, counts = order[first], np.diff(np.append(first, len(order)))
    for start in range(0, len(order), _ROWS):
        yield order[start : start + _ROWS], counts[start : start + _ROWS]


def _differ(keys: Ragged, rows: np.ndarray) -> np.ndarray:
    """bool[n − 1]: whether each of the rows differs from the one before."""
    lengths = (keys.offsets[1:] - keys.offsets[:-1])[rows]
    result = lengths[1:] != lengths[:-1]
    alike = np.flatnonzero(~result)
    one, other = keys.take(rows[alike]), keys.take(rows[alike + 1])
    before = np.append(0, np.cumsum(one.values != other.values))
    result[alike] = before[one.offsets[1:]] > before[one.offsets[:-1]]
    return result


def _counted(records: Ragged, rows: np.ndarray, counts: np.ndarray, kind: str) -> bytes:
    return b"".join(_with_count(records[row].tobytes(), count, kind)
                    for row, count in zip(rows.tolist(), counts.tolist(), strict=True))


def _with_count(record: bytes, count: int, kind: str) -> bytes:
    if kind == "lines":
        return b"%d\t%s" % (count, record)
    header, _, rest = record.partition(b"\n")
    return b"%s count=%d\n%s" % (header.rstrip(b"\r"), count, rest)


def _keep(run: IO[bytes], block: _Block, by: str, unique: bool, sorter: Sorter) -> None:
    """Write a sorted block to a temporary file."""
    keys = _keys(block, by)
    for rows, counts in _sorted(block, by, unique, sorter):
        for row, count in zip(rows.tolist(), counts.tolist(), strict=True):
            key, record = keys[row].tobytes(), block.records[row].tobytes()
            run.write(_FRAME.pack(len(key), len(record), count) + key + record)


def _read(path: str, number: int) -> Iterator[tuple[bytes, int, int, bytes]]:
    with open(path, "rb", buffering=1 << 20) as run:
        while frame := run.read(_FRAME.size):
            key, record, count = _FRAME.unpack(frame)
            yield run.read(key), number, count, run.read(record)


def _merged(runs: list[str], unique: bool) -> Iterator[tuple[bytes, int]]:
    """Records of all runs in order, earlier runs first among equal keys, and how many each stands for."""
    before: bytes | None = None
    kept, total = b"", 0
    merged = heapq.merge(*(_read(path, n) for n, path in enumerate(runs)), key=lambda item: item[:2])
    for key, _, count, record in merged:
        if not unique:
            yield record, count
        elif key == before:
            total += count
        else:
            if before is not None:
                yield kept, total
            before, kept, total = key, record, count
    if before is not None:
        yield kept, total
