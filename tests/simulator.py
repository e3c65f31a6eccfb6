"""Processes in which CUDA is simulated: the simulator must be chosen before numba is imported."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BEGIN = """import runpy, sys
from tests import turns
turns.install()
if sys.argv[1] == "-m":
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
else:
    code, sys.argv = sys.argv[2], ["-c", *sys.argv[3:]]
    exec(code)
"""


def simulated(*words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run Python with ``words`` on simulated devices; skips the test where numba-cuda isn't installed."""
    pytest.importorskip("numba_cuda", reason="numba-cuda, which brings the simulator, is not installed")
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    start = [sys.executable, "-W", "ignore", "-c", BEGIN]
    return subprocess.run([*start, *words], env=environment, capture_output=True, text=True, timeout=600,
                          **{"cwd": ROOT, **more})


def assert_passed(module: str, *checks: str) -> None:
    """Run checks of a module, which says of each that it passed, on simulated devices: all in one process, since one
    takes longer to start than many a check."""
    done = simulated("-m", module, *checks)
    assert done.returncode == 0 and done.stdout.splitlines() == [f"{check} passed" for check in checks], (
        done.stdout + done.stderr[-2000:])
