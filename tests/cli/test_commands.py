"""Every command on real data, as in a first session."""

import csv
import gzip
import io
import json
import random
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

QUICK = ("--evalue", "1e-20", "--outfmt", "6 qseqid sseqid evalue")


@pytest.fixture
def session(seqloom: Callable, sample: Path) -> Callable:
    """An empty folder with the sample files and a database."""
    assert seqloom("demo", "--files", ".").status == 0
    assert seqloom("db", "create", "proteins.duckdb", "proteins.fasta").status == 0
    return seqloom


def test_demo(seqloom: Callable, tmp_path: Path) -> None:
    result = seqloom("demo")
    assert result.status == 0, result.err
    assert "$ seqloom blastp" in result.out and "RBFA_FINM2" in result.out
    assert "$ seqloom hmmsearch" in result.out and "MYG_ESCGI" in result.out
    assert "$ seqloom sql" in result.out and "mean_identity" in result.out
    assert not list(tmp_path.iterdir())


def test_demo_in_a_folder_that_is_kept(seqloom: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQLOOM_RESULTS", "elsewhere.duckdb")
    monkeypatch.setattr("seqloom.cli.demo.SESSION", (("Make it:", ["db", "create", "p.duckdb", "proteins.fasta"]),))
    assert seqloom("demo", "--folder", "here").status == 0
    assert (tmp_path / "here" / "p.duckdb").exists()
    again = seqloom("demo", "--folder", "here")
    assert again.status == 1 and "p.duckdb" in again.err


def test_databases(session: Callable, tmp_path: Path) -> None:
    assert session("db", "create", "proteins.duckdb", "proteins.fasta").status == 1  # it is there already
    made = session("db", "create", "two.duckdb", "query.fasta", "--title", "two of them")
    assert (made.status, made.out) == (0, "")
    assert made.err == "seqloom: two.duckdb: 2 protein sequences, 315 residues\n"
    facts = json.loads(session("db", "info", "two.duckdb", "--format", "json").out)[0]
    assert (facts["title"], facts["type"], facts["sequences"], facts["residues"]) == ("two of them", "protein", 2, 315)
    assert "two of them" in session("db", "info", "two.duckdb").out
    listed = list(csv.DictReader(io.StringIO(session("db", "list-sequences", "two.duckdb").out), delimiter="\t"))
    assert [r["name"] for r in listed] == ["sp|B9LBJ3|RBFA_CHLSY", "sp|Q4UKM7|EFP_RICFE"]
    assert [r["length"] for r in listed] == ["127", "188"]
    assert "EFP" not in session("db", "list_sequences", "two.duckdb", "--like", "%RBFA%").out
    assert session("db", "extract", "two.duckdb", "sp|B9LBJ3|RBFA_CHLSY", "Q4UKM7", "-line_length", "60").out == (
        tmp_path / "query.fasta").read_text()
    again = session("db", "append", "two.duckdb", "proteins.fasta")
    assert again.status == 1 and "line 875: id 'sp|B9LBJ3|RBFA_CHLSY' is there already" in again.err
    (tmp_path / "more.fasta").write_text(">c\nMKVL\n>d\nMKVLAE\n")
    added = session("db", "append", "two.duckdb", "more.fasta")
    assert added.err == "seqloom: two.duckdb: 2 sequences added, 4 in all\n"
    (tmp_path / "ids").write_text("c\n\nd 2-3\n")
    assert session("db", "extract", "two.duckdb", "--ids", "ids", "-o", "two.fasta").status == 0
    assert (tmp_path / "two.fasta").read_text() == ">c\nMKVL\n>d:2-3\nKV\n"
    assert "all is well" in session("db", "check", "two.duckdb").err
    unknown = session("db", "extract", "two.duckdb", "nobody")
    assert unknown.status in (1, 2) and "nobody" in unknown.err


def test_bad_records(session: Callable, tmp_path: Path) -> None:
    (tmp_path / "bad.fasta").write_text(">good\nMKV\n>empty\n>odd\nMK1V\n>good\nMKVL\n>fine\nMKVLA\n")
    result = session("db", "create", "bad.duckdb", "bad.fasta", "--type", "protein")
    assert result.status == 1 and "bad.fasta" in result.err and not (tmp_path / "bad.duckdb").exists()
    result = session("db", "create", "bad.duckdb", "bad.fasta", "--type", "protein", "--on-bad", "skip")
    assert result.status == 0 and "2 protein sequences, 8 residues" in result.err
    assert all(word in result.err for word in ("empty", "odd", "good"))


def test_a_search_and_what_is_kept_of_it(session: Callable, tmp_path: Path) -> None:
    found = session("blastp", "-query", "query.fasta", "-db", "proteins.duckdb", *QUICK)
    assert found.status == 0 and found.err == ""
    rows = [line.split("\t") for line in found.out.splitlines()]
    assert ["sp|Q4UKM7|EFP_RICFE", "sp|A8GMN6|EFP_RICAH"] in [row[:2] for row in rows]
    to_file = session("blastp", "-q", "query.fasta", "-d", "proteins.duckdb", *QUICK, "-o", "hits.tsv", "--results",
                      "r.duckdb")
    assert (to_file.status, to_file.out) == (0, "")
    assert (tmp_path / "hits.tsv").read_text() == found.out
    asked = session("sql", "SELECT qseqid, sseqid FROM hsps ORDER BY qnumber, rank, number", "--format", "csv").out
    assert asked.splitlines()[1:] == [",".join(row[:2]) for row in rows]
    runs = json.loads(session("runs", "list", "--format", "json").out)
    assert [(r["run"], r["state"], r["pipeline"]) for r in runs] == [(1, "complete", "blastp")]
    assert runs[0]["id"] in session("runs", "list").out
    shown = session("runs", "show", "1").out
    assert "two-hit-ungapped" in shown and "--matrix" in shown and "proteins.duckdb" in shown
    assert json.loads(session("runs", "show", "last", "--format", "json").out)["options"]["evalue"] == 1e-20
    exported = list(csv.DictReader(io.StringIO(session("export", "last").out), delimiter="\t"))
    assert [(r["qseqid"], r["sseqid"]) for r in exported] == [tuple(row[:2]) for row in rows]
    for format in ("csv", "jsonl", "parquet"):
        result = session("export", "1", "--format", format, "--level", "hits", "-o", f"hits.{format}")
        assert (result.status, result.err) == (0, f"seqloom: hits.{format}: {len(rows)} rows\n")
    assert len((tmp_path / "hits.jsonl").read_text().splitlines()) == len(rows)
    assert (tmp_path / "hits.parquet").read_bytes()[:4] == b"PAR1"
    wrong = session("sql", "SELECT nothing FROM hits")
    assert wrong.status == 1 and "nothing" in wrong.err and wrong.err.count("\n") == 1
    assert session("runs", "merge").err == "seqloom: 0 runs merged\n"
    assert session("runs", "delete", "1").err == f"seqloom: run {runs[0]['id']} deleted\n"
    assert json.loads(session("runs", "list", "--format", "json").out) == []


def test_a_run_is_written_as_its_search_wrote_it(session: Callable, tmp_path: Path) -> None:
    common = ("blastp", "-query", "query.fasta", "-db", "proteins.duckdb", *QUICK[:2])
    for outfmt in "6 std btop sseq", "7", "10", "0":
        found = session(*common, "-f", outfmt, "--results", "kept.duckdb")
        kept = ("--results", "kept.duckdb", "-f", outfmt)
        assert session("runs", "write", "last", *kept).out == found.out
        assert session("runs", "write", "1", *kept, "-o", "again").err == ""
        assert (tmp_path / "again").read_text() == found.out
    write = ("runs", "write", "--results", "kept.duckdb")
    for place in "kept.duckdb", "proteins.duckdb":
        refused = session(*write, "-o", place)
        assert refused.status == 2 and f"{place} is a " in refused.err
    assert "unknown output field 'nothing'" in session(*write, "-f", "6 nothing").err
    (tmp_path / "more.fasta").write_text(">another\nMKVLAAGIVG\n")
    assert session("db", "append", "proteins.duckdb", "more.fasta").status == 0
    assert session(*write, "-f", "10").out.count("\n") == found.out.count("Score =")
    for change in (lambda: None), (tmp_path / "proteins.duckdb").unlink:
        change()
        refused = session(*write, "-f", "0", "-o", "again")
        assert refused.status == 1 and "not there any more or not what they were" in refused.err
    assert (tmp_path / "again").read_text() == found.out


def test_searches_in_other_ways(session: Callable, tmp_path: Path) -> None:
    common = ("-q", "query.fasta", *QUICK)
    whole = session("blastp", *common, "-d", "proteins.duckdb").out
    assert session("blastp", *common, "-d", "proteins.fasta", "--no-store").out == whole
    assert session("search", "blastp", *common, "-d", "proteins.duckdb", "--no-store").out == whole
    preset = session("pipelines", "show", "blastp", "--toml").out
    assert tomllib.loads(preset)["name"] == "blastp"
    (tmp_path / "mine.toml").write_text(preset)
    assert session("search", "mine.toml", *common, "-d", "proteins.duckdb", "--no-store").out == whole
    (tmp_path / "over.toml").write_text('base = "blastp"\n[set]\n"sort.rank.sorter" = "lsd-radix"\n')
    assert session("search", "over.toml", *common, "-d", "proteins.duckdb", "--no-store").out == whole
    assert session("over.toml", *common, "-d", "proteins.duckdb", "--no-store").out == whole
    cut_up = session("blastp", *common, "-d", "proteins.duckdb", "--no-store", "-p", "2", "--volume-residues", "9000",
                     "--batch-queries", "1", "--memory", "4G", "--set", "sort.rank.sorter=multikey-quicksort")
    assert cut_up.out == whole
    (tmp_path / "ids").write_text("sp|A8GMN6|EFP_RICAH\n")
    picked = session("blastp", *common, "-d", "proteins.duckdb", "--no-store", "--target-ids", "ids").out
    assert [line.split("\t")[1] for line in picked.splitlines()] == ["sp|A8GMN6|EFP_RICAH"]
    (tmp_path / "ids.gz").write_bytes(gzip.compress(b"sp|A8GMN6|EFP_RICAH\n"))
    assert session("blastp", *common, "-d", "proteins.duckdb", "--no-store", "-seqidlist", "ids.gz").out == picked
    short = session("blastp", *common, "-d", "proteins.duckdb", "--no-store", "--task", "blastp-short")
    assert short.status == 0 and short.out != whole


@pytest.mark.parametrize("place", ["query.fasta", "proteins.duckdb", "proteins.fasta", "ids", "kept.duckdb", "./link"])
def test_no_output_takes_the_place_of_what_a_search_needs(session: Callable, tmp_path: Path, place: str) -> None:
    (tmp_path / "ids").write_text("sp|A8GMN6|EFP_RICAH\n")
    (tmp_path / "link").symlink_to("query.fasta")
    common = ("blastp", "-q", "query.fasta", "-d", "proteins.duckdb", "-d", "proteins.fasta", *QUICK)
    if not (tmp_path / "kept.duckdb").exists():
        assert session(*common, "--results", "kept.duckdb").status == 0
    before = (tmp_path / place).read_bytes()
    refused = session(*common, "--results", "new.duckdb", "-o", "new.duckdb")
    assert refused.status == 2 and not (tmp_path / "new.duckdb").exists()
    refused = session(*common, "--target-ids", "ids", "--results", "kept.duckdb", "-o", place)
    assert refused.status == 2 and f"{place} is a " in refused.err
    assert (tmp_path / place).read_bytes() == before


def test_explain_tells_where_a_target_was_lost(session: Callable) -> None:
    common = ("blastp", "-q", "query.fasta", "-d", "proteins.duckdb", "--no-store", "--backend", "reference")
    names = [line.split("\t")[1] for line in session(*common, *QUICK).out.splitlines()]
    first, last = names[0], names[-1]
    assert first != last
    told = session(*common, *QUICK, "--max-target-seqs", "1", "--explain", first, "--explain", last).err.splitlines()
    assert len(told) == 2
    ends = {line.split()[1]: line for line in told}
    assert ends[first].endswith("score.evalue, sort.rank; reported")
    assert ends[last].endswith("score.evalue; dropped by sort.rank")
    assert "(query batch 1): kept by seed.words, " in ends[first]
    strict = session(*common, "--evalue", "1e-300", "--explain", first).err
    assert strict.count("\n") == 1 and "dropped by " in strict and "reported" not in strict
    unknown = session(*common, "--explain", "nobody")
    assert unknown.status == 1 and "nobody" in unknown.err and unknown.err.count("\n") == 1


def test_hmmsearch_and_its_tables(session: Callable, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("HBB_MANSP\nMYG_MUSAN\nsp|A8GMN6|EFP_RICAH\n")
    result = session("hmmsearch", "-q", "globins4.hmm", "-d", "proteins.duckdb", "--target-ids", "ids", "-o", "main",
                     "--tblout", "t", "--domtblout", "d", "--pfamtblout", "p", "-A", "a")
    assert (result.status, result.out, result.err) == (0, "", "")
    main, *tables = ((tmp_path / name).read_text() for name in ("main", "t", "d", "p", "a"))
    assert len(set(tables)) == 4 and all("HBB_MANSP" in text for text in (main, *tables))
    passed = [line.split()[3] for line in main.splitlines() if line.startswith("Passed ")]
    assert passed == ["2", "2", "2", "2"]
    for name, text in zip(("hmmer", "tblout", "domtblout", "pfamtblout", "stockholm"), (main, *tables), strict=True):
        assert session("runs", "write", "last", "-f", name).out == text
    kept = json.loads(session("runs", "show", "last", "--format", "json").out)
    assert (kept["query_type"], kept["target_type"]) == ("model", "protein")
    profile = next(slot for slot in kept["slots"] if slot["slot"] == "index.profile")
    assert profile["records_in"] == profile["records_out"] == 1 and profile["seconds"] > 0


def test_mum_with_mummers_flags(session: Callable) -> None:
    result = session("mum", "-mum", "-l", "40", "-b", "-c", "-L", "-q", "mito_orang.fasta", "-d", "mito_human.fasta")
    assert result.status == 0
    assert result.out.splitlines()[0] == "> MT_orang  Len = 16499"
    wrong = session("mum", "-c", "-q", "mito_orang.fasta", "-d", "mito_human.fasta", "--no-store")
    assert wrong.status == 2 and "-b or -r" in wrong.err


def test_mask(session: Callable, tmp_path: Path) -> None:
    mixed = "MKVLAERTGQWYHDCN"
    (tmp_path / "low.fasta").write_text(f">a x\n{mixed}{'A' * 30}{mixed}\n>b\n{mixed}\n")
    assert session("mask", "low.fasta", "--masker", "seg").out == ">a x\n16 - 45\n>b\n"
    soft = session("mask", "low.fasta", "--masker", "seg", "--outfmt", "fasta").out
    assert soft.replace("\n", "") == ">a xMKVLAERTGQWYHDCN" + "a" * 30 + "MKVLAERTGQWYHDCN>bMKVLAERTGQWYHDCN"
    hard = session("mask", "low.fasta", "--masker", "seg", "-f", "fasta", "--hard").out
    assert hard == soft.replace("a" * 14, "X" * 14).replace("a" * 16, "X" * 16).replace("a", "X").replace(">X", ">a")
    (tmp_path / "soft.fasta").write_text(">a\nACGTacgtACGT\n")
    assert session("mask", "soft.fasta", "--masker", "lower-case", "--type", "nucleotide").out == ">a\n4 - 7\n"
    wrong = session("mask", "soft.fasta", "--masker", "dust", "--type", "protein")
    assert wrong.status != 0 and "dust" in wrong.err


def test_plugins_and_pipelines(seqloom: Callable) -> None:
    assert "msd-radix" in seqloom("plugins", "list", "--kind", "sorter").out
    rows = list(csv.DictReader(io.StringIO(seqloom("plugins", "list", "--format", "csv").out)))
    assert {"seed stage", "family", "masker", "pipeline", "reader", "writer"} <= {row["kind"] for row in rows}
    for row in rows:
        shown = seqloom("plugins", "show", row["name"])
        assert shown.status == 0 and row["what it does"] in shown.out
    assert seqloom("plugins", "check", "msd-radix").err == "seqloom: 'msd-radix' is in order\n"
    several = seqloom("plugins", "check", "word-hits", "blastp", "seg", "fasta", "6", "protein-blast")
    assert several.err == "seqloom: 6 plugins are in order\n"
    assert int(seqloom("plugins", "check", "formats").err.split()[1]) >= 9  # all of one plugin
    assert "unknown plugin 'blastq'" in seqloom("plugins", "check", "6", "blastq").err
    assert "index.words" in seqloom("pipelines", "show", "blastp").out
    for more in ([], ["--toml"]):
        shown = seqloom("pipelines", "show", "blastn", *more).out
        assert "the task blastn" in shown and "'seqloom blastn' without --task runs megablast." in shown
        assert "task" not in seqloom("pipelines", "show", "blastp", *more).out


def test_doctor(seqloom: Callable) -> None:
    result = seqloom("doctor")
    for what in ("Python", "packages", "processors", "memory", "kernel cache", "kernels", "results store", "CUDA",
                 "plugins"):
        assert f" {what}: " in result.out
    assert result.status == ("BAD" in result.out)


def test_version(seqloom: Callable) -> None:
    from importlib.metadata import version

    assert seqloom("--version").out == f"seqloom {version('seqloom')}\n"


@pytest.mark.parametrize("path", ["Makefile", ".ci/run"])
def test_the_verbs_are_there(path: str) -> None:
    text = (Path(__file__).parents[2] / path).read_text()
    assert "test" in text
    if path == ".ci/run":
        assert "make test" in text and subprocess.run(["sh", "-n", Path(__file__).parents[2] / path]).returncode == 0


def test_blastn_does_what_its_peer_does_without_a_task(session: Callable) -> None:
    files = ("-q", "mito_human.fasta", "-d", "mito_orang.fasta", "--evalue", "1e-9", "-f", "7", "--no-store")
    plain = session("blastn", *files).out
    assert plain.startswith("# BLASTN 2.12.0+ (seqloom ")
    assert plain == session("megablast", *files).out == session("search", "blastn", *files).out
    words = session("blastn", *files, "--task", "blastn").out
    assert words.count("\n") != plain.count("\n")
    assert session("blastn", "--help").out.startswith("Usage: seqloom blastn")
    assert "word-size N" in session("blastn", "--help").out and "[default: 28]" in session("blastn", "--help").out
    assert "[default: 11]" in session("blastn", "--task", "blastn", "--help").out


def test_a_run_says_which_task_it_was(session: Callable) -> None:
    session("blastn", "-q", "mito_human.fasta", "-d", "mito_orang.fasta", "-o", "o")
    session("blastn", "-q", "mito_human.fasta", "-d", "mito_orang.fasta", "-o", "o", "-task", "blastn")
    kept = json.loads(session("runs", "list", "--format", "json").out)
    assert [run["pipeline"] for run in kept] == ["megablast", "blastn"]


def test_a_search_on_a_terminal_says_what_it_came_to(session: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    search = ("blastp", "-q", "query.fasta", "-d", "proteins.duckdb", "--evalue", "1e-20")
    assert session(*search, "--results", "quiet.duckdb").err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("seqloom.cli.progress.AFTER", 1e9)
    hits = session("sql", "SELECT count(*) FROM hits", "--results", "quiet.duckdb", "--format", "csv").out.split()[1]

    def said(*words: str) -> str:
        return re.sub(r"in \d+\.\d s", "in T s", session(*search, *words).err)

    assert said("-o", "o.tsv") == f"seqloom: 2 queries, {hits} hits in T s; o.tsv; run 1 kept in seqloom.duckdb\n"
    assert said("--results", "r.duckdb") == f"seqloom: 2 queries, {hits} hits in T s; run 1 kept in r.duckdb\n"
    assert said("--no-store") == f"seqloom: 2 queries, {hits} hits in T s\n"
    assert said("--quiet") == ""
    assert said("--no-store", "--max-target-seqs", "1") == "seqloom: 2 queries, 2 hits in T s\n"
    assert session(*search[:-1], "1e-299", "--no-store").err.startswith("seqloom: 2 queries, no hits in ")


def test_masked_residues_of_queries_are_shown_in_lower_case(session: Callable, tmp_path: Path) -> None:
    other = "".join(random.Random(20).choices("ACGT", k=90))
    (tmp_path / "q.fa").write_text(f">q\n{other[:30]}{'T' * 30}{other[30:60]}{other[60:80].lower()}{other[80:]}\n")
    search = ("blastn", "--task", "blastn", "-q", "q.fa", "-d", "q.fa", "--lcase-masking", "-f", "0")
    shown = session(*search)
    rows = [line.split()[2] for line in shown.out.splitlines() if line.startswith("Query  ")]
    # as blastn of BLAST+ 2.12
    assert "".join(rows[:2]) == other[:30] + "t" * 30 + other[30:60] + other[60:80].lower() + other[80:]
    assert session("runs", "write", "last", "-f", "0").out == shown.out == session(*search, "--no-store").out


def test_alignments_with_a_model_show_its_consensus_and_what_it_favours(session: Callable, tmp_path: Path) -> None:
    """Model and middle line of ``hmmsearch globins4.hmm`` of HMMER 3.3.2, without its dots in the model's line."""
    (tmp_path / "ids").write_text("HBB_MANSP\n")
    search = ("hmmsearch", "globins4.hmm", "proteins.duckdb", "--target-ids", "ids", "-Z", "300", "-f", "0")
    shown = session(*search)
    rows = [line for line in shown.out.splitlines() if line.startswith((" " * 12, "Query  ", "Sbjct  "))]
    rows = [line for line in rows if line.count(" ") < 60]
    model, middle = ("".join(line[12:].rpartition("  ")[0] if line.startswith("Q") else line[12:72]
                             for line in rows[start::3]) for start in (0, 1))
    assert model == ("vvLseaektkvkavWakveadveesGadiLvrlfkstPatqefFekFkdLstedelkksadvkkHgkkvldAlsdalakldek"
                     "leaklkdLselHakklkvdpkyfkllsevlvdvlaarlpkeftadvqaaleKllalvakllaskYk")
    assert middle == ("v+L+++ekt+v+++W+kv  +v+e+G+++L rl++++P+tq+fF++F+dLs +d+++++++vk+Hgkkvl+A+sd+l++ld "
                      "+l++++++LselH++kl+vdp++fkll++vlv+vla++++keft++vqaa++K++a va++la+kY+")
    assert session("runs", "write", "last", "-f", "0").out == shown.out == session(*search, "--no-store").out


def test_a_search_strategy_is_kept_and_used_again(session: Callable, tmp_path: Path) -> None:
    files = ("-q", "query.fasta", "-d", "proteins.fasta", "--no-store", "--quiet")
    options = ("-evalue", "1e-30", "-matrix", "BLOSUM45", "-gapopen", "14", "-gapextend", "2", "-soft_masking", "true",
               "-seg", "yes", "--set", "seed.scan.enabled=no")
    first = session("blastp", *files, *options, "-export_search_strategy", "kept.toml")
    again = session("blastp", *files, "-import_search_strategy", "kept.toml")
    assert first.out and (first.status, first.out) == (again.status, again.out)
    assert session("search", "kept.toml", *files).out == first.out
    fewer = session("blastp", *files, "-import_search_strategy=kept.toml", "-evalue", "1e-80").out
    assert fewer.count("\n") < first.out.count("\n")
    (tmp_path / "blast.asn").write_text("Blast4-request ::= {\n  ident \"x\"\n}\n")
    for strategy, said in (("blast.asn", "a search strategy of BLAST+ (ASN.1), which isn't read"),
                           ("query.fasta", "not valid TOML"), ("nothing.toml", "nothing.toml")):
        refused = session("blastp", *files, "-import_search_strategy", strategy)
        assert refused.status and not refused.out and said in refused.err and refused.err.count("\n") == 1
    session("blastn", "-q", "mito_human.fasta", "-d", "mito_orang.fasta", "--no-store", "--quiet",
            "-export_search_strategy", "nucleotides.toml", "-o", "o")
    other = session("blastp", *files, "-import_search_strategy", "nucleotides.toml")
    assert other.status == 2 and "nucleotides.toml is no task of 'blastp'" in other.err
    taken = session("blastp", *files, "-export_search_strategy", "query.fasta")
    assert taken.status and "would take its place" in taken.err
