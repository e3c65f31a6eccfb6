"""How commands parse and show themselves: plain text, sections, and the spellings that users of other programs type.

Rich is not used: importing it would cost more than the rest of ``seqloom --help``.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from seqloom.core import output_files
from seqloom.core.errors import UsageError
from typer.core import TyperCommand, TyperGroup

from .aliases import dashed
from .words import Refused, known_options, read_words

SETTINGS = {"help_option_names": ["-h", "--help"], "token_normalize_func": dashed, "max_content_width": 120}
OTHER = "Options"
YES = "[default: yes]"
"""Ends the help of an option that is on unless switched off; the others are shown without their --no- form."""
EXAMPLE = "Example: "
"""Begins the end of a command's help."""
WIDEST = 34
"""Columns of an option's names in the help, at most."""


def plain(params: list[Any]) -> list[Any]:
    """The same options and arguments, whose values are taken as the texts that they are.

    Typer's own conversion of values imports pydantic, which costs a warm search a fifth of its time.
    """
    for param in params:
        param.process_value = partial(_as_text, param, type(param).process_value)
    return params


def _as_text(param: Any, convert: Callable[..., Any], ctx: Any, value: Any) -> Any:
    if param.required and value in (None, (), []):
        return convert(param, ctx, value)  # which refuses it
    return value if param.callback is None else param.callback(ctx, param, value)


def read(command: Any, ctx: Any, args: list[str], place: str = "", booleans: frozenset[str] = frozenset(),
         to_the_end: bool = True) -> tuple[list[str], list[str]]:
    """A command's options and its other words, from those that were typed; see ``words.read_words``."""

    def foreign(flag: str, value: Callable[[], str]) -> bool:
        if flag in ("-version", "--version"):
            print_version()
            raise typer.Exit
        from . import peers

        return peers.foreign(place or ctx.command_path.partition(" ")[2], flag, value)

    try:
        return read_words(args, known_options(command.get_params(ctx), booleans), foreign, to_the_end)
    except Refused:
        raise
    except UsageError as error:
        raise UsageError(f"{error} (see '{ctx.command_path} --help')") from None


def print_version() -> None:
    """Name and version of the program."""
    from seqloom.core.entry_points import versions

    print(f"seqloom {versions('seqloom')['seqloom']}")


def _placed(names: tuple[str, ...], options: list[str], plain: list[str]) -> list[str]:
    """``options`` with the words without a flag as the values of the options ``names``."""
    if given := [name for name in names if f"--{name}" in options]:
        raise UsageError(f"--{given[0]} is given, and '{plain[0]}' stands without an option; give --{names[0]} and "
                         f"--{names[-1]}, or both without")
    if len(plain) < len(names):
        raise UsageError(f"'{plain[0]}' stands alone; give {' and '.join(name.upper() for name in names)}")
    for name, value in zip(names, plain, strict=False):
        options = [*options, f"--{name}", value]
    return [*options, *(word for value in plain[len(names):] for word in (f"--{names[-1]}", value))]


class PlainCommand(TyperCommand):
    """A command whose help shows options under headings.

    ``booleans`` lists flags that may be followed by a word such as ``true`` or ``no``, as BLAST's are.
    """

    place: str = ""
    """Where its peers stand in ``peers.PEERS``; its words on the command line where nothing is said."""
    positional: tuple[str, ...] = ()
    """Options whose values may stand without a flag, in this order; the last one takes all that are left."""
    booleans: frozenset[str] = frozenset()
    reads: tuple[str, ...] = ()
    """Files that are read beside those that options and arguments name."""
    extra_help: Any = None
    """Called with the raw arguments; gives further sections of the help: (heading, rows of (term, text))."""

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["seqloom.args"] = list(args)
        options, plain = read(self, ctx, args, self.place, self.booleans)
        if self.positional and plain:
            options, plain = _placed(self.positional, options, plain), []
        return super().parse_args(ctx, [*options, "--", *plain] if plain else options)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), *(f"[{name.upper()}]" for name in self.positional)]

    def invoke(self, ctx: Any) -> Any:
        self._check_outputs(ctx)
        return super().invoke(ctx)

    def _check_outputs(self, ctx: Any) -> None:
        """Refuse outputs that would take the place of what the command reads, before any work."""
        outputs: list[str | None] = []
        reads: list[str | None] = list(self.reads)
        for param in self.get_params(ctx):
            role, value = getattr(param.metavar, "role", ""), ctx.params.get(param.name)
            values = list(value) if isinstance(value, list | tuple) else [value]
            if role in WRITTEN:
                outputs += [v for v in values if v is not None or role == "results"]
            elif role == "store":
                reads.append(_store(value))
            elif role in READ:
                reads += values
        if any(path is not None for path in outputs):
            output_files.check_outputs(outputs, reads)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        for line in (self.epilog or "").splitlines():
            formatter.write(f"\n{line}\n")  # an example stays in one line, to be copied

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None:
                heading = getattr(param, "rich_help_panel", None) or OTHER
                name = _shown(row[0]) if row[1].endswith(YES) else _shown(row[0]).split(" / ")[0]
                if param.param_type_name == "argument":
                    heading, name = "Arguments", row[0].split(" ")[0]
                sections.setdefault(heading, []).append((name, row[1]))
        sections[OTHER] = sections.pop(OTHER, [])
        if self.extra_help:
            sections |= self.extra_help(ctx.meta.get("seqloom.args", []))
        names = [name for rows in sections.values() for name, _ in rows]
        widest = max((len(name) for name in names if len(name) <= WIDEST), default=0)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl([(name.ljust(widest), text) for name, text in rows], col_max=WIDEST)


def _store(path: str | None) -> str:
    from seqloom.store_path import results_path

    return str(results_path(path))


class PlainGroup(TyperGroup):
    """A group of commands with plain help, in which no line is cut short."""

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        options, rest = read(self, ctx, args, to_the_end=False)
        return super().parse_args(ctx, [*options, *rest])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, made.get_short_help_str(1000)) for name, made in self.commands.items()])


def _shown(names: str) -> str:
    """Names of an option without the single-dash long forms, which are accepted and not advertised one by one."""
    words = [w for w in names.split(" ") if w.startswith("--") or not w.startswith("-") or len(w.rstrip(",")) == 2]
    last = max((i for i, w in enumerate(words) if w.startswith("-")), default=0)
    words[last] = words[last].rstrip(",")
    return " ".join(words)


def group(help: str, cls: type[TyperGroup] = PlainGroup) -> typer.Typer:
    """An app for one group of commands, or for a single command when only one is added."""
    return typer.Typer(help=help, cls=cls, rich_markup_mode=None, add_completion=False, context_settings=dict(SETTINGS))


def command(app: typer.Typer, name: str, example: str) -> Any:
    """Decorator that adds a function as a command with plain help, which ends with an example."""
    return app.command(name, cls=PlainCommand, context_settings=dict(SETTINGS), epilog=f"{EXAMPLE}seqloom {example}")


class FileName(str):
    """A placeholder for a file in the help, which also says what the command does with it.

    Attributes:
        role: "input" is read; "in place" is read, and the results may take its place; "database" is read, made or
            changed; "store" is the results store; "results" is written, to standard output when left out; "output" is
            written if it is given; "folder" is where files are put that aren't there yet; "pipeline" may be
            a TOML file, which is read before the command is made.
    """

    role: str

    def __new__(cls, text: str, role: str) -> "FileName":
        made = super().__new__(cls, text)
        made.role = role
        return made


READ = ("input", "database", "store")
WRITTEN = ("results", "output")
INPUT, OUTPUT, RESULTS = FileName("FILE", "input"), FileName("FILE", "output"), FileName("FILE", "results")


def argument(metavar: str, help: str) -> Any:
    """What stands on the command line without a flag; ``metavar`` of a file is a ``FileName``."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(*flags: str, metavar: str = "", help: str = "") -> Any:
    """What is given by a flag; ``metavar`` of a file is a ``FileName``."""
    return typer.Option(*flags, metavar=metavar or None, help=help)


QuietOption = Annotated[bool, option("--quiet", help="no progress")]
OutOption = Annotated[str | None, option("-o", "--out", metavar=RESULTS, help="file to write  [default: stdout]")]
TableOption = Annotated[str, option("--format", metavar="table|tsv|csv|json", help="how to print")]
MemoryOption = Annotated[str | None, option("--memory", metavar="SIZE", help="memory that may be taken, as 512M")]
OnBadOption = Annotated[str, option("--on-bad", metavar="error|skip|rename",
                                    help="at a record that can't be used: stop, or report it and go on; rename: give "
                                    "another id to one whose id is there already")]
KindOption = Annotated[str | None, option("--type", metavar="protein|nucleotide",
                                          help="kind of sequences; found out from the residues when left out")]
ResultsOption = Annotated[str | None, option("--results", metavar=FileName("FILE", "store"),
                                             help="results store (env SEQLOOM_RESULTS)  [default: seqloom.duckdb]")]
RunArgument = Annotated[str, argument("RUN", "number, beginning of the id, or last")]
