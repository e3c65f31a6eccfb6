"""Sequence databases: DuckDB files that hold residues in checksummed chunks and a row for every sequence.

``SequenceDatabase.create`` writes a new file in one pass, beside its final name, and renames it when it is whole.
``append`` adds behind what is there in one transaction. Reading checks every chunk that it touches.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.alphabet import Alphabet, alphabet
from ...core.engine.threads import run_tasks
from ...core.errors import DamagedError, InputError, StoreError
from ...core.ports import Taxon
from ...core.sequences import Intervals, SequenceBatch, offsets_of
from ..duck import creation
from ..duck.connection import lacks_table
from ..duck.database_file import ENDING, DatabaseFile, for_reading, for_writing
from ..duck.literals import literal
from . import index_images, residue_image, row_image
from .chunk_tables import BEFORE_NAMED_MASKS, BEFORE_PARSED_NAMES, BEFORE_TAXA, BEFORE_TAXIDS, LOWER, table_of
from .chunks import checksum, unsound
from .facts import Facts
from .fingerprint import BLOCK_ROWS
from .imaged import Imaged
from .packing import RUN, unpack
from .row_image import RowImage

if TYPE_CHECKING:
    import duckdb

    from .named_masks import GivenMask

MOST_READERS = 4
"""Chunks that are read side by side: each takes three times its size meanwhile."""
DENSE = 16
"""Ordinals among which one is looked for, at most, where a bit for each finds them sooner than a list does."""


class SequenceDatabase(Imaged, DatabaseFile):
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
                 facts: Facts | None = None, row_image: RowImage | None = None) -> None:
        super().__init__(path, open_file, read_only)
        self._held: tuple[int, np.ndarray] | None = None
        self._taxa: dict[int, Taxon | None] = {0: None}
        self._row_image = row_image
        self._know(facts or self._facts())

    @classmethod
    def create(cls, path: "str | Path", batches: Iterable[SequenceBatch], title: str = "", memory: int | None = None,
               threads: int | None = None, parsed_names: bool = False, masks: "Sequence[GivenMask]" = ()) -> Self:
        """Write a new database and open it for reading.

        Args:
            path: must not exist. Nothing is there when anything goes wrong.
            batches: all of one alphabet, in the order in which sequences are to be numbered.
            title: for ``info``.
            memory: bytes that DuckDB may take.
            threads: for DuckDB.
            parsed_names: see the class.
            masks: of these sequences, that searches may ask for.

        Raises:
            StoreError: ``path`` exists, its folder doesn't, or the disk is full.
            LockedError: another process is writing it.
            InputError: no sequences, an id that is there twice, a sequence that is too long, alphabets that differ, a
                mask of others.
        """
        from .writing import Writer

        path = Path(path)
        writer = Writer(path, title, parsed_names, saves=True)
        with creation.making(path, "choose another name, or add to it with: seqloom db append") as part:
            try:
                with ThreadPoolExecutor(1, thread_name_prefix="write") as pool:  # writes a batch while the next is read
                    writing = pool.submit(writer.make, part, memory, threads)
                    for batch in batches:
                        writing.result()
                        writing = pool.submit(writer.add, batch)
                    writing.result()
                writer.finish(masks)
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

    @classmethod
    def open_for_search(cls, path: "str | Path", memory: int | None = None) -> Self:
        """Open an existing database for reading, by DuckDB not before something is asked that its image of rows
        doesn't say; see ``row_image``. Errors as of ``open``."""
        path = Path(path)
        image = RowImage.open(path)
        if image is None:
            database = cls.open(path, memory=memory)
            if memory is None:  # to make it takes some
                row_image.make(database)
            return database
        return cls(path, partial(_as_it_was, path, image.facts.fingerprint, memory), True, image.facts, image)

    def append(self, batches: Iterable[SequenceBatch], masks: "Sequence[GivenMask]" = ()) -> None:
        """Add sequences behind those that are there, whose ordinals stay; all of them, or none.

        Args:
            masks: of the sequences that are added; a mask of a name that is there gets them, too.

        Raises:
            StoreError: opened for reading, or the disk is full.
            InputError: an id that is there already, another alphabet, a sequence that is too long, a mask of others.
        """
        from .writing import Writer

        if self.read_only:
            raise StoreError(f"{self.path} is open for reading; open it for writing to append")
        with self._lock:
            self._held = None
            writer = Writer(self.path, self.title, self.parsed_names)
            try:
                writer.resume(self)
                for batch in batches:
                    writer.add(batch)
                writer.finish(masks, self.sequences)
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
                row_image.clear(self.path)

    @property
    def has_row_image(self) -> bool:
        """Whether rows come from an image: then there are no taxids or stored indexes."""
        return self._row_image is not None

    # ---- what is in it

    def named_masks(self) -> dict[str, str]:
        """Digests of its masks by their names, in the order of these."""
        if self.revision in BEFORE_NAMED_MASKS:
            return {}
        return {name: digest.hex() for name, digest in self._run("SELECT name, digest FROM named_masks ORDER BY name")}

    def info(self) -> dict[str, Any]:
        """path, title, type, sequences, residues, longest, shortest, chunks, whether names are taken apart, sequences
        with a taxid, taxa of the taxonomy, masks, fingerprint, created, revision."""
        return {
            "path": str(self.path), "title": self.title, "type": self.alphabet.name, "sequences": self.sequences,
            "residues": self.total_residues, "longest": self.longest, "shortest": self.shortest,
            "chunks": -(-self.total_residues // self._about.chunk_residues),
            "parsed ids": self.parsed_names,
            "with taxid": self._count("taxid", "sequences", BEFORE_TAXIDS),
            "taxa": self._count("*", "taxa", BEFORE_TAXA), "masks": ", ".join(self.named_masks()),
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
        batch, starts = self.unread(ordinals)
        return replace(batch, residues=self.residues(starts, batch.lengths), lower=self.lower(batch.ordinals))

    def unread(self, ordinals: np.ndarray) -> tuple[SequenceBatch, np.ndarray]:
        """As ``fetch``, without residues and lower case; and i8[k], where each begins in the row of all residues."""
        ordinals = np.asarray(ordinals, np.int64)
        table = self.rows(ordinals)
        offsets = offsets_of(np.asarray(table["length"], np.int64))
        batch = SequenceBatch(self.alphabet, np.empty(0, np.uint8), offsets, ordinals,
                              names=table["name"].tolist(), descriptions=table["description"].tolist())
        return batch, np.asarray(table["start"], np.int64)

    def rows(self, ordinals: np.ndarray) -> dict[str, np.ndarray]:
        """Columns ordinal, name, description, length, start and taxid, 0 where there is none, of the sequences with
        i8[k] ascending ``ordinals``."""
        if self._row_image is not None:
            table = self._row_image.rows(ordinals)
        else:
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
        return _by_position(self.masks(int(ordinals[0]), int(ordinals[-1])), ordinals)

    def mask(self, name: str, ordinals: np.ndarray) -> Intervals:
        """Stretches of a mask, by position in the sequences with i8[k] ascending ``ordinals``; none touch."""
        if not len(ordinals):
            return Intervals.empty()
        return _by_position(self._stretches(name, int(ordinals[0]), int(ordinals[-1])), ordinals)

    def masks(self, first: int = 0, last: int | None = None) -> Mapping[str, np.ndarray]:
        """Columns sequence, start and end of stretches in lower case of the sequences from ``first`` to ``last``, in
        rising order."""
        last = self.sequences - 1 if last is None else last
        if self._row_image is not None:
            table = self._row_image.masks
            begin, end = np.searchsorted(table["sequence"], (first, last + 1))
            return {name: column[begin:end] for name, column in table.items()}
        return self._stretches(LOWER, first, last)

    def _stretches(self, kind: str, first: int, last: int) -> Mapping[str, np.ndarray]:
        return self._columns(f'SELECT sequence, start, "end" FROM masks WHERE kind = {literal(kind)} '
                             f"AND sequence BETWEEN {first} AND {last} ORDER BY sequence, start")

    def lengths(self) -> np.ndarray:
        """i4[k] length of every sequence, by ordinal."""
        if self._row_image is not None:
            lengths = self._row_image.lengths
        else:
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
        if self.unpacked(np.stack([starts, offsets_of(lengths)[:-1], lengths], axis=1), out):
            return out
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

    def _copy(self, chunk: int, skip: int, out: np.ndarray) -> None:
        """Codes from position ``skip`` of a chunk into ``out``. A chunk of which only a part was asked is kept."""
        held = self._held
        if held is not None and held[0] == chunk:
            out[:] = held[1][skip : skip + len(out)]
            return
        residues, data, runs = self.chunk(chunk)
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

    def chunk(self, chunk: int) -> tuple[int, np.ndarray, np.ndarray]:
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

    def _know(self, facts: Facts) -> None:
        wrong = facts.wrong()
        if wrong:
            raise DamagedError(f"{self.path} is damaged ({wrong}); make it anew or restore it from a copy")
        self._about = facts
        self.alphabet = alphabet(facts.alphabet)
        self.sequences, self.total_residues, self.longest, self.shortest = (
            facts.sequences, facts.total_residues, facts.longest, facts.shortest)
        self.title, self.fingerprint, self.revision = facts.title, facts.fingerprint, facts.revision
        self.created, self.parsed_names = facts.created, bool(facts.parsed_names)

    def _facts(self) -> Facts:
        [(revision,)] = self._run("SELECT schema_revision FROM seqloom_file")
        parsed = "false" if revision in BEFORE_PARSED_NAMES else "parsed_names"
        rows = self._run("SELECT title, alphabet, chunk_letters, sequences, letters, longest, shortest, fingerprint, "
                         f"created, {parsed} FROM database")
        if len(rows) != 1:
            raise DamagedError(f"{self.path}: its table database has {len(rows)} rows instead of one; make it anew")
        masked = bool(self._run("SELECT 1 FROM masks LIMIT 1"))  # as a subquery it takes 3 ms more
        return Facts._make((*rows[0], revision, masked))


def _by_position(table: Mapping[str, np.ndarray], ordinals: np.ndarray) -> Intervals:
    """Stretches of those sequences that have i8[k] ascending ``ordinals``, by position in these."""
    place = np.searchsorted(ordinals, table["sequence"])
    kept = ordinals[np.minimum(place, len(ordinals) - 1)] == table["sequence"]
    return Intervals(place[kept].astype(np.int32), table["start"][kept], table["end"][kept])


def _as_it_was(path: Path, fingerprint: str, memory: int | None) -> "duckdb.DuckDBPyConnection":
    """Open a database for reading that was of this fingerprint a while ago.

    Raises:
        StoreError: it isn't any more.
    """
    connection = for_reading(path, "sequences", memory, None)
    if connection.execute("SELECT fingerprint FROM database").fetchall() != [(fingerprint,)]:
        connection.close()
        raise StoreError(f"{path} was changed while it was searched; search it again")
    return connection


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
