"""Sorting files: against Python's own sort, whole and in runs."""

import errno
import gzip
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from seqloom import sorting
from seqloom.core.errors import InputError, OptionError, StoreError, UnknownNameError
from seqloom.installed import registry
from seqloom.sorting import sort_file

from tests.core.toy import ToySorter

SORTER = registry().sorter("msd-radix")
SORTER.threads = 3


def sorted_file(path: Path, **how) -> bytes:
    parts: list[bytes] = []
    sort_file(str(path), parts.append, SORTER, **how)
    return b"".join(parts)


@pytest.fixture(params=[(1 << 20, 300), (1500, 300), (1500, 40)], ids=["whole", "in runs", "in runs, few at a time"])
def block(request, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Bytes of a block. Looks at the end whether all temporary files are gone."""
    size, piece = request.param
    monkeypatch.setattr(sorting, "_PIECE", piece)
    monkeypatch.setattr(sorting, "_ROWS", 40)
    monkeypatch.setattr(sorting, "_MOST_RUNS", 2 if piece < 100 else 256)
    with tempfile.TemporaryDirectory() as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield size
        assert not list(Path(folder).iterdir())


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


def test_sorters_that_give_rows_of_eight_bytes_serve_as_well(tmp_path, monkeypatch: pytest.MonkeyPatch, block):
    path = tmp_path / "lines"
    path.write_bytes(b"".join(b"%d\n" % n for n in np.random.default_rng(2).integers(0, 300, 900)))
    wanted = [sorted_file(path, block=block, unique=unique) for unique in (False, True)]
    monkeypatch.setattr(sys.modules[__name__], "SORTER", ToySorter())
    assert [sorted_file(path, block=block, unique=unique) for unique in (False, True)] == wanted


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


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_as_many_qualities_as_characters(tmp_path, block, end, last):
    path = tmp_path / "a.fq"
    lines = [f"@r{n}{end}{'ACGT' * n}{end}+{end}{'IIII' * n}{end}" for n in range(40)]
    path.write_text("".join(lines).removesuffix("" if last else end), newline="")
    assert len(sorted_file(path, block=block)) >= len("".join(lines)) - len(end)
    for qualities in ("I" * 9, "I" * 7, "\r" * 3):
        path.write_text("".join([*lines[:30], f"@x{end}ACGTACGT{end}+{end}{qualities}{end}", *lines[30:]]), newline="")
        with pytest.raises(InputError, match=r"line 124: .* qualities for a sequence of 8 bases"):
            sorted_file(path, block=block)


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


def test_files_without_records(tmp_path, block):
    for n, text in enumerate([b"", gzip.compress(b"")]):
        path = tmp_path / str(n)
        path.write_bytes(text)
        for kind in ("fasta", "fastq", "lines", None):
            assert sorted_file(path, format=kind, block=block) == b""
            assert sorted_file(path, format=kind, block=block, unique=True) == b""


def test_blank_lines_behind_the_last_record_of_a_fastq_file(tmp_path, block):
    path = tmp_path / "a.fq"
    records = [b"@%d\n%s\n+\n%s\n" % (n, b"A" * (n % 50), b"I" * (n % 50)) for n in range(100, 0, -1)]
    for end in (b"", b"\n", b"\r\n\r\n", b"\n" * 5):
        path.write_bytes(b"".join(records) + end)
        assert sorted_file(path, by="header", block=block) == b"".join(sorted(records))
        # 100 is a multiple of 50: the last record has no characters and ends with a blank line of its own.
        path.write_bytes(b"".join(reversed(records)) + end)
        assert sorted_file(path, by="header", block=block) == b"".join(sorted(records))


@pytest.mark.parametrize("before", [b"\n", b"\r\n \n\t\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"])
def test_what_stands_before_the_first_record(tmp_path, before):
    path = tmp_path / "a"
    for one, other in ((b">a\nA\n", b">b\nC\n"), (b"@a\nA\n+\nI\n", b"@b\nC\n+\nI\n")):
        path.write_bytes(before + other + one)
        assert sorted_file(path) == one + other
    path.write_bytes(before + b"a")
    assert sorted_file(path) == b"".join(sorted((before + b"a\n").splitlines(keepends=True)))


def test_a_run_that_can_t_be_written(tmp_path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"line\n" * 1000)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StoreError, match="a sorted run can't be written: No space left on device; make room there"):
        sorted_file(path, block=1000)
    assert not list(temporary.iterdir())


def test_no_folder_is_tried_out_for_what_is_temporary(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """A file that is made for that stays when the process is killed."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_get_default_tempdir", lambda *_: pytest.fail("a folder was tried out"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    path = tmp_path / "a.txt"
    path.write_bytes(b"b\na\n" * 1000)
    assert sorted_file(path, block=1000) == b"a\n" * 1000 + b"b\n" * 1000
    assert os.listdir(tmp_path) == ["a.txt"]


def test_what_is_wrong_is_said(tmp_path):
    path = tmp_path / "a"
    path.write_text("@r\nACGT\n+\nIIII\n@s\nACGT\nIIII\n")
    with pytest.raises(InputError, match="line 5: a FASTQ record is four lines"):
        sorted_file(path)
    with pytest.raises(InputError, match="line 1: a FASTA record begins with '>'"):
        sorted_file(path, format="fasta")
    path.write_text("\n\n  >r\nACGT\n")
    with pytest.raises(InputError, match="line 3: a FASTA record begins with '>'"):
        sorted_file(path)
    with pytest.raises(OptionError, match="--unique needs --by"):
        sorted_file(path, by="length", unique=True)
    with pytest.raises(OptionError, match="at least one byte, not -5"):
        sorted_file(path, block=-5)
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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_behind_by_signals(tmp_path, number):
    script = f"""
import os, signal, sys
from seqloom import sorting
from seqloom.cli import run
if {number} != signal.SIGKILL:
    signal.signal({number}, signal.default_int_handler if {number} == signal.SIGINT else signal.SIG_DFL)
written = sorting._Work.run
def then_a_signal(self, parts):
    written(self, parts)
    print(self._spill.end, file=sys.stderr, flush=True)
    os.kill(os.getpid(), {number})
sorting._Work.run = then_a_signal
run()
"""
    folder = tmp_path / "temporary"
    folder.mkdir()
    (tmp_path / "a.txt").write_bytes(b"a line\n" * 400_000)
    done = subprocess.run([sys.executable, "-c", script, "sort", "a.txt", "--memory", "8M", "-o", "out.txt"],
                          cwd=tmp_path, env={**os.environ, "TMPDIR": str(folder)}, capture_output=True, text=True)
    assert done.returncode == (130 if number == signal.SIGINT else -number), done.stderr
    assert int(done.stderr.split("\n")[0]) > 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "temporary"] and not list(folder.iterdir())
