"""``seqloom db``: databases of sequences and of models."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Annotated, Any

from seqloom.core.errors import DamagedError, UsageError

from .helping import (
    INPUT,
    FileName,
    KindOption,
    MemoryOption,
    OnBadOption,
    OutOption,
    QuietOption,
    TableOption,
    argument,
    command,
    group,
    option,
)
from .output import opened, say, show
from .progress import working

app = group("Create, extend, look into and check databases of sequences and of models.")

DatabaseArgument = Annotated[str, argument(FileName("NAME.duckdb", "database"), "the database")]
FilesArgument = Annotated[list[str], argument(FileName("FILE...", "input"),
                                                  "FASTA, FASTQ or models, plain or compressed; - is standard input")]


def _checked(on_bad: str) -> str:
    if on_bad not in ("error", "skip", "rename"):
        raise UsageError(f"--on-bad must be error, skip or rename, not '{on_bad}'")
    return on_bad


TaxidMapOption = Annotated[str | None, option("--taxid-map", metavar=INPUT,
                                              help="file of names and taxids, a pair on each line")]
TaxidOption = Annotated[str | None, option("--taxid", metavar="N", help="NCBI's taxid of all sequences")]
HeadersOption = Annotated[bool, option("--taxids-from-headers", help="take the OX= of UniProt's headers as taxids")]


MaskOption = Annotated[list[str] | None, option(
    "--mask", metavar=FileName("NAME=FILE", "input"), help="a mask that searches may ask for by this name: a file of "
    "intervals as seqloom mask or dustmasker writes it, or NAME=lower-case for letters in lower case; may be repeated")]


def _masks(given: list[str] | None) -> dict[str, str]:
    masks: dict[str, str] = {}
    for word in given or ():
        name, equals, path = word.partition("=")
        if not equals or not path:
            raise UsageError(f"--mask takes a name and a file, such as dust=intervals.txt, not '{word}'")
        if name in masks:
            raise UsageError(f"--mask {name}=… is given twice; give each mask its own name")
        masks[name] = path
    return masks


def _taxids(taxid_map: str | None, taxid: str | None, headers: bool) -> Any:
    """What says which organisms the sequences are of; None where nothing does."""
    from seqloom.taxonomy import Taxids, number

    given = [flag for flag, there in (("--taxid-map", taxid_map is not None), ("--taxid", taxid is not None),
                                      ("--taxids-from-headers", headers)) if there]
    if "--taxid" in given and len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} exclude each other: give one of them")
    return Taxids(taxid_map, number(taxid, "--taxid") if taxid is not None else None, headers) if given else None


@command(app, "create", "db create proteins.duckdb swissprot.fasta.gz more.fasta")
def create(
    name: DatabaseArgument,
    files: FilesArgument,
    type: KindOption = None,
    models: Annotated[bool, option("--models", help="the files hold profile HMMs, such as those of Pfam")] = False,
    on_bad: OnBadOption = "error",
    title: Annotated[str, option("--title", metavar="TEXT", help="title; the files' names when left out")] = "",
    taxid_map: TaxidMapOption = None,
    taxid: TaxidOption = None,
    taxids_from_headers: HeadersOption = False,
    parse_seqids: Annotated[bool, option("--parse-seqids", help="names are NCBI's, such as sp|P53508|CSSA1_ECOLX: "
                                         "reports show the accession")] = False,
    mask: MaskOption = None,
    memory: MemoryOption = None,
    quiet: QuietOption = False,
) -> None:
    """Make a database from files of sequences, or of models."""
    from seqloom.core.units import parse_bytes
    from seqloom.database import Database

    if models:
        given = [flag for flag, there in (
            ("--type", type), ("--taxid-map", taxid_map), ("--taxid", taxid),
            ("--taxids-from-headers", taxids_from_headers), ("--parse-seqids", parse_seqids),
            ("--mask", mask)) if there]
        if given:
            raise UsageError(f"{given[0]} is for sequences, and --models says that the files hold none")
        _create_models(name, files, _checked(on_bad), title, parse_bytes(memory), quiet)
        return
    type = {"prot": "protein", "nucl": "nucleotide"}.get(type or "", type)
    if type not in (None, "protein", "nucleotide"):
        raise UsageError(f"--type must be protein or nucleotide, not '{type}'")
    on_bad, limit, taxids = _checked(on_bad), parse_bytes(memory), _taxids(taxid_map, taxid, taxids_from_headers)
    with working(quiet, "nothing is kept") as progress, Database.create(
            name, *files, type=type, on_bad=on_bad, title=title, memory=limit, progress=progress,
            taxids=taxids, parsed_names=parse_seqids or None, masks=_masks(mask)) as made:
        info = made.info()
    say(f"{name}: {info['sequences']:,} {info['type']} sequences, {info['residues']:,} residues{_found(taxids)}")


def _create_models(name: str, files: list[str], on_bad: str, title: str, memory: int | None, quiet: bool) -> None:
    from seqloom.models import ModelDatabase

    with working(quiet, "nothing is kept") as progress, ModelDatabase.create(
            name, *files, on_bad=on_bad, title=title, memory=memory, progress=progress) as made:
        info = made.info()
    say(f"{name}: {info['models']:,} {info['type']}, {info['positions']:,} positions")


def _found(taxids: Any) -> str:
    return f", {taxids.found:,} with a taxid" if taxids else ""


@command(app, "append", "db append proteins.duckdb more.fasta --on-bad skip")
def append(
    name: DatabaseArgument,
    files: FilesArgument,
    on_bad: OnBadOption = "error",
    taxid_map: TaxidMapOption = None,
    taxid: TaxidOption = None,
    taxids_from_headers: HeadersOption = False,
    mask: MaskOption = None,
    memory: MemoryOption = None,
    quiet: QuietOption = False,
) -> None:
    """Add the sequences, or models, of more files; all of them or none."""
    from seqloom.any_database import open_any
    from seqloom.core.units import parse_bytes
    from seqloom.models import ModelDatabase

    taxids, masks = _taxids(taxid_map, taxid, taxids_from_headers), _masks(mask)
    with (open_any(name, parse_bytes(memory)) as database, working(quiet, "nothing is added") as progress):
        before = len(database)
        if isinstance(database, ModelDatabase):
            if taxids:
                raise UsageError(f"{name} is a model database, and models have no taxids")
            if masks:
                raise UsageError(f"{name} is a model database, and models have no masks")
            database.append(*files, on_bad=_checked(on_bad), progress=progress)
        else:
            database.append(*files, on_bad=_checked(on_bad), progress=progress, taxids=taxids, masks=masks)
        after, what = len(database), "models" if isinstance(database, ModelDatabase) else "sequences"
    say(f"{name}: {after - before:,} {what} added, {after:,} in all{_found(taxids)}")


@command(app, "taxonomy", "db taxonomy proteins.duckdb nodes.dmp names.dmp")
def taxonomy(
    name: DatabaseArgument,
    files: Annotated[list[str], argument(FileName("NODES NAMES [MERGED]", "input"),
                                         "nodes.dmp, names.dmp and maybe merged.dmp of NCBI, or taxdump.tar.gz")],
    memory: MemoryOption = None,
) -> None:
    """Store NCBI's taxonomy: names and tree of all organisms."""
    from seqloom.core.units import parse_bytes
    from seqloom.database import Database

    if len(files) > 3:
        raise UsageError("give nodes.dmp, names.dmp and maybe merged.dmp, or taxdump.tar.gz alone")
    with Database.open(name, memory=parse_bytes(memory)) as database:
        database.store_taxonomy(*files)
        info = database.info()
    say(f"{name}: {info['taxa']:,} taxa; {info['with taxid']:,} of {info['sequences']:,} sequences have a taxid")


@command(app, "info", "db info proteins.duckdb")
def info(name: DatabaseArgument, format: TableOption = "table") -> None:
    """Title, type, numbers and fingerprint."""
    from seqloom.any_database import open_any

    with open_any(name) as database:
        facts = database.info()
    if format == "table":
        show(("what", "value"), [(key, value) for key, value in facts.items()])
    else:
        show(list(facts), [list(facts.values())], format)


LikeOption = Annotated[str, option("--like", metavar="PATTERN", help="only such names; % is anything, _ one character")]


@command(app, "list-sequences", "db list-sequences proteins.duckdb --like '%HUMAN%'")
def list_sequences(name: DatabaseArgument, like: LikeOption = "", format: TableOption = "tsv") -> None:
    """Name, length and description of every sequence."""
    from seqloom.database import Database

    with Database.open(name) as database:
        _show_rows(("ordinal", "name", "description", "length"), database.sequences(like), format)


@command(app, "list-models", "db list-models pfam.duckdb --like 'PF%'")
def list_models(name: DatabaseArgument, like: LikeOption = "", format: TableOption = "tsv") -> None:
    """Name, accession, length and description of every model."""
    from seqloom.models import ModelDatabase

    with ModelDatabase.open(name) as database:
        _show_rows(("ordinal", "name", "accession", "length", "description"), database.models(like), format)


def _show_rows(columns: Sequence[str], rows: Iterator[dict[str, Any]], format: str) -> None:
    """Rows of whatever columns they have; ``columns`` are their names where there is none."""
    first = next(rows, None)
    show(list(first or columns), (list(row.values()) for row in chain([first] if first else [], rows)), format)


@command(app, "extract", "db extract proteins.duckdb Q9VH48 P53508 -range 10-40 -o two.fasta")
def extract(
    name: DatabaseArgument,
    names: Annotated[list[str] | None, argument(
        "ID...", "sequences or models wanted, by name or accession; all for all")] = None,
    entry: Annotated[str | None, option("--entry", metavar="ID,...", help="the same, separated by commas")] = None,
    ids: Annotated[str | None, option(
        "--ids", "--entry-batch", metavar=INPUT,
        help="file of names, one a line, each perhaps with a range and a strand: P53508 10-40")] = None,
    range: Annotated[str | None, option("--range", metavar="FIRST-LAST",
                                        help="only these residues, from 1 on; FIRST- to the end")] = None,
    strand: Annotated[str, option("--strand", metavar="plus|minus", help="strand of nucleotides")] = "plus",
    outfmt: Annotated[str, option(
        "--outfmt", "-f", metavar="FMT",
        help="%f FASTA, or fields, a line for each sequence: %a accession, %i id, %g GI, %t title, %l length, %o "
             "number, %s residues, %T taxid")] = "%f",
    line_length: Annotated[str, option("--line-length", metavar="N", help="residues per line of FASTA")] = "80",
    target_only: Annotated[bool, option("--target-only", help="the first of several titles only")] = False,
    ctrl_a: Annotated[bool, option("--ctrl-a", help="join several titles by Ctrl-A")] = False,
    out: OutOption = None,
) -> None:
    """Write sequences or stretches of them as FASTA or by fields, or models as they were read; in the order in which
    they are named."""
    from seqloom.database import Database
    from seqloom.entries import Entry, bounds, check_entry_format, entries_of, look_up, write_entries
    from seqloom.storage.duck.database_file import kind_of

    from .values import number, read_lines

    check_entry_format(outfmt)
    if strand not in ("plus", "minus"):
        raise UsageError(f"--strand must be plus or minus, not '{strand}'")
    if ids and (range or strand == "minus"):
        raise UsageError("a range and a strand for names from a file stand there behind each name")
    first, last = bounds(range) if range else (None, None)
    plain = [*(names or ()), *(entry.split(",") if entry else ())]
    if kind_of(name) == "models":
        given = [flag for flag, there in (
            ("--range", range), ("--strand", strand == "minus"), ("--outfmt", outfmt != "%f"),
            ("--target-only", target_only), ("--ctrl-a", ctrl_a)) if there]
        if given:
            raise UsageError(f"{given[0]} is for sequences, and {name} is a model database")
        _extract_models(name, plain, ids, out)
        return
    wanted: list[Entry] | None = [Entry(word, first, last, strand == "minus") for word in plain if word]
    if plain == ["all"]:
        if range or strand == "minus":
            raise UsageError("a range or a strand of all sequences can't be written; name those that are wanted")
        wanted = None
    elif ids:
        wanted = [*(wanted or ()), *entries_of(read_lines(ids), ids)]
    if wanted is not None and not wanted:
        raise UsageError("name the sequences to extract, or give --ids FILE")
    width = number(line_length, "--line-length") or 1
    with Database.open(name) as database, opened(out) as stream:
        write_entries(look_up(database, wanted), stream, outfmt, width, target_only, ctrl_a)


def _extract_models(name: str, names: list[str], file: str | None, out: str | None) -> None:
    from seqloom.models import ModelDatabase

    from .values import read_lines

    wanted = [word.strip() for word in [*names, *(read_lines(file) if file else ())] if word.strip()]
    if not wanted:
        raise UsageError("name the models to extract, or give --ids FILE")
    with ModelDatabase.open(name) as database, opened(out) as stream:
        for text in database.extract(None if wanted == ["all"] else wanted):
            stream.write(text)


@command(app, "check", "db check proteins.duckdb")
def check(name: DatabaseArgument, quiet: QuietOption = False) -> None:
    """Read everything and compare checksums."""
    from seqloom import checking

    with working(quiet, "nothing is changed") as progress:
        problems, facts = checking.check(name, progress)
    for problem in problems:
        say(f"{name}: {problem}")
    if problems:
        raise DamagedError(f"{name} is damaged ({len(problems)} problems); do as the lines above say, or make it anew "
                           f"from its {'model' if 'models' in facts else 'sequence'} files")
    if "models" in facts:
        say(f"{name}: {facts['models']:,} models, {facts['positions']:,} positions; all is well")
    else:
        say(f"{name}: {facts['sequences']:,} sequences, {facts['residues']:,} residues; all is well")
