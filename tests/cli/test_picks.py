"""Searches of a part of the databases: by names, by organisms, and of all others; with the peer's statistics."""

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import taxa
from tests.cli.test_taxonomy import made, needs_peer, taxid_map  # noqa: F401  (a fixture)

FORMAT = "6 qseqid sseqid pident length qstart qend sstart send evalue bitscore score"


def lines(seqloom: Callable, *words: str) -> list[str]:
    done = seqloom(*words, "--no-store", "--backend", "auto", "--quiet")
    assert done.status == 0, done.err
    return done.out.splitlines()


def peer(folder: Path, program: str, *words: str) -> list[str]:
    return subprocess.run([program, *words], check=True, capture_output=True, text=True, cwd=folder).stdout.splitlines()


@needs_peer
def test_lines_of_protein_searches_are_the_peer_s(seqloom: Callable, sample: Path, made: Path,  # noqa: F811
                                                  tmp_path: Path) -> None:
    """The search space is that of the targets that are searched, and the score cutoff that of the shortest of them."""
    peer(tmp_path, "makeblastdb", "-in", str(sample / "proteins.fasta"), "-dbtype", "prot", "-parse_seqids",
         "-taxid_map", "map", "-out", "v5")
    names = re.findall(r"^>(\S+)", (sample / "proteins.fasta").read_text(), re.MULTILINE)
    (tmp_path / "whole").write_text("".join(f"{name}\n" for name in names[100:200]))
    (tmp_path / "accessions").write_text("".join(f"{name.split('|')[1] if '|' in name else name}\n"
                                                 for name in names[:100]))
    (tmp_path / "taxids").write_text("3702\n\n10090\n9606\n")
    for pick in ("-seqidlist accessions", "-negative_seqidlist whole", "-taxids 3702,9606", "-taxidlist taxids",
                 "-negative_taxids 3702", "-negative_taxidlist taxids", "-taxids 0"):
        common = ("-query", str(sample / "query.fasta"), *pick.split(), "-evalue", "200", "-outfmt", FORMAT,
                  "-max_target_seqs", "5000")
        wanted = peer(tmp_path, "blastp", "-db", "v5", *common)
        assert wanted and lines(seqloom, "blastp", "-db", "p.duckdb", *common) == wanted, pick
    common = ("-query", str(sample / "query.fasta"), "-taxids", "3702", "-outfmt", "5")
    of_space = re.compile("<Statistics_(?:db|hsp|eff).*")
    assert of_space.findall("\n".join(lines(seqloom, "blastp", "-db", "p.duckdb", *common))) == of_space.findall(
        "\n".join(peer(tmp_path, "blastp", "-db", "v5", *common)))


@needs_peer
@pytest.mark.skipif(not shutil.which("blastn"), reason="blastn is not installed")
def test_lines_of_nucleotide_searches_are_the_peer_s(seqloom: Callable, tmp_path: Path) -> None:
    """Whose space is estimated from the bytes that the targets take."""
    rng = random.Random(3)
    genome = "".join(rng.choices("ACGT", k=9000))
    with open(tmp_path / "n.fa", "w") as stream:
        for n in range(40):
            at, size = rng.randrange(8000), rng.randrange(50, 900)
            piece = "".join(base if rng.random() < 0.9 else rng.choice("ACGT") for base in genome[at : at + size])
            stream.write(f">n{n}\n{piece}\n")
    (tmp_path / "q.fa").write_text(f">q\n{genome[2000:4000]}\n")
    (tmp_path / "ids").write_text("".join(f"n{n}\n" for n in range(1, 40, 3)))
    peer(tmp_path, "makeblastdb", "-in", "n.fa", "-dbtype", "nucl", "-parse_seqids", "-out", "n5")
    assert seqloom("db", "create", "n.duckdb", "n.fa").status == 0
    for pick in ("-seqidlist", "-negative_seqidlist"):
        common = ("-task", "blastn", "-query", "q.fa", pick, "ids", "-outfmt", FORMAT)
        wanted = peer(tmp_path, "blastn", "-db", "n5", *common)
        assert len(wanted) > 3 and lines(seqloom, "blastn", "-db", "n.duckdb", *common) == wanted


def searched(seqloom: Callable, sample: Path, database: str, *pick: str) -> set[str]:
    """Targets that a search looked at."""
    found = lines(seqloom, "sw", "-q", str(sample / "query.fasta"), "-d", database, "-evalue", "1e9", "-f", "6 sseqid",
                  "-max-target-seqs", "1000", *pick)
    return {line.split("_")[-1] for line in found}


def test_what_belongs_to_a_taxon_is_searched(seqloom: Callable, sample: Path, made: Path) -> None:  # noqa: F811
    everything = searched(seqloom, sample, "p.duckdb")
    for taxid, codes in (("40674", {"HUMAN", "MOUSE"}), ("9605", {"HUMAN"}), ("4530", {"ORYSJ"}), ("562", {"ECOLI"}),
                         ("662986", {"HUMAN"}), ("7742,2157", {"HUMAN", "MOUSE", "DANRE", "XENTR", "PYRFU"}),
                         ("1", everything & set(taxa.OF_CODE))):
        assert searched(seqloom, sample, "p.duckdb", "-taxids", taxid) == codes, taxid
        assert searched(seqloom, sample, "p.duckdb", "-negative_taxids", taxid) == everything - codes, taxid


def test_several_databases_and_a_file(seqloom: Callable, sample: Path, made: Path, tmp_path: Path) -> None:  # noqa: F811
    (tmp_path / "h.fa").write_text(">sp|P1|A_HUMAN\nMKVLAAGIVGLLLAQW\n>sp|Q2.3|B_XXXX\nMKVLAAGIVGLLLAQW\n")
    assert seqloom("db", "create", "h.duckdb", "h.fa", "--taxid", "9606").status == 0
    done = seqloom("sw", "-q", "h.fa", "-d", "p.duckdb", "-d", "h.duckdb", "-taxids", "9605,9606", "--no-store",
                   "-evalue", "1e9", "-f", "6 sseqid staxid")
    assert {line.split("_")[-1] for line in done.out.splitlines()} == {"HUMAN\t9606", "XXXX\t9606"}
    assert done.err.count("\n") == 1 and "h.duckdb has no taxonomy" in done.err
    (tmp_path / "ids").write_text("P1\nQ2\n")
    assert searched(seqloom, sample, "h.fa", "-seqidlist", "ids") == {"HUMAN", "XXXX"}
    (tmp_path / "ids").write_text("Q2.3\n")
    assert searched(seqloom, sample, "h.fa", "-negative_seqidlist", "ids") == {"HUMAN"}


@pytest.mark.parametrize(("pick", "said"), [
    (("-taxids", "9606", "-negative_taxids", "3702"), "--taxids and --negative-taxids exclude each other"),
    (("-taxids", "9606", "-seqidlist", "map"), "--target-ids and --taxids exclude each other"),
    (("-taxids", "9606,x"), "--taxids: 'x' is no taxid"), (("-taxids", "99"), "no taxid 99 in its taxonomy"),
    (("-negative_taxids", "9606,99"), "no taxid 99 in its taxonomy"), (("-taxids", ","), "the list of taxids"),
    (("-taxids", "32630"), "no sequence is of taxid 32630 or of what belongs to it"),
    (("-taxidlist", "none"), "none: there is no such file"), (("-taxidlist", "map"), "map: line 1: 2 words"),
    (("-taxidlist", "words"), "words: line 2: 'b' is no taxid"), (("-taxidlist", "empty"), "empty: no taxids in it"),
    (("-negative_seqidlist", "words"), "no sequence 'b'"), (("-negative_seqidlist", "all"), "no targets are left"),
    (("-gilist", "f"), "-seqidlist FILE")])
def test_picks_that_make_no_sense(seqloom: Callable, sample: Path, made: Path, tmp_path: Path,  # noqa: F811
                                  pick: tuple[str, ...], said: str) -> None:
    (tmp_path / "words").write_text("1\nb\n" if "taxidlist" in pick[0] else "P37009\nb\n")
    (tmp_path / "empty").write_text("\n")
    names = re.findall(r"^>(\S+)", (sample / "proteins.fasta").read_text(), re.MULTILINE)
    (tmp_path / "all").write_text("\n".join(names))
    before = sorted(tmp_path.iterdir())
    done = seqloom("sw", "-q", str(sample / "query.fasta"), "-d", "p.duckdb", *pick)
    assert done.status and said in done.err and done.err.count("\n") == 1, done.err
    assert sorted(tmp_path.iterdir()) == before


def test_without_a_taxonomy_a_taxid_stands_for_itself(seqloom: Callable, sample: Path, tmp_path: Path) -> None:
    taxid_map(tmp_path, sample)
    assert seqloom("db", "create", "p.duckdb", str(sample / "proteins.fasta"), "--taxid-map", "map").status == 0
    search = ("sw", "-q", str(sample / "query.fasta"), "-d", "p.duckdb", "--no-store", "-f", "6 sseqid",
              "-evalue", "1e9")
    done = seqloom(*search, "-taxids", "9606,5")
    assert {line.split("_")[-1] for line in done.out.splitlines()} == {"HUMAN"}
    assert "p.duckdb has no taxonomy: sequences of just the taxids given are meant" in done.err
    done = seqloom(*search, "-taxids", "9605")
    assert done.status == 1 and "no sequence is of taxid 9605, and " in done.err and "seqloom db taxonomy" in done.err


def test_a_kept_run_knows_its_pick(seqloom: Callable, sample: Path, made: Path) -> None:  # noqa: F811
    """It is written again with the same targets, and says so where these have become others."""
    search = ("sw", "-q", str(sample / "query.fasta"), "-d", "p.duckdb", "-taxids", "9606", "-evalue", "1e9")
    wanted = seqloom(*search, "-f", "0").out
    assert seqloom("runs", "write", "last", "-f", "0").out == wanted and wanted.count("HUMAN") > 4
    from seqloom.database import Database

    with Database.open(made, read_only=False) as database:
        database._database._run("UPDATE sequences SET taxid = 9606 WHERE taxid = 10090")
    done = seqloom("runs", "write", "last", "-f", "0")
    assert done.status == 1 and "are not there any more or not what they were" in done.err
