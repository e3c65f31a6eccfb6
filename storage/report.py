"""Results of one run as writers and people get them, from whatever file the run is in."""

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import StoreError, UnknownNameError
from ..core.ports import QueryReport, TargetInfo, VolumeSource
from ..core.records import Alignments, Column, Hits, Ragged, children_order
from ..core.sequences import SequenceBatch
from .literals import identifier, literal
from .result_rows import LEVELS, records_from, stored_name

if TYPE_CHECKING:
    import duckdb

    from ..core.pipeline import Plan

QUERIES_AT_ONCE = 500
"""Queries whose hits are in memory together."""
LETTERS_AT_ONCE = 32 << 20
"""Letters of their targets up to which these are read together."""
TARGETS_AHEAD = 256
"""Targets that are read together where one is asked for after the other."""


class RunReport:
    """Implements ``Report`` of ``core.ports`` on a connection to a run file or a results store.

    Args:
        connection: any connection on which the tables of ``result_schema`` can be read.
        run_id: unique identifier of the run.
        source: the databases of the run, for writers that print residues of targets.
        plan: what ran, for writers that need its options.

    Raises:
        UnknownNameError: no such run in this file.
    """

    def __init__(self, connection: "duckdb.DuckDBPyConnection", run_id: str, source: VolumeSource | None = None,
                 plan: "Plan | None" = None) -> None:
        self.connection, self.source, self.plan = connection, source, plan
        rows = connection.execute(f"SELECT run FROM runs WHERE id::VARCHAR = {literal(run_id)}").fetchall()
        if not rows:
            raise UnknownNameError("run", run_id)
        self.number: int = rows[0][0]
        self.run: Mapping[str, Any] = _Description(run_description(connection, self.number), source)
        self.scoring: Any = None
        self._fetched: tuple[bytes, SequenceBatch] | None = None
        self._ahead: list[SequenceBatch] = []

    @cached_property
    def extra(self) -> dict[str, list[Column]]:
        """Extra columns of the run's hits and alignments, by level."""
        found: dict[str, list[Column]] = {"hit": [], "alignment": []}
        rows = self.connection.execute("SELECT level, name, type, doc, nullable FROM extra_columns "
                                       f"WHERE run = {self.number} ORDER BY level, position").fetchall()
        for level, name, kind, doc, nullable in rows:
            found[level].append(Column(name, kind, doc, nullable))
        return found

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        """Every query in order, also those without hits.

        Args:
            residues: give residues of queries and, in ``sequences``, of the targets of their hits.

        Raises:
            StoreError: residues are asked for and the databases are not at hand.
        """
        if residues:
            self._databases()
        count = self.run["queries"]
        for first in range(0, count, QUERIES_AT_ONCE):
            yield from self._some(first, first + QUERIES_AT_ONCE, residues)

    def _some(self, first: int, last: int, residues: bool) -> Iterator[QueryReport]:
        rows = self.connection.execute(
            f"SELECT query, name, accession, description, length, {'residues' if residues else 'NULL'} FROM queries "
            f"WHERE run = {self.number} AND query >= {first} AND query < {last}").fetchall()
        hits = self._records("hit", first, last, "query, rank")
        children = self._records("alignment", first, last, "query, number, target")
        assert isinstance(hits, Hits) and isinstance(children, Alignments)
        known = self._targets(np.unique(hits.target))
        together = int(known.lengths.sum()) <= LETTERS_AT_ONCE
        children = children.take(children_order(hits, children))
        alone = Hits(hits.data, hits.extra)
        rows.sort(key=lambda row: row[0])
        bounds = zip(*(np.searchsorted(records.query, [row[0] for row in rows], side).tolist()
                       for records in (hits, children) for side in ("left", "right")), strict=True)
        for (number, name, accession, description, length, letters), (low, high, begin, end) in zip(rows, bounds):
            own = alone.between(low, high).with_alignments(children.between(begin, end))
            info = _pick(known, np.searchsorted(known.numbers, np.unique(own.target)))
            sequences = self._fetch((known if together else info).numbers) if residues else None
            codes = None if letters is None else np.frombuffer(letters, np.uint8)
            yield QueryReport(number, name, description or "", length, codes, own, info, sequences, accession or "")

    def _fetch(self, numbers: np.ndarray) -> SequenceBatch:
        """Residues of targets; the last ones are kept, since many queries may have the same few targets."""
        key = numbers.tobytes()
        if self._fetched is None or self._fetched[0] != key:
            self._fetched = key, self._databases().fetch(numbers)
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
            raise StoreError("this output needs the sequences of the databases, which are not at hand")
        return self.source

    def _records(self, level: str, first: int, last: int, order: str) -> Any:
        """Records of some queries in a total order."""
        extra = self.extra[level]
        columns = {c.name: c for c in (*LEVELS[level].columns, *extra)}.values()
        types = {stored_name(level, c): c.type for c in columns}
        source = f"FROM {level} WHERE run = {self.number} AND query >= {first} AND query < {last} ORDER BY {order}"
        # A list a row takes long to make in Python: how long they are, and what is in them, are asked for apart.
        chosen = (f"coalesce(len({identifier(n)}), 0) AS {identifier(n)}" if t == "path" else identifier(n)
                  for n, t in types.items())
        arrays = self.connection.execute(f"SELECT {', '.join(chosen)} {source}").fetchnumpy()
        for name in (n for n, t in types.items() if t == "path"):
            items = self.connection.execute(
                f"SELECT unnest(path) AS item FROM (SELECT {identifier(name)} AS path {source})").fetchnumpy()["item"]
            offsets = np.concatenate([[0], np.cumsum(np.asarray(arrays[name], np.int64))])
            arrays[name] = Ragged(offsets, np.asarray(items, np.uint32))
        return records_from(level, extra, arrays)

    def _targets(self, numbers: np.ndarray) -> TargetInfo:
        if not len(numbers):
            return TargetInfo(numbers, [], [], numbers, numbers, numbers)
        rows = self.connection.execute(
            "SELECT target, name, description, length, database, ordinal FROM targets "
            f"WHERE run = {self.number} AND target BETWEEN {numbers[0]} AND {numbers[-1]}").fetchall()
        wanted = set(numbers.tolist())
        rows = sorted(row for row in rows if row[0] in wanted)

        def column(index: int) -> np.ndarray:
            return np.array([row[index] for row in rows], np.int64)

        return TargetInfo(column(0), [row[1] for row in rows], [row[2] or "" for row in rows], column(3), column(4),
                          column(5))


class _Description(Mapping[str, Any]):
    """What is known of a run, and ``longest_name`` when asked for: letters of the longest name of all its targets."""

    def __init__(self, known: dict[str, Any], source: VolumeSource | None) -> None:
        self._known, self._source = known, source

    def __getitem__(self, key: str) -> Any:
        if key == "longest_name" and key not in self._known and self._source is not None:
            names = self._source.info(np.arange(self._source.sequences)).names
            self._known[key] = max(map(len, names), default=0)
        return self._known[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _pick(info: TargetInfo, index: np.ndarray) -> TargetInfo:
    places = index.tolist()
    return TargetInfo(info.numbers[index], [info.names[i] for i in places], [info.descriptions[i] for i in places],
                      info.lengths[index], info.databases[index], info.ordinals[index])


def run_description(connection: "duckdb.DuckDBPyConnection", number: int) -> dict[str, Any]:
    """Everything that is known of a run: its columns, and what its provenance says besides, and its databases."""
    names = ("run", "id", "state", "pipeline", "family", "command", "version", "host", "started", "finished", "seconds",
             "backend", "threads", "query_type", "target_type", "queries", "letters", "sequences", "options",
             "provenance", "error")
    chosen = ", ".join("id::VARCHAR" if n == "id" else n for n in names)
    row = connection.execute(f"SELECT {chosen} FROM runs WHERE run = {number}").fetchall()[0]
    run = dict(zip(names, row))
    run["options"], run["provenance"] = (json.loads(run[n] or "{}") for n in ("options", "provenance"))
    run = {**run["provenance"], **run}
    keys = ("path", "fingerprint", "title", "sequences", "letters", "first_target")
    run["databases"] = [
        dict(zip(keys, values)) for values in connection.execute(
            f"SELECT {', '.join(keys)} FROM run_databases WHERE run = {number} ORDER BY number").fetchall()]
    return run
