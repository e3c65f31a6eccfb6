"""The command ``seqloom``: its commands by name, and what becomes of errors.

Nothing is imported before the command that needs it is known: ``seqloom --help`` loads neither numpy nor any plugin.
"""

import os
import sys
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from seqloom.core.errors import OutOfMemoryError, SeqloomError, UsageError, command_line
from seqloom.core.output_files import explained
from typer.main import get_command

from .helping import PlainGroup, group, print_version
from .output import say, tidied_up
from .pipelines_table import BUILT_IN
from .standby import INTERRUPTED

SECTIONS: dict[str, dict[str, str]] = {
    "Search": {
        **BUILT_IN,
        "search": "any pipeline by name, or one from a TOML file",
    },
    "Sequences": {
        "db": "create, extend, look into and check sequence databases",
        "index": "build, list and drop indexes that are stored in a database",
        "mask": "find low-complexity or lower-case stretches",
        "sort": "sort a FASTA, FASTQ or line file by sequence, header or length",
    },
    "Results": {
        "runs": "list, show, resume, merge and delete runs",
        "sql": "query the stored results, print a table",
        "export": "write the hits of a run as TSV, CSV, Parquet or JSON lines",
        "report": "a page for a browser of one run, or of two side by side",
        "plot": "a figure of a run as SVG, PNG or PDF",
        "serve": "searches through a browser, and over HTTP",
    },
    "seqloom itself": {
        "standby": "a process in the background, with which small commands begin at once",
        "pipelines": "list pipelines, show their slots",
        "plugins": "list, show and check plugins",
        "doctor": "say what this machine can do, and what to do about the rest",
        "demo": "a small search of real sequences, start to end",
    },
}
MODULES = {name: name for name in ("db", "index", "mask", "sort", "runs", "sql", "export", "report", "plot", "serve",
                                   "pipelines", "plugins", "doctor", "demo")} | {"standby": "standby.commands"}
BROKEN_PIPE = 141


class Root(PlainGroup):
    """The top level: knows its commands by name and loads one when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for section in SECTIONS.values() for name in section]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self.commands.update(dict.fromkeys(self.list_commands(ctx)))  # type: ignore[arg-type]  # names to suggest
        if cmd_name in MODULES:
            return get_command(import_module(f"seqloom.cli.{MODULES[cmd_name]}").app)
        from . import search

        if cmd_name == "search":
            return get_command(search.app)
        if cmd_name in BUILT_IN or search.is_pipeline(cmd_name):
            return search.pipeline_command(cmd_name)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in BUILT_IN and args[0] not in MODULES:
            from . import peers

            if args[0] in peers.PROGRAMS and self.get_command(ctx, args[0]) is None:
                raise UsageError(peers.instead(args[0], args[1:]))
            args = [peers.COMMANDS.get(args[0], args[0]), *args[1:]]
        if args[0] in BUILT_IN or args[0].endswith(".toml"):
            from .search import pipeline_command

            return args[0], pipeline_command(args[0], args[1:]), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(len(name) for name in self.list_commands(ctx))
        for heading, commands in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in commands.items()])


app = group("One engine for biological sequence search; every result is a row in DuckDB.", cls=Root)


def _version(wanted: bool) -> None:
    if wanted:
        print_version()
        raise typer.Exit


def _debug(wanted: bool) -> None:
    if wanted:
        os.environ["SEQLOOM_DEBUG"] = "1"


def _color(choice: str | None) -> None:
    if choice is not None:
        from .colour import choose

        choose(choice)


@app.callback(epilog="'seqloom help COMMAND' tells more.")
def _root(
    version: Annotated[bool, typer.Option("-v", "--version", help="print the version", callback=_version,
                                          is_eager=True)] = False,
    debug: Annotated[bool, typer.Option("--debug", help="show where an error came from (env SEQLOOM_DEBUG)",
                                        callback=_debug, is_eager=True)] = False,
    color: Annotated[str | None, typer.Option("--color", metavar="auto|always|never", callback=_color, is_eager=True,
                                              help="colour on a terminal (env NO_COLOR)")] = None,
) -> None:
    pass


@cache
def root() -> Any:
    """The command that all others belong to."""
    return get_command(app)


@command_line()
def main(args: list[str]) -> int:
    """Carry out a command line; returns the exit status: 0, 1 failure, 2 usage, 130 interrupted, 141 broken pipe."""
    if args[:1] == ["help"]:
        args = [*args[1:], "--help"]
    try:
        with tidied_up():
            status = root().main(args or ["--help"], prog_name="seqloom", standalone_mode=False)
            sys.stdout.flush()
        if status == INTERRUPTED:
            say("interrupted")
        return status if isinstance(status, int) else 0
    except typer.TyperException as error:
        say(_usage(error))
        return error.exit_code
    except typer.Abort:
        return INTERRUPTED
    except SeqloomError as error:
        say(_one_line(error))
        return _failed(error.exit_status)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        return _close_stdout()
    except SystemExit:  # the parser's own answer to a broken pipe
        return _close_stdout()
    except OverflowError as error:
        say(f"a number that was given is too large to compute with ({_one_line(error)}); give a smaller one")
        return _failed(2)
    except OSError as error:
        say(_one_line(explained(error)))
        return _failed(1)
    except MemoryError as error:
        say(_one_line(OutOfMemoryError("the program", error)))
        return _failed(1)
    except UnicodeEncodeError as error:
        if error.reason != "surrogates not allowed":
            return _internal(error)
        say("a name on the command line is no text in this locale; set LC_ALL=C.UTF-8, or use ASCII names")
        return _failed(1)
    except Exception as error:
        return _internal(error)


def _internal(error: Exception) -> int:
    """Tell of a bug."""
    if os.environ.get("SEQLOOM_DEBUG"):
        import traceback

        traceback.print_exc()
    else:
        say(f"internal error: {type(error).__name__}: {_one_line(error)} (seqloom --debug … shows where)")
    return 1


def _failed(status: int) -> int:
    if os.environ.get("SEQLOOM_DEBUG"):
        import traceback

        traceback.print_exc()
    return status


def _usage(error: typer.TyperException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{message} (see '{context.command_path} --help')" if context is not None else message


def _one_line(error: BaseException | str) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _close_stdout() -> int:
    """The reader of our output has gone: say nothing, also not when the interpreter closes stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return BROKEN_PIPE
