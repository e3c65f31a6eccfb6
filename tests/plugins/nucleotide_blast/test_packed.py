"""Bases at two bits each: the same from residues and from a database, and unpacked as they were around hits."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common import xdrop_cpu
from seqloom.plugins.common.xdrop_cpu import PADDING, both_ways
from seqloom.plugins.nucleotide_blast import packed_cpu
from seqloom.plugins.nucleotide_blast.discontiguous_cpu import DiscontiguousWordHitsCpu, DiscontiguousWordsCpu
from seqloom.plugins.nucleotide_blast.discontiguous_reference import DiscontiguousOptions
from seqloom.plugins.nucleotide_blast.gapped_cpu import set_out
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideBasesCpu, NucleotideWordsCpu
from seqloom.plugins.nucleotide_blast.index_reference import BASES, NucleotideBases
from seqloom.plugins.nucleotide_blast.packed_cpu import packed_bits, parts_by_target, real_residues, stretches
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions
from seqloom.plugins.nucleotide_blast.seed_cpu import WordHitsCpu
from seqloom.storage.sequences import stored_batch, writing
from seqloom.storage.sequences.database import SequenceDatabase
from seqloom.storage.sequences.sources import DatabaseSource
from seqloom.testing import assert_same_records


def sequences(seed: int, lengths: list[int]) -> SequenceBatch:
    """Random bases, some of them in runs of ambiguities."""
    generator = np.random.default_rng(seed)
    parts = [generator.integers(0, 4, length).astype(np.uint8) for length in lengths]
    for part in parts:
        for place in generator.integers(0, max(1, len(part)), len(part) // 50):
            part[place : place + generator.integers(1, 20)] = generator.integers(4, 16)
    return SequenceBatch.of(NUCLEOTIDE, parts)


@given(st.integers(0, 1000), st.integers(1, 3000), st.data())
def test_bases_in_reach_are_copied_one_behind_the_other(seed: int, length: int, data: st.DataObject) -> None:
    reached_cuda = pytest.importorskip("seqloom.plugins.nucleotide_blast.reached_cuda", exc_type=ImportError)
    codes = np.random.default_rng(seed).integers(0, 4, length).astype(np.uint8)
    first = np.array(data.draw(st.lists(st.integers(0, length - 1), min_size=1, max_size=9)))
    last = np.minimum(first + data.draw(st.integers(1, 90)), length)
    reached = reached_cuda.Reached.of(first, last)
    copy = reached.copy(reached_cuda.PackedTargets(packed_bits(codes))).bits
    assert len(copy) <= reached.nbytes and len(reached.spans) <= len(first)
    own = np.repeat(copy, 4) >> np.tile([6, 4, 2, 0], len(copy)).astype(np.uint8) & 3
    for begin, end, moved in zip(first, last, reached.moved(first), strict=True):
        assert own[begin + moved : end + moved].tolist() == codes[begin:end].tolist()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 1500), st.data())
def test_stretches_are_unpacked_as_they_were(seed, size, data):
    batch = sequences(seed, [size])
    packed = packed_cpu.packed_of(batch)
    places = st.integers(0, size)
    spans = np.array(data.draw(st.lists(st.tuples(places, places).map(sorted), min_size=1, max_size=5)))
    real = packed.around(stretches(spans[:, 0], spans[:, 1]), real=True)
    forwards, backwards = real.both_ways()
    wanted = both_ways(batch.residues, np.array([0, size]), np.arange(1)).residues[1]
    after = size - real.begin - len(real.codes)
    for first, last in spans.tolist():
        assert np.array_equal(real.codes[first - real.begin : last - real.begin], batch.residues[first:last])
        place = PADDING + first - real.begin
        assert np.array_equal(forwards[place : place + last - first], batch.residues[first:last])
        place = PADDING + size - last
        assert np.array_equal(backwards[place - after : place - after + last - first],
                              wanted[place : place + last - first])


def test_a_database_gives_the_same_bases_and_residues(tmp_path: Path, monkeypatch):
    """Whatever volume, and wherever in a byte and a chunk it begins."""
    monkeypatch.setattr(writing, "CHUNK_RESIDUES", {"protein": 256, "nucleotide": 256})
    whole = sequences(1, [130, 1, 0, 77, 900, 402, 33])
    context = Context(options=None)
    SequenceDatabase.create(tmp_path / "d.duckdb", [whole]).close()
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        source = DatabaseSource(database)
        for span in source.plan(450):
            stored, plain = source.read(span), whole.take(span.first, span.last)
            index = NucleotideBasesCpu().run(context, stored)
            assert np.array_equal(index["bases"], NucleotideBases().run(context, plain)["bases"])
            spans = stretches(plain.offsets[:-1], plain.offsets[1:])
            found = real_residues(Context(options=None, targets=stored, indexes={BASES: index}), spans)
            assert not stored.loaded and np.array_equal(found.codes, plain.residues)


WORDS_OF = [
    (NucleotideBlastOptions(word_size=28), NucleotideWordsCpu, WordHitsCpu),
    (NucleotideBlastOptions(word_size=11), NucleotideWordsCpu, WordHitsCpu),
    *((DiscontiguousOptions(template_length=length, template_type="coding_and_optimal"), DiscontiguousWordsCpu,
       DiscontiguousWordHitsCpu) for length in (16, 21)),
]


@pytest.mark.parametrize(("options", "words", "hits"), WORDS_OF, ids=["28", "11", "templates-16", "templates-21"])
def test_hits_are_the_same_wherever_in_a_byte_a_volume_begins(options, words, hits):
    targets = sequences(4, [700, 1300, 40, 0, 9])
    queries = SequenceBatch.of(NUCLEOTIDE, [targets[1][100:900].copy(), targets[0][20:333].copy()])
    context = Context(queries=queries, targets=targets, options=options)
    index, whole = words().run(context, queries), packed_cpu.packed_of(targets)
    seeds = []
    for first in range(4):
        residues = np.concatenate([np.full(first, 2, np.uint8), targets.residues])
        moved = NucleotideBasesCpu()._of(whole._replace(bits=packed_cpu.packed_bits(residues), first=first), targets)
        assert np.array_equal(moved.packed.whole_bytes[: len(whole.bits) - 16],
                              packed_cpu.packed_bits(moved["bases"])[:-16])
        context = Context(queries=queries, targets=targets, options=options,
                          indexes={index.kind: index, BASES: moved})
        seeds.append(hits().run(context, None))
    assert len(seeds[0]) > 30
    for other in seeds[1:]:
        assert_same_records(seeds[0], other)


def test_few_residues_of_long_targets_are_read(tmp_path: Path, monkeypatch):
    """What is asked for is there, of whatever sequences were fetched, and the whole of them to be had still."""
    monkeypatch.setattr(writing, "CHUNK_RESIDUES", {"protein": 256, "nucleotide": 256})
    monkeypatch.setattr(stored_batch, "BLOCK", 16)
    monkeypatch.setattr("seqloom.storage.sequences.sources.FETCHED_WHOLE", 0)
    whole = sequences(2, [130, 1, 0, 77, 900, 402, 33])
    SequenceDatabase.create(tmp_path / "d.duckdb", [whole]).close()
    generator = np.random.default_rng(3)
    with SequenceDatabase.open(tmp_path / "d.duckdb") as database:
        for numbers in ([0, 3, 4, 6], [4], [0, 1, 2, 3, 4, 5, 6]):
            batch = DatabaseSource(database).fetch(np.array(numbers)).renumbered(np.arange(len(numbers)) + 5)
            plain = np.concatenate([whole[number] for number in numbers])
            for _ in range(5):
                first = generator.integers(0, len(plain), 4)
                last = np.minimum(first + generator.integers(0, 40, 4), len(plain))
                codes = batch.around(first, last)
                assert not batch.loaded
                assert all(np.array_equal(codes[a:b], plain[a:b]) for a, b in zip(first, last))
            assert np.array_equal(batch.residues, plain) and batch.names == [whole.names[n] for n in numbers]


def test_parts_are_cut_by_target_where_that_is_few(monkeypatch):
    monkeypatch.setattr(packed_cpu, "AT_ONCE", 100)
    low, bounds = np.array([0, 50, 120, 120, 350]), np.array([0, 1, 2, 3, 4, 5])
    assert parts_by_target(bounds, 1, low, 100) == [(0, 2), (2, 4), (4, 5)]
    assert parts_by_target(bounds, 1, low, 99) == [(0, 5)]
    monkeypatch.setattr(packed_cpu, "MOST_PARTS", 1)
    assert parts_by_target(bounds, 1, low, 100) == [(0, 5)]
    assert len(parts_by_target(bounds, 2, low, 1 << 40)) == 5 and len(parts_by_target(bounds, 2, low, 1 << 10)) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([22, 60, 115]))
def test_rows_of_two_bits_are_those_of_bytes(seed, x_drop):
    random = np.random.default_rng(seed)
    bases = random.integers(0, 4, 400).astype(np.uint8)
    others = bases.copy()
    changed = random.random(400) < 0.15
    others[changed] = random.integers(0, 4, int(changed.sum()))
    row, column = random.integers(150, 250, 2).tolist()
    matrix = np.where(np.eye(4, dtype=bool), 2, -3).astype(np.int32)
    rows, columns = (xdrop_cpu.both_ways(codes, np.array([0, 400]), np.arange(1)).residues for codes in (bases, others))
    bits = (bases.reshape(-1, 4) << np.array([6, 4, 2, 0], np.uint8)).sum(axis=1, dtype=np.uint8).reshape(1, -1)
    found = []
    for source in (rows, bits):
        space = xdrop_cpu.workspace(400, 400, np.int8)
        set_out(space.passes, source, 0, row, row, 400 - row, columns, 0, column, column, 400 - column)
        costs = xdrop_cpu.Costs.of(matrix, 5, 2, x_drop)
        assert xdrop_cpu.extend(source, columns, costs, None, space, False, None, None)
        found.append(space.passes[:, [xdrop_cpu.TOP, xdrop_cpu.TOP_ROW, xdrop_cpu.TOP_COLUMN]].tolist())
    assert found[0] == found[1]
