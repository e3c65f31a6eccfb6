"""Keys cut in ranges: each in the order of the ranges, every key once, equal keys together."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.records import Ragged
from seqloom.plugins.sorting import ranges_cpu
from seqloom.plugins.sorting.ranges_cpu import KeyRange, Ranges, ranges_of, taken

strings = st.sampled_from([b"\x00\xff", b"ACGT", bytes(range(256))]).flatmap(lambda characters: st.lists(
    st.lists(st.sampled_from(characters), max_size=6).map(bytes), min_size=1, max_size=60))


def keys_of(rows: list[bytes]) -> Ragged:
    """The rows, as a part of a longer array."""
    keys = Ragged.of([np.frombuffer(row, np.uint8) for row in [b"zz", *rows]], np.uint8)
    return Ragged(keys.offsets[1:], keys.values)


def checked(rows: list[bytes], ranges: Ranges) -> list[list[bytes]]:
    """Keys of each range; sorting each stably sorts all."""
    assert ranges.rows.dtype == np.int32 and ranges.starts[0] == 0 and ranges.starts[-1] == len(rows)
    found = [ranges.rows[first:last].tolist() for first, last in pairwise(ranges.starts)]
    for number, some in enumerate(found):
        assert some == sorted(some) and (number % 2 == 0 or len({rows[row] for row in some}) == 1)
    assert ranges.unsorted() == [(first, last) for n, (first, last) in enumerate(pairwise(ranges.starts.tolist()))
                                 if n % 2 == 0 and last - first > 1]
    order = [row for some in found for row in sorted(some, key=rows.__getitem__)]
    assert order == sorted(range(len(rows)), key=rows.__getitem__)
    return [[rows[row] for row in some] for some in found]


@settings(max_examples=150, deadline=None)
@given(strings, st.integers(1, 9), st.integers(1, 3))
def test_ranges_are_in_order(rows, wanted, threads):
    checked(rows, ranges_of(keys_of(rows), wanted, threads))


@settings(max_examples=100, deadline=None)
@given(strings, st.data(), st.integers(1, 3))
def test_keys_of_rows_are_copied(rows, data, threads):
    some = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    found = taken(keys_of(rows), np.array(some, np.int32), threads)
    assert [key.tobytes() for key in found] == [rows[row] for row in some] and found.offsets[0] == 0


@pytest.mark.parametrize("threads", [1, 2])
def test_keys_of_one_length_stay_so(threads: int) -> None:
    keys = Ragged.even(np.random.default_rng(1).integers(0, 256, (50, 7), np.uint8))
    rows = np.array([3, 49, 0, 20], np.int32)
    found = taken(keys, rows, threads)
    assert found.width == 7 and np.array_equal(found.values.reshape(-1, 7), keys.values.reshape(-1, 7)[rows])


def test_ranges_have_about_the_same_size() -> None:
    rows = [key.tobytes() for key in np.random.default_rng(2).integers(65, 69, (20_000, 12), np.uint8)]
    for wanted in (2, 5):
        sizes = [len(some) for some in checked(rows, ranges_of(keys_of(rows), wanted, 2))]
        assert len(sizes) == 2 * wanted - 1 and max(sizes) < 1.3 * len(rows) / wanted


def test_a_key_that_most_are_is_a_range_of_its_own() -> None:
    rng = np.random.default_rng(3)
    rows = [b"C" * 9 if common else rng.integers(65, 69, 9, np.uint8).tobytes() for common in rng.random(5000) < 0.9]
    found = checked(rows, ranges_of(keys_of(rows), 4, 2))
    assert [b"C" * 9] * rows.count(b"C" * 9) in found
    assert max(map(len, found[::2])) < 400
    assert list(map(len, checked([b"same"] * 99, ranges_of(keys_of([b"same"] * 99), 3, 1)))) == [0, 99, 0]


def test_more_ranges_than_a_byte_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges_cpu, "_DRAWN", 4)
    rows = [key.tobytes() for key in np.random.default_rng(4).integers(0, 256, (3000, 5), np.uint8)]
    assert len(checked(rows, ranges_of(keys_of(rows), 300, 2))) > 511


@pytest.mark.parametrize("width", [0, 2])
def test_some_keys_and_all(width: int) -> None:
    keys = Ragged.even(np.arange(8, dtype=np.uint8).reshape(4, 2)) if width else keys_of([b"ab", b"cd", b"ef", b"gh"])
    some, places = KeyRange(keys, (2, 2), np.array([1, 3], np.int32)), np.array([1, 0, 1], np.int32)
    assert len(some) == 2 and some.characters(2) == 4 and some.rows_of(places, 2).tolist() == [3, 1, 3]
    assert [key.tolist() for key in some.copied(2)] == [keys[1].tolist(), keys[3].tolist()]
    whole = KeyRange(keys, (2, 2))
    assert len(whole) == 4 and whole.characters(2) == 8 and whole.rows_of(places, 2) is places
    assert whole.copied(2) is keys
