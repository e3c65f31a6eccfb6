"""``seqloom sql``: questions to the stored results."""

from typing import Annotated

from .helping import MemoryOption, OutOption, ResultsOption, TableOption, argument, command, group, option
from .output import opened, say, show

app = group("")
SHOWN = 1000
"""Rows that a terminal gets of a table."""


@command(app, "sql", "sql 'SELECT qseqid, sseqid, evalue FROM last_hits ORDER BY evalue LIMIT 5'")
def sql(
    query: Annotated[str, argument("QUERY", "SQL; - reads it from standard input")],
    results: ResultsOption = None,
    format: TableOption = "table",
    out: OutOption = None,
    allow_files: Annotated[bool, option("--allow-files", help="let the query read and write other files")] = False,
    timeout: Annotated[str | None, option("--timeout", metavar="SECONDS", help="stop the query then")] = None,
    memory: MemoryOption = None,
) -> None:
    """Query the stored results.

    Views: hits, hsps, last_hits, last_hsps (of the last run), best_hits, reciprocal_best_hits, coverage. Tables: runs,
    run_slots, run_databases, queries, targets. The sequence databases of the runs are attached under the names of
    their files. A query can change nothing.
    """
    import sys

    from seqloom.core.errors import UsageError
    from seqloom.results import Results

    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise UsageError("no SQL: " + ("there is nothing on standard input" if query == "-" else "the query is empty"))
    try:
        seconds = None if timeout is None else float(timeout)
    except ValueError:
        seconds = 0.0
    if seconds is not None and not 0 < seconds < 1e9:
        raise UsageError(f"--timeout needs a number of seconds above 0, not '{timeout}'")
    columns, rows = Results(results).rows(text, allow_files, seconds, memory)
    left = 0
    if format == "table" and out in (None, "-") and sys.stdout.isatty() and len(rows) > SHOWN:
        left, rows = len(rows) - SHOWN, rows[:SHOWN]
    with opened(out) as stream:
        show(columns, rows, format, stream)
    if left:
        say(f"{left:,} more rows; -o FILE or --format tsv gives all")
