"""``seqloom blastp …`` and ``seqloom search PIPELINE …``: one command per pipeline, made from what plugins declare.

A command's options are those of every search (below), then those of the pipeline's family; a stage's own options are
set through ``--set`` and listed in the help under its slot.
"""

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer
from seqloom.core.classes import NamedTuple
from typer.main import get_command

from . import aliases
from .helping import EXAMPLE, INPUT, OUTPUT, RESULTS, SETTINGS, YES, FileName, PlainCommand, PlainGroup, group
from .plugs import registry

if TYPE_CHECKING:
    from seqloom.core.options import OptionInfo
    from seqloom.core.pipeline import Pipeline
    from seqloom.core.stages import Family, Stage

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
    "query-list": RunOption(IN_OUT, "the same of files that are named in FILE, one a line", INPUT),
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
    "in-turn": RunOption(MACHINE, "read, search and write one batch of queries after another, to see what overlap "
                         "gains", type=bool, default=False),
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
    task = aliases.task_of(args) or ""
    if task and not is_pipeline(task):
        from .peers import check_task

        check_task(task)
    lists_queries = aliases.has("query-list", args)
    if (name, task) in prepared and not lists_queries:
        return prepared[name, task]
    return _made(name, task, lists_queries)


prepared: dict[tuple[str, str], Any] = {}
"""Commands of presets, and of those as tasks of others, that were made before anybody asked for them."""


def prepare(name: str, task: str = "") -> None:
    """Make the command of a preset, or of its task, beforehand."""
    prepared[name, task] = _made(name, task)


def _made(name: str, task: str = "", lists_queries: bool = False) -> Any:
    """The command of a pipeline or of its task; without ``--query`` where a list of queries is given."""
    from seqloom.core.options import option_infos
    from seqloom.installed import find_pipeline

    pipeline = find_pipeline(registry(), name, task)
    family = registry().family(pipeline.family)
    infos = option_infos(family.Options)
    taken: set[str] = {"-h", "--help"}
    optional = {"query"} if lists_queries else set()
    common = [_run_parameter(n, taken, n in optional) for n in RUN_OPTIONS]
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
        from .searching import carry_out

        own = [(info, values.pop(OWN + info.name)) for info in infos]
        carry_out(pipeline, [(info, value) for info, value in own if value is not None], values)

    search.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    search.__annotations__ = {}  # all of them are in the signature; typer goes through these as well, four times

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


def _parameter(name: str, kind: Any, default: Any, flags: Sequence[str], **words: Any) -> inspect.Parameter:
    """A parameter of the function that a command is made of; ``words`` are those of ``typer.Option``."""
    return inspect.Parameter(name.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, annotation=kind,
                             default=typer.Option(default, *flags, **words))


def _run_parameter(name: str, taken: set[str], optional: bool = False) -> inspect.Parameter:
    info = RUN_OPTIONS[name]._replace(required=False) if optional else RUN_OPTIONS[name]
    flags = aliases.spellings(name, taken=taken)
    taken.update(flags)
    kind = info.type if info.required or info.default is not None else info.type | None
    return _parameter(name, kind, ... if info.required else info.default, flags, help=info.help,
                      metavar=info.metavar or None, rich_help_panel=info.heading,
                      show_default=isinstance(info.default, str))


def _output_parameter(format: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(format, aliases.OUTPUTS.get(format, ()), taken)
    taken.update(flags)
    return _parameter(format, str | None, None, flags, help=f"write a file in format {format} as well", metavar=OUTPUT,
                      rich_help_panel=IN_OUT)


def _format_parameter(name: str, flag: str, help: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(name, (flag,), taken)
    taken.update(flags)
    return _parameter(name, bool, False, flags, help=help, rich_help_panel=IN_OUT, show_default=False)


def _layout_parameter(name: str, metavar: str, help: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(name, taken=taken)
    taken.update(flags)
    return _parameter(name, str | None if metavar else bool | None, None, flags, help=help, metavar=metavar or None,
                      rich_help_panel=IN_OUT, show_default=False)


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
        return _parameter(OWN + info.name, bool | None, None, flags, help=help, rich_help_panel=heading,
                          show_default=False)
    return _parameter(OWN + info.name, str | None, None, flags, help=described(info, default), rich_help_panel=heading,
                      show_default=False, metavar=_placeholder(info))


def described(info: "OptionInfo", default: Any, more: str = "") -> str:
    """Help of an option with its default; ``more`` stands behind the help."""
    return f"{info.help}{more}" + ("" if default is None else f"  [default: {default}]")


def _placeholder(info: "OptionInfo") -> str:
    if info.output or "FILE" in info.metavar:
        return FileName(info.metavar or "FILE", "output" if info.output else "input")
    return info.metavar or "|".join(info.choices) or {int: "N", float: "X"}.get(info.type, "TEXT")


def _flags(parameter: inspect.Parameter) -> list[str]:
    return [flag.split("/")[0] for flag in parameter.default.param_decls]


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
