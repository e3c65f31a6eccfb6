"""Run a pipeline: where plan, queries, databases, engine and storage are joined."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import indexes, inputs
from .budget import data_budget, reading_share, results_room, results_share, streaming_share
from .core import output_files
from .core.backends import check_available, cuda_available
from .core.context import Queries, SearchSpace
from .core.engine.engine import Engine, check_queries
from .core.engine.location import cut_source
from .core.engine.planning import Settings
from .core.engine.threads import bounded_threads
from .core.errors import (
    Cancelled,
    InputError,
    OptionError,
    ResumeError,
    SeqloomError,
    StoreError,
)
from .core.options import option_infos
from .core.pipeline import Pipeline, Plan, compose
from .core.ports import SlotStats, VolumeSource
from .core.progress import Progress
from .core.sequences import SequenceBatch
from .core.units import parse_bytes
from .database import Database
from .installed import find_pipeline, registry
from .masking import check_learned
from .opening import DatabaseInput, changed, kept_pick, kept_plan, kept_stream, opened, space_of
from .outputs import Output, Writing, all_streamed
from .queries import QueryInput, files_of, is_file, load_queries
from .query_stream import QueryFiles, QueryStream, RestOfQueries
from .run import Run
from .storage.sequences.sources import Pick, PickedSource

if TYPE_CHECKING:
    from .cluster.session import Session
    from .storage.results.report import RunResults
    from .storage.results.run_file import RunFile
    from .storage.results.store import ResultStore
    from .storage.results.streamed_run import StreamedRun

DEFAULT_RESULTS = "seqloom.duckdb"

def results_path(results: "str | Path | None") -> Path:
    """The results store: as given, else ``SEQLOOM_RESULTS``, else ``seqloom.duckdb`` in the working directory."""
    return Path(results or os.environ.get("SEQLOOM_RESULTS") or DEFAULT_RESULTS)


def results_store(results: "str | Path | None", memory: int | None = None) -> "ResultStore":
    """The store at ``results_path``; DuckDB takes so much memory to write it."""
    from .storage.results.store import ResultStore

    return ResultStore(results_path(results), memory)


def search(pipeline: "str | Pipeline", queries: QueryInput,
           *databases: "DatabaseInput | Sequence[DatabaseInput]", backend: str | None = None, threads: int = 1,
           memory: "int | str | None" = None, device_memory: "int | str | None" = None,
           results: "str | Path | None" = None, store: bool = True, stages: Sequence[str] = (),
           settings: Sequence[str] = (), target_ids: Iterable[str] | None = None,
           negative_target_ids: Iterable[str] | None = None, taxids: Iterable[int] | None = None,
           negative_taxids: Iterable[int] | None = None, volume_residues: int | None = None,
           batch_queries: int | None = None, batch_residues: int | None = None, on_bad: str = "error",
           explain: Sequence[str] = (), command: str = "", progress: Progress | None = None,
           written: Callable[[Run], None] | None = None, outputs: Sequence[Output] = (), task: str = "",
           cluster: Any = None, run_id: str | None = None, **options: Any) -> Run:
    """Search ``databases`` for ``queries`` and keep the results.

    Args:
        pipeline: name of a preset, path of a TOML file (ends in ".toml"), or a ``Pipeline``.
        queries: path of a FASTA, FASTQ or model file ("-" is standard input); residues as text; a record of Biopython
            (``id``, ``seq``) or dnaio (``name``, ``sequence``); a list, a column of a data frame or any other iterable
            of paths, or else of residues, records and (name, residues) pairs; a mapping of names to residues; a batch.
            A text of residues alone is taken for a path if there is a file of that name; a ``Path`` is always one.
            Queries without a name are Query_1, Query_2, … by their number.
        databases: database files, FASTA files as they are, open databases or batches, or lists of them.
        backend: "auto", "cpu", "cuda" or "reference"; ``SEQLOOM_BACKEND`` or "auto" when left out.
        threads: for DuckDB, units of work and stages alike.
        memory, device_memory: bytes, or texts such as "8G", that the process may take.
        results: results store; see ``results_path``.
        store: whether the run is kept there; if not it lives in memory as long as the returned object.
        stages, settings: ``slot=plugin`` and ``slot.option=value``.
        target_ids, negative_target_ids: names or accessions of the only targets to be searched, or of those not to be.
        taxids, negative_taxids: taxids of the only organisms to be searched, or of those not to be, with all that
            belongs to them. One of these four may be given.
        volume_residues, batch_queries, batch_residues: most target residues, queries and query residues that are
            worked on at once; results don't depend on them.
        on_bad: what to do with query records that can't be used: "error" or "skip".
        explain: names of targets whose way through the stages shall be told (``Run.explanation``).
        command: kept with the run.
        progress: told of the work done. Set its cancellation to stop: ``Cancelled`` is raised, and the run can be
            resumed where part of its work is kept.
        written: called with the run when all its rows are there and before it is merged into the store.
        outputs: written then as well; what goes wrong with them is raised when the run has been kept. Many queries of
            a run that isn't stored are written while others are searched, where ``written`` is left out and the
            formats allow it; then nothing of the results stays with the run.
        task: the pipeline to run instead, as on the command line: "blastn" alone does what its peer does, megablast;
            with the task "blastn" words of 11 seed.
        cluster: carry the search out on a Dask cluster: its client, the address of its scheduler, a scheduler file, or
            "local:4" for four worker processes of this machine. ``memory`` then holds for each worker, as ``threads``
            does for those of this machine.
        run_id: unique identifier (a UUID) that the run shall have; made when left out. No other run may have it.
        options: the pipeline's own options, such as ``evalue=1e-5``.

    Raises:
        SeqloomError: of the kind that says what was wrong. Nothing is left behind unless part of the work was done;
            then the run can be resumed.
    """
    plugins = registry()
    backend = backend or os.environ.get("SEQLOOM_BACKEND") or "auto"
    limits = {"threads": threads, "volume_residues": volume_residues, "batch_queries": batch_queries,
              "batch_residues": batch_residues}
    for name, value in limits.items():
        if value is not None and (not isinstance(value, int) or not 0 < value < 1 << 63):
            raise OptionError(f"{name} must be a number from 1 on that fits 64 bits, not {value!r}")
    rows = [cast("Sequence[DatabaseInput]", some if isinstance(some, list | tuple) else [some]) for some in databases]
    given = found_databases(one for row in rows for one in row)
    if not given:
        raise InputError("no database to search; give one or more database or FASTA files")
    chosen = find_pipeline(plugins, pipeline, task)
    plan = compose(plugins, chosen, options, backend, stages, settings)
    for request in plan.family.masking(plan.options):
        kind = plugins.masker(request.masker)
        check_learned(kind(kind.Options(**request.options)))
    check_available({placed.stage.backend for placed in plan.stages})
    if cluster is not None:
        from .cluster.connection import check_cluster

        check_cluster(cluster)
    budget = parse_bytes(memory)
    home = results_store(results, results_share(budget)) if store else None
    asked = queries if isinstance(queries, list | tuple) else [queries]
    output_files.check_outputs(outputs_of(plan), [*paths_of([*asked, *given]), home.path if home else None])
    if home:
        home.check()
    default = Settings()
    use = Settings(threads=bounded_threads(threads), memory=_data_budget(budget),
                   device_memory=parse_bytes(device_memory, "--device-memory"),
                   batch_queries=batch_queries or default.batch_queries,
                   batch_residues=batch_residues or default.batch_residues, volume_residues=volume_residues)
    progress = progress or Progress()
    loaded, stream = read_queries(plan, queries, on_bad, use, budget, progress, cluster)
    share = streaming_share(budget) if stream else results_share(budget)
    pick = picked(target_ids, negative_target_ids, taxids, negative_taxids)
    kept = [kept_stream(database, plan.family.target) for database in given]
    reopen = partial(opened, kept, plan.family.target, pick, budget, threads)
    with reopen() as source, ExitStack() as stack:
        if isinstance(source, PickedSource) and source.bare:
            print(f"seqloom: {', '.join(source.bare)} has no taxonomy: sequences of just the taxids given are meant, "
                  "not of what belongs to them", file=sys.stderr)
        check_queries(plan, loaded, source)
        searched = cut_source(source, plan.family.target_location(plan.options))
        space = space_of(searched)
        residues = residues_of(loaded, stream)
        if cluster is None and pays_on_devices(plan, residues * space.total_residues):
            plan = compose(plugins, chosen, options, "cuda", stages, settings)
        plan = indexes.with_stored(plan, searched, residues)
        use = replace(use, memory=_data_budget(budget), explain=numbers_of(source, explain))
        provenance = {**describe(plan, use, space, command), "parsed_names": parsed_names(plan, source),
                      "pick": asdict(pick) if pick else None,
                      "query_files": [str(query) for query in asked if is_file(query)],
                      "query_stream": stream.files.as_dict() if stream else None}
        workers = on_cluster(stack, cluster, plan, source, space, pick, use, budget)
        engine = engine_of(plan, searched, loaded, source, space, use, progress, workers, stream)
        with engine.reading_ahead():
            if stream and home is None and written is None and all_streamed(outputs, plan):
                run_file = streamed(provenance, loaded, source, progress)
            else:
                run_file = begun(home, provenance, loaded, source, share, run_id)
            return carry_out(engine, run_file, home, plan, reopen, written, workers, stream, outputs)


def read_queries(plan: Plan, queries: QueryInput, on_bad: str, use: Settings, budget: int | None, progress: Progress,
                 cluster: Any) -> tuple[Queries, QueryStream | None]:
    """The queries of a search, or the first portion of many with what reads the others.

    Models are all read at once, and so are queries whose batches go to a cluster.
    """
    paths = files_of(queries)
    if paths is None or plan.family.query == "model" or cluster is not None:
        return load_queries(plan.family.query, queries, on_bad, budget), None
    stream = QueryStream(QueryFiles.of(plan.family.query, paths, on_bad, use.batch_residues, use.batch_queries,
                                       use.memory), progress.cancellation)
    first = stream.first()
    assert first is not None
    return first, stream if stream.more else None


def residues_of(loaded: Queries, stream: QueryStream | None) -> int:
    """Of all queries, about: where they are read in portions, the bytes of their files, if these say how many."""
    return max(loaded.total_residues, stream.files.bytes or 0) if stream else loaded.total_residues


def pays_on_devices(plan: Plan, cells: int) -> bool:
    """Whether the back end "auto" has left CUDA devices alone and a search of so many cells is worth theirs."""
    return plan.backend == "auto" and 0 < plan.pipeline.devices_from <= cells and cuda_available()


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
        return Engine(reading, registry(), queries, source, space, use, progress, more=stream)
    most = workers.settings
    use = replace(use, threads=most.threads, memory=most.memory, workers=most.workers, sent=most.sent)
    engine: Engine = Engine(reading, registry(), queries, source, space, use, progress,
                            lambda units: workers.executor(engine, units))
    return engine


def begun(home: "ResultStore | None", provenance: Mapping[str, Any], queries: Queries, source: VolumeSource,
          memory: int | None, run_id: str | None = None) -> "RunResults":
    """Where the results of a new run go: its file in the store, or memory where it isn't kept."""
    if home is None:
        from .storage.results.memory_run import MemoryRun

        return MemoryRun(provenance, MACHINE, queries, source, memory, results_room())
    from .storage.results.run_file import RunFile

    machine = {name: find() for name, find in MACHINE.items()}
    return RunFile.create(home.runs_folder, {**provenance, **machine}, queries, source.fingerprints(), memory=memory,
                          run_id=run_id)


def streamed(provenance: Mapping[str, Any], queries: Queries, source: VolumeSource,
             progress: Progress) -> "RunResults":
    """The results of a new run whose outputs are written while it goes on."""
    from .storage.results.streamed_run import StreamedRun

    return StreamedRun(provenance, MACHINE, queries, source, progress.cancellation)


def resume(reference: str, results: "str | Path | None" = None, threads: int | None = None,
           memory: "int | str | None" = None, device_memory: "int | str | None" = None,
           progress: Progress | None = None, planned: Callable[[Plan], object] | None = None,
           written: Callable[[Run], None] | None = None, cluster: Any = None,
           queries: "str | Path | Sequence[str | Path] | None" = None, written_to: Sequence[Output] = (),
           **outputs: str) -> Run:
    """Do the rest of an interrupted run: the same plan, queries and databases, from where it stopped.

    Args:
        queries: files, or "-", with what the queries were read from, where they weren't read to the end and can't be
            read again from where they were; see ``search``.
        reference: number in the store, beginning of the identifier, or "last": the one that was begun last of those
            that can be resumed.
        planned: called with the plan before any work; what it raises leaves the run as it is.
        cluster: as of ``search``; a run that was begun without one may go on with it, and the other way round.
        written_to: as ``outputs`` of ``search``.
        outputs: options of the pipeline that name files to write (``all_scores``): these are given again, since a
            stored run, which may be somebody else's, says of no file that it shall be written.

    Raises:
        ResumeError: the run is complete, still running, or its databases have changed since.
    """
    budget = parse_bytes(memory)
    home = results_store(results, results_share(budget))
    run_file = home.open_incomplete(reference)
    try:
        kept = run_file.provenance
        plan = kept_plan(kept)
        if plan.provenance()["slots"] != kept["plan"]["slots"]:
            raise ResumeError(f"run {run_file.id}: its plugins or their options are no longer the same; start it anew")
        paths = [d["path"] for d in run_file.databases()]
        plan = named_again(plan, outputs, run_file.id)
        output_files.check_outputs(outputs_of(plan), [home.path, *paths])
        check_available({placed.stage.backend for placed in plan.stages})
        if planned:
            planned(plan)
        if cluster is not None:
            from .cluster.connection import check_cluster

            check_cluster(cluster)
        if cluster is not None and (units := run_file.plan()) and (units.more or units.first_batch):
            raise ResumeError(f"run {run_file.id} reads its queries while it goes on, which a cluster doesn't; resume "
                              "it without one")
        stream, loaded = rest_of_queries(run_file, queries, progress)
        reopen = partial(opened, paths, plan.family.target, kept_pick(kept), budget, threads or 1)
        with reopen() as source, ExitStack() as stack:
            check_unchanged(run_file, source)
            space = SearchSpace(**kept["space"])
            searched = cut_source(source, plan.family.target_location(plan.options))
            if not is_space(kept, searched):
                raise ResumeError(f"run {run_file.id} can't be resumed: its taxids are those of other targets than "
                                  "when it was begun; start the search anew")
            former = kept["settings"]
            use = Settings(threads=bounded_threads(threads or former["threads"]), memory=_data_budget(budget),
                           device_memory=parse_bytes(device_memory, "--device-memory"),
                           batch_queries=former["batch_queries"],
                           batch_residues=former.get("batch_residues", Settings.batch_residues),
                           volume_residues=former["volume_residues"])
            workers = on_cluster(stack, cluster, plan, source, space, kept_pick(kept), use, budget)
            engine = engine_of(plan, searched, loaded, source, space, use, progress, workers, stream)
            return carry_out(engine, run_file, home, plan, reopen, written, workers, stream, written_to)
    except BaseException:
        run_file.close()
        raise


def rest_of_queries(run_file: "RunFile", given: "str | Path | Sequence[str | Path] | None",
                    progress: Progress | None) -> "tuple[RestOfQueries | None, Queries]":
    """What reads the queries that an interrupted run hasn't read yet, if there are any, and those it was at.

    Raises:
        ResumeError: they can't be read again.
    """
    units = run_file.plan()
    if units is None or not units.more:
        return None, run_file.queries(registry())
    files, run = QueryFiles.kept(run_file.provenance["query_stream"]), run_file.id
    if given is not None:
        files = files._replace(paths=tuple(map(str, given if isinstance(given, list | tuple) else [given])))
    elif (passing := files.passing) is not None:
        where = "standard input" if passing == "-" else passing
        raise ResumeError(f"run {run} had not read all its queries from {where}; give them again, from the first on: "
                          f"seqloom runs resume {run} --query FILE")
    first = units.batches[0][0]
    kept = cast("Callable[[int, int], SequenceBatch]", partial(run_file.queries, registry()))
    stream = RestOfQueries(files, kept, units.batches[-1][1], run, progress.cancellation if progress else None)
    return stream, run_file.queries(registry(), first)


def _data_budget(budget: int | None) -> int | None:
    return data_budget(budget, reading_share(budget), results_share(budget))


def paths_of(inputs: Iterable[Any]) -> list[str | Path]:
    """Of queries and databases, those that are files."""
    return [given.path if isinstance(given, Database) else given for given in inputs
            if isinstance(given, Database | str | Path)]


def outputs_of(plan: Plan) -> list[str]:
    """Files that the options of a plan say shall be written."""
    named = (getattr(plan.options, info.name) for info in option_infos(plan.family.Options) if info.output)
    return [path for path in named if path is not None]


def named_again(plan: Plan, given: Mapping[str, str | None], run: str) -> Plan:
    """The plan of a stored run, which writes the files that are given.

    Raises:
        ResumeError: it writes others than are given.
    """
    wanted = {name: path for name, path in given.items() if path is not None}
    for info in option_infos(plan.family.Options):
        kept = getattr(plan.options, info.name)
        if info.output and kept is not None and info.name not in wanted:
            raise ResumeError(f"run {run} writes {info.flag} {kept} as well; say so again: "
                              f"seqloom runs resume {run} {info.flag} {kept}")
        if info.output and kept is None and info.name in wanted:
            raise ResumeError(f"run {run} was begun without {info.flag}; start the search anew to have it")
    return replace(plan, options=replace(plan.options, **wanted)) if wanted else plan


def finished(reference: str | int, results: "str | Path | None" = None) -> Run:
    """A finished run of a store. Its databases are opened where they are what they were.

    Args:
        reference: number in the store, beginning of the identifier, or "last".

    Raises:
        StoreError: the run is still running or was interrupted.
    """
    home = results_store(results)
    known = home.show(reference)
    if known["state"] == "unreadable":
        raise StoreError(f"run {known['id']} can't be read: {known['error']}")
    if known["state"] not in ("complete", "pending"):
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
                found = stack.enter_context(opened(paths, plan.family.target, kept_pick(kept), None, 1))
                searched = cut_source(found, plan.family.target_location(plan.options))
                source = found if not changed(databases, found) and is_space(kept, searched) else None
            yield source

    return Run(known["id"], plan, home, reopen)


def check_unchanged(run_file: "RunFile", source: VolumeSource) -> None:
    """Refuse to resume when a database isn't what it was."""
    for then, now in changed(run_file.databases(), source):
        raise ResumeError(
            f"run {run_file.id} can't be resumed: database {then['path']} has changed since it was begun "
            f"({then['sequences']:,} sequences then, {now['sequences']:,} now); start the search anew")


def carry_out(engine: Engine, run_file: "RunResults", home: "ResultStore | None", plan: Plan,
              reopen: Callable[[], AbstractContextManager[VolumeSource]],
              written: Callable[[Run], None] | None, workers: "Session | None" = None,
              stream: QueryStream | None = None, outputs: Sequence[Output] = ()) -> Run:
    """Run the engine on an open run file, finish it and merge it; what ``workers`` did is kept with the run."""
    begin, writing = time.perf_counter(), Writing(outputs)

    def run_of(results: Any) -> Run:
        return Run(run_file.id, plan, home, reopen, results, engine)

    meanwhile = writing.meanwhile(cast("StreamedRun", run_file), run_of) if run_file.streamed else nullcontext()
    try:
        with meanwhile:
            totals = engine.run(run_file)
        if workers:
            run_file.note("workers", workers.accounts())
        run_file.finish("complete", time.perf_counter() - begin, None, totals)
        run = run_of(run_file)
        engine.progress.end()
        if written:
            written(run)
        if not run_file.streamed:
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


def found_databases(databases: Iterable[DatabaseInput]) -> tuple[DatabaseInput, ...]:
    """The databases that are meant: ``main`` for ``main.duckdb``, ``"a b"`` for two, each once."""
    found: list[DatabaseInput] = []
    for database in databases:
        for one in _named(str(database)) if isinstance(database, str | Path) else [database]:
            if isinstance(one, str) and not inputs.is_stream(one) and os.path.realpath(one) in {
                    os.path.realpath(other) for other in found if isinstance(other, str)}:
                print(f"seqloom: {one} is given twice; it is searched once", file=sys.stderr)
            else:
                found.append(one)
    return tuple(found)


def _named(text: str) -> list[str]:
    """The files that BLAST's ``-db`` means: one, also without its ending, or several between blanks."""
    def path(name: str) -> str:
        return f"{name}.duckdb" if not os.path.exists(name) and os.path.isfile(f"{name}.duckdb") else name

    def is_there(name: str) -> bool:
        return os.path.exists(name) or inputs.claiming_reader(name, registry()) is not None

    parts = [path(part) for part in text.split()]
    whole = path(text)
    return parts if len(parts) > 1 and not is_there(whole) and all(map(is_there, parts)) else [whole]


def numbers_of(source: VolumeSource, names: Sequence[str]) -> frozenset[int]:
    """Global numbers of targets by name."""
    return frozenset(Pick.of_names(names).find(source).numbers.tolist()) if names else frozenset()


def picked(names: Iterable[str] | None, other_names: Iterable[str] | None, taxids: Iterable[int] | None,
           other_taxids: Iterable[int] | None) -> Pick | None:
    """Which targets are to be searched; None for all.

    Raises:
        OptionError: several of these are given.
    """
    given = {"target_ids": names, "negative_target_ids": other_names, "taxids": taxids,
             "negative_taxids": other_taxids}
    there = [name for name, values in given.items() if values is not None]
    if len(there) > 1:
        raise OptionError(f"{there[0]} and {there[1]} exclude each other: give one of them")
    if names is not None or other_names is not None:
        return Pick.of_names(cast("Iterable[str]", other_names if names is None else names), names is None)
    if taxids is not None or other_taxids is not None:
        return Pick.of_taxids(cast("Iterable[int]", other_taxids if taxids is None else taxids), taxids is None)
    return None


def parsed_names(plan: Plan, source: VolumeSource) -> list[bool]:
    """Of each database whether its names are taken apart; of one that doesn't say, whether the options ask for it."""
    asked = bool(getattr(plan.options, "parse_deflines", False))
    return [asked if one is None else one for one in source.parsed_names()]


def is_space(kept: Mapping[str, Any], source: VolumeSource) -> bool:
    """Whether the targets of a stored run are as many and as long as they were."""
    then = kept["space"]
    return (then["total_residues"], then["sequences"]) == (source.total_residues, source.sequences)


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
