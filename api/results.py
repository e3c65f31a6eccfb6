"""The results store for programs: what was run, its hits by SQL and as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from .run import Run
from .searches import finished, results_path
from .storage.result_store import ResultStore

if TYPE_CHECKING:
    import pyarrow


class Results:
    """All runs kept in one place: those in the store and those whose own files still stand beside it.

    Args:
        path: the store; ``SEQLOOM_RESULTS`` or ``seqloom.duckdb`` in the working directory when left out.

    A run is named by its number in the store, the beginning of its identifier, or "last".
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = results_path(path)
        self._store = ResultStore(self.path)

    def runs(self) -> list[dict[str, Any]]:
        """Every run, oldest first: number, id, state ("stored", "pending", "incomplete", "running"), pipeline, …"""
        return self._store.runs()

    def show(self, run: str | int) -> dict[str, Any]:
        """Everything that is known of a run; ``slots`` is a list with what each slot did."""
        return self._store.show(run)

    def run(self, run: str | int) -> Run:
        """A finished run: its tables, and its output in any format.

        Formats that print letters of targets need the databases, where and what they were.
        """
        return finished(run, self.path)

    def merge(self) -> list[str]:
        """Bring finished runs into the store; returns their identifiers."""
        return self._store.merge_pending(age=0)

    def delete(self, run: str | int) -> str:
        """Delete a run with all its rows; returns its identifier."""
        return self._store.delete(run)

    def sql(self, query: str) -> "pyarrow.Table":
        """Rows of a query over the store, with the sequence databases of its runs attached under their files' names."""
        return self._store.sql(query)

    def export(self, run: str | int, format: str, out: str | Path = "-", level: str = "hsps") -> int:
        """Write the hits of a run as "tsv", "csv", "parquet" or "jsonl"; returns the number of rows.

        ``level`` is "hsps" (alignments), "hits", "best_hits" or "coverage".
        """
        return self._store.export(run, format, out, level)
