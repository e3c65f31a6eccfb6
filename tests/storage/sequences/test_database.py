"""Sequence databases: what is written is read again, whole or in part; damage and misuse are told."""

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import DamagedError, InputError, LockedError, SchemaError, StoreError
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.duck import database_file, durable
from seqloom.storage.duck.connection import connect
from seqloom.storage.duck.database_file import is_database
from seqloom.storage.sequences import check as database_check
from seqloom.storage.sequences import database as sequence_database
from seqloom.storage.sequences import fingerprint, writing
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of 64 residues and blocks of 4 rows, so that small databases have many."""
    monkeypatch.setattr(writing, "CHUNK_RESIDUES", {"protein": 64, "nucleotide": 64})
    monkeypatch.setattr(fingerprint, "BLOCK_RESIDUES", 64)
    for module in (fingerprint, sequence_database, writing, database_check):
        monkeypatch.setattr(module, "BLOCK_ROWS", 4)


def batch(alphabet, sequences, names=None, first=0):
    made = SequenceBatch.of(alphabet, sequences, names or [f"s{first + n}" for n in range(len(sequences))], first)
    return replace(made, descriptions=[f"about {name}" for name in made.names])


def random_batch(alphabet, seed, count, first=0, longest=90):
    generator = np.random.default_rng(seed)
    residues = np.frombuffer((alphabet.letters.replace("-", "") + "acg").encode(), np.uint8)
    chances = np.where(np.isin(residues, np.frombuffer(b"ACGT", np.uint8)), 10, 1)
    texts = [generator.choice(residues, generator.integers(1, longest), p=chances / chances.sum()).tobytes().decode()
             for _ in range(count)]
    return batch(alphabet, texts, first=first)


def cut(whole, sizes):
    """``whole`` in batches of the given sizes, over and over."""
    first = 0
    while first < len(whole):
        size = sizes[first % len(sizes)]
        yield whole.take(first, min(first + size, len(whole)))
        first += size


def assert_same(left, right):
    assert [left.text(n) for n in range(len(left))] == [right.text(n) for n in range(len(right))]
    assert list(left.names) == list(right.names)
    assert list(left.descriptions) == list(right.descriptions)
    assert left.ordinals.tolist() == right.ordinals.tolist()


@pytest.fixture(params=[PROTEIN, NUCLEOTIDE], ids=["protein", "nucleotide"])
def alphabet(request):
    return request.param


def test_what_is_written_is_read_again(tmp_path, small_chunks, alphabet):
    whole = random_batch(alphabet, 1, 30)
    with SequenceDatabase.create(tmp_path / "d.duckdb", cut(whole, [1, 7, 3]), "thirty") as database:
        assert_same(database.fetch(np.arange(30)), whole)
        assert problems(database) == []
        info = database.info()
        assert info["chunks"] == -(-whole.total_residues // 64) > 5
        assert {k: info[k] for k in ("title", "type", "sequences", "residues", "longest", "shortest")} == {
            "title": "thirty", "type": alphabet.name, "sequences": 30, "residues": whole.total_residues,
            "longest": whole.lengths.max(), "shortest": whole.lengths.min()}
        assert [row["name"] for row in database.list()] == list(whole.names)
        assert [row["ordinal"] for row in database.list("s1%")] == [1, *range(10, 20)]
        assert_same(database.extract(["s7", "s2", "s7"]), picked(whole, [2, 7]))
    assert sorted(os.listdir(tmp_path)) == ["d.duckdb"]


def picked(whole, index):
    return SequenceBatch.concat([whole.take(n, n + 1) for n in index])


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 19))
def test_fingerprint_and_content_depend_on_the_sequences_alone(tmp_path_factory, seed, sizes, before):
    """However the batches are cut, and whether sequences came at once or were appended."""
    patch = pytest.MonkeyPatch()
    patch.setattr(writing, "CHUNK_RESIDUES", {"protein": 64, "nucleotide": 64})
    patch.setattr(fingerprint, "BLOCK_RESIDUES", 64)
    patch.setattr(fingerprint, "BLOCK_ROWS", 4)
    patch.setattr(sequence_database, "BLOCK_ROWS", 4)
    patch.setattr(writing, "BLOCK_ROWS", 4)
    patch.setattr(database_check, "BLOCK_ROWS", 4)
    folder = tmp_path_factory.mktemp("d")
    try:
        whole = random_batch([PROTEIN, NUCLEOTIDE][seed % 2], seed, 20)
        with SequenceDatabase.create(folder / "a.duckdb", [whole]) as database:
            mark = database.fingerprint
        SequenceDatabase.create(folder / "b.duckdb", cut(whole.take(0, before), sizes)).close()
        with SequenceDatabase.open(folder / "b.duckdb", read_only=False) as database:
            database.append(cut(whole.take(before, 20), sizes))
            assert database.fingerprint == mark
            assert problems(database) == []
            assert_same(database.fetch(np.arange(20)), whole)
    finally:
        patch.undo()


def test_fingerprint_sees_every_change(tmp_path):
    texts, names = ["MKVLA", "AGIVG", "WW"], ["a", "b", "c"]
    variants = [(texts, names), (["MKVLA", "AGIVW", "WW"], names), (["MKVL", "AAGIVG", "WW"], names),
                (texts, ["a", "b", "d"]), (texts[:2], names[:2]), (["AGIVG", "MKVLA", "WW"], names)]
    marks = []
    for n, (sequences, ids) in enumerate(variants):
        with SequenceDatabase.create(tmp_path / f"{n}.duckdb", [batch(PROTEIN, sequences, ids)]) as database:
            marks.append(database.fingerprint)
    assert len(set(marks)) == len(variants)
    acgt = ["ACGT"]
    for kind in (PROTEIN, NUCLEOTIDE):
        with SequenceDatabase.create(tmp_path / f"{kind.name}.duckdb", [batch(kind, acgt)]) as database:
            marks.append(database.fingerprint)
    assert len(set(marks)) == len(marks)


def test_parts_of_residues(tmp_path, small_chunks, alphabet):
    whole = random_batch(alphabet, 5, 20)
    with SequenceDatabase.create(tmp_path / "d.duckdb", [whole]) as database:
        for first, last in [(0, 20), (0, 1), (3, 4), (19, 20), (5, 17)]:
            begin, end = whole.offsets[[first, last]]
            for threads in 1, 3:
                got = database.residues(np.array([begin]), np.array([end - begin]), threads)
                assert np.array_equal(got, whole.residues[begin:end])
        for pick in ([0, 19], [3, 4, 9, 10, 11], [18]):
            got = database.fetch(np.array(pick))
            assert_same(got, picked(whole, pick))
        assert len(database.fetch(np.empty(0, np.int64))) == 0


def test_rows_near_one_another_and_far_apart(tmp_path):
    whole = batch(PROTEIN, ["MKV"] * 1000)
    with SequenceDatabase.create(tmp_path / "d.duckdb", [whole]) as database:
        for pick in ([], [999], range(3, 9), range(0, 1000, 2), range(5, 900, sequence_database.DENSE),
                     range(5, 900, sequence_database.DENSE + 1), [0, 999], [17, 20, 21, 40]):
            rows = database.rows(np.array(pick, np.int64))
            assert rows["ordinal"].tolist() == [*pick]
            assert rows["name"].tolist() == [f"s{n}" for n in pick]
        assert "get_bit" in sequence_database._among(np.array([3, 5]))
        assert "unnest" in sequence_database._among(np.array([3, 500]))


def test_threads_meet_damage_as_one_does(tmp_path, small_chunks):
    path = tmp_path / "d.duckdb"
    SequenceDatabase.create(path, [random_batch(PROTEIN, 1, 20)]).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE volume_0 SET checksum = 0 WHERE chunk >= 2")
    with SequenceDatabase.open(path) as database:
        everything = np.array([0]), np.array([database.total_residues])
        for threads in 1, 3:
            assert "chunk 2 does not match" in message(partial(database.residues, *everything, threads), DamagedError)


# ---- errors


def message(call, kind):
    with pytest.raises(kind) as error:
        call()
    text = str(error.value)
    assert "\n" not in text
    return text


def test_an_existing_file_is_not_overwritten(tmp_path):
    path = tmp_path / "d.duckdb"
    path.write_text("precious")
    text = message(lambda: SequenceDatabase.create(path, [batch(PROTEIN, ["MKV"])]), StoreError)
    assert text == f"{path} exists already; choose another name, or add to it with: seqloom db append"
    assert path.read_text() == "precious"


def test_creation_that_fails_leaves_nothing(tmp_path):
    def batches():
        yield random_batch(PROTEIN, 1, 10)
        raise InputError("x.fa: line 7: broken")

    text = message(lambda: SequenceDatabase.create(tmp_path / "d.duckdb", batches()), InputError)
    assert text == "x.fa: line 7: broken"
    assert os.listdir(tmp_path) == []


def test_no_folder(tmp_path):
    path = tmp_path / "nowhere" / "d.duckdb"
    assert message(lambda: SequenceDatabase.create(path, []), StoreError) == (
        f"there is no folder {path.parent} for d.duckdb; make it first")


def test_no_sequences(tmp_path):
    assert message(lambda: SequenceDatabase.create(tmp_path / "d.duckdb", []), InputError) == (
        "no sequences to put into d.duckdb; give at least one")
    assert os.listdir(tmp_path) == []


def test_double_ids(tmp_path):
    batches = [batch(PROTEIN, ["MKV", "MK"], ["a", "b"]), batch(PROTEIN, ["M"], ["b"])]
    assert message(lambda: SequenceDatabase.create(tmp_path / "d.duckdb", batches), InputError) == (
        "id 'b' is there twice, as sequences 2 and 3 of d.duckdb; rename one of them, or leave it out with "
        "--on-bad skip")
    assert os.listdir(tmp_path) == []


def test_mixed_alphabets(tmp_path):
    batches = [batch(PROTEIN, ["MKV"]), batch(NUCLEOTIDE, ["ACGT"], first=1)]
    assert message(lambda: SequenceDatabase.create(tmp_path / "d.duckdb", batches), InputError) == (
        "d.duckdb holds protein sequences and these are nucleotide ones; make a database of its own for them")


def test_too_long_a_sequence(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "LONGEST", 4)
    assert message(lambda: SequenceDatabase.create(tmp_path / "d.duckdb", [batch(PROTEIN, ["MKVLA"])]), InputError) == (
        "sequence 's0' has 5 residues and at most 4 can be stored; cut it into pieces")


def test_unknown_names(tmp_path):
    with SequenceDatabase.create(tmp_path / "d.duckdb", [batch(PROTEIN, ["MKV"], ["a"])]) as database:
        assert message(lambda: database.extract(["a", "x"]), InputError) == (
            f"{tmp_path}/d.duckdb: no sequence 'x'; seqloom db list-sequences shows the names")
        assert message(lambda: database.extract(list("axyzuv")), InputError) == (
            f"{tmp_path}/d.duckdb: 5 names are not there: 'x', 'y', 'z', …; seqloom db list-sequences shows the names")


def test_names_are_taken_as_they_are(tmp_path):
    names = ["it's", 'a"b', "ünï", "x;DROP", "%", "\\n", "'; --"]
    with SequenceDatabase.create(tmp_path / "it's.duckdb", [batch(PROTEIN, ["MKV"] * 7, names)], "it's") as database:
        assert list(database.extract(names).names) == names
        assert database.info()["title"] == "it's"


def test_failed_append_changes_nothing(tmp_path, small_chunks):
    whole = random_batch(PROTEIN, 3, 10)
    SequenceDatabase.create(tmp_path / "d.duckdb", [whole]).close()
    with SequenceDatabase.open(tmp_path / "d.duckdb", read_only=False) as database:
        before = database.info()
        for extra in ([batch(PROTEIN, ["MKV"], ["s3"])], [batch(NUCLEOTIDE, ["ACGT"], ["n"])]):
            with pytest.raises(InputError):
                database.append([random_batch(PROTEIN, 4, 5, first=10), *extra])
            assert database.info() == before
            assert problems(database) == []
        database.append([random_batch(PROTEIN, 4, 5, first=10)])
        assert database.sequences == 15
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        assert_same(database.fetch(np.arange(10)), whole)
        assert message(lambda: database.append([]), StoreError) == (
            f"{tmp_path}/d.duckdb is open for reading; open it for writing to append")


def test_not_a_database(tmp_path):
    text = tmp_path / "x.fa"
    text.write_text(">a\nMKV\n" * 2000)
    assert message(lambda: SequenceDatabase.open(text), SchemaError) == (
        f"{text} is not a DuckDB file; give the path of a file that seqloom made")
    assert message(lambda: SequenceDatabase.open(tmp_path / "no.duckdb"), StoreError) == (
        f"there is no sequence database {tmp_path}/no.duckdb")
    assert message(lambda: SequenceDatabase.open(tmp_path), SchemaError) == (
        f"{tmp_path} is not a file; give the path of a sequence database")
    other = tmp_path / "other.duckdb"
    duckdb.connect(str(other)).execute("CREATE TABLE t (a INTEGER)").close()
    assert message(lambda: SequenceDatabase.open(other), SchemaError) == (
        f"{other} is a DuckDB file but not a sequence database of seqloom; give another path")
    results = tmp_path / "results.duckdb"
    connect(results, False, "results", create=True).close()
    assert message(lambda: SequenceDatabase.open(results), SchemaError) == (
        f"{results} is a results store, not a sequence database; give another path")
    assert [is_database(p) for p in (other, results)] == [True, True]
    assert [is_database(p) for p in (text, tmp_path, tmp_path / "no")] == [False, False, False]


def test_a_newer_file_is_refused(tmp_path):
    path = tmp_path / "d.duckdb"
    SequenceDatabase.create(path, [batch(PROTEIN, ["MKV"])]).close()
    sql = "UPDATE seqloom_file SET schema_revision = '9999', created_by = 'seqloom 9.0'"
    duckdb.connect(str(path)).execute(sql).close()
    for read_only in (True, False):
        text = message(lambda mode=read_only: SequenceDatabase.open(path, read_only=mode), SchemaError)
        assert text.startswith(f"{path} has schema revision 9999 (made by seqloom 9.0), which this version of seqloom "
                               "does not know (newest: ")
        assert text.endswith("); use a newer seqloom")


def in_another_process(path, read_only):
    code = (f"import duckdb, sys; c = duckdb.connect({str(path)!r}, read_only={read_only}); print('open', flush=True); "
            "sys.stdin.read()")
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "open\n"
    return process


def test_a_file_in_use(tmp_path):
    path = tmp_path / "d.duckdb"
    SequenceDatabase.create(path, [batch(PROTEIN, ["MKV"])]).close()
    for theirs, ours in ((False, True), (False, False), (True, False)):
        process = in_another_process(path, theirs)
        try:
            assert message(lambda mode=ours: SequenceDatabase.open(path, read_only=mode), LockedError) == (
                f"{path} is in use: process {process.pid} has it open; wait until it is done, or work on a copy")
        finally:
            process.communicate("")
    process = in_another_process(path, True)
    try:
        SequenceDatabase.open(path).close()  # readers don't mind each other
    finally:
        process.communicate("")


def test_a_header_that_is_looked_at_keeps_the_lock(tmp_path):
    """Closing any handle of a process on a file drops the process's locks on it."""
    path = tmp_path / "d.duckdb"
    SequenceDatabase.create(path, [batch(PROTEIN, ["MKV"])]).close()
    with SequenceDatabase.open(path, read_only=False):
        assert is_database(path)
        code = f"import duckdb; duckdb.connect({str(path)!r}, read_only=True)"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 1


def test_full_disk_leaves_no_half_made_file(tmp_path):
    """A limit on the size of files stands for a full disk."""
    code = f"""
import resource, signal, sys
import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import StoreError
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({3 << 20}, resource.RLIM_INFINITY))
codes = np.random.default_rng(0).integers(1, 20, 6 << 20).astype(np.uint8)
try:
    SequenceDatabase.create(sys.argv[1], [SequenceBatch.of(PROTEIN, [codes], ["a"])])
except StoreError as error:
    print(error)
"""
    path = tmp_path / "d.duckdb"
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert result.stdout == f"{path} can't be written: the disk is full; free some space or choose another place\n"
    assert os.listdir(tmp_path) == []


# ---- damage


@pytest.fixture
def damaged(tmp_path, small_chunks, alphabet):
    """Makes a database, runs SQL on it behind its back, and gives what ``check`` finds."""
    path = tmp_path / "d.duckdb"
    whole = random_batch(alphabet, 8, 12, longest=160)
    SequenceDatabase.create(path, [whole]).close()

    def after(sql):
        connection = duckdb.connect(str(path))
        connection.execute(sql)
        connection.close()
        with SequenceDatabase.open(path) as database:
            return problems(database)

    return after


FLIP = ("UPDATE volume_0 SET data = from_hex(upper(substr(hex(data), 1, {0})) || "
        "printf('%02X', xor(('0x' || substr(hex(data), {0} + 1, 2))::INTEGER, {1})) || substr(hex(data), {0} + 3)) "
        "WHERE chunk = {2}")


@pytest.mark.parametrize("byte, bit, chunk", [(0, 1, 0), (15, 128, 2), (7, 16, 1)])
def test_a_flipped_bit_is_found(damaged, byte, bit, chunk):
    assert damaged(FLIP.format(2 * byte, bit, chunk)) == [f"chunk {chunk}: residues don't match their checksum"]


@pytest.mark.parametrize("sql, wanted", [
    ("DELETE FROM volume_0 WHERE chunk = 1", "chunk 1: missing"),
    ("INSERT INTO volume_0 FROM volume_0 WHERE chunk = 1", "chunk 1: there 2 times and wanted 1 times"),
    ("INSERT INTO volume_0 SELECT 99, * EXCLUDE (chunk) FROM volume_0 WHERE chunk = 1",
     "chunk 99: there 1 times and wanted 0 times"),
    ("DROP TABLE volume_1", "chunk 8: missing"),
    ("DELETE FROM sequences WHERE ordinal = 11", "sequences: 11 rows, and 12 wanted"),
    ("INSERT INTO sequences FROM sequences WHERE ordinal = 3", "sequences: 13 rows, and 12 wanted"),
    ("UPDATE sequences SET ordinal = 40 WHERE ordinal = 5",
     "sequences: ordinals or places are not in a row from sequence 7 on"),
    ("UPDATE sequences SET start = start + 1 WHERE ordinal = 5",
     "sequences: ordinals or places are not in a row from sequence 6 on"),
    ("UPDATE sequences SET length = length + 1 WHERE ordinal = 5", "residues in all, and"),
    ("UPDATE sequences SET name = 's2' WHERE ordinal = 5", "sequences: id 's2' is there 2 times"),
    ("UPDATE sequences SET name = 'other' WHERE ordinal = 5", "names or lengths don't match their digest"),
    ("UPDATE row_blocks SET digest = from_hex('00') WHERE block = 1",
     "sequences 5 to 8: names or lengths don't match their digest"),
    ("DELETE FROM row_blocks WHERE block = 2", "row blocks: 2 digests, and 3 wanted"),
    ("UPDATE database SET fingerprint = 'x'", "names, lengths or residues are not those of fingerprint x (theirs: "),
    ("UPDATE masks SET \"end\" = 10000 WHERE rowid = 0", "masks: 1 stretches lie outside their sequence"),
    ("UPDATE volume_0 SET letters = letters - 1 WHERE chunk = 0", "chunk 0: "),
])
def test_missing_extra_and_changed_rows_are_found(damaged, sql, wanted):
    assert any(wanted in line for line in damaged(sql)), damaged("SELECT 1")


def test_reading_damaged_residues_is_an_error(damaged, tmp_path):
    damaged(FLIP.format(0, 1, 0))
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        assert message(lambda: database.fetch(np.array([0])), DamagedError) == (
            f"{tmp_path}/d.duckdb: chunk 0 does not match its checksum; make the database anew or restore it from a "
            "copy")


def test_reading_where_a_volume_is_missing(damaged, tmp_path):
    damaged("DROP TABLE volume_1")
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        assert message(lambda: database.fetch(np.arange(12)), DamagedError) == (
            f"{tmp_path}/d.duckdb: chunk 8 is there 0 times; make the database anew")


def test_a_file_damaged_on_disk(tmp_path):
    path = tmp_path / "d.duckdb"
    codes = np.random.default_rng(0).integers(1, 20, 2 << 20).astype(np.uint8)
    SequenceDatabase.create(path, [SequenceBatch.of(PROTEIN, [codes], ["a"])]).close()
    raw = bytearray(path.read_bytes())
    place = raw.find(codes[1 << 20 : (1 << 20) + 50].tobytes())
    assert place > 0
    raw[place] ^= 4
    path.write_bytes(raw)
    with SequenceDatabase.open(path) as database:
        found = problems(database)
        assert len(found) == 1 and "\n" not in found[0]
        assert f"{path} is damaged" in found[0]
        assert message(lambda: database.fetch(np.array([0])), DamagedError).startswith(f"{path} is damaged")
    path.write_bytes(path.read_bytes()[: 1 << 20])
    message(lambda: problems(SequenceDatabase.open(path)) and SequenceDatabase.open(path), DamagedError)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux only")
def test_reading_takes_no_more_than_the_residues(tmp_path):
    """One array of the wanted size and a chunk, whatever the database holds."""
    residues = 48 << 20
    codes = np.random.default_rng(0).integers(1, 20, residues).astype(np.uint8)
    SequenceDatabase.create(tmp_path / "d.duckdb", [SequenceBatch.of(PROTEIN, [codes], ["a"])]).close()
    code = f"""
import resource
import numpy as np
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
database = SequenceDatabase.open({str(tmp_path / "d.duckdb")!r}, memory=64 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
database.residues(np.array([0]), np.array([{residues}]))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    taken = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert taken < residues + (80 << 20)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in KiB on Linux only")
def test_writing_takes_the_same_memory_however_much_there_is(tmp_path):
    """160 MB of residues go to disk volume by volume, and leave memory."""
    code = f"""
import resource
import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
codes = np.random.default_rng(0).integers(1, 20, 4 << 20).astype(np.uint8)
batches = (SequenceBatch.of(PROTEIN, [codes], [f"s{{n}}"]) for n in range(40))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
SequenceDatabase.create({str(tmp_path / "d.duckdb")!r}, batches, memory=400 << 20).close()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
    taken = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert taken < 150 << 20
    assert (tmp_path / "d.duckdb").stat().st_size < 165 << 20


def test_nothing_slow_is_imported(tmp_path):
    """Making, opening and reading a database must not wait for libraries that only few commands need."""
    code = f"""
import sys
import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences.check import problems
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.sources import DatabaseSource
batch = SequenceBatch.of(PROTEIN, ["MKVla", "AGIV"], ["a", "b"])
for read_only in (True, False):
    SequenceDatabase.create({str(tmp_path)!r} + f"/{{read_only}}.duckdb", [batch]).close()
    with SequenceDatabase.open({str(tmp_path)!r} + f"/{{read_only}}.duckdb", read_only=read_only) as database:
        source = DatabaseSource(database)
        source.read(source.plan(100)[0])
        source.info(np.array([1, 0]))
        database.extract(["b"])
        problems(database)
print(sorted({{"pandas", "pyarrow", "sqlalchemy", "alembic", "numba", "dnaio"}} & set(sys.modules)))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_an_append_that_can_not_be_brought_into_the_file_is_said_to_be_done(tmp_path, monkeypatch, caplog):
    path = tmp_path / "d.duckdb"
    SequenceDatabase.create(path, [batch(PROTEIN, ["MKV"])]).close()

    def full(*_):
        raise StoreError("the disk is full")

    with SequenceDatabase.open(path, read_only=False) as database, monkeypatch.context() as patch:
        patch.setattr(durable, "checkpoint", full)
        database.append([batch(PROTEIN, ["MKVL"], ["more"])])
        assert database.sequences == 2 and database.extract(["more"]).text(0) == "MKVL"
        assert "were added" in caplog.text and "d.duckdb.wal" in caplog.text and "the disk is full" in caplog.text
    assert (tmp_path / "d.duckdb.wal").exists()
    with SequenceDatabase.open(path) as database:
        assert database.sequences == 2 and not problems(database)
    with SequenceDatabase.open(path, read_only=False) as database:
        database.append([batch(PROTEIN, ["MKVLA"], ["last"])])
    assert os.listdir(tmp_path) == ["d.duckdb"]
    with SequenceDatabase.open(path) as database:
        assert [row["name"] for row in database.list()] == ["s0", "more", "last"] and not problems(database)


def test_a_log_of_a_former_database_never_gets_into_a_new_one(tmp_path):
    path, log = tmp_path / "d.duckdb", tmp_path / "d.duckdb.wal"
    SequenceDatabase.create(path, [batch(PROTEIN, ["MKV"])]).close()
    with duckdb.connect(str(path)) as connection:
        connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        connection.execute("UPDATE database SET title = 'of another file'")
    former = log.read_bytes()
    path.unlink()
    for _ in range(2):
        text = message(lambda: SequenceDatabase.create(path, [batch(PROTEIN, ["AAA"])]), StoreError)
        assert text == (f"{path} isn't there but {log} is, with what was last added to a former file of that name; "
                        "move it to where that file is now, or delete it")
        assert os.listdir(tmp_path) == ["d.duckdb.wal"]
    log.unlink()
    SequenceDatabase.create(path, [batch(PROTEIN, ["AAA"])]).close()
    log.write_bytes(former)
    for read_only in (True, False):
        text = message(lambda mode=read_only: SequenceDatabase.open(path, read_only=mode), StoreError)
        assert text == (f"{log} is the log of another file that was called {path} before; move it to where that file "
                        "is now, or delete it")
    log.unlink()
    with SequenceDatabase.open(path) as database:
        assert database.extract(["s0"]).text(0) == "AAA" and not problems(database)


def test_a_log_that_appears_while_a_database_is_made_stops_it(tmp_path):
    def batches():
        (tmp_path / "d.duckdb.wal").write_text("x")
        yield batch(PROTEIN, ["MKV"])

    assert "isn't there but" in message(lambda: SequenceDatabase.create(tmp_path / "d.duckdb", batches()), StoreError)
    assert os.listdir(tmp_path) == ["d.duckdb.wal"]


def test_sequences_are_found_by_their_accessions(tmp_path):
    names = ["sp|P53508|CSSA1_ECOLX", "gi|12|ref|NP_000005.3|", "NM_000014.6", "P1", "sp|P1|OTHER", "tr|Q2.1|X",
             "tr|Q2.2|Y"]
    with SequenceDatabase.create(tmp_path / "d.duckdb", [batch(PROTEIN, ["MKV"] * 7, names)]) as database:
        for asked, wanted in (("P53508", 0), (names[0], 0), ("NP_000005", 1), ("NP_000005.3", 1), ("NM_000014", 2),
                              ("P1", 3), ("Q2.2", 6)):
            assert database.ordinals([asked]).tolist() == [wanted]
        assert database.ordinals(["P53508", names[0], "NM_000014"]).tolist() == [0, 2]
        assert "no sequence 'NP_000005.4'" in message(lambda: database.ordinals(["NP_000005.4"]), InputError)
        assert message(lambda: database.ordinals(["Q2"]), InputError) == (
            f"{tmp_path}/d.duckdb: 'Q2' may be tr|Q2.1|X or tr|Q2.2|Y; give the whole name")
        assert database.find(["P53508"]) == {}


def test_a_file_that_was_read_may_stay_open_until_the_process_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(database_file, "_left", None)
    path = tmp_path / "left.duckdb"
    sequences = batch(PROTEIN, ["MKV", "ACD"])
    SequenceDatabase.create(path, [sequences]).close()
    database_file.leave_open()
    for _ in range(2):
        with SequenceDatabase.open(path) as database:
            assert_same(database.fetch(np.arange(2)), sequences)
        with pytest.raises(StoreError, match="was closed"):
            database.fetch(np.arange(2))
        assert is_database(path)
    left = database_file._left
    monkeypatch.undo()
    assert len(left) == 2
    for connection in left:
        connection.close()
    database_file._open_here.discard(os.path.realpath(path))
