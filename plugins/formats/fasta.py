"""Reads FASTA: bytes straight into codes, offsets and names.

The file is taken in blocks that end anywhere but in a header. In each block numpy finds the headers and
takes them out; one pass of ``bytes.translate`` turns the rest into codes and drops line ends. No step loops over
residues or lines in Python, and nothing needs to be compiled, so that a small file is read at once. Blocks of larger
files that are as plain as most are gone through by a kernel.
"""

import re
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from seqloom.core.alphabet import INVALID, NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.engine.threads import ahead, concatenated, in_turn, run_tasks
from seqloom.core.errors import AlphabetError, InputError
from seqloom.core.joined import Joined
from seqloom.core.stages import Intervals, OnBad, Reader, SequenceBatch
from seqloom.core.text_rows import TextRows

if TYPE_CHECKING:
    from .plain_records_cpu import PlainRecords

BLOCK = 1 << 18
"""Bytes that are looked at in one go, so many that they and what is made of them stay in the cache of the processor;
fewer, but no fewer than ``SMALL_BLOCK``, for small batches."""
SMALL_BLOCK = 1 << 16
SHARED_BLOCK, _OF_BATCH = 3 << 20, 8
"""The same for several threads, which wait for each other less often with larger ones: such a part of a batch."""
_AHEAD = 2
"""Blocks for each of several threads that are looked through while a batch is put together."""
LONGEST = 2**31 - 1
"""Residues that a sequence may have: positions are i4."""
LONGEST_HEADER = 64 << 20
CONTROL = bytes(range(33))
"""What ends a name in a header: blanks and control characters, as in BLAST."""
_BLANK = b"\n \t"
_NEWLINE, _RETURN, _HEADER, _GAP = 10, 13, ord(">"), ord("-")
LOWER = ord("a")
"""Bytes from here on are lower case, where they are letters."""
_COMMENTS = b";#!"
_BEFORE_RECORDS = re.compile(rb"(?:\s|[;#!][^\r\n]*[\r\n])*")
_NAME_END = re.compile(rb"[\x00-\x20]+")
_FIRSTS = np.isin(np.arange(256), np.frombuffer(_COMMENTS + b">", np.uint8))
"""bool[256]: with which bytes a line begins that holds no residues."""
SAMPLE = 10_000
"""Residues that are enough to tell nucleotides from proteins."""
FEW = 20
"""With fewer residues than this a protein may well consist of A, C, G, T, U and N alone."""
BASES = b"ACGTUNacgtun"


def block_of(residues: int, threads: int) -> int:
    """Bytes that are looked at in one go for batches of so many residues, by so many threads."""
    return max(SMALL_BLOCK, min(BLOCK, residues) if threads < 2 else min(SHARED_BLOCK, residues // _OF_BATCH))


def looked_through(threads: int, blocks: Iterator[Any], known: Callable[[], bool],
                   plain: Callable[[Any], tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    """Blocks with None, as long as it isn't ``known`` of what kind sequences are, then what ``plain`` gives for each,
    which several threads make."""
    for block in blocks:
        yield block, None
        if known():
            break
    found = in_turn(threads, plain, blocks, "reading")
    yield from ahead(_AHEAD * threads, found, "blocks") if threads > 1 else found


def begun(head: bytes) -> bytes:
    """``head`` without what may stand before the first record: a mark of UTF-8, blank lines and comments."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    return head[_BEFORE_RECORDS.match(head).end() :]  # type: ignore[union-attr]


def looks_like(sample: bytes) -> Alphabet:
    """Nucleotide if more than nine of ten residues of ``sample`` are A, C, G, T, U or N, else protein."""
    return NUCLEOTIDE if share_of_bases(sample) > 0.9 else PROTEIN


def share_of_bases(sample: bytes) -> float:
    """Share of A, C, G, T, U and N, either case, among the residues of ``sample``."""
    return 1 - len(sample.translate(None, BASES)) / len(sample) if sample else 0.0


def reading_table(alphabet: Alphabet) -> bytes:
    """256 bytes: code of each byte for ``bytes.translate``. A gap is no residue: it reads as ``INVALID``."""
    table = alphabet.codes.copy()
    table[_GAP] = INVALID
    return table.tobytes()


def plain_table(alphabet: Alphabet) -> bytes:
    """The same for residues in upper case, ``INVALID`` for others as well."""
    return reading_table(alphabet)[:LOWER] + bytes([INVALID]) * (256 - LOWER)


def check_kind(sample: bytes, alphabet: Alphabet, where: str) -> None:
    """Refuse proteins given as nucleotides; say on stderr where what is given as proteins looks like nucleotides.

    Low-complexity proteins can consist of A, C, G and T alone.

    Raises:
        AlphabetError: proteins given as nucleotides.
    """
    share = share_of_bases(sample)
    if alphabet is PROTEIN and share > 0.9 and len(sample) >= FEW:
        print(f"seqloom: {where}: taken for proteins as asked for, though {share:.0%} of the first {len(sample):,} "
              "residues are A, C, G, T, U or N", file=sys.stderr)
    if alphabet is NUCLEOTIDE and share <= 0.5 and any(NUCLEOTIDE.codes[b] == INVALID for b in set(sample)):
        raise AlphabetError(f"{where}: nucleotide sequences are wanted, but only {share:.0%} of the first "
                            f"{len(sample):,} residues are A, C, G, T, U or N; give nucleotides, or take these for "
                            "proteins (seqloom db create --type protein; search with blastp and its like)")


@dataclass
class _Batch:
    """Records on their way into a batch; all but the last are whole."""

    codes: list[np.ndarray] = field(default_factory=list)
    total_residues: int = 0
    names: list[Sequence[str]] = field(default_factory=list)
    descriptions: list[Sequence[str]] = field(default_factory=list)
    records: int = 0
    lines: list[tuple[np.ndarray, int]] = field(default_factory=list)
    starts: list[tuple[np.ndarray, int]] = field(default_factory=list)
    lower: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    bad: set[int] = field(default_factory=set)

    def begin(self, names: Sequence[str], descriptions: Sequence[str], lines: np.ndarray, first_line: int,
              starts: np.ndarray) -> None:
        """Records begin, with i8 numbers of their lines, counted from one of the file, and of the residues before them,
        counted from those that are there."""
        self.names.append(names)
        self.descriptions.append(descriptions)
        self.lines.append((lines, first_line))
        self.starts.append((starts, self.total_residues))
        self.records += len(names)

    def name(self, record: int) -> str:
        return Joined(self.names)[record]


class FastaReader(Reader):
    """Sequences in FASTA; lower case is kept as stretches."""

    name = "fasta"
    gives = "sequences"

    def sniff(self, head: bytes) -> bool:
        return begun(head).startswith(b">")

    def read(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad,
             residues: int) -> Iterator[SequenceBatch]:
        yield from _Reading(stream, where, alphabet, on_bad, residues, self.threads).batches()


class _Block(NamedTuple):
    """Some bytes of a file.

    Attributes:
        text: with line feeds as line ends.
        at_line_start: whether a line begins with it.
        kept_back: bytes of a header behind it that isn't whole.
    """

    text: bytes
    at_line_start: bool
    kept_back: int


class _Reading:
    """State of one file being read."""

    def __init__(self, stream: IO[bytes], where: str, alphabet: Alphabet | None, on_bad: OnBad, residues: int,
                 threads: int) -> None:
        self._stream, self._where, self._alphabet, self._on_bad = stream, where, alphabet, on_bad
        self._limit = max(1, residues)
        self._threads, self._block = threads, block_of(residues, threads)
        self._line = 1  # number of the line in which the block begins
        self._at_line_start = True
        self._sample = b""
        self._checked = False
        self._batch = _Batch()
        self._ordinal = 0
        self._read = 0  # records, with those that can't be used
        self._gaps_noted = False
        self._plain_table: bytes | None = None

    def batches(self) -> Iterator[SequenceBatch]:
        for block, found in self._looked_through():
            self._at_line_start, before = block.at_line_start, self._batch.total_residues
            if found:
                self._take_plain(found)
            elif block.text:
                self._take(block.text)
            if block.kept_back > LONGEST_HEADER:
                raise InputError(f"{self._where}: line {self._line}: a header of more than {LONGEST_HEADER >> 20} MiB; "
                                 "is this FASTA?")
            grown = self._batch.total_residues - before
            if self._batch.total_residues + grown > self._limit and self._batch.records > 1:
                whole = self._split()
                if whole is not None:
                    yield whole
        if self._batch.records:
            self._judge_kind()
            whole = self._finish(self._batch)
            if whole is not None:
                yield whole

    def _looked_through(self) -> "Iterator[tuple[_Block, PlainRecords | None]]":
        """All blocks, each with what is in it if that is all plain. As soon as it is known of what kind sequences are,
        several threads look through blocks."""
        return looked_through(self._threads, self._blocks(), lambda: self._checked, self._plain)

    def _blocks(self) -> Iterator[_Block]:
        rest, at_line_start, first = b"", True, True
        while True:
            # Of what kind sequences are is told from the first block, which must not depend on the size of batches.
            data = self._stream.read(self._block if self._checked else BLOCK)
            text = rest + data if rest else data
            if first:
                text = text.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put before UTF-8
            if not text:
                return
            text, rest, kept_back = _cut(text, at_line_start, last=not data)
            yield _Block(text, at_line_start, kept_back)
            if text:
                at_line_start, first = text.endswith(b"\n"), False
            if not data:
                return

    def _plain(self, block: _Block) -> "tuple[_Block, PlainRecords | None]":
        """A block, with what is in it if it is large and nothing is out of the ordinary: ``_take`` takes any."""
        if len(block.text) < SMALL_BLOCK:
            return block, None
        from .plain_records_cpu import plain_fasta

        if self._plain_table is None:
            self._plain_table = plain_table(self._alphabet or PROTEIN)
        return block, plain_fasta(block.text, block.at_line_start, self._plain_table)

    def _take_plain(self, found: "PlainRecords") -> None:
        """Add what is in a block to the batch."""
        batch = self._batch
        batch.begin(found.names, found.descriptions, found.lines, self._line, found.starts)
        batch.codes.append(found.codes)
        batch.total_residues += len(found.codes)
        self._line += found.newlines

    def _take(self, block: bytes) -> None:
        """Add the records and parts of records in ``block`` to the batch.

        A stretch is what goes on from the block before, which may be nothing, and then each record.
        """
        raw = np.frombuffer(block, np.uint8).copy()
        newlines = np.flatnonzero(raw == _NEWLINE)
        starts = newlines + 1 if self._at_line_start is False else np.append(0, newlines + 1)
        starts = starts[:-1] if len(starts) and starts[-1] == len(raw) else starts
        starts = starts[_FIRSTS[raw[starts]]]
        headers = starts[raw[starts] == _HEADER]
        if len(headers) < len(starts):
            _clear_lines(raw, starts[raw[starts] != _HEADER], newlines)
        index = np.searchsorted(newlines, headers)
        ends = np.append(newlines, len(raw))[index]
        before = raw[: headers[0] if len(headers) else len(raw)].tobytes()
        if not self._batch.records and before.translate(None, _BLANK):
            self._begin_unnamed(raw)
        batch = self._batch
        names, descriptions, places = words_of_headers(raw, headers, ends)
        raw[places] = _NEWLINE
        body = raw.tobytes()
        if _GAP in body and self._on_bad.as_query:
            body = self._without_gaps(raw, newlines, headers)
        self._see(body)
        table = reading_table(self._alphabet or PROTEIN)
        codes = body.translate(table, _BLANK)
        begin = np.concatenate([[0], np.minimum(ends + 1, len(raw))])
        stop = np.append(headers, len(raw))
        lengths = stop - begin - _between(newlines, begin, stop)
        if int(lengths.sum()) != len(codes):  # there are other blanks than line ends
            blanks = np.flatnonzero(np.isin(raw, np.frombuffer(_BLANK, np.uint8)))
            lengths = stop - begin - _between(blanks, begin, stop)
        known = batch.records
        batch.begin(names, descriptions, index, self._line, np.cumsum(lengths[:-1]))
        if codes.find(bytes([INVALID])) >= 0:
            self._invalid(raw, table, newlines, headers, known)
        if (raw >= LOWER).any():
            self._mark_lower(body, batch.total_residues)
        batch.codes.append(np.frombuffer(codes, np.uint8))
        batch.total_residues += len(codes)
        self._line += len(newlines)

    def _begin_unnamed(self, raw: np.ndarray) -> None:
        """Residues before the first header: a query without one, else no FASTA."""
        text = raw.tobytes()
        line = self._line + text.count(b"\n", 0, len(text) - len(text.lstrip(_BLANK)))
        if not self._on_bad.as_query:
            raise InputError(f"{self._where}: line {line}: not FASTA: a header line that begins with '>' is expected; "
                             "check the file's format")
        self._batch = _Batch()
        self._batch.begin([""], [""], np.zeros(1, np.int64), line, np.zeros(1, np.int64))

    def _without_gaps(self, raw: np.ndarray, newlines: np.ndarray, headers: np.ndarray) -> bytes:
        """The block with blanks in place of gaps; says once where the first one is."""
        gaps = np.flatnonzero(raw == _GAP)
        if not self._gaps_noted:
            self._gaps_noted = True
            line = self._line + int(np.searchsorted(newlines, gaps[0]))
            self._on_bad.note(self._where, line, "gaps ('-') are left out of queries")
        raw[gaps] = ord(" ")
        return raw.tobytes()

    def _see(self, body: bytes) -> None:
        """Gather the first residues of the file until there are enough to judge what they are."""
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
            self._alphabet = looks_like(self._sample[:SAMPLE])
        else:
            check_kind(self._sample[:SAMPLE], self._alphabet, self._where)

    def _mark_lower(self, body: bytes, first: int) -> None:
        """Note runs of lower case, by position in the batch."""
        residues = np.frombuffer(body.translate(None, _BLANK), np.uint8)
        edges = np.flatnonzero(np.diff((residues >= LOWER).view(np.int8), prepend=0, append=0))
        self._batch.lower.append((first + edges[::2], first + edges[1::2]))

    def _invalid(self, raw: np.ndarray, table: bytes, newlines: np.ndarray, headers: np.ndarray, known: int) -> None:
        """Report the first bad residue of each record that has one in this block."""
        wrong = (np.frombuffer(table, np.uint8)[raw] == INVALID) & ~np.isin(raw, np.frombuffer(_BLANK, np.uint8))
        places = np.flatnonzero(wrong)
        stretches, first = np.unique(np.searchsorted(headers, places), return_index=True)
        for stretch, place in zip(stretches.tolist(), places[first].tolist(), strict=True):
            record = known - 1 + stretch
            if record in self._batch.bad:
                continue
            line = self._line + int(np.searchsorted(newlines, place))
            self._report(record, line, *self._about_residue(chr(raw[place]), self._batch.name(record)))

    def _about_residue(self, residue: str, name: str) -> tuple[str, str]:
        if residue == "-":
            return f"gap '-' in sequence '{name}'", "sequences are read without gaps: remove those of an alignment"
        kind = (self._alphabet or PROTEIN).name
        self._kind_first(kind)
        return f"residue {residue!r} in sequence '{name}' is not in the {kind} alphabet", "correct or remove the record"

    def _kind_first(self, kind: str) -> None:
        """Before one residue is blamed: is the file of the other kind altogether?"""
        if kind == "nucleotide":
            self._judge_kind()

    def _report(self, record: int, line: int, what: str, remedy: str) -> None:
        self._on_bad(self._where, line, what, remedy)
        self._batch.bad.add(record)

    def _split(self) -> SequenceBatch | None:
        """The whole records as a batch; the last one, which may go on, stays behind."""
        batch = self._batch
        names, starts, lines, descriptions = self._joined(batch)
        cut, last = int(starts[-1]), batch.records - 1
        codes, after = batch.codes, deque[np.ndarray]()
        behind = batch.total_residues - cut
        while behind:
            piece = codes.pop()
            kept = max(0, len(piece) - behind)
            after.appendleft(piece[kept:].copy())
            behind -= len(piece) - kept
            if kept:
                codes.append(piece[:kept])
        rest = _Batch(bad={0} if last in batch.bad else set())
        rest.begin([names[last]], [descriptions[last]], np.zeros(1, np.int64), int(lines[last]), np.zeros(1, np.int64))
        rest.codes, rest.total_residues = [*after], batch.total_residues - cut
        if batch.lower:
            begin, end = (np.concatenate(edges) for edges in zip(*batch.lower, strict=True))
            later = end > cut
            if later.any():
                rest.lower.append((np.maximum(begin[later] - cut, 0), end[later] - cut))
            sooner = begin < cut
            batch.lower = [(begin[sooner], np.minimum(end[sooner], cut))]
        batch.bad.discard(last)
        self._batch = rest
        return self._usable(batch, starts, lines[:last], names[:last], descriptions[:last])

    def _finish(self, batch: _Batch) -> SequenceBatch | None:
        """A batch of the records that can be used; None if there is none."""
        names, starts, lines, descriptions = self._joined(batch)
        return self._usable(batch, np.append(starts, batch.total_residues), lines, names, descriptions)

    def _joined(self, batch: _Batch) -> list[Any]:
        """Names, starts, lines and descriptions of a batch's records."""
        return run_tasks(self._threads, lambda task: task[0](task[1]), [
            (TextRows.concat, batch.names), (_counted_on, batch.starts), (_counted_on, batch.lines),
            (TextRows.concat, batch.descriptions)], "join")

    def _usable(self, batch: _Batch, offsets: np.ndarray, lines: np.ndarray, names: TextRows,
                descriptions: TextRows) -> SequenceBatch | None:
        """The same, with what the batch has of each of them."""
        lengths = np.diff(offsets)
        self._batch, rest = batch, self._batch  # reports go to the batch in hand
        for record in np.flatnonzero(lengths == 0).tolist():
            if record not in batch.bad:
                self._report(record, int(lines[record]), f"record '{names[record]}' has no sequence",
                             "add its sequence or remove the record")
        for record in np.flatnonzero(lengths > LONGEST).tolist():
            self._report(record, int(lines[record]),
                         f"sequence '{names[record]}' has {lengths[record]:,} residues and at most "
                         f"{LONGEST:,} can be used", "cut it into pieces")
        nameless = np.flatnonzero(names.sizes == 0).tolist()
        if nameless and self._on_bad.as_query:
            names = with_numbers(names, self._read)
        for record in nameless if not self._on_bad.as_query else []:
            if record not in batch.bad:
                self._report(record, int(lines[record]), "the header has no name", "write one behind the '>'")
        self._batch = rest
        self._read += len(lines)
        residues = concatenated([np.empty(0, np.uint8), *batch.codes], self._threads)
        lower = runs_of_records(batch.lower, offsets)
        if batch.bad:
            kept = np.ones(len(names), bool)
            kept[list(batch.bad)] = False
            residues, offsets, lower = selected(residues, offsets, lower, kept)
            names, descriptions, lines = names.take(kept), descriptions.take(kept), lines[kept]
        if not len(names):
            return None
        first, self._ordinal = self._ordinal, self._ordinal + len(names)
        return LocatedBatch(
            self._alphabet or PROTEIN, residues, offsets, np.arange(first, self._ordinal, dtype=np.int64), lower,
            names=names, descriptions=descriptions, lines=lines)


def _counted_on(parts: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    """i8[n]: numbers that count from a number of their own in each part, one behind the other."""
    whole, at = np.empty(sum(len(part) for part, _ in parts), np.int64), 0
    for part, begin in parts:
        np.add(part, begin, out=whole[at : at + len(part)])
        at += len(part)
    return whole


def with_numbers(names: Sequence[str], before: int) -> TextRows:
    """Names of queries, of which so many have been read before, with others for those that are blank."""
    return TextRows.of([name or f"Query_{before + n + 1}" for n, name in enumerate(names)])


def _cut(block: bytes, at_line_start: bool, last: bool) -> tuple[bytes, bytes, int]:
    """What can be taken, with line feeds as line ends; a header or comment whose line isn't whole, and what must wait
    for more bytes; and the bytes of the former."""
    block, tail = with_line_feeds(block, last)
    if last:
        return block, b"", 0
    end = block.rfind(b"\n") + 1
    if (end or at_line_start) and end < len(block) and _FIRSTS[block[end]]:
        return block[:end], block[end:] + tail, len(block) - end
    return block, tail, 0


def _between(places: np.ndarray, begin: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """How many of the ascending ``places`` lie in each stretch begin…stop−1."""
    return np.searchsorted(places, stop) - np.searchsorted(places, begin)


def with_line_feeds(block: bytes, last: bool) -> tuple[bytes, bytes]:
    """``block`` with a line feed for each line end, of Unix, Windows or old Macs; and what must wait for more bytes."""
    tail = b""
    if _holds(block, _RETURN):
        if not last and block.endswith(b"\r"):
            block, tail = block[:-1], b"\r"  # a line feed may follow
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return block, tail


def _holds(block: bytes, byte: int) -> bool:
    """Whether that byte is in a block."""
    if len(block) <= BLOCK:
        return byte in block
    from .plain_records_cpu import count_of

    return count_of(block, byte) > 0


def _clear_lines(raw: np.ndarray, starts: np.ndarray, newlines: np.ndarray) -> None:
    """Overwrite the lines that begin at ``starts`` with line ends."""
    ends = np.append(newlines, len(raw))[np.searchsorted(newlines, starts)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        raw[start:end] = ord(" ")


def words_of_headers(raw: np.ndarray, headers: np.ndarray,
                     ends: np.ndarray) -> tuple[list[str], list[str], np.ndarray]:
    """Names and descriptions of header lines, see ``parted``, and i8 places of all their bytes.

    Args:
        raw: u1, a block.
        headers, ends: i8[k], where the mark before each header stands, and the end of its line.
    """
    if not len(headers):
        return [], [], headers
    widths = ends - headers
    stop = np.cumsum(widths)
    begin = stop - widths
    places = np.arange(stop[-1]) + np.repeat(headers - begin, widths)
    lines = raw[places]
    lines[begin] = _NEWLINE
    blanks = np.append(np.flatnonzero((lines <= 32) & (lines != _NEWLINE)), len(lines))
    split = blanks[np.searchsorted(blanks, begin)]
    single = split >= stop  # no description
    behind = np.minimum(split + 1, len(lines) - 1)
    untidy = (lines[behind] <= 32) & ~single | (split == begin + 1) | (lines[stop - 1] <= 32)
    if untidy.any():
        return *parted(lines.tobytes().split(b"\n")[1:]), places
    lines[split[~single]] = _NEWLINE
    named_only = bool(single.all())
    if not named_only and single.any():
        lines = np.insert(lines, stop[single], _NEWLINE)
    text = lines.tobytes()
    try:
        words = text.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        rows = text.split(b"\n")[1:]
        whole = rows if named_only else list(map(b" ".join, zip(rows[::2], rows[1::2], strict=True)))
        return *parted(whole), places
    return (words[1:], [""] * len(headers), places) if named_only else (words[1::2], words[2::2], places)


def parted(headers: list[bytes]) -> tuple[list[str], list[str]]:
    """Names and descriptions of headers: what stands before and behind the first of their ``CONTROL`` characters.

    Those at both ends don't count. Each header by itself is UTF-8, or else Latin-1.
    """
    names, descriptions = [], []
    for header in headers:
        words = [*_NAME_END.split(header.strip(CONTROL), 1), b""]
        try:
            name, rest = words[0].decode(), words[1].decode()
        except UnicodeDecodeError:
            name, rest = words[0].decode("latin-1"), words[1].decode("latin-1")
        names.append(name)
        descriptions.append(rest)
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
