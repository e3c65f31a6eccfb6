"""Input files of every compression and kind, good and bad; every message is one line: where, what, what to do."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import tracemalloc

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
from seqloom.plugins.formats import fasta, plugin
from seqloom.storage.duck.database_file import is_database
from seqloom.storage.sequences.database import SequenceDatabase

FASTA = b">a one\nMKVLAAGIVGLLLAQWERTY\n>b\nMKV\nlag\n"
RENAME = "; rename one of them (--on-bad rename does)"
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


def residues_of(batch):
    return [(batch.names[n], batch.text(n)) for n in range(len(batch))]


GOOD = [("a", "MKVLAAGIVGLLLAQWERTY"), ("b", "MKVlag")]


PACKS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress,
         "zstd": zstandard.ZstdCompressor(write_checksum=True).compress}
SKIPPED = b"\x53\x2a\x4d\x18\x05\0\0\0hello"
"""A frame of zstd that holds no data."""


@pytest.mark.parametrize("pack", [
    bytes, *PACKS.values(), lambda data: SKIPPED + zstandard.compress(data) + SKIPPED,
    *(lambda data, pack=pack: pack(data[:9]) + pack(b"") + pack(data[9:]) for pack in PACKS.values()),
    *(lambda data, name=name: PACKS[name](data) + bytes(8) for name in PACKS if name != "zstd"),
])
def test_compressions(put, registry, pack, monkeypatch):
    assert residues_of(load_sequences(put(pack(FASTA)), registry)) == GOOD
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(FASTA))))
    assert residues_of(load_sequences("-", registry)) == GOOD
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("kind", PACKS)
def test_cut_off_is_told_apart_from_bytes_behind_the_end(put, registry, kind):
    packed = PACKS[kind](FASTA * 50)
    other = "damaged {} data (other bytes follow behind its end); copy or download the file again"
    cut = "the {} data end too early, the file is cut off; copy or download it again"
    for data, what in ((packed[:-1], cut), (packed + packed[:5], cut), (packed + packed[:1], cut), (packed[:9], cut),
                       (packed + b"x", other), (packed + FASTA, other)):
        path = put(data)
        assert failure(path, registry) == f"{path}: " + what.format(kind)


def test_a_small_file_of_much_data_takes_little_memory(put):
    size = 1 << 28
    for pack in (zstandard.ZstdCompressor().compress, lambda data: gzip.compress(data, 1)):
        path = put(pack(b"A" * (size // 4)) * 4)
        tracemalloc.start()
        with inputs.opened(path) as stream:
            read = sum(len(piece) for piece in iter(lambda: stream.read(1 << 18), b""))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert read == size and peak < 4 << 20, (read, peak)


def test_zstd_that_wants_too_much_memory_is_refused(put, registry):
    parameters = zstandard.ZstdCompressionParameters(window_log=30)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = put(packer.compress(FASTA) + packer.flush())
    assert failure(path, registry) == (
        f"{path}: its zstd data need a window of 1,024 MiB and at most 128 MiB are used; decompress it with: "
        "zstd -d --long=31")


def test_batches_are_numbered_through_the_file(put, registry):
    path = put(b"".join(b">s%d\nMKVLAGIVWERTYMKVLLLG\n" % n for n in range(9000)))
    batches = list(read_sequences(path, registry, residues=1))
    assert len(batches) > 1
    assert np.concatenate([b.ordinals for b in batches]).tolist() == list(range(9000))


def test_fastq(put, registry):
    batch = load_sequences(put(b"@r1\nACGTacgtnn\n+\nIIIIIIIIII\n"), registry)
    assert residues_of(batch) == [("r1", "ACGTacgtnn")] and batch.alphabet is NUCLEOTIDE


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
     "{}: line 2: neither fasta nor fastq nor ncbi-blastdb: it begins with 'MKVLAGIV'; check the file's format"),
    (b"<html>\n",
     "{}: line 1: neither fasta nor fastq nor ncbi-blastdb: it begins with '<html>'; check the file's format"),
    (b"\x00\x01\x02\x03\x04\x05\x06\x07DUCK" + bytes(100),
     "{}: is a database file and a file of sequences is wanted; give another file, or extract sequences with: "
     "seqloom db extract"),
    (b">a\nMKV\n>b\n>c\nMKV\n",
     "{}: line 3: record 'b' has no sequence; add its sequence or remove the record" + OR_SKIP),
    (b">a\nMKV\n\nMK1\n",
     "{}: line 4: residue '1' in sequence 'a' is not in the protein alphabet; correct or remove the record" + OR_SKIP),
    (b">a\nMKV\n>b\nMKV\n>a x\nMKVV\n",
     "{}: line 5: id 'a' is there already, in line 1; rename one of them (--on-bad rename does)" + OR_SKIP),
    (b"PK\x03\x04" + bytes(100), "{}: zip files are not read; decompress it, or use gzip, bzip2, xz or zstd"),
    (b"# STOCKHOLM 1.0\n", "{}: is a Stockholm alignment, which is not read; make a model of it with hmmbuild, or "
     "FASTA with: esl-reformat fasta FILE"),
    (b"LOCUS       AB000\n", "{}: is a GenBank flat file, which is not read; convert it to FASTA, such as with seqret "
     "of EMBOSS or Biopython's SeqIO.convert"),
    (b"ID   AB_HUMAN\n", "{}: is an EMBL or UniProt flat file, which is not read; convert it to FASTA, such as with "
     "seqret of EMBOSS or Biopython's SeqIO.convert"),
    (b"@HD\tVN:1.6\n", "{}: is a SAM file, which is not read; convert it with: samtools fasta FILE"),
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
    for kind, pack in PACKS.items():
        packed = bytearray(pack(data))
        packed[len(packed) // 2] ^= 255
        path = put(packed)
        text = failure(path, registry)
        if kind != "bzip2":  # which gives a block before it knows that it is wrong
            assert text.startswith(f"{path}: damaged {kind} data (")
            assert text.endswith("; copy or download the file again")


def test_files_that_are_not_there(tmp_path, registry):
    assert failure(f"{tmp_path}/no.fa", registry) == f"{tmp_path}/no.fa: there is no such file; check the name"
    assert failure(str(tmp_path), registry) == f"{tmp_path}: is a folder; give a file"


def test_sequences_of_the_other_kind(put, registry):
    path = put(FASTA)
    assert failure(path, registry, NUCLEOTIDE) == (
        f"{path}: nucleotide sequences are wanted, but only 31% of the first 26 residues are A, C, G, T, U or N; give "
        "nucleotides, or take these for proteins (seqloom db create --type protein; search with blastp and its like)")


def test_proteins_that_look_like_nucleotides_are_taken_for_what_they_are_said_to_be(put, registry, capsys):
    path = put(b">a\n" + b"ACGTN" * 5 + b"\n")
    assert load_sequences(path, registry).alphabet is NUCLEOTIDE and not capsys.readouterr().err
    assert load_sequences(path, registry, PROTEIN).text(0) == "ACGTN" * 5
    assert capsys.readouterr().err == (f"seqloom: {path}: taken for proteins as asked for, though 100% of the first 25 "
                                       "residues are A, C, G, T, U or N\n")


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
    assert residues_of(batch) == [("a", "MKV"), ("d", "MmK")]
    assert batch.ordinals.tolist() == [0, 1]
    assert capsys.readouterr().err.splitlines() == [
        f"seqloom: {path}: line 5: skipped: residue '1' in sequence 'c' is not in the protein alphabet",
        f"seqloom: {path}: line 3: skipped: record 'b' has no sequence",
        f"seqloom: {path}: line 6: skipped: id 'a' is there already, in line 1",
    ]


def test_nothing_is_left_when_all_is_skipped(put, registry):
    path = put(b">a\nM1\n")
    with pytest.raises(InputError) as error:
        load_sequences(path, registry, PROTEIN, on_bad="skip")
    assert str(error.value) == f"{path}: none of its records can be used; give a file with at least one good record"


def test_unknown_choice(put, registry):
    with pytest.raises(OptionError, match="--on-bad is 'error', 'skip' or 'rename', not 'ignore'"):
        list(read_sequences(put(FASTA), registry, on_bad="ignore"))


def test_ids_of_several_files(put, registry, tmp_path):
    first, second = put(b">a\nMKV\n>b\nMKV\n"), put(b">c\nMKV\n>b\nMKV\n", "y.fa")
    ids = Ids()
    list(read_sequences(first, registry, PROTEIN, ids=ids))
    with pytest.raises(InputError) as error:
        list(read_sequences(second, registry, PROTEIN, ids=ids))
    assert str(error.value) == (
        f"{second}: line 3: id 'b' is there already, in line 3 of {first}" + RENAME + OR_SKIP)


@pytest.mark.parametrize("begin", [b">", b"@", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh"])
def test_a_database_is_known_whatever_its_checksum_is(put, registry, tmp_path, begin):
    """A DuckDB file begins with a checksum, which may look like the beginning of another format."""
    SequenceDatabase.create(tmp_path / "d.duckdb", [load_sequences(put(FASTA), registry)]).close()
    path = put(begin + (tmp_path / "d.duckdb").read_bytes()[len(begin) :], "other.duckdb")
    assert is_database(path)
    with pytest.raises(InputError, match="is a database file and a file of sequences is wanted"):
        load_sequences(path, registry)


def test_a_text_is_no_database_for_the_mark_of_one(put, registry):
    path = put(b">seq\nMADUCKRRRRRRRRRR\n")
    assert not is_database(path)
    assert residues_of(load_sequences(path, registry)) == [("seq", "MADUCKRRRRRRRRRR")]


def test_ids_of_a_database(put, registry, tmp_path):
    with SequenceDatabase.create(tmp_path / "d.duckdb", [load_sequences(put(FASTA), registry)]) as database:
        ids, path = Ids(database.find), put(b">c\nMKV\n>b\nMKV\n")
        with pytest.raises(InputError) as error:
            list(read_sequences(path, registry, PROTEIN, ids=ids))
    assert str(error.value).endswith(
        "x.fa: line 3: id 'b' is there already, sequence 2 of the database" + RENAME + OR_SKIP)


def test_ids_that_are_there_already_are_replaced(put, registry, tmp_path, capsys):
    first, second = put(b">a\nMKV\n>b\nMKV\n>a\nMKVV\n>a_3\nMK\n>a\nMKA\n"), put(b">a_2\nMKV\n>b\nMKV\n", "y.fa")
    ids = Ids()
    names = [name for path in (first, second) for batch in read_sequences(path, registry, PROTEIN, "rename", ids=ids)
             for name in batch.names]
    assert names == ["a", "b", "a_2", "a_3", "a_4", "a_2_2", "b_2"]
    assert capsys.readouterr().err.splitlines() == [
        f"seqloom: {first}: line 5: id 'a' is there already, in line 1; this one is 'a_2' here",
        f"seqloom: {first}: line 9: id 'a' is there already, in line 1; this one is 'a_4' here",
        f"seqloom: {second}: line 1: id 'a_2' is there already, in line 5 of {first}; this one is 'a_2_2' here",
        f"seqloom: {second}: line 3: id 'b' is there already, in line 3 of {first}; this one is 'b_2' here"]


def test_different_ids_of_one_hash_are_not_taken_for_one(put, registry, monkeypatch):
    real = inputs._hashes
    monkeypatch.setattr(inputs, "_hashes", lambda names: (np.zeros(len(names), np.int64), real(names)[1]))
    monkeypatch.setattr(fasta, "SMALL_BLOCK", 64)
    monkeypatch.setattr(fasta, "BLOCK", 64)
    data = b"".join(b">s%d\nMKVLA\n" % n for n in range(100))
    batches = list(read_sequences(put(data), registry, PROTEIN, residues=1))
    assert len(batches) > 9 and sum(map(len, batches)) == 100
    with pytest.raises(InputError, match="line 201: id 's50' is there already, in line 101;"):
        list(read_sequences(put(data + b">s50\nMKVLA\n"), registry, PROTEIN, residues=1))


def test_queries_are_taken_as_by_blast(put, registry, capsys):
    def read(data):
        return residues_of(load_sequences(put(data), registry, PROTEIN, queries=True))

    assert read(b">a\nMKV\n>a\nMKVV\n") == [("a", "MKV"), ("a", "MKVV")]
    assert read(b"MKVLA\nMKV\n") == read(b";comment\nMKVLA\rMKV\r") == [("Query_1", "MKVLAMKV")]
    assert read(b"MKVLA\n>\nMKV\n>b\nMK\n") == [("Query_1", "MKVLA"), ("Query_2", "MKV"), ("b", "MK")]
    assert not capsys.readouterr().err
    assert read(b">a\nMK--V\n") == [("a", "MKV")]
    assert capsys.readouterr().err == f"seqloom: {put(b'')}: line 2: gaps ('-') are left out of queries\n"
    for data in (b"MKV 12\n", b"hello, world\n", b"12\n"):
        with pytest.raises(InputError, match="line 1: neither fasta nor fastq"):
            read(data)
    path = put(b"MKVLA\n")
    assert "neither fasta nor fastq" in failure(path, registry, PROTEIN)


def test_a_pipe_is_read_once(tmp_path, registry):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert inputs.is_stream(str(pipe)) and inputs.is_stream("-") and not inputs.is_stream(str(tmp_path / "none"))
    writer = threading.Thread(target=pipe.write_bytes, args=(FASTA,))
    writer.start()
    assert not is_database(pipe)
    assert residues_of(load_sequences(str(pipe), registry)) == GOOD
    writer.join()


def test_a_name_that_no_file_can_have(registry):
    assert failure("a\0b", registry) == "a\\x00b: can't be read: embedded null byte"


def test_standard_input_that_is_closed(registry, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert failure("-", registry) == "standard input is closed; give a file"


def test_ids_in_many_batches(put, registry):
    names = [f"s{n * 7919 % 20011}" for n in range(20011)]
    data = "".join(f">{name}\nMKVLAGIVWERTYMKVLLLGMKVLAGIVWERTYMKVLLLG\n" for name in names)
    assert len(load_sequences(put(data.encode()), registry)) == 20011
    path = put(f"{data}>s500\nMK\n".encode())
    line = 2 * names.index("s500") + 1
    with pytest.raises(InputError, match=f"line 40023: id 's500' is there already, in line {line};"):
        list(read_sequences(path, registry, PROTEIN, residues=1))
