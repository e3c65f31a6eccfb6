"""What a server offers: databases, pipelines with the options that may be set, formats; and what a request chose.

Requests name databases by the names of this list, never by path, and no option that names a file is taken.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seqloom.core.classes import dataclass

from ..core.errors import InputError, OptionError, UnknownNameError
from ..core.options import OptionInfo, build_options, option_infos
from ..core.pipeline import Pipeline
from ..installed import registry

MAIN = ("evalue", "E", "max_target_seqs", "matrix", "mx", "word_size", "gapopen", "gapextend", "reward", "penalty",
        "match", "mismatch", "perc_identity", "strand", "length", "mum", "maxmatch", "both", "cut_ga")
"""Options that a form shows at once, by name, in this order; the others are a click away."""
WORDS = re.compile(r"[\w .,:+-]{0,64}")
"""Values of options that are texts of no fixed choice, and words behind a format's name. No path is among them."""
ENDINGS = {"0": "txt", "5": "xml", "6": "tsv", "7": "txt", "10": "csv", "13": "json", "14": "xml", "15": "json",
           "16": "xml", "17": "sam", "18": "txt", "html": "html", "paf": "paf", "dotplot": "svg", "dotplot-png": "png",
           "stockholm": "sto", "mummer": "mums", "arrow": "arrow"}
TYPES = {"txt": "text/plain; charset=utf-8", "tsv": "text/tab-separated-values; charset=utf-8",
         "csv": "text/csv; charset=utf-8", "xml": "application/xml", "json": "application/json",
         "jsonl": "application/x-ndjson", "sam": "text/plain; charset=utf-8", "html": "text/html; charset=utf-8",
         "svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf", "zip": "application/zip"}
FIGURES = {"overview": "the best hits of a query along it", "coverage": "how many alignments cover each residue",
           "dotplot": "all alignments in the plane of targets and queries", "domains": "proteins with their domains",
           "identity": "alignments by identity", "evalues": "hits by E-value", "timings": "seconds of each slot"}
EXPORTS = {"hsps": "a row for each alignment", "hits": "a row for each hit", "best_hits": "the best hit of each query",
           "coverage": "how much of query and target is aligned"}


@dataclass(frozen=True)
class Base:
    """A database as the server names it."""

    name: str
    path: str
    kind: str
    sequences: int
    residues: int
    title: str


@dataclass(frozen=True)
class Format:
    """Something that can be downloaded of a run.

    Attributes:
        name: file name without that of the run, "6.tsv".
        task: what the worker is told.
        families: those whose runs it is of; all if empty.
    """

    name: str
    help: str
    group: str
    task: Mapping[str, str]
    families: tuple[str, ...] = ()

    @property
    def type(self) -> str:
        return TYPES.get(self.name.rpartition(".")[2], "application/octet-stream")


@dataclass(frozen=True)
class Program:
    """A pipeline that can be chosen, with its databases and options."""

    pipeline: Pipeline
    query: str
    target: str
    options: tuple[OptionInfo, ...]
    bases: tuple[Base, ...]

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def help(self) -> str:
        """What it does; one that stands for another one on the command line is itself here."""
        return self.pipeline.help.partition(":")[0] if self.pipeline.task else self.pipeline.help

    def default(self, info: OptionInfo) -> Any:
        return self.pipeline.defaults.get(info.name, info.default)

    @cached_property
    def main(self) -> list[OptionInfo]:
        return sorted((info for info in self.options if info.name in MAIN), key=lambda info: MAIN.index(info.name))

    @cached_property
    def others(self) -> list[OptionInfo]:
        return [info for info in self.options if info.name not in MAIN]


@dataclass(frozen=True)
class SearchChoice:
    """The program, databases and options of a search that somebody asks for, checked."""

    program: Program
    bases: tuple[Base, ...]
    options: Mapping[str, Any]

    @property
    def command(self) -> str:
        """The command line that does the same."""
        words = ["seqloom", self.program.name, "-q", "query.fasta"]
        words += ["--task", self.program.name] if self.program.pipeline.task else []
        words += [word for base in self.bases for word in ("-d", base.name)]
        for name, value in self.options.items():
            flag = f"--{name.replace('_', '-')}"
            words += [flag if value else flag.replace("--", "--no-", 1)] if isinstance(value, bool) else [
                flag, str(value)]
        return shlex.join(words)


class Catalogue:
    """All that a server offers.

    Args:
        facts: of each path, as ``worker.databases`` gives them.
    """

    def __init__(self, paths: Sequence[str], facts: Iterable[Mapping[str, Any]]) -> None:
        self.bases: dict[str, Base] = {}
        for path, one in zip(paths, facts, strict=True):
            stem = Path(path).name.removesuffix(".gz").rpartition(".")[0] or Path(path).name
            name = next(n for n in (stem, *(f"{stem}-{i}" for i in range(2, 10_000))) if n not in self.bases)
            self.bases[name] = Base(name, str(Path(path).absolute()), **one)
        self.programs = {program.name: program for program in self._programs()}
        self.formats = {format.name: format for format in _formats()}

    def _programs(self) -> Iterable[Program]:
        for pipeline in registry().pipelines():
            family = registry().family(pipeline.family)
            bases = tuple(base for base in self.bases.values() if base.kind == family.target)
            if bases:
                options = tuple(info for info in option_infos(family.Options)
                                if not info.output and "FILE" not in info.metavar)
                yield Program(pipeline, family.query, family.target, options, bases)

    @property
    def first(self) -> str:
        """The pipeline of the first form: blastp where proteins are served, else what there is."""
        usual = ("blastp", "megablast", "hmmscan")
        return next((name for name in usual if name in self.programs), next(iter(self.programs), ""))

    def choice(self, pipeline: str, bases: Sequence[str], options: Mapping[str, Any]) -> SearchChoice:
        """A choice, if it can be had.

        Raises:
            UsageError: it can't; says why.
        """
        if pipeline not in self.programs:
            raise UnknownNameError("pipeline", pipeline[:80], list(self.programs))
        program = self.programs[pipeline]
        known = {base.name: base for base in program.bases}
        if not bases:
            raise InputError(f"no database is chosen; there are {', '.join(known)}")
        for name in bases:
            if name not in known:
                raise UnknownNameError("database", name[:80], list(known), f"of {program.target} sequences"
                                       if program.target != "model" else "of models")
        infos = {info.name: info for info in program.options}
        chosen = {}
        for given, value in options.items():
            name = given.replace("-", "_")
            if name not in infos:
                raise UnknownNameError("option", given[:80], list(infos), f"of {pipeline}")
            info = infos[name]
            if isinstance(value, str) and info.type is str and not info.choices and not WORDS.fullmatch(value):
                raise OptionError(f"{name} can't be {value[:80]!r}")
            if not isinstance(value, str | int | float | bool | None):
                raise OptionError(f"{name} needs a text or a number")
            parsed = info.parse(value, name)
            if parsed != program.default(info):
                chosen[name] = parsed
        family = registry().family(program.pipeline.family)
        build_options(family.Options, {**program.pipeline.defaults, **chosen})
        return SearchChoice(program, tuple(known[name] for name in dict.fromkeys(bases)), chosen)

    def formats_of(self, pipeline: str) -> list[Format]:
        """What can be downloaded of a run of a pipeline."""
        names = {one.name: one.family for one in registry().pipelines()}
        family = names.get(pipeline, "")
        return [format for format in self.formats.values() if not format.families or family in format.families]


def _formats() -> Iterable[Format]:
    for writer in registry().writers():
        if writer.name not in ("plot", "parquet"):  # which come with kinds of figures, and as tables
            ending = ENDINGS.get(writer.name, "txt")
            yield Format(f"{writer.name}.{ending}", writer.help(), "Output formats", {"outfmt": writer.name},
                         tuple(writer.families))
    for view, help in EXPORTS.items():
        for format in ("tsv", "csv", "parquet", "jsonl"):
            yield Format(f"{view}.{format}", help, "Tables", {"export": format, "level": view})
    with_domains = next((tuple(writer.families) for writer in registry().writers() if writer.name == "domtblout"), ())
    for kind, help in FIGURES.items() if find_spec("matplotlib") else ():
        for format in ("svg", "png", "pdf"):
            yield Format(f"plot-{kind}.{format}", help, "Figures", {"outfmt": f"plot {kind} {format}"},
                         with_domains if kind == "domains" else ())
