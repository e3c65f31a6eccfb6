"""Alignments and hits as tables of Arrow, with the columns of the views ``hsps`` and ``hits`` of a results store.

Columns of many queries are made at once. Texts that many rows share, such as names, stand once in a dictionary beside
the numbers of the rows; ``plain`` says what they are to who reads a file.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from seqloom.core.classes import NamedTuple

from ...core.distinct import ranked
from ...core.engine.threads import in_turn
from ...core.ports import QueryBlock, Taxon
from ...core.records import PATH_OPS, Alignments, Column, Hits, Ragged, Records
from ...core.text_rows import TextRows
from .lines import owners
from .runs_cpu import places_in_runs

if TYPE_CHECKING:
    import pyarrow

ROWS_AT_ONCE, BYTES_AT_ONCE = 122_880, 32 << 20
"""Rows of a table, and bytes, from which on further ones come in another."""
TYPES = {"i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "f4": "float32", "f8": "float64", "bool": "bool",
         "str": "string"}
"""Arrow's names of the types of columns; a path is a list of uint32."""
_LONGEST = 2**31 - 1
_SPLITTER = float((1 << 27) + 1)
_OPERATIONS = np.frombuffer(PATH_OPS.encode(), np.uint8)


class Numbers(NamedTuple):
    """A column of numbers, and bool[n] which are absent; None if none is."""

    values: np.ndarray
    absent: np.ndarray | None = None


class Shared(NamedTuple):
    """Texts that rows share, None (an empty row of u1) where there is none, and i8[n] which of them each row has."""

    texts: "Sequence[str | None] | Ragged"
    places: np.ndarray


class Single(NamedTuple):
    """The same, where few rows have the same text."""

    texts: Sequence[str]
    places: np.ndarray


class Rows:
    """Rows of some queries: their alignments, or their hits.

    Attributes:
        records: what the rows are of.
        hit, target, query: i8[n], place of each row's among the hits, the targets and the queries of the block.
    """

    def __init__(self, block: QueryBlock, level: str) -> None:
        self.block, hits = block, block.hits
        of_hits = np.searchsorted(block.targets.numbers, hits.target)
        self.records: Records = hits.alignments if level == "hsps" else hits
        self.of_alignments = owners(block, of_hits)
        self.hit = self.of_alignments if level == "hsps" else np.arange(len(hits))
        self.target = of_hits[self.hit]
        self.query = self.records.query - block.numbers[0]

    def known(self, name: str) -> Numbers:
        """A column of numbers."""
        column, values = self.records.schema[name], self.records.data[name]
        if not column.nullable:
            return Numbers(values)
        absent = np.isnan(values) if values.dtype.kind == "f" else values == -1
        return Numbers(values, absent if absent.any() else None)

    @cached_property
    def turned(self) -> np.ndarray:
        """bool[n]: query and target lie on different strands."""
        return self.records.query_frame * self.records.target_frame < 0

    @property
    def lengths(self) -> np.ndarray:
        """i8[n] of the queries."""
        return self.block.lengths[self.query]

    @property
    def rank(self) -> np.ndarray:
        """i8[n] of the row's hit among those of its query, from 1."""
        return places_in_runs(self.block.hits.query)[self.hit]

    @property
    def number(self) -> np.ndarray:
        """i8[n] of the alignment within its hit, from 1."""
        return places_in_runs(self.hit)

    @property
    def alignments(self) -> np.ndarray:
        """i8[n] of each hit."""
        return np.bincount(self.of_alignments, minlength=len(self.hit))

    @property
    def sign(self) -> np.ndarray:
        """i1[n] of the frame of the query."""
        return np.sign(self.records.query_frame)

    def ends(self, last: bool) -> np.ndarray:
        """i4[n]: where the alignments begin, or end, on the target, from 1, in the direction of the query."""
        return np.where(self.turned != last, self.records.target_end, self.records.target_start + 1)

    def share(self, name: str, decimals: int) -> Numbers:
        """f8[n]: per cent of the columns of the alignments."""
        part, whole = self.known(name), self.known("length")
        both = [absent for absent in (part.absent, whole.absent) if absent is not None]
        return Numbers(rounded(part.values / whole.values.astype(np.float64) * 100, decimals),
                       np.logical_or.reduce(both) if both else None)

    def coverage(self) -> np.ndarray:
        """Whole per cent of the queries that the alignments cover, as BLAST rounds them."""
        share = 100.0 * (self.records.query_end - self.records.query_start) / self.lengths
        return np.floor(share + np.where(share < 99, 0.5, 0.0))

    def taxon(self, field: str) -> Numbers | Shared | None:
        """What is known of the organisms of the targets; None where that is nothing."""
        values = [getattr(taxon, field) or None if taxon else None for taxon in self.block.targets.taxa]
        if not any(values):
            return None
        if field != "taxid":
            return Shared(values, self.target)
        absent = np.array([value is None for value in values], bool)
        return Numbers(np.array([value or 0 for value in values], np.int64)[self.target], absent[self.target])


Values: TypeAlias = np.ndarray | Numbers | Shared | Single | Ragged
Made: TypeAlias = Callable[[Rows], Values | None]


def _value(name: str) -> Made:
    return lambda rows: rows.known(name)


def _titles(rows: Rows) -> Shared:
    targets = rows.block.targets
    return Shared([f"{name} {text}" if text else name for name, text in zip(
        targets.names, targets.descriptions or [""] * len(targets.names), strict=True)], rows.target)


def _taxa() -> dict[str, tuple[str, Made]]:
    names = ("staxid", "ssciname", "scomname", "sblastname", "sskingdom")
    return {name: ("i4" if field == "taxid" else "str", partial(Rows.taxon, field=field))
            for name, field in zip(names, Taxon._fields, strict=True)}


_SEQUENCES: dict[str, tuple[str, Made]] = {
    "qseqid": ("str", lambda rows: Single(rows.block.names, rows.query)),
    "sseqid": ("str", lambda rows: Shared(rows.block.targets.names, rows.target)),
}
_SCORES: dict[str, tuple[str, Made]] = {"evalue": ("f8", _value("evalue")), "bitscore": ("f8", _value("bit_score"))}
_LENGTHS: dict[str, tuple[str, Made]] = {
    "qlen": ("i8", lambda rows: rows.lengths), "slen": ("i8", lambda rows: rows.block.targets.lengths[rows.target])}
LEVELS: dict[str, dict[str, tuple[str, Made]]] = {
    "hsps": {
        **_SEQUENCES, "pident": ("f8", lambda rows: rows.share("identities", 3)), "length": ("i4", _value("length")),
        "mismatch": ("i4", _value("mismatches")), "gapopen": ("i4", _value("gap_opens")),
        "qstart": ("i4", lambda rows: rows.records.query_start + 1), "qend": ("i4", _value("query_end")),
        "sstart": ("i4", lambda rows: rows.ends(False)), "send": ("i4", lambda rows: rows.ends(True)), **_SCORES,
        "score": ("f8", _value("score")), "nident": ("i4", _value("identities")),
        "positive": ("i4", _value("positives")), "ppos": ("f8", lambda rows: rows.share("positives", 2)),
        "gaps": ("i4", _value("gaps")), "qframe": ("i2", lambda rows: rows.sign * rows.records.query_frame),
        "sframe": ("i2", lambda rows: rows.sign * rows.records.target_frame),
        "sstrand": ("str", lambda rows: Shared(("plus", "minus"), rows.turned.astype(np.int64))), **_LENGTHS,
        "qcovhsp": ("i4", Rows.coverage), "stitle": ("str", _titles),
        "cigar": ("str", lambda rows: path_texts(rows.records.path, rows.records.query_frame < 0)),
        "rank": ("i4", lambda rows: rows.rank), "number": ("i4", lambda rows: rows.number), **_taxa()},
    "hits": {
        **_SEQUENCES, "rank": ("i4", lambda rows: rows.rank), "score": ("f8", _value("score")),
        "bitscore": _SCORES["bitscore"], "evalue": _SCORES["evalue"], "hsps": ("i8", lambda rows: rows.alignments),
        **_LENGTHS, "stitle": ("str", _titles), **_taxa()},
}
"""Columns of each view by name: their type, and what makes them."""
_RESERVED = {"run", "qnumber", "snumber", *(c.name for c in (*Hits.columns, *Alignments.columns)),
             *(name for columns in LEVELS.values() for name in columns)}


def tables(blocks: Iterable[QueryBlock], level: str, threads: int = 1) -> "Iterator[Sequence[pyarrow.Table]]":
    """All rows in the order of the queries, some hundred thousand at a time, in tables that ``joined`` makes one of;
    one table at least, if without rows.

    Args:
        threads: that make columns of several blocks at a time.
    """
    import pyarrow

    first: Records | None = None

    def with_rows() -> Iterator[QueryBlock]:
        nonlocal first
        for block in blocks:
            records: Records = block.hits.alignments if level == "hsps" else block.hits
            first = first if first is not None and len(first) else records
            if len(records):
                yield block

    def made(block: QueryBlock) -> "pyarrow.Table":
        assert first is not None
        return _table(Rows(block, level), _columns(first, level))

    # A table is all that is kept of a block: few of very many queries may have rows.
    waiting: list[Any] = []
    rows = held = 0
    for table in in_turn(threads, made, with_rows(), "columns"):
        waiting.append(table)
        rows, held = rows + len(table), held + table.nbytes
        if rows >= ROWS_AT_ONCE or held >= BYTES_AT_ONCE:
            yield waiting
            waiting, rows, held = [], 0, 0
    if waiting:
        yield waiting
    if first is None or not len(first):
        nothing = Alignments.empty() if level == "hsps" else Hits.empty()
        chosen = _columns(nothing if first is None else first, level)
        yield [pyarrow.table({name: pyarrow.nulls(0, _type(kind)) for name, (kind, _) in chosen.items()})]


def plain(schema: "pyarrow.Schema") -> "pyarrow.Schema":
    """The same without dictionaries."""
    import pyarrow

    return pyarrow.schema([(field.name, getattr(field.type, "value_type", field.type)
                            if pyarrow.types.is_dictionary(field.type) else field.type) for field in schema])


def _columns(records: Records, level: str) -> dict[str, tuple[str, Made]]:
    """Columns of a view, and those that stages have added."""
    base = {column.name for column in type(records).columns}
    return {**LEVELS[level], **{f"{column.name}_" if column.name in _RESERVED else column.name: (
        column.type, _extra(column)) for column in records.extra if column.name not in base}}


def _extra(column: Column) -> Made:
    def made(rows: Rows) -> Values:
        if column.name not in rows.records.data:
            return column.absent(len(rows.hit))
        return rows.records.data[column.name] if column.type in ("str", "path") else rows.known(column.name)

    return made


def _table(rows: Rows, columns: Mapping[str, tuple[str, Made]]) -> "pyarrow.Table":
    import pyarrow

    arrays = {}
    for name, (kind, made) in columns.items():
        values = made(rows)
        arrays[name] = pyarrow.nulls(len(rows.hit), _type(kind, True)) if values is None else _array(kind, values)
    return pyarrow.table(arrays)


def joined(parts: "Sequence[pyarrow.Table]") -> "pyarrow.Table":
    """Tables one behind the other, with one dictionary for each column."""
    import pyarrow

    if len(parts) == 1:
        return parts[0]
    return pyarrow.concat_tables(parts).unify_dictionaries().combine_chunks()


def _type(kind: str, few: bool = False) -> Any:
    import pyarrow

    if few and kind == "str":
        return pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    return pyarrow.list_(pyarrow.uint32()) if kind == "path" else pyarrow.type_for_alias(TYPES[kind])


def _array(kind: str, values: Values) -> Any:
    """An array of Arrow out of its buffers: ``pyarrow.array`` imports pandas, which takes longer than many a search."""
    import pyarrow

    if isinstance(values, Shared):
        return _shared(values)
    if isinstance(values, Single):
        return _texts(_encoded(values.texts)[0].take(values.places))
    if isinstance(values, Ragged):
        offsets = pyarrow.py_buffer(values.offsets.astype(np.int32))
        return pyarrow.Array.from_buffers(_type(kind), len(values), [_there(np.diff(values.offsets) == 0), offsets],
                                          children=[_numbers(pyarrow.uint32(), values.values)])
    if isinstance(values, np.ndarray) and values.dtype == object:
        return _texts(*_encoded(values.tolist()))
    numbers, absent = values if isinstance(values, Numbers) else (values, None)
    return _numbers(_type(kind), numbers.astype(np.dtype(kind), copy=False), absent)


def _shared(values: Shared) -> Any:
    import pyarrow

    if isinstance(values.texts, Ragged):
        texts, absent = values.texts, np.diff(values.texts.offsets) == 0
    else:
        texts, absent = _encoded(values.texts)
    places = _numbers(pyarrow.int32(), values.places.astype(np.int32, copy=False),
                      absent[values.places] if absent.any() else None)
    return pyarrow.DictionaryArray.from_arrays(places, _texts(texts))


def _encoded(texts: Sequence[str | None]) -> tuple[Ragged, np.ndarray]:
    """Rows of u1 of texts, and bool[n] which are none."""
    absent = np.zeros(len(texts), bool)
    if isinstance(texts, TextRows):
        return texts.rows, absent
    try:
        data = np.frombuffer("\n".join(texts).encode(), np.uint8)  # type: ignore[arg-type]
    except TypeError:
        absent[:] = [text is None for text in texts]
        return _encoded(["" if text is None else text for text in texts])[0], absent
    ends = data == ord("\n")
    bounds = np.concatenate([[-1], np.flatnonzero(ends), [len(data)]])
    if len(bounds) != len(texts) + 1:  # none at all, or one of several lines
        rows = [np.frombuffer(text.encode(), np.uint8) for text in texts]  # type: ignore[union-attr]
        return Ragged.of(rows, np.uint8), absent
    return Ragged(bounds + 1 - np.arange(len(bounds)), data[~ends]), absent


def _texts(rows: Ragged, absent: np.ndarray | None = None) -> Any:
    """Rows of u1 as an array of texts.

    Raises:
        OverflowError: they have more than 2^31 bytes.
    """
    import pyarrow

    if len(rows.values) > _LONGEST:
        raise OverflowError(f"texts of {len(rows.values):,} bytes are more than one column of Arrow holds")
    buffers = [_there(absent), *map(pyarrow.py_buffer, (rows.offsets.astype(np.int32), rows.values))]
    return pyarrow.Array.from_buffers(pyarrow.string(), len(rows), buffers)


def _numbers(kind: Any, values: np.ndarray, absent: np.ndarray | None = None) -> Any:
    import pyarrow

    data = np.packbits(values, bitorder="little") if values.dtype == bool else np.ascontiguousarray(values)
    return pyarrow.Array.from_buffers(kind, len(values), [_there(absent), pyarrow.py_buffer(data)])


def _there(absent: np.ndarray | None) -> Any:
    """Arrow's bits of what is there; None where nothing is absent."""
    import pyarrow

    return None if absent is None else pyarrow.py_buffer(np.packbits(~absent, bitorder="little"))


def rounded(values: np.ndarray, decimals: int) -> np.ndarray:
    """``values`` ≥ 0 with so many decimals, halves up, as DuckDB rounds them: by what they are, not by a product."""
    power = 10.0**decimals
    product = values * power
    below = np.floor(product)
    over = product - below - 0.5
    up = over > 0
    halves = np.flatnonzero(over == 0)
    if len(halves):  # Dekker's product: what the product lacks
        split = values[halves] * _SPLITTER
        upper = split - (split - values[halves])
        lacking = (values[halves] - upper) * power - (product[halves] - upper * power)
        up[halves] = lacking >= 0
    return (below + up) / power


def path_texts(paths: Ragged, turned: np.ndarray) -> Shared:
    """CIGAR texts of rows of u4 operations, backwards where bool[n] ``turned``."""
    lengths = np.diff(paths.offsets)
    if (lengths == 1).all():  # as those of exact matches are, most of them alike
        operations, places = ranked(paths.values)
        return Shared(_operations(np.arange(len(operations) + 1), operations), places)
    operations = paths.values
    if turned.any():
        first, last = np.repeat(paths.offsets[:-1], lengths), np.repeat(paths.offsets[1:], lengths) - 1
        places = np.arange(len(first))
        operations = operations[np.where(np.repeat(turned, lengths), first + last - places, places)]
    return Shared(_operations(paths.offsets, operations), np.arange(len(paths)))


def _operations(offsets: np.ndarray, operations: np.ndarray) -> Ragged:
    """Rows of u1: the texts of rows of operations."""
    counts = operations >> 4
    digits = 1 + np.searchsorted(10 ** np.arange(1, 9), counts, "right")
    ends = np.cumsum(digits + 1)
    text = np.empty(ends[-1] if len(ends) else 0, np.uint8)
    text[ends - 1] = _OPERATIONS[operations & 15]
    for place in range(int(digits.max(initial=0))):
        longer = digits > place
        text[ends[longer] - 2 - place] = ord("0") + counts[longer] % 10
        counts = counts // 10
    return Ragged(np.append(0, ends)[offsets], text)
