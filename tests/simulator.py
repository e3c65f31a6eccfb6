"""Processes in which CUDA is simulated: the simulator must be chosen before numba is imported."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


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
    return subprocess.run([sys.executable, "-W", "ignore", *words], env=environment, preexec_fn=before,
                          capture_output=True, text=True, timeout=600, **{"cwd": ROOT, **more})
