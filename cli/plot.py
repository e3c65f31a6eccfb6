"""``seqloom plot``: a figure of a run as a file."""

from typing import Annotated

from .helping import OUTPUT, ResultsOption, RunArgument, argument, command, group, option
from .output import opened

app = group("")

KIND = "overview|coverage (of a query), dotplot, domains, identity, evalues or timings"


@command(app, "plot", "plot overview last -o overview.svg")
def plot(
    kind: Annotated[str, argument("KIND", KIND)],
    run: RunArgument,
    out: Annotated[str, option("-o", "--out", metavar=OUTPUT, help="file to write; .svg, .png or .pdf")],
    query: Annotated[str | None, option("--query", metavar="NAME", help="whose hits are drawn  [default: the first "
                                        "query that has hits]")] = None,
    results: ResultsOption = None,
) -> None:
    """A figure of a run as SVG, PNG or PDF, drawn by Matplotlib (pip install "seqloom[plots]")."""
    from seqloom.results import Results

    format = out.rpartition(".")[2].lower()
    found = Results(results).run(run)
    with opened(out) as stream:
        found.write(stream, f"plot {kind} {format}" + (f" query={query}" if query else ""))
