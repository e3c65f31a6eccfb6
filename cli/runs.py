"""``seqloom runs``: what was searched, when and how; going on with runs that were interrupted."""

from typing import Annotated, Any

from .helping import MemoryOption, OutOption, ResultsOption, RunArgument, TableOption, argument, command, group, option
from .output import say, show

app = group("List, show, resume, merge and delete runs. RUN is a number, the beginning of an id, or 'last'.")


@command(app, "list")
def list_runs(results: ResultsOption = None, format: TableOption = "table") -> None:
    """All runs: stored, waiting to be merged, running and interrupted."""
    from seqloom.results import Results

    columns, rows = Results(results).runs()
    show(columns, rows, format)


@command(app, "show")
def show_run(run: RunArgument, results: ResultsOption = None, format: TableOption = "table") -> None:
    """What a run did: pipeline, options, databases, and per slot its time and records."""
    from seqloom.results import Results

    facts, columns, slots = Results(results).show(run)
    if format == "json":
        show(("run", "slots"), [(facts, [dict(zip(columns, slot, strict=True)) for slot in slots])], format)
        return
    show(("what", "value"), list(facts.items()), format)
    print()
    show(columns, slots, format)


@command(app, "resume")
def resume_run(
    run: RunArgument = "last",
    results: ResultsOption = None,
    out: OutOption = None,
    outfmt: Annotated[str, option("-f", "--outfmt", metavar="FMT", help="output format and its fields")] = "",
    num_threads: Annotated[str | None, option("-p", "--num-threads", metavar="N", help="threads")] = None,
    memory: MemoryOption = None,
    device_memory: Annotated[str | None, option("--device-memory", metavar="SIZE", help="as 60G")] = None,
    quiet: Annotated[bool, option("--quiet", help="no progress")] = False,
) -> None:
    """Go on with an interrupted run from where it stopped, and write its results."""
    from seqloom.search import resume

    from .search import delivery, interruptible, number, progress

    with delivery(out, outfmt) as written, interruptible() as cancellation, progress(quiet) as bar:
        resume(run, results, threads=number(num_threads, "--num-threads"), memory=memory, device_memory=device_memory,
               cancellation=cancellation, progress=bar, written=written)


@command(app, "merge")
def merge(results: ResultsOption = None) -> None:
    """Bring finished runs that wait beside the store into it."""
    from seqloom.results import Results

    merged: list[Any] = Results(results).merge()
    say(f"{len(merged)} {'run' if len(merged) == 1 else 'runs'} merged")


@command(app, "delete")
def delete(
    runs: Annotated[list[str], argument("RUN...", "runs to delete")],
    results: ResultsOption = None,
) -> None:
    """Delete runs with all their rows."""
    from seqloom.results import Results

    store = Results(results)
    for run in runs:
        say(f"run {store.delete(run)} deleted")
