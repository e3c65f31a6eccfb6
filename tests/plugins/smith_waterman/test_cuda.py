"""Exact Smith–Waterman on CUDA equals the reference: in numba's simulator here, tiles made small to keep it quick."""

import threading
from contextlib import ExitStack
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.errors import BackendError, BudgetError

from tests.simulator import simulated


@pytest.mark.parametrize("check", [
    "packed-linear", "pieces", "overflow", "pipelines", "antidiagonals", "memory", "letters", "streaming",
    "side-by-side", "parts", "working-space", "shares",
    *(pytest.param(name, marks=pytest.mark.gold) for name in ("packed", "packed-flat", "ordinary", "single")),
])
def test_in_the_simulator(check: str) -> None:
    done = simulated("-m", "tests.plugins.smith_waterman.on_cuda", check)
    assert done.returncode == 0 and done.stdout.strip() == f"{check} passed", done.stderr[-2000:]


def memory(free: int):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.common.resident_cuda import DeviceMemory

    return DeviceMemory(free)


def test_what_does_not_fit_the_device_is_refused_with_what_helps() -> None:
    with (pytest.raises(BudgetError, match="needs 3 MiB, the budget has 2 MiB; raise --device-memory"),
          memory(1 << 30).working_space(3 << 20, 2 << 20, "work")):
        pass
    with (pytest.raises(BudgetError, match="the budget has 9 MiB"),
          memory(10 << 20).working_space(11 << 20, 100 << 20, "work")):
        pass


def test_working_space_waits_for_others_to_finish() -> None:
    held, order = memory(1 << 30), []
    first = held.working_space(6, 10, "work")
    first.__enter__()

    def second() -> None:
        with held.working_space(6, 10, "work"):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    order.append("first")
    first.__exit__(None, None, None)
    thread.join()
    assert order == ["first", "second"]


def test_whoever_waits_for_what_could_not_be_sent_is_told() -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.common.resident_cuda import Upload

    waiting = ExitStack()
    waiting.callback(mock.Mock(side_effect=BackendError("failed")))
    sending = Upload(waiting)
    for _ in range(2):
        with pytest.raises(BackendError, match="failed"):
            sending.wait()
    assert sending.failed


@given(st.lists(st.integers(0, 40), max_size=30))
def test_works_are_ordered_by_falling_length(lengths: list[int]) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.common import target_order_cuda

    wanted = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    for counted in (target_order_cuda._COUNTED_LENGTHS, 20):
        with mock.patch.object(target_order_cuda, "_COUNTED_LENGTHS", counted):
            ranked = target_order_cuda.longest_first(np.array(lengths, np.int64))
        assert ranked.tolist() == wanted + (wanted[-1:] or [0])


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12), st.integers(0, 4), st.integers(1, 20))
def test_pieces_hold_all_stretches_that_an_alignment_can_take(lengths: list[int], reach: int, least: int) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.common import target_order_cuda

    sizes = np.array(lengths, np.int64)
    begins, step = np.cumsum(sizes) - sizes, max(least, 4 * reach)
    offsets = np.append(begins, sizes.sum())
    target_order = target_order_cuda.TargetOrder.of_volume(np.arange(len(sizes)), offsets, sizes,
                                                           lambda name, array: array)
    assert target_order.split_longest(begins, None) is None
    with mock.patch.object(target_order_cuda, "LEAST_PIECE", least):
        pieces = target_order.split_longest(begins, reach)
    long = {n for n, length in enumerate(lengths) if length > step + reach}
    if pieces is None:
        assert not long
        return
    assert pieces.cut == len(long) and set(pieces.owners.tolist()) == long and len(pieces.begins) % 2 == 0
    assert pieces.lengths.max() <= step + reach and (np.diff(pieces.lengths) <= 0).all()
    # As many as are planned for, and every run of ``reach`` residues, or of one, is in one of them.
    assert len(pieces.begins) - 1 <= sizes[list(long)].sum() // step + len(long)
    held = {n: [(b - begins[n], b - begins[n] + size) for o, b, size in zip(*pieces[1:], strict=True) if o == n]
            for n in long}
    for n, parts in held.items():
        assert all(any(a <= first and first + max(1, reach) <= b for a, b in parts)
                   for first in range(lengths[n] - max(1, reach) + 1))
    whole = replace(target_order, pieces=pieces)
    assert sorted(whole.order.tolist()) == sorted([*(set(range(len(lengths))) - long),
                                                   *(len(lengths) + n for n in range(len(pieces.begins)))])
    ranks = [lengths[n] if n < len(lengths) else pieces.lengths[n - len(lengths)] for n in whole.order.tolist()]
    assert len(whole) == len(ranks) and whole.longest == ranks[0]
    assert all(a >= b for a, b in zip(ranks[::2], ranks[1::2], strict=False))
    columns = sum(ranks[::2])
    assert whole.borders(2, columns).most == columns


@given(st.integers(1, 40_000), st.sampled_from([1, 2]))
def test_tiles_cover_a_query(length: int, together: int) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.smith_waterman import recurrence_cuda

    shape = recurrence_cuda.tiling(length, together)
    sizes = [rows * shape.lanes for rows in shape.rows]
    assert sum(sizes[:-1]) < length <= sum(sizes)
    assert shape.firsts == [sum(sizes[:n]) for n in range(len(sizes))]
    assert len(shape.rows) < 3 or shape.rows[0] <= recurrence_cuda.MOST_BETWEEN


@given(st.integers(1, 1 << 40))
def test_room_grows_by_steps_of_a_sixteenth_at_most(number: int) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.common.workspace_cuda import rounded

    assert number <= rounded(number) <= number + number // 16 and rounded(rounded(number)) == rounded(number)
