"""The records that flow between stages: structs of arrays with a documented schema of named columns.

``Pairs`` → ``Seeds`` → ``Alignments`` → ``Hits`` with child ``Alignments``. A plugin may declare further typed columns:
they travel with the record, are stored, and appear in SQL. Query and target numbers are global in a run. Coordinates
are 0-based half-open on the forward strand of the sequence as stored; frames say which strand (±1) or translation
(±1…3) was read.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np

from .classes import dataclass
from .distinct import ranked

PATH_OPS = "MIDNSHP=X"
"""Residues of edit operations by their number (the numbering of the SAM specification, section 1.4.6)."""
INSERT, DELETE, MATCH, MISMATCH = 1, 2, 7, 8
"""Edit operations in use: query residues against a gap, target residues against a gap, equal, unequal residues."""

_DTYPES = {"i1": np.int8, "i4": np.int32, "i8": np.int64, "f4": np.float32, "f8": np.float64, "bool": np.bool_,
           "str": np.object_, "path": np.uint32}
COLUMN_TYPES = tuple(_DTYPES)
MANY_VALUES = 1 << 17
"""Of rows, from which on a kernel copies them, which has to be loaded."""


@dataclass(frozen=True)
class Column:
    """One named column.

    Attributes:
        name: lower-case identifier, also its name in SQL.
        type: "i1", "i4", "i8", "f4", "f8", "bool", "str", or "path" (a ragged column of u4).
        doc: meaning and unit, in a few words.
        nullable: whether values may be absent: NaN in floats, −1 in integers, None in strings, no operations in a path.
    """

    name: str
    type: str
    doc: str = ""
    nullable: bool = False

    @property
    def dtype(self) -> np.dtype:
        return np.dtype(_DTYPES[self.type])

    def absent(self, count: int) -> "np.ndarray | Ragged":
        """``count`` absent values."""
        if self.type == "path":
            return Ragged(np.zeros(count + 1, np.int64), np.empty(0, np.uint32))
        value = np.nan if self.type[0] == "f" else None if self.type == "str" else False if self.type == "bool" else -1
        return np.full(count, value, self.dtype)


@dataclass(frozen=True)
class Ragged:
    """Rows of various lengths: ``values[offsets[i]:offsets[i+1]]`` is row i. offsets i8[n+1]; values any dtype.

    width: the length of all rows where that is known to be one, else 0.
    """

    offsets: np.ndarray
    values: np.ndarray
    width: int = field(default=0, kw_only=True)

    @classmethod
    def of(cls, rows: Sequence[Any], dtype: Any = np.uint32) -> "Ragged":
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(r) for r in rows], out=offsets[1:])
        values = np.concatenate([np.asarray(r, dtype) for r in rows]) if len(rows) else np.empty(0, dtype)
        return cls(offsets, values)

    @classmethod
    def even(cls, rows: np.ndarray) -> "Ragged":
        """The rows of a matrix."""
        count, width = rows.shape
        return cls(np.arange(count + 1, dtype=np.int64) * width, np.ascontiguousarray(rows).reshape(-1), width=width)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self[i] for i in range(len(self)))

    @property
    def nbytes(self) -> int:
        return self.offsets.nbytes + self.values.nbytes

    def between(self, first: int, last: int) -> "Ragged":
        """Rows ``first`` … ``last`` − 1; their values aren't copied."""
        offsets = self.offsets[first : last + 1]
        values = self.values[offsets[0] : offsets[-1]]
        return Ragged(offsets - offsets[0] if offsets[0] else offsets, values, width=self.width)

    def take(self, index: np.ndarray) -> "Ragged":
        """Rows at ``index`` (integers or a bool mask), in that order."""
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64, copy=False)
        if len(index) and index[-1] - index[0] == len(index) - 1 and (np.diff(index) == 1).all():
            return self.between(index[0], index[-1] + 1)
        if self.width:
            return Ragged.even(self.values[self.offsets[0] : self.offsets[-1]].reshape(-1, self.width)[index])
        starts = self.offsets[:-1][index]
        lengths = self.offsets[1:][index] - starts
        offsets = np.zeros(len(index) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if offsets[-1] >= MANY_VALUES and self.values.dtype != object:
            from .ragged_cpu import copied_rows

            return Ragged(offsets, copied_rows(self.values, starts, offsets))
        return Ragged(offsets, self.values[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])])

    @classmethod
    def concat(cls, parts: Sequence["Ragged"]) -> "Ragged":
        widths = {part.width for part in parts if len(part)}
        values = [part.values[part.offsets[0] : part.offsets[-1]] for part in parts]
        if len(widths) == 1 and (width := widths.pop()):
            return cls.even(np.concatenate(values).reshape(-1, width))
        offsets, at, begin = np.zeros(sum(map(len, parts)) + 1, np.int64), 1, 0
        for part in parts if any(map(len, values)) else ():
            np.add(part.offsets[1:], begin - part.offsets[0], out=offsets[at : at + len(part)])
            at, begin = at + len(part), int(begin + part.offsets[-1] - part.offsets[0])
        return cls(offsets, np.concatenate(values))


class Records:
    """Base of the record types: equally long columns by name, read as attributes.

    Args:
        data: arrays by column name; nullable columns may be left out.
        extra: further columns. One with the name of a base column replaces it (a float score for an integer one).
        device: "host", or the CUDA device that the arrays are on.
    """

    columns: ClassVar[tuple[Column, ...]] = ()
    data: dict[str, Any]
    _make: Callable[[], Mapping[str, Any]]

    def __init__(self, data: Mapping[str, Any], extra: Iterable[Column] = (), device: str = "host") -> None:
        self.schema: dict[str, Column] = {c.name: c for c in (*self.columns, *extra)}
        self.device = device
        if unknown := sorted(set(data) - set(self.schema)):
            raise TypeError(f"{type(self).__name__} has no column {', '.join(unknown)}; declare it as extra")
        lengths = {len(values) for values in data.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of {type(self).__name__} differ in length: "
                             + ", ".join(f"{n} {len(v)}" for n, v in data.items()))
        self._length = lengths.pop() if lengths else 0
        self.data = {}
        for name, column in self.schema.items():
            if name not in data:
                if not column.nullable and self._length:
                    raise TypeError(f"{type(self).__name__} lacks its column '{name}'")
                self.data[name] = column.absent(self._length)
            elif column.type == "path" or device != "host":
                self.data[name] = data[name]
            else:
                self.data[name] = np.asarray(data[name], column.dtype)

    @classmethod
    def empty(cls, extra: Iterable[Column] = ()) -> Self:
        return cls({}, extra)

    @property
    def extra(self) -> tuple[Column, ...]:
        """Columns beyond those of the type, or in place of them."""
        base = {c.name: c for c in self.columns}
        return tuple(c for name, c in self.schema.items() if base.get(name) != c)

    @classmethod
    def later(cls, rows: int, make: Callable[[], Mapping[str, Any]], extra: Iterable[Column] = ()) -> Self:
        """Records of so many rows, whose columns are made when somebody asks for one.

        A stage that gives many rows can so hand them to the next in a form that both know, ``unmade``; to all others
        they are records like any other.
        """
        records = cls.empty(extra)
        del records.data
        records._length, records._make = rows, make
        return records

    @property
    def unmade(self) -> Callable[[], Mapping[str, Any]] | None:
        """What ``later`` was given, until it has been called."""
        return self.__dict__.get("_make")

    def __len__(self) -> int:
        return self._length

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_make" in own and (name == "data" or name in own["schema"]):
            own["data"] = type(self)(own["_make"](), self.extra).data
            del own["_make"]
        if name == "data" and "data" in own:
            return own["data"]
        try:
            return own["data"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no column '{name}'") from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows: {', '.join(self.schema)})"

    @property
    def nbytes(self) -> int:
        return sum(v.nbytes for v in self.data.values())

    def take(self, index: np.ndarray) -> Self:
        """Rows at ``index`` (integers or a bool mask), in that order."""
        index = np.asarray(index)
        index = np.flatnonzero(index) if index.dtype == bool else index.astype(np.int64, copy=False)
        return self._of({n: v.take(index) if isinstance(v, Ragged) else v[index] for n, v in self.data.items()},
                        len(index))

    def between(self, first: int, last: int) -> Self:
        """Rows ``first`` … ``last`` − 1; their columns aren't copied."""
        return self._of({n: v.between(first, last) if isinstance(v, Ragged) else v[first:last]
                         for n, v in self.data.items()}, last - first)

    def _of(self, data: dict[str, Any], rows: int) -> Self:
        """Records with the same columns, of which nothing needs to be checked again: many are of few rows."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__, data=data, _length=rows)
        return made

    def replace(self, extra: Iterable[Column] = (), **data: Any) -> Self:
        """The same rows with some columns set anew; ``extra`` declares columns that are new."""
        return type(self)({**self.data, **data}, (*self.extra, *extra), self.device)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """All rows of ``parts`` in order. Columns that only some parts have must be nullable."""
        parts = [p for p in parts if len(p)] or list(parts[:1])
        if not parts:
            return cls.empty()
        if len(parts) == 1:
            return parts[0]
        extra = {c.name: c for p in parts for c in p.extra}
        schema = {c.name: c for c in (*cls.columns, *extra.values())}
        data: dict[str, Any] = {}
        for name, column in schema.items():
            arrays: list[Any] = [p.data[name] if name in p.data else column.absent(len(p)) for p in parts]
            data[name] = Ragged.concat(arrays) if column.type == "path" else np.concatenate(arrays)
        return cls(data, extra.values())

    def rows(self) -> list[dict[str, Any]]:
        """Rows as dictionaries of Python values, for tests and people."""
        lists = {n: [r.tolist() for r in v] if isinstance(v, Ragged) else v.tolist() for n, v in self.data.items()}
        return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]


_KEYS = (Column("query", "i4", "global number of the query"), Column("target", "i8", "global number of the target"))


class Pairs(Records):
    """A query and a target worth looking at."""

    columns = (*_KEYS, Column("score", "i4", "of the stage that chose the pair"))


class Seeds(Records):
    """Places worth looking at: a stretch of a query opposite an equally long one of a target."""

    columns = (
        *_KEYS,
        Column("score", "i4", "of the stretch", nullable=True),
        Column("query_pos", "i4", "start, 0-based, on the forward strand"),
        Column("target_pos", "i4", "start, 0-based, on the forward strand"),
        Column("length", "i4", "residues"),
        Column("query_frame", "i1", "±1 strand, ±1…3 translation"),
        Column("target_frame", "i1", "±1 strand, ±1…3 translation"),
    )


class Alignments(Records):
    """Local alignments: HSPs, domains, matches. Children of a hit when they are reported.

    ``path`` holds run-length edit operations ``length << 4 | operation`` in the direction of ``query_frame``.
    """

    columns = (
        *_KEYS,
        Column("score", "i4", "raw score"),
        Column("query_start", "i4", "0-based, forward strand"),
        Column("query_end", "i4", "exclusive"),
        Column("target_start", "i4", "0-based, forward strand"),
        Column("target_end", "i4", "exclusive"),
        Column("query_frame", "i1", "±1 strand, ±1…3 translation"),
        Column("target_frame", "i1", "±1 strand, ±1…3 translation"),
        Column("anchor_query", "i4", "point that the alignment was extended from", nullable=True),
        Column("anchor_target", "i4", "point that the alignment was extended from", nullable=True),
        Column("bit_score", "f8", "bits", nullable=True),
        Column("evalue", "f8", "expected number of such alignments", nullable=True),
        Column("length", "i4", "columns of the alignment", nullable=True),
        Column("identities", "i4", "columns of equal residues", nullable=True),
        Column("positives", "i4", "columns of equal or similar residues", nullable=True),
        Column("mismatches", "i4", "columns of unequal residues", nullable=True),
        Column("gap_opens", "i4", "runs of gaps", nullable=True),
        Column("gaps", "i4", "columns with a gap", nullable=True),
        Column("path", "path", "edit operations, length << 4 | operation", nullable=True),
    )


class Hits(Records):
    """One per query and target that will be reported; ``alignments`` holds the children, in order of report.

    A child belongs to the hit with its query and target; children stand in the order in which they are reported
    within their hit.
    """

    columns = (
        *_KEYS,
        Column("score", "i4", "raw score of the hit"),
        Column("bit_score", "f8", "bits", nullable=True),
        Column("evalue", "f8", "expected number of such hits", nullable=True),
    )

    def __init__(self, data: Mapping[str, Any], extra: Iterable[Column] = (), device: str = "host",
                 alignments: Alignments | None = None) -> None:
        super().__init__(data, extra, device)
        self.alignments = Alignments.empty() if alignments is None else alignments

    def take(self, index: np.ndarray) -> "Hits":
        """Hits at ``index`` in that order, with their children in the order of the hits."""
        hits = super().take(index)
        hits.alignments = self.alignments.take(children_order(hits, self.alignments))
        return hits

    def between(self, first: int, last: int) -> "Hits":
        """Hits ``first`` … ``last`` − 1, with their children in the order of the hits."""
        hits = super().between(first, last)
        hits.alignments = self.alignments.take(children_order(hits, self.alignments))
        return hits

    def cut(self, first: int, last: int, begin: int, end: int) -> "Hits":
        """Hits ``first`` … ``last`` − 1, whose children are alignments ``begin`` … ``end`` − 1; nothing is copied."""
        hits = super().between(first, last)
        hits.alignments = self.alignments.between(begin, end)
        return hits

    def replace(self, extra: Iterable[Column] = (), **data: Any) -> "Hits":
        hits = super().replace(extra, **data)
        hits.alignments = self.alignments
        return hits

    def with_alignments(self, alignments: Alignments) -> "Hits":
        """The same hits with other children."""
        hits = self._of(self.data, len(self))
        hits.alignments = alignments
        return hits

    @classmethod
    def concat(cls, parts: Sequence["Hits"]) -> "Hits":
        hits = super().concat(parts)
        children = [p.alignments for p in parts]
        return Hits(hits.data, hits.extra, alignments=Alignments.concat(children) if children else None)


def children_order(hits: Records, alignments: Alignments) -> np.ndarray:
    """i8[m]: positions of those ``alignments`` that belong to ``hits``, grouped in the order of the hits, stable."""
    if not len(hits) or not len(alignments):
        return np.empty(0, np.int64)
    first = np.ones(len(alignments), np.bool_)  # of those that belong together
    first[1:] = ((alignments.query[1:] != alignments.query[:-1]) | (alignments.target[1:] != alignments.target[:-1]))
    if np.array_equal(alignments.query[first], hits.query) and np.array_equal(alignments.target[first], hits.target):
        return np.arange(len(alignments))  # they stand as the hits do, as they do most of the time
    targets, numbers = ranked(np.concatenate([hits.target, alignments.target]))
    keys = np.concatenate([hits.query, alignments.query]).astype(np.int64) * len(targets) + numbers
    of_hits, of_children = keys[: len(hits)], keys[len(hits) :]
    order = np.argsort(of_hits, kind="stable")
    found = np.minimum(np.searchsorted(of_hits[order], of_children), len(hits) - 1)
    kept = np.flatnonzero(of_hits[order[found]] == of_children)
    return kept[np.argsort(order[found[kept]], kind="stable")]


def path_text(path: np.ndarray) -> str:
    """CIGAR text of u4 operations, such as "12=1X3I"."""
    return "".join(f"{op >> 4}{PATH_OPS[op & 15]}" for op in path.tolist())


RECORD_TYPES: dict[str, type[Records]] = {t.__name__: t for t in (Pairs, Seeds, Alignments, Hits)}
