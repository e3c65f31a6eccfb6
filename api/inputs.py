"""Files of sequences and models: opened whatever their compression, recognised by their content, checked while read.

Plain, gzip, bzip2, xz and zstd files and standard input ("-") are read alike. Everything that is wrong with a file is
one ``InputError`` that names the file, the line and what to do; with ``on_bad="skip"`` records that can't be used are
reported on stderr and left out.
"""

import io
import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from .core.alphabet import Alphabet
from .core.errors import Cancelled, InputError, OptionError, concerning
from .core.output_files import begins_database
from .core.ports import SourceFacts
from .core.progress import Progress
from .core.registry import Registry
from .core.sequences import Intervals, ModelBatch, SequenceBatch
from .core.stages import OnBad, Reader
from .core.text_rows import TextRows

RESIDUES = 4 << 20
"""Residues of a batch, about."""
HEAD = 4096
"""Bytes from which a format is recognised."""
ALL_RESIDUES = 1 << 62
"""Residues of a batch that is never full."""
LARGE_RUN = 1 << 21
"""Ids in a run of ``Ids`` that is left as it is: joining larger ones would take too much memory for a while."""
PIECE = 1 << 16
"""Compressed bytes that are read at once."""
MEMORY_LIMIT = 128 << 20
"""Bytes that a decompressor may take to look back in, as many as the program zstd takes."""
_GZIP, _ZSTD, _BZIP2, _XZ = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ\0"
_PACKED = {b"PK\x03\x04": "zip", b"\x1f\x9d": "compress", b"7z\xbc\xaf": "7z"}
_BEHIND = "other bytes follow behind its end"
_LARGEST_BLOCK = 128 << 10


def read_sequences(path: str, registry: Registry, alphabet: Alphabet | None = None, on_bad: str = "error",
                   residues: int = RESIDUES, ids: "Ids | None" = None,
                   queries: bool = False, progress: Progress | None = None,
                   threads: int = 1) -> Iterator[SequenceBatch]:
    """Batches of the sequences in a file, numbered from 0, without double ids.

    Args:
        path: a file, or "-" for standard input.
        registry: where readers are found.
        alphabet: of the sequences; None to tell from the first ones.
        on_bad: "error", "skip" or "rename".
        residues: residues per batch, about.
        ids: those that are taken already; the file's are added. Share it to read several files.
        queries: take what BLAST takes of queries: double ids, gaps, which are left out, and records without a header
            or a name, which are Query_1, Query_2, … by their number.
        progress: told of the bytes of the file that are read; see ``begin_reading``.
        threads: that may have a part in it.

    Raises:
        Cancelled: ``progress`` says so.
        InputError: there is no such file, it is empty, cut off, of no known format or has no record that can be used;
            and, unless they are skipped: a record has no sequence, a residue outside the alphabet or an id that another
            one has.
        AlphabetError: the file holds sequences of the other alphabet.
    """
    where = "standard input" if path == "-" else path
    tell = on_bad_of(on_bad)
    tell.as_query = queries
    ids = ids or Ids()
    first = 0
    with concerning(where):
        for read in _batches(path, where, registry, alphabet, tell, residues, queries, progress, threads):
            batch = read if queries else ids.filtered(read, where, tell)
            if len(batch):
                yield batch.numbered_from(first)
                first += len(batch)
    if not first:
        raise InputError(f"{where}: none of its records can be used; give a file with at least one good record")


def _batches(path: str, where: str, registry: Registry, alphabet: Alphabet | None, tell: "Stop", residues: int,
             queries: bool, progress: Progress | None, threads: int) -> Iterator[SequenceBatch]:
    """What the reader of the file's format, or of data of several files, reads."""
    claiming = claiming_reader(path, registry)
    if claiming:
        yield from cast(Iterator[SequenceBatch], claiming.read_path(path, alphabet, tell, residues))
        return
    with opened(path, progress=progress) as stream:
        reader = find_reader(stream, where, registry, "sequences", queries)
        reader.threads = threads
        yield from cast(Iterator[SequenceBatch],
                        reader.read(cast(IO[bytes], stream), where, alphabet, tell, residues))


def claiming_reader(path: str, registry: Registry) -> Reader | None:
    """The reader of what ``path`` names where that is no file but, say, what several files begin with; else None."""
    if path == "-" or os.path.exists(path):
        return None
    return next((reader for kind in registry.readers() if (reader := kind()).claims(path)), None)


def facts_of(path: str, registry: Registry, alphabet: Alphabet | None = None) -> SourceFacts:
    """What data that several files hold, such as a database of BLAST's, say of themselves; nothing of other files."""
    reader = claiming_reader(path, registry)
    return reader.facts(path, alphabet) if reader else SourceFacts()


def load_sequences(path: str, registry: Registry, alphabet: Alphabet | None = None, on_bad: str = "error",
                   ids: "Ids | None" = None, queries: bool = False) -> SequenceBatch:
    """All sequences of a file as one batch; see ``read_sequences``."""
    parts = read_sequences(path, registry, alphabet, on_bad, ALL_RESIDUES, ids, queries)
    return SequenceBatch.concat(list(parts))


def read_models(path: str, registry: Registry, on_bad: str = "error", residues: int = RESIDUES,
                progress: Progress | None = None,
                chosen: Callable[[Reader], None] | None = None) -> Iterator[ModelBatch]:
    """Batches of the models in a file, of some ``residues`` positions each; see ``read_sequences`` for the rest.

    Args:
        chosen: told which reader reads it, before it does.
    """
    where = "standard input" if path == "-" else path
    some = False
    with opened(path, progress=progress) as stream:
        reader = find_reader(stream, where, registry, "models")
        if chosen:
            chosen(reader)
        for batch in reader.read(cast(IO[bytes], stream), where, None, on_bad_of(on_bad), residues):
            some = some or len(batch) > 0
            yield cast(ModelBatch, batch)
    if not some:
        raise InputError(f"{where}: none of its models can be used; give a file with at least one")


def load_models(path: str, registry: Registry, on_bad: str = "error") -> ModelBatch:
    """All models of a file as one batch, numbered from 0."""
    models = ModelBatch.concat(list(read_models(path, registry, on_bad)))
    return models.renumbered(np.arange(len(models), dtype=np.int64))


# ---- opening


def begin_reading(progress: Progress | None, paths: Iterable[str | Path]) -> None:
    """Work begins whose progress is the bytes of these files that are read, as they are, compressed or not."""
    if progress:
        sizes = [os.path.getsize(path) if os.path.isfile(path) else None for path in paths]
        progress.begin(0 if None in sizes else sum(size or 0 for size in sizes), "B")


def check_there(path: str) -> None:
    """Refuse a file that isn't there, before anything else is done; what else is wrong with it shows when it is read.

    Raises:
        InputError: it says so.
    """
    if path != "-" and not os.path.lexists(path):
        raise InputError(f"{path}: there is no such file; check the name")


def opened(path: str, may_be_empty: bool = False, progress: Progress | None = None) -> "Stream":
    """Decompressed bytes of a file or of standard input, as a stream that can ``peek``; an empty file is an error."""
    where = "standard input" if path == "-" else path
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed; give a file")
        raw = Stream(sys.stdin.buffer, where, progress=progress)
    else:
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 (the caller closes the stream)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file; check the name") from None
        except IsADirectoryError:
            raise InputError(f"{path}: is a folder; give a file") from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from None
        raw = Stream(file, where, file=file, progress=progress)
    head = raw.peek(32)
    if begins_database(head):
        return raw
    packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)
    if packed:
        raise InputError(f"{where}: {packed} files are not read; decompress it, or use gzip, bzip2, xz or zstd")
    if not head and not may_be_empty:
        raise InputError(f"{where}: the file is empty; give a file with sequences or models")
    if is_zstd(head):
        return Stream(_Zstd(raw, where), where, "zstd", raw)
    if head.startswith(_GZIP):
        from isal import igzip_lib

        new = partial(igzip_lib.IgzipDecompressor, flag=igzip_lib.DECOMP_GZIP)
        return Stream(_Parts(raw, _GZIP, new), where, "gzip", raw)
    if head.startswith(_BZIP2):
        from bz2 import BZ2Decompressor

        return Stream(_Parts(raw, _BZIP2, BZ2Decompressor), where, "bzip2", raw)
    if head.startswith(_XZ):
        from lzma import LZMADecompressor

        return Stream(_Parts(raw, _XZ, partial(LZMADecompressor, memlimit=MEMORY_LIMIT)), where, "xz", raw)
    return raw


class Stream(io.RawIOBase):
    """Bytes of a decompressor, or of standard input, whose errors are ours, with a look ahead.

    ``read`` gives as many bytes as are asked for until the end, without a further copy of large blocks.
    """

    def __init__(self, source: Any, where: str, kind: str = "", file: io.RawIOBase | None = None,
                 progress: Progress | None = None) -> None:
        self._source, self._where, self._kind, self._file, self._progress = source, where, kind, file, progress
        self._head = b""

    def readable(self) -> bool:
        return True

    def peek(self, size: int) -> bytes:
        """The next ``size`` bytes, which stay to be read."""
        self._head = self.read(size)
        return self._head

    def read(self, size: int = -1) -> bytes:
        parts, self._head = [self._head[:size] if size >= 0 else self._head], self._head[size:] if size >= 0 else b""
        have = len(parts[0])
        while size < 0 or have < size:
            data = self._some(1 << 20 if size < 0 else size - have)
            if not data:
                break
            parts.append(data)
            have += len(data)
        return parts[1] if len(parts) == 2 and not parts[0] else b"".join(parts)

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _some(self, size: int) -> bytes:
        try:
            data = self._source.read(size)
        except (InputError, Cancelled, MemoryError):
            raise
        except EOFError:
            raise InputError(f"{self._where}: the {self._kind} data end too early, the file is cut off; copy or "
                             "download it again") from None
        except Exception as error:  # each library has its own
            if not self._kind:
                raise InputError(f"{self._where}: can't be read: {getattr(error, 'strerror', None) or error}") from None
            raise InputError(f"{self._where}: damaged {self._kind} data ({error}); copy or download the file again"
                             ) from None
        if self._progress:
            self._progress.advance(len(data))
        return data

    def close(self) -> None:
        if not self.closed and self._file is not None:
            self._file.close()
        super().close()


class _Parts:
    """Decompressed bytes of gzip, bzip2 or xz data, one part behind the other, some at a time whatever their ratio.

    Args:
        raw: the compressed bytes.
        magic: with which each part begins.
        new: makes a decompressor for one part, with the interface of those of the standard library.
    """

    def __init__(self, raw: Stream, magic: bytes, new: Callable[[], Any]) -> None:
        self._raw, self._magic, self._new = raw, magic, new
        self._part: Any = None
        self._held = b""  # read, and not yet given to a part

    def read(self, size: int) -> bytes:
        while True:
            if self._part is None and not self._begun():
                return b""
            if self._part.needs_input and not self._held:
                self._held = self._raw.read(PIECE)
                if not self._held:
                    raise EOFError
            out = self._part.decompress(self._held, size)
            self._held = b""
            if self._part.eof:
                self._held, self._part = self._part.unused_data, None
            if out:
                return out

    def _begun(self) -> bool:
        """Begin the next part; False at the end of the file. Zeros between parts are padding."""
        while not (held := self._held.lstrip(b"\0")):
            self._held = self._raw.read(PIECE)
            if not self._held:
                return False
        if len(held) < len(self._magic):
            held += self._raw.read(PIECE)
        if not held.startswith(self._magic):
            if self._magic.startswith(held):
                raise EOFError
            raise ValueError(_BEHIND)
        self._held, self._part = held, self._new()
        return True


class _Zstd:
    """Decompressed bytes of zstd frames.

    Frames are walked block by block, since a block gives 128 KiB at most: so what is held stays small whatever the
    ratio, and where a file is cut off is known, which the library's own stream reader doesn't say.
    Source: RFC 8878, section 3.1.
    """

    def __init__(self, raw: Stream, where: str) -> None:
        import zstandard

        self._raw, self._where, self._library = raw, where, zstandard
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=MEMORY_LIMIT)
        self._frame: Any = None
        self._checksum = 0
        self._left = memoryview(b"")

    def read(self, size: int) -> bytes:
        while not self._left:
            if self._frame is None and not self._begun():
                return b""
            self._left = memoryview(self._block())
        data, self._left = self._left[:size], self._left[size:]
        return bytes(data)

    def _begun(self) -> bool:
        """Read the header of the next frame, past frames to be skipped; False at the end of the file."""
        while head := self._raw.read(4):
            if not is_zstd(head):
                if _ZSTD.startswith(head):
                    raise EOFError
                raise ValueError(_BEHIND)
            if head[0] & 0xF0 == 0x50:
                left = int.from_bytes(self._whole(4), "little")
                while left:
                    left -= len(self._whole(min(left, PIECE)))
                continue
            head += self._whole(1)
            head += self._whole(self._library.frame_header_size(head + bytes(13)) - 5)
            facts = self._library.get_frame_parameters(head)
            if facts.window_size > MEMORY_LIMIT:
                raise InputError(f"{self._where}: its zstd data need a window of {facts.window_size >> 20:,} MiB and "
                                 f"at most {MEMORY_LIMIT >> 20} MiB are used; decompress it with: zstd -d --long=31")
            if facts.dict_id:
                raise InputError(f"{self._where}: its zstd data need a dictionary; decompress it with: zstd -d -D")
            self._frame, self._checksum = self._decompressor.decompressobj(), 4 * facts.has_checksum
            self._frame.decompress(head)
            return True
        return False

    def _block(self) -> bytes:
        head = self._whole(3)
        facts = int.from_bytes(head, "little")
        last, kind, size = facts & 1, facts >> 1 & 3, facts >> 3
        size = 1 if kind == 1 else size
        if size > _LARGEST_BLOCK:
            raise ValueError(f"a block of {size:,} bytes")
        data = self._frame.decompress(head + self._whole(size + (self._checksum if last else 0)))
        if last:
            if not self._frame.eof:
                raise ValueError("a frame that doesn't end where it should")
            self._frame = None
        return data

    def _whole(self, size: int) -> bytes:
        data = self._raw.read(size)
        if len(data) < size:
            raise EOFError
        return data


def is_zstd(head: bytes) -> bool:
    """Whether zstd data begin so: with a frame, or with one that is to be skipped."""
    return head.startswith(_ZSTD) or (head[1:4] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50)


def is_stream(path: str) -> bool:
    """Whether what is read from ``path`` can be read once only: standard input, a pipe or a device."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return path == "-"
    return path == "-" or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def find_reader(stream: Stream, where: str, registry: Registry, gives: str, queries: bool = False) -> Reader:
    """The reader of the stream's format. Raises ``InputError`` when there is none or it gives something else.

    Args:
        queries: take residues alone for a sequence without a header.
    """
    head = stream.peek(HEAD)
    if not head.strip() and len(head) < HEAD:
        raise InputError(f"{where}: the file is empty; give a file with sequences or models")
    if begins_database(head):
        raise InputError(f"{where}: is a database file and a file of {gives} is wanted; give another file, or extract "
                         "sequences with: seqloom db extract")
    for begins, what, remedy in _FOREIGN if head[:1] != b">" else []:
        if re.match(begins, head):
            raise InputError(f"{where}: is {what}, which is not read; {remedy}")
    if queries and re.fullmatch(_BARE, head, re.DOTALL):
        head = b">\n" + head
    formats = []
    for kind in registry.readers():
        reader = kind()
        if reader.sniff(head):
            if reader.gives != gives:
                raise InputError(f"{where}: holds {reader.gives} ({reader.name}) and {gives} are wanted; "
                                 "give another file")
            return reader
        if reader.gives == gives:
            formats.append(reader.name)
    line = 1 + head[: len(head) - len(head.lstrip())].count(b"\n")
    raise InputError(f"{where}: line {line}: neither {' nor '.join(formats)}: it begins with "
                     f"{_shown(head.lstrip()[:20])}; check the file's format")


_BARE = rb"(?:\s|[;#!][^\r\n]*[\r\n])*[A-Za-z][A-Za-z*\s-]*(?:[\r\n]>.*)?"
"""Residues without a header, behind comments, and maybe records with headers behind them."""
_CONVERT = "convert it to FASTA, such as with seqret of EMBOSS or Biopython's SeqIO.convert"
_FOREIGN = [
    (rb"\s*# STOCKHOLM", "a Stockholm alignment",
     "make a model of it with hmmbuild, or FASTA with: esl-reformat fasta FILE"),
    (rb"\s*(CLUSTAL|MUSCLE)[ (]", "a Clustal alignment",
     "convert it to FASTA, such as with: esl-reformat fasta FILE"),
    (rb"LOCUS {3,}\S", "a GenBank flat file", _CONVERT),
    (rb"ID {3}\S", "an EMBL or UniProt flat file", _CONVERT),
    (rb"@(HD|SQ|RG|PG|CO)\t", "a SAM file", "convert it with: samtools fasta FILE"),
    (rb"BAM\x01|CRAM", "a BAM or CRAM file", "convert it with: samtools fasta FILE"),
    (rb"##gff-version", "a GFF file", "give its sequences as FASTA"),
    (rb"(HEADER|ATOM  ) {4}", "a PDB file", _CONVERT),
    (rb"HMMER2", "a model of HMMER2", "convert it with: hmmconvert FILE"),
]
"""Formats that are met often: how they begin, what they are, what to do."""


def _shown(head: bytes) -> str:
    return repr(head.split(b"\n")[0].decode("latin-1"))


# ---- records that can't be used


def on_bad_of(choice: str) -> "Stop":
    """What ``on_bad`` asks for."""
    kinds: dict[str, type[Stop]] = {"error": Stop, "skip": Skip, "rename": Rename}
    if choice not in kinds:
        raise OptionError(f"--on-bad is 'error', 'skip' or 'rename', not '{choice}'")
    return kinds[choice]()


class Stop(OnBad):
    """The first record that can't be used is an error.

    Attributes:
        renames: whether records get another id where theirs is there already.
    """

    renames = False

    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        raise InputError(f"{_at(where, line)}: {what}; {remedy}, or leave such records out with --on-bad skip")

    def note(self, where: str, line: int, what: str) -> None:
        print(f"seqloom: {_at(where, line)}: {what}", file=sys.stderr)


def _at(where: str, line: int) -> str:
    return f"{where}: line {line}" if line else where


class Skip(Stop):
    """Records that can't be used are told on stderr and left out. ``count`` says how many there were."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        self.count += 1
        self.note(where, line, f"skipped: {what}")


class Rename(Stop):
    """Of records with one id the second is ``ID_2``, the third ``ID_3``; others that can't be used are errors."""

    renames = True


class Ids:
    """Ids that have been read, in sorted arrays of hashes: 24 bytes for each, whatever its length.

    Ids of one batch are compared as they are. Of others two hashes of 64 bits are kept, so that different ids don't
    pass for one.

    Args:
        known: gives those of some ids that were there before, with their ordinals; of a database that is added to.
    """

    def __init__(self, known: Callable[[Sequence[str]], dict[str, int]] | None = None) -> None:
        self._known = known
        self._runs: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # first hashes, second ones, places
        self._files: list[str] = []
        self._next: dict[str, int] = {}  # number behind the next record of an id that was there already

    def filtered(self, batch: SequenceBatch, where: str, on_bad: "Stop") -> SequenceBatch:
        """``batch`` without the records whose ids are taken, or with new ids for them, as ``on_bad`` has it."""
        if not self._files or self._files[-1] != where:
            self._files.append(where)
        lines = getattr(batch, "lines", None)
        lines = np.zeros(len(batch), np.int64) if lines is None else lines
        places = lines | (len(self._files) - 1) << 40
        first, second = _hashes(batch.names)
        double = self._taken(batch.names, first, second, where)
        for n, before in self._repeated(batch.names, first):
            double.setdefault(n, self._place(int(places[before]), where))
        kept = np.ones(len(batch), bool)
        if double and on_bad.renames:
            names = list(batch.names)
            present = set(names)
            for n in sorted(double):
                names[n] = self._new_name(names[n], present)
                on_bad.note(where, int(lines[n]), f"id '{batch.names[n]}' is there already, {double[n]}; this one is "
                                                  f"'{names[n]}' here")
            batch = replace(batch, names=names)
            first, second = _hashes(names)
        else:
            for n in sorted(double):
                on_bad(where, int(lines[n]), f"id '{batch.names[n]}' is there already, {double[n]}",
                       "rename one of them (--on-bad rename does)")
            kept[list(double)] = False
        self._take(first[kept], second[kept], places[kept])
        return batch if kept.all() else kept_of(batch, kept)

    def _taken(self, names: Sequence[str], first: np.ndarray, second: np.ndarray, where: str) -> dict[int, str]:
        """Which of the ids were read before this batch, and where."""
        taken: dict[int, str] = {}
        for known, also, places in self._runs:
            at = np.minimum(np.searchsorted(known, first), len(known) - 1)
            for n in np.flatnonzero(known[at] == first).tolist():
                same = range(at[n], int(np.searchsorted(known, first[n], "right")))
                for k in same:
                    if also[k] == second[n]:
                        taken[n] = self._place(int(places[k]), where)
        if self._known is not None:
            before = self._known(names)
            for n, name in enumerate(names):
                if name in before:
                    taken.setdefault(n, f"sequence {before[name] + 1:,} of the database")
        return taken

    def _repeated(self, names: Sequence[str], first: np.ndarray) -> Iterator[tuple[int, int]]:
        """Records of a batch whose id an earlier one has, and that one."""
        order = np.argsort(first, kind="stable")
        ranked = first[order]
        same = ranked[1:] == ranked[:-1]
        if not same.any():
            return
        seen: dict[str, int] = {}
        for n in order[np.append(same, False) | np.append(False, same)].tolist():
            if (before := seen.setdefault(names[n], n)) != n:
                yield n, before

    def _new_name(self, name: str, present: set[str]) -> str:
        """``name`` with the first number from 2 on that makes it new; it is added to ``present``."""
        number = self._next.get(name, 2)
        while f"{name}_{number}" in present or self._taken([f"{name}_{number}"], *_hashes([f"{name}_{number}"]), ""):
            number += 1
        self._next[name] = number + 1
        present.add(f"{name}_{number}")
        return f"{name}_{number}"

    def _place(self, place: int, where: str) -> str:
        file, line = self._files[place >> 40], place & (1 << 40) - 1
        if file == where:
            return f"in line {line}" if line else "before"
        return f"in line {line} of {file}" if line else f"in {file}"

    def _take(self, *ids: np.ndarray) -> None:
        """Add a sorted run; small runs of like size become one, so that there are few."""
        if not len(ids[0]):
            return
        while self._runs and len(self._runs[-1][0]) < min(2 * len(ids[0]), LARGE_RUN):
            ids = tuple(np.concatenate(parts) for parts in zip(self._runs.pop(), ids, strict=True))
        order = np.argsort(ids[0])
        self._runs.append(tuple(part[order] for part in ids))  # type: ignore[arg-type]


def _hashes(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """i8[k] each: two hashes of every name that have nothing to do with each other."""
    return (np.fromiter(map(hash, names), np.int64, len(names)),
            np.fromiter(map(hash, map("\0".__add__, names)), np.int64, len(names)))


def kept_of(batch: SequenceBatch, kept: np.ndarray) -> SequenceBatch:
    """Those sequences of ``batch`` for which bool[k] ``kept`` is true."""
    place = np.cumsum(kept) - 1

    def cut(intervals: Intervals) -> Intervals:
        stays = kept[intervals.sequence]
        sequence = place[intervals.sequence[stays]].astype(np.int32)
        return Intervals(sequence, intervals.start[stays], intervals.end[stays])

    def chosen(values: Sequence[Any]) -> Sequence[Any]:
        return values.take(kept) if isinstance(values, TextRows) else list(compress(values, kept.tolist()))

    return SequenceBatch(
        batch.alphabet, batch.residues[np.repeat(kept, batch.lengths)],
        np.concatenate([[0], np.cumsum(batch.lengths[kept])]).astype(np.int64), batch.ordinals[kept],
        cut(batch.lower), cut(batch.soft), cut(batch.hard), chosen(batch.names), chosen(batch.descriptions),
        chosen(batch.taxids))


__all__ = ["Ids", "load_models", "load_sequences", "opened", "read_models", "read_sequences"]
