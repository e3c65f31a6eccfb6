"""Files of sequences and models: opened whatever their compression, recognised by their content, checked while read.

Plain, gzip and zstd files and standard input ("-") are read alike. Everything that is wrong with a file is one
``InputError`` that names the file, the line and what to do; with ``on_bad="skip"`` records that can't be used are told
of on stderr and left out.
"""

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import IO, Any, cast

import numpy as np

from .core.alphabet import Alphabet
from .core.errors import InputError, OptionError
from .core.registry import Registry
from .core.sequences import Intervals, ModelBatch, SequenceBatch
from .core.stages import OnBad, Reader

LETTERS = 4 << 20
"""Residues of a batch, about."""
HEAD = 4096
"""Bytes from which a format is recognised."""
ALL_LETTERS = 1 << 62
"""Residues of a batch that is never full."""
LARGE_RUN = 1 << 21
"""Ids in a run of ``Ids`` that is left as it is: joining larger ones would take too much memory for a while."""
_GZIP, _ZSTD, _DUCKDB = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"DUCK"
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip", b"\x1f\x9d": "compress"}


def read_sequences(path: str, registry: Registry, alphabet: Alphabet | None = None, on_bad: str = "error",
                   letters: int = LETTERS, ids: "Ids | None" = None) -> Iterator[SequenceBatch]:
    """Batches of the sequences in a file, numbered from 0, without double ids.

    Args:
        path: a file, or "-" for standard input.
        registry: where readers are found.
        alphabet: of the sequences; None to tell from the first ones.
        on_bad: "error" or "skip".
        letters: residues per batch, about.
        ids: those that are taken already; the file's are added. Share it to read several files.

    Raises:
        InputError: there is no such file, it is empty, cut off, of no known format or has no record that can be used;
            and, unless they are skipped: a record has no sequence, a letter outside the alphabet or an id that another
            one has.
        AlphabetError: the file holds sequences of the other alphabet.
    """
    where = "standard input" if path == "-" else path
    tell = on_bad_of(on_bad)
    ids = ids or Ids()
    first = 0
    with opened(path) as stream:
        reader = find_reader(stream, where, registry, "sequences")
        for read in reader.read(cast(IO[bytes], stream), where, alphabet, tell, letters):
            batch = ids.filtered(cast(SequenceBatch, read), where, tell)
            if len(batch):
                yield replace(batch, ordinals=np.arange(first, first + len(batch), dtype=np.int64))
                first += len(batch)
    if not first:
        raise InputError(f"{where}: none of its records can be used; give a file with at least one good record")


def load_sequences(path: str, registry: Registry, alphabet: Alphabet | None = None, on_bad: str = "error",
                   ids: "Ids | None" = None) -> SequenceBatch:
    """All sequences of a file as one batch; see ``read_sequences``."""
    from .storage.sources import joined

    return joined(list(read_sequences(path, registry, alphabet, on_bad, ALL_LETTERS, ids)))


def read_models(path: str, registry: Registry, on_bad: str = "error") -> Iterator[ModelBatch]:
    """Batches of the models in a file; see ``read_sequences`` for the errors."""
    where = "standard input" if path == "-" else path
    some = False
    with opened(path) as stream:
        reader = find_reader(stream, where, registry, "models")
        for batch in reader.read(cast(IO[bytes], stream), where, None, on_bad_of(on_bad), LETTERS):
            some = some or len(batch) > 0
            yield cast(ModelBatch, batch)
    if not some:
        raise InputError(f"{where}: none of its models can be used; give a file with at least one")


def load_models(path: str, registry: Registry, on_bad: str = "error") -> ModelBatch:
    """All models of a file as one batch, numbered from 0."""
    parts = list(read_models(path, registry, on_bad))

    def together(name: str) -> list[Any]:
        return [value for part in parts for value in getattr(part, name)]

    return ModelBatch(
        parts[0].alphabet, together("models"), np.concatenate([p.lengths for p in parts]),
        np.arange(sum(map(len, parts)), dtype=np.int64), together("names"), together("accessions"),
        together("descriptions"), together("sources"))


# ---- opening


def opened(path: str, may_be_empty: bool = False) -> "Stream":
    """Decompressed bytes of a file or of standard input, as a stream that can ``peek``; an empty file is an error."""
    where = "standard input" if path == "-" else path
    if path == "-":
        raw = Stream(sys.stdin.buffer, where)
    else:
        try:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 (the caller closes the stream)
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file; check the name") from None
        except IsADirectoryError:
            raise InputError(f"{path}: is a folder; give a file") from None
        except OSError as error:
            raise InputError(f"{path}: can't be read: {error.strerror}") from None
        raw = Stream(file, where, file=file)
    head = raw.peek(8)
    packed = next((name for magic, name in _PACKED.items() if head.startswith(magic)), None)
    if packed:
        raise InputError(f"{where}: {packed} files are not read; decompress it, or use gzip or zstd")
    if not head and not may_be_empty:
        raise InputError(f"{where}: the file is empty; give a file with sequences or models")
    if head.startswith(_GZIP):
        from isal import igzip

        return Stream(igzip.GzipFile(fileobj=raw, mode="rb"), where, "gzip", raw)
    if head.startswith(_ZSTD):
        return Stream(_Zstd(raw), where, "zstd", raw)
    return raw


class Stream(io.RawIOBase):
    """Bytes of a decompressor, or of standard input, whose errors are ours, with a look ahead.

    ``read`` gives as many bytes as are asked for until the end, without a further copy of large blocks.
    """

    def __init__(self, source: Any, where: str, kind: str = "", file: io.RawIOBase | None = None) -> None:
        self._source, self._where, self._kind, self._file = source, where, kind, file
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
            return self._source.read(size)
        except EOFError:
            raise InputError(f"{self._where}: the {self._kind} data end too early, the file is cut off; copy or "
                             "download it again") from None
        except Exception as error:  # each library has its own
            if not self._kind:
                raise InputError(f"{self._where}: can't be read: {error}") from None
            raise InputError(f"{self._where}: damaged {self._kind} data ({error}); copy or download the file again"
                             ) from None

    def close(self) -> None:
        if not self.closed and self._file is not None:
            self._file.close()
        super().close()


class _Zstd:
    """Decompressed bytes of zstd frames. The library's own stream reader takes a cut-off file for a whole one."""

    def __init__(self, raw: Stream) -> None:
        import zstandard

        self._raw, self._new = raw, zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj
        self._frame = self._new()
        self._begun = False
        self._left = b""

    def read(self, size: int) -> bytes:
        while not self._left:
            data = b""
            if self._frame.eof:
                data, self._frame, self._begun = self._frame.unused_data, self._new(), False
            data = data or self._raw.read(1 << 17)
            if not data:
                if self._begun:
                    raise EOFError
                return b""
            self._begun = True
            self._left = self._frame.decompress(data)
        data, self._left = self._left[:size], self._left[size:]
        return data


def find_reader(stream: Stream, where: str, registry: Registry, gives: str) -> Reader:
    """The reader of the stream's format. Raises ``InputError`` when there is none or it gives something else."""
    head = stream.peek(HEAD)
    if not head.strip() and len(head) < HEAD:
        raise InputError(f"{where}: the file is empty; give a file with sequences or models")
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
    if head[8:12] == _DUCKDB:
        raise InputError(f"{where}: is a database file and a file of {gives} is wanted; give another file, or extract "
                         "sequences with: seqloom db extract")
    line = 1 + head[: len(head) - len(head.lstrip())].count(b"\n")
    raise InputError(f"{where}: line {line}: neither {' nor '.join(formats)}: it begins with "
                     f"{_shown(head.lstrip()[:20])}; check the file's format")


def _shown(head: bytes) -> str:
    return repr(head.split(b"\n")[0].decode("latin-1"))


# ---- records that can't be used


def on_bad_of(choice: str) -> OnBad:
    """What ``on_bad`` asks for."""
    if choice == "error":
        return Stop()
    if choice == "skip":
        return Skip()
    raise OptionError(f"--on-bad is 'error' or 'skip', not '{choice}'")


class Stop(OnBad):
    """The first record that can't be used is an error."""

    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        raise InputError(f"{where}: line {line}: {what}; {remedy}, or leave such records out with --on-bad skip")


class Skip(OnBad):
    """Records that can't be used are told of on stderr and left out. ``count`` says how many there were."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, where: str, line: int, what: str, remedy: str) -> None:
        self.count += 1
        print(f"seqloom: {where}: line {line}: skipped: {what}", file=sys.stderr)


class Ids:
    """Ids that have been read, in sorted arrays of hashes: 16 bytes for each, whatever its length.

    Two of ten million ids have one hash by chance in one of 400,000 cases; then one is taken for the other.

    Args:
        known: gives those of some ids that were there before, with their ordinals; of a database that is added to.
    """

    def __init__(self, known: Callable[[Sequence[str]], dict[str, int]] | None = None) -> None:
        self._known = known
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        self._files: list[str] = []

    def filtered(self, batch: SequenceBatch, where: str, on_bad: OnBad) -> SequenceBatch:
        """``batch`` without the records whose ids are taken; ``on_bad`` is told of them. Takes the others' ids."""
        if not self._files or self._files[-1] != where:
            self._files.append(where)
        lines = getattr(batch, "lines", None)
        lines = np.zeros(len(batch), np.int64) if lines is None else lines
        places = lines | (len(self._files) - 1) << 40
        hashes = np.fromiter(map(hash, batch.names), np.int64, len(batch))
        order = np.argsort(hashes, kind="stable")
        ranked = hashes[order]
        again = np.zeros(len(batch), bool)
        again[order[1:]] = ranked[1:] == ranked[:-1]
        double: dict[int, str] = {}
        for n in np.flatnonzero(again).tolist():
            low = int(np.searchsorted(ranked, hashes[n]))
            double[n] = self._place(int(places[order[low]]), where)
        for known, taken in self._runs:
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            for n in np.flatnonzero(known[at] == hashes).tolist():
                double[n] = self._place(int(taken[at[n]]), where)
        if self._known is not None:
            before = self._known(batch.names)
            for n, name in enumerate(batch.names):
                if name in before:
                    double.setdefault(n, f"sequence {before[name] + 1:,} of the database")
        for n in sorted(double):
            on_bad(where, int(lines[n]), f"id '{batch.names[n]}' is there already, {double[n]}", "rename one of them")
        kept = np.ones(len(batch), bool)
        kept[list(double)] = False
        self._take(hashes[kept], places[kept])
        return kept_of(batch, kept) if double else batch

    def _place(self, place: int, where: str) -> str:
        file, line = self._files[place >> 40], place & (1 << 40) - 1
        at = f"in line {line}" if line else "before"
        return at if file == where else f"{at} of {file}"

    def _take(self, hashes: np.ndarray, places: np.ndarray) -> None:
        """Add a sorted run; small runs of like size become one, so that there are few."""
        if not len(hashes):
            return
        while self._runs and len(self._runs[-1][0]) < min(2 * len(hashes), LARGE_RUN):
            known, taken = self._runs.pop()
            hashes, places = np.concatenate([known, hashes]), np.concatenate([taken, places])
        order = np.argsort(hashes)
        self._runs.append((hashes[order], places[order]))


def kept_of(batch: SequenceBatch, kept: np.ndarray) -> SequenceBatch:
    """Those sequences of ``batch`` for which bool[k] ``kept`` is true."""
    place = np.cumsum(kept) - 1

    def cut(intervals: Intervals) -> Intervals:
        stays = kept[intervals.sequence]
        sequence = place[intervals.sequence[stays]].astype(np.int32)
        return Intervals(sequence, intervals.start[stays], intervals.end[stays])

    index = np.flatnonzero(kept).tolist()
    return SequenceBatch(
        batch.alphabet, batch.residues[np.repeat(kept, batch.lengths)],
        np.concatenate([[0], np.cumsum(batch.lengths[kept])]).astype(np.int64), batch.ordinals[kept],
        cut(batch.lower), cut(batch.soft), cut(batch.hard), [batch.names[n] for n in index],
        [batch.descriptions[n] for n in index] if len(batch.descriptions) else ())


__all__ = ["Ids", "load_models", "load_sequences", "opened", "read_models", "read_sequences"]
