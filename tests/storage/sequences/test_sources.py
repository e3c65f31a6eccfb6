"""Sources of targets: a database, several in a row and a pick all read as the same batch in memory does."""

from dataclasses import replace

import numpy as np
import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.engine.memory import MemorySource
from seqloom.core.errors import InputError
from seqloom.core.sequences import SequenceBatch
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.sources import ChainedSource, DatabaseSource, Pick, PickedSource


def random_batch(seed, count, alphabet=PROTEIN, prefix="s"):
    generator = np.random.default_rng(seed)
    residues = np.frombuffer(b"ACGTNacgtRY", np.uint8)
    texts = [generator.choice(residues, generator.integers(1, 50)).tobytes().decode() for _ in range(count)]
    batch = SequenceBatch.of(alphabet, texts, [f"{prefix}{n}" for n in range(count)])
    return replace(batch, descriptions=[f"about {n}" for n in batch.names])


@pytest.fixture
def database(tmp_path):
    with SequenceDatabase.create(tmp_path / "d.duckdb", [random_batch(1, 20)], "twenty") as database:
        yield database


def assert_same_source(left, right):
    assert (left.alphabet, left.sequences, left.total_residues, left.longest) == (
        right.alphabet, right.sequences, right.total_residues, right.longest)
    for residues in (1, 100, 10_000):
        spans = left.plan(residues)
        assert spans == right.plan(residues)
        for span in spans:
            a, b = left.read(span), right.read(span)
            assert [a.text(n) for n in range(len(a))] == [b.text(n) for n in range(len(b))]
            assert a.ordinals.tolist() == b.ordinals.tolist() == list(range(span.first, span.last))
    for numbers in ([], [0], [3, 4, 9], list(range(left.sequences))):
        a, b = left.fetch(np.array(numbers, np.int64)), right.fetch(np.array(numbers, np.int64))
        assert np.array_equal(a.residues, b.residues)
        assert (list(a.names), list(a.descriptions), a.ordinals.tolist()) == (
            list(b.names), list(b.descriptions), b.ordinals.tolist())
    numbers = np.array([7, 2, 2, left.sequences - 1, 0])
    a, b = left.info(numbers), right.info(numbers)
    assert (a.names, a.descriptions, a.lengths.tolist(), a.numbers.tolist()) == (
        b.names, b.descriptions, b.lengths.tolist(), b.numbers.tolist())
    assert a.lengths.dtype == np.int64


def test_a_database(database):
    source = DatabaseSource(database)
    assert_same_source(source, MemorySource(random_batch(1, 20)))
    assert source.fingerprints() == [{
        "path": str(database.path.resolve()), "fingerprint": database.fingerprint, "title": "twenty",
        "created": database.created, "first_target": 0, "sequences": 20, "letters": database.total_residues}]
    assert source.parsed_names() == [False]


def test_several_in_a_row(database):
    parts = [random_batch(1, 20), random_batch(2, 5, prefix="m"), random_batch(1, 20)]
    chain = ChainedSource([DatabaseSource(database), MemorySource(parts[1], "m.fa"), DatabaseSource(database)])
    together = SequenceBatch.concat(parts)
    whole = MemorySource(replace(together, ordinals=np.arange(45)))
    assert (chain.sequences, chain.total_residues, chain.longest) == (whole.sequences, whole.total_residues,
                                                                      whole.longest)
    for numbers in ([], [0], [19, 20, 24, 25, 44], list(range(45))):
        a, b = chain.fetch(np.array(numbers, np.int64)), whole.fetch(np.array(numbers, np.int64))
        assert np.array_equal(a.residues, b.residues)
        assert list(a.names) == list(b.names) and a.ordinals.tolist() == numbers
    for residues in (1, 100, 10_000):
        spans = chain.plan(residues)
        assert [n for s in spans for n in range(s.first, s.last)] == list(range(45))
        for span in spans:
            batch = chain.read(span)
            assert np.array_equal(batch.residues, whole.read(span).residues)
            assert batch.ordinals.tolist() == list(range(span.first, span.last))
            assert batch.lower.rows() == whole.read(span).lower.rows()
    info = chain.info(np.array([44, 3, 21]))
    assert info.names == ["s19", "s3", "m1"]
    assert info.databases.tolist() == [2, 0, 1]
    assert info.ordinals.tolist() == [19, 3, 1]
    assert [f["first_target"] for f in chain.fingerprints()] == [0, 20, 25]


def test_a_pick(database):
    names = {"s3", "s19", "s4"}
    pick = PickedSource(DatabaseSource(database), Pick.of_names(names))
    assert pick.numbers.tolist() == [3, 4, 19]
    whole = random_batch(1, 20)
    wanted = SequenceBatch.concat([whole.take(n, n + 1) for n in (3, 4, 19)])
    assert (pick.sequences, pick.total_residues, pick.longest) == (3, wanted.total_residues, wanted.lengths.max())
    batch = pick.read(pick.plan(10_000)[0])
    assert [batch.text(n) for n in range(3)] == [wanted.text(n) for n in range(3)]
    assert batch.ordinals.tolist() == [0, 1, 2]
    info = pick.info(np.array([2, 0]))
    assert info.names == ["s19", "s3"] and info.numbers.tolist() == [2, 0] and info.ordinals.tolist() == [19, 3]


def test_a_pick_from_several(database):
    chain = ChainedSource([DatabaseSource(database), MemorySource(random_batch(2, 5, prefix="m"))])
    pick = PickedSource(chain, Pick.of_names({"m4", "s0"}))
    assert pick.numbers.tolist() == [0, 24]
    assert PickedSource(pick, Pick.of_names({"m4"})).numbers.tolist() == [1]


def test_volumes_are_not_read_before_their_residues_are_asked_for(database, monkeypatch):
    def stop(*_):
        raise AssertionError("read")

    source = DatabaseSource(database)
    chain = ChainedSource([source, MemorySource(random_batch(2, 5, prefix="m")), source])
    pick = PickedSource(chain, Pick.of_names({"m4", "s0", "s7"}))
    for each in (source, chain, pick):
        wanted = [(span, each.read(span).residues) for span in each.plan(300)]
        with monkeypatch.context() as patch:
            for method in ("residues", "lower", "rows"):
                patch.setattr(type(database), method, stop)
            volumes = [each.read(span) for span, _ in wanted]
            for volume, (span, residues) in zip(volumes, wanted, strict=True):
                assert volume.ordinals.tolist() == list(range(span.first, span.last))
                assert volume.total_residues == len(residues) == span.total_residues
                assert volume.lengths.max() == span.longest
            with pytest.raises(AssertionError, match="read"):
                volumes[0].load()
        for volume, (_, residues) in zip(volumes, wanted, strict=True):
            assert np.array_equal(volume.residues, residues)


def test_a_pick_of_unknown_names(database):
    with pytest.raises(InputError) as error:
        PickedSource(DatabaseSource(database), Pick.of_names({"s1", "no"}))
    assert str(error.value) == (
        f"{database.path.resolve()}: no sequence 'no'; seqloom db list-sequences shows the names")
    with pytest.raises(InputError, match="is empty; name at least one"):
        PickedSource(DatabaseSource(database), Pick.of_names(set()))


def test_alphabets_do_not_mix(database):
    with pytest.raises(InputError) as error:
        ChainedSource([DatabaseSource(database), MemorySource(random_batch(2, 3, NUCLEOTIDE), "n.fa")])
    assert str(error.value) == (
        f"{database.path.resolve()} holds protein and n.fa nucleotide sequences; search them in two runs")
