"""``seqloom export``: hits of a run as a file for other programs."""

from typing import Annotated

from .helping import OutOption, ResultsOption, RunArgument, command, group, option
from .output import check_place

app = group("")

LEVELS = "a row per query and target, or a row per alignment"


@command(app, "export")
def export(
    run: RunArgument,
    format: Annotated[str, option("--format", metavar="tsv|csv|parquet|jsonl", help="what to write")] = "tsv",
    level: Annotated[str, option("--level", metavar="hits|hsps", help=LEVELS)] = "hsps",
    out: OutOption = None,
    results: ResultsOption = None,
) -> None:
    """Write the hits of a run as TSV with a header, CSV, Parquet or JSON lines."""
    from seqloom.results import Results

    check_place(out)
    Results(results).export(run, format, out, level)
