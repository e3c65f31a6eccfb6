"""One finished run: its hits as tables, its alignments as text, its counters."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from .core import output_files
from .core.engine.engine import Engine
from .core.engine.masking import Maskers, Searching
from .core.engine.runner import Runner
from .core.errors import MissingPackageError, StoreError
from .core.pipeline import Plan
from .core.ports import Trace, VolumeSource
from .installed import registry
from .opening import whole
from .output_formats import check_name

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars
    import pyarrow

    from .storage.results.report import Reporting, RunResults
    from .storage.results.run_file import RunFile
    from .storage.results.store import ResultStore

WRITING = 4
"""Threads that a writer has at work on several blocks at a time, at most: more would wait for the interpreter."""
SHOWN = 20
"""Hits of a run that a notebook shows."""
Reopen = Callable[[], AbstractContextManager[VolumeSource | None]]
"""Gives what was searched; None where it is gone or has changed."""


def _models(source: str) -> Sequence[Any]:
    """The models that were kept with a run; none where their plugin is gone."""
    from .core.errors import StoreError
    from .storage.results.run_file import models_of

    try:
        return models_of(source, registry()).models
    except StoreError:
        return ()


class Run:
    """Results of a search. Rows stay where they are stored and are read when asked for.

    Attributes:
        id: unique identifier.
        plan: what ran: pipeline, options, stages.
        counts: queries and hits; None of a run that this process hasn't carried out.
    """

    def __init__(self, id: str, plan: Plan, home: "ResultStore | None", reopen: Reopen,
                 run_file: "RunResults | None" = None, engine: Engine | None = None) -> None:
        self.id, self.plan, self._home, self._reopen = id, plan, home, reopen
        self._run_file, self._trace = run_file, engine.trace if engine else Trace()
        self._engine = engine  # while its source is open
        last = plan.working("reduce") or plan.working("unit")
        self.counts = (engine.asked, engine.totals[last[-1].name].records_out) if engine else None

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
    def connection(self, alone: bool = False) -> "Iterator[tuple[duckdb.DuckDBPyConnection, int]]":
        """A connection on which the tables and views of the results can be read, and the number of this run in them.

        Args:
            alone: show the rows of this run alone, whatever else is in the store.
        """
        if self._run_file is not None:
            yield self._run_file.connection, self._run_file.number
        else:
            assert self._home is not None
            with self._home.open_run(self.id, views=True, alone=alone) as found:
                yield found

    @contextmanager
    def reporting(self, outfmt: str = "") -> "Iterator[Reporting]":
        """What writers are given of this run.

        Raises:
            StoreError: an output format that is named needs the databases, which aren't there any more.
        """
        with self._targets() as source, self._report(source) as report:
            if source is None:
                _check_writable(outfmt, self.plan)
            yield report

    def files(self, report: "Reporting") -> list[Any]:
        """The files that ``report`` reads, whose places no output takes."""
        return [self._home.path if self._home else None, *_paths(report)]

    @contextmanager
    def _report(self, source: VolumeSource | None) -> "Iterator[Reporting]":
        if self._run_file is not None:
            report = self._run_file.report(source, self.plan)
            if self._engine:
                report.loaded_targets = self._engine.loaded_targets
                report.loaded_models = self._engine.loaded_models
                report.threads = 1 if self._engine.settings.in_turn else min(WRITING, self._engine.settings.threads)
            yield self._with_plugins(report)
        else:
            from .storage.results.report import RunReport

            assert self._home is not None
            with self._home.open_run(self.id) as (connection, _):
                yield self._with_plugins(RunReport(connection, self.id, source, self.plan))

    def _with_plugins(self, report: "Reporting") -> "Reporting":
        report.read_models, report.mask = _models, Maskers(self.plan, registry(), Searching(Runner, whole)).masked
        return report

    def _table(self, view: str) -> "pyarrow.Table":
        order = "qnumber, rank" if view == "hits" else "qnumber, rank, number"
        return self._select(f"* EXCLUDE (run) FROM {view}", f"ORDER BY {order}")

    def _select(self, what: str, order: str = "") -> "pyarrow.Table":
        from .storage.duck.arrow import fetched

        with self.connection() as (connection, number):
            return fetched(connection, f"SELECT {what} WHERE run = {number} {order}")

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
        with _installed("pandas", "frames"):
            import pandas  # noqa: F401  # that it is there

        return self.alignments.to_pandas()

    def polars(self) -> "polars.DataFrame":
        """``alignments`` as a polars data frame."""
        with _installed("polars", "frames"):
            import polars

        frame = polars.from_arrow(self.alignments)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def relation(self) -> "duckdb.DuckDBPyRelation":
        """``alignments`` as a DuckDB relation, to go on in SQL: ``run.relation().filter("evalue < 1e-9")``."""
        import duckdb

        return duckdb.from_arrow(self.alignments)

    def sql(self, query: str, all_runs: bool = False) -> "pyarrow.Table":
        """Rows of an SQL query over the views and tables of the results, such as ``hits`` and ``hsps``.

        Args:
            query: one statement.
            all_runs: ask all runs of the store that holds this one, not this one alone.
        """
        from .storage.duck.arrow import fetched

        with self.connection(alone=not all_runs) as (connection, _), _asking():
            return fetched(connection, query)

    def write(self, out: "IO[str] | str | PathLike[str]", outfmt: str = "") -> None:
        """Write the results in an output format: its name and its fields, such as ``"6 qseqid sseqid evalue"``.

        Args:
            out: a text stream, or the path of a file, which appears only when whole; ".gz" or ".zst" at its end has it
                compressed.

        Raises:
            UsageError: there is no such format, or the file is one of the databases or the store.
            StoreError: the file can't be written.
        """
        words = (outfmt or self.plan.pipeline.writer).split()
        writer = registry().writer(words[0] if words else outfmt)()
        check_name(type(writer), isinstance(out, str | PathLike))
        with self.reporting(outfmt) as report:
            if isinstance(out, str | PathLike):
                reads = self.files(report)
                folder, name = os.path.split(os.path.abspath(out))
                for file, text in writer.files(report, name, words[1:]) if writer.several else ():
                    with output_files.text(os.path.join(folder, file), reads) as stream:
                        stream.writelines(text)
                if not writer.several:
                    with output_files.text(out, reads) as stream:
                        writer.write(report, stream, words[1:])
            else:
                writer.write(report, out, words[1:])

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
            return connection.execute(f"SELECT count(*) FROM hit WHERE run = {number}").fetchall()[0][0]

    def __repr__(self) -> str:
        return f"<Run {self.id}: {self.plan.pipeline.name}, {len(self):,} hits>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the overview and the best hits of the first query that has some."""
        text = io.StringIO()
        with self._report(None) as report:
            registry().writer("html")().write(report, text, [f"best={SHOWN}"])
        return text.getvalue()

    def plot(self, kind: str = "overview", query: str = "") -> "Picture":
        """A figure of the run, which a notebook shows; ``save`` makes a file of it.

        Args:
            kind: overview or coverage (of a query), dotplot, domains, identity, evalues, timings.
            query: whose hits are drawn; "" for the first query that has hits.

        Raises:
            UnknownNameError: there is no such figure or query.
            UsageError: the run has nothing that such a figure shows.
            MissingPackageError: Matplotlib isn't installed.
        """
        return Picture(self, kind, query)


class Picture:
    """A figure of a run, drawn when it is asked for: ``run.plot()``."""

    def __init__(self, run: Run, kind: str, query: str = "") -> None:
        self._run, self._what, self._query = run, kind, f" query={query}" if query else ""
        self._svg = self._drawn("svg").decode()

    def save(self, path: "str | PathLike[str]") -> None:
        """Write a file, whose name ends in .svg, .png or .pdf; it appears only when whole."""
        self._run.write(path, f"plot {self._what} {str(path).rpartition('.')[2].lower()}{self._query}")

    def _drawn(self, format: str) -> bytes:
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, "utf-8", newline="")
        self._run.write(stream, f"plot {self._what} {format}{self._query}")
        stream.flush()
        return raw.getvalue()

    def _repr_svg_(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return f"<{self._what} of {self._run!r}>"


def _check_writable(outfmt: str, plan: Plan) -> None:
    """Refuse a format that needs the databases, which are gone, before anything is printed."""
    from .output_formats import prints_residues
    from .storage.results.report import NO_SEQUENCES

    if prints_residues(outfmt, plan):
        raise StoreError(NO_SEQUENCES)


@contextmanager
def _asking() -> Iterator[None]:
    """Errors of DuckDB in somebody's query as ours."""
    from .storage.duck.native import duckdb

    try:
        yield
    except (duckdb.ProgrammingError, duckdb.DataError, duckdb.NotSupportedError) as error:
        raise StoreError(f"SQL: {error}") from None


@contextmanager
def _installed(package: str, extra: str) -> Iterator[None]:
    """Say how to install a package that isn't there."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(package, extra) from error

def _paths(report: "Reporting") -> list[str]:
    """Of the databases of a run that are files."""
    return [base["path"] for base in report.run.get("databases", ()) if base.get("path")]
