"""How commands parse and show themselves: plain text, sections, and the spellings that users of other programs type.

Rich is not used: importing it would cost more than the rest of ``seqloom --help``.
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .aliases import dashed, expand

SETTINGS = {"help_option_names": ["-h", "--help"], "token_normalize_func": dashed, "max_content_width": 120}
OTHER = "Options"
YES = "[default: yes]"
"""Ends the help of an option that is on unless switched off; the others are shown without their --no- form."""
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


class PlainCommand(TyperCommand):
    """A command whose help shows options under headings.

    ``booleans`` lists flags that may be followed by a word such as ``true`` or ``no``, as BLAST's are.
    """

    booleans: frozenset[str] = frozenset()
    extra_help: Any = None
    """Called with the raw arguments; gives further sections of the help: (heading, rows of (term, text))."""

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["seqloom.args"] = list(args)
        return super().parse_args(ctx, expand(args, self.booleans))

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


class PlainGroup(TyperGroup):
    """A group of commands with plain help, in which no line is cut short."""

    def get_params(self, ctx: Any) -> list[Any]:
        return plain(super().get_params(ctx))

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


def command(app: typer.Typer, name: str) -> Any:
    """Decorator that adds a function as a command with plain help."""
    return app.command(name, cls=PlainCommand, context_settings=dict(SETTINGS))


def argument(metavar: str, help: str) -> Any:
    """What stands on the command line without a flag."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def option(*flags: str, metavar: str = "", help: str = "") -> Any:
    """What is given by a flag."""
    return typer.Option(*flags, metavar=metavar or None, help=help)


OutOption = Annotated[str | None, option("-o", "--out", metavar="FILE", help="file to write  [default: stdout]")]
TableOption = Annotated[str, option("--format", metavar="table|tsv|csv|json", help="how to print")]
MemoryOption = Annotated[str | None, option("--memory", metavar="SIZE", help="memory that may be taken, as 512M")]
OnBadOption = Annotated[str, option("--on-bad", metavar="error|skip",
                                    help="at a record that can't be used: stop, or report it and go on")]
KindOption = Annotated[str | None, option("--type", metavar="protein|nucleotide",
                                          help="kind of sequences; found out from the letters when left out")]
ResultsOption = Annotated[str | None, option("--results", metavar="FILE",
                                             help="results store (env SEQLOOM_RESULTS)  [default: seqloom.duckdb]")]
RunArgument = Annotated[str, argument("RUN", "number, beginning of the id, or last")]
