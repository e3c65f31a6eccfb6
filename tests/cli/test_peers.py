"""Options and names of other programs: each is taken, or answered with what to do instead."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from seqloom.cli import peers
from seqloom.cli.aliases import dashed
from seqloom.cli.main import Root, app
from seqloom.cli.words import known_options
from typer.main import get_command

LISTS = {words[0]: words[1:] for line in (Path(__file__).parent / "data" / "peer_options.txt").read_text().splitlines()
         if (words := line.split()) and words[0] != "#"}
COMMANDS = {
    "blastp": ["blastp"], "blastn": ["blastn"], "hmmsearch": ["hmmsearch"], "hmmscan": ["hmmscan"],
    "phmmer": ["phmmer"], "mummer": ["mum"],
    "makeblastdb": ["db", "create"], "blastdbcmd": ["db", "extract"], "segmasker": ["mask"], "dustmasker": ["mask"],
    "windowmasker": ["mask"],
}
"""Our command for each program."""


def options_of(command: list[str]) -> set[str]:
    """Spellings of all options that a command takes."""
    root = get_command(app)
    assert isinstance(root, Root)
    found = root.get_command(None, command[0])
    for name in command[1:]:
        found = found.get_command(None, name)
    context = found.make_context("x", ["--help"], resilient_parsing=True)
    return {name.lstrip("-") for name in known_options(found.get_params(context))} | {"version"}


@pytest.mark.parametrize("program", COMMANDS)
def test_every_option_of_a_peer_is_taken_or_answered(program: str) -> None:
    taken = options_of(COMMANDS[program])
    answered = {name for peer in COMMANDS if COMMANDS[peer] == COMMANDS[program] for name in peers.OPTIONS[peer]}
    theirs = {dashed(option).lstrip("-") for option in LISTS[program]}
    assert theirs <= taken | answered
    assert not answered & taken, "answers that nobody gets to see: take them out of cli/peers.py"


def test_answers_are_given_to_options_that_there_are() -> None:
    for program, options in peers.OPTIONS.items():
        assert not set(options) - {dashed(option).lstrip("-") for option in LISTS[program]}, program


@pytest.mark.parametrize("words, line", [
    (["blastp", "-gilist", "x"], "blastp's -gilist isn't there: targets are picked by name"),
    (["blastp", "-gilist=x"], "blastp's -gilist isn't there: targets are picked by name"),
    (["megablast", "--entrez_query", "x"], "blastn's --entrez_query isn't there: nothing is asked of NCBI's servers"),
    (["blastn", "-window_masker_taxid", "5"], "blastn's -window_masker_taxid isn't there: counts are looked for by no"),
    (["blastn", "-index_name", "x"], "blastn's -index_name isn't there: there are no indexes of megablast's kind"),
    (["blastn", "-template_length", "18"], "blastn's -template_length isn't there: words with gaps are dc-megablast's"),
    (["blastn", "-task", "rmblastn"], "there is no task rmblastn here: it scores by a matrix"),
    (["blastn", "-task", "vecscreen"], "there is no task vecscreen here: -task blastn -reward 1 -penalty -5"),
    (["db", "create", "-in", "x"], "makeblastdb's -in isn't there: files stand without an option"),
    (["db", "extract", "x.duckdb", "-mask_sequence_with", "11"], "blastdbcmd's -mask_sequence_with isn't there"),
    (["mask", "x", "-convert"], "windowmasker's -convert isn't there: counts of all kinds are read"),
], ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_what_is_not_there_is_said(seqloom: Callable, tmp_path: Path, words: list[str], line: str) -> None:
    files = ["-q", "x", "-d", "y"] if words[0] not in ("db", "mask") else []
    result = seqloom(words[0], *files, *words[1:])
    assert result.status == 2 and line in result.err and result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_changes_nothing_is_passed_over_with_a_word(seqloom: Callable, sample: Path) -> None:
    common = ("hmmsearch", str(sample / "globins4.hmm"), str(sample / "query.fasta"), "--no-store", "-f", "tblout")
    plain = seqloom(*common)
    result = seqloom(*common, "--noali", "--textw", "130", "--tformat", "fasta")
    rows = [[line for line in r.out.splitlines() if not line.startswith("# Option")] for r in (plain, result)]
    assert rows[0] == rows[1] and result.status == 0
    assert "--noali is passed over" in result.err and "--textw is passed over" in result.err
    assert "tformat" not in result.err
    assert "hmmsearch's --tformat isn't there" in seqloom(*common, "--tformat", "embl").err


@pytest.mark.parametrize("words, line", [
    (["makeblastdb", "-in", "a.fa", "-dbtype", "prot", "-out", "base"],
     "type: seqloom db create base.duckdb a.fa --type protein\n"),
    (["makeblastdb", "-in=a.fa", "-dbtype", "nucl"], "type: seqloom db create a.fa.duckdb a.fa --type nucleotide\n"),
    (["makeblastdb", "-in", "a.fa", "-taxid", "9606"], "type: seqloom db create a.fa.duckdb a.fa --taxid 9606\n"),
    (["blastdbcmd", "-db", "base", "-entry", "P1,P2", "-out", "o"],
     "type: seqloom db extract base.duckdb P1 P2 -o o\n"),
    (["blastdbcmd", "-db", "base", "-entry", "P1", "-target_only", "-range", "3-9", "-outfmt", "%s"],
     "type: seqloom db extract base.duckdb P1 -range 3-9 -outfmt %s -target_only\n"),
    (["blastdbcmd", "-db", "base", "-info"], "type: seqloom db info base.duckdb\n"),
    (["blastdbcmd", "-db", "base", "-entry_batch", "ids"], "type: seqloom db extract base.duckdb --ids ids\n"),
    (["segmasker", "-in", "a.fa", "-outfmt", "fasta", "-window", "10"],
     "type: seqloom mask a.fa --masker seg -outfmt fasta -window 10\n"),
    (["dustmasker", "-in", "a.fa", "-level", "30"], "type: seqloom mask a.fa --masker dust -level 30\n"),
    (["windowmasker", "-mk_counts", "-in", "a.fa", "-out", "a.counts"],
     "type: seqloom mask a.fa --masker windowmasker -mk_counts -out a.counts\n"),
    *[([name, "x", "y"], f"there is no {name} here: ") for name, text in peers.PROGRAMS.items() if text],
], ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_programs_that_are_not_here_say_what_to_type(seqloom: Callable, words: list[str], line: str) -> None:
    result = seqloom(*words)
    assert result.status == 2 and line in result.err and result.err.count("\n") == 1


def test_lines_to_type_are_lines_that_work(seqloom: Callable, sample: Path) -> None:
    seqs = str(sample / "query.fasta")
    for words in (["makeblastdb", "-in", seqs, "-dbtype", "prot", "-out", "base", "-title", "two of them"],
                  ["blastdbcmd", "-db", "base", "-entry", "sp|B9LBJ3|RBFA_CHLSY"],
                  ["blastdbcmd", "-db", "base", "-info"],
                  ["segmasker", "-in", seqs, "-outfmt", "interval", "-hicut", "2.6"]):
        line = seqloom(*words).err.partition("type: seqloom ")[2].strip()
        assert seqloom(*shlex.split(line)).status == 0, line


def test_options_of_other_programs_than_the_command_s_own_peer(seqloom: Callable) -> None:
    """They aren't cut into ``-i ndex_name``, nor are values of ours suggested for them."""
    result = seqloom("blastp", "-q", "x", "-d", "y", "-index_name", "z")
    assert result.status == 2 and "blastn's -index_name isn't there: there are no indexes of" in result.err
    result = seqloom("sw", "-q", "x", "-d", "y", "-gilist", "z")
    assert "blastp's -gilist isn't there: targets are picked" in result.err
