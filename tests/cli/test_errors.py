"""What becomes of mistakes: one line on stderr, nothing on stdout, the right exit status, nothing left behind."""

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from seqloom.cli import main as root
from seqloom.cli import searching
from seqloom.core import backends
from seqloom.core.errors import BudgetError, Cancelled, DamagedError, InputError

USAGE = [
    (["blastq"], "No such command 'blastq'. Did you mean 'blastp'"),
    (["db"], "Missing command"),
    (["db", "crate", "x"], "No such command 'crate'. Did you mean 'create'"),
    (["db", "create"], "Missing argument"),
    (["--foo"], "no such option --foo"),
    (["blastp"], "Missing option"),
    (["blastp", "-q", "x"], "Missing option"),
    (["blastp", "-q", "x", "-d", "y", "--fo"], "no such option --fo (see"),
    (["blastp", "-q", "x", "-d", "y", "--evalue"], "--evalue needs a value"),
    (["blastp", "-q", "x", "-d", "y", "--evalue", "low"], "--evalue needs a value of type float, not 'low'"),
    (["blastp", "-q", "x", "-d", "y", "-evalue", "-1"], "--evalue must be at least"),
    (["blastp", "-q", "x", "-d", "y", "--matrix", "BLOSUM61"], "--matrix must be one of"),
    (["blastp", "-q", "x", "-d", "y", "-p", "0"], "--num-threads needs a number from 1 on, not '0'"),
    (["blastp", "-q", "x", "-d", "y", "--volume-residues", "many"], "--volume-residues needs a number from 1 on"),
    (["blastp", "-q", "x", "-d", "y", "--memory", "lots"], "--memory needs a size such as 512M or 8G, not 'lots'"),
    (["blastp", "-q", "x", "-d", "y", "--on-bad", "ignore"], "--on-bad must be error or skip"),
    (["blastp", "-q", "x", "-d", "y", "--outfmt", "66"], "unknown output format '66'"),
    (["blastp", "-q", "x", "-d", "y", "--outfmt", " "], "unknown output format ' '"),
    (["blastp", "-q", "x", "-d", "y", "--outfmt", "6 qseqid evalu"], "field 'evalu'; did you mean 'evalue'?"),
    (["blastp", "-q", "x", "-d", "y", "--outfmt", "6 delim=xx std"], "must give one character"),
    (["blastp", "-q", "x", "-d", "y", "--outfmt", "tblout"],
     "output format 'tblout' writes results of hmmscan, hmmscan-nucleotide, hmmsearch, hmmsearch-nucleotide"),
    (["blastp", "-q", "x", "-d", "y", "-f", "mummer"], "writes results of exact, exact-protein, mum, mum-protein only"),
    (["mum", "-q", "x", "-d", "y", "--outfmt", "mummer x"], "unknown flag 'x' of output format 'mummer'"),
    (["blastp", "-q", "x", "-d", "y", "--backend", "gpu"], "unknown back end 'gpu'"),
    (["blastp", "-q", "x", "-d", "y", "--stage", "seed.wrds=word-hits"], "unknown slot 'seed.wrds' of"),
    (["blastp", "-q", "x", "-d", "y", "--stage", "seed.words"], "--stage takes slot=plugin"),
    (["blastp", "-q", "x", "-d", "y", "--stage", "seed.words=word-hit"], "unknown stage 'word-hit'; did you mean"),
    (["blastp", "-q", "x", "-d", "y", "--stage", "seed.words=two-hit-ungapped"], "slot 'seed.words' takes"),
    (["blastp", "-q", "x", "-d", "y", "--stage", "extend.gapped=matches"],
     "slot 'extend.gapped' ('matches') needs MatchScoring, which family 'protein-blast' of pipeline 'blastp' doesn't"),
    (["mum", "-q", "x", "-d", "y", "--stage", "sort.rank=rank-targets"], "needs the option 'max_hsps', which family"),
    (["hmmsearch", "-q", "x", "-d", "y", "--stage", "sort.rank=sw-rank"], "needs the option 'max_target_seqs'"),
    (["blastp", "-q", "x", "-d", "y", "--set", "seed.words.enabled=no", "--backend", "reference"],
     "slot 'sort.diagonal' ('two-hit-diagonals') takes Seeds; 'the start' gives nothing; switched off: 'seed.words'"),
    (["blastp", "-q", "x", "-d", "y", "--set", "seed.words.enabled=no", "--backend", "cpu"],
     "'seed.scan' only says where to look, and a seed stage must follow it; switched off: 'seed.words'"),
    (["blastp", "-q", "x", "-d", "y", "--stage", "seed.words=segment-diagonals", "--backend", "reference"],
     "'seed.words' only says where to look"),
    (["blastp", "-q", "x", "-d", "y", "--set", "sort.rank.sorter"], "--set takes slot.option=value"),
    (["blastp", "-q", "x", "-d", "y", "--set", "sort.rank.srter=x"], "unknown option 'srter' of sort.rank"),
    (["blastp", "-q", "x", "-d", "y", "--task", "blastn"], "--task blastn is no task of 'blastp'"),
    (["blastp", "-q", "x", "-d", "y", "--task", "blastz"], "unknown pipeline 'blastz'"),
    (["hmmsearch", "-q", "x", "-d", "y", "-E", "1", "--cut_ga"], ""),
    (["blastn", "-q", "x", "-d", "y", "--word-size", "9223372036854775807"], "--word-size must be at most 2,147"),
    (["blastp", "-q", "x", "-d", "y", "--threshold", "9223372036854775807"], "--threshold must be at most 1,000,000"),
    (["dc-megablast", "-q", "x", "-d", "y", "--xdrop-ungap", "1e308"], "--xdrop-ungap must be at most 1,000,000"),
    (["blastp", "-q", "x", "-d", "y", "-xdrop_ungap", "0"], "--xdrop-ungap must be at least"),
    (["search", "blastp"], "Missing option"),
    (["blastp", "-q", "x", "-d", "y", "--outfmt", "1"],
     "unknown output format '1'; known: 0, 10, 13, 14, 15, 16, 17, 18"),
    (["mum", "-q", "x", "-d", "y", "-mum", "-maxmatch"], "--mum and --maxmatch exclude each other"),
    (["mum", "-q", "x", "-d", "y", "-o", "o", "--paf", "./o"], "./o would be written twice; give every output a file"),
    (["search", "blastq", "-q", "x", "-d", "y"], "No such command 'blastq'"),
    (["db", "create", "x.duckdb", "y", "--type", "rna"], "--type must be protein or nucleotide, not 'rna'"),
    (["db", "extract", "x.duckdb"], "name the sequences to extract, or give --ids FILE"),
    (["mask", "x", "--masker", "sag"], "unknown masker 'sag'; did you mean 'seg'?"),
    (["mask", "x", "--masker", "seg", "--outfmt", "html"], "--outfmt must be interval, fasta, acclist"),
    (["mask", "x", "--masker", "seg", "--set", "window"], "--set takes option=value"),
    (["plugins", "show", "word-hit"], "unknown plugin 'word-hit'; did you mean 'word-hits'?"),
    (["plugins", "list", "--kind", "seeds"], "unknown kind 'seeds'; did you mean 'seed'?"),
    (["plugins", "list", "--format", "xml"], "unknown table format 'xml'"),
    (["pipelines", "show", "blastq"], "unknown pipeline 'blastq'"),
    (["runs", "show", "7"], "unknown run '7' in"),
]


@pytest.mark.parametrize("words, message", USAGE, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_usage(seqloom: Callable, tmp_path: Path, words: list[str], message: str) -> None:
    result = seqloom(*words)
    assert result.status == 2, result
    assert message in result.err
    assert result.err.startswith("seqloom: ") and result.err.count("\n") == 1, result.err
    assert result.out == ""
    assert not list(tmp_path.iterdir())


def test_usage_says_where_the_help_is(seqloom: Callable) -> None:
    assert seqloom("db", "create").err.rstrip().endswith("(see 'seqloom db create --help')")


@pytest.mark.parametrize("words", [["sw", "-q", "x", "-d", "y"], ["mum", "-q", "x", "-d", "y"], ["sort", "x"]], ids=str)
def test_no_device(seqloom: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    monkeypatch.setattr(backends, "cuda_available", lambda: False)
    result = seqloom(*words, "--backend", "cuda")
    message = "seqloom: CUDA was asked for and no CUDA device can be used; --backend cpu or reference\n"
    assert (result.status, result.err) == (1, message)
    assert not list(tmp_path.iterdir())


FAILURES = [
    (["blastp", "-q", "none", "-d", "y"], "none"),
    (["pipelines", "show", "none.toml"], "none.toml"),
    (["blastp", "-q", "x", "-d", "y", "-o", "nowhere/o"], "nowhere/o can't be written: there is no folder"),
    (["blastp", "-q", "x", "-d", "y", "-o", "."], ". is a folder; give the name of a file"),
    (["blastp", "-q", "x", "-d", "y", "--target-ids", "none"], "none: there is no such file; check the name"),
    (["db", "info", "none.duckdb"], "none.duckdb"),
    (["sql", "SELECT 1"], "there is no results store seqloom.duckdb"),
]


@pytest.mark.parametrize("words, message", FAILURES, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_failures(seqloom: Callable, tmp_path: Path, words: list[str], message: str) -> None:
    result = seqloom(*words)
    assert result.status == 1, result
    assert message in result.err
    assert result.err.startswith("seqloom: ") and result.err.count("\n") == 1, result.err
    assert result.out == ""
    assert not list(tmp_path.iterdir())


RAISED = [
    (InputError("a.fasta, line 3: no"), 1, "seqloom: a.fasta, line 3: no\n"),
    (DamagedError("two\nlines"), 1, "seqloom: two\\nlines\n"),
    (BudgetError("slot 'x'", 1 << 30, 1 << 20, "raise --memory"), 1,
     "seqloom: slot 'x' needs 1,024 MiB, the budget has 1 MiB; raise --memory\n"),
    (BudgetError("slot 'x'", 2049, 1 << 10, "raise --memory"), 1,
     "seqloom: slot 'x' needs 3 KiB, the budget has 1 KiB; raise --memory\n"),
    (BudgetError("slot 'x'", 2000, 1023, "raise --memory"), 1,
     "seqloom: slot 'x' needs 2,000 bytes, the budget has 1,023 bytes; raise --memory\n"),
    (Cancelled("interrupted"), 130, "seqloom: interrupted\n"),
    (OSError(errno.ENOSPC, "No space left on device", "hits.tsv"), 1,
     "seqloom: hits.tsv can't be written: the disk is full; free some space or choose another place\n"),
    (PermissionError(errno.EACCES, "Permission denied", "x"), 1, "seqloom: x: Permission denied\n"),
    (KeyboardInterrupt(), 130, "seqloom: interrupted\n"),
    (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
    (OverflowError("int too large"), 2,
     "seqloom: a number that was given is too large to compute with (int too large); give a smaller one\n"),
    (ValueError("boom"), 1, "seqloom: internal error: ValueError: boom (seqloom --debug … shows where)\n"),
]


@pytest.mark.parametrize("error, status, line", RAISED, ids=lambda x: type(x).__name__)
def test_errors_of_a_search(seqloom: Callable, monkeypatch: pytest.MonkeyPatch, error: BaseException, status: int,
                            line: str) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(searching, "carry_out", fail)
    monkeypatch.setattr(root, "_close_stdout", lambda: root.BROKEN_PIPE)
    result = seqloom("blastp", "-q", "x", "-d", "y")
    assert (result.status, result.out, result.err) == (status, "", line)


def test_debug_shows_where(seqloom: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("boom")

    monkeypatch.setenv("SEQLOOM_DEBUG", "")
    monkeypatch.setattr(searching, "carry_out", fail)
    result = seqloom("--debug", "blastp", "-q", "x", "-d", "y")
    assert result.status == 1
    assert "Traceback" in result.err and "boom" in result.err
