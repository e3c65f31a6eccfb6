"""Batches of sequences and intervals on them."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import AlphabetError
from seqloom.core.sequences import Intervals, ModelBatch, SequenceBatch, UnreadBatch, offsets_of

LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=6)


@st.composite
def masks(draw) -> tuple[np.ndarray, np.ndarray]:
    offsets = offsets_of(draw(LENGTHS))
    return np.array(draw(st.lists(st.booleans(), min_size=int(offsets[-1]), max_size=int(offsets[-1]))), bool), offsets


@st.composite
def stretches(draw) -> tuple[list[tuple[int, int, int]], np.ndarray]:
    lengths = draw(LENGTHS)
    rows = []
    for _ in range(draw(st.integers(0, 6))):
        sequence = draw(st.integers(0, len(lengths) - 1))
        start = draw(st.integers(0, lengths[sequence]))
        rows.append((sequence, start, draw(st.integers(start, lengths[sequence]))))
    return rows, offsets_of(lengths)


@given(masks())
def test_runs_of_a_mask_give_the_mask_back_and_never_cross_sequences(case) -> None:
    mask, offsets = case
    runs = Intervals.from_mask(mask, offsets)
    assert np.array_equal(runs.mask(offsets), mask)
    for sequence, start, end in runs.rows():
        assert 0 <= start < end <= offsets[sequence + 1] - offsets[sequence]
        whole = mask[offsets[sequence] : offsets[sequence + 1]]
        assert start == 0 or not whole[start - 1], "runs are maximal"
        assert end == len(whole) or not whole[end], "runs are maximal"
    assert runs.rows() == sorted(runs.rows())


@given(stretches())
def test_mask_is_the_union_of_stretches(case) -> None:
    rows, offsets = case
    wanted = np.zeros(int(offsets[-1]), bool)
    for sequence, start, end in rows:
        wanted[offsets[sequence] + start : offsets[sequence] + end] = True
    assert np.array_equal(Intervals.of(rows).mask(offsets), wanted)


@given(stretches(), stretches())
def test_merged_keeps_all_stretches_in_order(one, other) -> None:
    merged = Intervals.of(one[0]).merged(Intervals.of(other[0]))
    assert merged.rows() == sorted(one[0] + other[0])


def test_stretches_of_one_sequence() -> None:
    intervals = Intervals.of([(2, 5, 9), (0, 1, 2), (2, 0, 3)])
    assert intervals.of_sequence(2).tolist() == [[0, 3], [5, 9]]
    assert intervals.of_sequence(1).tolist() == []
    assert len(intervals) == 3
    assert len(Intervals.empty()) == 0


def batch() -> SequenceBatch:
    return SequenceBatch.of(PROTEIN, ["acDEF", "", "GHik", "LMNP"], names=["a", "b", "c", "d"], first=10)


def test_a_batch_of_texts() -> None:
    made = batch()
    assert len(made) == 4
    assert made.total_residues == 13
    assert made.lengths.tolist() == [5, 0, 4, 4]
    assert made.ordinals.tolist() == [10, 11, 12, 13]
    assert made.lower.rows() == [(0, 0, 2), (2, 2, 4)]
    assert [made.text(n) for n in range(4)] == ["acDEF", "", "GHik", "LMNP"]
    assert made.nbytes >= 13 + 40 + 32
    assert SequenceBatch.of(PROTEIN, ["A"], first=4).names == ["sequence_5"]
    with pytest.raises(AlphabetError, match="position 2"):
        SequenceBatch.of(NUCLEOTIDE, ["AE"])


def test_no_sequences_make_an_empty_batch() -> None:
    made = SequenceBatch.of(PROTEIN, [])
    assert (len(made), made.total_residues, made.searched().size, made.indexable().size) == (0, 0, 0, 0)
    assert len(made.take(0, 0)) == 0


def test_sequences_are_found_by_global_number() -> None:
    made = batch()
    assert made.locate(np.array([13, 10])).tolist() == [3, 0]
    assert PROTEIN.decode(made.by_ordinal(12)) == "GHIK"


@given(LENGTHS, st.data())
def test_taking_a_part_keeps_residues_masks_and_numbers(lengths, data) -> None:
    texts = ["".join(data.draw(st.sampled_from("ACac")) for _ in range(n)) for n in lengths]
    made = SequenceBatch.of(NUCLEOTIDE, texts, first=7)
    low = data.draw(st.integers(0, len(lengths)))
    high = data.draw(st.integers(low, len(lengths)))
    part = made.take(low, high)
    assert [part.text(n) for n in range(len(part))] == texts[low:high]
    assert part.ordinals.tolist() == list(range(7 + low, 7 + high))
    assert list(part.names) == list(made.names[low:high])
    whole = made.lower.mask(made.offsets)[made.offsets[low] : made.offsets[high]]
    assert np.array_equal(part.lower.mask(part.offsets), whole)


@given(st.lists(LENGTHS, min_size=1, max_size=4))
def test_batches_one_behind_the_other_hold_what_each_holds(parts) -> None:
    batches, first = [], 100
    for lengths in parts:
        texts = ["acD"[:n % 3] + "W" * (n - n % 3) for n in lengths]
        made = SequenceBatch.of(PROTEIN, texts, first=first)
        batches.append(replace(made, soft=made.lower, hard=made.lower))
        first += len(lengths) + 5
    whole = SequenceBatch.concat(batches)
    place = 0
    for part in batches:
        back = whole.take(place, place + len(part))
        place += len(part)
        assert np.array_equal(back.residues, part.residues) and np.array_equal(back.offsets, part.offsets)
        assert np.array_equal(back.ordinals, part.ordinals) and list(back.names) == list(part.names)
        assert back.lower.rows() == back.soft.rows() == back.hard.rows() == part.lower.rows()
    assert place == len(whole)


def test_batches_with_and_without_descriptions_keep_them_by_their_sequences() -> None:
    bare = SequenceBatch.of(PROTEIN, ["AC", "D"])
    told = replace(SequenceBatch.of(PROTEIN, ["EF"]), descriptions=["of it"])
    assert SequenceBatch.concat([bare, told]).descriptions == ["", "", "of it"]
    assert SequenceBatch.concat([told, bare]).descriptions == ["of it", "", ""]
    assert SequenceBatch.concat([bare, bare]).descriptions == []


def test_hard_masks_hide_residues_and_soft_masks_keep_them_out_of_indexes() -> None:
    made = batch()
    masked = replace(made, soft=Intervals.of([(0, 3, 5)]), hard=Intervals.of([(2, 0, 2)]))
    assert PROTEIN.decode(masked.searched()) == "ACDEFXXIKLMNP"
    assert PROTEIN.decode(masked.residues) == "ACDEFGHIKLMNP"
    assert np.flatnonzero(~masked.indexable()).tolist() == [3, 4, 5, 6]
    assert made.searched() is made.residues
    assert made.indexable().all()


def unread(made: SequenceBatch, reads: list[str]) -> UnreadBatch:
    def read(name: str):
        reads.append(name)
        time.sleep(0.02)  # time for another thread to come
        return getattr(made, name)

    return UnreadBatch.from_readers(made.alphabet, made.offsets, made.ordinals, lambda: read("residues"),
                                    lambda: read("lower"))


def test_what_is_not_asked_for_is_not_read() -> None:
    made, reads = batch(), []
    later = unread(made, reads)
    assert (len(later), later.total_residues, later.nbytes) == (len(made), made.total_residues, made.nbytes)
    assert later.lengths.tolist() == made.lengths.tolist() and later.locate(int(made.ordinals[1])) == 1
    other = later.renumbered(made.ordinals + 100)
    assert reads == []
    assert np.array_equal(other.residues, made.residues) and other.residues is later.residues
    assert reads == ["residues"] and other.ordinals.tolist() == (made.ordinals + 100).tolist()
    other.load()
    assert [later.text(n) for n in range(len(made))] == [made.text(n) for n in range(len(made))]
    assert reads == ["residues", "lower"]
    part = replace(later, hard=Intervals.of([(0, 0, 1)])).take(0, 1)
    assert PROTEIN.decode(part.searched()) == "X" + PROTEIN.decode(made[0][1:])
    with pytest.raises(AttributeError, match="no attribute 'residue'"):
        later.residue  # noqa: B018


def test_threads_that_ask_at_the_same_time_read_once() -> None:
    made, reads = batch(), []
    later = unread(made, reads)
    with ThreadPoolExecutor(4) as pool:
        arrays = list(pool.map(lambda _: later.residues, range(8)))
    assert reads == ["residues"] and all(array is made.residues for array in arrays)


def test_a_read_that_failed_is_tried_again() -> None:
    made, fails = batch(), [OSError("disk on fire")]

    def read() -> np.ndarray:
        if fails:
            raise fails.pop()
        return made.residues

    later = UnreadBatch.from_readers(made.alphabet, made.offsets, made.ordinals, read, Intervals.empty)
    with pytest.raises(OSError, match="disk on fire"):
        later.load()
    assert later[0].tolist() == made[0].tolist()


def test_models_are_taken_like_sequences() -> None:
    models = ModelBatch(PROTEIN, ["x", "y", "z"], np.array([3, 5, 7]), np.array([0, 1, 2]), ["X", "Y", "Z"],
                        sources=["sx", "sy", "sz"])
    part = models.take(1, 3)
    assert (len(part), part.total_residues, part[0], part.names, part.sources) == (2, 12, "y", ["Y", "Z"], ["sy", "sz"])
    assert int(part.locate(2)) == 1
    assert models.nbytes > 0


def test_models_one_behind_the_other() -> None:
    bare = ModelBatch(PROTEIN, ["x"], np.array([3]), np.array([7]), ["first"])
    told = ModelBatch(PROTEIN, ["y", "z"], np.array([5, 6]), np.array([0, 1]), ["second", "third"], ["A1", "A2"])
    whole = ModelBatch.concat([bare, told])
    assert (whole.models, whole.names, whole.accessions) == (["x", "y", "z"], ["first", "second", "third"],
                                                             ["", "A1", "A2"])
    assert whole.lengths.tolist() == [3, 5, 6] and whole.ordinals.tolist() == [7, 0, 1]
    assert whole.renumbered(np.arange(3)).ordinals.tolist() == [0, 1, 2]
    assert (whole.descriptions, whole.sources) == ([], [])
