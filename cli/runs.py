"""``seqloom runs``: what was searched, when and how; going on with runs that were interrupted."""

from typing import Annotated, Any

from seqloom.core import output_files

from .helping import (
    INPUT,
    OUTPUT,
    FileName,
    MemoryOption,
    OutOption,
    ResultsOption,
    RunArgument,
    TableOption,
    argument,
    command,
    group,
    option,
)
from .output import is_terminal, print_json, say, show

FormatOption = Annotated[str, option("-f", "--outfmt", metavar="FMT", help="output format and its fields")]

app = group("List, show, write, resume, merge and delete runs. RUN is a number, the beginning of an id, or 'last'.")


COLUMNS = ("run", "state", "pipeline", "started", "seconds", "queries", "id")
"""Columns of a run in the table for people; the other formats have all."""


@command(app, "list", "runs list")
def list_runs(results: ResultsOption = None, format: TableOption = "table") -> None:
    """All runs and their states.

    complete: in the store; pending: complete, waits to be merged; incomplete: interrupted, can be resumed; running;
    unreadable: its file can't be opened.
    """
    from seqloom.results import Results

    store = Results(results)
    if results:
        store.check()
    runs = store.runs()
    if format == "table":
        rows = [{**r, "started": _minute(r.get("started")), "seconds": _seconds(r.get("seconds"))} for r in runs]
        show(COLUMNS, [[row.get(c) for c in COLUMNS] for row in rows])
        for run in runs:
            if run["state"] == "unreadable":
                say(f"run {run['id']} can't be read: {run['error']}")
        return
    columns = list(dict.fromkeys(key for run in runs for key in run))
    show(columns, [[run.get(c) for c in columns] for run in runs], format)


@command(app, "show", "runs show last")
def show_run(run: RunArgument, results: ResultsOption = None, format: TableOption = "table") -> None:
    """What a run did: pipeline, options, databases, per slot its time and records; on a cluster, what each worker did.

    Of workers: units, seconds at work and waiting for it, bytes sent to them and received, and units that failed there.
    """
    from seqloom.results import Results

    facts = Results(results).show(run)
    if format == "json":
        print_json(facts)
        return
    slots, databases = facts.pop("slots", []), facts.pop("databases", [])
    workers = (facts.get("provenance") or {}).get("workers", [])
    options = facts.pop("options", {})
    for name in ("provenance", "plan"):  # all of it is in the other tables, or in the output as JSON
        facts.pop(name, None)
    facts |= {f"--{name.replace('_', '-')}": value for name, value in options.items()}
    facts = {key: _plainly(value) for key, value in facts.items()}
    for part in ([{"what": key, "value": value} for key, value in facts.items()], databases, slots, workers):
        if part:
            show(list(part[0]), [[_plainly(value) for value in row.values()] for row in part], format)
            print()


def _plainly(value: Any) -> Any:
    """Names with values as words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plainly(found)}" for key, found in value.items() if found not in (None, [], {}, ""))
    if isinstance(value, list | tuple):
        return ", ".join(str(_plainly(item)) for item in value)
    return value


def _minute(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def _seconds(number: Any) -> str:
    return "" if number is None else f"{number:.1f}"


@command(app, "resume", "runs resume")
def resume_run(
    run: RunArgument = "last",
    results: ResultsOption = None,
    out: OutOption = None,
    outfmt: FormatOption = "",
    num_threads: Annotated[str | None, option("-p", "--num-threads", metavar="N", help="threads")] = None,
    memory: MemoryOption = None,
    device_memory: Annotated[str | None, option("--device-memory", metavar="SIZE", help="as 60G")] = None,
    cluster: Annotated[str | None, option("--cluster", metavar=FileName("ADDRESS|FILE|local:N", "input"),
                                          help="on a Dask cluster, as a search takes it")] = None,
    query: Annotated[list[str] | None, option("-q", "--query", metavar=INPUT,
                                              help="all queries again, of a run that read them from a pipe")] = None,
    quiet: Annotated[bool, option("--quiet", help="no progress")] = False,
    all_scores: Annotated[str | None, option("--all-scores", metavar=OUTPUT,
                                             help="for a run that was begun with it")] = None,
) -> None:
    """Go on with an interrupted run from where it stopped, and write its results.

    What names output (-o, -f, --all-scores) is to be given again.
    """
    from seqloom.output_formats import check_format
    from seqloom.results import Results
    from seqloom.searches import resume

    from .delivery import deliveries
    from .progress import working
    from .values import number

    run = str(Results(results).resumable(run))
    _check_place(out, results, run)
    outputs: dict[str, Any] = {"all_scores": all_scores} if all_scores is not None else {}
    with working(quiet) as progress:
        resume(run, results, threads=number(num_threads, "--num-threads"), memory=memory, device_memory=device_memory,
               progress=progress, written_to=deliveries([(out, outfmt)]), cluster=cluster, queries=query,
               planned=lambda plan: check_format(outfmt, plan, is_terminal(out), out not in (None, "-")), **outputs)


@command(app, "write", "runs write last --outfmt 0 -o alignments.txt")
def write_run(
    run: RunArgument = "last",
    results: ResultsOption = None,
    out: OutOption = None,
    outfmt: FormatOption = "",
) -> None:
    """Write a finished run in an output format, as its search did or could have done."""
    from seqloom.output_formats import check_format
    from seqloom.results import Results

    from .delivery import deliver

    _check_place(out, results, run)
    found = Results(results).run(run)
    check_format(outfmt, found.plan, is_terminal(out), out not in (None, "-"))
    deliver(found, out, outfmt)


def _check_place(out: str | None, results: str | None, run: str) -> None:
    """Refuse a place for a run's output where one of its databases is; others are refused by what the options say."""
    from seqloom.results import Results

    if out:
        databases = Results(results).show(run).get("databases", ())
        output_files.check_outputs([out], [base["path"] for base in databases])


@command(app, "merge", "runs merge")
def merge(results: ResultsOption = None) -> None:
    """Bring finished runs that wait beside the store into it."""
    from seqloom.results import Results

    merged: list[Any] = Results(results).merge()
    say(f"{len(merged)} {'run' if len(merged) == 1 else 'runs'} merged")


@command(app, "delete", "runs delete 3 4")
def delete(
    runs: Annotated[list[str], argument("RUN...", "runs to delete")],
    results: ResultsOption = None,
) -> None:
    """Delete runs with all their rows."""
    from seqloom.results import Results

    store = Results(results)
    for run in runs:
        say(f"run {store.delete(run)} deleted")
