"""The one door through which results get into files: whole or not at all, and never in the place of what is read.

A file is written without a name, or under a hidden one beside its own, brought to the disk, and gets its name in one
step. Whatever goes wrong before leaves what was there as it was. Devices, pipes and ``/dev/stdout`` are written to
directly. A name that ends in ``.gz`` or ``.zst`` has the file compressed.
"""

import errno
import fcntl
import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from .errors import StoreError, UsageError

ENCODING, UNDECODED = "utf-8", "surrogateescape"
"""Of all text that is written, whatever the locale says; bytes of file names that are no text come out as they were."""
_BUFFER = 1 << 18
_SENT_AT_ONCE = 8 << 20
"""Bytes of a file that go to the disk together before it is whole."""
_DUCKDB, _HEAD = b"DUCK", 20
_MINE = r"/proc/(\d+)/(?:task/\d+/)?fd/(\d+)"

PathLike = str | os.PathLike


# ---- refusing


def check_outputs(outputs: Iterable[PathLike | None], reads: Iterable[PathLike | None] = ()) -> None:
    """Refuse places for results before any work.

    Args:
        outputs: where results shall go; None and "-" are standard output.
        reads: files that are read for them, there or not; "-" is standard input, None isn't read. What belongs to a
            database or store (its log, its runs, its images) counts with it.

    Raises:
        StoreError: a place can't be written to.
        UsageError: a place is that of a file that is read, or of any database, or two outputs have the same one.
    """
    given: list[PathLike] = [path for path in reads if path is not None]
    read = [_identity(0 if _standard(path) else path) for path in given]
    belonging = [os.path.realpath(path) for path in given if not _standard(path)]
    taken: set[Any] = set()
    for path in outputs:
        standard = path is None or _standard(path)
        name = "standard output" if standard else str(path)
        place = (_identity(1) or name) if standard else _identity(cast(PathLike, path))
        if not standard:
            check_place(cast(PathLike, path))
        if place is not None and place in taken:
            raise UsageError(f"{name} would be written twice; give every output a file of its own")
        taken.add(place)
        if standard or place is None:
            continue
        real = os.path.realpath(cast(PathLike, path))
        if place in read or any(_belongs(real, other) for other in belonging):
            raise UsageError(f"{name} is a file that is read here, and the output would take its place; give the "
                             "output another name")
        _spare_databases(name, real)


def check_place(path: PathLike) -> None:
    """Refuse a place for results that can't be written to.

    Raises:
        StoreError: it is a folder, its folder isn't there, or either may not be written to.
    """
    real = os.path.realpath(path)
    if os.path.isdir(real):
        raise StoreError(f"{path} is a folder; give the name of a file")
    if _is_direct(path):
        return
    folder = os.path.dirname(real)
    if not os.path.isdir(folder):
        raise StoreError(f"{path} can't be written: there is no folder {folder}")
    if not os.access(folder, os.W_OK) or (os.path.exists(real) and not os.access(real, os.W_OK)):
        raise StoreError(f"{path} can't be written: permission denied")


def is_database(path: PathLike) -> bool:
    """Whether there is a DuckDB file at ``path``."""
    with suppress(OSError):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                return begins_database(file.read(_HEAD))
    return False


def begins_database(head: bytes) -> bool:
    """Whether a DuckDB file begins so: with a checksum, which may be any bytes, its mark, and the number of its format,
    which has zeros as no text has."""
    return head[8:12] == _DUCKDB and (0 in head[12:_HEAD] or len(head) < _HEAD)


def _spare_databases(name: str, real: str) -> None:
    if is_database(real):
        raise UsageError(f"{name} is a database, whose place no output takes; give the output another name, or remove "
                         "the database first")


def _standard(path: PathLike | None) -> bool:
    return path is not None and str(path) == "-"


def _identity(path: "PathLike | int | None") -> Any:
    """The same for every name of an ordinary file; its real path where there is none yet; None for what isn't one."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None if isinstance(path, int) else os.path.realpath(path)
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _belongs(real: str, other: str) -> bool:
    """Whether a path is that of another file, or of what stands beside it and belongs to it."""
    return real in (other, f"{other}.wal") or real.startswith((f"{other}.runs/", f"{other}.indexes/"))


# ---- writing


@contextmanager
def binary(path: PathLike, reads: Iterable[PathLike | None] = ()) -> Iterator[IO[bytes]]:
    """A stream of bytes that become the file ``path`` when the block ends, and don't when it fails.

    Args:
        reads: files that are read for it, see ``check_outputs``.

    Raises:
        StoreError: the file can't be written, such as on a full disk; what was there stays.
        UsageError: it would take the place of a file that is read.
    """
    reads = list(reads)
    check_outputs([path], reads)
    direct = _direct(path)
    place = None if direct else _Place(path)
    raw = direct or cast(_Place, place).raw
    stream = io.BufferedWriter(raw, _BUFFER)
    packed = _packing(str(path), cast(IO[bytes], stream))
    try:
        yield packed or stream
        if packed:
            packed.close()
        stream.flush()
        if place:
            check_outputs([path], reads)  # it may have come to be something else meanwhile
            place.publish()
    finally:
        with suppress(OSError):
            raw.close()  # before the buffer, which would write the rest of a file that has failed
        if place:
            place.leave()


@contextmanager
def text(path: PathLike, reads: Iterable[PathLike | None] = ()) -> Iterator[IO[str]]:
    """The same for text in UTF-8; ``buffer`` of the stream takes bytes."""
    with binary(path, reads) as stream:
        lines = io.TextIOWrapper(cast(Any, stream), ENCODING, UNDECODED, newline="")
        yield lines
        lines.flush()
        lines.detach()


class NamedFile(io.FileIO):
    """A file whose failures to write say which file it is, in plain words."""

    def __init__(self, file: "int | str", label: str, closefd: bool = True) -> None:
        super().__init__(file, "w" if isinstance(file, int) else "r+", closefd)
        self.label = label

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StoreError(_explained(error, self.label)) from error


class _OnItsWay(NamedFile):
    """The file of a place, which begins to go to the disk while it is written: its end waits for less of it then."""

    def __init__(self, file: int, label: str) -> None:
        super().__init__(file, label)
        self._written = self._sent = 0

    def write(self, data: Any) -> int:
        count = super().write(data)
        self._written += count
        if self._written - self._sent >= _SENT_AT_ONCE and hasattr(os, "posix_fadvise"):
            # Pages that have been written to are sent to the disk, and stay in memory.
            with suppress(OSError):
                os.posix_fadvise(self.fileno(), self._sent, self._written - self._sent, os.POSIX_FADV_DONTNEED)
            self._sent = self._written
        return count


def explained(error: OSError) -> str:
    """An operating system's error as a line for people: what file, what is wrong, what to do."""
    return _explained(error, os.fsdecode(error.filename) if error.filename else "")


def _explained(error: OSError, name: str) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"{name or 'a file'} can't be written: the disk is full; free some space or choose another place"
    if error.errno == errno.EIO:
        return f"{name or 'a file'}: the disk or the way to it fails (input/output error); choose another place"
    what = "it is closed" if error.errno == errno.EBADF else error.strerror or str(error)
    return f"{name}: {what}" if name else what


class _Place:
    """A file under way to its name."""

    def __init__(self, path: PathLike) -> None:
        self.label, self.target = str(path), Path(os.path.realpath(path))
        self._temporary: Path | None = None
        _clear(self.target.parent)
        try:
            number = self._nameless()
            if number is None:
                number = self._hidden()
        except OSError as error:
            raise StoreError(_explained(error, self.label)) from error
        self.raw = _OnItsWay(number, self.label)

    def _nameless(self) -> int | None:
        """A file without a name, which is gone when its process is; None where the file system has no such files."""
        if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
            return None
        try:
            return os.open(self.target.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL):
                return None
            raise

    def _hidden(self) -> int:
        """A file under a hidden name that nobody else has, locked as long as its process lives."""
        while True:
            name = self._other_name()
            number = os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o666)
            with suppress(OSError):
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(number).st_nlink:  # else it was taken for a leftover before it was locked
                self._temporary = name
                return number
            os.close(number)

    def _other_name(self) -> Path:
        """A hidden name beside the file's own that isn't too long."""
        own = os.fsencode(self.target.name)[:200].decode(errors="ignore")
        return self.target.with_name(f".{own}.{os.getpid()}-{os.urandom(4).hex()}{_HIDDEN}")

    def publish(self) -> None:
        """Bring the file to the disk and give it its name, in one step."""
        number = self.raw.fileno()
        try:
            with suppress(FileNotFoundError):
                before = os.stat(self.target)
                with suppress(PermissionError):
                    os.fchown(number, -1, before.st_gid)
                os.fchmod(number, stat.S_IMODE(before.st_mode))
            os.fsync(number)
            folder = os.open(self.target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                if self._temporary is None:
                    self._link(number, folder)
                if self._temporary is not None:
                    os.replace(self._temporary, self.target)
                    self._temporary = None
                with suppress(OSError):  # it has its name already
                    os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise StoreError(_explained(error, self.label)) from error

    def _link(self, number: int, folder: int) -> None:
        """Give the nameless file its name, or a hidden one where that is taken."""
        own = f"/proc/self/fd/{number}"  # with a folder to go from, the link is followed to the file
        with suppress(FileExistsError):
            os.link(own, self.target.name, dst_dir_fd=folder, follow_symlinks=True)
            return
        with suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary = self._other_name()
        os.link(own, temporary.name, dst_dir_fd=folder, follow_symlinks=True)
        self._temporary = temporary

    def leave(self) -> None:
        """Remove what has no name of its own."""
        if self._temporary is not None:
            with suppress(OSError):
                self._temporary.unlink(missing_ok=True)


_HIDDEN = ".seqloom.tmp"


def _clear(folder: Path) -> None:
    """Remove files of processes that were killed while they gave one its name; a living one holds a lock on its own."""
    try:
        names = [name for name in os.listdir(folder) if name.startswith(".") and name.endswith(_HIDDEN)]
    except OSError:
        return
    for name in names:
        with suppress(OSError):
            number = os.open(folder / name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(number), os.lstat(folder / name)):
                    os.unlink(folder / name)
            finally:
                os.close(number)


def _is_direct(path: PathLike) -> bool:
    """Whether it is no ordinary file: a device, a pipe, or one that this process has open (``/dev/stdout``)."""
    try:
        return _own_number(path) is not None or not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _direct(path: PathLike) -> NamedFile | None:
    """Such a file, opened; None for an ordinary one."""
    if not _is_direct(path):
        return None
    own = _own_number(path)
    if own == 1:
        sys.stdout.flush()
    try:
        number = os.open(path, os.O_WRONLY | os.O_CLOEXEC) if own is None else os.dup(own)
    except OSError as error:
        raise StoreError(_explained(error, str(path))) from error
    return NamedFile(number, str(path))


def _own_number(path: PathLike) -> int | None:
    """N where a path leads to ``/proc/self/fd/N``, as ``/dev/stdout`` and ``/dev/fd/N`` do."""
    place = os.fspath(path)
    for _ in range(10):
        place = os.path.join(os.path.realpath(os.path.dirname(place) or "."), os.path.basename(place))
        found = re.fullmatch(_MINE, place)
        if found:
            return int(found[2]) if int(found[1]) == os.getpid() else None
        if not os.path.islink(place):
            return None
        place = os.path.join(os.path.dirname(place), os.readlink(place))
    return None


def _packing(name: str, stream: IO[bytes]) -> Any:
    """A compressor before the stream, where the file's name asks for one; ``close`` leaves the stream open."""
    if name.endswith(".gz"):
        from isal import igzip

        return igzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0)
    if name.endswith((".zst", ".zstd")):
        import zstandard

        return zstandard.ZstdCompressor().stream_writer(stream, closefd=False)
    return None


__all__ = ["ENCODING", "UNDECODED", "NamedFile", "binary", "check_outputs", "check_place", "explained", "text"]
