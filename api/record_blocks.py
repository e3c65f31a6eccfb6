"""Records of FASTA, FASTQ and line files, some at a time: their bytes as they are, and the keys to sort them by."""

from collections.abc import Iterator, Sequence

import numpy as np
from seqloom.core.classes import dataclass

from .core.engine.threads import by_threads
from .core.errors import InputError
from .core.kernels.jit import kernel
from .core.kernels.simd import prefetch
from .core.keys import byte_keys
from .core.records import Ragged
from .inputs import HEAD, Stream

UTF8_MARK = b"\xef\xbb\xbf"
"""What some editors put before UTF-8."""
_BYTES = np.arange(256)
_KEPT = {"header": (_BYTES != 10) & (_BYTES != 13), "sequence": _BYTES > 32}
"""bool[256]: the bytes that are part of a key: of a header, of a sequence."""
_AHEAD = 12  # records
_READ = 1 << 20  # bytes


@dataclass(frozen=True)
class Block:
    """Some records: their bytes, and their keys, row by row.

    A line is held without the byte that ends it.

    Attributes:
        records: u1 rows.
        other_keys: u1 rows; None where the records are their own keys.
    """

    records: Ragged
    other_keys: Ragged | None = None

    @property
    def keys(self) -> Ragged:
        return self.records if self.other_keys is None else self.other_keys

    def part(self, first: int, last: int) -> "Block":
        """Rows first … last − 1."""
        def cut(rows: Ragged) -> Ragged:
            bounds = rows.offsets[first : last + 1]
            return Ragged(bounds - bounds[0], rows.values[bounds[0] : bounds[-1]])

        return Block(cut(self.records), None if self.other_keys is None else cut(self.other_keys))

    @classmethod
    def concat(cls, parts: Sequence["Block"]) -> "Block":
        keys = [p.other_keys for p in parts if p.other_keys is not None]
        return cls(Ragged.concat([p.records for p in parts]), Ragged.concat(keys) if keys else None)


def skip_to_records(stream: Stream) -> int:
    """Read past ``UTF8_MARK`` and blank lines; returns the number of the next line.

    Such as stand in the first bytes of the file, from which its format is told.
    """
    head = stream.peek(HEAD)
    text = head.removeprefix(UTF8_MARK)
    blank = text[: len(text) - len(text.lstrip())].rpartition(b"\n")
    stream.read(len(head) - len(text) + len(blank[0] + blank[1]))
    return 1 + blank[0].count(b"\n") + len(blank[1])


def blocks(stream: Stream, kind: str, by: str, where: str, size: int, threads: int = 1,
           line: int = 1) -> Iterator[tuple[Block, bool]]:
    """The records of a file, in blocks of ``size`` bytes about, and with each whether it is known to be the last one.

    A record larger than a block makes a larger one.

    Args:
        kind: "fasta", "fastq" or "lines".
        by: "sequence" (without white space), "header" (without its first character) or "length" (of the sequence).
        where: what the file is called in errors.
        line: number of the first line that is read.

    Raises:
        InputError: a record isn't of the format; says in which line.
    """
    rest = np.empty(0, np.uint8)
    while True:
        # As much again where a record is larger than a block, or many small steps would copy it each time.
        data = np.empty(len(rest) + max(size, len(rest)) + 1, np.uint8)
        data[: len(rest)] = rest
        filled = len(rest)
        while filled < len(data) - 1:
            more = stream.read(min(_READ, len(data) - 1 - filled))
            if not more:
                break
            data[filled : filled + len(more)] = np.frombuffer(more, np.uint8)
            filled += len(more)
        ended = filled < len(data) - 1
        if ended and filled and data[filled - 1] != 10:
            data[filled] = 10
            filled += 1
        cut = filled if ended else _last_record(data[:filled], kind)
        if cut:
            starts = _line_starts(data[:cut], threads)
            if ended and kind == "fastq":
                starts = starts[: 1 + _record_lines(data, starts)]
            yield _parsed(data[: starts[-1]], starts, kind, by, where, line, threads), ended
            line += len(starts) - 1
        rest = data[cut:filled]
        if ended:
            return


def _last_record(data: np.ndarray, kind: str) -> int:
    """Where the last record begins that may go on beyond ``data``; 0 if none is whole."""
    if kind == "fastq":
        end = int(_line_before(data, len(data), False))
        for _ in range(int(_count_lines(data, 0, len(data))) % 4):
            end = int(_line_before(data, end - 1, False))
        return end
    return int(_line_before(data, len(data), kind == "fasta"))


def _line_starts(data: np.ndarray, threads: int) -> np.ndarray:
    """i8[n + 1]: where each line begins, and the end; the data end with the end of a line."""
    counts = by_threads(threads, 0, len(data), lambda n, first, last: _count_lines(data, first, last))
    before = np.concatenate([[0], np.cumsum(counts)])
    starts = np.zeros(before[-1] + 1, np.int64)
    by_threads(threads, 0, len(data), lambda n, first, last: _find_lines(data, first, last, starts[1 + before[n] :]))
    return starts


def _record_lines(data: np.ndarray, starts: np.ndarray) -> int:
    """How many lines of the end of a FASTQ file there are but for blank ones behind the last record."""
    lines = last = len(starts) - 1
    while last and data[starts[last - 1]] <= ord(" "):
        last -= 1
    return min(lines, -(-last // 4) * 4)


def _parsed(data: np.ndarray, starts: np.ndarray, kind: str, by: str, where: str, line: int, threads: int) -> Block:
    """The records of ``data``, whose first line is number ``line`` of the file; both arrays may be written over."""
    part = "header" if by == "header" else "sequence"
    if kind == "lines":
        _cut_ends(data, starts)
        lines = Ragged(starts, data[: starts[-1]])
        return Block(lines, byte_keys([np.diff(lines.offsets)]) if by == "length" else None)
    if kind == "fastq":
        _check_fastq(data, starts, where, line)
        bounds = starts[::4]
        begins, ends = (starts[:-1:4] + 1, starts[1::4]) if part == "header" else (starts[1::4], starts[2::4])
    else:
        heads = np.flatnonzero(data[starts[:-1]] == ord(">"))
        if not len(heads) or heads[0]:
            raise InputError(f"{where}: line {line}: a FASTA record begins with '>'; give --format lines to sort lines")
        bounds, behind = np.append(starts[heads], len(data)), starts[heads + 1]
        begins, ends = (bounds[:-1] + 1, behind) if part == "header" else (behind, bounds[1:])
    begins, ends = np.ascontiguousarray(begins), np.ascontiguousarray(ends)
    bounds = np.ascontiguousarray(bounds)
    kept, offsets = _KEPT[part], np.zeros(len(begins) + 1, np.int64)
    by_threads(threads, 0, len(begins), lambda n, first, last: _measure(
        data, begins, ends, kept, first, last, offsets[1:]))
    if by == "length":
        return Block(Ragged(bounds, data), byte_keys([offsets[1:]]))
    np.cumsum(offsets, out=offsets)
    keys = np.empty(offsets[-1], np.uint8)
    by_threads(threads, 0, len(begins), lambda n, first, last: _keep(
        data, begins, ends, kept, first, last, offsets, keys))
    return Block(Ragged(bounds, data), Ragged(offsets, keys))


def _check_fastq(data: np.ndarray, starts: np.ndarray, where: str, line: int) -> None:
    count = (len(starts) - 1) // 4
    heads, pluses = data[starts[: 4 * count : 4]], data[starts[2 : 4 * count : 4]]
    wrong = np.flatnonzero((heads != ord("@")) | (pluses != ord("+")))
    if len(wrong) or len(starts) - 1 > 4 * count:
        place = int(wrong[0]) if len(wrong) else count
        raise InputError(f"{where}: line {line + 4 * place}: a FASTQ record is four lines, the first with '@', the "
                         "third with '+'; repair the file or give --format lines")
    residues, qualities = (_line_lengths(data, starts[n : 4 * count + 1 : 4], starts[n + 1 : 4 * count + 1 : 4])
                          for n in (1, 3))
    wrong = np.flatnonzero(residues != qualities)
    if len(wrong):
        place = int(wrong[0])
        raise InputError(f"{where}: line {line + 4 * place + 3}: {qualities[place]:,} qualities for a sequence of "
                         f"{residues[place]:,} bases; repair the file or give --format lines")


def _line_lengths(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """i8: bytes of lines without those that end them."""
    lengths = ends - starts - 1
    return lengths - ((lengths > 0) & (data[ends - 2] == ord("\r")))


def first_of_equal(keys: Ragged, order: np.ndarray, threads: int = 1) -> np.ndarray:
    """i8: places in ``order``, a sorted one, whose key differs from the one before."""
    new = np.ones(len(order), np.bool_)
    by_threads(threads, 0, len(order), lambda n, first, last: _differ(
        keys.values, keys.offsets, order, first, last, new))
    return np.flatnonzero(new)


def copied(records: Ragged, rows: np.ndarray, kind: str) -> np.ndarray:
    """u1: the bytes of some records as they stand in a file, one behind the other."""
    end = _ending(kind)
    out = np.empty(_size(records.offsets, rows) + len(rows) * len(end), np.uint8)
    _copy_rows(records.values, records.offsets, rows, end, out)
    return out


def counted(records: Ragged, rows: np.ndarray, counts: np.ndarray, kind: str) -> np.ndarray:
    """u1: like ``copied``, each with its count: before a line, else behind the header."""
    before, behind = (b"", b"\t") if kind == "lines" else (b" count=", b"")
    end = _ending(kind)
    out = np.empty(_size(records.offsets, rows) + len(rows) * (20 + len(before + behind) + len(end)), np.uint8)
    text = [np.frombuffer(t, np.uint8) for t in (before, behind)]
    return out[: _copy_counted(records.values, records.offsets, rows, counts, kind != "lines", *text, end, out)]


def _ending(kind: str) -> np.ndarray:
    """u1: what stands behind every record."""
    return np.frombuffer(b"\n" if kind == "lines" else b"", np.uint8)


@kernel
def _count_lines(data, first, last):
    count = 0
    for place in range(np.uint64(first), np.uint64(last)):
        count += data[place] == 10
    return count


@kernel
def _find_lines(data, first, last, starts):
    found = np.uint64(0)
    for place in range(np.uint64(first), np.uint64(last)):
        if data[place] == 10:
            starts[found] = place + np.uint64(1)
            found += np.uint64(1)


@kernel
def _line_before(data, end, headed):
    """Where the last line before ``end`` begins, or the one with '>' if ``headed``; 0 if there is none."""
    for place in range(end, 0, -1):
        if data[place - 1] == 10 and (not headed or (place < len(data) and data[place] == 62)):
            return place
    return 0


@kernel
def _cut_ends(data, starts):
    """Move lines together, without the byte that ends each; ``starts`` become where they begin then."""
    at, begin = np.uint64(0), np.uint64(0)
    for line in range(1, len(starts)):
        behind = np.uint64(starts[line])
        for place in range(begin, behind - np.uint64(1)):
            data[at] = data[place]
            at += np.uint64(1)
        starts[line] = at
        begin = behind


@kernel
def _measure(data, begins, ends, kept, first, last, lengths):
    """How many bytes of each stretch are kept."""
    for row in range(first, last):
        count = 0
        for place in range(np.uint64(begins[row]), np.uint64(ends[row])):
            count += kept[data[place]]
        lengths[row] = count


@kernel
def _keep(data, begins, ends, kept, first, last, offsets, out):
    """The bytes of each stretch that are kept."""
    for row in range(first, last):
        at, end = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        for place in range(np.uint64(begins[row]), np.uint64(ends[row])):
            if at < end:
                out[at] = data[place]
            at += np.uint64(kept[data[place]])


@kernel
def _differ(values, offsets, order, first, last, new):
    for place in range(max(first, 1), last):
        if place + 2 * _AHEAD < last:
            prefetch(offsets, order[place + 2 * _AHEAD])
            prefetch(values, offsets[order[place + _AHEAD]])
        one, other = order[place - 1], order[place]
        at, end = np.uint64(offsets[one]), np.uint64(offsets[one + 1])
        there = np.uint64(offsets[other])
        differs = end - at != np.uint64(offsets[other + 1]) - there
        while not differs and at < end:
            differs = values[at] != values[there]
            at += np.uint64(1)
            there += np.uint64(1)
        new[place] = differs


@kernel
def _size(offsets, rows):
    """Bytes of some records."""
    size = 0
    for n, row in enumerate(rows):
        if n + _AHEAD < len(rows):
            prefetch(offsets, rows[n + _AHEAD])
        size += offsets[row + 1] - offsets[row]
    return size


@kernel
def _copy_rows(values, offsets, rows, end, out):
    at = np.uint64(0)
    for n, row in enumerate(rows):
        # Records lie anywhere: ask for the bounds of one and for the bytes of a nearer one ahead of time.
        if n + 2 * _AHEAD < len(rows):
            prefetch(offsets, rows[n + 2 * _AHEAD])
            prefetch(values, offsets[rows[n + _AHEAD]])
        for place in range(np.uint64(offsets[row]), np.uint64(offsets[row + 1])):
            out[at] = values[place]
            at += np.uint64(1)
        for character in end:
            out[at] = character
            at += np.uint64(1)


@kernel
def _copy_counted(values, offsets, rows, counts, behind_first_line, before, behind, ending, out):
    """Copy rows, each with its count at its beginning or behind its first line; returns the bytes written."""
    at = np.uint64(0)
    digits = np.empty(20, np.uint8)
    for n in range(len(rows)):
        if n + 2 * _AHEAD < len(rows):
            prefetch(offsets, rows[n + 2 * _AHEAD])
            prefetch(values, offsets[rows[n + _AHEAD]])
        place, end = np.uint64(offsets[rows[n]]), np.uint64(offsets[rows[n] + 1])
        if behind_first_line:
            stop = place
            while stop < end and values[stop] != 10:
                stop += np.uint64(1)
            while stop > place and values[stop - np.uint64(1)] == 13:
                stop -= np.uint64(1)
            for copied in range(place, stop):
                out[at] = values[copied]
                at += np.uint64(1)
            place = stop
        for character in before:
            out[at] = character
            at += np.uint64(1)
        count, used = np.uint64(counts[n]), 0
        while count or not used:
            digits[used] = np.uint64(48) + count % np.uint64(10)
            count //= np.uint64(10)
            used += 1
        while used:
            used -= 1
            out[at] = digits[used]
            at += np.uint64(1)
        for character in behind:
            out[at] = character
            at += np.uint64(1)
        for copied in range(place, end):
            out[at] = values[copied]
            at += np.uint64(1)
        for character in ending:
            out[at] = character
            at += np.uint64(1)
    return at
