"""``seqloom runs``: what was searched, when and how; going on with runs that were interrupted."""

from typing import Annotated, Any

from .helping import MemoryOption, OutOption, ResultsOption, RunArgument, TableOption, argument, command, group, option
from .output import check_place, check_unread, opened, print_json, say, show

FormatOption = Annotated[str, option("-f", "--outfmt", metavar="FMT", help="output format and its fields")]

app = group("List, show, write, resume, merge and delete runs. RUN is a number, the beginning of an id, or 'last'.")


COLUMNS = ("run", "state", "pipeline", "started", "seconds", "queries", "id")
"""Columns of a run in the table for people; the other formats have all."""


@command(app, "list")
def list_runs(results: ResultsOption = None, format: TableOption = "table") -> None:
    """All runs: stored, waiting to be merged, running and interrupted."""
    from seqloom.results import Results

    runs = Results(results).runs()
    if format == "table":
        rows = [{**r, "started": _minute(r.get("started")), "seconds": _seconds(r.get("seconds"))} for r in runs]
        show(COLUMNS, [[row.get(c) for c in COLUMNS] for row in rows])
        return
    columns = list(dict.fromkeys(key for run in runs for key in run))
    show(columns, [[run.get(c) for c in columns] for run in runs], format)


@command(app, "show")
def show_run(run: RunArgument, results: ResultsOption = None, format: TableOption = "table") -> None:
    """What a run did: pipeline, options, databases, and per slot its time and records."""
    from seqloom.results import Results

    facts = Results(results).show(run)
    if format == "json":
        print_json(facts)
        return
    slots = facts.pop("slots", [])
    databases = facts.pop("databases", [])
    facts.pop("provenance", None)
    options = facts.pop("options", {})
    facts |= {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    for part in ([{"what": key, "value": value} for key, value in facts.items()], databases, slots):
        if part:
            show(list(part[0]), [list(row.values()) for row in part], format)
            print()


def _minute(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def _seconds(number: Any) -> str:
    return "" if number is None else f"{number:.1f}"


@command(app, "resume")
def resume_run(
    run: RunArgument = "last",
    results: ResultsOption = None,
    out: OutOption = None,
    outfmt: FormatOption = "",
    num_threads: Annotated[str | None, option("-p", "--num-threads", metavar="N", help="threads")] = None,
    memory: MemoryOption = None,
    device_memory: Annotated[str | None, option("--device-memory", metavar="SIZE", help="as 60G")] = None,
    quiet: Annotated[bool, option("--quiet", help="no progress")] = False,
) -> None:
    """Go on with an interrupted run from where it stopped, and write its results; -o and -f are to be given again."""
    from seqloom.output_formats import check_format
    from seqloom.searches import resume

    from .search import delivery, interruptible, number, progress

    _check_place(out, results, run)
    with delivery([(out, outfmt)]) as written, interruptible() as cancellation, progress(quiet) as bar:
        resume(run, results, threads=number(num_threads, "--num-threads"), memory=memory, device_memory=device_memory,
               cancellation=cancellation, progress=bar, written=written,
               planned=lambda plan: check_format(outfmt, plan))


@command(app, "write")
def write_run(
    run: RunArgument = "last",
    results: ResultsOption = None,
    out: OutOption = None,
    outfmt: FormatOption = "",
) -> None:
    """Write a finished run in an output format, as its search did or could have done."""
    from seqloom.output_formats import check_format
    from seqloom.results import Results

    _check_place(out, results, run)
    found = Results(results).run(run)
    check_format(outfmt, found.plan)
    with opened(out) as stream:
        found.write(stream, outfmt)


def _check_place(out: str | None, results: str | None, run: str) -> None:
    """Refuse a place for a run's output that can't be written to, or where the store or one of its databases is."""
    from seqloom.results import Results

    check_place(out)
    if out:
        store = Results(results)
        check_unread(out, [str(store.path), *(base["path"] for base in store.show(run).get("databases", ()))])


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
