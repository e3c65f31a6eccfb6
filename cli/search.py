"""``seqloom blastp …`` and ``seqloom search PIPELINE …``: one command per pipeline, made from what plugins declare.

A command's options are those of every search (below), then those of the pipeline's family; a stage's own options are
set through ``--set`` and listed in the help under its slot.
"""

import inspect
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from seqloom.core.errors import UsageError
from typer.main import get_command

from . import aliases, colour
from .helping import EXAMPLE, INPUT, OUTPUT, RESULTS, SETTINGS, YES, FileName, PlainCommand, PlainGroup, group
from .output import is_terminal, opened, say
from .plugs import registry
from .progress import working

if TYPE_CHECKING:
    from seqloom.core.options import OptionInfo
    from seqloom.core.pipeline import Pipeline, Plan
    from seqloom.core.stages import Family, Stage
    from seqloom.outputs import Output
    from seqloom.run import Run

IN_OUT, MACHINE, BUILD = "Input and output", "Machine (changes no result)", "Pipeline"


class RunOption(NamedTuple):
    """An option that every search has: of type str, list[str] (may be repeated) or bool."""

    heading: str
    help: str
    metavar: str = ""
    type: Any = str
    default: Any = None
    required: bool = False


RUN_OPTIONS = {
    "query": RunOption(IN_OUT, "queries, plain or compressed; - is standard input; may be repeated", INPUT,
                       list[str], required=True),
    "db": RunOption(IN_OUT, "a database or a FASTA file to search; may be repeated", INPUT, list[str], required=True),
    "out": RunOption(IN_OUT, "write results there instead of to standard output", RESULTS),
    "outfmt": RunOption(IN_OUT, "output format and its fields, as '6 qseqid sseqid evalue'", "FMT"),
    "results": RunOption(IN_OUT, "results store (env SEQLOOM_RESULTS)  [default: seqloom.duckdb]",
                         FileName("FILE", "store")),
    "no-store": RunOption(IN_OUT, "keep nothing but the output", type=bool, default=False),
    "target-ids": RunOption(IN_OUT, "search only the targets named in FILE, one a line", INPUT),
    "negative-target-ids": RunOption(IN_OUT, "search all but the targets named in FILE", INPUT),
    "taxids": RunOption(IN_OUT, "search only targets of these organisms and of what belongs to them", "N,N,…"),
    "taxidlist": RunOption(IN_OUT, "the same for the taxids in FILE, one a line", INPUT),
    "negative-taxids": RunOption(IN_OUT, "search all but targets of these organisms", "N,N,…"),
    "negative-taxidlist": RunOption(IN_OUT, "the same for the taxids in FILE", INPUT),
    "color": RunOption(IN_OUT, "colour of hits on a terminal (env NO_COLOR)", "auto|always|never", default="auto"),
    "on-bad": RunOption(IN_OUT, "what to do about query records that can't be used", "error|skip", default="error"),
    "quiet": RunOption(IN_OUT, "no progress, and no word at the end", type=bool, default=False),
    "backend": RunOption(MACHINE, "auto, cpu, cuda or reference (env SEQLOOM_BACKEND)  [default: auto]", "NAME"),
    "num-threads": RunOption(MACHINE, "threads", "N", default="1"),
    "memory": RunOption(MACHINE, "memory that the program may take, as 8G", "SIZE"),
    "device-memory": RunOption(MACHINE, "device memory that it may take, as 60G", "SIZE"),
    "cluster": RunOption(MACHINE, "search on a Dask cluster: its address, a scheduler file, or local:4 for 4 processes",
                         FileName("ADDRESS|FILE|local:N", "input")),
    "batch-residues": RunOption(MACHINE, "maximum of query residues at once", "N"),
    "volume-residues": RunOption(MACHINE, "maximum of target residues at once", "N"),
    "batch-queries": RunOption(MACHINE, "maximum of queries at once", "N"),
    "task": RunOption(BUILD, "the pipeline of this name instead, as blastn -task blastn, or that of a TOML file",
                      FileName("NAME|FILE.toml", "pipeline")),
    "export-search-strategy": RunOption(BUILD, "write pipeline and options as a TOML file for --import-search-strategy",
                                        OUTPUT),
    "stage": RunOption(BUILD, "fill a slot with another plugin; may be repeated", "SLOT=PLUGIN", list[str]),
    "set": RunOption(BUILD, "set an option of a slot; may be repeated", "SLOT.OPTION=VALUE", list[str]),
    "explain": RunOption(BUILD, "say how far a target came; may be repeated", "TARGET", list[str]),
}
OWN = "option_"
"""Prefix of the Python names of pipeline options, which may have the name of a run option."""


def is_pipeline(name: str) -> bool:
    """Whether a preset has this name, or it is a TOML file's."""
    return name.endswith(".toml") or name in {p.name for p in registry().pipelines()}


def pipeline_command(name: str, args: Sequence[str] = ()) -> Any:
    """The command that runs the pipeline ``name``, a preset or a TOML file, or the task that ``args`` ask for."""
    from seqloom.core.options import option_infos
    from seqloom.installed import find_pipeline

    task = aliases.task_of(args) or ""
    if task and not is_pipeline(task):
        from .peers import check_task

        check_task(task)
    pipeline = find_pipeline(registry(), name, task)
    family = registry().family(pipeline.family)
    infos = option_infos(family.Options)
    taken: set[str] = {"-h", "--help"}
    common = [_run_parameter(n, taken) for n in RUN_OPTIONS]
    own = [_own_parameter(i, pipeline, taken) for i in infos]
    outputs = [_output_parameter(n, taken) for n in registry().outputs(pipeline.family)]
    outputs += [_format_parameter(n, f, h, taken)
                for n, (f, _, h) in aliases.FORMAT_WORDS.get(pipeline.family, {}).items()]
    outputs += [_layout_parameter(n, m, h, taken)
                for n, (m, h) in aliases.FORMAT_OPTIONS.get(pipeline.family, {}).items()]
    ahead = sum(info.heading == IN_OUT for info in RUN_OPTIONS.values())
    parameters = [*common[:ahead], *outputs, *own, *common[ahead:]]
    booleans = [f for p, i in zip(own, infos, strict=True) if i.type is bool for f in _flags(p)]

    def search(**values: Any) -> None:
        _search(pipeline, {i.name: i for i in infos}, values)

    search.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    search.__annotations__ = {p.name: p.annotation for p in parameters}

    def slots(args: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        return _slot_help(pipeline, args)

    kind = type("PipelineCommand", (PlainCommand,),
                {"place": pipeline.family, "positional": aliases.POSITIONAL.get(pipeline.family, ()),
                 "booleans": frozenset(booleans), "extra_help": staticmethod(slots),
                 "reads": tuple(given for given in (name, task) if given.endswith(".toml"))})
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command(name, cls=kind, help=pipeline.help, context_settings=dict(SETTINGS),
                   epilog=f"{EXAMPLE}{example(name, family)}\nUnderscores may stand for dashes, and one dash for two: "
                          "-max_target_seqs.")(search)
    return get_command(single)


SAMPLES = {"protein": ("queries.fasta", "proteins.duckdb"), "nucleotide": ("queries.fasta", "genome.duckdb"),
            "model": ("models.hmm", "proteins.duckdb")}
"""Queries and database of an example, by kind of queries."""


def example(name: str, family: "type[Family]") -> str:
    """A command line that searches with the pipeline ``name``."""
    query, database = SAMPLES.get(family.query, SAMPLES["protein"])
    database = "models.hmm" if family.target == "model" else database
    return f"seqloom {name} -q {query} -d {database} -p 4 -o hits.txt"


def load(name: str) -> "Pipeline":
    """A preset by name, or the pipeline of a TOML file."""
    from seqloom.core.pipeline import Pipeline

    return Pipeline.from_toml(name, registry()) if name.endswith(".toml") else registry().pipeline(name)


def _run_parameter(name: str, taken: set[str]) -> inspect.Parameter:
    info = RUN_OPTIONS[name]
    flags = aliases.spellings(name, taken=taken)
    taken.update(flags)
    declared = typer.Option(*flags, help=info.help, metavar=info.metavar or None, rich_help_panel=info.heading,
                            show_default=isinstance(info.default, str))
    default = inspect.Parameter.empty if info.required else info.default
    kind = info.type if info.required or info.default is not None else info.type | None
    return inspect.Parameter(name.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=default,
                             annotation=Annotated[kind, declared])


def _output_parameter(format: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(format, aliases.OUTPUTS.get(format, ()), taken)
    taken.update(flags)
    declared = typer.Option(*flags, help=f"write a file in format {format} as well", metavar=OUTPUT,
                            rich_help_panel=IN_OUT)
    return inspect.Parameter(format.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=None,
                             annotation=Annotated[str | None, declared])


def _format_parameter(name: str, flag: str, help: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(name, (flag,), taken)
    taken.update(flags)
    declared = typer.Option(*flags, help=help, rich_help_panel=IN_OUT, show_default=False)
    return inspect.Parameter(name.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=False,
                             annotation=Annotated[bool, declared])


def _layout_parameter(name: str, metavar: str, help: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(name, taken=taken)
    taken.update(flags)
    declared = typer.Option(*flags, help=help, metavar=metavar or None, rich_help_panel=IN_OUT, show_default=False)
    kind: Any = str if metavar else bool
    return inspect.Parameter(name.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=None,
                             annotation=Annotated[kind | None, declared])


def _own_parameter(info: "OptionInfo", pipeline: "Pipeline", taken: set[str]) -> inspect.Parameter:
    default = pipeline.defaults.get(info.name, info.default)
    name = aliases.dashed(info.name)
    flags = aliases.spellings(name, info.aliases, taken)
    taken.update(flags)
    heading = info.group or f"Options of {pipeline.name}"
    if not flags:
        flags = [f"--{OWN.replace('_', '-')}{name}"]
    if info.type is bool:
        flags = [f"{f}/--no-{name}" if f == f"--{name}" else f for f in flags]
        help = f"{info.help}  {YES}" if default else info.help
        declared = typer.Option(*flags, help=help, rich_help_panel=heading, show_default=False)
        return inspect.Parameter(OWN + info.name, inspect.Parameter.KEYWORD_ONLY, default=None,
                                 annotation=Annotated[bool | None, declared])
    declared = typer.Option(*flags, help=described(info, default), rich_help_panel=heading, show_default=False,
                            metavar=_placeholder(info))
    return inspect.Parameter(OWN + info.name, inspect.Parameter.KEYWORD_ONLY, default=None,
                             annotation=Annotated[str | None, declared])


def described(info: "OptionInfo", default: Any, more: str = "") -> str:
    """Help of an option with its default; ``more`` stands behind the help."""
    return f"{info.help}{more}" + ("" if default is None else f"  [default: {default}]")


def _placeholder(info: "OptionInfo") -> str:
    if info.output or "FILE" in info.metavar:
        return FileName(info.metavar or "FILE", "output" if info.output else "input")
    return info.metavar or "|".join(info.choices) or {int: "N", float: "X"}.get(info.type, "TEXT")


def _flags(parameter: inspect.Parameter) -> list[str]:
    option = parameter.annotation.__metadata__[0]
    return [f.split("/")[0] for f in (option.default, *(option.param_decls or ())) if isinstance(f, str)]


def _slot_help(pipeline: "Pipeline", args: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """One row per slot, with the plugin that fills it, and one per option of that plugin; ``--stage`` is heeded."""
    from seqloom.core.options import build_options, option_infos
    from seqloom.core.pipeline import lacking

    for place, word in enumerate(args):
        if word in ("--stage", "-stage") and place + 1 < len(args):
            pipeline = pipeline.with_stage(*args[place + 1].split("=", 1)) if "=" in args[place + 1] else pipeline
    rows = []
    family = registry().family(pipeline.family)
    filled = {slot.plugin for slot in pipeline.slots}
    known = registry().one_of_each(pipeline.family)
    made = {getattr(s, "provides", "") for s in known if s.name in filled}
    stages = [s for s in known if not lacking(s, family) and made.issuperset(s.reads)]
    usual = build_options(family.Options, pipeline.defaults)
    for slot in pipeline.slots:
        found = [s for s in known if s.name == slot.plugin]
        backends = ", ".join(registry().stage_backends(slot.plugin))
        if not found:
            rows.append((slot.name, f"{slot.plugin} [{backends}]" if backends else f"{slot.plugin}: not installed"))
            continue
        others = sorted({s.name for s in stages if s.name != slot.plugin and slot.scope in s.scopes
                         and _could_replace(s, found[0]) and s.applies(usual) == found[0].applies(usual)})
        also = f"; or {', '.join(others)}" if others else ""
        off = {"True": "", "False": " (off)"}.get(str(slot.enabled), " (on cpu and cuda only)")
        rows.append((slot.name, f"{slot.plugin} [{backends}]{off}: {found[0].help().rstrip('.')}{also}"))
        for info in option_infos(found[0].Options):
            default = slot.options.get(info.name, info.default)
            choices = f": {', '.join(info.choices)}" if info.choices else ""
            rows.append((f"  {slot.name}.{aliases.dashed(info.name)}", described(info, default, choices)))
    return {"Slots (--stage SLOT=PLUGIN, --set SLOT.OPTION=VALUE; each also has enabled and backend)": rows}


def _could_replace(stage: "type[Stage]", other: "type[Stage]") -> bool:
    """Whether ``stage`` takes and gives what ``other`` does, so that it may fill the same slot."""
    if stage.kind != other.kind or not set(stage.takes) & set(other.takes):
        return False
    if stage.kind == "index":
        return getattr(stage, "provides", "") == getattr(other, "provides", None)
    if getattr(stage, "narrows", False) or getattr(other, "narrows", False):
        return getattr(stage, "narrows", False) and getattr(other, "narrows", False)
    return stage.gives is other.gives and getattr(stage, "preliminary", False) == getattr(other, "preliminary", False)


def _search(pipeline: "Pipeline", infos: "dict[str, OptionInfo]", values: dict[str, Any]) -> None:
    """Carry out a search with the values of the command line."""
    from seqloom.core.engine.heap import keep_freed_memory

    keep_freed_memory()
    arguments = _arguments(pipeline, infos, values)
    outputs = _outputs(pipeline, values, arguments["options"])
    plan = check_outputs(pipeline, arguments["options"], values, outputs)
    if values["export_search_strategy"]:
        _export_strategy(replace(pipeline, slots=plan.pipeline.slots), arguments["options"], values)
    say_what_is_slow(plan, values["quiet"])
    tell_of_compiling(plan, values["quiet"])
    begin = time.perf_counter()
    run = _run(pipeline, arguments, values, outputs)
    for line in run.explanation() if values["explain"] else ():
        say(line)
    if sys.stderr and sys.stderr.isatty() and not values["quiet"]:
        _say_summary(run, time.perf_counter() - begin, values, outputs)


def _arguments(pipeline: "Pipeline", infos: "dict[str, OptionInfo]", values: dict[str, Any]) -> dict[str, Any]:
    """What was typed as numbers, sizes, names and options of the pipeline, as ``searches.search`` takes it.

    Raises:
        UsageError, OptionError: it is none of these.
    """
    from seqloom.core.units import parse_bytes

    if values["on_bad"] not in ("error", "skip"):
        raise UsageError(f"--on-bad must be error or skip, not '{values['on_bad']}'")
    if values["num_threads"] == "0" and pipeline.family in aliases.PROFILES:
        values["num_threads"] = "1"  # HMMER's way to ask for no threads beside the first
    numbers = {name: number(values[name], f"--{name.replace('_', '-')}")
               for name in ("num_threads", "volume_residues", "batch_queries", "batch_residues")}
    memory, device_memory = parse_bytes(values["memory"]), parse_bytes(values["device_memory"], "--device-memory")
    options = {n.removeprefix(OWN): v for n, v in values.items() if n.startswith(OWN) and v is not None}
    options = {n: infos[n].parse(v) for n, v in options.items()}
    return {"threads": numbers.pop("num_threads") or 1, **numbers, "memory": memory, "device_memory": device_memory,
            "targets": _picked(values), "options": options}


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


def _run(pipeline: "Pipeline", arguments: dict[str, Any], values: dict[str, Any],
         outputs: Sequence[tuple[str | None, str]]) -> "Run":
    """The search itself, with its progress shown."""
    from seqloom.searches import search

    settings = {name: value for name, value in arguments.items() if name not in ("targets", "options")}
    kept = "nothing is kept, as --no-store asks" if values["no_store"] else ""
    with working(values["quiet"], kept) as progress:
        return search(
            pipeline, [Path(query) for query in values["query"]], *values["db"], backend=values["backend"],
            results=values["results"], store=not values["no_store"], stages=values["stage"] or (),
            settings=values["set"] or (), on_bad=values["on_bad"], explain=values["explain"] or (),
            command=shlex.join(["seqloom", *sys.argv[1:]]), progress=progress, outputs=deliveries(outputs),
            cluster=values["cluster"], **settings, **arguments["targets"], **arguments["options"])


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


def number(text: str | None, flag: str, least: int = 1) -> int | None:
    """A number from ``least`` on given as text."""
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise UsageError(f"{flag} needs a number from {least} on, not '{text}'")
    return int(text)


def read_names(path: str) -> list[str]:
    """Names from a file, one a line: the first word; empty lines don't count."""
    return [line.split()[0] for line in read_lines(path)]


def read_lines(path: str) -> list[str]:
    """Lines of a file of names; empty ones don't count."""
    from seqloom import inputs
    from seqloom.core.errors import InputError

    with inputs.opened(path, may_be_empty=True) as stream:
        try:
            text = stream.read().decode()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is no text; give a file with a name on each line") from None
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        raise InputError(f"{path}: no names in it")
    return lines


def deliveries(outputs: Sequence[tuple[str | None, str]]) -> "list[Output]":
    """Outputs of a search, from (file or None for standard output, format) each."""
    from seqloom.outputs import Output

    def written(run: "Run", path: str | None, outfmt: str) -> None:
        try:
            deliver(run, path, outfmt)
        except OSError as error:
            error.filename = error.filename or path or "standard output"
            raise

    return [Output(outfmt, partial(written, path=path, outfmt=outfmt)) for path, outfmt in outputs]


def deliver(run: "Run", path: str | None, outfmt: str) -> None:
    """Write a run's results into a file, or several that are called after it, or to standard output."""
    if not outfmt and is_terminal(path):
        outfmt = colour.hits_format(run.plan.pipeline.writer)
    if path not in (None, "-") and registry().writer((outfmt or run.plan.pipeline.writer).split()[0]).several:
        run.write(path, outfmt)
        return
    if outfmt.startswith("table ") and "colour=yes" in outfmt.split() and path in (None, "-"):
        with colour.styled() as stream:  # the format escapes control characters in names itself
            run.write(stream, outfmt)
        return
    with opened(path) as stream:
        run.write(stream, outfmt)


class SearchGroup(PlainGroup):
    """``seqloom search PIPELINE``: the pipelines are its commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [p.name for p in registry().pipelines()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self.commands.update(dict.fromkeys(self.list_commands(ctx)))  # type: ignore[arg-type]  # names to suggest
        return pipeline_command(cmd_name) if is_pipeline(cmd_name) else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if is_pipeline(args[0]):
            return args[0], pipeline_command(args[0], args[1:]), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Pipelines"):
            formatter.write_dl([(p.name, p.help) for p in registry().pipelines()])


app = group("Run a pipeline by name, third-party ones included, or from a TOML file (FILE.toml).", cls=SearchGroup)


@app.callback(subcommand_metavar="PIPELINE|FILE.toml [ARGS]...",
              epilog="Example: seqloom search mine.toml -q queries.fasta -d proteins.duckdb -o hits.tsv")
def _search_group() -> None:
    pass
