"""What runs in processes of its own for the server: searches, outputs of runs, SQL, looks at stores and databases.

A task is a line of JSON on standard input. Answers are lines of JSON on standard output: any number with ``progress``,
then one with ``done`` or ``error``. When standard input ends, the server wants no more of it or is gone: a search stops
in good order then, so that it can be resumed, anything else stops at once.
"""

import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..core.errors import Cancelled, SeqloomError, StoreError, UnknownNameError
from ..core.progress import Progress

EVERY = 0.2
"""Seconds between two words about progress."""
GRACE = 30.0
"""Seconds that a search has to stop in good order."""
CELL = 2000
"""Characters of a value in a table of SQL."""
TABLE = 4_000_000
"""Characters of all of them."""
ROOM = 6 << 30
"""Bytes of address space of a process that answers SQL, beside what DuckDB may take."""
Tell = Callable[[str, Any], None]


def main() -> None:
    """Carry out the task on standard input and end."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints must not be taken for an answer
    lock = threading.Lock()

    def tell(kind: str, what: Any) -> None:
        with lock, suppress(BrokenPipeError):
            print(json.dumps({kind: what}, default=str), file=told, flush=True)

    task = json.loads(sys.stdin.readline())
    progress = Progress()
    orderly = task["do"] == "search"
    threading.Thread(target=_listen, args=(progress, orderly), daemon=True).start()
    try:
        if orderly:
            threading.Thread(target=_report, args=(progress, tell), daemon=True).start()
        tell("done", TASKS[task["do"]](task, progress))
    except Cancelled as error:
        tell("error", {"kind": "Cancelled", "message": str(error)})
    except SeqloomError as error:
        message = str(error.args[0]) if error.args else str(error)  # with its line feeds; who shows it escapes the rest
        tell("error", {"kind": type(error).__name__, "message": message, "status": error.exit_status})
    except (OSError, MemoryError) as error:
        tell("error", {"kind": type(error).__name__, "message": f"{type(error).__name__}: {error}"})
    except Exception as error:  # a bug; the server must hear of it like of any other error
        import traceback

        traceback.print_exc()
        tell("error", {"kind": "Internal", "message": f"internal error: {type(error).__name__}: {error}"})
    told.flush()
    os._exit(0)


def _listen(progress: Progress, orderly: bool) -> None:
    """Stop when standard input ends or says so."""
    sys.stdin.readline()
    progress.cancellation.cancel()
    time.sleep(GRACE if orderly else 0)
    os._exit(1)


def _report(progress: Progress, tell: Tell) -> None:
    """Say how far the work has come, when that has changed."""
    before: Any = None
    while True:
        time.sleep(EVERY)
        now = {"done": min(progress.done, progress.total) if progress.total else progress.done,
               "total": progress.total, "unit": progress.unit, "parts": progress.parts,
               "parts_kept": progress.parts_kept}
        if now != before and progress.began is not None:
            before = now
            tell("progress", {**now, "seconds": time.monotonic() - progress.began})


# ---- searches


def search(task: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Do a search, or what is left of it; ``task["folder"]`` holds its queries and lock.

    The run has the identifier of the search: one that has begun is resumed, one that is there is left as it is.
    """
    from ..core.engine.heap import keep_freed_memory
    from ..run import Run
    from ..searches import resume
    from ..searches import search as begin

    folder = Path(task["folder"])
    os.chdir(folder)
    keep_freed_memory()
    counts: dict[str, int] = {}

    def written(run: Run) -> None:
        assert run.counts is not None
        counts["queries"], counts["hits"] = run.counts
        _write_page(run, Path(task["page"]))

    limits = {"threads": task["threads"], "memory": task["memory"], "results": task["results"]}
    with _alone(folder / "lock", progress):
        state = _state(task) if (folder / "begun").exists() else ""
        if state in ("complete", "pending"):
            return {**_counts(task), "seconds": None}
        (folder / "begun").touch()
        began = time.monotonic()
        if state == "incomplete":
            resume(task["id"], progress=progress, written=written, **limits)
        else:
            from ..installed import registry

            begin(registry().pipeline(task["pipeline"]), Path(task["query"]), *task["databases"], progress=progress,
                  written=written, run_id=task["id"], command=task["command"], backend=task["backend"],
                  **limits, **task["options"])
        return {**counts, "seconds": time.monotonic() - began}


def _write_page(run: Any, path: Path) -> None:
    """The report of a run, which the server shows; where that can't be made now, it is made when it is asked for."""
    with suppress(SeqloomError, OSError):
        run.write(path, "html site=/runs")


@contextmanager
def _alone(path: Path, progress: Progress) -> Iterator[None]:
    """Wait until no process of a server that is gone is at the same search."""
    import fcntl

    with open(path, "w", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                progress.cancellation.check()
                time.sleep(0.05)
        yield


def _state(task: Mapping[str, Any]) -> str:
    """State of the run of a search that began before; "" where there is none."""
    from ..storage.results.store import ResultStore

    end = time.monotonic() + 5
    while True:
        try:
            state = ResultStore(task["results"]).locate(task["id"]).state
        except UnknownNameError:
            return ""
        if state != "running":
            if state == "unreadable":
                raise StoreError(f"run {task['id']} can't be read")
            return state
        if time.monotonic() > end:
            raise StoreError(f"run {task['id']} is at work elsewhere")
        time.sleep(0.1)  # whoever looks into the file lets it go soon


def _counts(task: Mapping[str, Any]) -> dict[str, Any]:
    from ..results import Results

    known = Results(task["results"]).show(task["id"])
    return {"queries": known["queries"], "hits": known["hits"]}


# ---- looking at results


def write(task: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Write runs into a file in an output format, or a view of one by ``task["export"]``; more files become a ZIP."""
    from ..reports import write_report
    from ..results import Results

    results, out = Results(task["results"]), Path(task["out"])
    with tempfile.TemporaryDirectory(dir=out.parent) as name:
        os.chdir(name)
        target = Path(name) / task["name"]
        if "export" in task:
            results.export(task["ids"][0], task["export"], target, task["level"])
        elif len(task["ids"]) > 1:
            write_report([results.run(id) for id in task["ids"]], target, task["outfmt"])
        else:
            _write_one(results.run(task["ids"][0]), target, task["outfmt"])
        made = sorted(Path(name).iterdir())
        if len(made) > 1:
            target = Path(shutil.make_archive(f"{name}.all", "zip", name))
        os.replace(target, out)
    return {"bytes": out.stat().st_size, "several": len(made) > 1}


def _write_one(run: Any, target: Path, outfmt: str) -> None:
    from ..output_formats import check_format

    if not outfmt.startswith("plot "):  # figures say themselves that there is nothing to draw
        check_format(outfmt, run.plan)
    run.write(target, outfmt)


def compare(task: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Write what one of two runs has that the other hasn't into a file, as JSON."""
    from ..reports import compared
    from ..results import Results

    results, out = Results(task["results"]), Path(task["out"])
    found = compared(*(results.run(id) for id in task["ids"]))
    parts = {"first": found.first_alone, "second": found.second_alone, "both": found.both}
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"runs": task["ids"], "counts": {name: len(lines) for name, lines in parts.items()},
                   **{name: [line.plain() for line in lines] for name, lines in parts.items()}}, file)
    return {"bytes": out.stat().st_size}


def sql(task: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Rows of a query over the store as plain data, no more than ``task["rows"]``."""
    import resource

    from ..storage.results.store import ResultStore

    seconds = int(task["timeout"]) + 5
    resource.setrlimit(resource.RLIMIT_CPU, (4 * seconds, 4 * seconds))
    room = ROOM + 2 * task["memory"]  # a single value may be larger than all that DuckDB counts
    resource.setrlimit(resource.RLIMIT_AS, (room, room))
    threading.Timer(seconds, os._exit, [1]).start()  # should the query not heed its interruption
    begin = time.monotonic()
    store = ResultStore(task["results"])
    if not store.path.exists():
        raise StoreError("there are no runs yet")
    columns, found = store.first_rows(task["query"], task["rows"] + 1, task["timeout"], task["memory"], task["memory"])
    left = TABLE
    rows: list[list[Any]] = []
    for row in found:
        cells = [_cell(value) for value in row]
        left -= sum(len(str(cell)) for cell in cells)
        if len(rows) >= task["rows"] or left < 0:
            break
        rows.append(cells)
    return {"columns": columns, "rows": rows, "more": len(found) > len(rows),
            "seconds": time.monotonic() - begin}


def _cell(value: Any) -> Any:
    """A value as JSON has it; long ones are cut."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    text = str(value)
    return text if len(text) <= CELL else text[:CELL] + "…"


def runs(task: Mapping[str, Any], progress: Progress) -> list[dict[str, Any]]:
    """All runs of the store, as far as a list shows them."""
    from ..results import Results

    wanted = ("id", "state", "pipeline", "started", "seconds", "queries", "command", "error")
    return [{name: run.get(name) for name in wanted} for run in Results(task["results"]).runs()]


def delete(task: Mapping[str, Any], progress: Progress) -> str:
    """Delete a run; one that isn't there is no error."""
    from ..results import Results

    with suppress(UnknownNameError):
        return Results(task["results"]).delete(task["id"])
    return ""


def databases(task: Mapping[str, Any], progress: Progress) -> list[dict[str, Any]]:
    """Kind and size of each file that is to be served as a database.

    Raises:
        SeqloomError: it is none; names it.
    """
    return [_database(path) for path in task["paths"]]


def _database(path: str) -> dict[str, Any]:
    from .. import inputs
    from ..database import Database
    from ..installed import registry
    from ..models import ModelDatabase
    from ..storage.duck.database_file import is_database, kind_of

    if is_database(path):
        if kind_of(path) == "models":
            with ModelDatabase.open(path) as models:
                info = models.info()
                return {"kind": "model", "sequences": info["models"], "residues": 0, "title": info["title"]}
        with Database.open(path) as database:
            info = database.info()
            return {"kind": info["type"], "sequences": info["sequences"], "residues": info["residues"],
                    "title": info["title"]}
    try:
        batch = inputs.load_sequences(path, registry())
    except SeqloomError as error:
        try:
            found = inputs.load_models(path, registry())
        except SeqloomError:
            raise error from None
        return {"kind": "model", "sequences": len(found), "residues": 0, "title": ""}
    return {"kind": batch.alphabet.name, "sequences": len(batch), "residues": int(batch.offsets[-1]), "title": ""}


TASKS: dict[str, Callable[[Mapping[str, Any], Progress], Any]] = {
    "search": search, "write": write, "compare": compare, "sql": sql, "runs": runs, "delete": delete,
    "databases": databases}

if __name__ == "__main__":
    main()
