"""Sorting files: against Python's own sort, whole and in runs."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from seqloom import sorting
from seqloom.core.errors import InputError, OptionError, UnknownNameError
from seqloom.installed import registry
from seqloom.sorting import sort_file

SORTER = registry().sorter("msd-radix")
SORTER.threads = 3


def sorted_file(path: Path, **how) -> bytes:
    parts: list[bytes] = []
    sort_file(str(path), parts.append, SORTER, **how)
    return b"".join(parts)


@pytest.fixture(params=[1 << 20, 1500], ids=["whole", "in runs"])
def block(request, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sorting, "_PIECE", 300)
    monkeypatch.setattr(sorting, "_ROWS", 40)
    return request.param


def fasta_records(count: int) -> list[tuple[str, str, bytes]]:
    """Header, sequence and bytes of random records, some with equal sequences, wrapped lines and blanks."""
    rng = np.random.default_rng(1)
    records = []
    for n in range(count):
        sequence = "".join(rng.choice(list("ACGT"), rng.integers(0, 5 if n % 3 else 90)))
        wrapped = "".join(sequence[i : i + 30] + "\n" for i in range(0, len(sequence), 30))
        header = f"s{rng.integers(50)} number {n}"
        records.append((header, sequence, f">{header}\n{wrapped}".encode()))
    return records


@pytest.mark.parametrize("by", ["sequence", "header", "length"])
def test_fasta(tmp_path, by, block):
    records = fasta_records(300)
    path = tmp_path / "a.fasta"
    path.write_bytes(b"".join(r[2] for r in records))
    key = {"sequence": lambda r: r[1].encode(), "header": lambda r: r[0].encode(), "length": lambda r: len(r[1])}[by]
    assert sorted_file(path, by=by, block=block) == b"".join(r[2] for r in sorted(records, key=key))


def test_fasta_without_doubles(tmp_path, block):
    records = fasta_records(300)
    path = tmp_path / "a.fasta.gz"
    path.write_bytes(gzip.compress(b"".join(r[2] for r in records)))
    first: dict[str, bytes] = {}
    for _, sequence, text in records:
        first.setdefault(sequence, text)
    counts = {s: sum(r[1] == s for r in records) for s in first}
    wanted = b"".join(first[s].replace(b"\n", b" count=%d\n" % counts[s], 1) for s in sorted(first))
    assert len(first) < 250 and sorted_file(path, unique=True, block=block) == wanted


def test_fastq(tmp_path, block):
    records = [(s, f"@{h}\n{s}\n+\n{'I' * len(s)}\n".encode()) for h, s, _ in fasta_records(100)]
    path = tmp_path / "a.fq"
    path.write_bytes(b"".join(r[1] for r in records))
    assert sorted_file(path, block=block) == b"".join(r[1] for r in sorted(records, key=lambda r: r[0].encode()))


def test_lines(tmp_path, block):
    rng = np.random.default_rng(2)
    lines = [bytes(rng.choice(np.frombuffer(b"\tab \xff", np.uint8), rng.integers(0, 12))) for _ in range(800)]
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n".join([b"b", *lines, b"last"]))
    lines = [b"b", *lines, b"last"]
    assert sorted_file(path, block=block) == b"".join(line + b"\n" for line in sorted(lines))
    wanted = b"".join(b"%d\t%s\n" % (lines.count(line), line) for line in sorted(set(lines)))
    assert sorted_file(path, unique=True, block=block) == wanted
    assert sorted_file(path, by="length", block=block) == b"".join(line + b"\n" for line in sorted(lines, key=len))


def test_equal_keys_keep_their_order_over_runs(tmp_path, block):
    rng = np.random.default_rng(3)
    records = [(f"{key}", f">{key}\n{number}\n".encode()) for number, key in enumerate(rng.integers(0, 3, 2000))]
    path = tmp_path / "a.fasta"
    path.write_bytes(b"".join(text for _, text in records))
    assert sorted_file(path, by="header", block=block) == b"".join(r[1] for r in sorted(records, key=lambda r: r[0]))
    firsts = [next(text for key, text in records if key == k) for k in "012"]
    counts = [sum(key == k for key, _ in records) for k in "012"]
    wanted = [text.replace(b"\n", b" count=%d\n" % n, 1) for text, n in zip(firsts, counts, strict=True)]
    assert sorted_file(path, by="header", unique=True, block=block) == b"".join(wanted)


def test_carriage_returns_and_counts(tmp_path):
    path = tmp_path / "a.fasta"
    path.write_bytes(b">b x\r\nAC\r\n>a\r\nAC")
    assert sorted_file(path, by="header") == b">a\r\nAC\n>b x\r\nAC\r\n"
    assert sorted_file(path, unique=True) == b">b x count=2\r\nAC\r\n"


def test_what_is_wrong_is_said(tmp_path):
    path = tmp_path / "a"
    path.write_text("@r\nACGT\n+\nIIII\n@s\nACGT\nIIII\n")
    with pytest.raises(InputError, match="line 5: a FASTQ record is four lines"):
        sorted_file(path)
    with pytest.raises(InputError, match="line 1: a FASTA record begins with '>'"):
        sorted_file(path, format="fasta")
    with pytest.raises(OptionError, match="--unique needs --by"):
        sorted_file(path, by="length", unique=True)
    with pytest.raises(UnknownNameError, match="unknown format 'bam'"):
        sorted_file(path, format="bam")


def test_the_command(tmp_path, capsys, monkeypatch: pytest.MonkeyPatch):
    from seqloom.cli.main import main

    run: Callable[[list[str]], int] = main
    monkeypatch.chdir(tmp_path)
    Path("a.fa").write_text(">b\nCC\n>a\nAC\n>c\nAC\n")
    assert run(["sort", "a.fa", "--unique", "-o", "out.fa"]) == 0
    assert Path("out.fa").read_text() == ">a count=2\nAC\n>b count=1\nCC\n"
    assert run(["sort", "a.fa", "--by", "header", "-p", "2", "--memory", "64M", "--backend", "cpu"]) == 0
    assert capsys.readouterr().out == ">a\nAC\n>b\nCC\n>c\nAC\n"
    assert run(["sort", "a.fa", "-p", "0"]) == run(["sort", "a.fa", "--backend", "gpu"]) == 2
    assert "unknown back end 'gpu'" in capsys.readouterr().err
