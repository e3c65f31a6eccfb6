"""Processes in which CUDA is simulated: the simulator must be chosen before numba is imported."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BEGIN = """import runpy, sys
sys.setswitchinterval({interval})
if sys.argv[1] == "-m":
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    code, sys.argv = sys.argv[2], ["-c", *sys.argv[3:]]
    exec(code)
"""
INTERVAL = 0.0005
"""Seconds that a thread may go on while others want to. The simulator looks in a loop whether all threads of a block
wait for one another; at Python's own 5 ms it is mostly this loop that runs, and kernels take three times as long."""


def simulated(*words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run Python with ``words`` on simulated devices; skips the test where numba-cuda isn't installed.

    A simulated thread is a thread of the interpreter, and all wait for one another all the time. On one core they do so
    four times as fast as on two: the tests of each worker of pytest have a core of their own.
    """
    pytest.importorskip("numba_cuda", reason="numba-cuda, which brings the simulator, is not installed")
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    before = (lambda: os.sched_setaffinity(0, {cores[-1 - worker % len(cores)]})) if cores else None
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    start = [sys.executable, "-W", "ignore", "-c", BEGIN.format(interval=INTERVAL)]
    return subprocess.run([*start, *words], env=environment, preexec_fn=before,
                          capture_output=True, text=True, timeout=600, **{"cwd": ROOT, **more})
