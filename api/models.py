"""Model databases for programs: create, open, look inside, extract, check."""

import io
from collections.abc import Iterable, Iterator
from typing import Any, Self

from .core.errors import DamagedError, InputError, PluginError, UsageError
from .core.progress import Progress
from .core.sequences import ModelBatch
from .core.stages import Reader
from .inputs import begin_reading, on_bad_of, read_models
from .installed import registry
from .open_database import OpenDatabase, PathLike, duckdb_share, title_of
from .storage.models.database import ModelFile
from .storage.models.sources import StoredTexts, model_queries

LEAST_MEMORY = 16 << 20
"""Bytes for DuckDB to read models that are queries, where memory is limited."""
POSITIONS = 1 << 17
"""Positions of the models that are in memory while a database is made, about: some 15 MB."""


class ModelDatabase(OpenDatabase[ModelFile]):
    """One model database file: profiles that were read once and are searched with as they are stored.

    Use as a context manager, or call ``close``. Any number of processes can have it open for searching; appending needs
    it alone.
    """

    _counted = "models"

    @classmethod
    def create(cls, path: PathLike, *files: PathLike, on_bad: str = "error", title: str = "",
               memory: int | None = None, progress: Progress | None = None) -> Self:
        """Make a database from files of models (plain, gzip, bzip2, xz, zstd; "-" is standard input).

        Args:
            path: file to make; must not exist. Nothing is left there when anything goes wrong.
            on_bad: "error" stops at the first model whose name is there already, "skip" reports and leaves it out.
            title: shown by ``info``; the files' names when left out.
            memory: bytes that the process may take, about.
            progress: told of the bytes that are read; its cancellation stops the work.
        """
        packer = _Packer()
        made = ModelFile.create(path, _read(files, on_bad, {}, packer, progress), packer, title or title_of(files),
                                duckdb_share(memory, False))
        return cls(made, memory)

    @classmethod
    def open(cls, path: PathLike, read_only: bool = True, memory: int | None = None) -> Self:
        """Open an existing database."""
        return cls(ModelFile.open(path, read_only, duckdb_share(memory, read_only)), memory)

    def append(self, *files: PathLike, on_bad: str = "error", progress: Progress | None = None) -> None:
        """Add the models of more files behind those that are there. All of them are added, or none.

        Args:
            progress: told of the bytes that are read; its cancellation stops the work.
        """
        packer = _Packer(reader_of(self._database))
        names = {row["name"]: f"model {row['ordinal'] + 1:,} of the database" for row in self._database.list()}
        self._open_for_writing()
        self._database.append(_read(files, on_bad, names, packer, progress), packer)

    def models(self, like: str = "") -> Iterator[dict[str, Any]]:
        """Ordinal, name, accession, length and description of every model, or of those whose name matches an SQL
        pattern."""
        return self._database.list(like)

    def extract(self, names: "Iterable[str] | None" = None) -> Iterator[str]:
        """Texts of models as they were read, in the order of ``names``, which may be accessions; None for all."""
        rows = self._database.rows()
        texts = StoredTexts(self._database, rows)
        places = range(len(rows)) if names is None else self._database.ordinals(names).tolist()
        return (texts[place] for place in places)

    def check(self, progress: Progress | None = None) -> list[str]:
        """Problems found by reading everything, comparing checksums and parsing every text anew; empty when all is
        well.

        Args:
            progress: told of the positions that are checked; its cancellation stops the work.
        """
        from .storage.models.check import problems

        reader = reader_of(self._database)

        def remake(text: str) -> tuple[bytes, bytes]:
            where = f"{self.path}: a text that is stored"
            try:
                batches = [*reader.read(io.BytesIO(text.encode("utf-8", "surrogateescape")), where, None,
                                        on_bad_of("error"), POSITIONS)]
            except InputError as error:
                raise DamagedError(str(error)) from error
            models = [model for batch in batches if isinstance(batch, ModelBatch) for model in batch.models]
            return reader.pack(models[0]) if len(models) == 1 else (b"", b"")

        return problems(self._database, remake, progress)

    def __repr__(self) -> str:
        info = self.info()
        return f"<ModelDatabase {self.path.name}: {info['models']:,} models, {info['positions']:,} positions>"


class _Packer:
    """Packs models by the reader of their files, which is one for all of a database."""

    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader

    def take(self, reader: Reader) -> None:
        """Models that this reader reads come next."""
        if not reader.packing:
            raise InputError(f"models of the format {reader.name} can't be stored; search with their file as it is")
        if self._reader and reader.name != self._reader.name:
            raise InputError(f"models of the formats {self._reader.name} and {reader.name} can't be in one database; "
                             "make one for each")
        self._reader = self._reader or reader

    @property
    def _known(self) -> Reader:
        assert self._reader is not None
        return self._reader

    @property
    def name(self) -> str:
        return self._known.name

    @property
    def packing(self) -> int:
        return self._known.packing

    def pack(self, model: Any) -> tuple[bytes, bytes]:
        """See ``Reader.pack``."""
        return self._known.pack(model)


def _read(files: Iterable[PathLike], on_bad: str, names: dict[str, str], packer: _Packer,
          progress: Progress | None) -> Iterator[ModelBatch]:
    """Batches of all files in order, every name once; ``names`` are those that are taken, and where."""
    tell = on_bad_of(on_bad)
    if tell.renames:
        raise UsageError("--on-bad must be error or skip for models: their names stand in their texts")
    begin_reading(progress, files)
    for file in files:
        where = "standard input" if str(file) == "-" else str(file)
        for batch in read_models(str(file), registry(), residues=POSITIONS, progress=progress,
                                 chosen=packer.take):
            yield _new(batch, where, tell, names)


def _new(batch: ModelBatch, where: str, tell: Any, names: dict[str, str]) -> ModelBatch:
    """The models whose names aren't taken, which they are from now on."""
    kept = []
    for n, name in enumerate(batch.names):
        if name in names:
            tell(where, 0, f"model '{name}' is there already, {names[name]}", "rename one of them")
        else:
            kept.append(n)
            names[name] = f"in {where}"
    return batch if len(kept) == len(batch) else ModelBatch.concat([batch.take(n, n + 1) for n in kept] or
                                                                   [batch.take(0, 0)])


def reader_of(database: ModelFile) -> Reader:
    """The reader of the models of a database.

    Raises:
        PluginError: it isn't installed, or what it packs is no longer what the database holds.
    """
    about = database.about
    reader = next((reader for kind in registry().readers() if (reader := kind()).name == about.reader), None)
    if reader is None:
        raise PluginError(f"{database.path}: no installed plugin reads models of the format '{about.reader}'; install "
                          "the one that does")
    if reader.packing != about.packing:
        raise PluginError(
            f"{database.path}: its models are packed by version {about.packing} of '{reader.name}', and this is "
            f"version {reader.packing}; make it anew from its texts: seqloom db extract {database.path} all -o "
            "models.txt, then seqloom db create NEW.duckdb --models models.txt")
    return reader


def queries_of(path: PathLike, memory: int | None = None) -> ModelBatch:
    """All models of a database as queries, which are read when they are asked for."""
    # Chunks are read one after the other and kept by who asked for them: DuckDB needs little beside its share for
    # targets.
    database = ModelFile.open(path, memory=None if memory is None else LEAST_MEMORY)
    return model_queries(database, reader_of(database).unpack)


__all__ = ["ModelDatabase"]
