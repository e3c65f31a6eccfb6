"""Results of one run as writers and people get them, from memory or from whatever file the run is in."""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.distinct import distinct
from ..core.errors import StoreError, UnknownNameError
from ..core.ports import QueryReport, TargetInfo, VolumeSource
from ..core.records import Alignments, Column, Hits, Ragged, children_order
from ..core.sequences import SequenceBatch
from .connection import translated
from .literals import identifier, literal
from .result_rows import LEVELS, records_from, stored_name
from .run_row import OF_DATABASE, OF_RUN

if TYPE_CHECKING:
    import duckdb

    from ..core.pipeline import Plan

QUERIES_AT_ONCE, ROWS_AT_ONCE = 500, 50_000
"""Queries whose hits are in memory together, at most, and their hits and alignments, unless one query has more."""
LETTERS_AT_ONCE = 32 << 20
"""Letters of their targets up to which these are read together."""
TARGETS_AHEAD = 256
"""Targets that are read together where one is asked for after the other."""


class Reporting:
    """``Report`` of ``core.ports``, whatever keeps the rows: classes that derive from it say how they are read.

    Args:
        known: of the run: ``OF_RUN``, what its provenance says besides, and ``databases``.
        source: the databases of the run, for writers that print residues of targets.
        plan: what ran, for writers that need its options.
        later: gives those of ``known`` that take time to find out, by name.

    Attributes:
        at_hand: gives targets that are in memory, those with i8[k] ascending numbers among them; None without such.
    """

    at_hand: Callable[[np.ndarray], SequenceBatch | None] = staticmethod(lambda numbers: None)

    def __init__(self, known: dict[str, Any], source: VolumeSource | None, plan: "Plan | None",
                 later: Mapping[str, Callable[[], Any]] | None = None) -> None:
        self.source, self.plan = source, plan
        named = {"longest_name": partial(_longest_name, source)} if source else {}
        self.run: Mapping[str, Any] = _Description(known, {**named, **(later or {})})
        self.scoring: Any = None
        self._fetched: tuple[bytes, SequenceBatch] | None = None
        self._ahead: list[SequenceBatch] = []

    def sizes(self) -> np.ndarray:
        """i8[queries]: hits and alignments of each query."""
        raise NotImplementedError

    def query_rows(self, first: int, last: int, residues: bool) -> list[tuple[int, str, str, str, int, Any]]:
        """Number, name, accession, description, length and, where asked for, codes of queries first … last − 1."""
        raise NotImplementedError

    def hits(self, first: int, last: int) -> Hits:
        """Hits of these queries by query and rank; their children in the order of the hits."""
        raise NotImplementedError

    def targets(self, numbers: np.ndarray) -> TargetInfo:
        """Of targets that have hits, by ascending number."""
        raise NotImplementedError

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        """Every query in order, also those without hits.

        Args:
            residues: give residues of queries and, in ``sequences``, of the targets of their hits.

        Raises:
            StoreError: residues are asked for and the databases are not at hand.
        """
        if residues:
            self._databases()
        rows = np.concatenate([[0], np.cumsum(self.sizes())])
        first = 0
        while first < len(rows) - 1:
            last = int(np.searchsorted(rows, rows[first] + ROWS_AT_ONCE, "right")) - 1
            last = min(max(last, first + 1), first + QUERIES_AT_ONCE)
            yield from self._some(first, last, residues)
            first = last

    def _some(self, first: int, last: int, residues: bool) -> Iterator[QueryReport]:
        rows, hits = self.query_rows(first, last, residues), self.hits(first, last)
        alone, children = hits.with_alignments(Alignments.empty()), hits.alignments
        known = self.targets(distinct(hits.target))
        together = int(known.lengths.sum()) <= LETTERS_AT_ONCE
        bounds = zip(*(np.searchsorted(records.query, [row[0] for row in rows], side).tolist()
                       for records in (hits, children) for side in ("left", "right")), strict=True)
        for (number, name, accession, description, length, letters), (low, high, begin, end) in zip(rows, bounds):
            own = alone.between(low, high).with_alignments(children.between(begin, end))
            info = picked(known, np.searchsorted(known.numbers, distinct(own.target)))
            sequences = self._fetch((known if together else info).numbers) if residues else None
            codes = None if letters is None else np.frombuffer(letters, np.uint8)
            yield QueryReport(number, name, description or "", length, codes, own, info, sequences, accession or "")

    def _fetch(self, numbers: np.ndarray) -> SequenceBatch:
        """Residues of targets; the last ones are kept, since many queries may have the same few targets."""
        key = numbers.tobytes()
        if self._fetched is None or self._fetched[0] != key:
            self._fetched = key, self.at_hand(numbers) or self._databases().fetch(numbers)
        return self._fetched[1]

    def target(self, number: int) -> np.ndarray:
        """u8 residues of any target by its global number. Some behind it are read along.

        Raises:
            StoreError: the databases are not at hand.
        """
        for batch in self._ahead:
            if int(batch.ordinals[0]) <= number <= int(batch.ordinals[-1]):
                return batch.by_ordinal(number)
        source = self._databases()
        numbers = np.arange(number, min(number + TARGETS_AHEAD, source.sequences), dtype=np.int64)
        together = int(np.searchsorted(np.cumsum(source.info(numbers).lengths), LETTERS_AT_ONCE, "right"))
        # The last two reads are kept: who goes through the targets in two places at once asks for either in turns.
        self._ahead = [source.fetch(numbers[: max(1, together)]), *self._ahead[:1]]
        return self._ahead[0].by_ordinal(number)

    def _databases(self) -> VolumeSource:
        if self.source is None:
            raise StoreError("this output needs the sequences of the databases, which are not at hand or not what they "
                             "were; put them back, or search again")
        return self.source


class RunReport(Reporting):
    """Of a run in a file.

    Args:
        connection: any connection on which the tables of ``result_schema`` can be read.
        run_id: unique identifier of the run.
        source, plan: see ``Reporting``.

    Raises:
        UnknownNameError: no such run in this file.
    """

    def __init__(self, connection: "duckdb.DuckDBPyConnection", run_id: str, source: VolumeSource | None = None,
                 plan: "Plan | None" = None) -> None:
        rows = connection.execute(f"SELECT run FROM runs WHERE id::VARCHAR = {literal(run_id)}").fetchall()
        if not rows:
            raise UnknownNameError("run", run_id)
        self.connection = connection
        self.number: int = rows[0][0]
        super().__init__(run_description(connection, self.number), source, plan)

    @cached_property
    def extra(self) -> dict[str, list[Column]]:
        """Extra columns of the run's hits and alignments, by level."""
        found: dict[str, list[Column]] = {"hit": [], "alignment": []}
        rows = self._ask("SELECT level, name, type, doc, nullable FROM extra_columns "
                                       f"WHERE run = {self.number} ORDER BY level, position").fetchall()
        for level, name, kind, doc, nullable in rows:
            found[level].append(Column(name, kind, doc, nullable))
        return found

    def sizes(self) -> np.ndarray:
        sizes = np.zeros(self.run["queries"], np.int64)
        for level in LEVELS:
            found = self._ask(
                f"SELECT query, count(*) AS size FROM {level} WHERE run = {self.number} GROUP BY query").fetchnumpy()
            sizes[found["query"]] += found["size"]
        return sizes

    def query_rows(self, first: int, last: int, residues: bool) -> list[tuple[int, str, str, str, int, Any]]:
        rows = self._ask(
            f"SELECT query, name, accession, description, length, {'residues' if residues else 'NULL'} FROM queries "
            f"WHERE run = {self.number} AND query >= {first} AND query < {last}").fetchall()
        return sorted(rows, key=lambda row: row[0])

    def hits(self, first: int, last: int) -> Hits:
        hits = self._records("hit", first, last, "query, rank")
        children = self._records("alignment", first, last, "query, number, target")
        assert isinstance(hits, Hits) and isinstance(children, Alignments)
        return hits.with_alignments(children.take(children_order(hits, children)))

    def _records(self, level: str, first: int, last: int, order: str) -> Any:
        """Records of some queries in a total order."""
        extra = self.extra[level]
        columns = {c.name: c for c in (*LEVELS[level].columns, *extra)}.values()
        types = {stored_name(level, c): c.type for c in columns}
        source = f"FROM {level} WHERE run = {self.number} AND query >= {first} AND query < {last} ORDER BY {order}"
        # A list a row takes long to make in Python: how long they are, and what is in them, are asked for apart.
        chosen = (f"coalesce(len({identifier(n)}), 0) AS {identifier(n)}" if t == "path" else identifier(n)
                  for n, t in types.items())
        arrays = self._ask(f"SELECT {', '.join(chosen)} {source}").fetchnumpy()
        for name in (n for n, t in types.items() if t == "path"):
            items = self._ask(
                f"SELECT unnest(path) AS item FROM (SELECT {identifier(name)} AS path {source})").fetchnumpy()["item"]
            offsets = np.concatenate([[0], np.cumsum(np.asarray(arrays[name], np.int64))])
            arrays[name] = Ragged(offsets, np.asarray(items, np.uint32))
        return records_from(level, extra, arrays)

    def targets(self, numbers: np.ndarray) -> TargetInfo:
        if not len(numbers):
            return TargetInfo(numbers, [], [], numbers, numbers, numbers)
        rows = self._ask(
            "SELECT target, name, description, length, database, ordinal FROM targets "
            f"WHERE run = {self.number} AND target BETWEEN {numbers[0]} AND {numbers[-1]}").fetchall()
        wanted = set(numbers.tolist())
        rows = sorted(row for row in rows if row[0] in wanted)

        def column(index: int) -> np.ndarray:
            return np.array([row[index] for row in rows], np.int64)

        return TargetInfo(column(0), [row[1] for row in rows], [row[2] or "" for row in rows], column(3), column(4),
                          column(5))

    def _ask(self, sql: str) -> "duckdb.DuckDBPyConnection":
        with translated("the results"):
            return self.connection.execute(sql)


class _Description(Mapping[str, Any]):
    """What is known of a run, and what is found out when it is asked for."""

    def __init__(self, known: dict[str, Any], later: dict[str, Callable[[], Any]]) -> None:
        self._known, self._later = known, later

    def __getitem__(self, key: str) -> Any:
        if key in self._later:
            self._known[key] = self._later[key]()
            del self._later[key]
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter([*self._known, *self._later])

    def __len__(self) -> int:
        return len(self._known) + len(self._later)


def _longest_name(source: VolumeSource) -> int:
    """Letters of the longest name of all targets."""
    return max(map(len, source.info(np.arange(source.sequences)).names), default=0)


def picked(info: TargetInfo, index: np.ndarray) -> TargetInfo:
    places = index.tolist()
    return TargetInfo(info.numbers[index], [info.names[i] for i in places], [info.descriptions[i] for i in places],
                      info.lengths[index], info.databases[index], info.ordinals[index])


def run_description(connection: "duckdb.DuckDBPyConnection", number: int) -> dict[str, Any]:
    """Everything that is known of a run: its columns, and what its provenance says besides, and its databases."""
    chosen = ", ".join("id::VARCHAR" if n == "id" else n for n in OF_RUN)
    row = connection.execute(f"SELECT {chosen} FROM runs WHERE run = {number}").fetchall()[0]
    databases = connection.execute(
        f"SELECT {', '.join(OF_DATABASE)} FROM run_databases WHERE run = {number} ORDER BY number").fetchall()
    run = dict(zip(OF_RUN, row))
    run["options"], run["provenance"] = (json.loads(run[n] or "{}") for n in ("options", "provenance"))
    return {**run["provenance"], **run, "databases": [dict(zip(OF_DATABASE, values)) for values in databases]}
