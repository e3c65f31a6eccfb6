"""Threads of the host: work in parts, and how long one keeps the interpreter."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.engine import threads as threads_of_host
from seqloom.core.engine.threads import (
    PER_PROCESSOR,
    ahead,
    bounded_threads,
    by_threads,
    concatenated,
    in_turn,
    run_tasks,
    short_switch_interval,
)


def test_parts_cover_the_whole() -> None:
    assert by_threads(3, 5, 12, lambda n, first, last: (n, first, last)) == [(0, 5, 7), (1, 7, 9), (2, 9, 12)]
    assert run_tasks(2, lambda task: task * 2, [1, 2, 3]) == [2, 4, 6]


def test_tasks_may_have_tasks_and_wait_for_those_of_another_purpose() -> None:
    lock = threading.Lock()
    nested_in: dict[int, int] = {}

    def copied(task: int) -> int:
        assert nested_in[task // 10] == threading.get_ident()
        with lock:
            return sum(by_threads(2, 0, 10, lambda n, first, last: last - first, "copy")) + task

    def nested(task: int) -> list[int]:
        nested_in[task] = threading.get_ident()
        return run_tasks(2, copied, [10 * task, 10 * task + 1, 10 * task + 2])

    assert run_tasks(2, nested, range(4)) == [[10 * task + n + 10 for n in range(3)] for task in range(4)]


def test_callers_do_their_tasks_and_idle_threads_help() -> None:
    """No more of them than there are threads at a time, whoever has tasks."""
    at_work, most, by = [0], [0], set()
    lock, together = threading.Lock(), threading.Barrier(3)

    def work(task: int) -> int:
        with lock:
            at_work[0] += 1
            most[0] = max(most[0], at_work[0])
            by.add(threading.current_thread().name)
        time.sleep(0.002)
        with lock:
            at_work[0] -= 1
        return -task

    def caller() -> None:
        together.wait()
        for _ in range(5):
            assert run_tasks(4, work, range(10), "some") == [-n for n in range(10)]

    callers = [threading.Thread(target=caller, name=f"caller {n}") for n in range(3)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join(20)
    assert most[0] == 4 and {thread.name for thread in callers} < by


def test_a_caller_that_is_left_alone_is_helped_by_those_who_end() -> None:
    """Also where all threads were busy when it began."""
    begun, go_on, by = threading.Event(), threading.Event(), set()

    def long(task: int) -> None:
        begun.set()
        if task:
            time.sleep(0.1)  # busy when the other job comes, which can't begin before one of them ends
        else:
            go_on.wait(20)

    def short(task: int) -> None:
        by.add(threading.get_ident())
        go_on.set()
        time.sleep(0.005)

    other = threading.Thread(target=run_tasks, args=(2, long, range(2), "two"))
    other.start()
    begun.wait(20)
    run_tasks(2, short, range(40), "two")
    other.join(20)
    assert len(by) == 2


def test_thousands_of_threads_are_as_many_as_are_of_use() -> None:
    assert [bounded_threads(threads) for threads in (1, 2, PER_PROCESSOR)] == [1, 2, PER_PROCESSOR]
    assert bounded_threads(10**9) == PER_PROCESSOR * (os.cpu_count() or 1)


def test_nothing_goes_on_behind_a_failure() -> None:
    begun, ended = [], []

    def work(task: int) -> None:
        begun.append(task)
        if task == 0:
            raise ValueError("the first")
        time.sleep(0.05)
        ended.append(task)

    with pytest.raises(ValueError, match="the first"):
        run_tasks(2, work, range(100))
    count = len(begun)
    assert len(ended) == count - 1 < 99
    time.sleep(0.1)
    assert len(begun) == count


def test_threads_are_brisk_while_anybody_wants_it() -> None:
    usual, inside = sys.getswitchinterval(), threading.Event()
    with short_switch_interval():
        quick = sys.getswitchinterval()
        assert quick < usual

        def other() -> None:
            with short_switch_interval():
                inside.set()

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert inside.is_set() and sys.getswitchinterval() == quick
    assert sys.getswitchinterval() == usual


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_come_back_in_turn_and_few_are_drawn_ahead(threads: int) -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for n in range(40):
            drawn.append(n)
            yield n

    def work(n: int) -> int:
        time.sleep(0.002 * (n % 3))
        return n * n

    for n, square in enumerate(in_turn(threads, work, items(), "test")):
        assert square == n * n
        assert len(drawn) <= n + 1 + (threads if threads > 1 else 0)
    assert len(drawn) == 40


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_failure_in_turn_is_raised_and_ends_the_work(threads: int) -> None:
    begun: list[int] = []

    def work(n: int) -> int:
        begun.append(n)
        if n in (5, 6):
            raise ValueError(str(n))
        return n

    taken: list[int] = []
    with pytest.raises(ValueError, match="5"):
        taken.extend(in_turn(threads, work, range(1000), "test"))
    assert max(begun) < 20


def test_some_items_are_drawn_before_they_are_taken() -> None:
    drawn: list[int] = []
    enough = threading.Event()

    def items() -> Iterator[int]:
        for n in range(40):
            drawn.append(n)
            if n == 3:
                enough.set()
            yield n

    found = ahead(3, items(), "test")
    assert not drawn
    assert next(found) == 0
    assert enough.wait(10)
    for n, item in enumerate(found, 1):
        assert item == n
        assert len(drawn) <= n + 1 + 3
    assert len(drawn) == 40


def test_a_failure_comes_behind_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise ValueError("third")

    taken: list[int] = []
    with pytest.raises(ValueError, match="third"):
        taken.extend(ahead(5, items(), "test"))
    assert taken == [1, 2]


def test_nobody_draws_items_that_nobody_takes() -> None:
    drawn: list[int] = []
    ended = threading.Event()

    def items() -> Iterator[int]:
        try:
            for n in range(1000):
                drawn.append(n)
                yield n
        finally:
            ended.set()

    found = ahead(2, items(), "test")
    assert next(found) == 0
    found.close()
    assert ended.wait(10)
    assert len(drawn) <= 4


@given(st.lists(st.integers(0, 40), min_size=1, max_size=6), st.integers(1, 3))
def test_arrays_one_behind_the_other(sizes: list[int], threads: int) -> None:
    parts = [np.arange(size, dtype=np.int16) + 100 * n for n, size in enumerate(sizes)]
    with mock.patch.object(threads_of_host, "_LARGE", 8):
        found = concatenated(parts, threads)
    assert found.dtype == np.int16 and found.tolist() == np.concatenate(parts).tolist()
