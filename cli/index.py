"""``seqloom index``: indexes that are stored in a database and read by searches."""

from typing import Annotated

from seqloom.core.errors import UsageError

from .helping import FileName, MemoryOption, TableOption, argument, command, group, option
from .output import say, show
from .progress import working
from .values import number

app = group("Build, list and drop indexes that are stored in a sequence database.")

DatabaseArgument = Annotated[str, argument(FileName("NAME.duckdb", "database"), "the database")]


@command(app, "build", "index build genome.duckdb --index fm-index")
def build(
    name: DatabaseArgument,
    index: Annotated[str | None, option("--index", "--plugin", metavar="PLUGIN",
                                        help="which index; when left out, the one that searches of such sequences use "
                                        "when it is there")] = None,
    set: Annotated[list[str] | None, option("--set", metavar="OPTION=VALUE",
                                            help="an option of the index; may be repeated")] = None,
    memory: MemoryOption = None,
    threads: Annotated[str, option("-p", "--num-threads", metavar="N", help="threads")] = "1",
    backend: Annotated[str | None, option("--backend", metavar="NAME",
                                          help="auto, cpu, cuda or reference  [default: auto]")] = None,
    map: Annotated[bool | None, option("--map/--no-map", help="keep the index in files beside the database too, which "
                                       "searches map into memory; --no-map: don't  [default: if it is large]")] = None,
    quiet: Annotated[bool, option("--quiet", help="no progress")] = False,
) -> None:
    """Build an index and store it in the database; searches read it from then on.

    An index that is there already stays if it is the same; otherwise it is built anew. It is built in pieces that fit
    the memory.
    """
    from seqloom.core.units import parse_bytes
    from seqloom.indexes import build_index

    workers, limit = number(threads, "--num-threads") or 1, parse_bytes(memory)
    with working(quiet, "nothing unfinished is kept") as progress:
        made = build_index(name, index, set or (), limit, workers, backend, progress, say, map)
    options = ", ".join(f"{key}={value}" for key, value in made.options.items())
    say(f"{name}: index {made.plugin} ({options}): {made.nbytes / 1e6:,.1f} MB in {made.pieces} "
        f"piece{'' if made.pieces == 1 else 's'}{', mapped' if made.mapped == 'yes' else ''}")


@command(app, "list", "index list genome.duckdb")
def list_(name: DatabaseArgument, format: TableOption = "table") -> None:
    """The stored indexes, their options and sizes, and whether searches can use them."""
    from seqloom.indexes import list_indexes

    found = list_indexes(name)
    if not found and format == "table":
        say(f"{name}: no index; seqloom index build {name} makes one")
        return
    show(("index", "options", "pieces", "bytes", "mapped", "created", "created_by", "state"),
         [(i.plugin, ", ".join(f"{key}={value}" for key, value in i.options.items()), i.pieces, i.nbytes, i.mapped,
           i.created, i.created_by, i.state) for i in found], format)


@command(app, "drop", "index drop genome.duckdb fm-index")
def drop(
    name: DatabaseArgument,
    plugins: Annotated[list[str] | None, argument("PLUGIN...", "indexes to remove")] = None,
    all: Annotated[bool, option("--all", help="remove every index")] = False,
) -> None:
    """Remove stored indexes from the database."""
    from seqloom.indexes import drop_indexes

    if bool(plugins) == all:
        raise UsageError("name the indexes to remove, or give --all")
    removed = drop_indexes(name, plugins or ())
    say(f"{name}: {removed} index{'' if removed == 1 else 'es'} removed")
