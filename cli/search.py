"""``seqloom blastp …`` and ``seqloom search PIPELINE …``: one command per pipeline, made from what plugins declare.

A command's options are those of every search (below), then those of the pipeline's family; a stage's own options are
set through ``--set`` and listed in the help under its slot.
"""

import inspect
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from seqloom.core.errors import SeqloomError, UsageError
from typer.core import TyperGroup
from typer.main import get_command

from . import aliases
from .helping import SETTINGS, YES, PlainCommand, group
from .output import check_place, check_unread, opened, say
from .plugs import registry

if TYPE_CHECKING:
    from seqloom.core.context import Cancellation
    from seqloom.core.options import OptionInfo
    from seqloom.core.pipeline import Pipeline, Plan
    from seqloom.core.stages import Stage
    from seqloom.run import Run

IN_OUT, MACHINE, BUILD = "Input and output", "Machine (changes no result)", "Pipeline"


@dataclass(frozen=True)
class RunOption:
    """An option that every search has: of type str, list[str] (may be repeated) or bool."""

    heading: str
    help: str
    metavar: str = ""
    type: Any = str
    default: Any = None
    required: bool = False


RUN_OPTIONS = {
    "query": RunOption(IN_OUT, "queries; - is standard input; gzip and zstd are fine", "FILE", required=True),
    "db": RunOption(IN_OUT, "a database or a FASTA file to search; may be repeated", "FILE", list[str], required=True),
    "out": RunOption(IN_OUT, "write results there instead of to standard output", "FILE"),
    "outfmt": RunOption(IN_OUT, "output format and its fields, as '6 qseqid sseqid evalue'", "FMT"),
    "results": RunOption(IN_OUT, "results store (env SEQLOOM_RESULTS)  [default: seqloom.duckdb]", "FILE"),
    "no-store": RunOption(IN_OUT, "keep nothing but the output", type=bool, default=False),
    "target-ids": RunOption(IN_OUT, "search only the targets named in FILE, one a line", "FILE"),
    "on-bad": RunOption(IN_OUT, "what to do about query records that can't be used", "error|skip", default="error"),
    "quiet": RunOption(IN_OUT, "no progress", type=bool, default=False),
    "backend": RunOption(MACHINE, "auto, cpu, cuda or reference (env SEQLOOM_BACKEND)  [default: auto]", "NAME"),
    "num-threads": RunOption(MACHINE, "threads", "N", default="1"),
    "memory": RunOption(MACHINE, "memory that the program may take, as 8G", "SIZE"),
    "device-memory": RunOption(MACHINE, "device memory that it may take, as 60G", "SIZE"),
    "volume-letters": RunOption(MACHINE, "most target letters at once", "N"),
    "batch-queries": RunOption(MACHINE, "most queries at once", "N"),
    "task": RunOption(BUILD, "the pipeline of this name instead, as blastn -task megablast", "NAME"),
    "stage": RunOption(BUILD, "fill a slot with another plugin; may be repeated", "SLOT=PLUGIN", list[str]),
    "set": RunOption(BUILD, "set an option of a slot; may be repeated", "SLOT.OPTION=VALUE", list[str]),
    "explain": RunOption(BUILD, "say how far a target came; may be repeated", "TARGET", list[str]),
}
OWN = "option_"
"""Prefix of the Python names of pipeline options, which may have the name of a run option."""


def is_pipeline(name: str) -> bool:
    """Whether a preset has this name, or it is a TOML file's."""
    return name.endswith(".toml") or name in {p.name for p in registry().pipelines()}


def pipeline_command(name: str) -> Any:
    """The command that runs the pipeline ``name``: a preset or a TOML file."""
    from seqloom.core.options import option_infos

    pipeline = load(name)
    family = registry().family(pipeline.family)
    infos = option_infos(family.Options)
    taken: set[str] = {"-h", "--help"}
    common = [_run_parameter(n, taken) for n in RUN_OPTIONS]
    own = [_own_parameter(i, pipeline, taken) for i in infos]
    outputs = [_output_parameter(n, taken) for n in aliases.OUTPUTS.get(pipeline.family, ())]
    outputs += [_format_parameter(n, f, h, taken)
                for n, (f, _, h) in aliases.FORMAT_WORDS.get(pipeline.family, {}).items()]
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
                {"booleans": frozenset(booleans), "extra_help": staticmethod(slots)})
    single = typer.Typer(rich_markup_mode=None, add_completion=False)
    single.command(name, cls=kind, help=pipeline.help, context_settings=dict(SETTINGS),
                   epilog="Underscores may stand for dashes, and one dash for two: -max_target_seqs.")(search)
    return get_command(single)


def command_words(args: list[str]) -> list[str]:
    """``args`` with the pipeline that ``--task`` asks for as the command, so that its own options are those that count.

    Raises:
        UsageError: the task lacks options that the command has.
    """
    task = aliases.task_of(args[1:])
    if task is None or not is_pipeline(args[0]):
        return args
    plugins = registry()
    asked = plugins.pipeline(task)
    here, there = (plugins.family(load(n).family).Options for n in (args[0], task))
    if not issubclass(there, here):
        raise UsageError(f"--task {task} is no task of '{args[0]}'; seqloom {asked.name} runs it")
    return [task, *args[1:]]


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
    flags = aliases.spellings(format, taken=taken)
    taken.update(flags)
    declared = typer.Option(*flags, help=f"write a file in format {format} as well", metavar="FILE",
                            rich_help_panel=IN_OUT)
    return inspect.Parameter(format.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=None,
                             annotation=Annotated[str | None, declared])


def _format_parameter(name: str, flag: str, help: str, taken: set[str]) -> inspect.Parameter:
    flags = aliases.spellings(name, (flag,), taken)
    taken.update(flags)
    declared = typer.Option(*flags, help=help, rich_help_panel=IN_OUT, show_default=False)
    return inspect.Parameter(name.replace("-", "_"), inspect.Parameter.KEYWORD_ONLY, default=False,
                             annotation=Annotated[bool, declared])


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
                            metavar=info.metavar or "|".join(info.choices) or _placeholder(info.type))
    return inspect.Parameter(OWN + info.name, inspect.Parameter.KEYWORD_ONLY, default=None,
                             annotation=Annotated[str | None, declared])


def described(info: "OptionInfo", default: Any) -> str:
    """Help of an option with its default."""
    return info.help if default is None else f"{info.help}  [default: {default}]"


def _placeholder(kind: type) -> str:
    return {int: "N", float: "X"}.get(kind, "TEXT")


def _flags(parameter: inspect.Parameter) -> list[str]:
    option = parameter.annotation.__metadata__[0]
    return [f.split("/")[0] for f in (option.default, *(option.param_decls or ())) if isinstance(f, str)]


def _slot_help(pipeline: "Pipeline", args: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """One row per slot, with the plugin that fills it, and one per option of that plugin; ``--stage`` is heeded."""
    from seqloom.core.options import option_infos

    for place, word in enumerate(args):
        if word in ("--stage", "-stage") and place + 1 < len(args):
            pipeline = pipeline.with_stage(*args[place + 1].split("=", 1)) if "=" in args[place + 1] else pipeline
    rows = []
    scoring = registry().family(pipeline.family).Scoring
    filled = {slot.plugin for slot in pipeline.slots}
    made = {getattr(s, "provides", "") for s in registry().stages() if s.name in filled}
    stages = [s for s in registry().stages() if issubclass(scoring, s.scoring) and made.issuperset(s.reads)]
    for slot in pipeline.slots:
        found = [s for s in registry().stages() if s.name == slot.plugin]
        if not found:
            rows.append((slot.name, f"{slot.plugin}: not installed"))
            continue
        backends = ", ".join(s.backend for s in found)
        others = sorted({s.name for s in stages if s.name != slot.plugin and _could_replace(s, found[0])})
        also = f"; or {', '.join(others)}" if others else ""
        off = {"True": "", "False": " (off)"}.get(str(slot.enabled), " (on cpu and cuda only)")
        rows.append((slot.name, f"{slot.plugin} [{backends}]{off}: {found[0].help().rstrip('.')}{also}"))
        for info in option_infos(found[0].Options):
            default = slot.options.get(info.name, info.default)
            rows.append((f"  {slot.name}.{aliases.dashed(info.name)}", described(info, default)))
    return {"Slots (--stage SLOT=PLUGIN, --set SLOT.OPTION=VALUE; each also has enabled and backend)": rows}


def _could_replace(stage: "type[Stage]", other: "type[Stage]") -> bool:
    """Whether ``stage`` takes and gives what ``other`` does, so that it may fill the same slot."""
    if stage.kind != other.kind or not set(stage.takes) & set(other.takes):
        return False
    if stage.kind == "index":
        return getattr(stage, "provides", "") == getattr(other, "provides", None)
    return stage.gives is other.gives


def _search(pipeline: "Pipeline", infos: "dict[str, OptionInfo]", values: dict[str, Any]) -> None:
    """Carry out a search with the values of the command line."""
    from seqloom.core.heap import keep_freed_memory
    from seqloom.core.units import parse_bytes
    from seqloom.searches import search

    keep_freed_memory()
    if values["on_bad"] not in ("error", "skip"):
        raise UsageError(f"--on-bad must be error or skip, not '{values['on_bad']}'")
    numbers = {name: number(values[name], f"--{name.replace('_', '-')}")
               for name in ("num_threads", "volume_letters", "batch_queries")}
    memory, device_memory = parse_bytes(values["memory"]), parse_bytes(values["device_memory"], "--device-memory")
    options = {n.removeprefix(OWN): v for n, v in values.items() if n.startswith(OWN) and v is not None}
    options = {n: infos[n].parse(v) for n, v in options.items()}
    outfmt = values["outfmt"] or pipeline.writer
    targets = read_names(values["target_ids"]) if values["target_ids"] else None
    if outfmt.split()[:1] == [pipeline.writer]:
        words = aliases.FORMAT_WORDS.get(pipeline.family, {}).items()
        outfmt = " ".join([outfmt, *(word for name, (_, word, _) in words if values[name.replace("-", "_")])])
    outputs = [(values["out"], outfmt)]
    for name in aliases.OUTPUTS.get(pipeline.family, ()):
        path = values.get(name.replace("-", "_"))
        outputs += [(path, name)] if path else []
    plan = check_outputs(pipeline, options, values, outputs)
    tell_of_compiling(plan, values["quiet"])
    with delivery(outputs) as written, interruptible() as cancellation, progress(values["quiet"]) as bar:
        run = search(
            pipeline, values["query"], *values["db"], backend=values["backend"],
            threads=numbers["num_threads"] or 1, memory=memory, device_memory=device_memory,
            results=values["results"], store=not values["no_store"], stages=values["stage"] or (),
            settings=values["set"] or (), target_ids=targets,
            volume_letters=numbers["volume_letters"], batch_queries=numbers["batch_queries"], on_bad=values["on_bad"],
            explain=values["explain"] or (), command=shlex.join(["seqloom", *sys.argv[1:]]), cancellation=cancellation,
            progress=bar, written=written, **options)
    for line in run.explanation() if values["explain"] else ():
        say(line)


def check_outputs(pipeline: "Pipeline", options: dict[str, Any], values: dict[str, Any],
                  outputs: Sequence[tuple[str | None, str]]) -> "Plan":
    """Refuse output formats and places that can't be written before any work; gives what will run."""
    from seqloom.core.pipeline import compose
    from seqloom.output_formats import check_format
    from seqloom.searches import results_path

    read = [values["query"], *values["db"], values["target_ids"], str(results_path(values["results"]))]
    backend = values["backend"] or os.environ.get("SEQLOOM_BACKEND") or "auto"
    plan = compose(registry(), pipeline, options, backend, values["stage"] or (), values["set"] or ())
    taken = set()
    for path, outfmt in outputs:
        check_format(outfmt, plan)
        check_place(path)
        place = os.path.realpath(path) if path and path != "-" else ""
        if place in taken and (os.path.isfile(place) or not os.path.exists(place)):
            where = path if place else "standard output"
            raise UsageError(f"{where} would be written twice; give every output a file of its own")
        check_unread(path, read)
        taken.add(place)
    return plan


def tell_of_compiling(plan: "Plan", quiet: bool) -> None:
    """Say once, at the second kernel that has to be compiled, why this run takes longer; one alone is soon done."""
    if quiet or all(placed.stage.backend == "reference" for placed in plan.stages):
        return  # the compiler is slow to import, and the reference back end does without it
    from seqloom.core import jit

    compiled: list[str] = []

    def count(name: str) -> None:
        compiled.append(name)
        if len(compiled) == 2:
            say("compiling kernels for this machine, once; later runs start at full speed")

    jit.on_compile = count


def number(text: str | None, flag: str) -> int | None:
    """A positive number given as text."""
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"{flag} needs a number from 1 on, not '{text}'")
    return int(text)


def read_names(path: str) -> list[str]:
    """Names from a file, one a line: the first word; empty lines don't count."""
    from seqloom import inputs
    from seqloom.core.errors import InputError

    with inputs.opened(path, may_be_empty=True) as stream:
        try:
            text = stream.read().decode()
        except UnicodeDecodeError:
            raise InputError(f"{path}: is no text; give a file with a name on each line") from None
    names = [words[0] for line in text.split("\n") if (words := line.split())]
    if not names:
        raise InputError(f"{path}: no names in it")
    return names


@contextmanager
def delivery(outputs: Sequence[tuple[str | None, str]]) -> "Iterator[Callable[[Run], None]]":
    """Gives the function that writes a run's outputs: (file or None for standard output, format) each.

    What goes wrong with the output is raised at the end, when the run itself has been kept.
    """
    problems: list[Exception] = []

    def written(run: "Run") -> None:
        for path, outfmt in outputs:
            try:
                with opened(path) as stream:
                    run.write(stream, outfmt)
            except SeqloomError as error:
                problems.append(error)
            except OSError as error:
                error.filename = error.filename or path or "standard output"
                problems.append(error)

    yield written
    for problem in problems:
        raise problem


@contextmanager
def interruptible(after: str = "what is done stays") -> "Iterator[Cancellation]":
    """Ctrl-C asks the work to stop at a good place; a second one stops at once.

    Args:
        after: what is said to become of the work.
    """
    from seqloom.core.context import Cancellation

    cancellation = Cancellation()

    def interrupt(*_: object) -> None:
        if cancellation.requested:
            raise KeyboardInterrupt
        cancellation.cancel()
        say(f"stopping; {after}. Ctrl-C again stops at once")

    former = signal.signal(signal.SIGINT, interrupt)
    try:
        yield cancellation
    finally:
        signal.signal(signal.SIGINT, former)


@contextmanager
def progress(quiet: bool, unit: str = "cell") -> Iterator[Callable[[int, int], None] | None]:
    """A hook that draws a bar with rate and time left on a terminal's stderr; None where that isn't one."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(unit=unit, unit_scale=True, leave=False, delay=0.5) as bar:

        def advance(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield advance


class SearchGroup(TyperGroup):
    """``seqloom search PIPELINE``: the pipelines are its commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [p.name for p in registry().pipelines()]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self.commands.update(dict.fromkeys(self.list_commands(ctx)))  # type: ignore[arg-type]  # names to suggest
        return pipeline_command(cmd_name) if is_pipeline(cmd_name) else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, command_words(args))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Pipelines"):
            formatter.write_dl([(p.name, p.help) for p in registry().pipelines()])


app = group("Run a pipeline by name, third-party ones included, or from a TOML file (FILE.toml).", cls=SearchGroup)


@app.callback(subcommand_metavar="PIPELINE|FILE.toml [ARGS]...")
def _search_group() -> None:
    pass
