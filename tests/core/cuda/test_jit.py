"""CUDA kernels that are kept are stamped with the text of the modules that they take functions from."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from seqloom.core.cuda.jit import kernel

TEXT = """
from numba import cuda

@cuda.jit(device=True)
def times(x):
    return FACTOR * x

def fill(out):
    out[0] = times(1)
"""


def compiled(folder: Path, text: str, factor: int = 2) -> Any:
    """Numba's dispatcher of a kernel of a file in a folder that calls a function which uses a constant."""
    path, known = folder / "kernels.py", {"FACTOR": factor}
    path.write_text("")  # its time and size are always the same
    os.utime(path, (1, 1))
    exec(compile(text, str(path), "exec"), known)
    return kernel()(known["fill"]).dispatcher


def stamp(made: Any) -> object:
    return made._cache._cache_file._source_stamp


PACKED16 = "seqloom.core.kernels.packed16"


pytestmark = pytest.mark.skipif(PACKED16 in sys.modules and sys.modules[PACKED16].SIMULATED,
                                reason="the simulator keeps no kernels")


def test_the_stamp_changes_with_what_a_kernel_uses(tmp_path: Path) -> None:
    before = stamp(compiled(tmp_path, TEXT))
    assert stamp(compiled(tmp_path, TEXT + "# a comment\n")) == before
    assert stamp(compiled(tmp_path, TEXT.replace("FACTOR * x", "FACTOR + x"))) != before
    assert stamp(compiled(tmp_path, TEXT, factor=3)) != before


def test_kernels_are_not_taken_from_a_folder_that_others_may_write_to(tmp_path: Path, monkeypatch,
                                                                      capsys: pytest.CaptureFixture[str]) -> None:
    assert compiled(tmp_path, TEXT)._cache._cache_path
    (tmp_path / "__pycache__").chmod(0o777)
    made = compiled(tmp_path, TEXT)
    assert type(made._cache).__name__ == "NullCache"
    assert "another user may have written it" in capsys.readouterr().err


def test_kernels_that_cant_be_kept_are_compiled_all_the_same(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("seqloom.core.cuda.jit._has_a_place", lambda source: False)
    assert type(compiled(tmp_path, TEXT)._cache).__name__ == "NullCache"


def test_small_kernels_are_not_warned_of() -> None:
    text = """
from seqloom.core.cuda import jit
from numba.cuda import dispatcher

dispatcher.warn(dispatcher.errors.NumbaPerformanceWarning(
    "Grid size 66 will likely result in GPU under-utilization due to low occupancy."))
dispatcher.warn("something else")
"""
    done = subprocess.run([sys.executable, "-c", text],
                          env={name: value for name, value in os.environ.items() if name != "NUMBA_ENABLE_CUDASIM"},
                          capture_output=True, text=True)
    assert "something else" in done.stderr and "Grid size" not in done.stderr
