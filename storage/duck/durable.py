"""Checkpoints that a power cut can't spoil.

DuckDB writes what is committed to a log beside the file (``NAME.wal``) and brings it into the file at a checkpoint. New
blocks go to places that are free, but blocks of metadata are rewritten where they stand: when such a write is cut in
the middle, the file has neither its old nor its new state. So who writes to a file that holds something calls ``hold``
behind opening it and ``checkpoint`` in place of DuckDB's own: a copy of the blocks that are going to be rewritten is
brought to disk first, as ``NAME.undo``. Whoever opens the file next finds it where the checkpoint was cut off, puts the
blocks back, and has the state before the checkpoint: what was committed is in the log.

What is promised, on a file system that keeps what it was told to keep: after a committed transaction the file with its
log holds all of it, whatever ends the process or the machine, and whenever.
"""

import os
import struct
import zlib
from contextlib import suppress
from functools import reduce
from operator import xor
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import StoreError
from .literals import literal

if TYPE_CHECKING:
    import duckdb

PAGE = 4096
"""Bytes of each of the three headers with which a file begins: what it is, and two that are written in turn."""
HEADERS = 3 * PAGE
MAGIC = b"seqloom undo 1\n\0"
_LOG = bytes.fromhex("640062650002")
"""How a log begins of the version whose end of a transaction is known: its first entry is of type 98, version 2."""
_COMMIT = bytes.fromhex("0500000000000000e7fe7d722fed3d5e640064ffff")
"""The end of a transaction in a log: an entry of 5 bytes with its checksum and type 100."""
_FACTOR = 0xBF58476D1CE4E5B9
_RECORD = struct.Struct("<QQ")


def log_of(path: "str | Path") -> Path:
    """DuckDB's log of the file at ``path``."""
    return Path(f"{os.path.realpath(path)}.wal")


def undo_of(path: "str | Path") -> Path:
    """Where the blocks are kept that a checkpoint of the file at ``path`` rewrites."""
    return Path(f"{os.path.realpath(path)}.undo")


def has_commits(path: "str | Path") -> bool:
    """Whether there may be anything committed in the log of the file at ``path``: not where writing it was cut off in
    its first transaction."""
    try:
        content = log_of(path).read_bytes()
    except FileNotFoundError:
        return False
    return not _LOG.startswith(content[: len(_LOG)]) or _COMMIT in content


def hold(connection: "duckdb.DuckDBPyConnection") -> None:
    """Keep DuckDB from checkpoints of its own, when a log has grown and when a file is closed."""
    connection.execute("PRAGMA disable_checkpoint_on_shutdown; SET checkpoint_threshold = '1024 TiB'")


def checkpoint(connection: "duckdb.DuckDBPyConnection", path: "str | Path", database: str = "") -> None:
    """Bring what is committed into the file; the log is gone then. No transaction may be open.

    Args:
        path: the file, open for writing through ``connection``.
        database: its name among those attached; the current one when left out.

    Raises:
        StoreError: the copy can't be written, for instance since the disk is full. Nothing is lost: what was committed
            stays in the log, and ``connection`` is as it was.
        duckdb.Error: the checkpoint failed. Nothing is lost, but ``connection`` may be of no use any more: close it;
            opening the file again puts back what has to be.
    """
    name = f"'{database}'" if database else "current_database()"
    if not connection.execute(f"SELECT wal_size <> '0 bytes' FROM pragma_database_size() WHERE database_name = {name}"
                              ).fetchall()[0][0]:
        return
    undo = undo_of(path)
    try:
        _write(undo, _kept(connection, path, database))
    except OSError as error:
        with suppress(OSError):
            undo.unlink(missing_ok=True)
        raise StoreError(f"{undo} can't be written: {error.strerror}; what was added stays in {log_of(path)}") from None
    connection.execute(f"CHECKPOINT {database}")
    with suppress(OSError):  # whoever opens the file next sees that it isn't needed
        undo.unlink(missing_ok=True)


def recover(path: "str | Path") -> None:
    """Put back what a checkpoint that was cut off has rewritten; call it before opening the file.

    Nothing is done while any process has the file open, or where this one may not write to it.
    """
    undo = undo_of(path)
    if not undo.exists() or descriptor(path) is not None:
        return
    import fcntl

    with suppress(OSError), open(path, "r+b") as file:  # in use, or of somebody else: DuckDB says so
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        records = _read(undo)
        if records and _cut_off(file.read(HEADERS), records[0][1]):
            for offset, data in records:
                file.seek(offset)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        undo.unlink(missing_ok=True)


def _kept(connection: "duckdb.DuckDBPyConnection", path: "str | Path", database: str) -> list[tuple[int, bytes]]:
    """Place and content of the headers and of every block that holds metadata.

    They are read through DuckDB's own descriptor: closing another one of ours would drop its lock on the file.
    """
    file = descriptor(path)
    if file is None:
        raise OSError(0, "the file isn't open")
    headers = os.pread(file, HEADERS, 0)
    [block_bytes] = struct.unpack_from("<Q", headers, PAGE + 40)
    blocks = connection.execute(f"SELECT block_id FROM pragma_metadata_info({literal(database) if database else ''}) "
                                "ORDER BY block_id").fetchall()
    places = [HEADERS + block * block_bytes for (block,) in blocks]
    there = os.fstat(file).st_size
    return [(0, headers), *((place, os.pread(file, block_bytes, place)) for place in places if place < there)]


def _write(undo: Path, records: list[tuple[int, bytes]]) -> None:
    checksum = 0
    with open(undo, "wb") as file:
        file.write(MAGIC)
        for offset, data in records:
            for part in (_RECORD.pack(offset, len(data)), data):
                file.write(part)
                checksum = zlib.crc32(part, checksum)
        file.write(_RECORD.pack(2**64 - 1, checksum))
        file.flush()
        os.fsync(file.fileno())
    sync_folder(undo.parent)


def _read(undo: Path) -> list[tuple[int, bytes]]:
    """What ``_write`` was given; nothing where it was cut off, so that no checkpoint had begun."""
    content = undo.read_bytes()
    records: list[tuple[int, bytes]] = []
    place, checksum = len(MAGIC), 0
    if not content.startswith(MAGIC):
        return []
    while place + _RECORD.size <= len(content):
        offset, size = _RECORD.unpack_from(content, place)
        if offset == 2**64 - 1:
            return records if size == checksum and records else []
        data = content[place + _RECORD.size : place + _RECORD.size + size]
        checksum = zlib.crc32(data, zlib.crc32(content[place : place + _RECORD.size], checksum))
        records.append((offset, data))
        place += _RECORD.size + size
    return []


def _cut_off(now: bytes, before: bytes) -> bool:
    """Whether a checkpoint of the file with headers ``before`` has begun and not ended.

    It ends with writing one of the two headers that are written in turn, with the next number.
    """
    if now[:PAGE] != before[:PAGE]:
        return False  # another file
    numbers = [_number(now[place : place + PAGE]) for place in (PAGE, 2 * PAGE)]
    newest = max(_number(before[place : place + PAGE]) for place in (PAGE, 2 * PAGE))
    return max(numbers) <= newest


def _number(header: bytes) -> int:
    """Of one of the two headers; −1 where it isn't whole."""
    if len(header) < PAGE:
        return -1
    checksum, number = struct.unpack_from("<QQ", header)
    words = struct.unpack_from(f"<{len(header) // 8 - 1}Q", header, 8)
    return number if reduce(xor, (word * _FACTOR % 2**64 for word in words), 5381) == checksum else -1


def descriptor(path: "str | Path") -> int | None:
    """A descriptor by which this process has the file open, whoever opened it."""
    try:
        wanted = os.stat(path)
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return None
    for number in numbers:
        with suppress(OSError):
            if os.path.samestat(os.fstat(number), wanted):
                return number
    return None


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk, where the file system does that."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


__all__ = ["checkpoint", "descriptor", "has_commits", "hold", "log_of", "recover", "sync_folder", "undo_of"]
