"""``seqloom export``: hits of a run as a file for other programs."""

from typing import Annotated

from .helping import OutOption, ResultsOption, RunArgument, command, group, option
from .output import check_place, placed, say

app = group("")

LEVELS = "the view whose rows are written"


@command(app, "export")
def export(
    run: RunArgument,
    format: Annotated[str, option("--format", metavar="tsv|csv|parquet|jsonl", help="what to write")] = "tsv",
    level: Annotated[str, option("--level", metavar="hsps|hits|best_hits|coverage", help=LEVELS)] = "hsps",
    out: OutOption = None,
    results: ResultsOption = None,
) -> None:
    """Write the hits of a run as TSV with a header, CSV, Parquet or JSON lines."""
    from seqloom.results import Results

    store = Results(results)
    check_place(out)
    if out is None or out == "-":
        store.export(run, format, "-", level)
        return
    with placed(out) as place:
        rows = store.export(run, format, place, level)
    say(f"{out}: {rows:,} rows")
