"""``seqloom sql``: questions to the stored results."""

from typing import Annotated

from .helping import OutOption, ResultsOption, TableOption, argument, command, group
from .output import check_place, opened, show

app = group("")


@command(app, "sql")
def sql(
    query: Annotated[str, argument("QUERY", "SQL; - reads it from standard input")],
    results: ResultsOption = None,
    format: TableOption = "table",
    out: OutOption = None,
) -> None:
    """Query the stored results.

    Views: hits, hsps, best_hits, reciprocal_best_hits, coverage. Tables: runs, run_slots, run_databases, queries,
    targets.
    """
    import sys

    from seqloom.results import Results

    check_place(out)
    table = Results(results).sql(sys.stdin.read() if query == "-" else query)
    with opened(out) as stream:
        show(table.column_names, zip(*(c.to_pylist() for c in table.columns), strict=True), format, stream)
