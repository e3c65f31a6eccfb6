"""The FM-index on CUDA devices: its tables there, and the host's look-ups compiled for them.

The functions are those of ``fm_search_cpu``, the same source: they call each other by name, and here the names stand
for device functions.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any
from weakref import ref

import numpy as np
from numba import cuda as _cuda
from numba import int64, uint64
from seqloom.core.backends import device_count, on_device, simulated
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.cuda.transfer import to_device
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.plugins.exact_match import fm_search_cpu as host

from .fm_index import IndexPart
from .fm_seed_cpu import codes_of
from .symbols import NEVER

cuda: Any = _cuda  # numba's types don't know what code on the device may do


if simulated():  # whose threads, while one calls a function, may find no ``popc`` in the module

    @cuda.jit(device=True)
    def count_bits(word):
        return np.uint64(int(word).bit_count())
else:

    @cuda.jit(device=True)
    def count_bits(word):
        return np.uint64(cuda.popc(word))


def device_functions(*kernels: Any, **given: Any) -> dict[str, Any]:
    """Device functions by name, made of host kernels, each of which calls only those before it, or those given."""
    made = given
    for kernel in kernels:
        plain = kernel.py_func
        names = {**plain.__globals__, **made}
        made[plain.__name__] = cuda.jit(device=True)(FunctionType(plain.__code__, names, plain.__name__))
    return made


FUNCTIONS = device_functions(
    host.mapped_base, host._mapped_byte, host._odd_before, host.is_plain, host._odd_inside, host.mapped, host.extended,
    host.symbol_before, host.locate, host.shared, count_bits=count_bits)
"""The host's look-ups as device functions."""
_is_plain, _mapped_base, _extended = FUNCTIONS["is_plain"], FUNCTIONS["mapped_base"], FUNCTIONS["extended"]
_NEVER = int(NEVER)
_GRAIN = 64 << 20  # bytes in whole numbers of which free memory is told where there is much: plans serve again


@cuda.jit(device=True)
def backward(symbols, blocks, odd_rows, shift, packed, codes, query, begin, end):
    """Backward search for places begin … end − 1 of a query, u8 both: the first row, the one behind the last, and the
    place that the search came to. There are no rows if the text lacks what stands from this place on."""
    low, high, place = uint64(0), uint64(symbols[len(symbols) - 1, 0]), end
    while low < high and place > begin:
        place -= uint64(1)
        symbol = query[place]
        code = codes[symbol]
        if symbol == _NEVER:
            high = low
        elif _is_plain(blocks, shift, code, low, high):
            low = _mapped_base(blocks, shift, code, low)
            high = _mapped_base(blocks, shift, code, high)
        else:
            low, high = _extended(symbols, blocks, odd_rows, shift, packed, uint64(symbol), low, high)
    return low, high, place


@cuda.jit(device=True)
def range_of(bounds, ranges, row):
    """Which of some ranges of rows has a row; bounds: i8[ranges + 1], rows of the ranges before each."""
    low, high = int64(0), int64(ranges)
    while high - low > 1:
        middle = (low + high) // 2
        if bounds[middle] <= row:
            low = middle
        else:
            high = middle
    return low


def grid(count: int, threads: int) -> tuple[int, int]:
    """Blocks and threads for ``count`` things, one for each thread."""
    threads = 4 if SIMULATED else threads
    return -(-count // threads), threads


class Layout(NamedTuple):
    """What of an index a device holds beside what it takes to find rows.

    Attributes:
        places: sampled suffixes, so that places of rows are looked up there.
        text: the symbols of the text.
        text_on_host: whether the host needs these symbols for what the device finds.
    """

    places: bool = True
    text: bool = False
    text_on_host: bool = False


class DeviceTables(NamedTuple):
    """``Tables`` with arrays on the device, and ``codes``, u8[256]: see ``codes_of``; ``text``, u1, may be empty."""

    symbols: Any
    blocks: Any
    odd_rows: Any
    shift: np.uint64
    packed: bool
    samples: Any
    marks: Any
    codes: Any
    text: Any


def part_bytes(part: IndexPart, layout: Layout) -> int:
    """Bytes of a part of an index on a device."""
    fm = part.fm
    found = fm.symbols.nbytes + fm.blocks.nbytes + fm.odd_rows.nbytes
    return found + layout.places * (fm.samples.nbytes + fm.marks.nbytes) + layout.text * len(part.text)


@dataclass(eq=False)
class _Kept:
    """A part on a device: of which index, in which layout, its bytes, and how many use it now."""

    blocks: ref
    layout: Layout
    device: int
    tables: DeviceTables
    size: int
    users: int = 0

    def holds(self, part: IndexPart, layout: Layout, device: int) -> bool:
        return self.device == device and self.layout == layout and self.blocks() is part.fm.blocks


_kept: list[_Kept] = []  # the last used last
_changing = threading.Lock()  # held by whoever changes the list: devices work at the same time
_sending = defaultdict[int, threading.Lock](threading.Lock)  # by device: held by whoever sends it a part


def free_memory() -> int:
    """Bytes that can be had on each device when nobody has claimed any, with those of the parts that are kept there."""
    with claims.changed:
        if claims.active and claims.free:
            return claims.free
        least = 1 << 40
        for device in range(device_count()):
            with on_device(device):
                free = cuda.current_context().get_memory_info()[0]
            with _changing:
                least = min(least, int(min(free, 1 << 40)) + sum(kept.size for kept in _kept if kept.device == device))
        free = least * 9 // 10
        claims.free = free - free % _GRAIN if free > 16 * _GRAIN else free
        return claims.free


class _Claims:
    """How much of each device's memory those at work have, so that units run side by side as long as there is room.

    Attributes:
        active: what is claimed: index, its bytes, and other bytes. free: bytes that there were before.
    """

    def __init__(self) -> None:
        self.changed, self.active, self.free = threading.Condition(threading.RLock()), list[tuple[int, int, int]](), 0

    @contextmanager
    def claim(self, index: int, index_size: int, size: int, total: int) -> Iterator[Callable[[], int]]:
        """Wait until there is so much memory that nobody has claimed, or nobody has any; then have it.

        Args:
            index: identity of the index, whose ``index_size`` bytes all share that have the same one.
            size: other bytes, of each device.
            total: of the memory.

        Returns:
            Function that gives the bytes left for indexes.
        """
        mine = (index, index_size, size)
        with self.changed:
            self.changed.wait_for(lambda: not self.active or _claimed([*self.active, mine]) <= total)
            self.active.append(mine)
        try:
            yield lambda: total - sum(size for *_, size in list(self.active))
        finally:
            with self.changed:
                self.active.remove(mine)
                self.changed.notify_all()


def _claimed(claims: list[tuple[int, int, int]]) -> int:
    """Bytes of some claims; each index counts once."""
    indexes = {index: size for index, size, _ in sorted(claims)}
    return sum(indexes.values()) + sum(size for *_, size in claims)


claims = _Claims()


def is_there(part: IndexPart, layout: Layout, device: int) -> bool:
    """Whether a part is on a device."""
    with _changing:
        return any(kept.holds(part, layout, device) for kept in _kept)


def forget() -> None:
    """Let go of all parts on devices."""
    with _changing:
        _kept.clear()


@contextmanager
def tables_there(part: IndexPart, layout: Layout, device: int, room: int, threads: int) -> Iterator[DeviceTables]:
    """A part on the device at work, where it stays; those used longest ago leave for what doesn't fit ``room``.

    Args:
        room: bytes for all parts on the device.
        threads: of the host, that copy.
    """
    found = _taken(part, layout, device)
    if found is None:
        with _sending[device]:  # of units that want it at the same time one sends it
            found = _taken(part, layout, device) or _sent_for(part, layout, device, room, threads)
    try:
        yield found.tables
    finally:
        with _changing:
            found.users -= 1


def _taken(part: IndexPart, layout: Layout, device: int) -> _Kept | None:
    """A part that is on a device, for one user more."""
    with _changing:
        found = next((kept for kept in _kept if kept.holds(part, layout, device)), None)
        if found is not None:
            _kept.remove(found)
            _kept.append(found)
            found.users += 1
        return found


def _sent_for(part: IndexPart, layout: Layout, device: int, room: int, threads: int) -> _Kept:
    """A part that is sent to the device at work, for one user, when others have left that it has no room beside."""
    size = part_bytes(part, layout)
    with _changing:
        _kept[:] = [kept for kept in _kept if kept.users or kept.blocks() is not None]
        for kept in [kept for kept in _kept if kept.device == device and not kept.users]:
            if sum(other.size for other in _kept if other.device == device) + size <= room:
                break
            _kept.remove(kept)
    found = _Kept(ref(part.fm.blocks), layout, device, _sent_tables(part, layout, threads), size, 1)
    with _changing:
        _kept.append(found)
    return found


def _sent_tables(part: IndexPart, layout: Layout, threads: int) -> DeviceTables:
    """A copy of a part on the device at work."""
    fm, nothing = part.fm, np.empty(0, np.uint8)
    if not layout.places:
        fm = fm._replace(samples=fm.samples[:0], marks=fm.marks[:0])
    arrays: list[Any] = [_sent(array, threads) if isinstance(array, np.ndarray) else array for array in fm]
    arrays += [to_device(codes_of(fm)), _sent(part.text if layout.text else nothing, threads)]
    return DeviceTables(*arrays)


def _sent(array: np.ndarray, threads: int) -> Any:
    """A copy on the device; of no length where the array has none, which the device can't be asked for."""
    if array.size:
        return to_device(array.reshape(-1), threads).reshape(array.shape)
    return cuda.device_array((1, *array.shape[1:]), array.dtype)[:0]
