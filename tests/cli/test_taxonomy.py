"""Taxids and NCBI's taxonomy: into databases, out in tables and SQL, and what is said of broken input."""

import gzip
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from seqloom.core.errors import StoreError
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.taxonomy import Taxids, keys

from tests import taxa

needs_peer = pytest.mark.skipif(not (shutil.which("blastp") and shutil.which("makeblastdb")),
                                reason="blastp and makeblastdb are not installed")
FIELDS = ("qseqid sseqid staxid staxids ssciname sscinames scomname scomnames sskingdom sskingdoms sblastname "
          "sblastnames")


def taxid_map(folder: Path, sample: Path) -> Path:
    """A map of the sample's proteins by accession, as makeblastdb takes it."""
    names = re.findall(r"^>(\S+)", (sample / "proteins.fasta").read_text(), re.MULTILINE)
    path = folder / "map"
    path.write_text("".join(f"{name.split('|')[1] if '|' in name else name} {taxa.OF_CODE[name.split('_')[-1]]}\n"
                            for name in names if name.split("_")[-1] in taxa.OF_CODE))
    return path


def asked(path: Path, sql: str) -> list[tuple]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture
def made(seqloom: Callable, sample: Path, tmp_path: Path) -> Path:
    """The sample with taxids and the taxonomy."""
    taxa.dump(tmp_path)
    assert seqloom("db", "create", "p.duckdb", str(sample / "proteins.fasta"), "-taxid_map",
                   str(taxid_map(tmp_path, sample))).status == 0
    assert seqloom("db", "taxonomy", "p.duckdb", "nodes.dmp", "names.dmp", "merged.dmp").status == 0
    return tmp_path / "p.duckdb"


@pytest.mark.parametrize(("line", "found"), [
    ("sp|P53508.2|CSSA1_ECOLX", 1), ("P53508.2", 1), ("P53508", 1), ("P53508.7", 1), ("CSSA1_ECOLX", 1), ("P5350", 0),
    ("gb|AAB1.2|", 2), ("AAB1", 2), ("pdb|1ABC|A", 3), ("1ABC_A", 3), ("1ABC", 3), ("lcl|own", 4), ("own", 4),
    ("NP_1.3", 5), ("ref|NP_1.3|", 5), ("gi|77|gb|X1.1|Y", 6), ("X1.1", 6), ("77", 6), ("OWN", 0)])
def test_names_of_a_map_are_whole_names_or_accessions(tmp_path: Path, line: str, found: int) -> None:
    names = ["sp|P53508.2|CSSA1_ECOLX", "gb|AAB1.2|", "pdb|1ABC|A", "own", "NP_1.3", "gi|77|gb|X1.1|Y"]
    (tmp_path / "map").write_text(f"other 7\n{line}\t9\n")
    taxids = Taxids(str(tmp_path / "map"))
    assert [n for n, name in enumerate(names, 1) if taxids._of(name, 0) == 9] == [found] * bool(found)


def test_the_whole_name_comes_before_the_accession(tmp_path: Path) -> None:
    (tmp_path / "map").write_text("P1.1 3\nP1 4\nsp|P1.2|X 5\nP1.1 6\n")
    taxids = Taxids(str(tmp_path / "map"))
    assert [taxids._of(name, 0) for name in ("sp|P1.1|X", "sp|P1.2|X", "sp|P1|X", "P1.3", "Q")] == [6, 5, 4, 4, 0]
    assert list(keys("a.1")) == ["a.1", "a", "lcl|a.1"]


def test_taxids_from_headers_of_one_number_and_of_packed_maps(seqloom: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.fa").write_text(">a x OS=Homo sapiens OX=9606 GN=y\nMKV\n>b OX=x\nMKV\n>c OX=10090\nMKV\n>d\nMKV\n")
    (tmp_path / "b.fa").write_text(">e OX=1\nMKV\n")
    with gzip.open(tmp_path / "map.gz", "wt") as stream:
        stream.write("\nc 562\n\nd\t562\n")
    done = seqloom("db", "create", "d.duckdb", "a.fa", "--taxids-from-headers", "--taxid-map", "map.gz")
    assert done.err == "seqloom: d.duckdb: 4 protein sequences, 12 residues, 3 with a taxid\n"
    assert seqloom("db", "append", "d.duckdb", "b.fa", "-taxid", "7").status == 0
    assert asked(tmp_path / "d.duckdb", "SELECT name, taxid FROM sequences ORDER BY ordinal") == [
        ("a", 9606), ("b", None), ("c", 562), ("d", 562), ("e", 7)]
    assert "with taxid   4" in seqloom("db", "info", "d.duckdb").out


@pytest.mark.parametrize(("text", "line"), [
    ("a 1\nb x\n", "map: line 2: 'x' is no taxid"), ("a 1\n\nb\n", "map: line 3: 1 words"),
    ("a 1 2\n", "map: line 1: 3 words"), ("a -5\n", "map: line 1: '-5' is no taxid"),
    ("a 9999999999\n", "map: line 1: '9999999999' is no taxid"), ("a \u0663\n", "is no taxid")])
def test_a_broken_line_of_a_map_is_named(seqloom: Callable, tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "a.fa").write_text(">a\nMKV\n")
    (tmp_path / "map").write_text(text)
    done = seqloom("db", "create", "d.duckdb", "a.fa", "--taxid-map", "map")
    assert done.status and line in done.err and done.err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.fa", "map"]


def test_options_that_exclude_each_other(seqloom: Callable, tmp_path: Path) -> None:
    (tmp_path / "a.fa").write_text(">a\nMKV\n")
    done = seqloom("db", "create", "d.duckdb", "a.fa", "--taxid", "1", "--taxids-from-headers")
    assert done.status == 2 and "exclude each other" in done.err
    assert "'x' is no taxid" in seqloom("db", "create", "d.duckdb", "a.fa", "--taxid", "x").err


def test_a_taxonomy_is_stored_whole_and_inherited(seqloom: Callable, made: Path) -> None:
    rows = asked(made, "SELECT taxid, name, coalesce(common_name, name), coalesce(blast_name, 'N/A'), "
                       "coalesce(kingdom, 'N/A') FROM taxa WHERE rank <> 'merged'")
    assert {taxid: names for taxid, *names in rows} == {row[0]: [*taxa.names_of(row[0])] for row in taxa.TAXA}
    assert asked(made, "SELECT taxid, parent, name FROM taxa WHERE rank = 'merged' ORDER BY taxid") == [
        (1392, 562, "Escherichia coli"), (662986, 9606, "Homo sapiens")]
    assert asked(made, "SELECT ancestor FROM lineages WHERE taxid = 83333 ORDER BY depth") == [
        (n,) for n in (83333, 562, 561, 91347, 1236, 1224, 2, 131567, 1)]
    assert asked(made, "SELECT count(DISTINCT taxid) FROM lineages") == asked(
        made, "SELECT count(DISTINCT taxid) FROM sequences")
    assert seqloom("db", "check", "p.duckdb").status == 0
    assert "taxa         39" in seqloom("db", "info", "p.duckdb").out


def test_the_archive_of_the_dump_and_a_second_one(seqloom: Callable, made: Path, tmp_path: Path) -> None:
    before = asked(made, "FROM taxa ORDER BY ALL")
    with tarfile.open(tmp_path / "taxdump.tar.gz", "w:gz") as archive:
        for name in ("names.dmp", "merged.dmp", "nodes.dmp", "map"):
            archive.add(tmp_path / name, name)
    assert seqloom("db", "taxonomy", "p.duckdb", "taxdump.tar.gz").status == 0
    assert asked(made, "FROM taxa ORDER BY ALL") == before
    with tarfile.open(tmp_path / "half.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "nodes.dmp", "nodes.dmp")
    assert "there is no names.dmp in it" in seqloom("db", "taxonomy", "p.duckdb", "half.tar.gz").err


def text_of(path: Path, old: str, new: str) -> str:
    text = path.read_text()
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(("file", "old", "new", "said"), [
    ("nodes", "\n9606\t", "\nx\t", "nodes.dmp: line 24: not of NCBI's nodes.dmp"),
    ("nodes", "\n9606\t", "\r9606\t", "nodes.dmp: line 23: not of NCBI's nodes.dmp"),
    ("nodes", "\n9606\t|\t9605\t", "\n9606\t|\t960\t", "taxid 9606 doesn't hang together with the root"),
    ("nodes", "\n561\t|\t91347\t", "\n561\t|\t562\t", "taxid 561 doesn't hang together with the root"),
    ("nodes", "\n9606\t", "\n9605\t", "taxid 9605 is there twice"),
    ("nodes", "\n2\t|\t131567\t", "\n2\t|\t2\t", "2 taxa are their own parents"),
    ("names", "\n9606\t", "\n9607\t", "taxid 9606 of nodes.dmp has no scientific name"),
    ("names", "\n9606\t|", "\n9606 |", "names.dmp: line 68: not of NCBI's names.dmp"),
])
def test_a_broken_dump_is_refused_and_changes_nothing(seqloom: Callable, made: Path, tmp_path: Path, file: str,
                                                      old: str, new: str, said: str) -> None:
    before = asked(made, "FROM taxa ORDER BY ALL")
    path = tmp_path / f"{file}.dmp"
    path.write_text(text_of(path, old, new), newline="")
    done = seqloom("db", "taxonomy", "p.duckdb", "nodes.dmp", "names.dmp")
    assert done.status and said in done.err and done.err.count("\n") == 1
    assert asked(made, "FROM taxa ORDER BY ALL") == before


def test_files_that_are_no_dump(seqloom: Callable, made: Path, tmp_path: Path) -> None:
    for files, said in ((["names.dmp", "nodes.dmp"], "names.dmp: line 1: not of NCBI's nodes.dmp"),
                        (["nodes.dmp"], "is no tar archive"), (["nodes.dmp", "none"], "none: there is no such file"),
                        (["a", "b", "c", "d"], "give nodes.dmp, names.dmp and maybe merged.dmp")):
        done = seqloom("db", "taxonomy", "p.duckdb", *files)
        assert done.status and said in done.err and done.err.count("\n") == 1


def test_a_disk_that_fails_is_one_line_and_changes_nothing(seqloom: Callable, made: Path,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    before = asked(made, "SELECT * FROM taxa ORDER BY ALL")
    run = SequenceDatabase._run

    def failing(database: SequenceDatabase, sql: str) -> list:
        if sql == "COMMIT":
            run(database, "ROLLBACK")
            database._connection.close()  # DuckDB takes nothing more after a failed fsync
            raise StoreError(f"{database.path} can't be written: the disk failed")
        return run(database, sql)

    monkeypatch.setattr(SequenceDatabase, "_run", failing)
    result = seqloom("db", "taxonomy", "p.duckdb", "nodes.dmp", "names.dmp")
    assert (result.status, result.err) == (1, "seqloom: p.duckdb can't be written: the disk failed\n")
    assert asked(made, "SELECT * FROM taxa ORDER BY ALL") == before


def test_a_check_finds_a_broken_tree(seqloom: Callable, made: Path) -> None:
    with duckdb.connect(str(made)) as connection:
        connection.execute("DELETE FROM taxa WHERE taxid = 9443; INSERT INTO taxa SELECT * FROM taxa WHERE taxid = 2; "
                           "UPDATE sequences SET taxid = -1 WHERE ordinal = 3")
    done = seqloom("db", "check", "p.duckdb")
    assert done.status == 1
    for line in ("taxa: taxid 2 is there 2 times",
                 "taxa: taxid 9605 belongs to 9443", "sequence 4 has a taxid that is"):
        assert line in done.err


@needs_peer
def test_fields_are_those_of_the_peer(seqloom: Callable, sample: Path, made: Path, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a target without a taxid, too; in tables, JSON and XML, at once and of a kept run."""
    monkeypatch.setenv("BLASTDB", str(tmp_path))
    taxa.taxonomy_database(tmp_path)
    query = (sample / "query.fasta").read_text().split(">")
    (tmp_path / "q.fa").write_text(">" + query[1])
    subprocess.run(["makeblastdb", "-in", str(sample / "proteins.fasta"), "-dbtype", "prot", "-parse_seqids",
                    "-taxid_map", "map", "-out", "v5"], check=True, capture_output=True, cwd=tmp_path)

    def peer(format: str) -> str:
        words = ["blastp", "-query", "q.fa", "-db", "v5", "-evalue", "100", "-outfmt", format]
        return subprocess.run(words, check=True, capture_output=True, text=True, cwd=tmp_path).stdout

    wanted = peer(f"6 {FIELDS}")
    assert "N/A\t0\tN/A" in wanted and "Arabidopsis thaliana\tthale cress" in wanted
    search = ("blastp", "-q", "q.fa", "-evalue", "100", "--backend", "cpu")
    assert seqloom(*search, "-d", "p.duckdb", "-f", f"6 {FIELDS}").out == wanted
    assert seqloom("runs", "write", "last", "-f", f"6 {FIELDS}").out == wanted
    of_hits = re.compile(r'"?taxid"?[:>] ?(\d+).*\n *[<"]sciname"?[:>] ?"?([^"<]+)')
    for format in ("15", "16"):
        found = of_hits.findall(seqloom("runs", "write", "last", "-f", format).out)
        assert found and found == of_hits.findall(peer(format))
    assert seqloom("runs", "write", "last", "-f", "18").out == peer("18")
    rows = seqloom("sql", "SELECT DISTINCT staxid, ssciname, scomname, sblastname, sskingdom FROM last_hits WHERE "
                          "staxid IN (9606, 10497) ORDER BY 1", "--format", "tsv").out.splitlines()[1:]
    assert rows == ["9606\tHomo sapiens\thuman\tprimates\tEukaryota",
                    "10497\tAfrican swine fever virus\t\tviruses\tViruses"]
    # A BLAST database knows numbers; names are in BLAST's taxonomy database, where there is one.
    assert seqloom(*search, "-d", "v5", "--no-store", "-f", f"6 {FIELDS}").out == wanted
    for file in tmp_path.glob("taxdb.*"):
        file.unlink()
    found = seqloom(*search, "-d", "v5", "--no-store", "-f", "6 staxid staxids ssciname").out.splitlines()
    assert {tuple(line.split("\t")) for line in found} == {
        (n, n.replace("N/A", "0"), "N/A") for n in (line.split("\t")[2] for line in wanted.splitlines())}
    assert seqloom("db", "create", "v.duckdb", "v5").status == 0
    listed = subprocess.run(["blastdbcmd", "-db", "v5", "-entry", "all", "-outfmt", "%T"], check=True, cwd=tmp_path,
                            capture_output=True, text=True).stdout.split()
    assert [str(n) for (n,) in asked(tmp_path / "v.duckdb", "SELECT coalesce(taxid, 0) FROM sequences "
                                                            "ORDER BY ordinal")] == listed


@needs_peer
def test_the_organism_report_is_the_peer_s(seqloom: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of every kind and length, long and absent titles, organisms that are unknown, queries without hits."""
    monkeypatch.setenv("BLASTDB", str(tmp_path))
    taxa.dump(tmp_path)
    taxa.taxonomy_database(tmp_path)
    names = ["sp|P53508|CSSA1_ECOLX", "sp|P53509.2|CSSA2_ECOLX", "gb|AAB1.2|", "NP_000005.3", "pdb|1ABC|A",
             "pir|A1234|XX", "gnl|mydb|77", "lcl|own", "n" * 49, "y" * 30, "whole"]
    title = "a title that is so long that it will have to be cut somewhere near the end of the line, or before"
    taxids = (9606, 10090, 562, 424242, 0, 4932)
    other, longest = "MKVLAERTGWKKLWCHHWYRRE", names[8]
    (tmp_path / "t.fa").write_text("".join(f">{name} {title[: n * 20]}\n{other * (n + 1)}\n"
                                           for n, name in enumerate(names)))
    (tmp_path / "map").write_text("".join(f"{name} {taxids[n % 6]}\n" for n, name in enumerate(names) if taxids[n % 6]))
    (tmp_path / "q.fa").write_text(f">q1 {title} {title}\n{other}\n>q2\n{'KE' * 30}\n>q3\n{other * 3}\n")
    subprocess.run(["makeblastdb", "-in", "t.fa", "-dbtype", "prot", "-parse_seqids", "-taxid_map", "map", "-out",
                    "v5"], check=True, capture_output=True, cwd=tmp_path)
    assert seqloom("db", "create", "p.duckdb", "t.fa", "--taxid-map", "map").status == 0
    assert seqloom("db", "taxonomy", "p.duckdb", "nodes.dmp", "names.dmp").status == 0
    for more in ([], ["-negative_seqidlist", "long"]):
        (tmp_path / "long").write_text(f"{longest}\n{names[9]}\n")
        words = ["-query", "q.fa", "-outfmt", "18", "-evalue", "1", "-seg", "no", *more]
        wanted = subprocess.run(["blastp", "-db", "v5", *words], check=True, capture_output=True, text=True,
                                cwd=tmp_path).stdout
        assert "unnamed protein product" in wanted and "Accession..." in wanted
        assert seqloom("blastp", "-db", "p.duckdb", *words, "--backend", "cpu", "--no-store").out == wanted
    assert "takes no field" in seqloom("blastp", "-db", "p.duckdb", "-query", "q.fa", "-outfmt", "18 x").err


def test_a_check_finds_a_view_of_somebody_else(seqloom: Callable, made: Path) -> None:
    with duckdb.connect(str(made)) as connection:
        connection.execute("CREATE OR REPLACE VIEW lineages AS SELECT * FROM read_text('/etc/passwd')")
    done = seqloom("db", "check", "p.duckdb")
    assert done.status == 1 and "view lineages: its text isn't seqloom's" in done.err
