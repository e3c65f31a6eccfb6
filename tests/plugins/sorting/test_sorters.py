"""Every sorter against Python's own stable sort of byte strings."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.keys import byte_keys
from seqloom.core.records import Ragged
from seqloom.core.stages import Sorter, row_type
from seqloom.plugins.sorting import lsd_radix_cpu, msd_radix_cpu, multikey_quicksort_cpu, threads_cpu
from seqloom.plugins.sorting.plugin import seqloom_sorters

SORTERS = [(sorter, threads) for sorter in seqloom_sorters() for threads in (1, 3)
           if sorter.backend == "cpu" or (sorter.backend == "reference" and threads == 1)]


@pytest.fixture(params=SORTERS, ids=lambda s: f"{s[0].name}-{s[0].backend}-{s[1]}", scope="module")
def sorter(request) -> Iterator[Sorter]:
    """A sorter; few keys are sorted like many, and with several threads by all of them."""
    deferred, threads = request.param
    found = deferred.load()()
    found.threads = threads
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads_cpu, "LEAST", 40 if threads > 1 else threads_cpu.LEAST)
        patch.setattr(msd_radix_cpu, "FEW_KEYS", 0)
        yield found


def check(sorter: Sorter, strings: list[bytes]) -> None:
    keys = Ragged.of([np.frombuffer(s, np.uint8) for s in strings], np.uint8)
    order = sorter.order(keys)
    assert order.dtype == np.int32 == row_type(len(strings))
    assert order.tolist() == sorted(range(len(strings)), key=strings.__getitem__)


@pytest.mark.parametrize("alphabet", [b"\x00\xff", b"ACGT", bytes(range(256))], ids=["two", "four", "all"])
def test_random_strings_of_any_length(sorter, alphabet):
    characters = st.sampled_from([bytes([b]) for b in alphabet])
    strings = st.lists(st.lists(characters, max_size=9).map(b"".join), max_size=40)

    @settings(max_examples=80, deadline=None)
    @given(strings)
    def property_(rows):
        check(sorter, rows)

    property_()


@pytest.mark.parametrize("strings", [
    [], [b""], [b"", b"", b""], [b"\x00", b"", b"\x00\x00", b""], [b"same"] * 50, [b"a" * n for n in range(60)],
    [b"a" * n for n in range(60, 0, -1)], [b"a" * 300 + bytes([n]) for n in (3, 1, 2, 1)],
    [bytes([n]) for n in range(255, -1, -1)] * 2, [b"x" * 500, b"", b"x" * 499, b"y"],
], ids=str)
def test_edge_cases(sorter, strings):
    check(sorter, strings)


def test_skewed_keys(sorter):
    rng = np.random.default_rng(5)
    lengths = np.minimum(rng.zipf(1.4, 3000), 200)
    check(sorter, [rng.choice([0, 65, 66], n, p=[0.02, 0.9, 0.08]).astype(np.uint8).tobytes() for n in lengths])


@pytest.mark.parametrize("characters", [b"AC", b"ACGT", bytes(range(256))], ids=["two", "four", "all"])
@pytest.mark.parametrize("width", [1, 3, 8, 20, 33, 70])
def test_keys_of_one_width(sorter, characters, width):
    rng = np.random.default_rng(width)
    values = rng.choice(np.frombuffer(characters, np.uint8), 3000 * width)
    order = sorter.order(Ragged(np.arange(3001) * width, values))
    assert order.tolist() == sorted(range(3000), key=lambda n: values[n * width : (n + 1) * width].tobytes())


@pytest.mark.parametrize("tail", [b"", b"AC", b"ACGT"], ids=["equal", "two", "four"])
@pytest.mark.parametrize("head", [0, 100])
def test_many_keys_with_a_common_prefix(sorter, head, tail):
    rng = np.random.default_rng(head)
    characters = np.frombuffer(tail or b"A", np.uint8)
    ends = [rng.choice(characters, n).tobytes() for n in (rng.integers(0, 60, 30_000) if tail else [9] * 30_000)]
    check(sorter, [b"T" * head + end for end in ends])


def test_characters_that_come_late_are_sorted_too(sorter):
    check(sorter, [b"ACGTACGT"] * 5000 + [b"ACZTACGT", b"ACGTACG\x00"] + [b"CCGTACGT"] * 10)


def test_part_of_a_longer_array(sorter):
    values = np.frombuffer(b"zzzbacabcz", np.uint8)
    assert sorter.order(Ragged(np.array([3, 5, 7, 8, 9]), values)).tolist() == [2, 0, 3, 1]


@given(st.lists(st.binary(max_size=5), max_size=40), st.binary(max_size=3))
def test_few_keys_are_compared(strings, before):
    keys = Ragged.of([np.frombuffer(s, np.uint8) for s in (before, *strings)], np.uint8)
    order = msd_radix_cpu.MsdRadixCpu().order(Ragged(keys.offsets[1:], keys.values))
    assert order.dtype == np.int32
    assert order.tolist() == sorted(range(len(strings)), key=strings.__getitem__)


@pytest.mark.parametrize("width", [2, 8, 70])
def test_more_keys_than_rows_of_four_bytes_have_longer_ones(sorter, monkeypatch, width):
    if sorter.backend != "cpu":
        pytest.skip("numpy finds out by itself")
    for module in (threads_cpu, msd_radix_cpu, lsd_radix_cpu, multikey_quicksort_cpu):
        monkeypatch.setattr(module, "row_type", lambda count: np.dtype(np.int64))
    keys = [bytes(row) for row in np.random.default_rng(width).integers(0, 3, (3000, width)).tolist()]
    order = sorter.order(Ragged.of([np.frombuffer(key, np.uint8) for key in keys], np.uint8))
    assert order.dtype == np.int64 and order.tolist() == sorted(range(len(keys)), key=keys.__getitem__)


def test_rows_are_as_narrow_as_they_can_be():
    assert [row_type(count).itemsize for count in (0, 1 << 31, (1 << 31) + 1)] == [4, 4, 8]


def test_equal_keys_keep_their_order(sorter):
    rng = np.random.default_rng(6)
    check(sorter, [bytes(row) for row in rng.integers(0, 2, (2000, 4)).tolist()])


def test_keys_of_64_bits_leave_no_room_for_their_rows(sorter):
    rng = np.random.default_rng(9)
    check(sorter, [bytes(row) for row in rng.integers(0, 256, (6000, 8)).tolist()] * 2)
    check(sorter, [b"ACGT" * 7 + rng.choice(list(b"ACGT"), 4).astype(np.uint8).tobytes() for _ in range(6000)])


def test_keys_of_columns_sort_like_the_columns(sorter):
    rng = np.random.default_rng(7)
    score = rng.integers(-50, 50, 5000).astype(np.int32)
    evalue = rng.choice([0.0, 1e-300, 2.5, np.inf], 5000)
    target = rng.integers(0, 30, 5000)
    order = sorter.order(byte_keys([evalue, score, target], descending=[False, True, False]))
    assert order.tolist() == np.lexsort([target, -score, evalue]).tolist()


def test_a_hundred_thousand_short_keys(sorter):
    keys = Ragged(np.arange(100_001) * 8, np.random.default_rng(8).integers(0, 256, 800_000).astype(np.uint8))
    words = keys.values.reshape(-1, 8).copy().view(">u8").ravel()
    assert np.array_equal(sorter.order(keys), np.argsort(words, kind="stable"))
