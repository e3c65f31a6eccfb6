"""How sequences come into a database: batch by batch, into the tables of a new file or behind those of an old one."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.alphabet import Alphabet
from ...core.errors import InputError
from ...core.sequences import SequenceBatch
from ..duck.arrow import Nullable, Values, insert
from ..duck.connection import translated
from ..duck.database_file import SAVING, begun
from ..duck.literals import literal
from ..duck.revisions import HEAD
from . import residue_image
from .chunk_tables import LOWER, VOLUME_CHUNKS, making, table_of
from .chunks import checksum
from .facts import CHUNK_RESIDUES, LONGEST, Facts
from .fingerprint import BLOCK_ROWS, description_digest, fingerprint, residue_digests, row_digest
from .named_masks import LOWER_CASE, GivenMask, check_names, digest_of, placed
from .packed_image import PackedImageWriter
from .packing import RUN, pack
from .residue_image import ImageWriter

if TYPE_CHECKING:
    from .database import SequenceDatabase


class Writer:
    """Adds batches to the tables of a new or an open file, inside a transaction that the caller ends.

    ``saves``: bring every full volume to disk at once, so that it leaves memory; only for a file that nobody sees yet.
    ``facts``: what the database is, once ``finish`` was called. ``image``: of its residues, to be finished when the
    file has its name.
    """

    facts: Facts

    def __init__(self, path: Path, title: str, parsed_names: bool, saves: bool = False) -> None:
        self._path, self.title, self._parsed_names, self._saves = path, title, parsed_names, saves
        self._connection: Any = None
        self._alphabet: Alphabet | None = None
        self._sequences = self._residues = self._longest = 0
        self._shortest = LONGEST
        self._created = datetime.now(UTC).replace(microsecond=0, tzinfo=None)
        self._digests: list[bytes] = []
        self._row_digests: list[bytes] = []
        self._description_digests: list[bytes] = []
        self._names: list[str] = []  # of the block of rows that is not full yet
        self._descriptions: list[str] = []
        self._lengths: list[np.ndarray] = []
        self.image: ImageWriter | None = None

    def make(self, part: Path, memory: int | None, threads: int | None) -> None:
        """Begin a new file."""
        self._connection = begun(part, self._path, "sequences", memory, threads)

    def close(self, last: str = "") -> None:
        """Run the last statements on a new file and close it."""
        if self._connection is not None:
            if last:
                self._run(last)
            self._connection.close()

    def resume(self, database: "SequenceDatabase") -> None:
        """Begin to go on behind what ``database`` holds: take back its last chunk unless it is full."""
        self._connection = database._connection
        self._run("BEGIN")
        self._start(database.alphabet, database._about.chunk_residues)
        self._sequences, self._residues = database.sequences, database.total_residues
        self._longest, self._shortest = database.longest, database.shortest
        self._created = database.created
        whole, rest = divmod(self._sequences, BLOCK_ROWS)
        for rows, descriptions in database._run(
                f"SELECT digest, descriptions FROM row_blocks WHERE block < {whole} ORDER BY block"):
            self._row_digests.append(rows)
            self._description_digests.append(descriptions)
        if rest:
            table = database.rows(np.arange(whole * BLOCK_ROWS, self._sequences))
            self._names, self._lengths = table["name"].tolist(), [table["length"].astype(np.int64)]
            self._descriptions = table["description"].tolist()
        self._digests = list(database._digests())
        self._chunk, self._fill = divmod(self._residues, self._size)
        if self._fill:
            residues, data, runs = database.chunk(self._chunk)
            database._decode(residues, data, runs, self._buffer[: self._fill])
            self._digests.pop()
            self._run(f"DELETE FROM {table_of(self._chunk, HEAD['sequences'])} WHERE chunk = {self._chunk}")

    def _start(self, kind: Alphabet, chunk_residues: int) -> None:
        self._alphabet, self._size = kind, chunk_residues
        self._buffer = np.empty(chunk_residues, np.uint8)
        self._fill = self._chunk = 0

    def add(self, batch: SequenceBatch) -> None:
        if not len(batch):
            return
        if self._alphabet is None:
            self._start(batch.alphabet, CHUNK_RESIDUES[batch.alphabet.name])
        if batch.alphabet != self._alphabet:
            raise InputError(f"{self._path.name} holds {self._alphabet.name} sequences and these are "  # type: ignore[union-attr]
                             f"{batch.alphabet.name} ones; make a database of its own for them")
        lengths = batch.lengths
        if int(lengths.max()) > LONGEST:
            name = batch.names[int(lengths.argmax())]
            raise InputError(f"sequence '{name}' has {int(lengths.max()):,} residues and at most {LONGEST:,} can be "
                             "stored; cut it into pieces")
        self._add_rows(batch, lengths)
        self._add_residues(batch.residues)
        self._sequences += len(batch)
        self._residues += batch.total_residues
        self._longest = max(self._longest, int(lengths.max()))
        self._shortest = min(self._shortest, int(lengths.min()))

    def _add_rows(self, batch: SequenceBatch, lengths: np.ndarray) -> None:
        count, first = len(batch), self._sequences
        names, descriptions = list(batch.names), list(batch.descriptions) or [""] * count
        taxids = np.asarray(batch.taxids, np.int64) if len(batch.taxids) else np.zeros(count, np.int64)
        for text in (*names, *descriptions):
            if "\n" in text:
                raise InputError(f"a name or description has a line end in it: {text!r}; take it out")
        self._insert("sequences", {
            "ordinal": ("BIGINT", np.arange(first, first + count)), "length": ("INTEGER", lengths),
            "start": ("BIGINT", self._residues + batch.offsets[:-1]), "name": ("VARCHAR", names),
            "description": ("VARCHAR", descriptions), "taxid": ("INTEGER", Nullable(taxids, taxids == 0)),
        })
        if len(batch.lower):
            sequence = first + batch.lower.sequence.astype(np.int64)
            self._insert("masks", {"sequence": ("BIGINT", sequence), "start": ("INTEGER", batch.lower.start),
                                   "end": ("INTEGER", batch.lower.end)}, kind=LOWER)
        self._names += names
        self._descriptions += descriptions
        self._lengths.append(lengths)
        self._close_row_blocks()

    def _close_row_blocks(self) -> None:
        if len(self._names) < BLOCK_ROWS:
            return
        lengths = np.concatenate(self._lengths)
        while len(self._names) >= BLOCK_ROWS:
            self._row_digests.append(row_digest(self._names[:BLOCK_ROWS], lengths[:BLOCK_ROWS]))
            self._description_digests.append(description_digest(self._descriptions[:BLOCK_ROWS]))
            self._names, lengths = self._names[BLOCK_ROWS:], lengths[BLOCK_ROWS:]
            self._descriptions = self._descriptions[BLOCK_ROWS:]
        self._lengths = [lengths]

    def _add_residues(self, residues: np.ndarray) -> None:
        place = 0
        while place < len(residues):
            count = min(self._size - self._fill, len(residues) - place)
            self._buffer[self._fill : self._fill + count] = residues[place : place + count]
            self._fill, place = self._fill + count, place + count
            if self._fill == self._size:
                self._flush()

    def _flush(self) -> None:
        """Write the residues that were gathered as the next chunk."""
        codes = self._buffer[: self._fill]
        data, runs = pack(codes) if self._alphabet.name == "nucleotide" else (codes, np.empty(0, RUN))  # type: ignore[union-attr]
        packed, ambiguities = data.tobytes(), runs.tobytes()
        digests = residue_digests(codes)
        self._add_to_image(data, runs)
        self._run(making(self._chunk))
        self._insert(table_of(self._chunk, HEAD["sequences"]), {
            "chunk": ("INTEGER", [self._chunk]), "letters": ("INTEGER", [self._fill]), "data": ("BLOB", [packed]),
            "ambiguities": ("BLOB", [ambiguities]), "checksum": ("BIGINT", [checksum(packed, ambiguities)]),
            "digests": ("BLOB", [digests]),
        })
        self._digests.append(digests)
        self._chunk, self._fill = self._chunk + 1, 0
        if self._saves and self._chunk % VOLUME_CHUNKS == 0:
            self._run(SAVING)

    def _add_to_image(self, data: np.ndarray, runs: np.ndarray) -> None:
        """Write the residues of the next chunk to the image of a new database that is large enough for one."""
        first, protein = self._chunk == 0 and self._fill == self._size, self._alphabet.name == "protein"  # type: ignore[union-attr]
        if (self._saves and first and (protein or self._size % 4 == 0)
                and residue_image.may_be_made(self._path, residue_image.LEAST)):
            self.image = ImageWriter(self._path) if protein else PackedImageWriter(self._path)
        if isinstance(self.image, PackedImageWriter):
            self.image.add_chunk(self._fill, data, runs)
        elif self.image:
            self.image.add(data)

    def add_masks(self, masks: Sequence[GivenMask], first: int) -> None:
        """Keep masks of the sequences with the ordinals from ``first`` on, which all are there.

        Raises:
            InputError: of a sequence or of residues that aren't there, or a name that can't be.
        """
        check_names([mask.name for mask in masks])
        lengths = np.array(self._run(f"SELECT length FROM sequences WHERE ordinal >= {first} ORDER BY ordinal"),
                           np.int64).reshape(-1) if masks else np.empty(0, np.int64)
        for mask in masks:
            if mask.source == LOWER_CASE:
                self._run(f"""INSERT INTO masks SELECT '{mask.name}', sequence, start, "end" FROM masks """
                          f"WHERE kind = '{LOWER}' AND sequence >= {first} ORDER BY sequence, start")
            else:
                found = placed(mask, self._ordinals(mask.names or ()), lengths, first)
                self._insert("masks", {"sequence": ("BIGINT", found.sequence), "start": ("INTEGER", found.start),
                                       "end": ("INTEGER", found.end)}, kind=mask.name)
            sources = [source for (source,) in
                       self._run(f"DELETE FROM named_masks WHERE name = '{mask.name}' RETURNING source")]
            source = ", ".join(dict.fromkeys([*sources, mask.source]))
            self._insert("named_masks", {"name": ("VARCHAR", [mask.name]), "source": ("VARCHAR", [source]),
                                         "digest": ("BLOB", [digest_of(self._run, mask.name)])})

    def _ordinals(self, names: Sequence[str]) -> dict[str, int]:
        """Ordinals of those of ``names`` that are there."""
        found: dict[str, int] = {}
        for at in range(0, len(names), 100_000):
            part = literal(names[at : at + 100_000])
            found.update(self._run(f"SELECT name, ordinal FROM sequences WHERE name IN (SELECT unnest({part}))"))
        return found

    def finish(self, masks: Sequence[GivenMask] = (), first: int = 0) -> None:
        """Write what is left, with masks of the sequences from ordinal ``first`` on, check ids, and say in table
        ``database`` what there is."""
        if self._alphabet is None:
            raise InputError(f"no sequences to put into {self._path.name}; give at least one")
        if self._fill:
            self._flush()
        self._check_names()
        self.add_masks(masks, first)
        rows, descriptions = [*self._row_digests], [*self._description_digests]
        if self._names:
            rows.append(row_digest(self._names, np.concatenate(self._lengths)))
            descriptions.append(description_digest(self._descriptions))
        self._run("DELETE FROM row_blocks")
        self._insert("row_blocks", {"block": ("INTEGER", np.arange(len(rows))), "digest": ("BLOB", rows),
                                    "descriptions": ("BLOB", descriptions)})
        mark = fingerprint(self._alphabet.name, self._sequences, self._residues, self._digests, rows)
        [(masked,)] = self._run("SELECT EXISTS (FROM masks)")
        self.facts = Facts(self.title, self._alphabet.name, self._size, self._sequences, self._residues, self._longest,
                           self._shortest, mark, self._created, self._parsed_names, HEAD["sequences"], masked)
        said = (self.title, self._alphabet.name, self._size, self._sequences, self._residues, self._longest,
                self._shortest, mark, str(self._created), self._parsed_names)
        self._run(f"DELETE FROM database; INSERT INTO database VALUES ({', '.join(map(literal, said))})")

    def _check_names(self) -> None:
        [(double,)] = self._run("SELECT count(*) - count(DISTINCT name) FROM sequences")
        if double:
            [(name, first, second)] = self._run(
                "SELECT name, min(ordinal), max(ordinal) FROM sequences GROUP BY name HAVING count(*) > 1 "
                "ORDER BY min(ordinal) LIMIT 1")
            raise InputError(f"id '{name}' is there twice, as sequences {first + 1:,} and {second + 1:,} of "
                             f"{self._path.name}; rename one of them, or leave it out with --on-bad skip")

    def _insert(self, table: str, columns: dict[str, tuple[str, Values]], **constants: str) -> None:
        with translated(self._path):
            insert(self._connection, table, columns, constants)

    def _run(self, sql: str) -> list[tuple[Any, ...]]:
        with translated(self._path):
            return self._connection.execute(sql).fetchall()
