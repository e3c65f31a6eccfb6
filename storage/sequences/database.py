"""Sequence databases: DuckDB files that hold residues in checksummed chunks and a row for every sequence.

``SequenceDatabase.create`` writes a new file in one pass, beside its final name, and renames it when it is whole.
``append`` adds behind what is there in one transaction. Reading checks every chunk that it touches.
"""

import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.alphabet import INVALID, Alphabet, alphabet
from ...core.engine.threads import run_tasks
from ...core.errors import DamagedError, InputError, StoreError
from ...core.ports import Taxon
from ...core.sequences import Intervals, SequenceBatch, offsets_of
from ..duck import creation
from ..duck.arrow import Values, insert
from ..duck.connection import lacks_table, translated
from ..duck.database_file import ENDING, SAVING, DatabaseFile, begun, for_reading, for_writing
from ..duck.literals import literal
from ..duck.revisions import HEAD
from . import index_images, residue_image
from .chunk_tables import BEFORE_PARSED_NAMES, BEFORE_TAXA, BEFORE_TAXIDS, VOLUME_CHUNKS, making, table_of
from .fingerprint import BLOCK_RESIDUES, BLOCK_ROWS, description_digest, fingerprint, residue_digests, row_digest
from .packing import RUN, pack, unpack
from .residue_image import ImageWriter, ResidueImage

if TYPE_CHECKING:
    import duckdb

_log = logging.getLogger("seqloom")
CHUNK_RESIDUES = {"protein": BLOCK_RESIDUES, "nucleotide": 4 * BLOCK_RESIDUES}
"""Residues of a chunk: 4 MiB of packed residues."""
LONGEST = 2**31 - 1
"""Residues that a sequence may have: positions are i4."""
MOST_READERS = 4
"""Chunks that are read side by side: each takes three times its size meanwhile."""
DENSE = 16
"""Ordinals among which one is looked for, at most, where a bit for each finds them sooner than a list does."""


@dataclass(frozen=True)
class Facts:
    """What table ``database`` says, with the file's revision and whether there are masks."""

    title: str
    alphabet: str
    chunk_residues: int
    sequences: int
    total_residues: int
    longest: int
    shortest: int
    fingerprint: str
    created: datetime
    parsed_names: bool
    revision: str
    masked: bool

    @property
    def said(self) -> str:
        """What an image of the residues says of the database."""
        return f"{self.fingerprint} {self.alphabet} {self.sequences} {self.total_residues}"

    def wrong(self) -> str:
        """What of it can't be; empty if all can."""
        numbers = (self.chunk_residues, self.sequences, self.total_residues, self.longest, self.shortest)
        if any(value is None for value in (self.title, self.alphabet, *numbers, self.fingerprint, self.created)):
            return "its table database lacks a value"
        if self.alphabet not in CHUNK_RESIDUES:
            return f"it says that it holds {self.alphabet} sequences"
        if not 0 < self.chunk_residues <= LONGEST or min(numbers) < 0:
            return "its numbers make no sense"
        if (not self.shortest <= self.longest <= min(self.total_residues, LONGEST)
                or self.total_residues > self.sequences * self.longest):
            return "its lengths make no sense"
        return ""


class SequenceDatabase(DatabaseFile):
    """An open sequence database. Its methods may be called from several threads.

    Attributes:
        path: the file.
        read_only: whether it was opened for reading.
        alphabet: of all its sequences.
        sequences, residues, longest, shortest: numbers of what it holds.
        fingerprint: hash of its content, see ``storage.fingerprint``.
        parsed_names: whether names are in NCBI's notation, of which reports show the accession.
        revision: schema revision of the file.
    """

    kind = "sequences"
    alphabet: Alphabet
    sequences: int
    total_residues: int
    longest: int
    shortest: int
    fingerprint: str
    parsed_names: bool
    revision: str

    def __init__(self, path: Path, open_file: "Callable[[], duckdb.DuckDBPyConnection]", read_only: bool,
                 facts: "Facts | None" = None) -> None:
        super().__init__(path, open_file, read_only)
        self._held: tuple[int, np.ndarray] | None = None
        self._taxa: dict[int, Taxon | None] = {0: None}
        self._image: ResidueImage | None = None
        self._image_sought = self._image_missed = False
        self._know(facts or self._facts())

    @classmethod
    def create(cls, path: "str | Path", batches: Iterable[SequenceBatch], title: str = "", memory: int | None = None,
               threads: int | None = None, parsed_names: bool = False) -> Self:
        """Write a new database and open it for reading.

        Args:
            path: must not exist. Nothing is there when anything goes wrong.
            batches: all of one alphabet, in the order in which sequences are to be numbered.
            title: for ``info``.
            memory: bytes that DuckDB may take.
            threads: for DuckDB.
            parsed_names: see the class.

        Raises:
            StoreError: ``path`` exists, its folder doesn't, or the disk is full.
            LockedError: another process is writing it.
            InputError: no sequences, an id that is there twice, a sequence that is too long, alphabets that differ.
        """
        path = Path(path)
        writer = _Writer(path, title, parsed_names, saves=True)
        with creation.making(path, "choose another name, or add to it with: seqloom db append") as part:
            try:
                with ThreadPoolExecutor(1, thread_name_prefix="write") as pool:  # writes a batch while the next is read
                    writing = pool.submit(writer.make, part, memory, threads)
                    for batch in batches:
                        writing.result()
                        writing = pool.submit(writer.add, batch)
                    writing.result()
                writer.finish()
                writer.close(ENDING)
            except BaseException:
                writer.close()
                if writer.image:
                    writer.image.discard()
                raise
        if writer.image:
            writer.image.finish(writer.facts.said)
        return cls(path, partial(for_reading, path, "sequences", memory, threads), True, writer.facts)

    @classmethod
    def open(cls, path: "str | Path", read_only: bool = True, memory: int | None = None,
             threads: int | None = None) -> Self:
        """Open an existing database; see ``storage.connection.connect`` for the errors."""
        path = Path(path)
        if read_only:
            connection = for_reading(path, "sequences", memory, threads)
        else:
            connection = for_writing(path, "sequences", memory, threads)
            index_images.clear_unfinished(path)
        try:
            return cls(path, lambda: connection, read_only)
        except BaseException:
            connection.close()
            raise

    def append(self, batches: Iterable[SequenceBatch]) -> None:
        """Add sequences behind those that are there, whose ordinals stay; all of them, or none.

        Raises:
            StoreError: opened for reading, or the disk is full.
            InputError: an id that is there already, another alphabet, a sequence that is too long.
        """
        if self.read_only:
            raise StoreError(f"{self.path} is open for reading; open it for writing to append")
        with self._lock:
            self._held = None
            writer = _Writer(self.path, self.title, self.parsed_names)
            try:
                writer.resume(self)
                for batch in batches:
                    writer.add(batch)
                writer.finish()
                self._run("COMMIT")
            except BaseException:
                self._rollback()
                raise
            before = self.fingerprint
            self.bring_in("the sequences were added")
            self._know(self._facts())
            if self.fingerprint != before:  # no image is of these sequences
                index_images.clear(self.path)
                residue_image.clear(self.path)

    # ---- what is in it

    def info(self) -> dict[str, Any]:
        """path, title, type, sequences, residues, longest, shortest, chunks, whether names are taken apart, sequences
        with a taxid, taxa of the taxonomy, fingerprint, created, revision."""
        return {
            "path": str(self.path), "title": self.title, "type": self.alphabet.name, "sequences": self.sequences,
            "residues": self.total_residues, "longest": self.longest, "shortest": self.shortest,
            "chunks": -(-self.total_residues // self._about.chunk_residues),
            "parsed ids": self.parsed_names,
            "with taxid": self._count("taxid", "sequences", BEFORE_TAXIDS),
            "taxa": self._count("*", "taxa", BEFORE_TAXA),
            "fingerprint": self.fingerprint, "created": self.created, "revision": self.revision,
        }

    def _count(self, what: str, table: str, before: Sequence[str]) -> int:
        """Rows of a table in which a column isn't NULL; 0 in files of the revisions ``before`` there was any."""
        return 0 if self.revision in before else self._run(f"SELECT count({what}) FROM {table}")[0][0]

    def list(self, like: str = "") -> Iterator[dict[str, Any]]:
        """ordinal, name, description and length of every sequence, or of those whose name is LIKE the SQL pattern."""
        where = f"AND name LIKE {literal(like)}" if like else ""
        for first in range(0, self.sequences, BLOCK_ROWS):
            rows = self._run(f"SELECT ordinal, name, description, length FROM sequences WHERE ordinal >= {first} "
                             f"AND ordinal < {first + BLOCK_ROWS} {where} ORDER BY ordinal")
            for row in rows:
                yield dict(zip(("ordinal", "name", "description", "length"), row, strict=True))

    def ordinals(self, names: Iterable[str]) -> np.ndarray:
        """i8[k] ordinals of the sequences called ``names``, ascending.

        Raises:
            InputError: some are not in the database.
        """
        names = [*names]
        found = self.find_accessions(names)
        missing = [n for n in dict.fromkeys(names) if n not in found]
        if missing:
            raise unknown_names(missing, str(self.path))
        return np.array(sorted({*found.values()}), np.int64)

    def find(self, names: Iterable[str]) -> dict[str, int]:
        """Ordinals of those of ``names`` that are there."""
        wanted = sorted(set(names))
        found: dict[str, int] = {}
        for first in range(0, len(wanted), 100_000):
            part = literal(wanted[first : first + 100_000])
            found.update(self._run(f"SELECT name, ordinal FROM sequences WHERE name IN (SELECT unnest({part}))"))
        return found

    def find_accessions(self, names: Iterable[str]) -> dict[str, int]:
        """Ordinals of those of ``names`` that are there, or are the accession in one name: ``P53508`` finds
        ``sp|P53508|CSSA1_ECOLX``, and ``NM_000014`` finds ``NM_000014.6``.

        Raises:
            InputError: an accession that several names have.
        """
        wanted = set(names)
        found = self.find(wanted)
        rest = sorted(wanted - found.keys())
        for first in range(0, len(rest), 100_000):
            part = literal(rest[first : first + 100_000])
            rows = self._run(
                "WITH there AS (SELECT name, ordinal, CASE WHEN name LIKE 'gi|%|%|%' THEN split_part(name, '|', 4) "
                "WHEN name LIKE '%|%' THEN split_part(name, '|', 2) ELSE name END AS accession FROM sequences), "
                f"asked AS (SELECT unnest({part}) AS text) SELECT text, name, ordinal FROM there, asked "
                "WHERE text = accession UNION SELECT text, name, ordinal FROM there, asked "
                "WHERE text = regexp_replace(accession, '[.][0-9]+$', '') ORDER BY ordinal")
            for text, name, ordinal in rows:
                if text in found:
                    other = self.rows(np.array([found[text]]))["name"][0]
                    raise InputError(f"{self.path}: '{text}' may be {other} or {name}; give the whole name")
                found[text] = ordinal
        return found

    def extract(self, names: Sequence[str]) -> SequenceBatch:
        """The sequences called ``names``, each once, in the order of the database, with descriptions and lower case."""
        return self.fetch(self.ordinals(names))

    def fetch(self, ordinals: np.ndarray) -> SequenceBatch:
        """The sequences with i8[k] ascending ``ordinals``, with names, descriptions and lower case."""
        ordinals = np.asarray(ordinals, np.int64)
        table = self.rows(ordinals)
        lengths = np.asarray(table["length"], np.int64)
        return SequenceBatch(
            self.alphabet, self.residues(np.asarray(table["start"], np.int64), lengths), offsets_of(lengths), ordinals,
            self.lower(ordinals), names=table["name"].tolist(), descriptions=table["description"].tolist())

    def rows(self, ordinals: np.ndarray) -> dict[str, np.ndarray]:
        """Columns ordinal, name, description, length, start and taxid, 0 where there is none, of the sequences with
        i8[k] ascending ``ordinals``."""
        taxid = "coalesce(taxid, 0)" if self.revision not in BEFORE_TAXIDS else "0"
        table = self._columns(f"SELECT ordinal, name, description, length, start, {taxid} AS taxid FROM sequences "
                              f"WHERE {_among(ordinals)} ORDER BY ordinal")
        if len(table["ordinal"]) != len(ordinals):
            raise DamagedError(f"{self.path}: {len(ordinals):,} sequences were looked for and "
                               f"{len(table['ordinal']):,} found; run: seqloom db check")
        return table

    def taxa(self, taxids: np.ndarray) -> "Sequence[Taxon | None]":
        """Of each of i8[k] ``taxids`` what the stored taxonomy says, else its number alone; None for 0. Empty where
        all are 0."""
        if not taxids.any():
            return ()
        wanted = sorted(set(taxids.tolist()) - self._taxa.keys())
        if wanted:
            self._taxa.update((taxid, Taxon(taxid)) for taxid in wanted)
            if self.revision not in BEFORE_TAXA:
                rows = self._run("SELECT taxid, name, coalesce(common_name, ''), coalesce(blast_name, ''), "
                                 f"coalesce(kingdom, '') FROM taxa WHERE taxid IN (SELECT unnest({literal(wanted)}))")
                self._taxa.update((row[0], Taxon(*row)) for row in rows)
        return [self._taxa[taxid] for taxid in taxids.tolist()]

    def forget_taxa(self) -> None:
        """Read anew what the taxonomy says."""
        self._taxa = {0: None}

    def lower(self, ordinals: np.ndarray) -> Intervals:
        """Stretches in lower case of the sequences with i8[k] ascending ``ordinals``, by position in them."""
        if not len(ordinals) or not self._about.masked:
            return Intervals.empty()
        table = self._columns(
            'SELECT sequence, start, "end" FROM masks WHERE kind = \'lower\' AND sequence BETWEEN '
            f"{int(ordinals[0])} AND {int(ordinals[-1])} ORDER BY sequence, start")
        place = np.searchsorted(ordinals, table["sequence"])
        kept = ordinals[np.minimum(place, len(ordinals) - 1)] == table["sequence"]
        return Intervals(place[kept].astype(np.int32), table["start"][kept], table["end"][kept])

    def lengths(self) -> np.ndarray:
        """i4[k] length of every sequence, by ordinal."""
        lengths = self._columns("SELECT length FROM sequences ORDER BY ordinal")["length"]
        if (len(lengths) != self.sequences or int(lengths.sum(dtype=np.int64)) != self.total_residues
                or (len(lengths) and (lengths.min(), lengths.max()) != (self.shortest, self.longest))):
            raise DamagedError(f"{self.path}: its sequences don't add up to what it says of itself; "
                               "run: seqloom db check")
        return lengths

    # ---- residues

    def residues(self, starts: np.ndarray, lengths: np.ndarray, threads: int = 1) -> np.ndarray:
        """u8[n] codes of stretches of the row of all residues, one behind the other, in one new array.

        Args:
            starts, lengths: i8[k] each; fastest when ascending.
            threads: that may read whole chunks side by side.

        Raises:
            DamagedError: a chunk is missing or doesn't match its checksum.
        """
        out = np.empty(int(lengths.sum()), np.uint8)
        ends = starts + lengths
        joined = np.flatnonzero(starts[1:] != ends[:-1]) + 1  # neighbours are read as one piece
        first = np.concatenate([[0], joined]) if len(starts) else np.empty(0, np.int64)
        last = np.concatenate([joined, [len(starts)]]) - 1 if len(starts) else first
        place, size = 0, self._about.chunk_residues
        for begin, end in zip(starts[first].tolist(), ends[last].tolist(), strict=True):
            mapped = self.mapped(begin, end, threads)
            if mapped is not None:
                out[place : place + len(mapped)] = mapped
                place += len(mapped)
                continue
            pieces = []
            while begin < end:
                chunk, skip = divmod(begin, size)
                count = min(size - skip, end - begin)
                pieces.append((chunk, skip, out[place : place + count]))
                begin, place = begin + count, place + count
            run_tasks(min(threads, MOST_READERS), lambda piece: self._copy(*piece), pieces, "read")
        return out

    def image(self, make: bool = False) -> "ResidueImage | None":
        """The image of all residues; None where there is none.

        Args:
            make: make it if it isn't there, where that can be done in reasonable time.
        """
        with self._lock:
            if not self.read_only or self.alphabet.name != "protein":
                return None
            if not self._image_sought:
                self._image_sought = True
                self._image, _ = self.open_image()
            if self._image is None and make and not self._image_missed:
                self._image_missed = not self._make_image()
            return self._image

    def open_image(self) -> "tuple[ResidueImage | None, str]":
        """The image, if there is one that is of this database, and what is wrong with it otherwise."""
        return ResidueImage.open(self.path, self._about.said, self.total_residues, largest_code(self.alphabet))

    def _make_image(self) -> bool:
        if self.total_residues > residue_image.MOST_IN_SEARCH or not residue_image.may_be_made(
                self.path, self.total_residues):
            return False
        writer = ImageWriter(self.path)
        try:
            for chunk in range(-(-self.total_residues // self._about.chunk_residues)):
                writer.add(self._decode(*self._chunk(chunk)))
        except BaseException:
            writer.discard()
            raise
        if writer.finish(self._about.said):
            self._image, _ = self.open_image()
        return self._image is not None

    def mapped(self, first: int, last: int, threads: int = 1, make: bool = False) -> np.ndarray | None:
        """u8[last − first] codes of a stretch of the row of all residues where they lie in the image, compared with
        their checksums; None without an image. One that is damaged is left alone from then on, and removed.

        Args:
            threads: that may compare side by side.
            make: see ``image``.
        """
        image = self.image(make)
        if image is None:
            return None
        cuts = [*range(first, last, residue_image.BLOCK), last]
        if not all(run_tasks(threads, lambda cut: image.sound(*cut), list(pairwise(cuts)), "read")):
            with self._lock:
                if self._image is image:
                    self._image, self._image_missed = None, True
                    residue_image.clear(self.path)
                    _log.warning("%s is damaged; residues are read from %s itself", image.path, self.path.name)
            return None
        return image.residues[first:last]

    def _copy(self, chunk: int, skip: int, out: np.ndarray) -> None:
        """Codes from position ``skip`` of a chunk into ``out``. A chunk of which only a part was asked is kept."""
        held = self._held
        if held is not None and held[0] == chunk:
            out[:] = held[1][skip : skip + len(out)]
            return
        residues, data, runs = self._chunk(chunk)
        if skip == 0 and len(out) == residues:
            self._decode(residues, data, runs, out)
            return
        codes = self._decode(residues, data, runs)
        if skip + len(out) > residues:
            raise DamagedError(f"{self.path}: chunk {chunk} has {residues:,} residues and more are needed; "
                               "run: seqloom db check")
        self._held = (chunk, codes)
        out[:] = codes[skip : skip + len(out)]

    def _decode(self, residues: int, data: np.ndarray, runs: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        if self.alphabet.name == "nucleotide":
            return unpack(data, residues, runs, out)
        if out is None:
            return data
        out[:] = data
        return out

    def _chunk(self, chunk: int) -> tuple[int, np.ndarray, np.ndarray]:
        """Residues, packed residues and ambiguity runs of a chunk, checked."""
        try:
            run = self._run_apart if self.read_only else self._run  # while appending, rows are those of the transaction
            rows = run("SELECT letters, data, ambiguities, checksum FROM "
                       f"{table_of(chunk, self.revision)} WHERE chunk = {chunk}")
        except StoreError as error:
            if not lacks_table(error):
                raise
            rows = []  # not even its table is there
        if len(rows) != 1:
            raise DamagedError(f"{self.path}: chunk {chunk} is there {len(rows)} times; make the database anew")
        residues, data, ambiguities, wanted = rows[0]
        if checksum(data, ambiguities) != wanted:
            raise DamagedError(f"{self.path}: chunk {chunk} does not match its checksum; make the database anew or "
                               "restore it from a copy")
        wrong = unsound(self.alphabet, residues, data, ambiguities)
        if wrong:
            raise DamagedError(f"{self.path}: chunk {chunk}: {wrong}; make the database anew or restore it from a copy")
        return residues, np.frombuffer(data, np.uint8), np.frombuffer(ambiguities, RUN)

    def _chunk_tables(self) -> Sequence[str]:
        """Names of the tables with residues, in order."""
        found = [name for (name,) in self._run(
            "SELECT table_name FROM duckdb_tables() WHERE regexp_matches(table_name, '^(chunks|volume_[0-9]+)$') "
            "AND NOT internal")]
        return sorted(found, key=lambda name: (len(name), name))

    def _digests(self) -> Sequence[bytes]:
        """Digests of the blocks of every chunk, in order."""
        return [d for table in self._chunk_tables()
                for (d,) in self._run(f"SELECT digests FROM {table} ORDER BY chunk")]

    # ---- helpers

    def _know(self, facts: "Facts") -> None:
        wrong = facts.wrong()
        if wrong:
            raise DamagedError(f"{self.path} is damaged ({wrong}); make it anew or restore it from a copy")
        self._about = facts
        self.alphabet = alphabet(facts.alphabet)
        self.sequences, self.total_residues, self.longest, self.shortest = (
            facts.sequences, facts.total_residues, facts.longest, facts.shortest)
        self.title, self.fingerprint, self.revision = facts.title, facts.fingerprint, facts.revision
        self.created, self.parsed_names = facts.created, bool(facts.parsed_names)

    def _facts(self) -> "Facts":
        [(revision,)] = self._run("SELECT schema_revision FROM seqloom_file")
        parsed = "false" if revision in BEFORE_PARSED_NAMES else "parsed_names"
        rows = self._run("SELECT title, alphabet, chunk_letters, sequences, letters, longest, shortest, fingerprint, "
                         f"created, {parsed}, (SELECT schema_revision FROM seqloom_file), EXISTS (FROM masks) "
                         "FROM database")
        if len(rows) != 1:
            raise DamagedError(f"{self.path}: its table database has {len(rows)} rows instead of one; make it anew")
        return Facts(*rows[0])


class _Writer:
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

    def resume(self, database: SequenceDatabase) -> None:
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
            residues, data, runs = database._chunk(self._chunk)
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
        descriptions = batch.descriptions or [""] * count
        taxids = np.asarray(batch.taxids, np.int64) if len(batch.taxids) else np.zeros(count, np.int64)
        for text in (*batch.names, *descriptions):
            if "\n" in text:
                raise InputError(f"a name or description has a line end in it: {text!r}; take it out")
        self._insert("sequences", {
            "ordinal": ("BIGINT", np.arange(first, first + count)), "length": ("INTEGER", lengths),
            "start": ("BIGINT", self._residues + batch.offsets[:-1]), "name": ("VARCHAR", batch.names),
            "description": ("VARCHAR", descriptions), "taxid": ("INTEGER", np.ma.MaskedArray(taxids, taxids == 0)),
        })
        if len(batch.lower):
            sequence = first + batch.lower.sequence.astype(np.int64)
            self._insert("masks", {"sequence": ("BIGINT", sequence), "start": ("INTEGER", batch.lower.start),
                                   "end": ("INTEGER", batch.lower.end)}, kind="lower")
        self._names += batch.names
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
        self._add_to_image(codes)
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

    def _add_to_image(self, codes: np.ndarray) -> None:
        """Write the residues of the next chunk to the image of a new database that is large enough for one."""
        first = self._chunk == 0 and self._fill == self._size
        if (self._saves and first and self._alphabet.name == "protein"  # type: ignore[union-attr]
                and residue_image.may_be_made(self._path, residue_image.LEAST)):
            self.image = ImageWriter(self._path)
        if self.image:
            self.image.add(codes)

    def finish(self) -> None:
        """Write what is left, check ids, and say in table ``database`` what there is."""
        if self._alphabet is None:
            raise InputError(f"no sequences to put into {self._path.name}; give at least one")
        if self._fill:
            self._flush()
        self._check_names()
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


def unsound(kind: Alphabet, residues: int, data: bytes, ambiguities: bytes) -> str:
    """Why a chunk can't be what was written of ``residues`` residues, whatever its checksum; empty if it can."""
    packed = -(-residues // 4) if kind.name == "nucleotide" else residues
    if packed != len(data) or len(ambiguities) % RUN.itemsize:
        return f"{residues:,} residues in {len(data):,} bytes"
    codes = np.frombuffer(data, np.uint8) if kind.name == "protein" else np.empty(0, np.uint8)
    runs = np.frombuffer(ambiguities, RUN)
    if max(int(codes.max(initial=0)), int(runs["code"].max(initial=0))) > largest_code(kind):
        return "codes outside the alphabet"
    if len(runs) and int((runs["start"].astype(np.int64) + runs["length"]).max()) > residues:
        return "ambiguous bases behind its end"
    return ""


def largest_code(kind: Alphabet) -> int:
    """Of the residues of an alphabet."""
    return int((kind.codes[kind.codes != INVALID]).max())


def checksum(data: bytes, ambiguities: bytes) -> int:
    """CRC-32 of a chunk as it is stored: finds every flipped byte."""
    return zlib.crc32(ambiguities, zlib.crc32(data))


def unknown_names(missing: Sequence[str], where: str) -> InputError:
    """The error for names that are not in a database."""
    shown = ", ".join(f"'{n}'" for n in missing[:3]) + (", …" if len(missing) > 3 else "")
    what = f"no sequence {shown}" if len(missing) == 1 else f"{len(missing):,} names are not there: {shown}"
    return InputError(f"{where}: {what}; seqloom db list-sequences shows the names")


def _among(ordinals: np.ndarray) -> str:
    """SQL that is true where ``ordinal`` is one of i8[k] ascending ``ordinals``."""
    first, last = (int(ordinals[0]), int(ordinals[-1])) if len(ordinals) else (0, -1)
    span = f"ordinal BETWEEN {first} AND {last}"
    if last - first + 1 == len(ordinals):
        return span
    if last - first + 1 > DENSE * len(ordinals):
        return f"ordinal IN (SELECT unnest('{ordinals.tolist()}'::BIGINT[]))"
    bits = np.full(last - first + 1, ord("0"), np.uint8)
    bits[ordinals - first] = ord("1")
    return f"{span} AND get_bit('{bits.tobytes().decode()}'::BIT, (ordinal - {first})::INTEGER) = 1"
