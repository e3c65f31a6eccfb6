"""What database files of every kind have in common for programs."""

from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

from .budget import reading_share, writing_share
from .storage.duck.database_file import DatabaseFile

PathLike = str | Path
File = TypeVar("File", bound=DatabaseFile)


class OpenDatabase(Generic[File]):
    """One database file.

    Use as a context manager, or call ``close``. Any number of processes can have it open for searching; appending needs
    it alone.
    """

    _counted: ClassVar[str]
    """Of ``info``, the number of what it holds."""

    def __init__(self, database: File, memory: int | None = None) -> None:
        self._database, self._memory = database, memory

    @property
    def path(self) -> Path:
        return Path(self._database.path)

    def info(self) -> dict[str, Any]:
        """Title, type, numbers, fingerprint, revision."""
        return self._database.info()

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return self.info()[self._counted]

    def _open_for_writing(self) -> None:
        if self._database.read_only:
            self._database.close()
            self._database = self._database.open(self.path, False, duckdb_share(self._memory, False))


def title_of(files: tuple[PathLike, ...]) -> str:
    """Of a database that is made of these and given no title."""
    return ", ".join(Path(f).name if str(f) != "-" else "standard input" for f in files)


def duckdb_share(memory: int | None, read_only: bool) -> int | None:
    """What DuckDB may take of a budget for the whole process."""
    if memory is not None:
        from .storage.duck.native import duckdb

        duckdb.connect().close()  # what DuckDB begins with is a good part of what the program itself takes
    return reading_share(memory) if read_only else writing_share(memory)
