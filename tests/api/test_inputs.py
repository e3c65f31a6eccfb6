"""Input files of every compression and kind, good and bad; every message is one line: where, what, what to do."""

import bz2
import gzip
import io
import sys

import numpy as np
import pytest
import zstandard
from seqloom import inputs
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import InputError, OptionError
from seqloom.core.hookspecs import hookimpl
from seqloom.core.registry import Registry
from seqloom.core.stages import Reader
from seqloom.inputs import Ids, load_sequences, read_sequences
from seqloom.plugins.formats import plugin
from seqloom.storage.sequence_database import SequenceDatabase

FASTA = b">a one\nMKVLAAGIVGLLLAQWERTY\n>b\nMKV\nlag\n"
OR_SKIP = ", or leave such records out with --on-bad skip"


@pytest.fixture(scope="module")
def registry():
    registry = Registry()
    registry.register(plugin, "formats")
    return registry


@pytest.fixture
def put(tmp_path):
    def write(data, name="x.fa"):
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return write


def letters_of(batch):
    return [(batch.names[n], batch.text(n)) for n in range(len(batch))]


GOOD = [("a", "MKVLAAGIVGLLLAQWERTY"), ("b", "MKVlag")]


@pytest.mark.parametrize("pack", [
    bytes, gzip.compress, zstandard.ZstdCompressor().compress,
    lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:]),
    lambda data: zstandard.compress(data[:9]) + zstandard.compress(data[9:]),
], ids=["plain", "gzip", "zstd", "gzip-parts", "zstd-parts"])
def test_compressions(put, registry, pack, monkeypatch):
    assert letters_of(load_sequences(put(pack(FASTA)), registry)) == GOOD
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(FASTA))))
    assert letters_of(load_sequences("-", registry)) == GOOD
    assert not sys.stdin.buffer.closed


def test_batches_are_numbered_through_the_file(put, registry):
    path = put(b"".join(b">s%d\nMKVLAGIVWERTYMKVLLLG\n" % n for n in range(9000)))
    batches = list(read_sequences(path, registry, letters=1))
    assert len(batches) > 1
    assert np.concatenate([b.ordinals for b in batches]).tolist() == list(range(9000))


def test_fastq(put, registry):
    batch = load_sequences(put(b"@r1\nACGTacgtnn\n+\nIIIIIIIIII\n"), registry)
    assert letters_of(batch) == [("r1", "ACGTacgtnn")] and batch.alphabet is NUCLEOTIDE


def failure(path, registry, alphabet=None, kind=InputError):
    with pytest.raises(kind) as error:
        list(read_sequences(path, registry, alphabet))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("data, message", [
    (b"", "{}: the file is empty; give a file with sequences or models"),
    (b" \n\n", "{}: the file is empty; give a file with sequences or models"),
    (gzip.compress(b"", mtime=0), "{}: the file is empty; give a file with sequences or models"),
    (b"\nMKVLAGIV\n",
     "{}: line 2: neither fasta nor fastq: it begins with 'MKVLAGIV'; check the file's format"),
    (b"<html>\n", "{}: line 1: neither fasta nor fastq: it begins with '<html>'; check the file's format"),
    (b"\x00\x01\x02\x03\x04\x05\x06\x07DUCK" + bytes(100),
     "{}: is a database file and a file of sequences is wanted; give another file, or extract sequences with: "
     "seqloom db extract"),
    (b">a\nMKV\n>b\n>c\nMKV\n",
     "{}: line 3: record 'b' has no sequence; add its sequence or remove the record" + OR_SKIP),
    (b">a\nMKV\n\nMK1\n",
     "{}: line 4: letter '1' in sequence 'a' is not in the protein alphabet; correct or remove the record" + OR_SKIP),
    (b">a\nMKV\n>b\nMKV\n>a x\nMKVV\n",
     "{}: line 5: id 'a' is there already, in line 1; rename one of them" + OR_SKIP),
    (bz2.compress(FASTA), "{}: bzip2 files are not read; decompress it, or use gzip or zstd"),
    (gzip.compress(FASTA * 50, mtime=0)[:-20],
     "{}: the gzip data end too early, the file is cut off; copy or download it again"),
    (zstandard.compress(FASTA * 50)[:-4],
     "{}: the zstd data end too early, the file is cut off; copy or download it again"),
])
def test_bad_files(put, registry, data, message):
    path = put(data)
    assert failure(path, registry) == message.format(path)


def test_damaged_compressed_data(put, registry):
    generator = np.random.default_rng(0)
    data = b">a\n" + generator.choice(np.frombuffer(b"MKVLAGIW", np.uint8), 50_000).tobytes() + b"\n"
    for pack, kind in ((gzip.compress, "gzip"), (zstandard.ZstdCompressor(write_checksum=True).compress, "zstd")):
        packed = bytearray(pack(data))
        packed[len(packed) // 2] ^= 255
        path = put(packed)
        text = failure(path, registry)
        assert text.startswith(f"{path}: damaged {kind} data (") and text.endswith("; copy or download the file again")


def test_files_that_are_not_there(tmp_path, registry):
    assert failure(f"{tmp_path}/no.fa", registry) == f"{tmp_path}/no.fa: there is no such file; check the name"
    assert failure(str(tmp_path), registry) == f"{tmp_path}: is a folder; give a file"


def test_sequences_of_the_other_kind(put, registry):
    path = put(b">a\n" + b"ACGTN" * 5 + b"\n")
    assert failure(path, registry, PROTEIN) == (
        f"{path}: protein sequences are wanted, but 100% of the first 25 letters are A, C, G, T, U or N; give "
        "proteins, or take these for nucleotides (db create --type nucleotide; search with blastn and its like)")
    path = put(FASTA)
    assert failure(path, registry, NUCLEOTIDE) == (
        f"{path}: nucleotide sequences are wanted, but only 31% of the first 26 letters are A, C, G, T, U or N; give "
        "nucleotides, or take these for proteins (db create --type protein; search with blastp and its like)")


def test_models_where_sequences_are_wanted(put):
    class Models(Reader):
        """Stands for a reader of models."""

        name, gives = "hmm", "models"

        def sniff(self, head):
            return head.startswith(b"HMM")

        def read(self, *args):
            yield None

    class Other:
        SEQLOOM_API = 1

        @hookimpl
        def seqloom_readers(self):
            return [Models, *plugin.seqloom_readers()]

    registry = Registry()
    registry.register(Other(), "other")
    path = put(b"HMMER3/f\n")
    assert failure(path, registry) == f"{path}: holds models (hmm) and sequences are wanted; give another file"
    path = put(FASTA)
    with pytest.raises(InputError) as error:
        list(inputs.read_models(path, registry))
    assert str(error.value) == f"{path}: holds sequences (fasta) and models are wanted; give another file"


def test_bad_records_are_skipped_and_told(put, registry, capsys):
    path = put(b">a\nMKV\n>b\n>c\nM1V\n>a\nMKVV\n>d\nMmK\n")
    batch = load_sequences(path, registry, PROTEIN, on_bad="skip")
    assert letters_of(batch) == [("a", "MKV"), ("d", "MmK")]
    assert batch.ordinals.tolist() == [0, 1]
    assert capsys.readouterr().err.splitlines() == [
        f"seqloom: {path}: line 5: skipped: letter '1' in sequence 'c' is not in the protein alphabet",
        f"seqloom: {path}: line 3: skipped: record 'b' has no sequence",
        f"seqloom: {path}: line 6: skipped: id 'a' is there already, in line 1",
    ]


def test_nothing_is_left_when_all_is_skipped(put, registry):
    path = put(b">a\nM1\n")
    with pytest.raises(InputError) as error:
        load_sequences(path, registry, PROTEIN, on_bad="skip")
    assert str(error.value) == f"{path}: none of its records can be used; give a file with at least one good record"


def test_unknown_choice(put, registry):
    with pytest.raises(OptionError, match="--on-bad is 'error' or 'skip', not 'ignore'"):
        list(read_sequences(put(FASTA), registry, on_bad="ignore"))


def test_ids_of_several_files(put, registry, tmp_path):
    first, second = put(b">a\nMKV\n>b\nMKV\n"), put(b">c\nMKV\n>b\nMKV\n", "y.fa")
    ids = Ids()
    list(read_sequences(first, registry, PROTEIN, ids=ids))
    with pytest.raises(InputError) as error:
        list(read_sequences(second, registry, PROTEIN, ids=ids))
    assert str(error.value) == (
        f"{second}: line 3: id 'b' is there already, in line 3 of {first}; rename one of them" + OR_SKIP)


def test_ids_of_a_database(put, registry, tmp_path):
    with SequenceDatabase.create(tmp_path / "d.duckdb", [load_sequences(put(FASTA), registry)]) as database:
        ids, path = Ids(database.find), put(b">c\nMKV\n>b\nMKV\n")
        with pytest.raises(InputError) as error:
            list(read_sequences(path, registry, PROTEIN, ids=ids))
    assert str(error.value).endswith(
        "x.fa: line 3: id 'b' is there already, sequence 2 of the database; rename one of them" + OR_SKIP)


def test_ids_in_many_batches(put, registry):
    names = [f"s{n * 7919 % 20011}" for n in range(20011)]
    data = "".join(f">{name}\nMKVLAGIVWERTYMKVLLLGMKVLAGIVWERTYMKVLLLG\n" for name in names)
    assert len(load_sequences(put(data.encode()), registry)) == 20011
    path = put(f"{data}>s500\nMK\n".encode())
    line = 2 * names.index("s500") + 1
    with pytest.raises(InputError, match=f"line 40023: id 's500' is there already, in line {line};"):
        list(read_sequences(path, registry, PROTEIN, letters=1))
