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
