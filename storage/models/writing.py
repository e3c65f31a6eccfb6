"""How models come into a database: batch by batch, into the tables of a new file or behind those of an old one."""

from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ...core.alphabet import Alphabet
from ...core.errors import InputError
from ...core.packed_texts import PackedTexts
from ...core.sequences import ModelBatch
from ..duck.arrow import Values, insert
from ..duck.connection import translated
from ..duck.database_file import SAVING
from ..duck.literals import literal
from .rows import COLUMNS, PARTS, about, checksum, fingerprint, model_digest

if TYPE_CHECKING:
    import duckdb

    from .database import ModelFile

CHUNK_BYTES = 1 << 20
"""Bytes of heads, of bodies or of texts behind which a chunk ends."""
TABLE_CHUNKS = 16
"""Chunks of a table: all of them DuckDB holds in memory when it writes the table to disk."""


class Packer(Protocol):
    """What packs models; a ``Reader``. Asked for its name and version when all models are packed.

    Attributes:
        name: of the reader whose models they are.
        packing: version of what it packs.
    """

    @property
    def name(self) -> str: ...
    @property
    def packing(self) -> int: ...
    def pack(self, model: Any) -> tuple[bytes, bytes]:
        """Head and body of a model."""


class Writer:
    """Adds batches to the tables of a new or an open file, inside a transaction that the caller ends.

    ``saves``: bring every full table of chunks to disk at once; only for a file that nobody sees yet.
    """

    def __init__(self, path: Path, connection: "duckdb.DuckDBPyConnection", packer: Packer,
                 saves: bool = False) -> None:
        self._path, self._connection, self._packer, self._saves = path, connection, packer, saves
        self._alphabet: Alphabet | None = None
        self._chunk = 0
        self._digests: list[bytes] = []
        self._lengths: list[int] = []
        self._parts = {part: bytearray() for part in PARTS}
        self._rows: list[tuple[Any, ...]] = []  # of the chunk that is not full yet

    def resume(self, database: "ModelFile") -> None:
        """Begin to go on behind what ``database`` holds, with a new chunk."""
        self._alphabet = database.alphabet
        self._lengths = database.lengths().tolist()
        self._digests = [digest for (digest,) in database._run("SELECT digest FROM models ORDER BY ordinal")]
        [(last,)] = database._run("SELECT coalesce(max(chunk), -1) FROM models")
        self._chunk = last + 1

    def add(self, batch: ModelBatch) -> None:
        if not len(batch):
            return
        if self._alphabet is None:
            self._alphabet = batch.alphabet
        if batch.alphabet != self._alphabet:
            raise InputError(f"{self._path.name} holds models of {self._alphabet.name} sequences and these are of "
                             f"{batch.alphabet.name} ones; make a database of its own for them")
        count = len(batch)
        texts = PackedTexts.of(batch.sources)
        accessions, descriptions = batch.accessions or [""] * count, batch.descriptions or [""] * count
        for n in range(count):
            self._add(batch.names[n], accessions[n], descriptions[n], int(batch.lengths[n]), batch[n], texts.packed[n],
                      texts[n])

    def _add(self, name: str, accession: str, description: str, length: int, model: Any, kept: bytes,
             text: str) -> None:
        ordinal = len(self._digests)
        said = about(ordinal, name, accession, description, length)
        self._digests.append(model_digest(said, text))
        self._lengths.append(length)
        head, body = self._packer.pack(model)
        row: list[Any] = [ordinal, name, accession, description, length, self._chunk]
        for data, whole in zip((head, body, kept), self._parts.values(), strict=True):
            row += len(whole), len(data), checksum(said, data)
            whole += data
        self._rows.append((*row, self._digests[-1]))
        if max(map(len, self._parts.values())) >= CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write the models that were gathered as the next chunk."""
        self._run(making(self._chunk))
        self._insert(table_of(self._chunk), {
            "chunk": ("INTEGER", [self._chunk]),
            **{PARTS[part]: ("BLOB", [bytes(whole)]) for part, whole in self._parts.items()}})
        kinds = {"name": "VARCHAR", "accession": "VARCHAR", "description": "VARCHAR", "digest": "BLOB"}
        self._insert("models", {name: (kinds.get(name, "BIGINT"), list(column)) for name, column in zip(
            (*COLUMNS, "digest"), zip(*self._rows, strict=True), strict=True)})
        self._parts, self._rows = {part: bytearray() for part in PARTS}, []
        self._chunk += 1
        if self._saves and self._chunk % TABLE_CHUNKS == 0:
            self._run(SAVING)

    def finish(self, title: str, created: datetime) -> None:
        """Write what is left, check names, and say in table ``database`` what there is."""
        if self._alphabet is None:
            raise InputError(f"no models to put into {self._path.name}; give at least one")
        if self._rows:
            self._flush()
        double = self._run("SELECT name, min(ordinal), max(ordinal) FROM models GROUP BY name HAVING count(*) > 1 "
                           "ORDER BY min(ordinal) LIMIT 1")
        for name, first, second in double:
            raise InputError(f"name '{name}' is there twice, as models {first + 1:,} and {second + 1:,} of "
                             f"{self._path.name}; rename one of them, or leave it out with --on-bad skip")
        reader = self._packer.name
        said = (title, self._alphabet.name, reader, self._packer.packing, len(self._lengths), sum(self._lengths),
                max(self._lengths), min(self._lengths), fingerprint(self._alphabet.name, reader, self._digests),
                str(created))
        self._run(f"DELETE FROM database; INSERT INTO database VALUES ({', '.join(map(literal, said))})")

    def _insert(self, table: str, columns: dict[str, tuple[str, Values]]) -> None:
        with translated(self._path):
            insert(self._connection, table, columns)

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        with translated(self._path):
            return self._connection.execute(sql).fetchall()


def table_of(chunk: int) -> str:
    """Name of the table with this chunk."""
    return f"chunks_{chunk // TABLE_CHUNKS}"


def making(chunk: int) -> str:
    """SQL that makes the table for this chunk unless it is there."""
    return _template().replace("CREATE TABLE chunks_0", f"CREATE TABLE IF NOT EXISTS {table_of(chunk)}", 1)


@cache
def _template() -> str:
    return (Path(__file__).parent / "chunks.sql").read_text(encoding="utf-8")
