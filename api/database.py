"""Sequence databases for programs: create, open, look inside, extract, check."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from .core.alphabet import alphabet
from .core.progress import Progress
from .core.sequences import SequenceBatch
from .open_database import OpenDatabase, PathLike, duckdb_share, title_of
from .storage.sequences.database import SequenceDatabase

if TYPE_CHECKING:
    from .inputs import Ids
    from .taxonomy import Taxids


class Database(OpenDatabase[SequenceDatabase]):
    """One sequence database file.

    Use as a context manager, or call ``close``. Any number of processes can have it open for searching; appending needs
    it alone.
    """

    _counted = "sequences"

    @classmethod
    def create(cls, path: PathLike, *files: PathLike, type: str | None = None, on_bad: str = "error", title: str = "",
               memory: int | None = None, progress: Progress | None = None, taxids: "Taxids | None" = None,
               parsed_names: bool | None = None, masks: "Mapping[str, PathLike] | None" = None) -> Self:
        """Make a database from FASTA or FASTQ files (plain, gzip, bzip2, xz, zstd; "-" is standard input).

        Args:
            path: file to make; must not exist. Nothing is left there when anything goes wrong.
            type: "protein" or "nucleotide"; found out from the first file when left out.
            on_bad: "error" stops at the first record that can't be used, "skip" reports and leaves it out; "rename"
                gives another id to records whose id is there already.
            title: shown by ``info``; that of a BLAST database, or the files' names, when left out.
            memory: bytes that the process may take, about.
            progress: told of the bytes that are read; its cancellation stops the work.
            taxids: which organism each sequence is of.
            parsed_names: names are in NCBI's notation and reports show the accessions in them, as of a BLAST database
                made with ``-parse_seqids``; those are what None means.
            masks: that searches may ask for by these names: "lower-case", or files of intervals as ``seqloom mask`` and
                NCBI's maskers write them.
        """
        from .inputs import Ids, facts_of
        from .installed import registry
        from .mask_files import given_masks

        facts = [facts_of(str(file), registry(), alphabet(type) if type else None) for file in files]
        if parsed_names is None:
            parsed_names = all(one.parsed_names for one in facts)
        if not title and len(facts) == 1:
            title = facts[0].title
        given = given_masks(masks or {})
        batches = _read(files, type, on_bad, Ids(), progress, taxids)
        return cls(SequenceDatabase.create(path, batches, title=title or title_of(files),
                                           memory=duckdb_share(memory, False), parsed_names=parsed_names, masks=given))

    @classmethod
    def open(cls, path: PathLike, read_only: bool = True, memory: int | None = None) -> Self:
        """Open an existing database."""
        return cls(SequenceDatabase.open(path, read_only=read_only, memory=duckdb_share(memory, read_only)), memory)

    def append(self, *files: PathLike, on_bad: str = "error", progress: Progress | None = None,
               taxids: "Taxids | None" = None, masks: "Mapping[str, PathLike] | None" = None) -> None:
        """Add the records of more files behind those that are there. All of them are added, or none.

        Args:
            progress: told of the bytes that are read; its cancellation stops the work.
            taxids: which organism each of these sequences is of.
            masks: of these sequences, as of ``create``; they join masks of the same names that are there.
        """
        from .inputs import Ids
        from .mask_files import given_masks

        given = given_masks(masks or {})
        self._open_for_writing()
        kind = self._database.alphabet.name
        self._database.append(_read(files, kind, on_bad, Ids(self._database.find), progress, taxids), given)

    def store_taxonomy(self, *files: PathLike) -> None:
        """Keep NCBI's names and tree of all organisms, in the place of those that are there.

        Args:
            files: nodes.dmp, names.dmp and, if wanted, merged.dmp, in this order; or taxdump.tar.gz. Plain or packed.
        """
        from .storage.sequences import taxonomy
        from .taxonomy import read_dump

        tables = read_dump(files)
        self._open_for_writing()
        taxonomy.store(self._database, tables)

    def sequences(self, like: str = "") -> Iterator[dict[str, Any]]:
        """Ordinal, name, description and length of every sequence, or of those whose name matches an SQL pattern."""
        return iter(self._database.list(like))

    def extract(self, names: Iterable[str]) -> SequenceBatch:
        """Sequences by name, in the order of the database."""
        return self._database.extract(list(names))

    def check(self, progress: Progress | None = None) -> list[str]:
        """Problems found by reading everything and comparing checksums; empty when all is well.

        Args:
            progress: told of the residues that are checked; its cancellation stops the work.
        """
        from .storage.sequences.check import problems

        return problems(self._database, progress)

    def __repr__(self) -> str:
        info = self.info()
        return (f"<Database {self.path.name}: {info['sequences']:,} {info['type']} sequences, "
                f"{info['residues']:,} residues>")

    def _repr_html_(self) -> str:
        """What a notebook shows: what ``info`` says."""
        from html import escape

        from .core.terminal import printable

        rows = "".join(f'<tr><th scope="row" style="text-align: left">{escape(printable(str(name)))}</th>'
                       f'<td style="text-align: left">{escape(printable(_shown(value)))}</td></tr>'
                       for name, value in self.info().items())
        return f"<table><caption>{escape(printable(self.path.name))}</caption><tbody>{rows}</tbody></table>"


def _shown(value: Any) -> str:
    """A value of ``info`` for people."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value))
    return "" if value is None else f"{value:,}" if isinstance(value, int) and value > 9999 else str(value)


def _read(files: Iterable[PathLike], type: str | None, on_bad: str, ids: "Ids", progress: Progress | None,
          taxids: "Taxids | None") -> Iterator[SequenceBatch]:
    """Batches of all files in order, all of the alphabet of the first, every name once."""
    from .inputs import begin_reading, read_sequences
    from .installed import registry

    residues = alphabet(type) if type else None
    begin_reading(progress, files)
    for file in files:
        for batch in read_sequences(str(file), registry(), residues, on_bad=on_bad, ids=ids, progress=progress):
            residues = batch.alphabet
            yield taxids.applied(batch) if taxids else batch
