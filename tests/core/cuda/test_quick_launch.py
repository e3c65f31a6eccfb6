"""What the driver is called with to launch a kernel, told by one that writes it down."""

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from seqloom.core.cuda import quick_launch
from seqloom.core.cuda.driver import ENTER, LAUNCH
from seqloom.core.cuda.quick_launch import LARGE_BLOCK, QuickKernel
from seqloom.core.errors import BackendError

HANDLE, CONTEXT, STREAM = 77, 5, 6
WORD = ctypes.c_uint64
STREAM_GIVEN: Any = SimpleNamespace(handle=STREAM)


class Array:
    """As a device array, at an address."""

    __cuda_ndarray__ = True

    def __init__(self, size: int, dtype: Any, address: int | None, step: int = 1) -> None:
        self.size, self.dtype = size, np.dtype(dtype)
        self.strides = (step * self.dtype.itemsize,)
        self.device_ctypes_pointer = ctypes.c_void_p(address)


class Driver:
    """Writes down launches, and gives an error's code."""

    def __init__(self, widths: list[int]) -> None:
        self.widths, self.error, self.entered = widths, 0, list[int]()
        self.launches = list[tuple[list[int], list[bytes]]]()
        functions = [0] * (LAUNCH + 1)
        self._kept = [ctypes.CFUNCTYPE(ctypes.c_int32, WORD)(self._enter),
                      ctypes.CFUNCTYPE(ctypes.c_int32, *[WORD] * 11)(self._launch)]
        for place, function in zip((ENTER, LAUNCH), self._kept, strict=True):
            functions[place] = ctypes.cast(function, ctypes.c_void_p).value or 0
        self.functions = np.array(functions, np.uint64)

    def _enter(self, context: int) -> int:
        self.entered.append(context)
        return 0

    def _launch(self, *words: int) -> int:
        *where, places, extra = words
        assert not extra
        found = (WORD * len(self.widths)).from_address(places)
        self.launches.append((where, [ctypes.string_at(int(at), width) for at, width in zip(
            found, self.widths, strict=True)]))
        return self.error


class Dispatcher:
    """Compiles nothing; tells what was asked for."""

    def __init__(self) -> None:
        self.compiled, self.launched = list[tuple[str, ...]](), list[tuple[Any, ...]]()

    def typeof_pyval(self, argument: Any) -> str:
        return type(argument).__name__

    def compile(self, signature: tuple[str, ...]) -> Any:
        self.compiled.append(signature)
        return SimpleNamespace(library=SimpleNamespace(get_cufunc=lambda: SimpleNamespace(handle=HANDLE)))

    def __getitem__(self, where: Any) -> Any:
        return lambda *arguments: self.launched.append((where, arguments))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function of the widths of a kernel's arguments in bytes: the kernel, its driver, and what was allowed."""

    def making(widths: list[int]) -> tuple[QuickKernel, Driver, list[int]]:
        driver, allowed = Driver(widths), list[int]()
        monkeypatch.setattr(quick_launch, "driver_functions", lambda: (driver.functions, np.uint64(CONTEXT)))
        monkeypatch.setattr(quick_launch, "current_device", lambda: 0)
        return QuickKernel(Dispatcher(), allowed.append), driver, allowed

    return making


def test_arguments_stand_as_kernels_read_them(made: Any) -> None:
    numbers = [np.int32(-3), np.uint8(200), np.int64(-(1 << 40)), np.uint64((1 << 64) - 1), np.float32(0.1),
               np.float64(0.1), np.bool_(True), False, -5, 2.5]
    wanted = [*(number.tobytes() for number in numbers[:7]), b"\0", np.int64(-5).tobytes(), np.float64(2.5).tobytes()]
    kernel, driver, allowed = made([*map(len, wanted)] + [8] * 14)
    kernel[(2, 3), 64, STREAM_GIVEN](*numbers, Array(10, np.int16, 1 << 45), Array(0, np.float64, None))
    (where, found), = driver.launches
    assert where == [HANDLE, 2, 3, 1, 64, 1, 1, 0, STREAM] and driver.entered == [CONTEXT]
    assert found[:10] == wanted
    assert [int.from_bytes(word, "little") for word in found[10:]] == [
        0, 0, 10, 2, 1 << 45, 10, 2, 0, 0, 0, 8, 0, 0, 8]
    assert not allowed and not kernel.dispatcher.launched


def test_a_kernel_is_compiled_once_for_arguments_of_the_same_types(made: Any) -> None:
    kernel, driver, _ = made([4, *[8] * 7])
    for size, dtype in ((3, np.int32), (4, np.int32), (4, np.int64)):
        kernel[1, 32](np.int32(size), Array(size, dtype, 8))
    assert len(kernel.dispatcher.compiled) == 2 and len(driver.launches) == 3
    assert driver.launches[0][0] == [HANDLE, 1, 1, 1, 32, 1, 1, 0, 0]


@pytest.mark.parametrize("argument", [Array(3, np.int32, 8, step=2), np.zeros(3), (1, 2), 1 << 63, np.float16(1)])
def test_what_numba_alone_can_pass_goes_by_numba(made: Any, argument: Any) -> None:
    kernel, driver, _ = made([])
    for _ in range(2):
        kernel[1, 32, 0, 16](np.int32(1), argument)
    assert not driver.launches
    assert [where for where, _ in kernel.dispatcher.launched] == [(1, 32, 0, 16)] * 2


def test_blocks_with_much_shared_memory_ask_for_it_once(made: Any) -> None:
    kernel, driver, allowed = made([4])
    for shared in (16, LARGE_BLOCK, LARGE_BLOCK + 1, LARGE_BLOCK + 1, 16):
        kernel[1, 32, 0, shared](np.int32(1))
        assert len(allowed) == (len(driver.launches) > 2)
    assert allowed == [HANDLE] and [where[7] for where, _ in driver.launches] == [
        16, LARGE_BLOCK, LARGE_BLOCK + 1, LARGE_BLOCK + 1, 16]


def test_what_the_driver_refuses_is_told(made: Any) -> None:
    kernel, driver, _ = made([4])
    driver.error = 719
    with pytest.raises(BackendError, match=r"launching a kernel on the device failed \(code 719 of the CUDA driver\)"):
        kernel[1, 32](np.int32(1))
