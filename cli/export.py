"""``seqloom export``: hits of a run as a file for other programs."""

from typing import Annotated

from .helping import OutOption, ResultsOption, RunArgument, command, group, option
from .output import say

app = group("")

LEVELS = "the view whose rows are written"


@command(app, "export", "export last --format parquet -o hits.parquet")
def export(
    run: RunArgument,
    format: Annotated[str, option("--format", metavar="tsv|csv|parquet|jsonl", help="what to write")] = "tsv",
    level: Annotated[str, option("--level", metavar="hsps|hits|best_hits|coverage", help=LEVELS)] = "hsps",
    out: OutOption = None,
    results: ResultsOption = None,
) -> None:
    """Write the hits of a run as TSV with a header, CSV, Parquet or JSON lines."""
    from seqloom.results import Results

    rows = Results(results).export(run, format, out or "-", level)
    if out not in (None, "-"):
        say(f"{out}: {rows:,} {'row' if rows == 1 else 'rows'}")
