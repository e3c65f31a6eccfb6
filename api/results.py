"""The results store for programs: what was run, its hits by SQL and as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .core.errors import StoreError
from .core.units import parse_bytes
from .storage.results.store import ResultStore
from .store_path import results_path

if TYPE_CHECKING:
    import pyarrow

    from .run import Run


class Results:
    """All runs kept in one place: those in the store and those whose own files still stand beside it.

    Args:
        path: the store; ``SEQLOOM_RESULTS`` or ``seqloom.duckdb`` in the working directory when left out.

    A run is named by its number in the store, the beginning of its identifier, or "last": the one completed last.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = results_path(path)
        self._store = ResultStore(self.path)

    def runs(self) -> list[dict[str, Any]]:
        """Every run: number, id, state, pipeline, …; those in the store first, in the order in which they came there.

        A state is "complete" (in the store), "pending" (complete, waits to be merged), "incomplete" (can be resumed),
        "running" or "unreadable" (``error`` says why).
        """
        return self._store.runs()

    def check(self) -> None:
        """Refuse a store that isn't there.

        Raises:
            StoreError: neither the store nor a run beside it exists.
        """
        if not self.path.exists() and not self._store.runs_folder.exists():
            raise StoreError(f"there is no results store {self.path}; run a search, or give another one with --results")

    def show(self, run: str | int) -> dict[str, Any]:
        """Everything that is known of a run; ``slots`` is a list with what each slot did."""
        return self._store.show(run)

    def run(self, run: str | int) -> "Run":
        """A finished run: its tables, and its output in any format.

        Formats that print residues of targets need the databases, where and what they were.
        """
        from .searches import finished

        return finished(run, self.path)

    def resumable(self, run: str | int = "last") -> str | int:
        """``run``; for "last", the identifier of the run that was begun last of those that can be resumed.

        Raises:
            ResumeError: there is none.
        """
        return self._store.resumable(run)

    def merge(self) -> list[str]:
        """Bring finished runs into the store; returns their identifiers."""
        return self._store.merge_pending(age=0, strict=True)

    def delete(self, run: str | int) -> str:
        """Delete a run with all its rows; returns its identifier."""
        return self._store.delete(run)

    def sql(self, query: str, allow_files: bool = False, timeout: float | None = None,
            memory: "int | str | None" = None) -> "pyarrow.Table":
        """Rows of a query over the store, with the sequence databases of its runs attached under their files' names.

        Args:
            query: SQL; it can change nothing.
            allow_files: let it read and write other files.
            timeout: seconds after which it is stopped.
            memory: bytes, or a text such as "2G", that DuckDB may take.
        """
        return self._store.sql(query, allow_files=allow_files, timeout=timeout, memory=parse_bytes(memory))

    def rows(self, query: str, allow_files: bool = False, timeout: float | None = None,
             memory: "int | str | None" = None) -> "tuple[list[str], Sequence[tuple[Any, ...]]]":
        """Names of the columns of a query and its rows as Python's values; see ``sql``."""
        return self._store.rows(query, allow_files, timeout, parse_bytes(memory))

    def export(self, run: str | int, format: str, out: str | Path = "-", level: str = "hsps") -> int:
        """Write the hits of a run as "tsv", "csv", "parquet" or "jsonl"; returns the number of rows.

        ``level`` is "hsps" (alignments), "hits", "best_hits" or "coverage". A file appears only when whole; ".gz" or
        ".zst" at the end of its name has it compressed; it never takes the place of the store.
        """
        return self._store.export(run, format, out, level)

    def __repr__(self) -> str:
        return f"<Results {self.path}>"
