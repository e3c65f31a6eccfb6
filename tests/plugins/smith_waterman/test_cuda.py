"""Exact Smith–Waterman on CUDA equals the reference: in numba's simulator here, tiles made small to keep it quick."""

import threading
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.errors import BudgetError

from tests.simulator import simulated


@pytest.mark.parametrize("check", [
    "packed-linear", "overflow", "pipelines", "memory", "letters", "streaming", "side-by-side", "shares",
    *(pytest.param(name, marks=pytest.mark.gold) for name in ("packed", "packed-flat", "ordinary", "single")),
])
def test_in_the_simulator(check: str) -> None:
    done = simulated("-m", "tests.plugins.smith_waterman.on_cuda", check)
    assert done.returncode == 0 and done.stdout.strip() == f"{check} passed", done.stderr[-2000:]


def memory(free: int):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.smith_waterman.resident_cuda import DeviceMemory

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


@given(st.lists(st.integers(0, 40), max_size=30))
def test_works_are_ordered_by_falling_length(lengths: list[int]) -> None:
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    from seqloom.plugins.smith_waterman import works_cuda

    wanted = sorted(range(len(lengths)), key=lambda n: -lengths[n])
    for counted in (works_cuda._COUNTED_LENGTHS, 20):
        with mock.patch.object(works_cuda, "_COUNTED_LENGTHS", counted):
            ranked = works_cuda.longest_first(np.array(lengths, np.int64))
        assert ranked.tolist() == wanted + (wanted[-1:] or [0])


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
    from seqloom.plugins.smith_waterman.resident_cuda import rounded

    assert number <= rounded(number) <= number + number // 16 and rounded(rounded(number)) == rounded(number)
