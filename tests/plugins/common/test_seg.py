"""SEG against a second, slow formulation window by window, and masks of small examples."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import OptionError
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common import seg_cpu, seg_masker
from seqloom.plugins.common.lower_case import LowerCase
from seqloom.plugins.common.seg import AMINO_ACIDS, low_complexity
from seqloom.plugins.common.seg_cpu import mask_low_complexity
from seqloom.plugins.common.seg_masker import Seg, SegOptions

simple = st.text(alphabet="AAAAAQQQSSGPLKX", max_size=90)
mixed = st.text(alphabet=AMINO_ACIDS + "XBU", max_size=60)
sequences = st.tuples(mixed, simple, mixed).map("".join)


def log_factorial(number: int) -> float:
    return round(math.log(math.factorial(number)), 6)


def entropy(text: str) -> float | None:
    counts = Counter(residue for residue in text if residue in AMINO_ACIDS)
    total = counts.total()
    if len(text) - total > 2:
        return None
    return sum(-n / total * math.log2(n / total) for n in counts.values()) if total else 0.0


def log_probability(text: str) -> float:
    counts = sorted((text.count(residue) for residue in AMINO_ACIDS), reverse=True)
    ways = log_factorial(20)
    if counts[0]:
        for value in sorted(set(counts), reverse=True):
            ways -= log_factorial(counts.count(value))
    orders = log_factorial(len(text))
    for count in counts:
        orders -= log_factorial(count)
    return ways + orders - len(text) * math.log(20)


def trim(text: str) -> tuple[int, int]:
    best, place = 1.0, (0, len(text))
    for length in range(len(text), max(len(text) - 50, 1), -1):
        for start in range(len(text) - length + 1):
            probability = log_probability(text[start : start + length])
            if probability < best:
                best, place = probability, (start, start + length)
    return place


def slow_seg(text: str, window: int, locut: float, hicut: float) -> list[tuple[int, int]]:
    """Window by window, positions counted as the centres of windows, as the algorithm is described."""
    before = (window + 1) // 2 - 1
    after = window - before
    values = {}
    for centre in range(before, len(text) - after + 1):
        value = entropy(text[centre - before : centre + after])
        if value is not None:
            values[centre] = value
    found = []
    centre = lowest = before
    while centre <= len(text) - after:
        if values.get(centre, 99) <= locut:
            low = high = centre
            while low - 1 >= lowest and values.get(low - 1, 99) <= hicut:
                low -= 1
            while values.get(high + 1, 99) <= hicut:
                high += 1
            first, last = low - before, high + after
            start, end = trim(text[first:last])
            start, end = first + start, first + end
            if centre + after - 1 < start:
                found += [(first + a, first + b) for a, b in slow_seg(text[first:start], window, locut, hicut)[-1:]]
            found.append((start, end))
            centre = min(high, end - 1 + before)
            lowest = centre + 1
        centre += 1
    return found


@settings(max_examples=60, deadline=None)
@given(sequences)
def test_default_parameters_against_the_slow_formulation(text):
    assert low_complexity(PROTEIN.encode(text)) == slow_seg(text, 12, 2.2, 2.5)


@settings(max_examples=40, deadline=None)
@given(sequences, st.integers(3, 20))
def test_other_windows_against_the_slow_formulation(text, window):
    assert low_complexity(PROTEIN.encode(text), window, 1.5, 1.9) == slow_seg(text, window, 1.5, 1.9)


@given(sequences)
def test_intervals_lie_inside_and_depend_on_the_sequence_alone(text):
    batch = SequenceBatch.of(PROTEIN, [text, text])
    found = Seg().intervals(batch)
    for _, start, end in found.rows():
        assert 0 <= start < end <= len(text)
    assert found.of_sequence(0).tolist() == found.of_sequence(1).tolist()


def test_short_and_plain_sequences_have_none():
    for text in ("", "MKV", "A" * 11, AMINO_ACIDS * 3):
        assert low_complexity(PROTEIN.encode(text)) == []
    assert low_complexity(PROTEIN.encode("A" * 30)) == [(0, 30)]


def test_lower_case():
    batch = SequenceBatch.of(PROTEIN, ["MKvlaWW", "ACD"])
    assert LowerCase().intervals(batch).rows() == [(0, 2, 5)]


def test_contradicting_cutoffs_are_refused():
    with pytest.raises(OptionError, match="locut"):
        build_options(SegOptions, {"locut": 3.0, "hicut": 2.5})


@pytest.mark.parametrize(("text", "settings", "expected"), [
    ("KNKNKNKNKN", (10, 1.0, 1.0), []),  # the peer's table makes this slightly more than one bit
    ("KNKNKNKNKNKN", (12, 1.0, 1.0), [(0, 12)]),
    ("TTTRLPPRIVVVV", (6, 2.2, 3.2), [(3, 8), (9, 13)]),  # 0–2 was found and dropped
])
def test_stretches_are_those_of_segmasker_where_its_rounding_and_its_lists_decide(text, settings, expected):
    assert low_complexity(PROTEIN.encode(text), *settings) == expected


PARAMETERS = [(10, 1.8, 2.1), (12, 2.2, 2.5), (3, 0.5, 1.5), (1, 0.0, 0.0), (2, 0.0, 4.0), (25, 3.0, 3.3)]


@settings(deadline=None, max_examples=150)
@given(st.lists(sequences, max_size=4), st.sampled_from(PARAMETERS), st.sampled_from([1, 1 << 14]))
def test_kernels_find_the_same_stretches(texts, parameters, room):
    batch = SequenceBatch.of(PROTEIN, texts)
    found = []
    for few, rows in ((1 << 15, 0), (0, room)):  # without kernels, and with them
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(seg_masker, "_FEW", few)
            patch.setattr(seg_cpu, "_ROWS", rows)
            intervals = Seg(SegOptions(*parameters)).intervals(batch)
            found.append((intervals.rows(), intervals.start.dtype, intervals.start.flags.c_contiguous))
    assert found[0] == found[1]


@settings(deadline=None, max_examples=150)
@given(st.lists(sequences, min_size=1, max_size=4), st.sampled_from(PARAMETERS))
def test_kernels_mask_the_same_stretches(texts, parameters):
    batch = SequenceBatch.of(PROTEIN, texts)
    masked, biased = batch.residues.copy(), np.zeros(len(batch), np.bool_)
    for first in range(len(batch)):
        mask_low_complexity(batch.residues, batch.offsets, first, first + 1, parameters, masked, biased)
    for place in range(len(batch)):
        wanted, found = batch[place].copy(), low_complexity(batch[place], *parameters)
        for begin, end in found:
            wanted[begin:end] = PROTEIN.unknown_code
        assert np.array_equal(masked[batch.offsets[place] : batch.offsets[place + 1]], wanted)
        assert biased[place] == bool(found)
