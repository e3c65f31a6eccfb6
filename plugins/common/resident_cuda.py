"""What is kept on CUDA devices: volumes while they live and memory lasts, and working space for the next stage at work.

Residues stand there as they are, a byte each: kernels take targets longest first, and ask for residues long before they
need them. Threads of the host copy them on a stream of its own, so that copying hides behind computing. Volumes stay
for later query batches until something else needs the room; what was used longest ago goes first.

A device finishes all its work before it gives memory back. So working space stays too, and the room of a volume that
goes is handed to the one that comes: a search that gave memory back between two queries or two volumes would wait for
its own work, and for that of all other threads.
"""

import math
import os
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import current_device, device_count, on_device
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.transfer import begin_to_device, make_ready, make_wait
from seqloom.core.errors import BackendError, BudgetError
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.sequences import SequenceBatch

from .target_order_cuda import BYTES_PER_COLUMN, BYTES_PER_STRETCH, TargetOrder
from .workspace_cuda import BufferPool, Count, WorkKind, WorkSize, Workspace, rounded

cuda: Any = _cuda
COPIERS = min(8, os.cpu_count() or 1)
"""Threads that copy residues: of hosts that were tried, four to eight keep a bus of 50 GB/s as busy as it gets."""
_PATIENCE = 60.0
"""Seconds to wait for room while nobody is at work."""
_SHARE = 0.9
"""Of the memory that is free at first use: the budget when none is given."""
VOLUME_RESIDUES = 256_000_000
"""Of a volume: 5 ms of the bus, which the host's own work for it hides behind."""
_WHOLE, PARTS_HELD = 4, 2
"""Volumes of which so many find room stay whole. Of others a stage has so many parts on a device at a time, one at work
and the next one."""
_SHARES = {True: 0.6, False: 0.15}
"""Of the budget, that parts and all that is needed beside them take of a stage whose volumes come part by part and that
fills a device, or doesn't; at least."""
_MOST_SHARES, _BESIDE_ONE = {True: 0.9, False: 0.3}, 2
"""And at most, where others leave so much. While a stage has the device or waits for it that fills it, so many of those
that don't have it, each with the least share."""
_OF_BUDGET, _SLACK = 0.9, 1.1
"""The same share of all of them, and of a stage that needs so much. What was there before is used again if it is that
much larger at most."""
_WORD, _LEAST_RESIDUES = 16, 256
"""Residues behind the last that may be read, and those that there is room for at least: whole words of residues."""
_FILLING, _BESIDE = 3, 12
"""Stages that are at work on a device at a time: of those that fill it, enough that it has work while some are at work
on the host; of those that don't, as many as the queues of the device suffice for (``core/backends.py``), since each of
these waits for its longest target rather than for the others. Stages of one kind don't take turns from the other."""


@lru_cache(8)
def _ascending(count: int) -> np.ndarray:
    return np.arange(count)


def ascending(count: int) -> np.ndarray:
    """i8[count]: 0, 1, 2 …; not to be written to, since volumes share them."""
    return _ascending(rounded(count))[:count]


class VolumeSize(NamedTuple):
    """Size of a volume, with what it has on a device beside its residues: one of each, as kernels may read that.

    Attributes:
        residues, stretches: at most; the stretches are its targets. There are whole words of residues.
    """

    residues: int
    stretches: int

    @classmethod
    def of(cls, residues: int, stretches: int) -> "VolumeSize":
        return cls(rounded(max(_LEAST_RESIDUES, residues + _WORD)), rounded(stretches + 1))

    @property
    def nbytes(self) -> int:
        return self.residues + BYTES_PER_STRETCH * self.stretches

    def holds(self, other: "VolumeSize") -> bool:
        """Whether a volume of that extent finds room here."""
        return other.residues <= self.residues and other.stretches <= self.stretches


class PartSize(NamedTuple):
    """Residues and targets that a part of a volume has at most; a single target may have more residues."""

    residues: int
    targets: int

    @property
    def nbytes(self) -> int:
        """Device memory for as many parts as are there at a time."""
        return PARTS_HELD * VolumeSize.of(*self).nbytes

    def cut(self, offsets: np.ndarray) -> list[tuple[int, int]]:
        """First and last but one target of each part of a volume."""
        parts, first = list[tuple[int, int]](), 0
        while first < len(offsets) - 1:
            last = int(np.searchsorted(offsets, offsets[first] + self.residues, "right")) - 1
            last = min(max(last, first + 1), first + self.targets)
            parts.append((first, last))
            first = last
        return parts


def rooms_for_parts(budget: int, fills: bool) -> tuple[float, float]:
    """Bytes of a budget that a stage has which fills a device or doesn't: beside others, or at most."""
    return _SHARES[fills] * budget, _OF_BUDGET * budget


def part_size(residues: int, targets: int, longest: int, rooms: Sequence[float], beside: Callable[[PartSize], int]
              ) -> PartSize:
    """The largest parts of a volume that find room.

    Args:
        residues, targets, longest: of the volume; residues of all its targets and of the longest.
        rooms: bytes; the first room is taken that has room for any.
        beside: bytes that work on a part of a size takes beside it.
    """
    for most in rooms:
        share = 1.0
        while True:
            part = PartSize(max(longest, int(share * residues)), min(targets, int(2 * share * targets) + 1))
            if part.nbytes + beside(part) <= most:
                return part
            if part.residues == longest:
                break
            share *= 0.9
    return part


def comes_in_parts(residues: int, targets: int, budget: int | None) -> bool:
    """Whether the volumes of so much to search go through devices part by part: where these have little room for them.

    All volumes do so or none: one that waits for room to stay would wait for parts that wait for its room.
    """
    if budget is None:
        return False
    of_volume = min(1.0, VOLUME_RESIDUES / max(1, residues))
    return _WHOLE * VolumeSize.of(int(of_volume * residues), int(of_volume * targets)).nbytes > budget


def in_parts(context: Context) -> bool:
    """Whether the volumes of a search go through devices part by part."""
    return comes_in_parts(context.space.total_residues, context.space.sequences, context.device_memory)


class Upload:
    """What is on its way to a device, until it has been sent.

    Args:
        waiting: waits for it when it is closed.

    Attributes:
        failed: the device failed meanwhile.
    """

    def __init__(self, waiting: ExitStack) -> None:
        # A finalizer may wait in a thread that does so already.
        self._waiting, self._lock, self.failed = waiting, threading.RLock(), False

    def wait(self) -> None:
        """Until all has been sent, so that what was sent may go.

        Raises:
            BackendError: the device failed, whoever was informed of it first.
        """
        with self._lock:
            if self.failed:
                raise BackendError("copying a volume to the device failed")
            try:
                self._waiting.close()
            except BaseException:
                self.failed = True
                raise


@dataclass(eq=False)
class Volume:
    """One volume on a device, or on its way there.

    Attributes:
        source: its residues on the host.
        residues: u1 on the device.
        target_order: all its targets.
        room: what both are in.
        extent: for which there is room.
        queue: the stream in which they come.
        sending: of both.
        users: how many use it now.
        ahead: nobody has used it yet.
    """

    source: "weakref.ref[np.ndarray]"
    residues: Any
    target_order: TargetOrder
    room: BufferPool
    extent: VolumeSize
    queue: Any
    sending: Upload
    users: int = 1
    ahead: bool = True

    def arrived(self, streams: Sequence[Any]) -> None:
        """Have what will be queued on some streams wait for the volume; the host waits until all has been sent."""
        self.sending.wait()
        make_wait(self.queue, streams)


def _wanted(volume: Volume) -> bool:
    """Whether somebody is going to use a volume that was brought ahead."""
    return volume.ahead and volume.source() is not None


class DeviceMemory:
    """What one device holds. All sizes are in bytes.

    Args:
        free: of which nine tenths are the budget where none is given.
    """

    def __init__(self, free: int) -> None:
        self._free = int(free * _SHARE)
        self._changed = threading.Condition()
        self._begun: list[np.ndarray] = []
        """Residues of volumes that are about to be sent."""
        self._held: list[Volume] = []
        """Those used longest ago first."""
        self._idle: list[Workspace] = []
        self._used = 0
        self._turns = {True: threading.Semaphore(_FILLING), False: threading.Semaphore(_BESIDE)}
        self._for_one = threading.Lock()
        """Held by the stage whose volume comes part by part and that fills the device."""
        self._by_parts = {True: 0, False: 0}
        """Such stages that fill it, and wait for it or have it; and those that don't, and have it."""
        self._asked, self._granted = deque[object](), 0.0
        """Such stages that wait for room, and bytes that those at work have."""
        self._at_work, self._waiting = Counter[int](), Counter[int]()
        """Threads that have working space, and those that wait for room, by identity."""
        self.copies = 0

    @contextmanager
    def working_space(self, size: int, budget: int | None, what: str) -> Iterator[None]:
        """Reserves room for a stage at work.

        Raises:
            BudgetError: it can't be had even after everything unused is gone.
        """
        self._reserve(size, budget, what)
        try:
            with self._working():
                yield
        finally:
            self._release(size)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """While somebody has working space, others may hope for room."""
        me = threading.get_ident()
        with self._changed:
            self._at_work[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._at_work -= Counter([me])

    @contextmanager
    def workspace(self, kind: WorkKind, need: WorkSize, budget: int | None, count: Count = lambda what, number: None,
                  most: float = math.inf) -> Iterator[Workspace]:
        """Working space for work of a kind and size: some that was used before, if there is.

        Waits while there are others enough at work.

        Args:
            count: told the milliseconds that were spent waiting, and how often memory was asked for.
            most: bytes of what was used before.

        Raises:
            BudgetError: as ``working_space``.
        """
        begin = time.perf_counter()
        with self._turns[kind.fills], self._space(kind, need, budget, count, most) as space:
            count("ms waiting for a turn", round(1000 * (time.perf_counter() - begin)))
            space.waited = 0.0
            try:
                yield space
            finally:
                count("ms waiting for the device", round(1000 * space.waited))

    @contextmanager
    def _space(self, kind: WorkKind, need: WorkSize, budget: int | None, count: Count, most: float
               ) -> Iterator[Workspace]:
        with self._changed:
            space = self._suitable(kind, need, budget, most)
            room_for = self._columns(kind, need, budget)
            there, back = self._queue, self._back
        if space is None:
            size = kind.size(need, room_for)
            self._reserve(size, budget, kind.what)
            space = Workspace(kind, need, size, room_for, there, back)
            count("working spaces made", 1)
        try:
            with self._working():
                try:
                    yield space
                finally:
                    space.wait()
        finally:
            with self._changed:
                self._idle.append(space)
                self._changed.notify_all()

    def _suitable(self, kind: WorkKind, need: WorkSize, budget: int | None, most: float) -> Workspace | None:
        """Working space of that kind that nobody uses: the smallest that suffices, or the largest, which grows.

        So there is no more of it than was ever used at a time, and none goes that the next unit of work will want.
        Where there is no room to grow it goes, rather than wait for others who may wait for it; and where it would
        take more than its user may.
        """
        idle = sorted((space for space in self._idle if space.kind == kind and space.size <= most),
                      key=lambda space: space.size)
        space = next((space for space in idle if need.within(space.need)), idle[-1] if idle else None)
        if space is None:
            return None
        self._idle.remove(space)
        columns, size, limit = space.columns, space.size, self._limit(budget)
        if grows := not need.within(space.need):
            need = need.joined(space.need)
            columns = max(columns, self._columns(kind, need, budget))
            size = max(size, kind.size(need, columns))
        if size > min(most, limit) or (grows and self._used + size - space.size > limit):
            self._used -= space.size
            return None
        self._used += size - space.size
        if grows:
            space.grow(need, size, columns)
        return space

    def _columns(self, kind: WorkKind, need: WorkSize, budget: int | None) -> int:
        """Whose borders new working space has room for: a quarter of what nobody uses may be theirs, so that others
        and the next volume find room."""
        unused = sum(held.extent.nbytes for held in self._held if not held.users) + sum(i.size for i in self._idle)
        plenty = (self._limit(budget) - self._used + unused) // 4 // need.groups // BYTES_PER_COLUMN
        least, most = kind.columns(need)
        return min(most, max(least, plenty))

    def release_idle(self) -> None:
        """Give back all working space that nobody uses, now rather than in the midst of the next search."""
        with self._changed:
            while self._idle:
                self._used -= self._idle.pop().size
            self._changed.notify_all()
        if not SIMULATED:
            cuda.current_context().deallocations.clear()

    def _reserve(self, size: int, budget: int | None, what: str, extent: VolumeSize | None = None,
                 ahead: bool = False, most: float = math.inf) -> Volume | None:
        """Take ``size`` bytes of the budget, or the place of a volume that nobody uses, that holds ``extent`` and takes
        ``most`` bytes or fewer.

        The smallest such place is taken if the budget is used up, since a device gives memory back when all its work is
        done only; otherwise one that isn't mostly more than needed. What nobody uses goes until there is room: volumes
        that nobody is going to use, longest unused first, then working space, then other volumes. What comes ``ahead``
        of its use takes no place from what is going to be used before, as long as somebody is at work who will leave
        one.

        Raises:
            BudgetError: as ``working_space``; or all who have working space wait for room as well.
        """
        limit, me = self._limit(budget), threading.get_ident()
        with self._changed:
            while True:
                unused = sorted((held for held in self._held if not held.users), key=_wanted)
                if ahead and self._at_work and self._used + size > limit and unused and _wanted(unused[0]):
                    self._changed.wait(timeout=_PATIENCE)
                    continue
                full = self._used + size > limit
                places = [held for held in unused if extent and held.extent.holds(extent) and (
                    full or (held.source() is None and 2 * held.extent.nbytes <= 3 * size))
                    and held.extent.nbytes <= most]
                if places and self._used <= limit:
                    old = min(places, key=lambda held: (_wanted(held), held.extent.nbytes))
                    self._held.remove(old)
                    return old
                if not full:
                    self._used += size
                    return None
                if unused and not (self._idle and _wanted(unused[0])):
                    self._drop(unused[0])
                elif self._idle:
                    self._used -= self._idle.pop(0).size
                elif size > limit or not self._used:
                    raise BudgetError(what, size, limit, "raise --device-memory, or use --backend cpu")
                else:
                    self._waiting[me] += 1
                    informed = self._changed.wait(timeout=_PATIENCE)
                    nobody = self._at_work.keys() <= self._waiting.keys()  # is at work who could make room
                    self._waiting -= Counter([me])
                    if nobody and not informed:
                        raise BudgetError(what, self._used + size, limit,
                                          "raise --device-memory, or use fewer threads (--num-threads)")

    def _limit(self, budget: int | None) -> int:
        return self._free if budget is None else min(budget, self._free)

    def _release(self, size: int) -> None:
        with self._changed:
            self._used -= size
            self._changed.notify_all()

    def _drop(self, volume: Volume) -> None:
        with suppress(Exception):  # whoever uses the device will be told
            volume.sending.wait()
        self._held.remove(volume)
        self._used -= volume.extent.nbytes

    def bring(self, targets: SequenceBatch, budget: int | None) -> Upload:
        """Have a volume on its way to the device before it is used. It has to be waited for even if nobody uses it.

        Raises:
            BudgetError: as ``working_space``.
        """
        with self._using(targets, budget, ahead=True) as volume:
            return volume.sending

    @contextmanager
    def volume(self, targets: SequenceBatch, budget: int | None, most: float = math.inf) -> Iterator[Volume]:
        """A volume, its residues as searched, on its way to the current device; it stays there while it is in use.

        Args:
            most: bytes of the room for it, where one that was there before is used again.

        Raises:
            BudgetError: as ``working_space``.
        """
        with self._using(targets, budget, most=most) as held:
            held.ahead = False
            yield held

    @contextmanager
    def parts(self, batches: Iterable[SequenceBatch], size: PartSize, kind: WorkKind, need: WorkSize, budget: int,
              count: Count = lambda what, number: None) -> Iterator[tuple[Workspace, Generator[Volume, None, None]]]:
        """Working space of a stage whose turn it is and whose volume comes part by part, and the parts, one after the
        other, each of which comes while the device is at work on the one before.

        What is queued for a part has to be done when the one behind the next is asked for, or the turn ends.

        Args:
            size: of the parts, so chosen that there is room for ``need`` and for as many as are there at a time.

        Raises:
            BudgetError: as ``working_space``.
        """
        working = kind.size(need, 0)
        with (self.workspace(kind, need, budget, count, _SLACK * working) as space,
              closing(self._volumes(batches, size, budget)) as volumes):
            yield space, volumes

    @contextmanager
    def turn(self, size: float = math.inf, budget: int | None = None, fills: bool | None = None,
             most: float = math.inf) -> Iterator[float]:
        """The turn of a stage that has parts of its volume come: nobody else gets so many bytes of the budget
        meanwhile, or any. First come, first served.

        Args:
            fills: of stages that ``part_size`` says the size of, whether they fill the device. One of these has it at a
                time, and a few of the others beside it; more of these, each with more room, where there is none.
            most: bytes that are of use to it.

        Yields:
            Bytes that it has.
        """
        me = object()
        size = math.ceil(size) if math.isfinite(size) else size  # so that nothing is left over when all are given back
        with self._room_beside(fills):
            with self._changed:
                self._asked.append(me)
                while self._asked[0] is not me or (self._granted and self._granted + size > self._limit(budget)):
                    self._changed.wait()
                self._asked.popleft()
                given = max(size, min(most, self._more_room(budget, fills)))
                self._granted += given
                self._changed.notify_all()
            try:
                yield given
            finally:
                with self._changed:
                    # What is infinite had it alone.
                    self._granted = self._granted - given if math.isfinite(given) else 0.0
                    self._changed.notify_all()

    def _more_room(self, budget: int | None, fills: bool | None) -> int:
        """Bytes that a stage may have now that fills the device or doesn't, and that others leave."""
        if fills is None or (not fills and self._by_parts[True]):
            return 0
        limit = self._limit(budget)
        return int(min(_MOST_SHARES[fills] * limit, _OF_BUDGET * limit - self._granted))

    @contextmanager
    def _room_beside(self, fills: bool | None) -> Iterator[None]:
        """Wait until not too many others have the device for a stage that fills it or doesn't."""
        if fills is None:
            yield
            return
        with self._changed:
            while not fills and self._by_parts[True] and self._by_parts[False] >= _BESIDE_ONE:
                self._changed.wait()
            self._by_parts[fills] += 1
        try:
            with self._for_one if fills else nullcontext():
                yield
        finally:
            with self._changed:
                self._by_parts[fills] -= 1
                self._changed.notify_all()

    def _volumes(self, parts: Iterable[SequenceBatch], size: PartSize, budget: int) -> Generator[Volume, None, None]:
        """Parts as volumes."""
        least, held = VolumeSize.of(*size), deque[tuple[ExitStack, Volume, SequenceBatch]]()
        try:
            for part in parts:
                if len(held) == PARTS_HELD:
                    held.popleft()[0].close()
                stack = ExitStack()
                volume = stack.enter_context(self._using(part, budget, least=least, most=_SLACK * least.nbytes))
                volume.ahead = False
                held.append((stack, volume, part))
                yield volume
        finally:
            for stack, volume, _ in held:
                with suppress(Exception):  # whoever uses the device will be told
                    volume.sending.wait()
                stack.close()

    @contextmanager
    def _using(self, targets: SequenceBatch, budget: int | None, ahead: bool = False, least: VolumeSize | None = None,
               most: float = math.inf) -> Iterator[Volume]:
        """least: what the room for the volume is to hold, so that the next ones can have it; most: bytes of that room,
        where one that was there before is used again."""
        source = targets.searched()
        with self._changed:
            while (held := self._find(source)) is None and any(source is begun for begun in self._begun):
                self._changed.wait()
            if held is None:
                self._begun.append(source)
        if held is None:
            try:
                held = self._sent(source, targets, budget, ahead, least, most)
            finally:
                with self._changed:
                    self._begun = [begun for begun in self._begun if begun is not source]
                    self._changed.notify_all()
        try:
            yield held
        finally:
            with self._changed:
                held.users -= 1
                self._changed.notify_all()

    def _find(self, source: np.ndarray) -> Volume | None:
        with self._changed:
            held = next((held for held in self._held if held.source() is source and not held.sending.failed), None)
            if held is not None:
                self._held.remove(held)
                self._held.append(held)
                held.users += 1
            return held

    def _sent(self, source: np.ndarray, targets: SequenceBatch, budget: int | None, ahead: bool,
              least: VolumeSize | None, most: float) -> Volume:
        extent = VolumeSize.of(len(source), len(targets))
        if least is not None:
            extent = VolumeSize(*map(max, extent, least))
        old = self._reserve(extent.nbytes, budget, "a volume on the device", extent, ahead, most)
        room, extent = (BufferPool(), extent) if old is None else (old.room, old.extent)
        with self._changed:
            queue = self._queue

        def send(name: str, array: np.ndarray) -> Any:
            coming.callback(begin_to_device(array, places[name], 1, queue, high_priority=True))
            return places[name]

        try:
            if old is not None:
                with suppress(Exception):  # nobody may have used it, or will
                    old.sending.wait()
            # Before residues are on their way: while they are, whoever asks the driver for memory waits long.
            places = {name: room.array(name, size, dtype) for name, size, dtype in (
                ("residues", extent.residues, np.uint8), ("bounds", extent.stretches, np.int64),
                ("ranked", extent.stretches, np.int32))}
            with ExitStack() as coming:
                residues = places["residues"]
                coming.callback(begin_to_device(source, residues, COPIERS, queue))
                target_order = TargetOrder.of_volume(ascending(len(targets)), targets.offsets, targets.lengths, send)
                volume = Volume(weakref.ref(source), residues, target_order, room, extent, queue,
                                Upload(coming.pop_all()))
        except BaseException:
            self._release(extent.nbytes)
            raise
        with self._changed:
            self._held.append(volume)
        self.copies += 1
        return volume

    @cached_property
    def _queue(self) -> Any:
        """The stream to the device; not the default one, which waits for all others. Asked for under a lock."""
        return 0 if SIMULATED else cuda.stream()

    @cached_property
    def _back(self) -> Any:
        """The stream from the device, likewise."""
        return 0 if SIMULATED else cuda.stream()


@cache
def _memory(device: int) -> DeviceMemory:
    free = 1 << 30 if SIMULATED else int(cuda.current_context().get_memory_info()[0])
    return DeviceMemory(free)


_making = threading.Lock()


def device_memory() -> DeviceMemory:
    """That of the current device."""
    with _making:
        return _memory(current_device())


def prepare_devices() -> None:
    """Have the device made ready by a thread of its own: that takes as long as it takes to read the first volume."""

    def ready() -> None:
        with suppress(Exception):  # whoever needs the device will be told
            device_count()
            device_memory()
            make_ready(COPIERS)

    threading.Thread(target=ready, name="wake").start()


def devices_for(context: Context) -> Sequence[int]:
    """Numbers of the devices that share a stage's work."""
    return context.devices or range(device_count())


def on_devices(work: Callable[[Any], Any], items: Sequence[Any], devices: Sequence[int]) -> list[Any]:
    """Results of ``work`` on each item, done on the device that goes with it, at the same time as the others."""

    def there(device: int, item: Any) -> Any:
        with on_device(device):
            return work(item)

    if len(items) == 1:
        return [there(devices[0], items[0])]
    with ThreadPoolExecutor(max(1, len(items)), thread_name_prefix="device") as pool:
        return list(pool.map(there, devices, items))
