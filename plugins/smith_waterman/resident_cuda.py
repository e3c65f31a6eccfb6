"""Letters of volumes on CUDA devices: packed and copied once, kept while the volume lives and memory lasts.

Targets are packed longest first, in the order in which kernels take them, so that what is read at a time lies together.
Packing is part of the copy: a few threads fill page-locked buffers, two each, and send them on streams of their own, so
that copying hides behind computing. Letters stay for later query batches until something else needs the room; what was
used longest ago goes first. Working space is reserved from the same budget.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.errors import BudgetError
from seqloom.core.jit import kernel
from seqloom.core.packed16 import SIMULATED
from seqloom.core.sequences import SequenceBatch

cuda: Any = _cuda
_BUFFER = 4 << 20
_COPIERS = 4
_SHARE = 0.9
"""Of the memory that is free at first use: the budget when none is given."""


@dataclass
class Letters:
    """One volume's letters on a device.

    Attributes:
        source: the letters that were packed.
        array: u1 on the device.
        places: i8[k], where each target begins in it.
        size: bytes.
        users: how many use it now.
    """

    source: "weakref.ref[np.ndarray]"
    array: Any
    places: np.ndarray
    size: int
    users: int = 0


@kernel
def _pack(residues, begins, places, begin, end, out):
    """Letters begin…end − 1 of the packed order; targets lie at ``begins`` and go to ``places`` (one bound more)."""
    n = np.searchsorted(places, begin, side="right") - 1
    at = begin
    while at < end:
        stop = min(end, places[n + 1])
        first = begins[n] - places[n]
        for place in range(at, stop):
            out[place - begin] = residues[first + place]
        at = stop
        n += 1


class DeviceMemory:
    """What one device holds. All sizes are in bytes."""

    def __init__(self, free: int) -> None:
        self._free = int(free * _SHARE)
        self._changed = threading.Condition()
        self._copying = threading.Lock()
        self._held: OrderedDict[int, Letters] = OrderedDict()
        self._used = 0
        self._copiers: list[_Copier] = []
        self.copies = 0

    @contextmanager
    def working_space(self, size: int, budget: int | None, what: str) -> Iterator[None]:
        """Reserves room for a stage at work.

        Raises:
            BudgetError: it can't be had even after everything unused is gone.
        """
        self._reserve(size, budget, what)
        try:
            yield
        finally:
            self._release(size)

    def _reserve(self, size: int, budget: int | None, what: str) -> None:
        limit = self._free if budget is None else min(budget, self._free)
        with self._changed:
            while self._used + size > limit:
                idle = next((key for key, held in self._held.items() if not held.users), None)
                if idle is not None:
                    self._drop(idle)
                elif size > limit or not self._used:
                    raise BudgetError(what, size, limit, "raise --device-memory, or use --backend cpu")
                elif not self._changed.wait(timeout=60):
                    raise BudgetError(what, self._used + size, limit,
                                      "raise --device-memory, or use fewer threads (--num-threads)")
            self._used += size

    def _release(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def _drop(self, key: int) -> None:
        self._used -= self._held.pop(key).size

    @contextmanager
    def letters(self, targets: SequenceBatch, budget: int | None) -> Iterator[Letters]:
        """Letters of a volume, as searched, on the current device; they stay there while they are in use."""
        source = targets.searched()
        with self._copying:
            held = self._find(source)
            if held is None:
                held = self._copied(source, targets.offsets, budget)
        try:
            yield held
        finally:
            with self._changed:
                held.users -= 1
                self._changed.notify_all()

    def _find(self, source: np.ndarray) -> Letters | None:
        with self._changed:
            for key in [key for key, held in self._held.items() if held.source() is None and not held.users]:
                self._drop(key)
            held = self._held.get(id(source))
            if held is None or held.source() is not source:
                return None
            self._held.move_to_end(id(source))
            held.users += 1
            return held

    def _copied(self, source: np.ndarray, offsets: np.ndarray, budget: int | None) -> Letters:
        size = max(1, source.nbytes)
        self._reserve(size, budget, "a volume on the device")
        try:
            lengths = np.diff(offsets)
            order = np.argsort(-lengths, kind="stable")
            bounds = np.concatenate([[0], np.cumsum(lengths[order])])
            places = np.empty(len(order), np.int64)
            places[order] = bounds[:-1]
            held = Letters(weakref.ref(source), self._copy(source, offsets[order], bounds), places, size, 1)
        except BaseException:
            self._release(size)
            raise
        with self._changed:
            self._held[id(source)] = held
        self.copies += 1
        return held

    def _copy(self, source: np.ndarray, begins: np.ndarray, bounds: np.ndarray) -> Any:
        if SIMULATED:
            packed = np.zeros(len(source) + 1, np.uint8)
            _pack(source, begins, bounds, 0, len(source), packed)
            return cuda.to_device(packed)
        array = cuda.device_array(len(source) + 1, np.uint8)
        if not self._copiers:
            self._copiers = [_Copier() for _ in range(_COPIERS)]
        device = cuda.get_current_device().id
        parts = range(0, len(source), _BUFFER)
        with ThreadPoolExecutor(_COPIERS, thread_name_prefix="copy") as pool:
            done = [pool.submit(copier.copy, device, source, begins, bounds, array, parts[n::_COPIERS])
                    for n, copier in enumerate(self._copiers)]
        for future in done:
            future.result()
        return array


class _Copier:
    """Two page-locked buffers and a stream."""

    def __init__(self) -> None:
        self._stream = cuda.stream()
        self._buffers = [(cuda.pinned_array(_BUFFER, np.uint8), cuda.event(timing=False)) for _ in range(2)]

    def copy(self, device: int, source: np.ndarray, begins: np.ndarray, bounds: np.ndarray, array: Any,
             parts: range) -> None:
        """Pack and send the parts that begin there; one buffer is filled while the other is on its way."""
        with on_device(device):
            for number, begin in enumerate(parts):
                buffer, copied = self._buffers[number % 2]
                if number > 1:
                    copied.synchronize()
                end = min(len(source), begin + _BUFFER)
                _pack(source, begins, bounds, begin, end, buffer)
                array[begin:end].copy_to_device(buffer[: end - begin], stream=self._stream)
                copied.record(self._stream)
            self._stream.synchronize()


@cache
def _memory(device: int) -> DeviceMemory:
    free = 1 << 30 if SIMULATED else int(cuda.current_context().get_memory_info()[0])
    return DeviceMemory(free)


_making = threading.Lock()


def device_memory() -> DeviceMemory:
    """That of the current device."""
    with _making:
        return _memory(0 if SIMULATED else int(cuda.get_current_device().id))


def device_count() -> int:
    """CUDA devices of this host that can be used."""
    return 1 if SIMULATED else len(cuda.gpus)


@contextmanager
def on_device(number: int) -> Iterator[None]:
    """The calling thread works on device ``number``."""
    if SIMULATED or device_count() == 1:
        yield
    else:
        with cuda.gpus[number]:
            yield
