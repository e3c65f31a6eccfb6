"""No output of any command takes the place of what the command reads: every output option is tried on every input."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from seqloom.cli.helping import READ, WRITTEN, FileName
from seqloom.cli.main import app
from seqloom.cli.search import RUN_OPTIONS
from seqloom.core.options import option_infos
from seqloom.installed import registry
from typer.main import get_command

STORE = "seqloom.duckdb"
VALUES = {"query": "query.fasta", "db": "p.duckdb", "target-ids": "ids.txt", "ids": "ids.txt",
          "negative-target-ids": "ids.txt", "taxidlist": "ids.txt", "negative-taxidlist": "ids.txt",
          "taxid-map": "ids.txt", "results": STORE, "name": "p.duckdb", "file": "query.fasta", "files": "query.fasta",
          "input": "query.fasta", "cluster": "ids.txt", "mxfile": "ids.txt", "ustat": "ids.txt",
          "window-masker-db": "ids.txt", "filtering-db": "mito.fasta", "query-list": "ids.txt"}
"""A file for every option and argument that reads one."""
NUCLEOTIDE = {"query": "mito.fasta", "db": "mito.fasta"}
WORDS: dict[tuple[str, ...], list[str]] = {
    ("db", "extract"): ["sp|B9LBJ3|RBFA_CHLSY"], ("mask",): ["--masker", "seg"], ("sql",): ["SELECT 1"],
    ("export",): ["1"], ("report",): ["1"], ("plot",): ["overview", "1"], ("runs", "write"): ["1"],
    ("runs", "resume"): ["1"]}
"""What else the commands need."""


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command there is."""
    group = group or get_command(app)
    for name in group.list_commands(None):
        if (*path, name)[:2] != ("search", name) or name == "blastp":
            found = group.get_command(None, name)
            yield from commands(found, (*path, name)) if hasattr(found, "list_commands") else [((*path, name), found)]


def files(command: Any) -> list[Any]:
    """Its parameters that name files."""
    return [p for p in command.params if isinstance(p.metavar, FileName)]


def name_of(parameter: Any) -> str:
    return parameter.name.removeprefix("option_").replace("_", "-")


def flag_of(parameter: Any) -> str:
    return max(parameter.opts, key=lambda flag: (flag.startswith("--"), -len(flag)))


WRITING = [(path, command) for path, command in commands() if any(p.metavar.role in WRITTEN for p in files(command))]


def test_every_parameter_that_names_a_file_says_what_becomes_of_it() -> None:
    for path, command in commands():
        for parameter in command.params:
            word = str(parameter.metavar or "")
            named = any(part in word for part in ("FILE", "DIR", ".duckdb", ".fasta")) or name_of(parameter) == "out"
            assert not named or isinstance(parameter.metavar, FileName), (path, parameter.name)


def test_every_option_that_writes_is_known_to_the_resumption_of_runs() -> None:
    resume = next(command for path, command in commands() if path == ("runs", "resume"))
    known = {p.name for p in files(resume) if p.metavar.role == "output"}
    names = {row[1] for row in registry().inventory() if row[0] == "family"}
    assert {i.name for name in names for i in option_infos(registry().family(name).Options) if i.output} == known


def test_the_walk_finds_what_there_is() -> None:
    found = {path for path, _ in WRITING}
    assert {("blastp",), ("sw",), ("mum",), ("hmmsearch",), ("search", "blastp"), *WORDS, ("sort",)} <= found
    options = {(path[0], name_of(p)) for path, command in WRITING for p in files(command) if p.metavar.role in WRITTEN}
    assert {("sw", "all-scores"), ("mum", "paf"), ("hmmsearch", "tblout"), ("export", "out")} <= options
    assert {option.metavar.role for option in RUN_OPTIONS.values() if isinstance(option.metavar, FileName)} == {
        "input", "store", "results", "output", "pipeline"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of everything."""
    import os

    from seqloom.cli.main import main

    folder = tmp_path_factory.mktemp("made")
    sample = Path(__file__).parents[2] / "api" / "sample"
    for name in ("query.fasta", "proteins.fasta", "globins4.hmm"):
        shutil.copy(sample / name, folder)
    shutil.copy(sample / "mito_human.fasta", folder / "mito.fasta")
    (folder / "ids.txt").write_text("sp|B9LBJ3|RBFA_CHLSY\n")
    former = os.getcwd()
    os.chdir(folder)
    try:
        assert main(["db", "create", "p.duckdb", "query.fasta"]) == 0
        assert main(["sw", "-q", "query.fasta", "-d", "p.duckdb", "--backend", "reference", "-o", "rows"]) == 0
    finally:
        os.chdir(former)
    return folder


def value(path: tuple[str, ...], parameter: Any) -> str:
    name = name_of(parameter)
    if (path[-1], name) in {("hmmsearch", "query"), ("hmmscan", "db")}:
        return "globins4.hmm"
    nucleotide = path[-1] in registry_nucleotide() and name in NUCLEOTIDE
    return NUCLEOTIDE[name] if nucleotide else VALUES[name]


def registry_nucleotide() -> set[str]:
    return {p.name for p in registry().pipelines() if registry().family(p.family).target == "nucleotide"}


@pytest.mark.parametrize("path, command", WRITING, ids=lambda x: " ".join(x) if isinstance(x, tuple) else "")
def test_no_output_takes_the_place_of_an_input(seqloom: Callable, made: Path, tmp_path: Path, path: tuple[str, ...],
                                               command: Any) -> None:
    for entry in made.iterdir():
        shutil.copy(entry, tmp_path)
    parameters = files(command)
    words = [*path, *WORDS.get(path, [])]
    for parameter in parameters:
        if parameter.metavar.role in (*READ, "in place"):
            given = [value(path, parameter)]
            words += given if parameter.param_type_name == "argument" else [flag_of(parameter), *given]
    (tmp_path / "link").symlink_to(tmp_path / STORE)
    (tmp_path / "other").hardlink_to(tmp_path / "query.fasta")
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    places = [value(path, p) for p in parameters if p.metavar.role in READ]
    if ("query" in map(name_of, parameters) or path == ("mask",)) and "query.fasta" in places + words:
        places.append("./other")
    tried = 0
    for output in (p for p in parameters if p.metavar.role in WRITTEN):
        for place in [*places, STORE, "link", "p.duckdb", f"./{STORE}"]:
            result = seqloom(*words, flag_of(output), place)
            assert result.status == 2 and place in result.err and result.err.count("\n") == 1, (words, place, result)
            assert result.out == ""
            tried += 1
        for other in (p for p in parameters if p.metavar.role in WRITTEN and p is not output):
            result = seqloom(*words, flag_of(output), "new", flag_of(other), "./new")
            assert result.status == 2 and "would be written twice" in result.err, (words, result)
    assert tried
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before


def test_a_pipeline_file_is_read_too(seqloom: Callable, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "sw"\n')
    result = seqloom("search", "mine.toml", "-q", "x", "-d", "y", "-o", "mine.toml")
    assert result.status == 2 and "mine.toml is a file that is read here" in result.err
    again = seqloom("sw", "-q", "x", "-d", "y", "--task", "mine.toml", "--export-search-strategy", "mine.toml")
    assert again.status == 2 and "mine.toml is a file that is read here" in again.err
    assert (tmp_path / "mine.toml").read_text() == 'base = "sw"\n'


def test_a_run_is_not_written_over_its_databases(seqloom: Callable, made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "query.fasta", tmp_path)
    assert seqloom("sw", "-q", "query.fasta", "-d", "query.fasta", "-o", "rows").status == 0
    before = (tmp_path / "query.fasta").read_bytes()
    result = seqloom("runs", "write", "1", "-o", "query.fasta")
    assert result.status == 2 and "query.fasta is a file that is read here" in result.err
    assert (tmp_path / "query.fasta").read_bytes() == before


def test_a_file_may_be_sorted_in_its_place(seqloom: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("b\na\n")
    assert seqloom("sort", "a.txt", "-o", "a.txt").status == 0
    assert (tmp_path / "a.txt").read_text() == "a\nb\n"


def test_a_database_is_not_made_over_what_is_there(seqloom: Callable, made: Path, tmp_path: Path) -> None:
    shutil.copy(made / "query.fasta", tmp_path)
    before = (tmp_path / "query.fasta").read_bytes()
    assert seqloom("db", "create", "query.fasta", "query.fasta").status == 1
    assert (tmp_path / "query.fasta").read_bytes() == before
