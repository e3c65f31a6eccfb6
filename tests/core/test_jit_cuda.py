"""CUDA kernels that are kept are stamped with the text of the modules that they take functions from."""

import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from seqloom.core.jit_cuda import kernel


def module(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    made = ModuleType(path.stem)
    made.__file__ = str(path)
    return made


def stamp(*helpers: ModuleType) -> object:
    @kernel(*helpers)
    def fill(out):
        out[0] = 1

    return fill._cache._cache_file._source_stamp


@pytest.mark.skipif("seqloom.core.packed16" in sys.modules and sys.modules["seqloom.core.packed16"].SIMULATED,
                    reason="the simulator keeps no kernels")
def test_the_stamp_changes_with_a_helper(tmp_path: Path) -> None:
    one = module(tmp_path / "helper.py", "def doubled(x): return 2 * x\n")
    before = stamp(one)
    assert before != stamp() and before == stamp(one)
    (tmp_path / "helper.py").write_text("def doubled(x): return x + x\n")
    assert stamp(one) != before
