"""``seqloom db``: sequence databases."""

from typing import Annotated, Any

from seqloom.core.errors import DamagedError, UsageError

from .helping import KindOption, MemoryOption, OnBadOption, OutOption, TableOption, argument, command, group, option
from .output import opened, say, show

app = group("Create, extend, look into and check sequence databases.")

DatabaseArgument = Annotated[str, argument("NAME.duckdb", "the database")]
FilesArgument = Annotated[list[str], argument("FILE...", "FASTA or FASTQ, plain, gzip or zstd; - is standard input")]


def _checked(on_bad: str) -> str:
    if on_bad not in ("error", "skip"):
        raise UsageError(f"--on-bad must be error or skip, not '{on_bad}'")
    return on_bad


@command(app, "create")
def create(
    name: DatabaseArgument,
    files: FilesArgument,
    type: KindOption = None,
    on_bad: OnBadOption = "error",
    title: Annotated[str, option("--title", metavar="TEXT", help="title; the files' names when left out")] = "",
    memory: MemoryOption = None,
) -> None:
    """Make a database from sequence files."""
    from seqloom.core.units import parse_bytes
    from seqloom.database import Database

    if type not in (None, "protein", "nucleotide"):
        raise UsageError(f"--type must be protein or nucleotide, not '{type}'")
    on_bad, limit = _checked(on_bad), parse_bytes(memory)
    with Database.create(name, *files, type=type, on_bad=on_bad, title=title, memory=limit) as made:
        info = made.info()
    say(f"{name}: {info['sequences']:,} {info['type']} sequences, {info['letters']:,} letters")


@command(app, "append")
def append(
    name: DatabaseArgument,
    files: FilesArgument,
    on_bad: OnBadOption = "error",
    memory: MemoryOption = None,
) -> None:
    """Add the sequences of more files; all of them or none."""
    from seqloom.core.units import parse_bytes
    from seqloom.database import Database

    with Database.open(name, memory=parse_bytes(memory)) as database:
        before = database.info()["sequences"]
        database.append(*files, on_bad=_checked(on_bad))
        after = database.info()["sequences"]
    say(f"{name}: {after - before:,} sequences added, {after:,} in all")


@command(app, "info")
def info(name: DatabaseArgument, format: TableOption = "table") -> None:
    """Title, type, numbers and fingerprint."""
    from seqloom.database import Database

    with Database.open(name) as database:
        facts = database.info()
    if format == "table":
        show(("what", "value"), [(key, value) for key, value in facts.items()])
    else:
        show(list(facts), [list(facts.values())], format)


@command(app, "list-sequences")
def list_sequences(
    name: DatabaseArgument,
    like: Annotated[str, option("--like", metavar="PATTERN", help="only such names; % is anything, _ one letter")] = "",
    format: TableOption = "tsv",
) -> None:
    """Name, length and description of every sequence."""
    from seqloom.database import Database

    with Database.open(name) as database:
        rows: Any = iter(database.sequences(like))
        first = next(rows, None)
        columns = list(first) if first else ["ordinal", "name", "description", "length"]
        show(columns, _values(first, rows), format)


def _values(first: dict[str, Any] | None, rest: Any) -> Any:
    if first:
        yield list(first.values())
    for row in rest:
        yield list(row.values())


@command(app, "extract")
def extract(
    name: DatabaseArgument,
    names: Annotated[list[str] | None, argument("ID...", "sequences wanted")] = None,
    ids: Annotated[str | None, option("--ids", metavar="FILE", help="file of names, one a line")] = None,
    out: OutOption = None,
) -> None:
    """Write sequences as FASTA."""
    from seqloom.database import Database
    from seqloom.fasta import write_fasta

    from .search import read_names

    wanted = [*(names or ()), *(read_names(ids) if ids else ())]
    if not wanted:
        raise UsageError("name the sequences to extract, or give --ids FILE")
    with Database.open(name) as database, opened(out) as stream:
        write_fasta(database.extract(wanted), stream)


@command(app, "check")
def check(name: DatabaseArgument) -> None:
    """Read everything and compare checksums."""
    from seqloom.database import Database

    with Database.open(name) as database:
        problems = database.check()
        facts = database.info()
    for problem in problems:
        say(f"{name}: {problem}")
    if problems:
        raise DamagedError(f"{name} is damaged ({len(problems)} problems); do as the lines above say, or make it anew "
                           "from its sequence files")
    say(f"{name}: {facts['sequences']:,} sequences, {facts['letters']:,} letters; all is well")
