"""What a command line asks for, searched: its values, outputs, progress, and what is said before and after."""

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqloom.core import output_files
from seqloom.core.errors import UsageError

from . import aliases, colour, process
from .delivery import deliveries
from .output import is_terminal, opened, say
from .plugs import registry
from .progress import working
from .values import number, read_lines, read_names

if TYPE_CHECKING:
    from seqloom.core.options import OptionInfo
    from seqloom.core.pipeline import Pipeline, Plan
    from seqloom.run import Run


def carry_out(pipeline: "Pipeline", own: "Sequence[tuple[OptionInfo, Any]]", values: dict[str, Any]) -> None:
    """Carry out a search with the pipeline's own options that were typed, and the other values of the command line."""
    from seqloom.core.engine.heap import keep_freed_memory
    from seqloom.storage.duck.database_file import leave_open

    keep_freed_memory()
    if process.alone:
        leave_open()
    values["query"] = _queries(values)
    arguments = _arguments(pipeline, values)
    options = {info.name: info.parse(value) for info, value in own}
    outputs = _outputs(pipeline, values, options)
    if values["query_list"]:
        output_files.check_outputs([path for path, _ in outputs], values["query"])
    plan = check_outputs(pipeline, options, values, outputs)
    if values["export_search_strategy"]:
        _export_strategy(replace(pipeline, slots=plan.pipeline.slots), options, values)
    say_what_is_slow(plan, values["quiet"])
    tell_of_compiling(plan, values["quiet"])
    begin = time.perf_counter()
    run = _run(pipeline, arguments, options, values, outputs)
    for line in run.explanation() if values["explain"] else ():
        say(line)
    if sys.stderr and sys.stderr.isatty() and not values["quiet"]:
        _say_summary(run, time.perf_counter() - begin, values, outputs)


def _queries(values: dict[str, Any]) -> list[str]:
    """Files of queries: those that were named, and then those that are named in a file.

    Raises:
        InputError: the file can't be read, or names none.
    """
    listed = values["query_list"]
    return [*(values["query"] or ()), *([] if listed is None else [line.strip() for line in read_lines(listed)])]


def _arguments(pipeline: "Pipeline", values: dict[str, Any]) -> dict[str, Any]:
    """What was typed as numbers, sizes and names, as ``searches.search`` takes it.

    Raises:
        UsageError: it is none of these.
    """
    from seqloom.core.units import parse_bytes

    if values["on_bad"] not in ("error", "skip"):
        raise UsageError(f"--on-bad must be error or skip, not '{values['on_bad']}'")
    if values["num_threads"] == "0" and pipeline.family in aliases.PROFILES:
        values["num_threads"] = "1"  # HMMER's way to ask for no threads beside the first
    numbers = {name: number(values[name], f"--{name.replace('_', '-')}")
               for name in ("num_threads", "volume_residues", "batch_queries", "batch_residues")}
    memory, device_memory = parse_bytes(values["memory"]), parse_bytes(values["device_memory"], "--device-memory")
    return {"threads": numbers.pop("num_threads") or 1, **numbers, "memory": memory, "device_memory": device_memory,
            "in_turn": values["in_turn"], **_picked(values)}


def _outputs(pipeline: "Pipeline", values: dict[str, Any], options: dict[str, Any]) -> list[tuple[str | None, str]]:
    """File, None for standard output, and format of each; ``options`` gets the most targets that the format needs."""
    if values["color"] != "auto":
        colour.choose(values["color"])
    outfmt = values["outfmt"] or (colour.hits_format(pipeline.writer) if is_terminal(values["out"]) else
                                  pipeline.writer)
    if outfmt.split()[:1] == [pipeline.writer]:
        words = aliases.FORMAT_WORDS.get(pipeline.family, {}).items()
        outfmt = " ".join([outfmt, *(word for name, (_, word, _) in words if values[name.replace("-", "_")])])
    beside = {name: values.get(name.replace("-", "_")) for name in registry().outputs(pipeline.family)}
    return [(values["out"], _laid_out(pipeline, outfmt, values, options)),
            *((path, name) for name, path in beside.items() if path)]


def _export_strategy(pipeline: "Pipeline", options: dict[str, Any], values: dict[str, Any]) -> None:
    """Write a pipeline with the options that were given as a TOML file."""
    from .toml_text import to_toml

    data = replace(pipeline, defaults={**pipeline.defaults, **options}).as_dict()
    with opened(values["export_search_strategy"], [*values["query"], *values["db"]]) as stream:
        stream.write(to_toml(data))


def _run(pipeline: "Pipeline", arguments: dict[str, Any], options: dict[str, Any], values: dict[str, Any],
         outputs: Sequence[tuple[str | None, str]]) -> "Run":
    """The search itself, with its progress shown."""
    from seqloom.searches import search

    kept = "nothing is kept, as --no-store asks" if values["no_store"] else ""
    with working(values["quiet"], kept) as progress:
        return search(
            pipeline, [Path(query) for query in values["query"]], *values["db"], backend=values["backend"],
            results=values["results"], store=not values["no_store"], stages=values["stage"] or (),
            settings=values["set"] or (), on_bad=values["on_bad"], explain=values["explain"] or (),
            command=shlex.join(["seqloom", *sys.argv[1:]]), progress=progress, outputs=deliveries(outputs),
            cluster=values["cluster"], **arguments, **options)


def _say_summary(run: "Run", seconds: float, values: dict[str, Any],
                 outputs: Sequence[tuple[str | None, str]]) -> None:
    from seqloom.store_path import results_path

    say(summary(run, seconds, [path for path, _ in outputs if path and path != "-"],
                "" if values["no_store"] else str(results_path(values["results"]))))


def _picked(values: dict[str, Any]) -> dict[str, Any]:
    """Which targets to search, as ``searches.search`` takes it."""
    given = [name for name in PICKS if values[name] is not None]
    if len(given) > 1:
        first, second = (f"--{aliases.dashed(name)}" for name in given[:2])
        raise UsageError(f"{first} and {second} exclude each other: give one of them")
    return {PICKS[name][0]: PICKS[name][1](values[name], f"--{aliases.dashed(name)}") for name in given}


def _names(path: str, flag: str) -> list[str]:
    return read_names(path)


def _taxids(text: str, flag: str) -> list[int]:
    from seqloom.taxonomy import number

    return [number(part.strip(), flag) for part in text.split(",") if part.strip()]


def _taxids_of_file(path: str, flag: str) -> list[int]:
    from seqloom.taxonomy import read_taxids

    return read_taxids(path)


PICKS: dict[str, tuple[str, Callable[[str, str], list[Any]]]] = {
    "target_ids": ("target_ids", _names), "negative_target_ids": ("negative_target_ids", _names),
    "taxids": ("taxids", _taxids), "taxidlist": ("taxids", _taxids_of_file),
    "negative_taxids": ("negative_taxids", _taxids), "negative_taxidlist": ("negative_taxids", _taxids_of_file),
}
"""Options that say which targets to search: the argument of ``searches.search`` and what reads its value."""

LISTED, ALIGNED = 500, 250
"""Targets in the table, and with alignments, of BLAST's format 0."""


def _laid_out(pipeline: "Pipeline", outfmt: str, values: dict[str, Any], options: dict[str, Any]) -> str:
    """The output format with the words for its layout; ``options`` gets the most targets that it needs, as in BLAST."""
    names = aliases.FORMAT_OPTIONS.get(pipeline.family, {})
    given = {name: values[name.replace("-", "_")] for name in names if values[name.replace("-", "_")] is not None}
    most = options.get("max_target_seqs")
    counts = {name: number(text, f"--{name}", 0) for name, text in given.items() if name.startswith("num-")}
    if counts and most is not None:
        raise UsageError(f"--{next(iter(counts))} and --max-target-seqs exclude each other: give one of them")
    people = aliases.FOR_PEOPLE.get(pipeline.family, "")
    if outfmt.split()[:1] != [people]:
        for name in given:
            if name != "num-alignments":
                say(f"--{name} is passed over: output format {outfmt.split()[0]} has no such layout; -f {people} has")
        needed = counts.get("num-alignments")
    else:
        outfmt = " ".join([outfmt, *(f"{name.replace('-', '_')}={_word(value)}" for name, value in given.items())])
        outfmt += f" num_alignments={most}" if most is not None else ""
        needed = max(counts.get("num-descriptions", LISTED) or 0, counts.get("num-alignments", ALIGNED) or 0)
    if counts and needed == 0:
        raise UsageError("no targets would be shown; give --num-descriptions or --num-alignments from 1 on")
    if counts and needed:
        options["max_target_seqs"] = needed
    return outfmt


def _word(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"


def summary(run: "Run", seconds: float, files: Sequence[str], store: str) -> str:
    """What a search came to: queries, hits, time, files, and where it is kept; ``store`` is "" where it isn't."""
    assert run.counts is not None
    queries, hits = run.counts
    found = f"{hits:,} {'hit' if hits == 1 else 'hits'}" if hits else "no hits"
    parts = [f"{queries:,} {'query' if queries == 1 else 'queries'}, {found} in {seconds:.1f} s", *files]
    if store:
        with run.connection() as (_, number):
            parts.append(f"run {number or run.id} kept in {store}")
    return "; ".join(parts)


def check_outputs(pipeline: "Pipeline", options: dict[str, Any], values: dict[str, Any],
                  outputs: Sequence[tuple[str | None, str]]) -> "Plan":
    """Refuse output formats that can't be written before any work; gives what will run."""
    from seqloom.core.pipeline import compose
    from seqloom.output_formats import check_format

    backend = values["backend"] or os.environ.get("SEQLOOM_BACKEND") or "auto"
    plan = compose(registry(), pipeline, options, backend, values["stage"] or (), values["set"] or ())
    for path, outfmt in outputs:
        check_format(outfmt, plan, is_terminal(path), path not in (None, "-"))
    return plan


def say_what_is_slow(plan: "Plan", quiet: bool) -> None:
    """One line where stages have no fast kernels, unless they were asked for as they are."""
    slow = plan.slow
    if quiet or not slow:
        return
    if any(filled.stage.backend != "reference" for filled in plan.working("unit")):
        names = ", ".join(f"'{filled.stage.name}' (slot {filled.name})" for filled in slow)
        say(f"{names} {'has' if len(slow) == 1 else 'have'} no fast kernels; this may take long")
    else:
        say(f"{plan.pipeline.name} has no fast kernels yet; this may take long")


def tell_of_compiling(plan: "Plan", quiet: bool) -> None:
    """Say once, at the second kernel that has to be compiled, why this run takes longer; one alone is soon done."""
    if quiet or all(placed.stage.backend == "reference" for placed in plan.stages):
        return  # the compiler is slow to import, and the reference back end does without it
    from seqloom.core.kernels import cache, jit

    compiled: list[str] = []

    def count(name: str) -> None:
        compiled.append(name)
        if len(compiled) == 2 and cache.can_keep():
            say("compiling kernels for this machine, once; later runs start at full speed")
        elif len(compiled) == 2:
            say("compiling kernels for this machine; they can't be kept, so every run does: set NUMBA_CACHE_DIR to a "
                "folder that can be written to")

    jit.on_compile = count
