"""Results of one run as writers and people get them, from memory or from whatever file the run is in."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from seqloom.core.classes import NamedTuple

from ...core.alphabet import alphabet
from ...core.context import SearchSpace
from ...core.distinct import distinct
from ...core.engine.location import cut
from ...core.errors import DamagedError, StoreError, UnknownNameError
from ...core.packed_texts import PackedTexts
from ...core.ports import (
    MaskedTargets,
    Method,
    QueryBlock,
    QueryReport,
    QueryStatistics,
    ResultSink,
    SlotStats,
    TargetInfo,
    Taxon,
    VolumeSource,
)
from ...core.records import Alignments, Column, Hits, Ragged, children_order
from ...core.sequences import Intervals, SequenceBatch, offsets_of
from ..duck.connection import lacks_table, translated
from ..duck.literals import identifier, literal
from .columns import LEVELS, records_from, selected, stored_name
from .run_row import OF_SLOT, run_description
from .sql_columns import TAXA
from .views import taxa_are_kept

if TYPE_CHECKING:
    import duckdb

    from ...core.pipeline import Plan

NO_SEQUENCES = ("this output needs the sequences of the databases, which are not there any more or not what they were; "
                "put them back, or search again")
QUERIES_AT_ONCE, ROWS_AT_ONCE = 20_000, 50_000
"""Queries whose hits are in memory together, at most, and their hits and alignments, unless one query has more."""
MODELS_AT_ONCE = 64
"""Queries that are read together where they are models, which take more memory than their hits."""
SIZES_AT_ONCE = 200_000
"""Queries whose numbers of rows are asked for together."""
RESIDUES_AT_ONCE = 32 << 20
"""Residues of their targets up to which these are read together."""
TARGETS_AHEAD = 256
"""Targets that are read together where one is asked for after the other."""


class RunResults(ResultSink, Protocol):
    """The results of one run that this process carries out, in a file (``RunFile``) or in memory (``MemoryRun``).

    Attributes:
        id: unique identifier of the run.
        number: the run's number in the tables.
        is_open: whether the results can be read and added to.
    """

    id: str
    number: int
    is_open: bool

    @property
    def connection(self) -> "duckdb.DuckDBPyConnection":
        """On which tables and views can be queried."""

    def report(self, source: VolumeSource | None, plan: "Plan | None") -> "Reporting":
        """The results for writers."""

    def finish(self, state: str, seconds: float = 0.0, error: str | None = None,
               indexes: Mapping[str, SlotStats] | None = None) -> None:
        """Note how the run ended.

        Args:
            state: "complete", or "incomplete" for a run that can be resumed.
            seconds: of work in this process; they add up over resumptions.
            error: why it isn't done.
            indexes: statistics of the slots, from ``Engine.run``; those of index slots, which no commit brings, are
                added to what is kept.
        """

    def note(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep further plain data with the provenance of the run, behind what is kept there under this name."""

    def release(self) -> None:
        """Do without the databases from now on."""

    def close(self) -> None:
        """Let go of the results; those in a file stay there."""

    def discard(self) -> None:
        """Forget the results, and delete their file."""


OF_TAXON = tuple(TAXA.values())
"""Columns of ``targets`` that hold the fields of a ``Taxon``, in its order."""


class Asked(NamedTuple):
    """Queries as the first columns of a ``QueryBlock``."""

    numbers: np.ndarray
    names: Sequence[str]
    descriptions: Sequence[str]
    accessions: Sequence[str]
    lengths: np.ndarray
    residues: Ragged | None


class Reporting:
    """``Report`` of ``core.ports``, whatever keeps the rows: classes that derive from it say how they are read.

    Args:
        known: of the run: ``OF_RUN``, what its provenance says besides, and ``databases``.
        source: the databases of the run, for writers that print residues of targets.
        plan: what ran, for writers that need its options.
        later: gives those of ``known`` that take time to find out, by name.

    Attributes:
        loaded_targets: gives targets that are in memory, those with i8[k] ascending numbers among them; None without
        such. loaded_models: gives those of the queries first … last − 1 that are models, where they are at hand.
        read_models: gives the models of a text, where the queries are models and readers are there. mask: gives
        queries with the stretches that the run masks, where its plugins are there. threads: for writers. times: how
        many times ``QUERIES_AT_ONCE`` and ``ROWS_AT_ONCE`` are in memory together.
    """

    threads = 1
    times = 1
    loaded_targets: Callable[[np.ndarray], SequenceBatch | None] = staticmethod(lambda numbers: None)
    loaded_models: Callable[[int, int], Sequence[Any]] | None = None
    read_models: Callable[[str], Sequence[Any]] | None = None
    mask: Callable[[SequenceBatch], SequenceBatch] | None = None

    def __init__(self, known: dict[str, Any], source: VolumeSource | None, plan: "Plan | None",
                 later: Mapping[str, Callable[[], Any]] | None = None) -> None:
        self.source, self.plan = source, plan
        named: dict[str, Callable[[], Any]] = {}
        if source:
            named = {"longest_name": partial(_longest_name, source), "posted": partial(_posted, source)}
        self.run: Mapping[str, Any] = _Description(known, {**named, **(later or {})})
        self.method: Method | None = plan.family.method(plan.options) if plan else None
        self.stretch = plan.family.location(plan.options) if plan else None
        self._fetched: tuple[bytes, SequenceBatch] | None = None
        self._ahead: list[SequenceBatch] = []

    def sizes(self, first: int, last: int) -> np.ndarray:
        """i8[last − first]: hits and alignments of each of these queries."""
        raise NotImplementedError

    def asked(self, first: int, last: int, residues: bool) -> "Asked":
        """Queries first … last − 1, with residues where these are asked for."""
        raise NotImplementedError

    def sequence(self, number: int) -> SequenceBatch:
        """A query that is a sequence."""
        raise NotImplementedError

    def models(self, first: int, last: int) -> Sequence[Any]:
        """Models of queries first … last − 1; none where they are sequences, or can't be read."""
        return ()

    def hits(self, first: int, last: int) -> Hits:
        """Hits of these queries by query and rank; their children in the order of the hits."""
        raise NotImplementedError

    def targets(self, numbers: np.ndarray) -> TargetInfo:
        """Of targets that have hits, by ascending number."""
        raise NotImplementedError

    def passed(self, first: int, last: int) -> Iterable[tuple[int, str, int]]:
        """Query, slot and number of records that came out of it, of queries first … last − 1; each pair once."""
        raise NotImplementedError

    def slots(self) -> Sequence[Mapping[str, Any]]:
        """What each slot did, in order: ``OF_SLOT``."""
        raise NotImplementedError

    def blocks(self, residues: bool = False) -> Iterator[QueryBlock]:
        """Every query in order, also those without hits, many at a time.

        Args:
            residues: give residues of queries and, in ``sequences``, of the targets of their hits.

        Raises:
            StoreError: residues are asked for and the databases are not there.
        """
        if residues:
            self._databases()
        for low in range(0, self.run["queries"], SIZES_AT_ONCE):
            yield from self._blocks(low, min(low + SIZES_AT_ONCE, self.run["queries"]), residues)

    def _blocks(self, low: int, high: int, residues: bool) -> Iterator[QueryBlock]:
        """Of queries low … high − 1."""
        models = residues and self.run["query_type"] == "model"
        for first, last in self._spans(low, high, MODELS_AT_ONCE if models else QUERIES_AT_ONCE * self.times):
            yield from self._between(first, last, residues)

    def _spans(self, low: int, high: int, most: int) -> Iterator[tuple[int, int]]:
        """First query, and the one behind the last, of what is in memory together: of ``most`` queries at most."""
        rows = np.concatenate([[0], np.cumsum(self.sizes(low, high))])
        first = 0
        while first < len(rows) - 1:
            last = int(np.searchsorted(rows, rows[first] + ROWS_AT_ONCE * self.times, "right")) - 1
            last = min(max(last, first + 1), first + most, len(rows) - 1)
            yield low + first, low + last
            first = last

    def _between(self, first: int, last: int, residues: bool) -> Iterator[QueryBlock]:
        parsed = bool((self.run.get("options") or {}).get("parse_deflines"))
        hits = self.hits(first, last)
        passed: dict[int, dict[str, int]] = {}
        for query, slot, records in self.passed(first, last):
            passed.setdefault(query, {})[slot] = records
        block = QueryBlock(
            *self.asked(first, last, residues), hits, self._with_parsed(self.targets(distinct(hits.target))),
            models=(self.loaded_models or self.models)(first, last) if residues else (), stretch=self.stretch,
            parsed=parsed, passed=passed)
        yield from self._with_targets(block) if residues else (block,)

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        """The same, one at a time."""
        for block in self.blocks(residues):
            yield from block.queries()

    def _with_targets(self, block: QueryBlock) -> Iterator[QueryBlock]:
        """A block with residues of its targets; cut where these would be too many together."""
        first = 0
        while first < len(block):
            last = len(block) if int(block.targets.lengths.sum()) <= RESIDUES_AT_ONCE else _in_reach(block, first)
            part = block.between(first, last)
            yield replace(part, sequences=self._fetch(part.targets.numbers))
            first = last

    def _with_parsed(self, targets: TargetInfo) -> TargetInfo:
        """The same, and whether their names are taken apart."""
        flags = np.array(self.run.get("parsed_names") or [], bool)
        if not flags.any():
            return targets
        return replace(targets, parsed=flags[targets.databases].tolist())

    def _fetch(self, numbers: np.ndarray) -> SequenceBatch:
        """Residues of targets; the last ones are kept, since many queries may have the same few targets."""
        key = numbers.tobytes()
        if self._fetched is None or self._fetched[0] != key:
            self._fetched = key, self.loaded_targets(numbers) or self._databases().fetch(numbers)
        return self._fetched[1]

    def target(self, number: int) -> np.ndarray:
        """u8 residues of any target by its global number. Some behind it are read along.

        Raises:
            StoreError: the databases are not there.
        """
        for batch in self._ahead:
            if int(batch.ordinals[0]) <= number <= int(batch.ordinals[-1]):
                return batch.by_ordinal(number)
        source = self._databases()
        numbers = np.arange(number, min(number + TARGETS_AHEAD, source.sequences), dtype=np.int64)
        together = int(np.searchsorted(np.cumsum(source.info(numbers).lengths), RESIDUES_AT_ONCE, "right"))
        # The last two reads are kept: who goes through the targets in two places at once asks for either in turns.
        self._ahead = [source.fetch(numbers[: max(1, together)]), *self._ahead[:1]]
        return self._ahead[0].by_ordinal(number)

    def masked(self, number: int) -> np.ndarray:
        """i4[m, 2]: start and end of the stretches of a query that were masked, apart and in order; none of a model."""
        if self.mask is None or self.run["query_type"] == "model":
            return np.empty((0, 2), np.int32)
        found = self.mask(cut(self.sequence(number), self.stretch))
        begin = self.stretch[0] if self.stretch else 0
        return Intervals.from_mask(~found.indexable(), found.offsets).of_sequence(0) + np.int32(begin)

    def masked_targets(self, numbers: np.ndarray) -> Intervals:
        """Stretches of the mask of the databases that held for i8[k] ascending numbers of targets, by position in
        these; none where there is no mask, or no database."""
        mask = self.plan.family.target_mask(self.plan.options) if self.plan is not None else None
        if mask is None or not isinstance(self.source, MaskedTargets):
            return Intervals.empty()
        return self.source.stretches(mask.name, numbers)

    def statistics(self, number: int) -> QueryStatistics | None:
        """Of a query; None for one that nothing can be found with, or without such statistics."""
        if self.plan is None or self.mask is None or self.run["query_type"] == "model":
            return None
        space = SearchSpace(**self.run["space"])
        query = cut(self.sequence(number), self.stretch)
        return self.plan.family.statistics(self.mask(query), space, self.plan.options)

    def _databases(self) -> VolumeSource:
        if self.source is None:
            raise StoreError(NO_SEQUENCES)
        return self.source


class RunReport(Reporting):
    """Of a run in a file.

    Args:
        connection: any connection on which the tables of ``result_schema`` can be read.
        run_id: unique identifier of the run.
        source, plan: see ``Reporting``.
        where: the file, for messages about it; who opened it says them where it is left out.

    Raises:
        UnknownNameError: no such run in this file.
    """

    def __init__(self, connection: "duckdb.DuckDBPyConnection", run_id: str, source: VolumeSource | None = None,
                 plan: "Plan | None" = None, where: "Path | str | None" = None) -> None:
        self.connection, self._where = connection, where
        rows = self._ask(f"SELECT run FROM runs WHERE id::VARCHAR = {literal(run_id)}").fetchall()
        if not rows:
            raise UnknownNameError("run", run_id)
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

    def sizes(self, first: int, last: int) -> np.ndarray:
        sizes = np.zeros(last - first, np.int64)
        for level in LEVELS:
            found = self._ask(
                f"SELECT query, count(*) AS size FROM {level} WHERE run = {self.number} AND query >= {first} "
                f"AND query < {last} GROUP BY query").fetchnumpy()
            sizes[found["query"] - first] += found["size"]
        return sizes

    def asked(self, first: int, last: int, residues: bool) -> "Asked":
        coded = residues and self.run["query_type"] != "model"
        rows = self._ask(
            f"SELECT query, name, description, accession, length, {'residues' if coded else 'NULL'} FROM queries "
            f"WHERE run = {self.number} AND query >= {first} AND query < {last}").fetchall()
        numbers, *texts, lengths, codes = zip(*sorted(rows, key=lambda row: row[0]), strict=True)
        names, descriptions, accessions = ([text or "" for text in column] for column in texts)
        known = None if codes[0] is None else Ragged(offsets_of(lengths), np.frombuffer(b"".join(codes), np.uint8))
        return Asked(np.array(numbers), names, descriptions, accessions, np.array(lengths), known)

    def sequence(self, number: int) -> SequenceBatch:
        return kept_queries(self.connection, self.run["query_type"], f"WHERE run = {self.number} AND query = {number}")

    def models(self, first: int, last: int) -> Sequence[Any]:
        if self.read_models is None or self.run["query_type"] != "model":
            return ()
        return self.read_models(kept_models(
            self.connection, f"WHERE run = {self.number} AND query >= {first} AND query < {last}"))

    def passed(self, first: int, last: int) -> Iterable[tuple[int, str, int]]:
        from ..duck.native import duckdb

        try:
            return self._ask(f"SELECT query, slot, sum(records)::BIGINT FROM passed WHERE run = {self.number} "
                             f"AND query >= {first} AND query < {last} GROUP BY query, slot").fetchall()
        except (StoreError, duckdb.Error) as error:
            if lacks_table(error):  # a file of an earlier revision; to ask what tables there are takes 4 ms
                return ()
            raise

    def slots(self) -> Sequence[Mapping[str, Any]]:
        rows = self._ask(f"SELECT {', '.join(OF_SLOT)} FROM run_slots WHERE run = {self.number} "
                         "ORDER BY position").fetchall()
        return [dict(zip(OF_SLOT, row, strict=True)) for row in rows]

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
        chosen = ", ".join(selected(level, column) for column in columns)
        arrays = self._ask(f"SELECT {chosen} {source}").fetchnumpy()
        for name in (n for n, t in types.items() if t == "path"):
            items = self._ask(
                f"SELECT unnest(path) AS item FROM (SELECT {identifier(name)} AS path {source})").fetchnumpy()["item"]
            offsets = np.concatenate([[0], np.cumsum(np.asarray(arrays[name], np.int64))])
            arrays[name] = Ragged(offsets, np.asarray(items, np.uint32))
        return records_from(level, extra, arrays)

    def targets(self, numbers: np.ndarray) -> TargetInfo:
        if not len(numbers):
            return TargetInfo(numbers, [], [], numbers, numbers, numbers)
        taxon = f", {', '.join(OF_TAXON)}" if taxa_are_kept(self.connection) else ""
        rows = self._ask(
            f"SELECT target, name, description, length, database, ordinal{taxon} FROM targets "
            f"WHERE run = {self.number} AND target BETWEEN {numbers[0]} AND {numbers[-1]}").fetchall()
        wanted = set(numbers.tolist())
        rows = sorted((row for row in rows if row[0] in wanted), key=lambda row: row[0])
        taxa = [Taxon(row[6], *(text or "" for text in row[7:])) if taxon and row[6] else None for row in rows]

        def column(index: int) -> np.ndarray:
            return np.array([row[index] for row in rows], np.int64)

        return TargetInfo(column(0), [row[1] for row in rows], [row[2] or "" for row in rows], column(3), column(4),
                          column(5), taxa if any(taxa) else ())

    def _ask(self, sql: str) -> "duckdb.DuckDBPyConnection":
        with translated(self._where) if self._where else nullcontext():
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
    """Residues of the longest name of all targets."""
    return max(map(len, source.info(np.arange(source.sequences)).names), default=0)


def _posted(source: VolumeSource) -> list[datetime | None]:
    """When each database was made, in UTC; None for those that are none but sequences in a file or in memory."""
    return [base.get("created") for base in source.fingerprints()]


def _in_reach(block: QueryBlock, first: int) -> int:
    """Behind how many queries from ``first`` on their targets have more residues than may be in memory.

    One query is always within reach, and so are others with no other targets.
    """
    owners, lengths = np.searchsorted(block.targets.numbers, block.hits.target), block.targets.lengths
    seen = np.zeros(len(lengths), np.bool_)
    together, most = 0, RESIDUES_AT_ONCE
    for n in range(first, len(block)):
        own = owners[slice(*block.first_hits[[n, n + 1]].tolist())]
        new = distinct(own[~seen[own]])
        together += int(lengths[new].sum())
        seen[new] = True
        if n == first:
            most = max(most, together)
        elif together > most:
            return n
    return len(block)


def kept_queries(connection: "duckdb.DuckDBPyConnection", kind: str, which: str = "") -> SequenceBatch:
    """Sequences that were the queries of a run.

    Args:
        connection: any connection on which the tables of ``result_schema`` can be read.
        kind: name of their alphabet.
        which: a WHERE clause.
    """
    rows = connection.execute(f"SELECT query, name, description, residues, lower FROM queries {which}").fetchall()
    rows.sort(key=lambda row: row[0])
    lower = [(i, s, e) for i, row in enumerate(rows) for s, e in zip((row[4] or ())[::2], (row[4] or ())[1::2])]
    return SequenceBatch(
        alphabet(kind), np.frombuffer(b"".join(row[3] for row in rows), np.uint8),
        offsets_of([len(row[3]) for row in rows]), np.array([row[0] for row in rows], np.int64), Intervals.of(lower),
        names=[row[1] for row in rows], descriptions=[row[2] for row in rows])


def kept_models(connection: "duckdb.DuckDBPyConnection", which: str = "") -> str:
    """The text of the models that were the queries of a run; ``which`` is a WHERE clause.

    Raises:
        DamagedError: a text can't be unpacked.
    """
    rows = connection.execute(f"SELECT query, source, residues FROM queries {which}").fetchall()
    rows.sort(key=lambda row: row[0])
    try:
        return "".join(source or (PackedTexts([packed])[0] if packed else "") for _, source, packed in rows)
    except Exception as error:  # the library's own kinds
        raise DamagedError(f"the models that are kept with the run can't be unpacked ({error})") from error
