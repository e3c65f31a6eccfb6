"""Queries and databases as the peers take them: double ids, no header, pipes."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

PROTEIN = "MKVLAERTGQWYHDCNAAWWHHCCDDEEFFGG"
SEARCH = ["--backend", "reference", "-d"]


@pytest.fixture
def database(tmp_path: Path) -> str:
    (tmp_path / "t.fasta").write_text(f">t\n{PROTEIN}\n>u\n{PROTEIN[::-1]}\n")
    return "t.fasta"


def test_queries_of_one_name_are_both_searched_and_kept(seqloom: Callable, tmp_path: Path, database: str) -> None:
    (tmp_path / "q.fasta").write_text(f">q\n{PROTEIN}\n>q\n{PROTEIN[4:]}\n")
    rows = seqloom("sw", "-q", "q.fasta", *SEARCH, database, "-f", "6 qseqid sseqid qlen")
    assert rows.status == 0, rows.err
    assert {tuple(line.split("\t")) for line in rows.out.splitlines()} >= {("q", "t", "32"), ("q", "t", "28")}
    assert seqloom("runs", "write", "1", "-f", "6 qseqid sseqid qlen").out == rows.out
    kept = seqloom("sql", "select query, name, length from queries", "--format", "tsv").out
    assert kept.splitlines()[1:] == ["0\tq\t32", "1\tq\t28"]


@pytest.mark.skipif(not shutil.which("blastp"), reason="needs blastp")
def test_odd_queries_have_the_names_that_blastp_gives_them(seqloom: Callable, tmp_path: Path, database: str) -> None:
    control = b"".join(b">n%cx y\n%s\n" % (code, PROTEIN.encode()) for code in (1, 8, 9, 11, 12, 28, 31, 32, 127))
    residues = PROTEIN.encode()
    for data in (residues + b"\n>b\n" + residues + b"\n", b">\n%s\n>  x y\n%s\n" % (residues, residues), control,
                 b">a\r" + residues + b"\r>b c\r" + residues + b"\r", b";x\n>a\n;y\n%s\n#z\n" % residues,
                 b">a\n" + residues[:9] + b"--\n" + residues[9:] + b"\n", f">é\u2003ß\u0085 x\n{PROTEIN}\n".encode()):
        (tmp_path / "q.fasta").write_bytes(data)
        ours = seqloom("sw", "-q", "q.fasta", *SEARCH, database, "-f", "6 qseqid qlen", "-e", "1e-9", "--no-store")
        peer = subprocess.run(["blastp", "-query", "q.fasta", "-subject", database, "-evalue", "1e-9", "-outfmt",
                               "6 qseqid qlen"], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ours.out == peer.stdout and ours.out


def test_pipes_are_queries_and_databases(seqloom: Callable, tmp_path: Path, database: str) -> None:
    (tmp_path / "q.fasta").write_text(f">q\n{PROTEIN}\n")
    wanted = seqloom("sw", "-q", "q.fasta", *SEARCH, database, "-f", "0", "--no-store").out
    for name, file in (("q.pipe", "q.fasta"), ("t.pipe", database)):
        os.mkfifo(tmp_path / name)
        threading.Thread(target=lambda name=name, file=file: (tmp_path / name).write_bytes(
            (tmp_path / file).read_bytes()), daemon=True).start()
    found = seqloom("sw", "-q", "q.pipe", *SEARCH, "t.pipe", "-f", "0", "--no-store")
    assert found.status == 0, found.err
    assert found.out.split("Query=")[1] == wanted.split("Query=")[1]


def test_queries_of_several_files_are_searched_in_their_order(seqloom: Callable, tmp_path: Path, database: str) -> None:
    """Named one by one, in a list, or both; the list comes last."""
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.fasta").write_text(f">{name}\n{PROTEIN}\n>{name}2\n{PROTEIN[3:]}\n")
    (tmp_path / "list.txt").write_text("a.fasta\r\n\nc.fasta  \n")
    words = [*SEARCH, database, "-f", "6 qseqid sseqid", "-e", "1e-9", "--no-store"]
    wanted = ["b", "b2", "a", "a2", "c", "c2"]
    for queries in (["-q", "b.fasta", "-q", "a.fasta", "-q", "c.fasta"], ["-q", "b.fasta", "--query-list", "list.txt"],
                    ["-query_list=list.txt", "-query", "b.fasta"], ["-q", "b.fasta", "--query_list", "list.txt",
                                                                     "--in-turn", "--batch-queries", "1"]):
        done = seqloom("sw", *queries, *words)
        assert done.status == 0, done.err
        assert [line.split("\t")[0] for line in done.out.splitlines()] == wanted, queries
    alone = seqloom("sw", "--query-list", "list.txt", *words)
    assert [line.split("\t")[0] for line in alone.out.splitlines()] == wanted[2:], alone.err


def test_what_is_wrong_with_a_list_of_queries_is_said(seqloom: Callable, tmp_path: Path, database: str) -> None:
    (tmp_path / "q.fasta").write_text(f">q\n{PROTEIN}\n")
    for text, words, line in (("\n", [], "list.txt: no names in it"), ("none.fasta", [], "none.fasta"),
                              ("q.fasta", ["-o", "q.fasta"], "q.fasta")):
        (tmp_path / "list.txt").write_text(text)
        done = seqloom("sw", "--query-list", "list.txt", *SEARCH, database, "--no-store", *words)
        assert done.status and line in done.err and done.err.count("\n") == 1, done.err
        assert (tmp_path / "q.fasta").read_text() == f">q\n{PROTEIN}\n"
    missing = seqloom("sw", *SEARCH, database)
    assert missing.status == 2 and "--query" in missing.err
