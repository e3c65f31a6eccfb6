"""One finished run: its hits as tables, its alignments as text, its counters."""

import io
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from .core.engine import Engine, Trace
from .core.pipeline import Plan
from .core.ports import VolumeSource
from .installed import registry

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

    from .storage.report import Reporting
    from .storage.result_store import ResultStore
    from .storage.run_file import RunFile
    from .storage.unkept_run import UnkeptRun

Reopen = Callable[[], AbstractContextManager[VolumeSource | None]]
"""Gives what was searched; None where it is gone or has changed."""


class Run:
    """Results of a search. Rows stay where they are stored and are read when asked for.

    Attributes:
        id: unique identifier.
        plan: what ran: pipeline, options, stages.
    """

    def __init__(self, id: str, plan: Plan, home: "ResultStore | None", reopen: Reopen,
                 run_file: "RunFile | UnkeptRun | None" = None, engine: Engine | None = None) -> None:
        self.id, self.plan, self._home, self._reopen = id, plan, home, reopen
        self._run_file, self._trace = run_file, engine.trace if engine else Trace()
        self._engine = engine  # while its source is open

    def release(self) -> None:
        """Let go of the databases and of what was read of them, and, where there is a store, have the run merged."""
        self._engine = None
        assert self._run_file is not None
        if self._home:
            if not self._home.take(cast("RunFile", self._run_file)):
                self._run_file.close()
            self._run_file = None
            self._home.merge_pending()
        else:
            self._run_file.release()

    def _targets(self) -> AbstractContextManager[VolumeSource | None]:
        return nullcontext(self._engine.source) if self._engine else self._reopen()

    @contextmanager
    def connection(self) -> "Iterator[tuple[duckdb.DuckDBPyConnection, int]]":
        """A connection on which the tables and views of the results can be read, and the number of this run in them."""
        if self._run_file is not None:
            yield self._run_file.connection, self._run_file.number
        else:
            assert self._home is not None
            with self._home.open_run(self.id) as found:
                yield found

    @contextmanager
    def _report(self, source: VolumeSource | None) -> "Iterator[Reporting]":
        if self._run_file is not None:
            report = self._run_file.report(source, self.plan)
            if self._engine:
                report.at_hand = self._engine.at_hand
            yield report
        else:
            from .storage.report import RunReport

            with self.connection() as (connection, _):
                yield RunReport(connection, self.id, source, self.plan)

    def _table(self, view: str) -> "pyarrow.Table":
        order = "qnumber, rank" if view == "hits" else "qnumber, rank, number"
        return self._select(f"* EXCLUDE (run) FROM {view}", f"ORDER BY {order}")

    def _select(self, what: str, order: str = "") -> "pyarrow.Table":
        with self.connection() as (connection, number):
            return connection.execute(f"SELECT {what} WHERE run = {number} {order}").to_arrow_table()

    @property
    def hits(self) -> "pyarrow.Table":
        """One row per query and target, best first."""
        return self._table("hits")

    @property
    def alignments(self) -> "pyarrow.Table":
        """One row per alignment (HSP, domain, match) with BLAST's names: qseqid, sseqid, pident, …; 1-based."""
        return self._table("hsps")

    def arrow(self) -> "pyarrow.Table":
        """``alignments`` as an Arrow table."""
        return self.alignments

    def pandas(self) -> "pandas.DataFrame":
        """``alignments`` as a pandas data frame."""
        return self.alignments.to_pandas()

    def polars(self) -> "polars.DataFrame":
        """``alignments`` as a polars data frame."""
        import polars

        frame = polars.from_arrow(self.alignments)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def relation(self) -> "duckdb.DuckDBPyRelation":
        """``alignments`` as a DuckDB relation, to go on in SQL: ``run.relation().filter("evalue < 1e-9")``."""
        import duckdb

        return duckdb.from_arrow(self.alignments)

    def sql(self, query: str) -> "pyarrow.Table":
        """Rows of an SQL query over the views ``hits`` and ``hsps`` of the store that holds this run."""
        with self.connection() as (connection, _):
            return connection.execute(query).to_arrow_table()

    def write(self, stream: IO[str], outfmt: str = "") -> None:
        """Write the results in an output format: its name and its fields, such as ``"6 qseqid sseqid evalue"``."""
        words = (outfmt or self.plan.pipeline.writer).split()
        writer = registry().writer(words[0])()
        with self._targets() as source, self._report(source) as report:
            writer.write(report, stream, words[1:])

    def show(self, stream: IO[str] | None = None) -> None:
        """Print the alignments for people."""
        self.write(stream or sys.stdout, "0")

    def __str__(self) -> str:
        text = io.StringIO()
        self.write(text, "0")
        return text.getvalue()

    @property
    def slots(self) -> "pyarrow.Table":
        """Per slot: plugin, back end, seconds, records in and out, counters."""
        return self._select("* EXCLUDE (run) FROM run_slots", "ORDER BY position")

    def explanation(self) -> list[str]:
        """For every followed target and query batch: the slots that had it, and the one that lost it."""
        lines = []
        with self._targets() as source:
            for batch, target in sorted(set(self._trace.seen) | set(self._trace.lost)):
                seen = self._trace.seen.get((batch, target), [])
                lost = self._trace.lost.get((batch, target))
                way = f"kept by {', '.join(seen)}; " if seen else ""
                assert source is not None  # there is no trace but of a run of this process
                name = source.info(np.array([target])).names[0]
                lines.append(f"{name} (query batch {batch + 1}): {way}{f'dropped by {lost}' if lost else 'reported'}")
        return lines

    def __len__(self) -> int:
        """Number of hits."""
        with self.connection() as (connection, number):
            return connection.execute(f"SELECT count(*) FROM hits WHERE run = {number}").fetchall()[0][0]

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.plan.pipeline.name}, {len(self):,} hits>"
