"""Run a pipeline: where plan, queries, databases, engine and storage are joined."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import indexes, inputs
from .core.alphabet import alphabet
from .core.backends import check_available
from .core.context import Cancellation, Queries, SearchSpace
from .core.engine import Engine, Settings, check_queries
from .core.errors import BudgetError, InputError, OptionError, ResumeError, SeqloomError, StoreError
from .core.memory import MemorySource
from .core.pipeline import Pipeline, Plan, compose
from .core.ports import SlotStats, VolumeSource
from .core.sequences import ModelBatch, SequenceBatch
from .core.threads import sensible
from .core.units import parse_bytes
from .database import Database
from .installed import registry
from .run import Run
from .storage.sequence_database import SequenceDatabase, is_database
from .storage.sources import ChainedSource, DatabaseSource, PickedSource

if TYPE_CHECKING:
    from .storage.result_store import ResultStore
    from .storage.run_file import RunFile
    from .storage.unkept_run import UnkeptRun

DEFAULT_RESULTS = "seqloom.duckdb"
DUCKDB_SHARE = 96 << 20
"""Bytes of a memory budget that are left to DuckDB."""

QueryInput = str | Path | Queries | Mapping[str, str]
DatabaseInput = str | Path | Database | SequenceBatch
ProgressHook = Callable[[int, int], None]
"""Called with cells done and cells in all."""


def results_path(results: "str | Path | None") -> Path:
    """The results store: as given, else ``SEQLOOM_RESULTS``, else ``seqloom.duckdb`` in the working directory."""
    return Path(results or os.environ.get("SEQLOOM_RESULTS") or DEFAULT_RESULTS)


def results_store(results: "str | Path | None") -> "ResultStore":
    """The store at ``results_path``."""
    from .storage.result_store import ResultStore

    return ResultStore(results_path(results))


def search(pipeline: "str | Pipeline", queries: QueryInput, *databases: DatabaseInput, backend: str | None = None,
           threads: int = 1, memory: "int | str | None" = None, device_memory: "int | str | None" = None,
           results: "str | Path | None" = None, store: bool = True, stages: Sequence[str] = (),
           settings: Sequence[str] = (), target_ids: Iterable[str] | None = None, volume_letters: int | None = None,
           batch_queries: int | None = None, on_bad: str = "error", explain: Sequence[str] = (), command: str = "",
           cancellation: Cancellation | None = None, progress: ProgressHook | None = None,
           written: Callable[[Run], None] | None = None, **options: Any) -> Run:
    """Search ``databases`` for ``queries`` and keep the results.

    Args:
        pipeline: name of a preset, path of a TOML file (ends in ".toml"), or a ``Pipeline``.
        queries: path of a FASTA, FASTQ or model file ("-" is standard input), a mapping of names to letters, a batch.
        databases: database files, FASTA files as they are, open databases or batches.
        backend: "auto", "cpu", "cuda" or "reference"; ``SEQLOOM_BACKEND`` or "auto" when left out.
        threads: for DuckDB, units of work and stages alike.
        memory, device_memory: bytes, or texts such as "8G", that the process may take.
        results: results store; see ``results_path``.
        store: whether the run is kept there; if not it lives in memory as long as the returned object.
        stages, settings: ``slot=plugin`` and ``slot.option=value``.
        target_ids: names of the only targets to be searched.
        volume_letters, batch_queries: most target letters and queries that are worked on at once; results don't
            depend on them.
        on_bad: what to do with query records that can't be used: "error" or "skip".
        explain: names of targets whose way through the stages shall be told (``Run.explanation``).
        command: kept with the run.
        cancellation: set it to stop; ``Cancelled`` is raised and the run can be resumed.
        progress: told of the work done.
        written: called with the run when all its rows are there and before it is merged into the store.
        options: the pipeline's own options, such as ``evalue=1e-5``.

    Raises:
        SeqloomError: of the kind that says what was wrong. Nothing is left behind unless part of the work was done;
            then the run can be resumed.
    """
    plugins = registry()
    backend = backend or os.environ.get("SEQLOOM_BACKEND") or "auto"
    limits = {"threads": threads, "volume_letters": volume_letters, "batch_queries": batch_queries}
    for name, value in limits.items():
        if value is not None and not 0 < value < 1 << 63:
            raise OptionError(f"{name} must be at least 1 and fit 64 bits, not {value}")
    if not databases:
        raise InputError("no database to search; give one or more database or FASTA files")
    chosen = find_pipeline(pipeline)
    plan = compose(plugins, chosen, options, backend, stages, settings)
    check_available({placed.stage.backend for placed in plan.stages})
    home = results_store(results) if store else None
    if home:
        home.check()
    loaded = load_queries(plan, queries, on_bad)
    budget = parse_bytes(memory)
    target_ids = None if target_ids is None else sorted(set(target_ids))
    reopen = partial(opened, databases, plan.family.target, target_ids, budget, threads)
    with reopen() as source:
        check_queries(plan, loaded, source)
        plan = indexes.with_stored(plan, source)
        space = SearchSpace(source.letters, source.sequences, source.longest)
        default = Settings()
        use = Settings(
            threads=sensible(threads), memory=data_budget(budget),
            device_memory=parse_bytes(device_memory, "--device-memory"),
            batch_queries=batch_queries or default.batch_queries,
            volume_letters=volume_letters,
            explain=numbers_of(source, explain))
        provenance = {**describe(plan, use, space, command), "target_ids": target_ids}
        engine = Engine(indexes.reading(plan, source), plugins, loaded, source, space, use, cancellation)
        with engine.reading_ahead():
            run_file = begun(home, provenance, loaded, source, DUCKDB_SHARE if budget else None)
            return carry_out(engine, run_file, home, plan, reopen, progress, written)


def begun(home: "ResultStore | None", provenance: Mapping[str, Any], queries: Queries, source: VolumeSource,
          memory: int | None) -> "RunFile | UnkeptRun":
    """Where the results of a new run go: its file in the store, or memory where it isn't kept."""
    if home is None:
        from .storage.unkept_run import UnkeptRun

        return UnkeptRun(provenance, MACHINE, queries, source, memory)
    from .storage.run_file import RunFile

    machine = {name: find() for name, find in MACHINE.items()}
    return RunFile.create(home.runs_folder, {**provenance, **machine}, queries, source.fingerprints(), memory=memory)


def resume(reference: str, results: "str | Path | None" = None, threads: int | None = None,
           memory: "int | str | None" = None, device_memory: "int | str | None" = None,
           cancellation: Cancellation | None = None, progress: ProgressHook | None = None,
           planned: Callable[[Plan], None] | None = None, written: Callable[[Run], None] | None = None) -> Run:
    """Do the rest of an interrupted run: the same plan, queries and databases, from where it stopped.

    Args:
        reference: number in the store, beginning of the identifier, or "last".
        planned: called with the plan before any work; what it raises leaves the run as it is.

    Raises:
        ResumeError: the run is complete, still running, or its databases have changed since.
    """
    home = results_store(results)
    run_file = home.open_incomplete(reference)
    try:
        kept = run_file.provenance
        plan = kept_plan(kept)
        if plan.provenance()["slots"] != kept["plan"]["slots"]:
            raise ResumeError(f"run {run_file.id}: its plugins or their options are no longer the same; start it anew")
        check_available({placed.stage.backend for placed in plan.stages})
        if planned:
            planned(plan)
        loaded = run_file.queries(registry())
        budget = parse_bytes(memory)
        paths = [d["path"] for d in run_file.databases()]
        reopen = partial(opened, paths, plan.family.target, kept["target_ids"], budget, threads or 1)
        with reopen() as source:
            check_unchanged(run_file, source)
            space = SearchSpace(**kept["space"])
            former = kept["settings"]
            use = Settings(threads=sensible(threads or former["threads"]), memory=data_budget(budget),
                           device_memory=parse_bytes(device_memory, "--device-memory"),
                           batch_queries=former["batch_queries"], volume_letters=former["volume_letters"])
            engine = Engine(indexes.reading(plan, source), registry(), loaded, source, space, use, cancellation)
            return carry_out(engine, run_file, home, plan, reopen, progress, written)
    except BaseException:
        run_file.close()
        raise


def finished(reference: str | int, results: "str | Path | None" = None) -> Run:
    """A finished run of a store. Its databases are opened where they are what they were.

    Args:
        reference: number in the store, beginning of the identifier, or "last".

    Raises:
        StoreError: the run is still running or was interrupted.
    """
    home = results_store(results)
    known = home.show(reference)
    if known["state"] not in ("stored", "pending"):
        what = "is still running; wait for it" if known["state"] == "running" else (
            f"was interrupted; let it end with: seqloom runs resume {known['id']}")
        raise StoreError(f"run {known['id']} {what}")
    kept = known["provenance"]
    plan, databases = kept_plan(kept), known["databases"]
    paths = [database["path"] for database in databases]

    @contextmanager
    def reopen() -> Iterator[VolumeSource | None]:
        with ExitStack() as stack:
            source: VolumeSource | None = None
            with suppress(SeqloomError):
                found = stack.enter_context(opened(paths, plan.family.target, kept["target_ids"], None, 1))
                source = found if not changed(databases, found) else None
            yield source

    return Run(known["id"], plan, home, reopen)


def kept_plan(kept: Mapping[str, Any]) -> Plan:
    """What ran, from what is kept with a run."""
    data = kept["plan"]
    return compose(registry(), Pipeline.from_dict(data["pipeline"]), data["options"], data["backend"])


def changed(databases: Sequence[Mapping[str, Any]], source: VolumeSource) -> list[tuple[Mapping[str, Any], Any]]:
    """Of each database of a run that isn't what it was: what it was, and what it is now."""
    return [(then, now) for then, now in zip(databases, source.fingerprints(), strict=True)
            if then["fingerprint"] != now["fingerprint"]]


def check_unchanged(run_file: "RunFile", source: VolumeSource) -> None:
    """Refuse to resume when a database isn't what it was."""
    for then, now in changed(run_file.databases(), source):
        raise ResumeError(
            f"run {run_file.id} can't be resumed: database {then['path']} has changed since it was begun "
            f"({then['sequences']:,} sequences then, {now['sequences']:,} now); start the search anew")


def carry_out(engine: Engine, run_file: "RunFile | UnkeptRun", home: "ResultStore | None", plan: Plan,
              reopen: Callable[[], AbstractContextManager[VolumeSource]], progress: ProgressHook | None,
              written: Callable[[Run], None] | None) -> Run:
    """Run the engine on an open run file, finish it and merge it."""
    begin = time.perf_counter()
    done, total = 0, 0

    def advance(cells: int) -> None:
        nonlocal done
        done += cells
        if progress:
            progress(done, total)

    engine.progress = advance
    try:
        if progress:
            total = engine.cells(run_file.plan() or engine.unit_plan(), run_file)
            progress(0, total)
        totals = engine.run(run_file)
        run_file.finish("done", time.perf_counter() - begin, None, totals)
        run = Run(run_file.id, plan, home, reopen, run_file, engine)
        if written:
            written(run)
    except BaseException as error:
        started = bool(run_file.done_units() or run_file.done_batches()) if run_file.is_open else True
        if started and home:
            if isinstance(error, SeqloomError):
                error.args = (f"{error.args[0] if error.args else error}; the work done so far is kept: "
                              f"seqloom runs resume {run_file.id}",)
            run_file.finish("incomplete", time.perf_counter() - begin, str(error), engine.totals)
            run_file.close()
        else:
            run_file.discard()
            engine.discard()
        raise
    run.release()
    return run


def find_pipeline(pipeline: "str | Pipeline") -> Pipeline:
    """A preset by name, or a pipeline from a TOML file."""
    if isinstance(pipeline, Pipeline):
        return pipeline
    if pipeline.endswith(".toml"):
        return Pipeline.from_toml(pipeline, registry())
    return registry().pipeline(pipeline)


def load_queries(plan: Plan, queries: QueryInput, on_bad: str = "error") -> Queries:
    """All queries, numbered from 0, of the kind that the plan takes."""
    if isinstance(queries, Mapping):
        for name, letters in queries.items():
            if not isinstance(name, str) or not isinstance(letters, str) or "-" in letters:
                raise InputError(f"query {name!r}: {letters!r}: a name and letters without gaps are wanted, as text")
        return SequenceBatch.of(alphabet(plan.family.query), queries.values(), list(queries))
    if isinstance(queries, SequenceBatch | ModelBatch):
        return queries
    if not isinstance(queries, str | Path):
        raise InputError(f"queries are a path, a mapping of names to letters or a batch, not {queries!r}")
    if plan.family.query == "model":
        return inputs.load_models(str(queries), registry())
    return inputs.load_sequences(str(queries), registry(), alphabet(plan.family.query), on_bad=on_bad)


@contextmanager
def opened(databases: Sequence[DatabaseInput], kind: str, target_ids: Iterable[str] | None,
           memory: int | None, threads: int) -> Iterator[VolumeSource]:
    """All databases as one source, closed again at the end; ``threads`` read them."""
    mine: list[SequenceDatabase] = []
    try:
        sources: list[VolumeSource] = []
        for database in databases:
            if isinstance(database, Database):
                sources.append(DatabaseSource(database._database, threads))
            elif isinstance(database, SequenceBatch):
                sources.append(MemorySource(database))
            elif is_database(database):
                mine.append(SequenceDatabase.open(database, read_only=True, memory=DUCKDB_SHARE if memory else None))
                sources.append(DatabaseSource(mine[-1], threads))
            else:
                batch = inputs.load_sequences(str(database), registry(), alphabet(kind))
                sources.append(MemorySource(batch, str(Path(database).resolve())))
        source: VolumeSource = sources[0] if len(sources) == 1 else ChainedSource(sources)
        yield source if target_ids is None else PickedSource(source, set(target_ids))
    finally:
        for open_database in mine:
            open_database.close()


def numbers_of(source: VolumeSource, names: Sequence[str]) -> frozenset[int]:
    """Global numbers of targets by name."""
    return frozenset(PickedSource(source, set(names)).numbers.tolist()) if names else frozenset()


def data_budget(budget: int | None) -> int | None:
    """What a run's data may take of a process's budget: less what the process has already and what DuckDB may take.

    Without a budget it is four fifths of the memory that the machine has to spare, so that units are cut before it
    swaps or kills; None where that can't be found out.
    """
    if budget is None:
        spare = available_bytes()
        return None if spare is None else spare * 4 // 5
    base = resident_bytes() + DUCKDB_SHARE
    if budget < base + (8 << 20):
        raise BudgetError("the program itself", base + (8 << 20), budget, "raise --memory")
    return budget - base


def available_bytes() -> int | None:
    """Memory that the machine can give to new work, or None where the system doesn't say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, StopIteration):
        return None


def resident_bytes() -> int:
    """Memory that this process has now."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 160 << 20


def describe(plan: Plan, use: Settings, space: SearchSpace, command: str) -> dict[str, Any]:
    """What is kept with a run beside its results, so that it can be understood and done again; see ``MACHINE``."""
    return {
        "pipeline": plan.pipeline.name, "plan": plan.provenance(), "command": command,
        "target_type": plan.family.target,
        "settings": {**asdict(use), "explain": sorted(use.explain)}, "space": asdict(space),
        "started": datetime.now(UTC).isoformat(),
    }


def versions(*packages: str) -> dict[str, str]:
    """Of installed packages."""
    from importlib.metadata import version

    return {name: version(name) for name in packages}


def host() -> str:
    """Name of the machine."""
    import platform

    return platform.node()


MACHINE: dict[str, Callable[[], Any]] = {
    "version": lambda: versions("seqloom")["seqloom"], "host": host, "python": lambda: sys.version.split()[0],
    "packages": lambda: versions("numpy", "numba", "duckdb", "pyarrow"), "plugins": lambda: dict(registry().plugins),
}
"""What is kept with a run of machine and programs."""

__all__ = ["Run", "SlotStats", "results_path", "resume", "search"]
