"""Reads FASTQ. Qualities are not kept: no pipeline uses them."""

from collections.abc import Iterator
from typing import IO

import numpy as np
from seqloom.core.alphabet import INVALID, NUCLEOTIDE, Alphabet
from seqloom.core.errors import InputError
from seqloom.core.stages import OnBad, Reader, SequenceBatch

from . import fasta
from .fasta import LocatedBatch, check_kind, parted, reading_table, runs_of_records, with_line_feeds

_MARK = b"\xef\xbb\xbf"


class FastqReader(Reader):
    """Reads in FASTQ (four lines a record); qualities are left out."""

    name = "fastq"
    gives = "sequences"

    def sniff(self, head: bytes) -> bool:
        return head.removeprefix(_MARK).lstrip().startswith(b"@")

    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad,
             residues: int) -> Iterator[SequenceBatch]:
        yield from _Reading(stream, where, alphabet, on_bad, residues).batches()


class _Reading:
    """State of one file being read."""

    def __init__(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad, residues: int) -> None:
        self._stream, self._where, self._on_bad, self._limit = stream, where, on_bad, residues
        self._alphabet = alphabet or NUCLEOTIDE
        self._judged = alphabet is None
        self._table = reading_table(self._alphabet)
        self._line = 1  # number of the next line
        self._read = 0  # records, with those that can't be used
        self._given = 0  # records in batches
        self._ended = 0  # number of the first of the blank lines that end the file; 0 if there is none so far
        self._names: list[str] = []
        self._descriptions: list[str] = []
        self._sequences: list[bytes] = []
        self._lines: list[int] = []
        self._residues = 0

    def batches(self) -> Iterator[SequenceBatch]:
        size = min(fasta.BLOCK, max(fasta.SMALL_BLOCK, self._limit))
        rest, first, last = b"", True, False
        while not last:
            # As much again where a record is larger than a block, or many small steps would copy it each time.
            data = self._stream.read(max(size, len(rest)))
            last = not data
            block, tail = with_line_feeds(rest + data, last)
            if first:
                block = block.removeprefix(_MARK)
                begin = len(block) - len(block.lstrip())
                begin = block.rfind(b"\n", 0, begin) + 1
                self._line += block.count(b"\n", 0, begin)
                block, first = block[begin:], not block.strip()
            lines = block.split(b"\n")
            unfinished = lines.pop()
            if last and unfinished:
                lines.append(unfinished)
            whole = len(lines) // 4 * 4
            self._take(lines[:whole])
            lines = lines[whole:]
            if last:
                self._check_end(lines)
            rest = b"\n".join([*lines, unfinished]) + tail
            if self._names and (last or self._residues >= self._limit):
                yield self._batch()

    def _take(self, lines: list[bytes]) -> None:
        """Add the records that stand in ``lines``, four each, up to the first that is none."""
        if self._ended and any(map(bytes.strip, lines)):
            raise self._not_fastq(self._ended, "a blank line")
        for n in range(0, len(lines), 4):
            head, residues, plus, qualities = lines[n : n + 4]
            if (head[:1] != b"@" or plus[:1] != b"+" or len(residues) != len(qualities)
                    or plus[1:] not in (b"", head[1:])):
                if not any(map(bytes.strip, lines[n:])):
                    self._ended = self._ended or self._line + n  # so far
                    self._add(lines[:n])
                    self._line += len(lines) - n
                    return
                self._refuse(n, head, residues, plus, qualities)
        self._add(lines)

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

    def _check_end(self, lines: list[bytes]) -> None:
        """Refuse a record that is cut off; blank lines behind the last one are none."""
        if any(map(bytes.strip, lines)):
            raise self._not_fastq(self._line + len(lines), "the file ends within a record")

    def _add(self, lines: list[bytes]) -> None:
        residues = lines[1::4]
        if not self._judged and residues:
            check_kind(residues[0][: fasta.SAMPLE], self._alphabet, self._where)
            self._judged = True
        names, descriptions = parted([head[1:] for head in lines[0::4]])
        if self._on_bad.as_query:
            names = [name or f"Query_{self._read + n + 1}" for n, name in enumerate(names)]
        numbers = list(range(self._line, self._line + len(lines), 4))
        self._line += len(lines)
        self._read += len(names)
        if not all(names) or not all(residues) or b"".join(residues).translate(self._table).find(INVALID) >= 0:
            kept = [n for n in range(len(names)) if self._usable(names[n], residues[n], numbers[n])]
            names, descriptions = [names[n] for n in kept], [descriptions[n] for n in kept]
            residues, numbers = [residues[n] for n in kept], [numbers[n] for n in kept]
        self._names += names
        self._descriptions += descriptions
        self._sequences += residues
        self._lines += numbers
        self._residues += sum(map(len, residues))

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
        text = b"".join(self._sequences)
        offsets = np.concatenate([[0], np.cumsum([len(residues) for residues in self._sequences])]).astype(np.int64)
        edges = np.flatnonzero(np.diff((np.frombuffer(text, np.uint8) > 96).view(np.int8), prepend=0, append=0))
        first, self._given = self._given, self._given + len(self._names)
        batch = LocatedBatch(
            self._alphabet, np.frombuffer(text.translate(self._table), np.uint8), offsets,
            np.arange(first, self._given, dtype=np.int64), runs_of_records([(edges[::2], edges[1::2])], offsets),
            names=self._names, descriptions=self._descriptions, lines=np.array(self._lines, np.int64))
        self._names, self._descriptions, self._sequences, self._lines, self._residues = [], [], [], [], 0
        return batch
