"""Exact Smith–Waterman on CUDA equals the reference: in numba's simulator here, tiles made small to keep it quick."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from seqloom.core.errors import BudgetError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("check", [
    "packed-linear", "ordinary", "overflow", "pipelines", "memory", "shares",
    *(pytest.param(name, marks=pytest.mark.gold) for name in ("packed", "packed-flat", "single")),
])
def test_in_the_simulator(check: str) -> None:
    """In a process of its own, as the simulator must be chosen before numba is imported."""
    pytest.importorskip("numba_cuda", reason="numba-cuda, which brings the simulator, is not installed")
    done = subprocess.run([sys.executable, "-m", "tests.plugins.smith_waterman.on_cuda", check], cwd=ROOT,
                          env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, timeout=600)
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
