"""Sequence databases for programs: create, open, look inside, extract, check."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from .core.alphabet import alphabet
from .core.sequences import SequenceBatch
from .inputs import Ids, read_sequences
from .installed import registry
from .storage.sequence_database import SequenceDatabase

PathLike = str | Path


class Database:
    """One sequence database file.

    Use as a context manager, or call ``close``. Any number of processes can have it open for searching; appending needs
    it alone.
    """

    def __init__(self, database: SequenceDatabase) -> None:
        self._database = database

    @classmethod
    def create(cls, path: PathLike, *files: PathLike, type: str | None = None, on_bad: str = "error", title: str = "",
               memory: int | None = None) -> Self:
        """Make a database from FASTA or FASTQ files (plain, gzip, zstd; "-" is standard input).

        Args:
            path: file to make; must not exist. Nothing is left there when anything goes wrong.
            type: "protein" or "nucleotide"; found out from the first file when left out.
            on_bad: "error" stops at the first record that can't be used, "skip" reports and leaves it out.
            title: shown by ``info``; the files' names when left out.
            memory: bytes that the process may take, about.
        """
        batches = _read(files, type, on_bad, Ids())
        title = title or ", ".join(Path(f).name if str(f) != "-" else "standard input" for f in files)
        return cls(SequenceDatabase.create(path, batches, title=title, memory=memory))

    @classmethod
    def open(cls, path: PathLike, read_only: bool = True, memory: int | None = None) -> Self:
        """Open an existing database."""
        return cls(SequenceDatabase.open(path, read_only=read_only, memory=memory))

    @property
    def path(self) -> Path:
        return Path(self._database.path)

    def append(self, *files: PathLike, on_bad: str = "error") -> None:
        """Add the records of more files behind those that are there. All of them are added, or none."""
        kind = self._database.info()["type"]
        if self._database.read_only:
            self._database.close()
            self._database = SequenceDatabase.open(self.path, read_only=False)
        self._database.append(_read(files, kind, on_bad, Ids(self._database.find)))

    def info(self) -> dict[str, Any]:
        """Title, type, numbers, fingerprint, revision."""
        return self._database.info()

    def sequences(self, like: str = "") -> Iterator[dict[str, Any]]:
        """Ordinal, name, description and length of every sequence, or of those whose name matches an SQL pattern."""
        return iter(self._database.list(like))

    def extract(self, names: Iterable[str]) -> SequenceBatch:
        """Sequences by name, in the order of the database."""
        return self._database.extract(list(names))

    def check(self) -> list[str]:
        """Problems found by reading everything and comparing checksums; empty when all is well."""
        return list(self._database.check())

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.info()["sequences"]

    def __repr__(self) -> str:
        info = self.info()
        return (f"<Database {self.path.name}: {info['sequences']:,} {info['type']} sequences, "
                f"{info['letters']:,} letters>")


def _read(files: Iterable[PathLike], type: str | None, on_bad: str, ids: Ids) -> Iterator[SequenceBatch]:
    """Batches of all files in order, all of the alphabet of the first, every name once."""
    letters = alphabet(type) if type else None
    for file in files:
        for batch in read_sequences(str(file), registry(), letters, on_bad=on_bad, ids=ids):
            letters = batch.alphabet
            yield batch
