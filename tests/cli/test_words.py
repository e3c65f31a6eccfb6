"""How words are read: nothing that isn't known is cut into something else, and nothing that is typed is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seqloom.cli import searching
from seqloom.cli.main import MODULES, main
from seqloom.cli.words import Known, read_words
from seqloom.core.errors import UsageError

FILES = ["-q", "queries", "-d", "targets"]
OPTIONS = {
    "--out": Known("--out", file=True), "-o": Known("--out", file=True), "-out": Known("--out", file=True),
    "--num-threads": Known("--num-threads"), "-p": Known("--num-threads"),
    "--both": Known("--both", "--no-both", False), "-b": Known("--both", "--no-both", False),
    "-c": Known("-c", takes_value=False), "--seg": Known("--seg", "--no-seg", False, word=True),
    "--set": Known("--set", repeatable=True), "--quiet": Known("--quiet", takes_value=False),
}


def read(*args: str) -> tuple[list[str], list[str]]:
    return read_words(args, OPTIONS, lambda flag, value: False)


@pytest.mark.parametrize("args, options, plain", [
    (["a", "--out", "x", "b"], ["--out", "x"], ["a", "b"]),
    (["-out=x"], ["--out", "x"], []),
    (["-o", "-"], ["--out", "-"], []),
    (["-p4"], ["--num-threads", "4"], []),
    (["-bc"], ["--both", "-c"], []),
    (["--num_threads", "-3"], ["--num-threads", "-3"], []),
    (["--seg", "no", "x"], ["--no-seg"], ["x"]),
    (["--seg", "TRUE"], ["--seg"], []),
    (["--seg=yes"], ["--seg"], []),
    (["--both", "no"], ["--both"], ["no"]),
    (["--both=no"], ["--no-both"], []),
    (["--set", "a=1", "--set", "b=2"], ["--set", "a=1", "--set", "b=2"], []),
    (["x", "--", "--seg", "-o"], [], ["x", "--seg", "-o"]),
    (["-o=--seg"], ["--out", "--seg"], []),
])
def test_words_are_options_with_their_values_and_the_rest(args: list[str], options: list[str],
                                                          plain: list[str]) -> None:
    assert read(*args) == (options, plain)


@pytest.mark.parametrize("args, message", [
    (["-outfmt6"], "no such option -outfmt6; did you mean -out?"),
    (["-output=x"], "no such option -output; did you mean -out?"),
    (["--quite"], "no such option --quite; did you mean --quiet?"),
    (["-oops"], "no such option -oops; did you mean -o ops?"),
    (["-o7"], "no such option -o7; did you mean -o 7?"),
    (["-bx"], "no such option -bx"),
    (["-1"], "no such option -1"),
    (["-o"], "-o needs a value"),
    (["-o", "--seg", "no"], "-o needs a value, and the option --seg follows"),
    (["-o", "a", "--out", "b"], "--out is given twice (also as -o); give it once"),
    (["-p", "1", "-p", "2"], "-p is given twice; give it once"),
    (["--quiet=yes"], "--quiet takes no value; leave '=yes' out"),
    (["--seg=perhaps"], "--seg is yes or no, not 'perhaps'"),
])
def test_what_is_not_plain_is_refused(args: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(*args)
    assert message in str(caught.value)


COMMANDS = [[name] for name in MODULES if name not in ("db", "index", "runs", "pipelines", "plugins",
                                                       "standby")] + [
    ["blastp"], ["blastn"], ["hmmsearch"], ["mum"], ["sw"], ["exact"], ["search", "blastp"], ["db", "create"],
    ["db", "append"], ["db", "info"], ["db", "list-sequences"], ["db", "extract"], ["db", "check"], ["index", "build"],
    ["index", "list"], ["runs", "list"], ["runs", "show"], ["runs", "resume"], ["runs", "write"], ["runs", "merge"],
    ["pipelines", "list"], ["pipelines", "show"], ["plugins", "list"], ["plugins", "check"], [], ["db"], ["runs"],
    ["standby", "start"], ["standby", "status"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_cuts_an_unknown_word_into_short_options(seqloom: Callable, tmp_path: Path,
                                                            command: list[str]) -> None:
    for word in ("-outfmt6x", "-oops", "-qx", "-dy", "-pxy", "-fasta", "-kx", "-evalux", "-oops=1"):
        result = seqloom(*command, "x", "y", word) if command[1:] or command[:1] not in ([], ["db"], ["runs"]) else (
            seqloom(*command, word))
        assert (result.status, result.out) == (2, ""), (word, result)
        assert f"no such option {word.partition('=')[0]}" in result.err and result.err.count("\n") == 1, result.err
    assert not list(tmp_path.iterdir())


def test_long_options_with_one_dash_work_in_every_command(seqloom: Callable, tmp_path: Path) -> None:
    (tmp_path / "low.fasta").write_text(f">a\n{'MKVLAERTGQWYHDCN'}{'A' * 30}\n")
    whole = seqloom("mask", "low.fasta", "--masker", "seg", "--outfmt", "fasta").out
    assert seqloom("mask", "low.fasta", "-masker", "seg", "-outfmt=fasta").out == whole
    assert seqloom("mask", "low.fasta", "-masker=seg", "-outfmt", "fasta", "-out", "o").status == 0
    assert (tmp_path / "o").read_text() == whole
    assert seqloom("db", "create", "x.duckdb", "low.fasta", "-type", "protein", "-title=few").status == 0
    assert seqloom("db", "list_sequences", "x.duckdb", "-format", "csv").out.startswith("ordinal,")
    assert seqloom("runs", "list", "-results", "none.duckdb", "-help").out.startswith("Usage: seqloom runs list")


@pytest.mark.parametrize("words", [["--version"], ["-version"], ["-v"], ["blastp", "-version"], ["db", "-version"],
                                   ["mask", "--version"], ["search", "mum", "-version"]], ids=" ".join)
def test_version(seqloom: Callable, words: list[str]) -> None:
    result = seqloom(*words)
    assert result.status == 0 and result.out.startswith("seqloom 0.") and result.err == ""


@pytest.mark.parametrize("words", [["help", "blastp"], ["blastp", "-help"], ["blastp", "-h"]], ids=" ".join)
def test_help_is_asked_for_in_several_ways(seqloom: Callable, words: list[str]) -> None:
    assert seqloom(*words) == seqloom("blastp", "--help")


def test_help_of_help(seqloom: Callable) -> None:
    assert seqloom("help") == seqloom("--help") == seqloom("-help")
    assert seqloom("help", "db", "create") == seqloom("db", "create", "--help")
    assert seqloom("mum", "-help").out.startswith("Usage: seqloom mum")


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Carries out a command line up to the search; gives the values that the search would get."""

    def parse(*words: str) -> dict[str, Any]:
        caught: dict[str, Any] = {}
        monkeypatch.setattr(searching, "carry_out", lambda pipeline, _, given: caught.update(given, name=pipeline.name))
        assert main(list(words)) == 0
        return caught

    return parse


@pytest.mark.parametrize("words, name, query, db", [
    (["hmmsearch", "m.hmm", "s.fasta"], "hmmsearch", ["m.hmm"], ["s.fasta"]),
    (["hmmsearch", "--max", "-E", "1e-5", "m.hmm", "s.fasta"], "hmmsearch", ["m.hmm"], ["s.fasta"]),
    (["mummer", "-mum", "-l", "20", "ref", "one", "two"], "mum", ["one", "two"], ["ref"]),
    (["mum", "-bc", "-l20", "ref", "one"], "mum", ["one"], ["ref"]),
    (["blastp", "-q", "one", "-q", "two", "-d", "base"], "blastp", ["one", "two"], ["base"]),
])
def test_files_without_an_option_and_several_queries(values: Any, words: list[str], name: str, query: list[str],
                                                     db: list[str]) -> None:
    found = values(*words)
    assert (found["name"], found["query"], found["db"]) == (name, query, db)


@pytest.mark.parametrize("words, message", [
    (["hmmsearch", "m.hmm"], "'m.hmm' stands alone; give QUERY and DB"),
    (["mum", "ref", "-q", "x"], "--query is given, and 'ref' stands without an option"),
    (["blastp", *FILES, "more"], "unexpected extra argument"),
])
def test_files_without_an_option_that_nobody_knows(seqloom: Callable, words: list[str], message: str) -> None:
    result = seqloom(*words)
    assert result.status == 2 and message in result.err


def test_several_files_of_queries_are_as_one(seqloom: Callable, sample: Path, tmp_path: Path) -> None:
    human, orang = (str(sample / f"mito_{name}.fasta") for name in ("human", "orang"))
    (tmp_path / "both.fasta").write_text((sample / "mito_human.fasta").read_text()
                                         + (sample / "mito_orang.fasta").read_text())
    whole = seqloom("mum", "-q", "both.fasta", "-d", orang, "--no-store", "-l", "60").out
    assert whole.count(">") == 2
    assert seqloom("mum", "-q", human, "-q", orang, "-d", orang, "--no-store", "-l", "60").out == whole
    assert seqloom("mummer", "-l", "60", orang, human, orang, "--no-store").out == whole
    hmm = str(sample / "globins4.hmm")
    twice = seqloom("hmmsearch", "-q", hmm, "-q", hmm, "-d", str(sample / "query.fasta"), "--no-store")
    assert twice.status == 0 and twice.out.endswith("//\n[ok]\n")
