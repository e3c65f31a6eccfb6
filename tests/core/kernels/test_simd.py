"""Vectors against numpy: every operation on signed and unsigned lanes, at the width that this process uses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import (
    ALL_LANES,
    BYTE_LANES,
    LOOKUP_ENTRIES,
    LOOKUP_STRIDE,
    bits_of,
    every_lane,
    greater_lanes,
    highest,
    highest_bit,
    highest_bytes,
    in_place,
    load,
    lookup,
    lookup_tables,
    lowered,
    lowered_to,
    lowest_bit,
    mask_bits,
    maximum,
    minimum,
    not_greater_lanes,
    numbers_of,
    picked_bits,
    quads,
    quads_down,
    quads_halves,
    quads_pairs,
    quads_up,
    same_quads,
    shift_in,
    shifted_down,
    splat,
    squeezed,
    store,
    whole_numbers,
    within,
    words_at,
    wrapped_difference,
    wrapped_sum,
)

LANES = BYTE_LANES
TYPES = [np.int8, np.uint8, np.int16, np.uint16]


@kernel
def _arithmetic(left, right, results, place):
    a = load(left, place, LANES)
    b = load(right, place, LANES)
    store(results, 0, a + b)
    store(results, LANES, a - b)
    store(results, 2 * LANES, maximum(a, b))
    store(results, 3 * LANES, minimum(a, b))
    return greater_lanes(a, b)


@kernel
def _compared_in_a_row(rows, limit, among):
    limits = load(limit, 0, LANES)
    for k in range(len(rows) // LANES):
        among = not_greater_lanes(load(rows, k * LANES, LANES), limits, among)
    return among


@kernel
def _within_in_rounds(rows, limit, rounds):
    limits = load(limit, 0, LANES)
    still = every_lane(LANES)
    for _ in range(rounds):
        for k in range(len(rows) // LANES):
            still = within(load(rows, k * LANES, LANES), limits, still)
    return mask_bits(still)


@kernel
def _squeezed(lanes, results):
    store(results, 0, squeezed(load(lanes, 0, LANES), results))


@kernel
def _wrapping(left, right, results):
    a = load(left, 0, LANES)
    b = load(right, 0, LANES)
    store(results, 0, wrapped_sum(a, b))
    store(results, LANES, wrapped_difference(a, b))


@kernel
def _lowered(left, right, results):
    store(results, 0, lowered(load(left, 0, LANES), load(right, 0, LANES)))


@kernel
def _lowered_to(floor, left, right, results):
    least = load(floor, 0, LANES)
    store(results, 0, in_place(lowered_to(least, load(left, 0, LANES), load(right, 0, LANES))))


@kernel
def _bits(left, right, results):
    a = load(left, 0, LANES)
    b = load(right, 0, LANES)
    store(results, 0, a & b)
    store(results, LANES, a | b)
    store(results, 2 * LANES, a ^ b)


@kernel
def _move(values, value, results):
    store(results, 0, splat(value, LANES))
    store(results, LANES, shift_in(load(values, 0, LANES), value))


@kernel
def _look_up(tables, offset, residues, results):
    store(results, 0, lookup(tables, offset, load(residues, 0, LANES)))


@kernel
def _outermost(mask):
    return lowest_bit(mask), highest_bit(mask)


def lanes_of(generator: np.random.Generator, dtype: type, count: int) -> np.ndarray:
    """Random lanes, half of them at or next to the ends of the type and 0, where arithmetic saturates."""
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.min + 1, info.max, info.max - 1, 0, 1])
    values = generator.integers(info.min, info.max, count, endpoint=True)
    return np.where(generator.random(count) < 0.5, generator.choice(ends, count), values).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_bits(dtype: type) -> None:
    generator = np.random.default_rng(5)
    a, b = (lanes_of(generator, dtype, LANES) for _ in range(2))
    results = np.empty(3 * LANES, dtype)
    _bits(a, b, results)
    assert np.array_equal(results.reshape(3, LANES), np.array([a & b, a | b, a ^ b]))


@pytest.mark.parametrize("dtype", TYPES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), place=st.integers(0, 5))
def test_arithmetic_saturates(dtype: type, seed: int, place: int) -> None:
    generator = np.random.default_rng(seed)
    left, right = (lanes_of(generator, dtype, LANES + 8) for _ in range(2))
    results = np.empty(4 * LANES, dtype)
    above = int(_arithmetic(left, right, results, place))
    a, b = (values[place : place + LANES] for values in (left, right))
    wide = a.astype(int), b.astype(int)
    info = np.iinfo(dtype)
    wanted = [np.clip(sum(wide), info.min, info.max), np.clip(wide[0] - wide[1], info.min, info.max),
              np.maximum(a, b), np.minimum(a, b)]
    assert np.array_equal(results.reshape(4, LANES), np.array(wanted).astype(dtype))
    assert [above >> lane & 1 for lane in range(64)] == [*(a > b).astype(int).tolist(), *[0] * (64 - LANES)]


@pytest.mark.parametrize("dtype", TYPES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(0, 4), among=st.integers(0, int(ALL_LANES)))
def test_comparisons_in_a_row(dtype: type, seed: int, count: int, among: int) -> None:
    generator = np.random.default_rng(seed)
    rows, limit = lanes_of(generator, dtype, count * LANES), lanes_of(generator, dtype, LANES)
    kept = (rows.reshape(count, LANES) <= limit).all(axis=0)
    wanted = [among >> lane & 1 if kept[lane] else 0 for lane in range(LANES)]
    found = int(_compared_in_a_row(rows, limit, np.uint64(among)))
    assert [found >> lane & 1 for lane in range(64)] == [*wanted, *[0] * (64 - LANES)]
    for rounds in (0, 1, 3):
        still = int(_within_in_rounds(rows, limit, rounds))
        assert [still >> lane & 1 for lane in range(64)] == [
            *(int(kept[lane] or not rounds) for lane in range(LANES)), *[0] * (64 - LANES)]


@pytest.mark.parametrize("dtype", TYPES)
def test_arithmetic_wraps_where_asked(dtype: type) -> None:
    generator = np.random.default_rng(6)
    a, b = (lanes_of(generator, dtype, LANES) for _ in range(2))
    results = np.empty(2 * LANES, dtype)
    _wrapping(a, b, results)
    assert np.array_equal(results.reshape(2, LANES), np.array([a + b, a - b]))


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_lowered_stops_at_0(dtype: type) -> None:
    generator = np.random.default_rng(7)
    a, b = (lanes_of(generator, dtype, LANES) & np.iinfo(dtype).max for _ in range(2))
    results = np.empty(LANES, dtype)
    _lowered(a, b, results)
    assert np.array_equal(results, np.where(a > b, a - b, 0))


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_lowered_to_stops_at_the_floor(dtype: type) -> None:
    generator = np.random.default_rng(8)
    most = np.iinfo(dtype).max // 4
    floor, above, by = (generator.integers(low, most + 1, LANES).astype(dtype) for low in (-3 * most, 0, 0))
    results = np.empty(LANES, dtype)
    _lowered_to(floor, floor + above, by, results)
    assert np.array_equal(results, np.maximum(floor + above - by, floor))


@pytest.mark.parametrize("dtype", TYPES)
def test_splat_and_shift(dtype: type) -> None:
    values = lanes_of(np.random.default_rng(1), dtype, LANES)
    results = np.empty(2 * LANES, dtype)
    value = dtype(np.iinfo(dtype).min + 7)
    _move(values, value, results)
    assert (results[:LANES] == value).all()
    assert results[LANES:].tolist() == [value, *values[:-1]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), row=st.integers(0, 4))
def test_look_up_in_32_entries(dtype: type, seed: int, row: int) -> None:
    generator = np.random.default_rng(seed)
    rows = lanes_of(generator, dtype, 5 * LOOKUP_ENTRIES).reshape(5, LOOKUP_ENTRIES)
    residues = generator.integers(0, LOOKUP_ENTRIES, LANES).astype(np.uint8)
    results = np.empty(LANES, dtype)
    _look_up(lookup_tables(rows), row * LOOKUP_STRIDE, residues, results)
    assert np.array_equal(results, rows[row][residues])


@given(st.integers(1, 2**64 - 1))
def test_outermost_bits(mask: int) -> None:
    lowest, highest = _outermost(np.uint64(mask))
    assert (int(lowest), int(highest)) == ((mask & -mask).bit_length() - 1, mask.bit_length() - 1)


FLOATS = BYTE_LANES // 4


@kernel
def _float_arithmetic(left, right, results):
    a, b = load(left, 0, FLOATS), load(right, 0, FLOATS)
    store(results, 0, a + b)
    store(results, FLOATS, a - b)
    store(results, 2 * FLOATS, a * b)
    store(results, 3 * FLOATS, a / b)
    store(results, 4 * FLOATS, maximum(a, b))
    store(results, 5 * FLOATS, a * b + a)
    store(results, 6 * FLOATS, minimum(a, b))
    return greater_lanes(a, b)


@kernel
def _fours(values, places, results):
    lanes = quads(values, places, 1, FLOATS)
    store(results, 0, lanes)
    store(results, FLOATS, same_quads(values, 2, FLOATS))
    store(results, 2 * FLOATS, quads_up(lanes))
    store(results, 3 * FLOATS, quads_down(lanes))
    store(results, 4 * FLOATS, quads_pairs(lanes))
    store(results, 5 * FLOATS, quads_halves(lanes))


@given(st.integers(0, 2**32 - 1))
def test_single_precision_is_rounded_operation_by_operation(seed: int) -> None:
    left, right = np.random.default_rng(seed).normal(0, 1e3, (2, FLOATS)).astype(np.float32)
    right[0] = left[0]
    results = np.empty((7, FLOATS), np.float32)
    mask = _float_arithmetic(left, right, results.reshape(-1))
    expected = (left + right, left - right, left * right, left / right, np.maximum(left, right), left * right + left,
                np.minimum(left, right))
    assert np.array_equal(results, np.array(expected, np.float32))
    assert [bool(int(mask) >> lane & 1) for lane in range(FLOATS)] == (left > right).tolist()


def test_lanes_move_within_their_four() -> None:
    values = np.arange(100, 140, dtype=np.float32)
    places = np.arange(FLOATS // 4) * 3
    results = np.empty((6, FLOATS // 4, 4), np.float32)
    _fours(values, places, results.reshape(-1))
    fours = np.array([values[place + 1 : place + 5] for place in places])
    zeros = np.zeros((len(fours), 1), np.float32)
    expected = (fours, np.tile(values[2:6], (len(fours), 1)), np.hstack([zeros, fours[:, :3]]),
                np.hstack([fours[:, 1:], zeros]), fours[:, [1, 0, 3, 2]], fours[:, [2, 3, 0, 1]])
    assert np.array_equal(results, np.array(expected))


@kernel
def _wholes(values, whole, bytes_):
    numbers = whole_numbers(load(values, 0, FLOATS))
    store(whole, 0, numbers)
    store(bytes_, 0, highest_bytes(numbers))


@given(st.integers(0, 2**32 - 1))
def test_whole_numbers_and_their_highest_bytes(seed: int) -> None:
    values = np.random.default_rng(seed).uniform(-2.0**31, 2.0**31 - 129, FLOATS).astype(np.float32)
    values[0] = -0.75
    whole, found = np.empty(FLOATS, np.int32), np.empty(FLOATS, np.uint8)
    _wholes(values, whole, found)
    assert np.array_equal(whole, values.astype(np.int32))
    assert np.array_equal(found, whole.view(np.uint32) >> 24)


@kernel
def _bits_and_back(values, bits, above, again):
    found = bits_of(load(values, 0, FLOATS))
    store(bits, 0, found)
    store(above, 0, shifted_down(found, 20))
    store(again, 0, numbers_of(found))


@pytest.mark.parametrize(("numbers", "integers"), [(np.float32, np.int32), (np.float64, np.int64)])
@given(st.integers(0, 2**32 - 1))
def test_bits_of_numbers(numbers: type, integers: type, seed: int) -> None:
    bits = np.random.default_rng(seed).integers(np.iinfo(integers).min, np.iinfo(integers).max, FLOATS, integers)
    found, above, again = np.empty_like(bits), np.empty_like(bits), np.empty_like(bits)
    _bits_and_back(bits.view(numbers), found, above, again.view(numbers))
    assert np.array_equal(found, bits) and np.array_equal(again, bits)
    assert np.array_equal(above, (bits.view(f"u{bits.itemsize}") >> 20).astype(integers))


@kernel
def _highest_lane(values):
    return highest(load(values, 0, LANES))


@pytest.mark.parametrize("dtype", TYPES)
@given(seed=st.integers(0, 2**32 - 1))
def test_highest_of_all_lanes(dtype: type, seed: int) -> None:
    about = np.iinfo(dtype)
    values = np.random.default_rng(seed).integers(about.min, about.max, LANES, dtype, endpoint=True)
    assert _highest_lane(values) == values.max()


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@given(st.integers(0, 2**32 - 1))
def test_low_bits_of_eight_lanes_become_a_number(bits: int, seed: int) -> None:
    lanes = np.random.default_rng(seed).integers(0, 1 << bits, LANES).astype(np.uint8)
    results = np.empty(LANES // 8, f"u{bits}")
    _squeezed(lanes, results)
    assert results.tolist() == [sum(int(lane) << bits * n for n, lane in enumerate(eight)) for eight in
                                lanes.reshape(-1, 8)]


def test_the_package_hands_on_all_that_kernels_are_written_with() -> None:
    from seqloom.core import kernels
    from seqloom.core.kernels import jit, simd

    assert set(kernels.__all__) == {"inline", "kernel", *simd.__all__}
    assert all(getattr(kernels, name) is getattr(simd, name) for name in simd.__all__)
    assert kernels.kernel is jit.kernel and kernels.inline is jit.inline


@kernel
def _words(values, places, results):
    store(results, 0, words_at(values, load(places, 0, FLOATS)))


def test_words_of_bytes_from_any_places_on() -> None:
    random = np.random.default_rng(3)
    values = random.integers(0, 256, 100).astype(np.uint8)
    places, results = random.integers(0, 97, FLOATS).astype(np.int32), np.empty(FLOATS, np.uint32)
    _words(values, places, results)
    assert results.tolist() == [int.from_bytes(values[place : place + 4].tobytes(), "little") for place in places]


@kernel
def _picked(numbers, masks, found):
    for k in range(len(numbers)):
        found[k] = picked_bits(numbers[k], masks[k])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 2)), min_size=1, max_size=20))
def test_picked_bits_stand_side_by_side(rows):
    numbers, masks = np.array(rows, np.uint64).T.copy()
    found = np.empty_like(numbers)
    _picked(numbers, masks, found)
    for number, mask, bits in zip(numbers.tolist(), masks.tolist(), found.tolist(), strict=True):
        wanted = "".join(a for a, b in zip(f"{number:064b}", f"{mask:064b}", strict=True) if b == "1")
        assert bits == int(wanted or "0", 2)
