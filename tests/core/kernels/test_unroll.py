"""Functions that are made of templates."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from seqloom.core.kernels.unroll import specialise


def registers(count):  # pragma: no cover - names for the templates
    """Place holder."""


def unrolled(count):  # pragma: no cover
    """Place holder."""


def weighted(values):
    """Template: sums of every ``STEP``-th of the values, each by its number."""
    sums = registers(STEP)  # noqa: F821
    for k in unrolled(STEP):  # noqa: F821
        sums[k] = 0
    for at in range(0, len(values), STEP):  # noqa: F821
        for k in unrolled(STEP):  # noqa: F821
            sums[k] += (k + 1) * values[at + k]
    total = 0
    for k in unrolled(STEP):  # noqa: F821
        total += sums[k]
    return total


def test_loops_and_registers_are_written_out():
    made = specialise(weighted, STEP=3)
    assert made([1, 10, 100, 2, 20, 200]) == 3 + 2 * 30 + 3 * 300
    assert {"sums_0", "sums_1", "sums_2"} <= set(made.__code__.co_varnames)
    assert specialise(weighted, STEP=3) is made


def risen(value):
    """Template: a value and ``STEP`` numbers more."""
    for k in unrolled(STEP):  # noqa: F821
        value += k
    return value


def test_a_loop_without_turns_is_left_out():
    assert specialise(risen, STEP=0)(7) == 7 and specialise(risen, STEP=3)(7) == 10


def test_threads_that_ask_for_the_same_function_get_it():
    threads = 8
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for step in range(4, 24):
            together = threading.Barrier(threads)

            def ask(step=step, together=together):
                together.wait()
                return specialise(weighted, STEP=step)

            with ThreadPoolExecutor(threads) as pool:
                made = [future.result() for future in [pool.submit(ask) for _ in range(threads)]]
            assert len({*made}) == 1 and "registers" not in made[0].__code__.co_names
    finally:
        sys.setswitchinterval(usual)
