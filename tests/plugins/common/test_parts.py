"""Volumes that devices have in parts: how large the parts are, and sequences that are put one behind the other."""

import math
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch, offsets_of
from seqloom.plugins.common.chosen_cpu import chosen_sequences

resident_cuda = pytest.importorskip("seqloom.plugins.common.resident_cuda", reason="numba-cuda is not installed",
                                    exc_type=ImportError)


@given(st.lists(st.integers(0, 900), max_size=60), st.integers(900, 4000), st.integers(1, 9))
def test_parts_have_all_targets_in_order_and_no_more_than_they_may(lengths: list[int], residues: int, targets: int
                                                                   ) -> None:
    offsets = offsets_of(lengths)
    parts = resident_cuda.PartSize(residues, targets).cut(offsets)
    assert [n for first, last in parts for n in range(first, last)] == list(range(len(lengths)))
    for number, (first, last) in enumerate(parts):
        assert 0 < last - first <= targets and offsets[last] - offsets[first] <= residues
        if number + 1 < len(parts):  # the next target had no room
            assert last - first == targets or offsets[last + 1] - offsets[first] > residues


@given(st.integers(1, 1 << 34), st.integers(1, 1 << 24), st.integers(1, 50_000), st.integers(1 << 22, 1 << 36),
       st.integers(0, 3000), st.booleans())
def test_parts_are_as_large_as_a_budget_has_room_for(residues: int, targets: int, longest: int, budget: int,
                                                     of_target: int, fills: bool) -> None:
    longest = min(longest, residues)

    def beside(part: resident_cuda.PartSize) -> int:
        return of_target * part.targets

    shares = resident_cuda.rooms_for_parts(budget, fills)
    part = resident_cuda.part_size(residues, targets, longest, shares, beside)
    assert longest <= part.residues <= residues and 1 <= part.targets <= targets
    needs = part.nbytes + beside(part)
    assert needs <= shares[-1] or part.residues == longest
    # Twice as large parts have no room in the same share of the budget.
    share = next((share for share in shares if needs <= share), None)
    more = resident_cuda.PartSize(min(residues, 2 * part.residues), min(targets, 2 * part.targets))
    if share and part.residues < residues and part.residues > 1 << 16:
        assert more.nbytes + beside(more) > 0.6 * share


def test_stages_have_the_memory_of_their_turns() -> None:
    memory, free, order = resident_cuda.DeviceMemory(1000), threading.Event(), []

    def turn(name: str, size: float) -> None:
        with memory.turn(size, 900):
            order.append(name)
            free.wait(20)

    def begin(name: str, size: float) -> threading.Thread:
        thread = threading.Thread(target=turn, args=(name, size))
        thread.start()
        return thread

    def until(condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.001)

    threads = [begin("half", 500)]
    until(lambda: order == ["half"])
    threads.append(begin("third", 300))
    until(lambda: len(order) == 2)
    for name, size in (("all", math.inf), ("little", 10)):  # which would find room, but came later
        threads.append(begin(name, size))
        until(lambda: len(memory._asked) == len(threads) - 2)
    time.sleep(0.05)
    assert order == ["half", "third"] and memory._granted == 800
    free.set()
    for thread in threads:
        thread.join(20)
    assert order == ["half", "third", "all", "little"]
    assert memory._granted == 0
    with memory.turn(5000, 900):  # more than there is: alone
        assert memory._granted == 5000
    # What fills a device has all that others leave, and these as much as they need beside it, or twice as much.
    with memory.turn(100, 900, fills=False) as given, memory.turn(300, 900, fills=True) as more:
        assert (given, more) == (0.3 * 900, 0.9 * 900 - 0.3 * 900)
    with memory.turn(300, 900, fills=True) as given:
        assert given == 0.9 * 900
    with memory.turn(10, 900), memory.turn(700, 900, fills=True), memory.turn(20, 900, fills=False) as given:
        assert given == 20
    with memory.turn(300, 900, fills=True, most=500) as given:
        assert given == 500
    with memory.turn(300, 900, fills=True, most=200) as given:
        assert given == 300
    with memory.turn(20, 900, fills=False, most=30) as given:
        assert given == 30
    assert memory._granted == 0


@pytest.mark.parametrize(("filling", "beside"), [(False, 4), (True, resident_cuda._BESIDE_ONE)])
def test_few_stages_have_a_device_beside_one_that_fills_it(filling: bool, beside: int) -> None:
    memory, free, begun = resident_cuda.DeviceMemory(1000), threading.Event(), []

    def turn(fills: bool) -> None:
        with memory.turn(10, 900, fills=fills):
            begun.append(fills)
            free.wait(20)

    def run(count: int, fills: bool, least: int) -> list[threading.Thread]:
        threads = [threading.Thread(target=turn, args=(fills,)) for _ in range(count)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 20
        while len(begun) < least:
            assert time.monotonic() < end
            time.sleep(0.001)
        return threads

    with memory.turn(780, 900):
        threads = run(2, True, 0) if filling else []
        time.sleep(0.05)
        threads += run(beside + 2, False, beside)
        time.sleep(0.05)
        assert begun.count(False) == beside + 2 * (not filling)
    free.set()
    for thread in threads:
        thread.join(20)
    assert len(begun) == len(threads) and memory._granted == 0 and not any(memory._by_parts.values())


def test_turns_give_all_back() -> None:
    memory = resident_cuda.DeviceMemory(1000)
    with memory.turn(0.1, 900), memory.turn(1.1 * 3, 900), memory.turn(1.1 * 7, 900):
        assert memory._granted == 1 + 4 + 8
    assert memory._granted == 0
    with memory.turn(5000.5, 900):
        assert memory._granted == 5001
    with memory.turn():
        assert memory._granted == math.inf
    assert memory._granted == 0


def test_all_volumes_of_a_search_come_in_parts_or_none() -> None:
    whole = resident_cuda.VOLUME_RESIDUES
    assert not resident_cuda.comes_in_parts(10 * whole, 1000, None)
    assert not resident_cuda.comes_in_parts(10 * whole, 1000, 5 * whole)  # volumes are no larger than they usually are
    assert resident_cuda.comes_in_parts(10 * whole, 1000, 3 * whole)
    assert not resident_cuda.comes_in_parts(whole // 10, 1000, whole)


@given(st.lists(st.text("ACDEFGHIKLMNPQRSTVWY", max_size=9), min_size=1, max_size=12), st.data())
def test_chosen_sequences_are_those_of_the_batch(texts: list[str], data: st.DataObject) -> None:
    batch = SequenceBatch.of(PROTEIN, texts, first=5)
    places = np.array(data.draw(st.one_of(
        st.lists(st.integers(0, len(texts) - 1), unique=True),
        st.integers(0, len(texts)).map(lambda first: list(range(first, len(texts)))))), np.int64)
    chosen = chosen_sequences(batch, batch.searched(), places)
    assert chosen.ordinals.tolist() == (places + 5).tolist()
    assert [chosen.text(n) for n in range(len(chosen))] == [texts[n] for n in places]
