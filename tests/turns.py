"""numba's CUDA simulator with the threads of a block in turns, several times as fast as it is by itself.

By itself a simulated thread is one of the operating system, and all of them take the interpreter from each other,
beside a loop that looks whether they wait. Here each goes on until it comes to a barrier, by greenlets. Every other
time they do so the other way round, so that what relies on their order is found.
"""

import sys
import threading
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import greenlet
import numba
import numpy as np
from numba import types
from numba.cuda.simulator import api, kernel, kernelapi
from numba.cuda.simulator.cudadrv import devicearray
from numba.np.numpy_support import as_dtype


class Lane(greenlet.greenlet):
    """A simulated thread, with what the simulator asks of one."""

    def __init__(self, block: "Block", function: Any, block_index: Any, place: tuple[int, ...]) -> None:
        super().__init__(function)
        self._block = block
        self.blockIdx, self.threadIdx = block_index, kernelapi.Dim3(*place)
        width, height, _ = block.block_dim
        self.thread_id = place[0] + width * (place[1] + height * place[2])

    def syncthreads(self) -> None:
        self.parent.switch()

    def _agreeing(self, value: Any) -> int:
        """How many threads say yes at this barrier."""
        self._block.said[self.thread_id] = bool(value)
        self.syncthreads()
        agreeing = self._block.said.count(True)
        self.syncthreads()
        return agreeing

    def syncthreads_count(self, value: Any) -> int:
        return self._agreeing(value)

    def syncthreads_and(self, value: Any) -> int:
        return int(self._agreeing(value) == len(self._block.said))

    def syncthreads_or(self, value: Any) -> int:
        return int(self._agreeing(value) > 0)


class Block:
    """Carries out the threads of a block; takes the place of the simulator's ``BlockManager``."""

    def __init__(self, function: Any, grid_dim: Any, block_dim: tuple[int, int, int], debug: bool) -> None:
        self._function, self.block_dim = function, block_dim
        self.said = bytearray(int(np.prod(block_dim)))

    def run(self, grid_point: tuple[int, ...], *args: Any) -> None:
        index = kernelapi.Dim3(*grid_point)
        args = tuple(map(_plain, args))
        going = [Lane(self, self._function, index, place) for place in np.ndindex(*self.block_dim)]
        for lane in going:
            lane.switch(*args)
        while going := [lane for lane in going if not lane.dead]:
            going.reverse()
            for lane in going:
                lane.switch()


def _plain(argument: Any) -> Any:
    """An argument of a kernel; of an array the one of NumPy, which the simulator wraps twice, at a cost for each
    element that is asked for."""
    return argument._item._ary if isinstance(argument, devicearray.FakeWithinKernelCUDAArray) else argument


class Kernel(kernel.FakeCUDAKernel):
    """A kernel or a device function; the modules of those that a launch calls see the simulator until its end, not for
    each call."""

    seen: Any = None
    """The launch whose simulator its module is known to see."""

    def __call__(self, *args: Any) -> Any:
        launch = kernel._kernel_context
        if launch is None:
            with ExitStack() as stack:
                Kernel.swapped, Kernel.stack = set(), stack
                return super().__call__(*args)
        if self.seen is not launch:
            known = id(self.fn.__globals__)
            if known not in Kernel.swapped:
                Kernel.stack.enter_context(kernelapi.swapped_cuda_module(self.fn, launch))
                Kernel.swapped.add(known)
            self.seen = launch
        return self.fn(*args)


def _cast(self: types.Integer, *args: Any) -> Any:
    """A number as one of another type, as numba's types do without looking for NumPy's at each call."""
    if len(args) == 1:
        try:
            return _NUMBERS[self.name](args[0])
        except (KeyError, TypeError):  # a type of another kind, or of a function that takes one
            pass
    return types.Type.__call__(self, *args)


def _synchronize(_: Any) -> None:
    """A barrier, without asking for the thread by several calls."""
    greenlet.getcurrent().parent.switch()


_NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")
_NUMBERS = {name: getattr(np, name) for name in _NAMES}


class Shared(kernelapi.FakeCUDAShared):
    """Shared arrays of a block: the line that asks for one tells it from another."""

    def array(self, shape: Any, dtype: Any) -> np.ndarray:
        kind = as_dtype(dtype) if isinstance(dtype, types.Type) else np.dtype(dtype)
        if shape == 0:
            return np.frombuffer(self._dynshared.data, kind, self._dynshared_size // kind.itemsize)
        asking = sys._getframe(1)
        line = asking.f_code.co_filename, asking.f_lineno
        if line not in self._allocations:
            self._allocations[line] = np.empty(shape, kind)
        return self._allocations[line]


def install() -> None:
    kernel.BlockManager = Block
    api.FakeCUDAKernel = Kernel
    types.Integer.__call__ = types.Float.__call__ = _cast
    for name, number in _NUMBERS.items():  # of modules that are imported from now on
        setattr(numba, name, number)
    kernelapi.FakeCUDAModule.syncthreads = _synchronize
    kernelapi.FakeCUDAModule.threadIdx = property(lambda _: greenlet.getcurrent().threadIdx)
    kernelapi.threading = SimpleNamespace(current_thread=greenlet.getcurrent, Lock=threading.Lock)
    kernelapi.FakeCUDAShared = Shared


__all__ = ["install"]
