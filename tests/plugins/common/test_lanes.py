"""The lane-interleaved copy of a volume: every residue in its column and lane, padding everywhere else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.lanes import COLUMNS, PAD, grouped, interleaved, laid_out
from seqloom.testing import check_stage


def check(lengths: list[int], lanes: int) -> None:
    generator = np.random.default_rng(len(lengths))
    targets = SequenceBatch.of(PROTEIN, [generator.integers(1, 28, length).astype(np.uint8) for length in lengths])
    index = interleaved(targets, lanes)
    columns, starts, order = index["columns"], index["starts"], index["order"]
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert (np.diff(targets.lengths[order]) <= 0).all(), "longest first"
    assert len(starts) == -(-len(lengths) // lanes) + 1 and starts[-1] == len(columns)
    for group in range(len(starts) - 1):
        block = columns[starts[group] : starts[group + 1]].reshape(-1, lanes)
        assert len(block) % COLUMNS == 0
        for lane in range(lanes):
            place = group * lanes + lane
            residues = targets[int(order[place])] if place < len(order) else np.empty(0, np.uint8)
            assert np.array_equal(block[: len(residues), lane], residues)
            assert (block[len(residues) :, lane] == PAD).all()
        longest = targets.lengths[order[group * lanes]]
        assert len(block) < longest + COLUMNS, "no more padding than a step of the kernels"


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=70), st.sampled_from([8, 16, 32, 64]))
def test_interleaving(lengths: list[int], lanes: int) -> None:
    check(lengths, lanes)


@pytest.mark.parametrize("count", [1, BYTE_LANES - 1, BYTE_LANES, BYTE_LANES + 1])
def test_counts_around_the_lanes(count: int) -> None:
    check([17] * count, BYTE_LANES)
    check([0] * count, BYTE_LANES)
    check([3000, *[1] * (count - 1)], BYTE_LANES)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=300), st.sampled_from([8, 64]), st.data())
def test_groups_are_laid_out_when_they_are_needed(lengths: list[int], lanes: int, data: st.DataObject) -> None:
    generator = np.random.default_rng(len(lengths))
    targets = SequenceBatch.of(PROTEIN, [generator.integers(1, 28, length).astype(np.uint8) for length in lengths])
    index, whole = grouped(targets, lanes), interleaved(targets, lanes)
    assert np.array_equal(index["order"], whole["order"]) and "columns" not in index.arrays
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, len(whole["starts"]) - 1)] * 2)))
    for some in index, whole:
        columns, starts = laid_out(some, first, last)
        low, high = whole["starts"][[first, last]]
        assert np.array_equal(columns[starts[0] : starts[-1]], whole["columns"][low:high])
        assert np.array_equal(starts - starts[0], whole["starts"][first : last + 1] - low)


def test_declaration() -> None:
    check_stage("lane-interleaved")
