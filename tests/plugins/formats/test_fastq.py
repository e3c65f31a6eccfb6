"""The FASTQ reader."""

import io

import dnaio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import InputError
from seqloom.plugins.formats import fasta
from seqloom.plugins.formats.fastq import FastqReader
from seqloom.plugins.formats.plain_records_cpu import plain_fastq

from .test_fasta import Note, Stop, records


def read(data, on_bad=None, residues=1 << 20, threads=1):
    reader = FastqReader()
    reader.threads = threads
    return list(reader.read(io.BytesIO(data), "x.fq", None, on_bad or Stop(), residues))


def test_reads_records(monkeypatch):
    monkeypatch.setattr(fasta, "SMALL_BLOCK", 24)
    batches = read(b"@r1 one\nACgtN\n+\nIIIII\n@r2\nGG\n+\nII\n", residues=1)
    assert records(batches) == [("r1", "one", "ACgtN", 1), ("r2", "", "GG", 5)]
    assert batches[0].alphabet is NUCLEOTIDE
    assert [b.ordinals.tolist() for b in batches] == [[0], [1]]


@pytest.mark.parametrize("data, message", [
    (b"@r1\nACGT\n+\nIII\n", "x.fq: line 4: not FASTQ: 3 qualities for 4 bases; "),
    (b"@r1\nACGT\n+\nIIII\n@r2\nACG", "x.fq: line 7: not FASTQ: the file ends within a record; "),
    (b"@r1\nACGT\n+\nIIII\n\n@r2\nA\n+\nI\n", "x.fq: line 5: not FASTQ: a record begins with '@', not ''; "),
    (b"@r1\nACGT\n+r2\nIIII\n", "x.fq: line 3: not FASTQ: the name behind '+' is not the record's; "),
    (b"@r1\nACGT\n-\nIIII\n", "x.fq: line 3: not FASTQ: the third line of a record begins with '+', not '-'; "),
    (b"@r1\nAC1T\n+\nIIII\n",
     "x.fq: line 2: residue '1' in sequence 'r1' is not in the nucleotide alphabet; correct or remove the record"),
    (b"@r1\n\n+\n\n", "x.fq: line 1: record 'r1' has no sequence; add its sequence or remove the record"),
])
def test_bad_input_is_told_in_one_line(data, message):
    with pytest.raises(InputError) as error:
        read(data)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_bad_records_are_left_out():
    note = Note()
    assert [r[0] for r in records(read(b"@a\nA1\n+\nII\n@b\nAC\n+\nII\n", note))] == ["b"]
    assert note.notes == [(2, "residue '1' in sequence 'a' is not in the nucleotide alphabet")]


def test_headers_are_read_as_in_fasta():
    data = "@cé\u2003x two\n+\n".encode().replace(b"+", b"AC\n+\nII") + b"@c\xe9 \xe9\nG\n+\nI\n@b\x1cx\nG\n+\nI\n"
    assert [r[:2] for r in records(read(data))] == [("cé\u2003x", "two"), ("cé", "é"), ("b", "x")]


@pytest.mark.parametrize("end", [b"\r\n", b"\r"])
def test_line_ends_of_all_systems_and_blank_lines_around(end):
    data = b"\n\n@a\nAC\n+a\nII\n@b x\nG\n+\nI\n\n\n\n\n\n".replace(b"\n", end)
    assert records(read(data)) == [("a", "", "AC", 3), ("b", "x", "G", 7)]


@pytest.mark.parametrize(("block", "taken"), [
    (b"@a x\nACN\n+\nI@I\n@b\nG\n+\n+\n", 24), (b"@a\nAC\n+\nII\n@b\nG\n+\n", 11), (b"@a\nAC\n+\nII", 0), (b"@a\nA", 0),
    (b"@a\nA\n+a\nI\n", None), (b"@a\nAC\n+\nI\n@b\n", None), (b"@a\nA\n+\nII\n", None), (b"@a\n\n+\n\n", None),
    (b"\n", None), (b"@", None),
    (b"@a\xc3\xbcb x\nA\n+\nI\n", None), (b"@a\xfcb\nA\n+\nI\n", None), (b"@a \xfcb\nA\n+\nI\n", None),
    (b"@a x\xfcb\nA\n+\nI\n", None),
    (b"@a\nAc\n+\nII\n", None), (b"@a\nA-\n+\nII\n", None), (b"@a \nA\n+\nI\n", None), (b"@\nA\n+\nI\n", None),
])
def test_what_is_plain(block, taken):
    found = plain_fastq(block, fasta.plain_table(NUCLEOTIDE))
    assert (found and found.taken) == taken
    if found:
        assert found.newlines == block[:taken].count(b"\n") == 4 * len(found.names)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 31, 32, 63, 64, 65, 130])
@pytest.mark.parametrize("header", [b"@a", b"@a x", b"@\xfc", b"@"])
def test_reads_longer_than_a_vector(length, header):
    residues = b"ACGTN" * 26
    block = header + b"\n" + residues[:length] + b"\n+\n" + b"I" * length + b"\n"
    found = plain_fastq(block, fasta.plain_table(NUCLEOTIDE))
    assert (found is not None) == (header[1:2] == b"a")
    if found:
        assert found.codes.tolist() == NUCLEOTIDE.codes[list(residues[:length])].tolist()


part = st.sampled_from([b"@a x", b"@b", b"@c", b"ACGT", b"AC", b"+", b"+a x", b"II", b"IIII", b"", b"@", b"\r"])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(part, max_size=4), max_size=4), st.integers(0, 3), st.sampled_from([b"", b"\n"]),
       st.integers(1, 50), st.integers(1, 30), st.sampled_from([1, 3]))
def test_any_file_reads_as_by_dnaio(noise, good, end, block, residues, threads):
    lines = [line for n in range(good) for line in (b"@g%d x" % n, b"ACGN", b"+", b"@+II")]
    lines += [line for some in noise for line in some]
    data = b"\n".join(lines) + end
    old = fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK
    fasta.SMALL_BLOCK = fasta.BLOCK = fasta.SHARED_BLOCK = block
    try:
        got = [(r[0], r[2]) for r in records(read(data, residues=residues, threads=threads))]
    except InputError:
        got = None
    finally:
        fasta.SMALL_BLOCK, fasta.BLOCK, fasta.SHARED_BLOCK = old
    if b"\r" in data or not data.strip() or b"\n\n" in data or data.startswith(b"\n"):
        return  # blank lines and other line ends are taken where dnaio refuses them
    try:
        with dnaio.open(io.BytesIO(data), fileformat="fastq") as found:
            want = [(r.name.split()[0] if r.name else "", r.sequence) for r in found]
    except dnaio.FileFormatError:
        want = None
    if want is not None and not all(name and set(residues) <= set("ACGTN") and residues for name, residues in want):
        want = None
    assert got == want
