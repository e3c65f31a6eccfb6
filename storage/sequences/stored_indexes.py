"""Indexes of a sequence database that are kept in its file: written once, read by every search that they fit.

An index is stored in pieces, each of a stretch of sequences that is searched as one volume. The arrays of a piece lie
one behind the other in one row of bytes, cut into checksummed chunks. An index is there when its row in table
``indexes`` is, which is written last, in one transaction with those of its pieces: what a killed build leaves behind is
never read and is cleared away by the next one. Pieces that have an image (``index_images``) are mapped from there
instead of being read.
"""

import json
import math
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass

from ...core.errors import DamagedError, StoreError
from ...core.index import Index
from ..duck.arrow import Values, insert
from ..duck.connection import lacks_table, translated
from ..duck.literals import literal
from . import index_images
from .chunk_tables import BEFORE_INDEXES
from .database import SequenceDatabase
from .index_images import Image

CHUNK_BYTES = 4 << 20
TABLE_CHUNKS = 8
"""Chunks of a table: 32 MiB, all of which DuckDB holds in memory when it writes the table to disk."""
ALIGNMENT = 64
"""Bytes of a cache line, on which every array begins."""
MOST_DIMENSIONS = 8
"""Of an array."""

Wrong = Callable[[Index], str]
"""Says what keeps an index from being used; empty if nothing does."""


class IndexKey(NamedTuple):
    """What an index must agree with to be of use.

    Attributes:
        plugin, version: the stage that makes it, and of which version its arrays are.
        depends: values of the pipeline options that it depends on.
        options: values of its own options; some of them, or all.
    """

    plugin: str
    version: int
    depends: Mapping[str, Any]
    options: Mapping[str, Any]

    def unlike(self, other: "StoredIndex") -> str:
        """Why a stored index of the same plugin isn't the one that is wanted; empty if it is."""
        if other.version != self.version:
            return f"made by version {other.version} of the plugin, this is version {self.version}"
        wanted = {**self.depends, **self.options}
        there = {**other.depends, **other.options}
        differ = [f"{name}={there.get(name)} and not {value}" for name, value in wanted.items()
                  if there.get(name) != value]
        return f"made with {', '.join(differ)}" if differ else ""


@dataclass(frozen=True)
class Piece:
    """A part of a stored index: sequences first … last − 1, and where and what its arrays are."""

    first: int
    last: int
    kind: str
    parameters: Mapping[str, Any]
    arrays: tuple[tuple[str, str, tuple[int, ...]], ...]
    chunk: int
    nbytes: int


@dataclass(frozen=True)
class StoredIndex:
    """An index in the database file ``path``."""

    path: Path
    number: int
    plugin: str
    version: int
    options: Mapping[str, Any]
    depends: Mapping[str, Any]
    fingerprint: str
    created: datetime
    created_by: str
    pieces: tuple[Piece, ...]

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces)

    def foreign(self, database: SequenceDatabase) -> str:
        """Why it isn't an index of what the database holds now; empty if it is."""
        if self.fingerprint != database.fingerprint:
            return "made of other sequences than the database holds now"
        bounds = [(piece.first, piece.last) for piece in self.pieces]
        firsts, lasts = [0, *(last for _, last in bounds)], [*(first for first, _ in bounds), database.sequences]
        return "" if firsts == lasts and all(first < last for first, last in bounds) else "not whole"

    @property
    def images(self) -> list[Image]:
        """The images of its pieces, whether they are there or not."""
        return [self.image(piece) for piece in self.pieces]

    def image(self, piece: Piece) -> Image:
        """That of one piece. It says nothing of the path, so that it serves a database that was moved with it."""
        about = json.dumps(asdict(replace(self, path=Path(), pieces=(piece,))), sort_keys=True, default=str)
        return index_images.image(self.path, self.number, self.pieces.index(piece), about, piece.nbytes)

    @property
    def mapped(self) -> str:
        """Whether searches map it from images: "yes", "no" where there are none, or what is wrong with them."""
        whys = [why for content, why in (image.open() for image in self.images) if content is None]
        if len(whys) == len(self.pieces) and not any(whys):
            return "no"
        return next(filter(None, whys), "some of its pieces have no image") if whys else "yes"


def stored_indexes(database: SequenceDatabase) -> list[StoredIndex]:
    """Every index of the database, in order of their making."""
    if database.revision in BEFORE_INDEXES or database.has_row_image:
        return []
    rows = database._run("SELECT number, plugin, version, options, depends, fingerprint, created, created_by "
                         "FROM indexes")  # of which there are few; DuckDB's sorting takes 3 ms to begin
    pieces: dict[int, list[Piece]] = {}
    try:
        rows = sorted(rows, key=itemgetter(0))
        for number, first, last, kind, parameters, arrays, chunk, nbytes in database._run(
                "SELECT number, first, last, kind, parameters, arrays, chunk, bytes FROM index_pieces "
                "ORDER BY number, first") if rows else ():
            piece = Piece(first, last, kind, _mapping(parameters), _described(arrays), chunk, nbytes)
            if min(first, chunk, nbytes) < 0:
                raise ValueError
            pieces.setdefault(number, []).append(piece)
        return [StoredIndex(database.path, number, plugin, version, _mapping(options), _mapping(depends), fingerprint,
                            created, by, tuple(pieces.get(number, ())))
                for number, plugin, version, options, depends, fingerprint, created, by in rows]
    except (TypeError, ValueError, RecursionError):
        raise DamagedError(f"{database.path}: what it says of its stored indexes makes no sense; make it anew from its "
                           "sequence files") from None


def _mapping(text: str) -> dict[str, Any]:
    """Values by name, from JSON."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(text)
    return found


def _described(text: str) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Name, type and shape of each array, from JSON."""
    arrays = tuple((name, dtype, tuple(shape)) for name, dtype, shape in json.loads(text))
    for name, dtype, shape in arrays:
        if not isinstance(name, str) or np.dtype(dtype).hasobject or not np.dtype(dtype).itemsize or not all(
                type(size) is int and 0 <= size < 1 << 62 for size in shape) or len(shape) > MOST_DIMENSIONS:
            raise ValueError(text)
    return arrays


def nothing(index: Index) -> str:
    """Nothing is wrong with any index."""
    return ""


def read_piece(database: SequenceDatabase, stored: StoredIndex, piece: Piece, wrong: Wrong = nothing) -> Index:
    """The index of a piece, its arrays mapped from its image or in one new block of memory.

    Args:
        wrong: says what keeps it from being used, whatever its checksums; see ``IndexStage.wrong``.

    Raises:
        DamagedError: there is no image, and a chunk is missing, cut short or doesn't match its checksum; or its values
            can't be used.
    """
    content, _ = stored.image(piece).open(wrong=lambda content: wrong(_index(database, stored, piece, content)))
    if content is not None:
        return _index(database, stored, piece, content)
    index = _index(database, stored, piece, _read(database, stored, piece))
    what = wrong(index)
    if what:
        raise _damaged(database, stored, what)
    return index


def _index(database: SequenceDatabase, stored: StoredIndex, piece: Piece, content: np.ndarray) -> Index:
    arrays, place = {}, 0
    for name, dtype, shape in piece.arrays:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if place + size > piece.nbytes:
            raise _damaged(database, stored, f"its arrays have more than its {piece.nbytes:,} bytes")
        arrays[name] = content[place : place + size].view(dtype).reshape(shape)
        place += _padded(size)
    return Index(piece.kind, "target", arrays, piece.parameters)


def _read(database: SequenceDatabase, stored: StoredIndex, piece: Piece) -> np.ndarray:
    """u1[nbytes] of a piece from its chunks."""
    content, place = _aligned(piece.nbytes), 0
    for data in _chunks(database, stored, piece):
        content[place : place + len(data)] = np.frombuffer(data, np.uint8)
        place += len(data)
    return content


def write_images(database: SequenceDatabase, stored: StoredIndex, check: Callable[[], None]) -> None:
    """Write the images of all pieces of an index, or none; the database is open for writing.

    Args:
        check: called between pieces; may raise, to stop.

    Raises:
        OSError: the disk is full, or the folder can't be written to.
        DamagedError: as ``read_piece``.
    """
    try:
        for piece in stored.pieces:
            check()
            stored.image(piece).write(_chunks(database, stored, piece))
    except BaseException:
        remove_images(database, [stored.number])
        raise


def remove_images(database: SequenceDatabase, numbers: Collection[int]) -> None:
    """Remove the images of indexes, those of former sequences, and what killed builds left."""
    index_images.clear(database.path, {image.path for stored in stored_indexes(database) for image in stored.images
                                       if stored.number not in numbers and not stored.foreign(database)})


def problems(database: SequenceDatabase) -> list[str]:
    """One line for each thing that is wrong with the stored indexes; those of former sequences aren't wrong."""
    found = []
    for stored in stored_indexes(database):
        if not stored.foreign(database):
            for piece in stored.pieces:
                image = stored.image(piece)
                mapped, why = image.open(verified=False)
                try:
                    content = _read(database, stored, piece)
                    _index(database, stored, piece, content)
                except DamagedError as error:
                    found.append(str(error))
                    continue
                if mapped is not None and not np.array_equal(mapped, content):
                    why = f"{image.name} differs from what is stored"
                if why:
                    found.append(f"index {stored.plugin}: {why}; delete it, and seqloom index build --map writes it "
                                 "anew")
    return found


def drop(database: SequenceDatabase, numbers: list[int]) -> None:
    """Remove indexes, their images, and what killed builds left, from a database that is open for writing."""
    with database._lock:
        if numbers:
            _commit(database, _forgetting(numbers))
        kept = {stored.number for stored in stored_indexes(database)}
        for number, table in _tables(database):
            if number not in kept:
                database._run(f"DROP TABLE {table}")
        database.checkpoint()
        remove_images(database, [])


class IndexWriter:
    """Writes an index piece by piece into a database that is open for writing. Nobody sees it before ``finish``."""

    def __init__(self, database: SequenceDatabase, key: IndexKey) -> None:
        if database.read_only:
            raise StoreError(f"{database.path} is open for reading; open it for writing to store an index")
        self._database, self._key = database, key
        drop(database, [])
        taken = [stored.number for stored in stored_indexes(database)]
        self._number, self._chunk = max(taken, default=-1) + 1, 0
        self._pieces: list[Piece] = []

    def add(self, first: int, last: int, index: Index) -> None:
        """Write the index of sequences first … last − 1.

        Raises:
            StoreError: it has objects beside its arrays, or the disk is full.
        """
        if index.objects:
            raise StoreError(f"plugin '{self._key.plugin}' keeps more than arrays; its index can't be stored")
        arrays = [(name, np.ascontiguousarray(array)) for name, array in index.arrays.items()]
        described = tuple((name, array.dtype.newbyteorder("<").str, array.shape) for name, array in arrays)
        begin, buffer, fill = self._chunk, bytearray(), 0
        for _, array in arrays:
            little = array.astype(array.dtype.newbyteorder("<"), copy=False).reshape(-1).view(np.uint8)
            for place in range(0, len(little), CHUNK_BYTES):
                buffer += little[place : place + CHUNK_BYTES].data
                while len(buffer) >= CHUNK_BYTES:
                    self._write(bytes(buffer[:CHUNK_BYTES]))
                    del buffer[:CHUNK_BYTES]
            fill += len(little)
            buffer += bytes(_padded(fill) - fill)
            fill = _padded(fill)
        if buffer:
            self._write(bytes(buffer))
        self._pieces.append(Piece(first, last, index.kind, dict(index.parameters), described, begin, fill))
        self._database.checkpoint()

    def _write(self, data: bytes) -> None:
        table = _table(self._number, self._chunk)
        row: dict[str, tuple[str, Values]] = {
            "chunk": ("INTEGER", [self._chunk]), "data": ("BLOB", [data]), "checksum": ("BIGINT", [zlib.crc32(data)])}
        with self._database._lock, translated(self._database.path):
            connection = self._database._connection
            if self._chunk % TABLE_CHUNKS == 0:
                connection.execute(_template().replace("CREATE TABLE index_0_0", f"CREATE TABLE {table}", 1))
            insert(connection, table, row)
        self._chunk += 1

    def finish(self, replaced: list[int]) -> None:
        """Let everybody see the index, in place of those with the numbers ``replaced``."""
        from importlib.metadata import version

        key, number = self._key, self._number
        created = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
        said = (number, key.plugin, key.version, json.dumps(dict(key.options)), json.dumps(dict(key.depends)),
                self._database.fingerprint, str(created), f"seqloom {version('seqloom')}")
        rows = [(number, p.first, p.last, p.kind, json.dumps(dict(p.parameters)), json.dumps(p.arrays), p.chunk,
                 p.nbytes) for p in self._pieces]
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows)
        _commit(self._database, f"{_forgetting(replaced)} INSERT INTO indexes VALUES ({', '.join(map(literal, said))});"
                                f" INSERT INTO index_pieces VALUES {values};")
        drop(self._database, [])


def _forgetting(numbers: list[int]) -> str:
    """SQL that removes what is said of indexes; their chunks are removed later."""
    listed = ", ".join(map(str, numbers)) or "NULL"
    return f"DELETE FROM index_pieces WHERE number IN ({listed}); DELETE FROM indexes WHERE number IN ({listed});"


def _commit(database: SequenceDatabase, statements: str) -> None:
    """Carry out all of some statements, or none."""
    with database._lock:
        try:
            database._run(f"BEGIN; {statements} COMMIT")
        except BaseException:
            database._rollback()
            raise


def _chunks(database: SequenceDatabase, stored: StoredIndex, piece: Piece) -> Iterator[bytes]:
    """The chunks of a piece, each checked."""
    for place in range(0, piece.nbytes, CHUNK_BYTES):
        chunk, size = piece.chunk + place // CHUNK_BYTES, min(CHUNK_BYTES, piece.nbytes - place)
        table = _table(stored.number, chunk)
        try:
            rows = database._run(f"SELECT data, checksum FROM {table} WHERE chunk = {chunk}")
        except StoreError as error:
            if not lacks_table(error):
                raise
            rows = []
        if len(rows) != 1:
            raise _damaged(database, stored, f"chunk {chunk} is there {len(rows)} times")
        data, wanted = rows[0]
        if zlib.crc32(data) != wanted:
            raise _damaged(database, stored, f"chunk {chunk} does not match its checksum")
        if len(data) != size:
            raise _damaged(database, stored, f"chunk {chunk} has {len(data):,} bytes instead of {size:,}")
        yield data


def _damaged(database: SequenceDatabase, stored: StoredIndex, what: str) -> DamagedError:
    return DamagedError(f"{database.path}: index {stored.plugin}: {what}; make it anew: seqloom index drop "
                        f"{database.path} {stored.plugin}, then seqloom index build")


def _table(number: int, chunk: int) -> str:
    return f"index_{number}_{chunk // TABLE_CHUNKS}"


def _tables(database: SequenceDatabase) -> list[tuple[int, str]]:
    """Index number and name of every table with chunks."""
    names = database._run("SELECT table_name FROM duckdb_tables() WHERE regexp_matches(table_name, "
                          "'^index_[0-9]+_[0-9]+$') AND NOT internal")
    return [(int(name.split("_")[1]), name) for (name,) in names]


@cache
def _template() -> str:
    return (Path(__file__).parent / "index_chunks.sql").read_text(encoding="utf-8")


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _aligned(size: int) -> np.ndarray:
    """u1[size], uninitialised, beginning on a cache line."""
    block = np.empty(size + ALIGNMENT, np.uint8)
    begin = -block.ctypes.data % ALIGNMENT
    return block[begin : begin + size]


__all__ = ["IndexKey", "IndexWriter", "Piece", "StoredIndex", "Wrong", "drop", "nothing", "problems", "read_piece",
           "remove_images", "stored_indexes", "write_images"]
