"""Working space on a CUDA device: streams and arrays of a stage at work, which the next one takes over.

A device finishes all its work before it gives memory back, whoever queued it. So arrays stay, by name, and what is
outgrown stays as long as there is room.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.classes import NamedTuple
from seqloom.core.cuda.driver import urgent_stream
from seqloom.core.cuda.transfer import receive_through, send_through, synchronize
from seqloom.core.kernels.packed16 import SIMULATED

cuda: Any = _cuda  # numba's types don't know what code on the device may do
Count = Callable[[str, int], None]
"""Adds to a counter of a name."""
_LEAST_BYTES = 1 << 12
"""Of an array that is kept, so that small ones needn't be replaced."""
_BYTE = np.dtype(np.uint8)


def rounded(number: int) -> int:
    """A number that is at most a sixteenth larger and has five leading bits: what grows a little fits the same room."""
    unit = 1 << max(0, number.bit_length() - 5)
    return -(-number // unit) * unit


class BufferPool:
    """Arrays by name, kept for what comes next.

    What a longer one has replaced stays, too, as long as there is room for both: memory that is given back is waited
    for until the device has done all that is queued, by everybody.

    Args:
        new: makes an array of so many bytes; on the device, when left out.

    Attributes:
        most: bytes of all of them, those replaced included, as long as that is enough.
    """

    def __init__(self, new: Callable[[int], Any] = lambda size: cuda.device_array(size, np.uint8)) -> None:
        self._new, self.most = new, 0
        self._arrays: dict[str, dict[np.dtype, Any]] = {}  # with the views of each
        self._bytes, self._replaced = 0, list[Any]()

    def array(self, name: str, size: int, dtype: Any) -> Any:
        """One of that length or more, and of that type; that of the same name is gone, if it was shorter."""
        kind = np.dtype(dtype)
        views, need = self._arrays.get(name, {}), max(1, size) * kind.itemsize
        if not views or len(views[_BYTE]) < need:
            views = self._arrays[name] = {_BYTE: self._longer(views.get(_BYTE), need)}
        if kind not in views:
            views[kind] = views[_BYTE].view(kind)
        return views[kind]

    def _longer(self, before: Any, need: int) -> Any:
        size = rounded(max(need, _LEAST_BYTES))
        if before is not None:
            self._replaced.append(before)
        if self._bytes + size > self.most:
            self._bytes -= sum(map(len, self._replaced))
            self._replaced.clear()
        self._bytes += size
        return self._new(size)


class WorkSize(NamedTuple):
    """Size of the work on a device that working space is for.

    Attributes:
        stretches, residues, longest: of targets; residues of all of them and of the longest.
        queries, query: number of queries; residues of the longest, or what the work says.
        positions: of all queries together, where that matters.
    """

    stretches: int
    residues: int
    longest: int
    queries: int
    query: int
    positions: int = 0

    @property
    def groups(self) -> int:
        """Groups of queries that are on the device at a time: while one is at work, the next is sent."""
        return 2 if self.queries > 1 else 1

    def rounded(self) -> "WorkSize":
        return WorkSize(*map(rounded, self))

    def within(self, other: "WorkSize") -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))

    def joined(self, other: "WorkSize") -> "WorkSize":
        """What has room for both."""
        return WorkSize(*map(max, self, other))


class WorkKind(NamedTuple):
    """A kind of work on devices, whose stages hand working space on to one another.

    Attributes:
        what: what it is, for people.
        size: the bytes that work of some size takes at most, with borders of so many columns.
        columns: whose borders have to find room for work of some size, and how many there are.
        fills: whether it fills a device by itself.
    """

    what: str
    size: Callable[[WorkSize, int], int]
    columns: Callable[[WorkSize], tuple[int, int]] = lambda need: (0, 0)
    fills: bool = True


class Workspace:
    """Streams and arrays of a stage at work on one device.

    Attributes:
        kind: of the work.
        need: what there is room for.
        size: bytes that it takes at most.
        columns: whose borders there is room for.
        streams: for kernels, one for each group of queries.
        patient: the same for kernels that take all of the device for long; what is queued on ``streams`` of anybody
            begins before their blocks that have not begun.
        there, back: for copies to and from the device, which then don't wait for kernels. The first one is that of
            volumes: the device would do all that is queued there before it turned to another one.
        waited: seconds that were spent waiting for the device.
    """

    def __init__(self, kind: WorkKind, need: WorkSize, size: int, columns: int, there: Any, back: Any) -> None:
        self.kind, self.there, self.back = kind, there, back
        self._room, self._locked = BufferPool(), BufferPool(lambda size: cuda.pinned_array(size, np.uint8))
        self.streams: list[Any] = []
        self.patient: list[Any] = []
        self.waited = 0.0
        self.grow(need, size, columns)

    def grow(self, need: WorkSize, size: int, columns: int) -> None:
        """Have room for more."""
        self.need, self.size, self.columns = need, size, columns
        self._room.most = self._locked.most = size
        for _ in range(need.groups - len(self.streams)):
            self.streams.append(0 if SIMULATED else urgent_stream())
            self.patient.append(0 if SIMULATED else cuda.stream())

    def room(self, name: str, size: int, dtype: Any) -> Any:
        """As ``BufferPool.array``."""
        return self._room.array(name, size, dtype)

    def prepare(self, name: str, size: int, dtype: Any) -> None:
        """Have room for what will be sent under a name, so that none has to be made in the midst of work."""
        self.room(name, size, dtype)
        self._locked.array(name, size, dtype)

    def send(self, name: str, array: np.ndarray, more: int = 0) -> Any:
        """The room of that name with a copy of ``array``, and room for ``more`` behind it.

        Nothing that is queued uses it any more; what will be queued for a group waits for the copy.
        """
        there = self.room(name, len(array) + more, array.dtype)
        if len(array):
            # From memory elsewhere the driver would send piece by piece, each behind residues that are on their way.
            send_through(self._locked.array(name, len(array), array.dtype), array, there, self.there, self.streams)
        return there

    def fetch(self, array: Any, first: int, last: int, slot: int = 0) -> np.ndarray:
        """Items first … last − 1 of a device array on the host, when all is done that is queued for a group."""
        locked = self._locked.array("fetched", last - first, array.dtype)
        with self._waiting():
            return receive_through(locked, array, first, last, self.back, self.streams[slot])

    def wait(self, slot: int | None = None) -> None:
        """Until all is done that is queued on a stream, or on all of them."""
        with self._waiting():
            for stream in self.streams if slot is None else (self.streams[slot],):
                synchronize(stream)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - begin
