"""What is kept on CUDA devices: volumes while they live and memory lasts, and working space for the next stage at work.

Letters go as they are: kernels take targets longest first, and ask for letters long before they need them. A few
threads copy them on a stream of its own, so that copying hides behind computing. Volumes stay for later query batches
until something else needs the room; what was used longest ago goes first.

Working space stays too, because memory of a device can only be given back when all its kernels are done: a search that
did so after every query would wait for its own work, and for that of all other threads.
"""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import on_device
from seqloom.core.copies_cuda import to_device
from seqloom.core.errors import BudgetError
from seqloom.core.jit import kernel as host_kernel
from seqloom.core.packed16 import SIMULATED
from seqloom.core.sequences import SequenceBatch

cuda: Any = _cuda
_COPIERS = 4
_COUNTED_LENGTHS = 1 << 20
"""Lengths that are sorted by counting them."""
_PATIENCE = 60.0
"""Seconds to wait for room while nobody is at work."""
_SHARE = 0.9
"""Of the memory that is free at first use: the budget when none is given."""
_AT_WORK = 2
"""Stages that are at work on a device at a time: enough to fill it, few enough that their streams have queues of the
device for themselves, of which there are eight."""


class Borders(NamedTuple):
    """Where works keep what crosses from one tile of a query to the next.

    Attributes:
        parts: (first, last) works that are done at a time.
        places: i8[works] on the device, where the border of each begins.
        most: columns of the largest part.
    """

    parts: list[tuple[int, int]]
    places: Any
    most: int


@dataclass(eq=False)
class Works:
    """Stretches of letters in the order in which kernels take them, longest first, on host and device.

    Attributes:
        order: i8[k], their numbers.
        lengths: i4[k + 1] on the host; one stretch more, of no letters, where the last register holds one only.
        starts, counts: i8[k + 1] and i4[k + 1] on the device: first letter, number of letters.
        send: copies an array that has a name to the device.
    """

    order: np.ndarray
    lengths: np.ndarray
    starts: Any
    counts: Any
    send: Callable[[str, np.ndarray], Any]
    _known: dict[tuple[int, int], Borders] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, chosen: np.ndarray, first_letters: np.ndarray, lengths: np.ndarray,
           send: Callable[[str, np.ndarray], Any]) -> "Works":
        """The stretches numbered ``chosen`` (i8), of so many letters from a first one on."""
        order, starts, taken = longest_first(np.asarray(chosen, np.int64), first_letters, lengths)
        return cls(order, taken, send("starts", starts), send("counts", taken), send)

    def borders(self, together: int, columns_at_once: int) -> Borders:
        """Those of works of ``together`` stretches each, done in parts of so many columns (one work at least)."""
        key = together, columns_at_once
        with self._lock:
            if key not in self._known:
                columns = self.lengths[::together].astype(np.int64)[: -(-len(self.order) // together)]
                places = np.cumsum(columns) - columns
                parts = _parts(columns, columns_at_once)
                places -= np.repeat([places[a] for a, _ in parts], [b - a for a, b in parts])
                self._known[key] = Borders(parts, self.send(f"borders {together}", places),
                                           max(int(columns[a:b].sum()) for a, b in parts))
            return self._known[key]


def longest_first(chosen: np.ndarray, first_letters: np.ndarray,
                  lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """i8[k] numbers ``chosen`` by falling length, those of one length in their order; their first letters and lengths.

    These, i8 and i4, have one place more, for a stretch of no letters.
    """
    order, starts = np.empty(len(chosen), np.int64), np.zeros(len(chosen) + 1, np.int64)
    taken = np.zeros(len(chosen) + 1, np.int32)
    longest = int(lengths[chosen].max(initial=0))
    if longest < _COUNTED_LENGTHS:
        _count(chosen, lengths, longest, np.zeros(longest + 2, np.int64), order)
    else:
        order[:] = chosen[np.argsort(-lengths[chosen], kind="stable")]
    _follow(order, first_letters, lengths, starts, taken)
    return order, starts, taken


@host_kernel
def _count(chosen, lengths, longest, nexts, order):
    """Fill ``order``; ``nexts`` are zeros."""
    for number in chosen:
        nexts[longest - lengths[number] + 1] += 1
    for place in range(longest + 1):
        nexts[place + 1] += nexts[place]
    for number in chosen:
        place = longest - lengths[number]
        order[nexts[place]] = number
        nexts[place] += 1


@host_kernel
def _follow(order, first_letters, lengths, starts, taken):
    """Fill ``starts`` and ``taken``."""
    for place in range(len(order)):
        starts[place] = first_letters[order[place]]
        taken[place] = lengths[order[place]]


def _parts(columns: np.ndarray, most: int) -> list[tuple[int, int]]:
    """Runs of works of at most ``most`` columns together, one work at least."""
    ends = np.cumsum(columns)
    parts, first = [], 0
    while first < len(columns):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        parts.append((first, last))
        first = last
    return parts


BYTES_PER_STRETCH = 24
"""Of ``Works`` on the device, with their borders for registers of one stretch and of two."""


def rounded(number: int) -> int:
    """A number that is at most an eighth larger and has four leading bits: what grows a little fits the same room."""
    unit = 1 << max(0, number.bit_length() - 4)
    return -(-number // unit) * unit


class Need(NamedTuple):
    """Size of the work on a device that working space is for.

    Attributes:
        stretches, letters, longest: of targets; letters of all of them and of the longest.
        query: letters of the longest query.
    """

    stretches: int
    letters: int
    longest: int
    query: int

    def rounded(self) -> "Need":
        return Need(*map(rounded, self))

    def within(self, other: "Need") -> bool:
        return all(mine <= theirs for mine, theirs in zip(self, other, strict=True))


class Workspace:
    """Streams and arrays of a stage at work on one device.

    Attributes:
        need: what there is room for.
        streams: two, for kernels.
        copies: one for copies, which then don't wait for kernels.
    """

    def __init__(self, need: Need, size: int) -> None:
        self.need, self.size = need, size
        self._rooms: dict[str, Any] = {}
        self.streams: tuple[Any, Any] = (0, 0) if SIMULATED else (cuda.stream(), cuda.stream())
        self.copies: Any = 0 if SIMULATED else cuda.stream()

    def room(self, name: str, size: int, dtype: Any) -> Any:
        """An array of that length or more; that of the same name is gone, if it was shorter."""
        array = self._rooms.get(name)
        if array is None or len(array) < size:
            array = self._rooms[name] = cuda.device_array(rounded(max(1, size)), dtype)
        return array

    def send(self, name: str, array: np.ndarray) -> Any:
        """The room of that name with a copy of ``array``; nothing that is queued uses it any more."""
        there = self.room(name, len(array), array.dtype)
        if len(array):
            there[: len(array)].copy_to_device(np.ascontiguousarray(array), stream=self.copies)
            self._settle()
        return there

    def fetch(self, array: Any) -> np.ndarray:
        """A device array on the host; what fills it is done."""
        if not len(array):
            return np.empty(0, array.dtype)
        host = array.copy_to_host(stream=self.copies)
        self._settle()
        return host

    def _settle(self) -> None:
        if not SIMULATED:
            self.copies.synchronize()

    def wait(self, slot: int | None = None) -> None:
        """Until all is done that is queued on a stream, or on all of them."""
        if not SIMULATED:
            for stream in self.streams if slot is None else (self.streams[slot],):
                stream.synchronize()


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
        self._idle: list[Workspace] = []
        self._used = 0
        self._working = 0
        self._turns = threading.Semaphore(_AT_WORK)
        self._stream: Any = None
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

    @contextmanager
    def workspace(self, need: Need, size: int, budget: int | None, what: str) -> Iterator[Workspace]:
        """Working space for work of that size, of ``size`` bytes at most: some that was used before, if there is.

        Waits while there are others enough at work.

        Raises:
            BudgetError: as ``working_space``.
        """
        with self._turns, self._space(need, size, budget, what) as space:
            yield space

    @contextmanager
    def _space(self, need: Need, size: int, budget: int | None, what: str) -> Iterator[Workspace]:
        with self._changed:
            space = next((idle for idle in self._idle if need.within(idle.need)), None)
            if space:
                self._idle.remove(space)
                self._working += 1
            elif self._idle:
                self._used -= self._idle.pop(0).size  # too small: the larger one that follows serves both
        if space is None:
            self._reserve(size, budget, what)
            with self._changed:
                self._working += 1
            space = Workspace(need, size)
        try:
            yield space
        finally:
            space.wait()
            with self._changed:
                self._working -= 1
                self._idle.append(space)
                self._changed.notify_all()

    def release_idle(self) -> None:
        """Give back all working space that nobody uses."""
        with self._changed:
            while self._idle:
                self._used -= self._idle.pop().size
            self._changed.notify_all()

    def _reserve(self, size: int, budget: int | None, what: str) -> list[Volume]:
        """Take ``size`` bytes of the budget; gives the volumes that had to go for it, longest unused first.

        Working space that nobody uses goes last: the next unit of work will want it.
        """
        limit = self._free if budget is None else min(budget, self._free)
        dropped = []
        with self._changed:
            while self._used + size > limit:
                idle = next((key for key, held in self._held.items() if not held.users), None)
                if idle is not None:
                    dropped.append(self._drop(idle))
                elif self._idle:
                    self._used -= self._idle.pop(0).size
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
            works = Works.of(np.arange(len(offsets) - 1), offsets, np.diff(offsets), self._send)
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
        if not SIMULATED and self._stream is None:
            self._stream = cuda.stream()  # not the default one, which waits for all others
        to_device(source, _COPIERS, array, self._stream)
        self._settle()

    def _send(self, name: str, array: np.ndarray) -> Any:
        there = cuda.to_device(np.ascontiguousarray(array), stream=self._stream or 0)
        self._settle()
        return there

    def _settle(self) -> None:
        if self._stream:
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


def wake() -> None:
    """Have the device made ready by a thread of its own: that takes as long as it takes to read the first volume."""

    def ready() -> None:
        with suppress(Exception):  # whoever needs the device will be told
            device_memory()

    threading.Thread(target=ready, name="wake").start()


def on_devices(work: Callable[[Any], Any], items: Sequence[Any], devices: Sequence[int]) -> list[Any]:
    """Results of ``work`` on each item, done on the device that goes with it, at the same time as the others."""

    def there(device: int, item: Any) -> Any:
        with on_device(device):
            return work(item)

    if len(items) == 1:
        return [there(devices[0], items[0])]
    with ThreadPoolExecutor(max(1, len(items)), thread_name_prefix="device") as pool:
        return list(pool.map(there, devices, items))
