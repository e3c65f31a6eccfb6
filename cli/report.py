"""``seqloom report``: runs as a page to look at."""

from typing import Annotated

from .helping import RESULTS, ResultsOption, argument, command, group, option
from .output import opened

app = group("")


@command(app, "report", "report last -o report.html")
def report(
    runs: Annotated[list[str], argument("RUN...", "number, beginning of the id, or last; two runs are compared")],
    out: Annotated[str | None, option("-o", "--out", metavar=RESULTS, help="file to write  [default: stdout]")] = None,
    size: Annotated[str, option("--size", metavar="SIZE", help="of the page, about, as 20M; the best hits that fit are "
                                "on it")] = "4800K",
    results: ResultsOption = None,
) -> None:
    """A page for a browser: overview, tables to sort and filter, alignments, figures, times, provenance.

    It is one file that needs no network. Of two runs it also shows what one has that the other hasn't.
    """
    from seqloom.core.errors import UsageError
    from seqloom.reports import write_report
    from seqloom.results import Results

    if len(runs) > 2:
        raise UsageError(f"{len(runs)} runs are given; a report is of one, or of two that are compared")
    store = Results(results)
    found = [store.run(run) for run in runs]
    if out in (None, "-"):
        with opened(out) as stream:
            write_report(found, stream, f"html size={size}")
    else:
        write_report(found, str(out), f"html size={size}")
