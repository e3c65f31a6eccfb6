"""Model databases: DuckDB files that hold models as packed arrays and as texts, and a row for every model.

``ModelFile.create`` writes a new file beside its final name and renames it when it is whole; ``append`` adds behind
what is there in one transaction. Every model that is read is checked against its row: bytes, name and place.
What packed models look like is the business of the plugin that reads such models (``Reader.pack``).
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.alphabet import Alphabet, alphabet
from ...core.distinct import distinct
from ...core.errors import DamagedError, InputError, StoreError
from ...core.sequences import ModelBatch
from ...core.stages import BodyReader
from ..duck import creation
from ..duck.connection import lacks_table, translated
from ..duck.database_file import ENDING, DatabaseFile, begun, for_reading, for_writing
from ..duck.literals import literal
from .rows import COLUMNS, LONGEST, PARTS, Facts, Rows, checksum
from .writing import Packer, Writer, table_of

if TYPE_CHECKING:
    import duckdb

READING_MEMORY = 64 << 20
"""Bytes for DuckDB without a budget: what is read of it is kept by who asked for it."""
CHUNKS_HELD = 4
"""Chunks of bodies that are in memory."""
BLOCK_ROWS = 1 << 14
"""Rows that are listed at a time."""

Unpack = Callable[[bytes, BodyReader], Any]


class ModelFile(DatabaseFile):
    """An open model database. Its methods may be called from several threads.

    Attributes:
        about: what it says of itself.
        alphabet: of the sequences that its models describe.
    """

    kind = "models"
    about: Facts
    alphabet: Alphabet

    def __init__(self, path: Path, open_file: "Callable[[], duckdb.DuckDBPyConnection]", read_only: bool) -> None:
        super().__init__(path, open_file, read_only)
        self._held: dict[int, bytes] = {}
        self._held_lock = threading.Lock()
        self._know()

    @classmethod
    def create(cls, path: "str | Path", batches: Iterable[ModelBatch], packer: Packer, title: str = "",
               memory: int | None = None, threads: int | None = None) -> Self:
        """Write a new database and open it for reading.

        Args:
            path: must not exist. Nothing is there when anything goes wrong.
            batches: all of one alphabet, with names and sources, in the order in which they are to be numbered.
            title: for ``info``.
            memory, threads: for DuckDB.

        Raises:
            StoreError: ``path`` exists, its folder doesn't, or the disk is full.
            LockedError: another process is writing it.
            InputError: no models, a name that is there twice, alphabets that differ.
        """
        path = Path(path)
        with creation.making(path, "choose another name, or add to it with: seqloom db append") as part:
            connection = begun(part, path, cls.kind, memory, threads)
            try:
                writer = Writer(path, connection, packer, saves=True)
                for batch in batches:
                    writer.add(batch)
                writer.finish(title, datetime.now(UTC).replace(microsecond=0, tzinfo=None))
                with translated(path):
                    connection.execute(ENDING)
            finally:
                connection.close()
        return cls.open(path, memory=memory, threads=threads)

    @classmethod
    def open(cls, path: "str | Path", read_only: bool = True, memory: int | None = None,
             threads: int | None = None) -> Self:
        """Open an existing database; see ``storage.duck.connection.connect`` for the errors."""
        path = Path(path)
        connection = (for_reading(path, cls.kind, memory or READING_MEMORY, threads) if read_only else
                      for_writing(path, cls.kind, memory, threads))
        try:
            return cls(path, lambda: connection, read_only)
        except BaseException:
            connection.close()
            raise

    def append(self, batches: Iterable[ModelBatch], packer: Packer) -> None:
        """Add models behind those that are there, whose ordinals stay; all of them, or none.

        Raises:
            StoreError: opened for reading, or the disk is full.
            InputError: a name that is there already, another alphabet.
        """
        if self.read_only:
            raise StoreError(f"{self.path} is open for reading; open it for writing to append")
        with self._lock:
            writer = Writer(self.path, self._connection, packer)
            try:
                self._run("BEGIN")
                writer.resume(self)
                for batch in batches:
                    writer.add(batch)
                writer.finish(self.about.title, self.about.created)
                self._run("COMMIT")
            except BaseException:
                self._rollback()
                raise
            self.bring_in("the models were added")
            self._know()

    # ---- what is in it

    def info(self) -> dict[str, Any]:
        """path, title, type, models, positions, longest, shortest, format, fingerprint, created, revision."""
        facts = self.about
        return {"path": str(self.path), "title": facts.title, "type": f"{facts.alphabet} models",
                "models": facts.models, "positions": facts.positions, "longest": facts.longest,
                "shortest": facts.shortest, "format": facts.reader, "fingerprint": facts.fingerprint,
                "created": facts.created, "revision": facts.revision}

    def list(self, like: str = "") -> Iterator[dict[str, Any]]:
        """ordinal, name, accession, length and description of every model, or of those whose name is LIKE the SQL
        pattern."""
        where = f"AND name LIKE {literal(like)}" if like else ""
        columns = ("ordinal", "name", "accession", "length", "description")
        for first in range(0, self.about.models, BLOCK_ROWS):
            for row in self._run(f"SELECT {', '.join(columns)} FROM models WHERE ordinal >= {first} AND "
                                 f"ordinal < {first + BLOCK_ROWS} {where} ORDER BY ordinal"):
                yield dict(zip(columns, row, strict=True))

    def find(self, names: Iterable[str]) -> dict[str, int]:
        """Ordinals of those of ``names`` that are there, as names or accessions, with or without version; of the first
        model where several have an accession."""
        wanted = sorted({*names} - {""})
        found: dict[str, int] = {}
        for first in range(0, len(wanted), 100_000):
            part = literal(wanted[first : first + 100_000])
            rows = self._run(
                f"WITH asked AS (SELECT unnest({part}) AS text) "
                "SELECT text, ordinal, 0 AS rank FROM asked, models WHERE text = name "
                "UNION ALL SELECT text, ordinal, 1 FROM asked, models WHERE text = accession "
                "UNION ALL SELECT text, ordinal, 2 FROM asked, models "
                "WHERE text = regexp_replace(accession, '[.][0-9]+$', '') ORDER BY rank, ordinal")
            for text, ordinal, _ in rows:
                found.setdefault(text, ordinal)
        return found

    def ordinals(self, names: Iterable[str]) -> np.ndarray:
        """i8[k] ordinals of the models called ``names``, in the order of these.

        Raises:
            InputError: some are not in the database.
        """
        names = [*names]
        found = self.find(names)
        missing = [name for name in dict.fromkeys(names) if name not in found]
        if missing:
            raise unknown_models(missing, str(self.path))
        return np.array([found[name] for name in names], np.int64)

    def rows(self, ordinals: "np.ndarray | None" = None) -> Rows:
        """Rows of the models with i8[k] ascending ``ordinals``, or of all.

        Raises:
            DamagedError: they aren't all there, or make no sense.
        """
        count = self.about.models if ordinals is None else len(ordinals)
        where = ""
        if ordinals is not None:
            first, last = (int(ordinals[0]), int(ordinals[-1])) if count else (0, -1)
            where = (f"WHERE ordinal BETWEEN {first} AND {last}" if last - first + 1 == count else
                     f"WHERE ordinal IN (SELECT unnest('{ordinals.tolist()}'::BIGINT[]))")
        table = self._columns(f"SELECT {', '.join(COLUMNS)} FROM models {where} ORDER BY ordinal")
        found = len(table["ordinal"])
        wanted = np.arange(found) if ordinals is None else ordinals
        if found != count or not np.array_equal(table["ordinal"], wanted):
            raise DamagedError(f"{self.path}: {count:,} models were looked for and {found:,} found, or in other "
                               "places; run: seqloom db check")
        columns: list[Any] = [column.tolist() if column.dtype == object else column.astype(np.int64)
                              for column in table.values()]
        rows = Rows(*columns)
        numbers = (rows.lengths, rows.chunks, rows.head_starts, rows.head_sizes, rows.body_starts, rows.body_sizes,
                   rows.text_starts, rows.text_sizes)
        texts = (rows.names, rows.accessions, rows.descriptions)
        if count and (min(int(column.min()) for column in numbers) < 0 or int(rows.lengths.max()) > LONGEST
                      or (np.diff(rows.chunks) < 0).any()
                      or not all(type(text) is str for column in texts for text in column)):
            raise DamagedError(f"{self.path}: rows of its models make no sense; run: seqloom db check")
        return rows

    def lengths(self) -> np.ndarray:
        """i8[k] positions of every model, by ordinal.

        Raises:
            DamagedError: they don't add up to what the database says of itself.
        """
        table = self._columns("SELECT ordinal, length FROM models ORDER BY ordinal")
        lengths, facts = table["length"].astype(np.int64), self.about
        bounds = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
        if (len(lengths), int(lengths.sum()), *bounds) != (
                facts.models, facts.positions, facts.shortest, facts.longest) or not np.array_equal(
                table["ordinal"], np.arange(len(lengths))):
            raise DamagedError(f"{self.path}: its models don't add up to what it says of itself; "
                               "run: seqloom db check")
        return lengths

    # ---- models

    def heads(self, rows: Rows) -> Iterator[bytes]:
        """Heads of some models, one after the other.

        Raises:
            DamagedError: a chunk is missing, or a head isn't that of its row.
        """
        return self._parts(rows, "head")

    def bodies(self, rows: Rows) -> Iterator[bytes]:
        """Their bodies; errors as ``heads``."""
        return self._parts(rows, "body")

    def texts(self, rows: Rows) -> Iterator[bytes]:
        """Their texts, as ``PackedTexts`` keeps them; errors as ``heads``."""
        return self._parts(rows, "text")

    def _parts(self, rows: Rows, part: str) -> Iterator[bytes]:
        starts, sizes, checksums = (getattr(rows, f"{part}_{what}").tolist() for what in ("starts", "sizes",
                                                                                         "checksums"))
        by_chunk = groupby(range(len(rows)), rows.chunks.tolist().__getitem__)
        chunks = self._chunks(distinct(rows.chunks).tolist(), PARTS[part])
        for (_, places), data in zip(by_chunk, chunks, strict=True):
            for place in places:
                found = data[starts[place] : starts[place] + sizes[place]]
                if checksum(rows.about(place), found) != checksums[place]:
                    raise self.damaged(rows, place, "its bytes and its row don't match their checksum")
                yield found

    def _chunks(self, wanted: Sequence[int], column: str) -> Iterator[bytes]:
        """A column of some chunks, by ascending number, those of a table at a time."""
        run = self._run_apart if self.read_only else self._run  # while appending, rows are those of the transaction
        for table, numbers in groupby(wanted, table_of):
            chunks = [*numbers]
            try:
                found = dict(run(f"SELECT chunk, {column} FROM {table} "
                                 f"WHERE chunk BETWEEN {chunks[0]} AND {chunks[-1]}"))
            except StoreError as error:
                if not lacks_table(error):
                    raise
                found = {}
            for chunk in chunks:
                if not isinstance(found.get(chunk), bytes):
                    raise DamagedError(f"{self.path}: chunk {chunk} is missing; make the database anew")
                yield found[chunk]

    def batch(self, rows: Rows, unpack: Unpack) -> ModelBatch:
        """Models of some rows with the rows' ordinals and without texts. Bodies are read as they are asked for.

        Raises:
            DamagedError: as ``heads``, or what is stored is no such model.
        """
        return ModelBatch(self.alphabet, [*self.unpacked(rows, unpack)], rows.lengths, rows.ordinals, rows.names,
                          rows.accessions, rows.descriptions)

    def unpacked(self, rows: Rows, unpack: Unpack) -> Iterator[Any]:
        """The same, one model after the other."""
        for place, head in enumerate(self.heads(rows)):
            try:
                model = unpack(head, partial(self._made_of_body, rows, place))
            except ValueError as error:
                raise self.damaged(rows, place, str(error)) from None
            known = (rows.lengths[place], rows.names[place], self.alphabet)
            if (model.length, model.name, model.alphabet) != known:
                raise self.damaged(rows, place, "its row is that of another model")
            yield model

    def _made_of_body(self, rows: Rows, place: int, make: Callable[[bytes], Any]) -> Any:
        """What ``make`` makes of the body of a model. Those of its chunk are kept for a while: more will be wanted."""
        chunk = int(rows.chunks[place])
        with self._held_lock:
            data = self._held.pop(chunk, None)
            if data is None:
                [data] = self._chunks([chunk], PARTS["body"])
            self._held[chunk] = data
            while len(self._held) > CHUNKS_HELD:
                del self._held[next(iter(self._held))]
        start, size = int(rows.body_starts[place]), int(rows.body_sizes[place])
        body = data[start : start + size]
        if checksum(rows.about(place), body) != rows.body_checksums[place]:
            raise self.damaged(rows, place, "its bytes and its row don't match their checksum")
        try:
            return make(body)
        except ValueError as error:
            raise self.damaged(rows, place, str(error)) from None

    def damaged(self, rows: Rows, place: int, what: str) -> DamagedError:
        return DamagedError(f"{self.path}: model {int(rows.ordinals[place]) + 1:,}, '{rows.names[place]}': {what}; "
                            "make the database anew or restore it from a copy")

    # ---- helpers

    def _know(self) -> None:
        rows = self._run("SELECT title, alphabet, reader, packing, models, positions, longest, shortest, fingerprint, "
                         "created, (SELECT schema_revision FROM seqloom_file) FROM database")
        if len(rows) != 1:
            raise DamagedError(f"{self.path}: its table database has {len(rows)} rows instead of one; make it anew")
        facts = Facts(*rows[0])
        if wrong := facts.wrong():
            raise DamagedError(f"{self.path} is damaged ({wrong}); make it anew or restore it from a copy")
        self.about, self.alphabet = facts, alphabet(facts.alphabet)


def unknown_models(missing: Sequence[str], where: str) -> InputError:
    """The error for names that are not in a database."""
    shown = ", ".join(f"'{n}'" for n in missing[:3]) + (", …" if len(missing) > 3 else "")
    what = f"no model {shown}" if len(missing) == 1 else f"{len(missing):,} names are not there: {shown}"
    return InputError(f"{where}: {what}; seqloom db list-models shows the names")
