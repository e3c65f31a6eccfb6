"""Reads FASTQ. Qualities are not kept: no pipeline uses them.

The file is taken in blocks. In each numpy finds the lines and checks them; no step but that which joins the residues of
reads loops over records in Python. Blocks of larger files that are as plain as most are gone through by a kernel.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import IO, TYPE_CHECKING

import numpy as np
from seqloom.core.alphabet import INVALID, NUCLEOTIDE, Alphabet
from seqloom.core.engine.threads import concatenated
from seqloom.core.errors import InputError
from seqloom.core.stages import OnBad, Reader, SequenceBatch
from seqloom.core.text_rows import TextRows

from . import fasta
from .fasta import (
    LocatedBatch,
    check_kind,
    plain_table,
    reading_table,
    runs_of_records,
    with_line_feeds,
    words_of_headers,
)

if TYPE_CHECKING:
    from .plain_records_cpu import PlainRecords

_MARK = b"\xef\xbb\xbf"
_NEWLINE = ord("\n")


class FastqReader(Reader):
    """Reads in FASTQ (four lines a record); qualities are left out."""

    name = "fastq"
    gives = "sequences"

    def sniff(self, head: bytes) -> bool:
        return head.removeprefix(_MARK).lstrip().startswith(b"@")

    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad,
             residues: int) -> Iterator[SequenceBatch]:
        yield from _Reading(stream, where, alphabet, on_bad, residues, self.threads).batches()


class _Reading:
    """State of one file being read."""

    def __init__(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad, residues: int,
                 threads: int) -> None:
        self._stream, self._where, self._on_bad, self._limit = stream, where, on_bad, residues
        self._threads, self._block = threads, fasta.block_of(residues, threads)
        self._alphabet = alphabet or NUCLEOTIDE
        self._judged = alphabet is None
        self._table, self._plain_table = reading_table(self._alphabet), plain_table(self._alphabet)
        self._line = 1  # number of the next line
        self._read = 0  # records, with those that can't be used
        self._given = 0  # records in batches
        self._ended = 0  # number of the first of the blank lines that end the file; 0 if there is none so far
        self._names: list[Sequence[str]] = []
        self._descriptions: list[Sequence[str]] = []
        self._codes: list[np.ndarray] = []
        self._lengths: list[np.ndarray] = []
        self._lower: list[tuple[np.ndarray, np.ndarray]] = []
        self._lines: list[np.ndarray] = []
        self._residues = 0
        self._rest = b""  # of the file, behind the records that were given

    def batches(self) -> Iterator[SequenceBatch]:
        for block, found in self._looked_through():
            before = self._residues
            if found is None or self._ended:
                self._take(block, np.flatnonzero(np.frombuffer(block, np.uint8) == _NEWLINE))
            else:
                self._append(found.names, found.descriptions, found.codes,
                             np.diff(found.starts, append=len(found.codes)), found.lines + self._line)
                self._read += len(found.names)
                self._line += found.newlines
            if any(map(len, self._names)) and 2 * self._residues - before > self._limit:
                yield self._batch()
        self._check_end(self._rest)
        if any(map(len, self._names)):
            yield self._batch()

    def _looked_through(self) -> "Iterator[tuple[bytes, PlainRecords | None]]":
        """All blocks, each with what is in it if that is all plain. As soon as the kind of the sequences is known to be
        the one that is wanted, several threads look through blocks."""
        return fasta.looked_through(self._threads, self._blocks(), lambda: self._judged, self._plain)

    def _blocks(self) -> Iterator[bytes]:
        """The file in blocks of four lines each, or many times four; what is left of it is kept."""
        rest, first, last = b"", True, False
        while not last:
            # As much again where a record is larger than a block, or many small steps would copy it each time.
            data = self._stream.read(max(self._block if self._judged else min(self._block, fasta.BLOCK), len(rest)))
            last = not data
            block, tail = with_line_feeds(rest + data, last)
            if first:
                block = block.removeprefix(_MARK)
                begin = len(block) - len(block.lstrip())
                begin = block.rfind(b"\n", 0, begin) + 1
                self._line += block.count(b"\n", 0, begin)
                block, first = block[begin:], not block.strip()
            if last and block and not block.endswith(b"\n"):
                block += b"\n"
            whole = _end_of_records(block)
            self._rest = rest = block[whole:] + tail
            if whole:
                yield block[:whole]

    def _plain(self, block: bytes) -> "tuple[bytes, PlainRecords | None]":
        """A block, with what is in it if it is large and nothing is out of the ordinary: ``_take`` takes any."""
        if len(block) < fasta.SMALL_BLOCK:
            return block, None
        from .plain_records_cpu import plain_fastq

        found = plain_fastq(block, self._plain_table)
        return block, None if found is None or found.taken < len(block) else found

    def _append(self, names: Sequence[str], descriptions: Sequence[str], codes: np.ndarray, lengths: np.ndarray,
                lines: np.ndarray) -> None:
        """Have records in the next batch."""
        self._names.append(names)
        self._descriptions.append(descriptions)
        self._codes.append(codes)
        self._lengths.append(lengths)
        self._lines.append(lines)
        self._residues += len(codes)

    def _take(self, block: bytes, ends: np.ndarray) -> None:
        """Add the records of a block, whose lines end at i8[4 k] ``ends``, up to the first that is none."""
        if self._ended and block.strip():
            raise self._not_fastq(self._ended, "a blank line")
        raw, starts = np.frombuffer(block, np.uint8), np.append(0, ends[:-1] + 1)
        wrong = np.flatnonzero(_is_none(block, raw, starts.reshape(-1, 4), ends.reshape(-1, 4)))
        good = 4 * (int(wrong[0]) if len(wrong) else len(ends) // 4)  # lines
        if good < len(ends):
            if block[starts[good] :].strip():
                self._refuse(good, *block[starts[good] :].split(b"\n", 4)[:4])
            self._ended = self._ended or self._line + good  # so far
        if good:
            self._add(block, raw, starts[:good].reshape(-1, 4), ends[:good].reshape(-1, 4))
        self._line += len(ends)

    def _refuse(self, n: int, head: bytes, residues: bytes, plus: bytes, qualities: bytes) -> None:
        if head[:1] != b"@":
            line, what = 0, f"a record begins with '@', not {head[:20].decode('latin-1')!r}"
        elif plus[:1] != b"+":
            line, what = 2, f"the third line of a record begins with '+', not {plus[:20].decode('latin-1')!r}"
        elif len(residues) != len(qualities):
            line, what = 3, f"{len(qualities):,} qualities for {len(residues):,} bases"
        else:
            line, what = 2, "the name behind '+' is not the record's"
        raise self._not_fastq(self._line + n + line, what)

    def _not_fastq(self, line: int, what: str) -> InputError:
        return InputError(f"{self._where}: line {line}: not FASTQ: {what}; records have four lines, and as many "
                          "qualities as bases")

    def _check_end(self, lines: bytes) -> None:
        """Refuse a record that is cut off; blank lines behind the last one are none."""
        if lines.strip():
            raise self._not_fastq(self._line + lines.count(b"\n"), "the file ends within a record")

    def _add(self, block: bytes, raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> None:
        """Add records whose lines stand at i8[k, 4] ``starts`` … ``ends`` − 1."""
        lengths = ends[:, 1] - starts[:, 1]
        text = _stretches(block, raw, starts[:, 1], ends[:, 1])
        if not self._judged:
            check_kind(text[: min(fasta.SAMPLE, lengths[0])], self._alphabet, self._where)
            self._judged = True
        names, descriptions, _ = words_of_headers(raw, starts[:, 0], ends[:, 0])
        if self._on_bad.as_query and "" in names:
            names = [*fasta.with_numbers(names, self._read)]
        numbers = np.arange(self._line, self._line + 4 * len(names), 4)
        self._read += len(names)
        codes = text.translate(self._table)
        if "" in names or not lengths.all() or INVALID in codes:
            bounds = np.append(0, np.cumsum(lengths)).tolist()
            residues = [text[start:end] for start, end in pairwise(bounds)]
            kept = [n for n in range(len(names)) if self._usable(names[n], residues[n], int(numbers[n]))]
            names, descriptions = [names[n] for n in kept], [descriptions[n] for n in kept]
            lengths, numbers = lengths[kept], numbers[kept]
            text = b"".join(residues[n] for n in kept)
            codes = text.translate(self._table)
        lower = np.frombuffer(text, np.uint8) >= fasta.LOWER
        if lower.any():
            edges = self._residues + np.flatnonzero(np.diff(lower.view(np.int8), prepend=0, append=0))
            self._lower.append((edges[::2], edges[1::2]))
        self._append(names, descriptions, np.frombuffer(codes, np.uint8), lengths, numbers)

    def _usable(self, name: str, residues: bytes, line: int) -> bool:
        if not name:
            self._on_bad(self._where, line, "the header has no name", "write one behind the '@'")
            return False
        if not residues:
            self._on_bad(self._where, line, f"record '{name}' has no sequence", "add its sequence or remove the record")
            return False
        wrong = residues.translate(self._table).find(INVALID)
        if wrong >= 0:
            what = f"residue {chr(residues[wrong])!r} in sequence '{name}' is not in the {self._alphabet.name} alphabet"
            self._on_bad(self._where, line + 1, what, "correct or remove the record")
            return False
        return True

    def _batch(self) -> SequenceBatch:
        """The records so far as a batch; they are forgotten."""
        offsets = np.append(0, np.cumsum(np.concatenate(self._lengths)))
        names, descriptions = TextRows.concat(self._names), TextRows.concat(self._descriptions)
        first, self._given = self._given, self._given + len(names)
        batch = LocatedBatch(
            self._alphabet, concatenated(self._codes, self._threads), offsets,
            np.arange(first, self._given, dtype=np.int64), runs_of_records(self._lower, offsets),
            names=names, descriptions=descriptions, lines=np.concatenate(self._lines))
        self._names, self._descriptions, self._residues = [], [], 0
        self._codes, self._lengths, self._lower, self._lines = [], [], [], []
        return batch


def _end_of_records(block: bytes) -> int:
    """Where the last fourth line of a block ends."""
    if len(block) < fasta.SMALL_BLOCK:
        lines = block.count(b"\n")
    else:
        from .plain_records_cpu import count_of

        lines = count_of(block, _NEWLINE)
    end = len(block)
    for _ in range(lines % 4 + 1):
        end = block.rfind(b"\n", 0, end)
    return end + 1


def _stretches(block: bytes, raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bytes:
    """What stands at i8[k] ``starts`` … ``ends`` − 1 of a block, one behind the other."""
    length = int(ends[0] - starts[0])
    if length and (ends - starts == length).all():  # as reads often are
        return np.lib.stride_tricks.sliding_window_view(raw, length)[starts].tobytes()
    return b"".join([block[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])


def _is_none(block: bytes, raw: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """bool[k]: whether four lines of a block are no record; i8[k, 4] where each begins and ends."""
    lengths = ends - starts
    wrong = (raw[starts[:, 0]] != ord("@")) | (raw[starts[:, 2]] != ord("+")) | (lengths[:, 1] != lengths[:, 3])
    named = np.flatnonzero(~wrong & (lengths[:, 2] != 1))  # their names stand behind '+' as well
    bounds = np.stack([starts[named, 0] + 1, ends[named, 0], starts[named, 2] + 1, ends[named, 2]], axis=1).tolist()
    wrong[named] = [block[head:behind] != block[plus:end] for head, behind, plus, end in bounds]
    return wrong
