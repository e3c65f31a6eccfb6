"""Run a pipeline: what is asked for is checked, opened, and carried out; a run is resumed, or found again."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from . import indexes
from .asked import (
    Asked,
    check_possible,
    checked_limits,
    data_share,
    given_databases,
    outputs_of,
    picked,
    use_of_machine,
)
from .budget import results_share, streaming_share
from .carrying_out import begun, carry_out, describe, engine_of, on_cluster, streamed
from .core import output_files
from .core.backends import cuda_available, opens_ahead
from .core.classes import NamedTuple
from .core.context import Queries, SearchSpace
from .core.engine.engine import check_queries
from .core.engine.location import mask_digests, searched_source
from .core.engine.planning import BatchLimits, Settings
from .core.errors import ResumeError, SeqloomError, StoreError
from .core.options import option_infos, options_dict
from .core.pipeline import Pipeline, Plan, compose
from .core.ports import SlotStats, VolumeSource
from .core.progress import Progress
from .core.sequences import SequenceBatch
from .core.units import parse_bytes
from .installed import find_pipeline, registry
from .masking import files_of_maskers
from .opening import DatabaseInput, changed, kept_pick, kept_plan, kept_stream, opened, space_of
from .outputs import Output, all_streamed
from .queries import QueryInput, files_of, is_file, load_queries
from .query_stream import QueryFiles, QueryStream, RestOfQueries
from .run import Run
from .storage.sequences.sources import Pick, PickedSource
from .store_path import results_path

if TYPE_CHECKING:
    from .storage.results.run_file import RunFile
    from .storage.results.store import ResultStore

_LESS_WHERE_OPEN = 20
"""Times fewer cells with which a search is worth devices that are open already: to open them takes a second."""


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
           cluster: Any = None, run_id: str | None = None, in_turn: bool = False, **options: Any) -> Run:
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
        in_turn: one batch of queries after another: none is read while another is searched, and none searched while
            the rows of another are written. It takes longer, and shows what the overlap gains.
        options: the pipeline's own options, such as ``evalue=1e-5``.

    Raises:
        SeqloomError: of the kind that says what was wrong. Nothing is left behind unless part of the work was done;
            then the run can be resumed.
    """
    backend = backend or os.environ.get("SEQLOOM_BACKEND") or "auto"
    sizes = checked_limits(threads, volume_residues=volume_residues, batch_queries=batch_queries,
                           batch_residues=batch_residues)
    given = given_databases(databases)
    planned = partial(compose, registry(), find_pipeline(registry(), pipeline, task), options, stages=stages,
                      settings=settings)
    budget = parse_bytes(memory)
    asked = Asked(planned, planned(backend), queries, given, on_bad, explain, cluster,
                  picked(target_ids, negative_target_ids, taxids, negative_taxids),
                  results_store(results, results_share(budget)) if store else None, budget,
                  use_of_machine(threads, budget, device_memory, in_turn=in_turn, **sizes)).check()
    progress = progress or Progress()
    with ready_search(asked, progress) as ready:
        return run_search(asked, ready, command, progress, written, outputs, run_id)


class Ready(NamedTuple):
    """A search whose queries and databases are open.

    Attributes:
        plan: what runs, now that it is known how large the search is and which indexes are stored.
        queries: all of them, or the first portion of many.
        stream: reads the other ones; None where there are none.
        source: what is searched.
        searched: what the stages see of it.
        space: its size.
        use: of the machine.
        reopen: opens the source again.
    """

    plan: Plan
    queries: Queries
    stream: QueryStream | None
    source: VolumeSource
    searched: VolumeSource
    space: SearchSpace
    use: Settings
    reopen: Callable[[], AbstractContextManager[VolumeSource]]


@contextmanager
def ready_search(asked: Asked, progress: Progress) -> Iterator[Ready]:
    """What a search needs, read and opened; closed again at the end."""
    plan, use = asked.plan, asked.use
    begun = begun_queries(plan, asked.queries, asked.on_bad, use, asked.budget, progress, asked.cluster)
    kept = [kept_stream(database, plan.family.target) for database in asked.databases]
    reopen = partial(opened, kept, plan.family.target, asked.pick, asked.budget, use.threads)
    with reopen() as source:
        if isinstance(source, PickedSource) and source.bare:
            print(f"seqloom: {', '.join(source.bare)} has no taxonomy: sequences of just the taxids given are meant, "
                  "not of what belongs to them", file=sys.stderr)
        loaded, stream = first_of(begun)
        check_queries(plan, loaded, source)
        searched = searched_source(source, plan)
        space = space_of(searched)
        residues = residues_of(loaded, stream)
        if pays_on_devices(plan, residues * space.total_residues):
            if asked.cluster is not None:
                plan = taking_devices(plan)
            elif cuda_available():
                plan = asked.planned("cuda")
        plan = indexes.with_stored(plan, searched, residues)
        use = replace(use, memory=data_share(asked.budget), explain=numbers_of(source, asked.explain))
        yield Ready(plan, loaded, stream, source, searched, space, use, reopen)


def run_search(asked: Asked, ready: Ready, command: str, progress: Progress, written: Callable[[Run], None] | None,
               outputs: Sequence[Output], run_id: str | None) -> Run:
    """Carry out a search; see ``search``."""
    plan, source, stream, home = ready.plan, ready.source, ready.stream, asked.home
    provenance = {**describe(plan, ready.use, ready.space, command), "parsed_names": parsed_names(plan, source),
                  "pick": asdict(asked.pick) if asked.pick else None, "masked_by": files_of_maskers(plan),
                  "target_masks": mask_digests(source, plan),
                  "query_files": [str(query) for query in asked.each_query if is_file(query)],
                  "query_stream": stream.files.as_dict() if stream else None}
    with ExitStack() as stack:
        workers = on_cluster(stack, asked.cluster, plan, source, ready.space, asked.pick, ready.use, asked.budget)
        engine = engine_of(plan, ready.searched, ready.queries, source, ready.space, ready.use, progress, workers,
                           stream)
        stack.enter_context(engine.reading_ahead())
        kept = results = None
        meanwhile = stream is not None and written is None and all_streamed(outputs, plan)
        if home or not meanwhile:
            share = streaming_share(asked.budget) if stream else results_share(asked.budget)
            kept = begun(home, provenance, ready.queries, source, share, run_id)
        if meanwhile:
            results = streamed(provenance, ready.queries, source, progress, ready.use.in_turn, kept)
        run_file = kept or results
        assert run_file
        return carry_out(engine, run_file, home, plan, ready.reopen, written, workers, stream, outputs, results)


def begun_queries(plan: Plan, queries: QueryInput, on_bad: str, use: Settings, budget: int | None,
                  progress: Progress, cluster: Any) -> "Queries | QueryStream":
    """The queries of a search, or what has begun to read the first portion of many.

    Models are all read at once, and so are queries whose batches go to a cluster.
    """
    paths = files_of(queries)
    if paths is None or plan.family.query == "model" or cluster is not None:
        return load_queries(plan.family.query, queries, on_bad, budget)
    return QueryStream(QueryFiles.of(plan.family.query, paths, on_bad, *BatchLimits.of(plan, use), use.memory,
                                     use.threads), progress.cancellation, not use.in_turn, use.threads).begin()


def first_of(begun: "Queries | QueryStream") -> tuple[Queries, QueryStream | None]:
    """The queries, or the first portion of many with what reads the others."""
    if not isinstance(begun, QueryStream):
        return begun, None
    first = begun.first()
    assert first is not None
    return first, begun if begun.more else None


def residues_of(loaded: Queries, stream: QueryStream | None) -> int:
    """Of all queries, about: where they are read in portions, the bytes of their files, if these say how many."""
    return max(loaded.total_residues, stream.files.bytes or 0) if stream else loaded.total_residues


def pays_on_devices(plan: Plan, cells: int) -> bool:
    """Whether the back end "auto" has left CUDA devices alone and a search of so many cells is worth theirs."""
    least = plan.pipeline.devices_from // (_LESS_WHERE_OPEN if opens_ahead() else 1)
    return plan.backend == "auto" and 0 < least <= cells


def taking_devices(plan: Plan) -> Plan:
    """The plan with which each worker of a cluster takes the device that it has."""
    return compose(registry(), replace(plan.pipeline, devices_from=0), options_dict(plan.options), plan.backend)


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
        if planned:
            planned(plan)
        check_possible(plan, cluster)
        if cluster is not None and reads_on(run_file):
            raise ResumeError(f"run {run_file.id} reads its queries while it goes on, which a cluster doesn't; resume "
                              "it without one")
        stream, loaded = rest_of_queries(run_file, queries, progress)
        reopen = partial(opened, paths, plan.family.target, kept_pick(kept), budget, threads or 1)
        with reopen() as source, ExitStack() as stack:
            check_unchanged(run_file, source)
            check_masked_alike(run_file, plan, source)
            space = SearchSpace(**kept["space"])
            searched = searched_source(source, plan)
            if not is_space(kept, searched):
                raise ResumeError(f"run {run_file.id} can't be resumed: its taxids are those of other targets than "
                                  "when it was begun; start the search anew")
            former = kept["settings"]
            use = use_of_machine(threads or former["threads"], budget, device_memory,
                                 batch_queries=former["batch_queries"],
                                 batch_residues=former.get("batch_residues"),
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
    if not reads_on(run_file):
        return None, run_file.queries(registry())
    files, run = QueryFiles.kept(run_file.provenance["query_stream"]), run_file.id
    if given is not None:
        files = files._replace(paths=tuple(map(str, given if isinstance(given, list | tuple) else [given])))
    elif (passing := files.passing) is not None:
        where = "standard input" if passing == "-" else passing
        raise ResumeError(f"run {run} had not read all its queries from {where}; give them again, from the first on: "
                          f"seqloom runs resume {run} --query FILE")
    units = run_file.plan()
    loaded = run_file.queries(registry(), units.batches[0][0] if units else 0)
    kept = cast("Callable[[int, int], SequenceBatch]", partial(run_file.queries, registry()))
    count = int(loaded.ordinals[-1]) + 1
    return RestOfQueries(files, kept, count, run, progress.cancellation if progress else None), loaded


def reads_on(run_file: "RunFile") -> bool:
    """Whether a run reads its queries in portions. One that was interrupted before it had a plan says so by where it
    reads them from."""
    units = run_file.plan()
    return units.more if units else bool(run_file.provenance.get("query_stream"))


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
                searched = searched_source(found, plan)
                source = found if not changed(databases, found) and is_space(kept, searched) else None
            yield source

    return Run(known["id"], plan, home, reopen)


def check_unchanged(run_file: "RunFile", source: VolumeSource) -> None:
    """Refuse to resume when a database isn't what it was."""
    for then, now in changed(run_file.databases(), source):
        raise ResumeError(
            f"run {run_file.id} can't be resumed: database {then['path']} has changed since it was begun "
            f"({then['sequences']:,} sequences then, {now['sequences']:,} now); start the search anew")


def check_masked_alike(run_file: "RunFile", plan: Plan, source: VolumeSource) -> None:
    """Refuse to resume when its other queries, or its targets, would be masked by something else; runs of before don't
    say by what."""
    masks = mask_digests(source, plan)
    if run_file.provenance.get("target_masks", masks) != masks:
        raise ResumeError(f"run {run_file.id} can't be resumed: the mask that its databases had has changed since it "
                          "was begun; start the search anew")
    now = files_of_maskers(plan)
    for path, then in run_file.provenance.get("masked_by", {}).items():
        if now.get(path) != then:
            raise ResumeError(f"run {run_file.id} can't be resumed: {path}, by which its queries are masked, has "
                              "changed since it was begun, or is gone; start the search anew")


def numbers_of(source: VolumeSource, names: Sequence[str]) -> frozenset[int]:
    """Global numbers of targets by name."""
    return frozenset(Pick.of_names(names).find(source).numbers.tolist()) if names else frozenset()


def parsed_names(plan: Plan, source: VolumeSource) -> list[bool]:
    """Of each database whether its names are taken apart; of one that doesn't say, whether the options ask for it."""
    asked = bool(getattr(plan.options, "parse_deflines", False))
    return [asked if one is None else one for one in source.parsed_names()]


def is_space(kept: Mapping[str, Any], source: VolumeSource) -> bool:
    """Whether the targets of a stored run are as many and as long as they were."""
    then = kept["space"]
    return (then["total_residues"], then["sequences"]) == (source.total_residues, source.sequences)


__all__ = ["Run", "SlotStats", "results_path", "resume", "search"]
