"""A run is carried out: by an engine, into a file of its own or into memory, with what is kept to understand it."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from . import indexes
from .budget import results_room
from .core.context import Queries, SearchSpace
from .core.engine.engine import Engine
from .core.engine.planning import Settings
from .core.entry_points import versions
from .core.errors import Cancelled, SeqloomError, StoreError
from .core.pipeline import Plan
from .core.ports import ResultSink, VolumeSource
from .core.progress import Progress
from .installed import registry
from .opening import whole
from .outputs import Output, Writing
from .query_stream import QueryStream
from .run import Run
from .storage.sequences.sources import Pick

if TYPE_CHECKING:
    from .cluster.session import Session
    from .storage.results.report import RunResults
    from .storage.results.store import ResultStore
    from .storage.results.streamed_run import StreamedRun


def on_cluster(stack: ExitStack, cluster: Any, plan: Plan, source: VolumeSource, space: SearchSpace,
               pick: Pick | None, use: Settings, memory: int | None) -> "Session | None":
    """The cluster that was asked for, whose workers can take part in the run; None where none was."""
    if cluster is None:
        return None
    from .cluster.session import session

    return stack.enter_context(session(cluster, plan, source, space, pick, use.threads, memory, use.device_memory,
                                       use.explain))


def engine_of(plan: Plan, searched: VolumeSource, queries: Queries, source: VolumeSource, space: SearchSpace,
              use: Settings, progress: Progress | None, workers: "Session | None",
              stream: QueryStream | None = None) -> Engine:
    """The engine of a run, whose units are carried out by this process, or by ``workers``."""
    reading = indexes.reading(plan, searched)
    if workers is None:
        return Engine(reading, registry(), queries, source, space, use, progress, more=stream, targets=whole)
    most = workers.settings
    use = replace(use, threads=most.threads, memory=most.memory, workers=most.workers, sent=most.sent)
    engine: Engine = Engine(reading, registry(), queries, source, space, use, progress,
                            lambda units: workers.executor(engine, units), targets=whole)
    return engine


def begun(home: "ResultStore | None", provenance: Mapping[str, Any], queries: Queries, source: VolumeSource,
          memory: int | None, run_id: str | None = None) -> "RunResults":
    """Where the results of a new run go: its file in the store, or memory where it isn't kept."""
    if home is None:
        from .storage.results.memory_run import MemoryRun

        return MemoryRun(provenance, MACHINE, queries, source, memory, results_room())
    machine = {name: find() for name, find in MACHINE.items()}
    return home.begin({**provenance, **machine}, queries, source.fingerprints(), memory, run_id)


def streamed(provenance: Mapping[str, Any], queries: Queries, source: VolumeSource,
             progress: Progress, in_turn: bool, kept: "RunResults | None") -> "StreamedRun":
    """The results of a new run whose outputs are written while it goes on, or ``in_turn`` with its batches."""
    from .storage.results.streamed_run import StreamedRun

    return StreamedRun(provenance, MACHINE, queries, source, progress.cancellation, in_turn,
                       kept.id if kept else None)


def carry_out(engine: Engine, run_file: "RunResults", home: "ResultStore | None", plan: Plan,
              reopen: Callable[[], AbstractContextManager[VolumeSource]],
              written: Callable[[Run], None] | None, workers: "Session | None" = None,
              stream: QueryStream | None = None, outputs: Sequence[Output] = (),
              results: "StreamedRun | None" = None) -> Run:
    """Run the engine on an open run file, finish it and merge it; what ``workers`` did is kept with the run.

    results: what hands batches to the writers of all outputs while the engine runs; the run file itself, where nothing
    is kept. Without it outputs are written afterwards.
    """
    begin, writing = time.perf_counter(), Writing(outputs)
    sink: ResultSink = run_file

    def run_of(rows: Any) -> Run:
        return Run(run_file.id, plan, home, reopen, rows, engine)

    if results not in (None, run_file):
        from .storage.results.streamed_run import AlsoStreamed

        sink = AlsoStreamed(run_file, results)
    try:
        with writing.meanwhile(results, run_of) if results else nullcontext():
            totals = engine.run(sink)
        if workers:
            run_file.note("workers", workers.accounts())
        run_file.finish("complete", time.perf_counter() - begin, None, totals)
        run = run_of(run_file)
        engine.progress.end()
        if written:
            written(run)
        if not results:
            writing.write(run)
    except BaseException as error:
        kept = home is not None and _begun(run_file)
        if isinstance(error, Cancelled) or (kept and isinstance(error, SeqloomError)):
            error.args = (f"{error.args[0] if error.args else error}; {_fate(engine, run_file, kept, stream)}",)
        if kept:
            with suppress(StoreError):  # a disk that fails; what was committed is there all the same
                if workers:
                    run_file.note("workers", workers.accounts())
                run_file.finish("incomplete", time.perf_counter() - begin, str(error), engine.totals)
            run_file.close()
        else:
            run_file.discard()
            engine.discard()
        raise
    run.release()
    writing.check()
    return run


def _fate(engine: Engine, run_file: "RunResults", kept: bool, stream: QueryStream | None) -> str:
    """What has become of the work of a run that ended before its time."""
    if not kept:
        return "nothing is kept"
    there, all_parts = engine.progress.parts_kept, engine.progress.parts
    amount = f"{there:,} of {all_parts:,}" if stream is None else f"{there:,}"
    again = f" --query FILE (with all the queries, since {passing} can't be read again)" if (
        passing := stream and stream.files.passing) else ""
    return f"{amount} parts of the work are kept: seqloom runs resume {run_file.id}{again}"


def _begun(run_file: "RunResults") -> bool:
    """Whether there is anything to go on with; yes where the disk fails and doesn't say."""
    try:
        return not run_file.is_open or bool(run_file.done_units() or run_file.done_batches())
    except StoreError:
        return True


def describe(plan: Plan, use: Settings, space: SearchSpace, command: str) -> dict[str, Any]:
    """What is kept with a run beside its results, so that it can be understood and done again; see ``MACHINE``."""
    return {
        "pipeline": plan.pipeline.name, "plan": plan.provenance(), "command": command,
        "target_type": plan.family.target,
        "settings": {**asdict(use), "explain": sorted(use.explain)}, "space": asdict(space),
        "started": datetime.now(UTC).isoformat(),
    }


def host() -> str:
    """Name of the machine."""
    import platform

    return platform.node()


MACHINE: dict[str, Callable[[], Any]] = {
    "version": lambda: versions("seqloom")["seqloom"], "host": host, "python": lambda: sys.version.split()[0],
    "packages": lambda: versions("numpy", "numba", "duckdb", "pyarrow"), "plugins": lambda: dict(registry().plugins),
}
"""What is kept with a run of machine and programs."""
