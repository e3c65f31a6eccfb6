"""Reads FASTA: bytes straight into codes, offsets and names.

The file is taken in blocks that end anywhere but in a header. In each block numpy finds the headers and
takes them out; one pass of ``bytes.translate`` turns the rest into codes and drops line ends. No step loops over
letters or lines in Python, and nothing needs to be compiled, so that a small file is read at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

import numpy as np
from seqloom.core.alphabet import INVALID, NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.errors import AlphabetError, InputError
from seqloom.core.stages import Intervals, OnBad, Reader, SequenceBatch

BLOCK = 1 << 18
"""Bytes that are looked at in one go, so many that they and what is made of them stay in the cache of the processor;
fewer, but no fewer than ``SMALL_BLOCK``, for small batches."""
SMALL_BLOCK = 1 << 16
LONGEST = 2**31 - 1
"""Residues that a sequence may have: positions are i4."""
LONGEST_HEADER = 64 << 20
_BLANK = b"\n\r \t"
_BLANKS = np.array([chr(byte).isspace() and byte < 128 for byte in range(256)])
_NEWLINE, _RETURN, _HEADER, _GAP = 10, 13, ord(">"), ord("-")
SAMPLE = 10_000
"""Letters that are enough to tell nucleotides from proteins."""
FEW = 20
"""With fewer letters than this a protein may well consist of A, C, G, T, U and N alone."""
BASES = b"ACGTUNacgtun"


def looks_like(sample: bytes) -> Alphabet:
    """Nucleotide if more than nine of ten letters of ``sample`` are A, C, G, T, U or N, else protein."""
    return NUCLEOTIDE if share_of_bases(sample) > 0.9 else PROTEIN


def share_of_bases(sample: bytes) -> float:
    """Share of A, C, G, T, U and N, either case, among the letters of ``sample``."""
    return 1 - len(sample.translate(None, BASES)) / len(sample) if sample else 0.0


def reading_table(alphabet: Alphabet) -> bytes:
    """256 bytes: code of each byte for ``bytes.translate``. A gap is no residue: it reads as ``INVALID``."""
    table = alphabet.codes.copy()
    table[_GAP] = INVALID
    return table.tobytes()


def check_kind(sample: bytes, alphabet: Alphabet, where: str) -> None:
    """Refuse a file whose first letters are those of the other alphabet.

    Raises:
        AlphabetError: proteins given as nucleotides, or nucleotides as proteins.
    """
    share = share_of_bases(sample)
    if alphabet is PROTEIN and share > 0.9 and len(sample) >= FEW:
        raise AlphabetError(f"{where}: protein sequences are wanted, but {share:.0%} of the first {len(sample):,} "
                            "letters are A, C, G, T, U or N; give proteins, or take these for nucleotides "
                            "(db create --type nucleotide; search with blastn and its like)")
    if alphabet is NUCLEOTIDE and share <= 0.5 and any(NUCLEOTIDE.codes[b] == INVALID for b in set(sample)):
        raise AlphabetError(f"{where}: nucleotide sequences are wanted, but only {share:.0%} of the first "
                            f"{len(sample):,} letters are A, C, G, T, U or N; give nucleotides, or take these for "
                            "proteins (db create --type protein; search with blastp and its like)")


@dataclass
class _Batch:
    """Records on their way into a batch; all but the last are whole."""

    codes: list[bytes] = field(default_factory=list)
    letters: int = 0
    names: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    starts: list[np.ndarray] = field(default_factory=list)
    lower: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    bad: set[int] = field(default_factory=set)


class FastaReader(Reader):
    """Sequences in FASTA; lower case is kept as stretches."""

    name = "fasta"
    gives = "sequences"

    def sniff(self, head: bytes) -> bool:
        return head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b">")

    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad,
             letters: int) -> Iterator[SequenceBatch]:
        yield from _Reading(stream, where, alphabet, on_bad, letters).batches()


class _Reading:
    """State of one file being read."""

    def __init__(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad, letters: int) -> None:
        self._stream, self._where, self._alphabet, self._on_bad = stream, where, alphabet, on_bad
        self._limit = max(1, letters)
        self._block = min(BLOCK, max(SMALL_BLOCK, letters))
        self._line = 1  # number of the line in which the block begins
        self._at_line_start = True
        self._sample = b""
        self._checked = False
        self._batch = _Batch()
        self._ordinal = 0

    def batches(self) -> Iterator[SequenceBatch]:
        rest = b""
        while True:
            data = self._stream.read(self._block)
            block = rest + data if rest else data
            if self._line == 1 and self._at_line_start:
                block = block.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put before UTF-8
            if not block:
                break
            block, rest = self._cut(block, last=not data)
            if block:
                self._take(block)
            if self._batch.letters >= self._limit and len(self._batch.names) > 1:
                whole = self._split()
                if whole is not None:
                    yield whole
            if not data:
                break
        if self._batch.names:
            self._judge_kind()
            whole = self._finish(self._batch)
            if whole is not None:
                yield whole

    def _cut(self, block: bytes, last: bool) -> tuple[bytes, bytes]:
        """Keep back a header at the end whose line isn't whole."""
        if last:
            return block, b""
        end = block.rfind(b"\n") + 1
        begins_line = end > 0 or self._at_line_start
        if begins_line and block[end : end + 1] == b">":
            if len(block) - end > LONGEST_HEADER:
                raise InputError(f"{self._where}: line {self._line + block.count(10, 0, end)}: a header of more than "
                                 f"{LONGEST_HEADER >> 20} MiB; is this FASTA?")
            return block[:end], block[end:]
        return block, b""

    def _take(self, block: bytes) -> None:
        """Add the records and parts of records in ``block`` to the batch.

        A stretch is what goes on from the block before, which may be nothing, and then each record.
        """
        raw = np.frombuffer(block, np.uint8).copy()
        newlines = np.flatnonzero(raw == _NEWLINE)
        headers = np.flatnonzero(raw == _HEADER)
        before = headers - 1
        headers = headers[np.where(before >= 0, raw[before] == _NEWLINE, self._at_line_start)]
        index = np.searchsorted(newlines, headers)
        ends = np.append(newlines, len(raw))[index]
        if not self._batch.names and block[: headers[0] if len(headers) else len(raw)].strip():
            self._not_fasta(block)
        names, descriptions = _blank_out(raw, headers, ends)
        body = raw.tobytes()
        self._see(body)
        table = reading_table(self._alphabet or PROTEIN)
        codes = body.translate(table, _BLANK)
        begin = np.concatenate([[0], np.minimum(ends + 1, len(raw))])
        stop = np.append(headers, len(raw))
        lengths = stop - begin - _between(newlines, begin, stop)
        if int(lengths.sum()) != len(codes):  # there are other blanks than line ends
            lengths -= _between(np.flatnonzero((raw == _RETURN) | (raw == 32) | (raw == 9)), begin, stop)
        batch = self._batch
        known = len(batch.names)
        batch.names += names
        batch.descriptions += descriptions
        batch.lines += (self._line + index).tolist()
        batch.starts.append(batch.letters + np.cumsum(lengths[:-1]))
        if codes.find(bytes([INVALID])) >= 0:
            self._invalid(raw, table, newlines, headers, known)
        if (raw > 96).any():
            self._mark_lower(body, batch.letters)
        batch.codes.append(codes)
        batch.letters += len(codes)
        self._line += len(newlines)
        self._at_line_start = block.endswith(b"\n")

    def _see(self, body: bytes) -> None:
        """Gather the first letters of the file until there are enough to judge what they are."""
        if self._checked:
            return
        self._sample += body.translate(None, _BLANK)[:SAMPLE]
        if len(self._sample) >= SAMPLE or (self._sample and self._alphabet is None):
            self._judge_kind()

    def _judge_kind(self) -> None:
        if self._checked:
            return
        self._checked = True
        if self._alphabet is None:
            self._alphabet = looks_like(self._sample)
        else:
            check_kind(self._sample, self._alphabet, self._where)

    def _mark_lower(self, body: bytes, first: int) -> None:
        """Note runs of lower case, by position in the batch."""
        letters = np.frombuffer(body.translate(None, _BLANK), np.uint8)
        edges = np.flatnonzero(np.diff((letters > 96).view(np.int8), prepend=0, append=0))
        self._batch.lower.append((first + edges[::2], first + edges[1::2]))

    def _invalid(self, raw: np.ndarray, table: bytes, newlines: np.ndarray, headers: np.ndarray, known: int) -> None:
        """Report the first bad letter of each record that has one in this block."""
        wrong = (np.frombuffer(table, np.uint8)[raw] == INVALID) & ~np.isin(raw, np.frombuffer(_BLANK, np.uint8))
        places = np.flatnonzero(wrong)
        stretches, first = np.unique(np.searchsorted(headers, places), return_index=True)
        for stretch, place in zip(stretches.tolist(), places[first].tolist(), strict=True):
            record = known - 1 + stretch
            if record in self._batch.bad:
                continue
            line = self._line + int(np.searchsorted(newlines, place))
            self._report(record, line, *self._about_letter(chr(raw[place]), self._batch.names[record]))

    def _about_letter(self, letter: str, name: str) -> tuple[str, str]:
        if letter == "-":
            return f"gap '-' in sequence '{name}'", "sequences are read without gaps: remove those of an alignment"
        kind = (self._alphabet or PROTEIN).name
        self._kind_first(kind)
        return f"letter {letter!r} in sequence '{name}' is not in the {kind} alphabet", "correct or remove the record"

    def _kind_first(self, kind: str) -> None:
        """Before one letter is blamed: is the file of the other kind altogether?"""
        if kind == "nucleotide":
            self._judge_kind()

    def _report(self, record: int, line: int, what: str, remedy: str) -> None:
        self._on_bad(self._where, line, what, remedy)
        self._batch.bad.add(record)

    def _not_fasta(self, block: bytes) -> None:
        blank = len(block) - len(block.lstrip())
        line = self._line + block.count(b"\n", 0, blank)
        raise InputError(f"{self._where}: line {line}: not FASTA: a header line that begins with '>' is expected; "
                         "check the file's format")

    def _split(self) -> SequenceBatch | None:
        """The whole records as a batch; the last one, which may go on, stays behind."""
        batch = self._batch
        starts = np.concatenate(batch.starts)
        cut, last = int(starts[-1]), len(batch.names) - 1
        codes = b"".join(batch.codes)
        rest = _Batch([codes[cut:]], batch.letters - cut, batch.names[last:], batch.descriptions[last:],
                      batch.lines[last:], [np.zeros(1, np.int64)], bad={0} if last in batch.bad else set())
        if batch.lower:
            begin, end = (np.concatenate(edges) for edges in zip(*batch.lower, strict=True))
            later = end > cut
            if later.any():
                rest.lower.append((np.maximum(begin[later] - cut, 0), end[later] - cut))
            sooner = begin < cut
            batch.lower = [(begin[sooner], np.minimum(end[sooner], cut))]
        batch.codes, batch.letters = [codes[:cut]], cut
        batch.starts = [starts[:-1]]
        del batch.names[last:], batch.descriptions[last:], batch.lines[last:]
        batch.bad.discard(last)
        self._batch = rest
        return self._finish(batch)

    def _finish(self, batch: _Batch) -> SequenceBatch | None:
        """A batch of the records that can be used; None if there is none."""
        offsets = np.append(np.concatenate(batch.starts), batch.letters)
        lengths = np.diff(offsets)
        self._batch, rest = batch, self._batch  # reports go to the batch in hand
        for record in np.flatnonzero(lengths == 0).tolist():
            if record not in batch.bad:
                self._report(record, batch.lines[record], f"record '{batch.names[record]}' has no sequence",
                             "add its sequence or remove the record")
        for record in np.flatnonzero(lengths > LONGEST).tolist():
            self._report(record, batch.lines[record],
                         f"sequence '{batch.names[record]}' has {lengths[record]:,} residues and at most "
                         f"{LONGEST:,} can be used", "cut it into pieces")
        for record in [n for n, name in enumerate(batch.names) if not name] if "" in batch.names else []:
            if record not in batch.bad:
                self._report(record, batch.lines[record], "the header has no name", "write one behind the '>'")
        self._batch = rest
        residues = np.frombuffer(b"".join(batch.codes), np.uint8)
        lower = runs_of_records(batch.lower, offsets)
        names, descriptions, lines = batch.names, batch.descriptions, np.array(batch.lines, np.int64)
        if batch.bad:
            kept = np.ones(len(names), bool)
            kept[list(batch.bad)] = False
            residues, offsets, lower = selected(residues, offsets, lower, kept)
            good = np.flatnonzero(kept).tolist()
            names, descriptions, lines = [names[n] for n in good], [descriptions[n] for n in good], lines[kept]
        if not names:
            return None
        first, self._ordinal = self._ordinal, self._ordinal + len(names)
        return LocatedBatch(
            self._alphabet or PROTEIN, residues, offsets, np.arange(first, self._ordinal, dtype=np.int64), lower,
            names=names, descriptions=descriptions, lines=lines)


def _between(places: np.ndarray, begin: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """How many of the ascending ``places`` lie in each stretch begin…stop−1."""
    return np.searchsorted(places, stop) - np.searchsorted(places, begin)


def _blank_out(raw: np.ndarray, headers: np.ndarray, ends: np.ndarray) -> tuple[list[str], list[str]]:
    """Names (first words) and descriptions of the header lines of a block, which are overwritten with line ends.

    They are taken as UTF-8, or as Latin-1 where they are not.
    """
    if not len(headers):
        return [], []
    raw[headers] = _NEWLINE
    widths = ends - headers
    stop = np.cumsum(widths)
    places = np.arange(stop[-1]) + np.repeat(headers - (stop - widths), widths)
    lines = raw[places]
    raw[places] = _NEWLINE
    blanks = np.append(np.flatnonzero((lines == 32) | (lines - np.uint8(9) < 5) & (lines != _NEWLINE)), len(lines))
    split = blanks[np.searchsorted(blanks, stop - widths)]
    single = split >= stop  # no description
    lines[split[~single]] = _NEWLINE
    untidy = _BLANKS[lines[np.minimum(split + 1, len(lines) - 1)]].any() or _BLANKS[lines[stop - 1]].any()
    if single.any():
        lines = np.insert(lines, stop[single], _NEWLINE)
    text = lines.tobytes()
    try:
        words = text.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        words = text.decode("latin-1").split("\n")
    names, descriptions = words[1::2], words[2::2]
    if untidy or "" in names:
        rows = [(name + " " + rest).split(None, 1) for name, rest in zip(names, descriptions, strict=True)]
        names = [row[0] if row else "" for row in rows]
        descriptions = [row[1].rstrip() if len(row) > 1 else "" for row in rows]
    return names, descriptions


@dataclass(frozen=True)
class LocatedBatch(SequenceBatch):
    """A batch as it was read. ``lines``: i8[k], number of the line in which each record begins."""

    lines: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))


def runs_of_records(parts: list[tuple[np.ndarray, np.ndarray]], offsets: np.ndarray) -> Intervals:
    """Runs by position in a batch as intervals of its sequences: joined across blocks, cut at the ends of sequences."""
    if not parts:
        return Intervals.empty()
    begin, end = (np.concatenate(edges) for edges in zip(*parts, strict=True))
    if not len(begin):
        return Intervals.empty()
    apart = begin[1:] != end[:-1]
    begin, end = begin[np.append(True, apart)], end[np.append(apart, True)]
    first = np.searchsorted(offsets, begin, "right") - 1
    last = np.searchsorted(offsets, end, "left") - 1
    count = last - first + 1
    sequence = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    low = np.maximum(np.repeat(begin, count), offsets[sequence])
    high = np.minimum(np.repeat(end, count), offsets[sequence + 1])
    there = low < high
    sequence, low, high = sequence[there], low[there], high[there]
    base = offsets[sequence]
    return Intervals(sequence.astype(np.int32), (low - base).astype(np.int32), (high - base).astype(np.int32))


def selected(residues: np.ndarray, offsets: np.ndarray, lower: Intervals,
             kept: np.ndarray) -> tuple[np.ndarray, np.ndarray, Intervals]:
    """Residues, offsets and intervals of the sequences for which bool[k] ``kept`` is true."""
    lengths = np.diff(offsets)
    residues = residues[np.repeat(kept, lengths)]
    place = np.cumsum(kept) - 1
    stays = kept[lower.sequence]
    lower = Intervals(place[lower.sequence[stays]].astype(np.int32), lower.start[stays], lower.end[stays])
    return residues, np.concatenate([[0], np.cumsum(lengths[kept])]), lower
