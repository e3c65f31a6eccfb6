"""Model databases as a search sees them: as its targets, and as its queries, which are read batch by batch."""

import threading
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from ...core.distinct import ranked
from ...core.engine.memory import cut_spans, longest_of_runs
from ...core.packed_texts import PackedTexts
from ...core.ports import Span, TargetInfo, TaxaFound
from ...core.sequences import ModelBatch, offsets_of
from .database import ModelFile, Unpack
from .rows import Rows
from .writing import CHUNK_BYTES

READING_BYTES = 40 << 20
"""What reading models bit by bit takes beside a run's data: buffers of DuckDB, chunks, and what it leaves scattered."""


class ModelDatabaseSource:
    """All models of one database as targets: a ``VolumeSource`` whose volumes are batches of models.

    Args:
        unpack: makes a model of what its reader packed.
    """

    kind = "model"

    def __init__(self, database: ModelFile, unpack: Unpack) -> None:
        self._database, self._unpack = database, unpack
        self.alphabet = database.alphabet
        self.sequences, self.longest = database.about.models, database.about.longest
        self.total_residues = database.about.positions
        self._lengths = database.lengths()
        self._starts, self._longest = offsets_of(self._lengths), longest_of_runs(self._lengths)

    def fingerprints(self) -> list[dict[str, Any]]:
        about = self._database.about
        return [{"path": str(self._database.path.resolve()), "fingerprint": about.fingerprint, "title": about.title,
                 "created": about.created, "first_target": 0, "sequences": self.sequences,
                 "letters": self.total_residues}]

    def parsed_names(self) -> list[bool | None]:
        return [None]

    def plan(self, residues: int) -> list[Span]:
        return cut_spans(self._lengths, residues, self._starts, self._longest)

    def read(self, span: Span) -> Any:
        """The models of a volume, a ``ModelBatch``."""
        return self.fetch(np.arange(span.first, span.last, dtype=np.int64))

    def fetch(self, numbers: np.ndarray) -> Any:
        """Models, names and descriptions of single targets (i8, ascending), a ``ModelBatch``."""
        return self._database.batch(self._database.rows(np.asarray(numbers, np.int64)), self._unpack)

    def info(self, numbers: np.ndarray) -> TargetInfo:
        numbers = np.asarray(numbers, np.int64)
        wanted, back = ranked(numbers)
        rows, places = self._database.rows(wanted), back.tolist()
        return TargetInfo(numbers, [rows.names[n] for n in places], [rows.descriptions[n] for n in places],
                          rows.lengths[back], np.zeros(len(numbers), np.int64), numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Numbers of those of ``names`` that are there, as names or accessions, with or without version."""
        return self._database.find(names)

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Models are of no organism."""
        return TaxaFound(np.empty(0, np.int64), frozenset(), (str(self._database.path),))


def model_queries(database: ModelFile, unpack: Unpack) -> ModelBatch:
    """All models of a database as queries, numbered from 0: names and lengths are there, the rest is read when it is
    asked for. The database stays open for as long as they are used."""
    rows = database.rows()
    database.lengths()  # says if they don't add up
    return ModelBatch(
        database.alphabet, StoredModels(database, unpack, rows), rows.lengths, rows.ordinals, rows.names,
        rows.accessions, rows.descriptions, StoredTexts(database, rows))


class _Stored:
    """Something of a stretch of the models of a database, of which a chunk is in memory at a time."""

    def __init__(self, database: ModelFile, rows: Rows, first: int, last: int) -> None:
        self._database, self._rows, self._first, self._last = database, rows, first, last
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._last - self._first

    def _bounds(self, part: slice) -> tuple[int, int]:
        first, last, _ = part.indices(len(self))
        return self._first + first, self._first + max(first, last)

    def _place(self, index: int) -> int:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._first + index % len(self)

    def _neighbours(self, place: int) -> tuple[int, int]:
        """The models of the same chunk: they are read together."""
        chunks = self._rows.chunks[self._first : self._last]
        first, last = np.searchsorted(chunks, chunks[place - self._first] + np.arange(2))
        return self._first + int(first), self._first + int(last)


class StoredModels(_Stored, Sequence[Any]):
    """Models of a database, read when they are asked for.

    A part of them (a slice) keeps those that it has read, as a batch of queries does, which is looked at again and
    again; the whole keeps those of one chunk.
    """

    def __init__(self, database: ModelFile, unpack: Unpack, rows: Rows, first: int = 0, last: int | None = None,
                 is_part: bool = False) -> None:
        super().__init__(database, rows, first, len(rows) if last is None else last)
        self._unpack, self._is_part = unpack, is_part
        self._held: dict[int, Any] = {}

    @property
    def nbytes(self) -> int:
        """Bytes that the whole takes, about, with what DuckDB does to read it."""
        return READING_BYTES + 256 * len(self)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "Sequence[Any]": ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return StoredModels(self._database, self._unpack, self._rows, *self._bounds(index), True)
        place = self._place(index)
        with self._lock:
            if place not in self._held:
                first, last = self._neighbours(place)
                models = self._database.unpacked(self._rows.part(first, last), self._unpack)
                read = dict(zip(range(first, last), models, strict=True))
                self._held = {**self._held, **read} if self._is_part else read
            return self._held[place]


class StoredTexts(_Stored, PackedTexts):
    """Texts of the models of a database, read when they are asked for."""

    def __init__(self, database: ModelFile, rows: Rows, first: int = 0, last: int | None = None) -> None:
        super().__init__(database, rows, first, len(rows) if last is None else last)

    @property
    def _packed(self) -> list[bytes]:  # type: ignore[override]
        return [*self._database.texts(self._rows.part(self._first, self._last))]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that they take while they are written, some at a time."""
        return 4 * CHUNK_BYTES

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> PackedTexts: ...
    def __getitem__(self, index: int | slice) -> "str | PackedTexts":
        if isinstance(index, slice):
            return StoredTexts(self._database, self._rows, *self._bounds(index))
        place = self._place(index)
        [packed] = self._database.texts(self._rows.part(place, place + 1))
        try:
            return PackedTexts([packed])[0]
        except Exception as error:  # the library's own kinds
            raise self._database.damaged(self._rows, place, f"its text can't be unpacked ({error})") from error
