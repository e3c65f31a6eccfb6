"""The FASTQ reader."""

import io

import pytest
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.errors import InputError
from seqloom.plugins.formats.fastq import FastqReader

from .test_fasta import Note, Stop, records


def read(data, on_bad=None, letters=1 << 20):
    return list(FastqReader().read(io.BytesIO(data), "x.fq", None, on_bad or Stop(), letters))


def test_reads_records():
    batches = read(b"@r1 one\nACgtN\n+\nIIIII\n@r2\nGG\n+\nII\n", letters=1)
    assert records(batches) == [("r1", "one", "ACgtN", 1), ("r2", "", "GG", 5)]
    assert batches[0].alphabet is NUCLEOTIDE
    assert [b.ordinals.tolist() for b in batches] == [[0], [1]]


@pytest.mark.parametrize("data, message", [
    (b"@r1\nACGT\n+\nIII\n", "x.fq: line 4: not FASTQ: "),
    (b"@r1\nACGT\n", "x.fq: line 3: not FASTQ: "),
    (b"@r1\nAC1T\n+\nIIII\n",
     "x.fq: line 2: letter '1' in sequence 'r1' is not in the nucleotide alphabet; correct or remove the record"),
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
    assert note.notes == [(2, "letter '1' in sequence 'a' is not in the nucleotide alphabet")]
