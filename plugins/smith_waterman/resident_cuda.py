"""Volumes on CUDA devices: copied once, kept while the volume lives and memory lasts.

Letters go as they are: kernels take targets longest first, and ask for letters long before they need them. A few
threads fill page-locked buffers, two each, and send them on streams of their own, so that copying hides behind
computing. Volumes stay for later query batches until something else needs the room; what was used longest ago goes
first. Working space is reserved from the same budget.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda as _cuda
from seqloom.core.errors import BudgetError
from seqloom.core.packed16 import SIMULATED
from seqloom.core.sequences import SequenceBatch

cuda: Any = _cuda
_BUFFER = 4 << 20
_COPIERS = 4
_PATIENCE = 60.0
"""Seconds to wait for room while nobody is at work."""
_SHARE = 0.9
"""Of the memory that is free at first use: the budget when none is given."""


class Works(NamedTuple):
    """Stretches of letters in the order in which kernels take them, longest first, on host and device.

    Attributes:
        order: i8[k], their numbers.
        lengths: i4[k + 1] on the host; one stretch more, of no letters, where the last register holds one only.
        starts, counts: i8[k + 1] and i4[k + 1] on the device: first letter, number of letters.
    """

    order: np.ndarray
    lengths: np.ndarray
    starts: Any
    counts: Any

    @classmethod
    def of(cls, chosen: np.ndarray, first_letters: np.ndarray, lengths: np.ndarray, stream: Any) -> "Works":
        """The stretches numbered ``chosen`` (i8), of so many letters from a first one on."""
        wanted = lengths[chosen]
        longest = int(wanted.max(initial=0))
        # numpy sorts numbers of 16 bits by radix.
        keys = (longest - wanted).astype(np.uint16) if longest < 1 << 16 else -wanted
        order = chosen[np.argsort(keys, kind="stable")]
        taken = np.append(lengths[order], 0).astype(np.int32)
        starts = np.append(first_letters[order], 0).astype(np.int64)
        return cls(order, taken, cuda.to_device(starts, stream=stream), cuda.to_device(taken, stream=stream))


BYTES_PER_STRETCH = 12
"""Of ``Works`` on the device."""


@dataclass
class Volume:
    """One volume on a device.

    Attributes:
        source: its letters on the host.
        letters: u1 on the device.
        works: all its targets.
        size: bytes.
        users: how many use it now.
    """

    source: "weakref.ref[np.ndarray]"
    letters: Any
    works: Works
    size: int
    users: int = 0


class DeviceMemory:
    """What one device holds. All sizes are in bytes."""

    def __init__(self, free: int) -> None:
        self._free = int(free * _SHARE)
        self._changed = threading.Condition()
        self._copying = threading.Lock()
        self._held: OrderedDict[int, Volume] = OrderedDict()
        self._used = 0
        self._working = 0
        self._copiers: list[Any] = []
        self.copies = 0

    @contextmanager
    def working_space(self, size: int, budget: int | None, what: str) -> Iterator[None]:
        """Reserves room for a stage at work.

        Raises:
            BudgetError: it can't be had even after everything unused is gone.
        """
        self._reserve(size, budget, what)
        with self._changed:
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
            self._release(size)

    def _reserve(self, size: int, budget: int | None, what: str) -> list[Volume]:
        """Take ``size`` bytes of the budget; gives the volumes that had to go for it, longest unused first."""
        limit = self._free if budget is None else min(budget, self._free)
        dropped = []
        with self._changed:
            while self._used + size > limit:
                idle = next((key for key, held in self._held.items() if not held.users), None)
                if idle is not None:
                    dropped.append(self._drop(idle))
                elif size > limit or not self._used:
                    raise BudgetError(what, size, limit, "raise --device-memory, or use --backend cpu")
                elif not self._changed.wait(timeout=_PATIENCE) and not self._working:
                    # Nobody is at work who could make room.
                    raise BudgetError(what, self._used + size, limit,
                                      "raise --device-memory, or use fewer threads (--num-threads)")
            self._used += size
        return dropped

    def _release(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def _drop(self, key: int) -> Volume:
        held = self._held.pop(key)
        self._used -= held.size
        return held

    @contextmanager
    def volume(self, targets: SequenceBatch, budget: int | None) -> Iterator[Volume]:
        """A volume, its letters as searched, on the current device; it stays there while it is in use."""
        source = targets.searched()
        held = self._find(source)
        if held is None:
            with self._copying:
                held = self._find(source) or self._copied(source, targets.offsets, budget)
        try:
            yield held
        finally:
            with self._changed:
                held.users -= 1
                self._changed.notify_all()

    def _find(self, source: np.ndarray) -> Volume | None:
        with self._changed:
            for key in [key for key, held in self._held.items() if held.source() is None and not held.users]:
                self._drop(key)
            held = self._held.get(id(source))
            if held is None or held.source() is not source:
                return None
            self._held.move_to_end(id(source))
            held.users += 1
            return held

    def _copied(self, source: np.ndarray, offsets: np.ndarray, budget: int | None) -> Volume:
        size = source.nbytes + BYTES_PER_STRETCH * len(offsets)
        dropped = self._reserve(size, budget, "a volume on the device")
        try:
            # Memory is handed on where that wastes little: to free some waits for all work on the device.
            slack = len(source) >> 6
            letters = next((old.letters for old in dropped if 0 <= len(old.letters) - len(source) - 1 <= slack), None)
            dropped.clear()
            if letters is None:
                letters = cuda.device_array(len(source) + 1, np.uint8)
            self._copy(source, letters)
            # Not the default stream, which waits for all others.
            stream: Any = 0 if SIMULATED else self._copiers[0].stream
            works = Works.of(np.arange(len(offsets) - 1), offsets, np.diff(offsets), stream)
            if not SIMULATED:
                stream.synchronize()
            held = Volume(weakref.ref(source), letters, works, size, 1)
        except BaseException:
            self._release(size)
            raise
        with self._changed:
            self._held[id(source)] = held
        self.copies += 1
        return held

    def _copy(self, source: np.ndarray, array: Any) -> None:
        """Send the letters to u1 ``array``, which has room for one more, as kernels may read that."""
        if SIMULATED:
            array[: len(source)] = source
            return
        if not self._copiers:
            self._copiers = [_Copier() for _ in range(_COPIERS)]
        device = cuda.get_current_device().id
        parts = range(0, len(source), _BUFFER)
        with ThreadPoolExecutor(_COPIERS, thread_name_prefix="copy") as pool:
            done = [pool.submit(copier.copy, device, source, array, parts[n::_COPIERS])
                    for n, copier in enumerate(self._copiers)]
        for future in done:
            future.result()


class _Copier:
    """Two page-locked buffers and a stream."""

    def __init__(self) -> None:
        self.stream = cuda.stream()
        self._buffers = [(cuda.pinned_array(_BUFFER, np.uint8), cuda.event(timing=False)) for _ in range(2)]

    def copy(self, device: int, source: np.ndarray, array: Any, parts: range) -> None:
        """Send the parts that begin there; one buffer is filled while the other is on its way."""
        with on_device(device):
            for number, begin in enumerate(parts):
                buffer, copied = self._buffers[number % 2]
                if number > 1:
                    copied.synchronize()
                end = min(len(source), begin + _BUFFER)
                np.copyto(buffer[: end - begin], source[begin:end])
                array[begin:end].copy_to_device(buffer[: end - begin], stream=self.stream)
                copied.record(self.stream)
            self.stream.synchronize()


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
