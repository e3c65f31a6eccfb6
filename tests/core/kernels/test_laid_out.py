"""Machine code that is laid out without LLVM does what it does through LLVM; what can't be laid out is told."""

import os
import platform
import subprocess
import sys
from ctypes import CFUNCTYPE, c_int64, c_void_p, cast
from pathlib import Path

import pytest
from llvmlite import binding
from seqloom.core.kernels.laid_out import laid_out, taken_in

needs_elf = pytest.mark.skipif(sys.platform != "linux" or platform.machine() != "x86_64",
                               reason="other object files are left to LLVM")
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from seqloom.core.kernels import jit
if sys.argv[2:]:
    from seqloom.core.kernels import compiler
    compiler.laid_out = lambda content: None
compiled = []
jit.on_compile = compiled.append
from kernels import filled
print(filled(3), *compiled, "llvmlite.binding" in sys.modules)
"""
KERNELS = """
import math
import numpy as np
from seqloom.core.kernels.jit import kernel

WEIGHTS = np.array([0.5, 0.25, 0.125])

@kernel
def filled(count):
    values = np.zeros(count)
    for k in range(count):
        values[k] = WEIGHTS[k] * math.log(k + 1.0)
    return values.sum()
"""


def made(folder: Path, *words: str) -> list[str]:
    environment = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(folder), *words], env=environment, cwd=folder, text=True,
                          capture_output=True, check=True)
    return done.stdout.split()


@needs_elf
def test_a_kept_kernel_does_the_same_with_llvm_and_without(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text(KERNELS)
    first, compiled, _ = made(tmp_path)
    assert compiled == "filled"
    assert made(tmp_path) == [first, "False"]
    for kept in tmp_path.rglob("kernels.*.kernel"):
        kept.unlink()
    assert made(tmp_path, "as object files") == [first, "filled", "True"]
    assert made(tmp_path) == [first, "True"]


def object_file(text: str, triple: str = "x86_64-unknown-linux-gnu", codemodel: str = "large") -> bytes:
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    machine = binding.Target.from_triple(triple).create_target_machine(codemodel=codemodel)
    module = binding.parse_assembly(f'target triple = "{triple}"\n{text}')
    return bytes(machine.emit_object(module))


CALLS = """
@place = common global i64 0
@constant = internal constant i64 40
@pointer = internal constant ptr @constant
declare i64 @outside(i64)
define i64 @sum(i64 %x) {
  %p = load volatile ptr, ptr @pointer
  %a = load volatile i64, ptr %p
  %b = load volatile i64, ptr @place
  %c = call i64 @outside(i64 %x)
  %d = add i64 %a, %b
  %e = add i64 %d, %c
  ret i64 %e
}
"""


@needs_elf
def test_addresses_inside_and_outside_are_written() -> None:
    kind = CFUNCTYPE(c_int64, c_int64)
    twice = kind(lambda x: 2 * x)
    code = laid_out(object_file(CALLS))
    assert code is not None and {"place", "sum"} <= set(code.symbols)
    begin = taken_in(code, {"outside": cast(twice, c_void_p).value or 0}.__getitem__, {"place": 1})
    assert kind(begin + code.symbols["sum"])(500) == 1041
    with pytest.raises(KeyError):
        taken_in(code, {}.__getitem__, {"place": 1})


@needs_elf
@pytest.mark.parametrize("content", [
    b"", b"\xcf\xfa\xed\xfe" + bytes(200), object_file(CALLS, "aarch64-unknown-linux-gnu"),
    object_file(CALLS, codemodel="small"), object_file("@x = global i64 7\ndefine ptr @f() { ret ptr @x }"),
    object_file("@x = internal global i64 0\ndefine ptr @f() { ret ptr @x }"),
    object_file("@x = thread_local global i64 7\ndefine ptr @f() { ret ptr @x }"),
], ids=["nothing", "Mach-O", "AArch64", "addresses of 32 bits", "a variable with a value", "a variable",
        "a variable of each thread"])
def test_object_files_of_other_kinds_are_left_to_llvm(content: bytes) -> None:
    assert laid_out(content) is None
