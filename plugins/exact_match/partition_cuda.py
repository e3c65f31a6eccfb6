"""Parts of an index and of the queries on CUDA devices: made as the model of ``partition`` says, and brought together.

What is looked up, and how, is a ``PartSearch``. A part of the index is the index of a stretch of the text, which
reaches into the next one, so that what begins in it and isn't longer than that is found in it alone. While a part of
the queries is looked up the next one is on its way, on a stream of its own, to arrays of its own.

Source: A. Drozd's thesis on string sorting and BWT alignment, 3.5.2 to 3.5.4.
"""

import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.transfer import begin_to_device, make_wait, to_device
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_search_cuda as devices

from .fm_index import KIND, IndexPart, tables_of
from .fm_index_cpu import FmIndexCpu
from .fm_index_reference import FmIndexOptions
from .fm_search_cuda import DeviceTables, Layout, cuda, part_bytes
from .partition import Costs, Split, Work, about, best_split, costs_for, enough_devices
from .seed_reference import Strand
from .strands_cpu import strand_of
from .symbols import end, target_text

LEAST_RESIDUES = 4096
"""Of a part of the index."""
MOST_ROWS = 1 << 24
"""Rows of results at a time."""
SLACK = 16 << 10
"""Bytes of small arrays, and of what the device adds to each."""
_BUFFERS = 2  # parts of the queries on a device: one that is looked up, and the next


class QueryPart(NamedTuple):
    """Queries first … last − 1 of a strand."""

    strand: int
    first: int
    last: int


class Room(NamedTuple):
    """Memory of each device: bytes for parts of index and queries, and rows of results at a time."""

    memory: int
    rows: int


class Lane:
    """What one device works with: a stream for kernels and one for copies, and arrays, which serve again."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.work: Any = 0 if SIMULATED else cuda.stream()
        self.bus: Any = 0 if SIMULATED else cuda.stream()
        self._arrays: dict[tuple[str, int, np.dtype], Any] = {}

    @property
    def nbytes(self) -> int:
        """Of its arrays."""
        return sum(int(array.nbytes) for array in self._arrays.values())

    def array(self, name: str, count: int, dtype: Any, slot: int = 0) -> Any:
        """A device array for ``count`` items at least, the one that was there before if it is large enough."""
        key = name, slot, np.dtype(dtype)
        array = self._arrays.get(key)
        if array is None or len(array) < count:
            self._arrays.pop(key, None)
            self._arrays[key] = array = cuda.device_array(max(1, count), dtype)
        return array

    def table(self, name: str, rows: int) -> Any:
        """i8[rows, 3] on the device."""
        return self.array(name, 3 * rows, np.int64)[: 3 * rows].reshape(rows, 3)

    def send(self, name: str, array: np.ndarray) -> Any:
        """A copy that kernels which are started from now on find."""
        there = self.array(name, len(array), array.dtype)[: len(array)]
        return to_device(array, self.threads, there, self.work)

    def begin(self, arrays: dict[str, np.ndarray], slot: int) -> Callable[[], dict[str, Any]]:
        """Begin to copy; what this returns has kernels wait for the copies, and gives them."""
        there = {name: self.array(name, len(array), array.dtype, slot)[: len(array)] for name, array in arrays.items()}
        finish = [begin_to_device(array, there[name], self.threads, self.bus) for name, array in arrays.items()]

        def arrived() -> dict[str, Any]:
            for wait in finish:
                wait()
            make_wait(self.bus, [self.work])
            return there

        return arrived


class PartSearch(ABC):
    """Looks up a part of the queries in a part of the index.

    Attributes:
        layout: what the device has to have of an index.
        query_bytes: bytes of a query on a device, beside those of its residues.
        row_bytes: bytes of a row of results.
    """

    layout: Layout
    query_bytes: int
    row_bytes: int

    def __init__(self, context: Context, strands: Sequence[Strand], room: Room) -> None:
        self.check, self.threads = context.cancellation.check, context.threads
        self.lengths, self.strands, self.room = context.queries.lengths, strands, room

    def span(self, queries: QueryPart) -> tuple[int, int]:
        """The stretch of the strand that holds some queries, with what parts them from others."""
        starts = self.strands[queries.strand].starts
        return int(starts[queries.first]) - 1, int(starts[queries.last - 1] + self.lengths[queries.last - 1]) + 1

    @abstractmethod
    def arrays(self, queries: QueryPart) -> dict[str, np.ndarray]:
        """What the device is sent of them."""

    @abstractmethod
    def look_up(self, lane: Lane, there: DeviceTables, sent: dict[str, Any], part: IndexPart,
                queries: QueryPart) -> Any:
        """What is found; called by a thread that works on the device."""


class Partition:
    """How a search is cut, and the cut search.

    Args:
        search: of what is looked up; made of context, strands and room.
        overlap: residues that a part of the index reaches into the next: few different numbers, so that parts can serve
            again.
    """

    def __init__(self, context: Context, strands: Sequence[Strand], search: type[PartSearch], overlap: int,
                 room: Room | None = None) -> None:
        self._context, self._strands, self._search, self._overlap = context, strands, search, overlap
        self.room = room_of(context, search.row_bytes) if room is None else room
        self._sizes, self._whole = context.queries.lengths + 1 + search.query_bytes, list[IndexPart]()

    def work(self) -> Work:
        """The sizes that the model wants to know."""
        whole = self.parts(1)[0]
        size = part_bytes(whole, self._search.layout)
        density, count = size / whole.places, devices.device_count()
        made = self._made()
        cut = len(made.parts) if made.common == self._overlap else 0
        return Work(index=size, queries=about(int(self._sizes.sum()) * len(self._strands)), memory=self.room.memory,
                    least_index=int(density * max(LEAST_RESIDUES, self._overlap)) + 1,
                    least_queries=int(self._sizes.max()), overlap=int(density * self._overlap) + SLACK, devices=count,
                    there=self._parts_there(count), cut=cut, cutting=made.seconds, buffers=_BUFFERS)

    def run(self, costs: Callable[[], Costs]) -> tuple[list[IndexPart], list[tuple[QueryPart, IndexPart, Any]]]:
        """Parts of the index, and what is found of each part of the queries in each of them; counted and told.

        Args:
            costs: of the machine; asked for where there is something to choose.
        """
        context, work, enough = self._context, self.work(), None
        if work.devices == 1 and work.index + work.queries <= work.memory and work.queries < _AT_ONCE:
            split, parts = Split("index", 1, 1, work.index / work.memory, 0.0), self.parts(1)
        else:
            known = costs()
            with self._made().lock:  # of units side by side one plans, and cuts for all
                work = self.work()
                split, parts = self._planned(work, known)
            enough = enough_devices(work, known)
        _say(context.slot, split, enough)
        index_bytes = max(part_bytes(part, self._search.layout) for part in parts)
        queries = min(work.queries, _BUFFERS * (work.queries // split.query_parts + work.least_queries))
        key = id(tables_of(context.index(KIND)).blocks) if len(parts) == 1 else id(parts[0].fm.blocks) ^ id(split)
        size = min(queries, max(0, self.room.memory - index_bytes)) + self.room.rows * self._search.row_bytes
        with devices.claims.claim(key, index_bytes, size, self.room.memory + self.room.rows * self._search.row_bytes):
            self._warm(parts[0])
            begin = time.perf_counter()
            found = self.met(split, parts)
        context.count("measured_us", round(1e6 * (time.perf_counter() - begin)))
        context.count("predicted_us", round(1e6 * split.seconds))
        context.count("index_parts", split.index_parts)
        context.count("query_parts", split.query_parts)
        context.count("alpha_percent", round(100 * split.share))
        context.count("splits")
        return parts, found

    def _planned(self, work: Work, costs: Costs) -> tuple[Split, list[IndexPart]]:
        """The best split, and the parts of the index."""
        while True:
            split = best_split(work, costs)
            parts = self.parts(split.index_parts)
            if work.largest_part(self._left(parts)) >= min(work.least_queries, work.queries):
                return split, parts
            work = replace(work, index=work.index * 5 // 4)  # what takes the room isn't spread evenly: smaller parts

    def _left(self, parts: list[IndexPart]) -> int:
        """Bytes that the largest part of the index leaves for queries."""
        return self.room.memory - max(part_bytes(part, self._search.layout) for part in parts)

    def met(self, split: Split, parts: list[IndexPart]) -> list[tuple[QueryPart, IndexPart, Any]]:
        """What is found of each part of the queries in each of the index, by a split.

        Raises:
            CudaAPIError: the devices have less memory than the room says.
        """
        sizes, count = self._sizes, devices.device_count()
        total = int(sizes.sum()) * len(self._strands)
        left = self._left(parts)
        most = min(left if total <= left else left // _BUFFERS, -(-total // split.query_parts) + int(sizes.max()))
        queries = [QueryPart(n, *bounds) for n in range(len(self._strands)) for bounds in _cut(sizes, most)]
        held = min(total, _BUFFERS * most)
        search = self._search(self._context, self._strands, self.room)

        def on(device: int) -> list[Any]:
            if split.order == "index":
                pairs = [(part, some) for part in parts[device::count] for some in queries]
            else:
                pairs = [(part, some) for some in queries[device::count] for part in parts]
            return list(_looked_up(search, pairs, device, self.room.memory - held))

        return [found for some in everywhere(on) for found in some]

    def _warm(self, part: IndexPart) -> None:
        """Have the kernels compiled for such tables, and loaded on each device: what is measured is the work alone."""
        kind = self._search, tuple(item.dtype if isinstance(item, np.ndarray) else type(item) for item in part.fm)
        if SIMULATED or kind in _compiled or not self._context.targets.total_residues:
            return
        with _warming:
            if kind not in _compiled:
                self._try(part)
                _compiled.add(kind)

    def _try(self, part: IndexPart) -> None:
        """Look up a stretch of the text."""
        # What is in the text is found, and a stretch of it has few rows, of which a short word would have millions.
        stretch = self._context.targets.stretch(0, min(_WARMING, self._context.targets.total_residues))
        one = SequenceBatch(NUCLEOTIDE, stretch, np.array([0, len(stretch)]), np.zeros(1, np.int64))
        context = Context(queries=one, targets=self._context.targets, options=self._context.options)
        search = self._search(context, [strand_of(one, 1, False)],
                              self.room._replace(rows=min(self.room.rows, _WARMING_ROWS)))
        everywhere(lambda device: list(_looked_up(search, [(part, QueryPart(0, 0, 1))], device, self.room.memory)))

    def _parts_there(self, count: int) -> int:
        """The number of parts in which an index is on the devices, one on each."""
        layout = self._search.layout
        if all(devices.is_there(self.parts(1)[0], layout, n) for n in range(count)):
            return 1
        made = self._made()
        there = [devices.is_there(part, layout, n) for n, part in enumerate(made.parts)]
        return len(there) if there and made.common == self._overlap and all(there) else 0

    def parts(self, count: int) -> list[IndexPart]:
        """The index as it is, or cut in parts, which are kept as long as the index."""
        context, overlap = self._context, self._overlap
        if count == 1 and self._whole:
            return self._whole
        index = context.index(KIND)
        fm = tables_of(index)
        size = int(fm.symbols[-1, 0])
        if count == 1 and not (self._search.layout.text or self._search.layout.text_on_host):
            self._whole = [IndexPart(fm, 0, size, np.empty(size, np.uint8))]
            return self._whole
        made = self._made()
        with made.lock:
            if made.text is None:
                made.text = target_text(context.targets, acgt_only=False)[0]
            if count == 1:
                self._whole = [IndexPart(fm, 0, size, made.text)]
                return self._whole
            if made.common != overlap or len(made.parts) != count:
                begin = time.perf_counter()
                made.parts, made.common = self._cut(index, made.text, count), overlap
                made.seconds = time.perf_counter() - begin
            return made.parts

    def _made(self) -> "_Made":
        """What was made of the index so far."""
        made: _Made = self._context.index(KIND).kept("parts", _Made)
        return made

    def _cut(self, index: Index, text: np.ndarray, count: int) -> list[IndexPart]:
        """An index of a text made anew in parts."""
        context, overlap, size = self._context, self._overlap, int(tables_of(index).symbols[-1, 0])
        alphabet, bounds = context.targets.alphabet, np.linspace(0, size, count + 1).astype(int).tolist()
        stage = FmIndexCpu(FmIndexOptions(index.parameters["bucket"], index.parameters["sample"]))

        def part(n: int) -> IndexPart:
            context.cancellation.check()
            first, last = bounds[n], bounds[n + 1]
            stretch = np.append(text[: size - 1][first : last + overlap], np.uint8(end(alphabet)))
            arrays = stage.arrays(context, stretch, alphabet, index.parameters["bucket"], index.parameters["sample"])
            return IndexPart(tables_of(Index(KIND, "target", arrays, index.parameters)), first, last - first, stretch)

        return run_tasks(context.threads, part, range(count))


@dataclass(eq=False)
class _Made:
    """What was made of an index, kept as long as it is.

    Attributes:
        text: its own.
        parts: that it was last cut in.
        common: residues that they have in common.
        seconds: that cutting took.
        lock: held while text and parts are made, and by who plans.
    """

    text: np.ndarray | None = None
    parts: list[IndexPart] = field(default_factory=list)
    common: int = 0
    seconds: float = 0.0
    lock: Any = field(default_factory=threading.RLock)


_WARMING, _WARMING_ROWS = 40, 1 << 16  # residues that are looked up to have kernels loaded, and room for their rows
_AT_ONCE = 1 << 26  # bytes of queries up to which nothing is gained by cutting what fits one device
_compiled: set[Any] = set()
_warming = threading.Lock()  # held by whoever has kernels loaded
_SHARE_KEPT = 64
"""Which part of a device's memory the arrays of a lane that stays may be: one in so many."""
_idle = defaultdict[int, list[Lane]](list)  # lanes by device
_idle_lock = threading.Lock()


def room_of(context: Context, row_bytes: int) -> Room:
    """What memory there is, or what the run may take."""
    budget = min(context.device_memory or 1 << 62, devices.free_memory())
    rows = max(64, min(MOST_ROWS, budget // 8 // row_bytes))
    return Room(budget - rows * row_bytes - SLACK, rows)


def _cut(sizes: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """First and last + 1 of runs of items that have at most so many bytes together."""
    ends, first = np.cumsum(sizes), 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + most, "right")))
        yield first, last
        first = last


def _looked_up(search: PartSearch, pairs: list[tuple[IndexPart, QueryPart]], device: int,
               room: int) -> Iterator[tuple[QueryPart, IndexPart, Any]]:
    """Parts that meet on one device, and what is found.

    Args:
        room: bytes for parts of indexes.
    """
    turns = [n for n, (_, some) in enumerate(pairs) if not n or some is not pairs[n - 1][1]]  # with other queries
    coming: list[Callable[[], dict[str, Any]]] = []
    turn, sent = -1, dict[str, Any]()
    with _lane(device, search) as lane:
        for n, (part, some) in enumerate(pairs):
            search.check()
            if turn + 1 < len(turns) and turns[turn + 1] == n:
                turn += 1
                sent = (coming.pop() if coming else lane.begin(search.arrays(some), turn % _BUFFERS))()
                if _BUFFERS > 1 and turn + 1 < len(turns):
                    coming.append(lane.begin(search.arrays(pairs[turns[turn + 1]][1]), (turn + 1) % _BUFFERS))
            with devices.tables_there(part, search.layout, device, room, search.threads) as there:
                found = search.look_up(lane, there, sent, part, some)
            yield some, part, found


@contextmanager
def _lane(device: int, search: PartSearch) -> Iterator[Lane]:
    """One that nobody else uses meanwhile. It stays for the next search where its arrays are a small part of the
    memory: to ask the device for memory, or to give it back, has all others that work there wait. Those of a search
    that had more memory than this one don't."""

    def may_stay(lane: Lane) -> bool:
        return _SHARE_KEPT * lane.nbytes <= search.room.memory

    with _idle_lock:
        _idle[device] = list(filter(may_stay, _idle[device]))
        lane = _idle[device].pop() if _idle[device] else Lane(search.threads)
    yield lane
    if may_stay(lane):
        with _idle_lock:
            _idle[device].append(lane)


def everywhere(work: Callable[[int], Any]) -> list[Any]:
    """What ``work`` gives for each device, done at the same time, each by a thread that works on it."""
    count = devices.device_count()

    def on(device: int) -> Any:
        with devices.on_device(device):
            return work(device)

    if count == 1 or SIMULATED:
        return [on(device) for device in range(count)]
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(on, range(count)))


# ---- what the model needs to know of the machine


_measuring = threading.Lock()
_costs: dict[tuple[str, int, str, int], Costs] = {}
"""Of this machine, as they were asked for."""


def machine_costs(context: Context, asked: str, what: str, query_bytes: int,
                  look_up: Callable[[Context, list[Strand], list[IndexPart], Split], object]) -> Costs:
    """The costs that the option ``costs`` asks for, with as many threads on the host and all devices.

    Args:
        what: is looked up: costs of different things are kept apart.
        query_bytes: of ``PartSearch``.
        look_up: looks up whole queries of a context by a split, with all memory.
    """
    kind = asked, context.threads, what, devices.device_count()
    with _measuring:  # units side by side would disturb one another; the first one's are kept for the others
        if kind not in _costs:
            machine = f"{devices.device_count()} x {_device_name()}, {context.threads} threads, {what}"
            _costs[kind] = costs_for(asked, machine, lambda: _measured(context.threads, query_bytes, look_up))
        return _costs[kind]


def _device_name() -> str:
    if SIMULATED:
        return "simulator"
    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def _measured(threads: int, query_bytes: int,
              look_up: Callable[[Context, list[Strand], list[IndexPart], Split], object]) -> Costs:
    """The costs of this machine: random queries of 100 residues, half of them with an error, in a random text.

    All devices are at work, since they share the bus and the host, and each looks up some parts of the queries, so that
    joining what is found in parts is counted as well. Copying hides behind looking up, so what takes longer is counted.
    """
    residues, count, bytes_, length = (400, 4, 1 << 10, 20) if SIMULATED else (1 << 22, 1 << 18, 1 << 27, 100)
    number, generator = devices.device_count(), np.random.default_rng(1)
    batch = SequenceBatch.of(NUCLEOTIDE, [generator.integers(0, 4, residues).astype(np.uint8)])
    index = FmIndexCpu().run(Context(), batch)
    part = IndexPart(tables_of(index), 0, residues + 1, target_text(batch, acgt_only=False)[0])
    starts = generator.integers(0, residues - length, count * number)
    reads = batch.residues[starts[:, None] + np.arange(length)]
    wrong = np.arange(0, len(reads), 2)
    at = generator.integers(0, length, len(wrong))
    reads[wrong, at] = (reads[wrong, at] + 1) % 4
    block = np.ones(bytes_, np.uint8)
    there = everywhere(lambda device: cuda.device_array(bytes_, np.uint8))

    def copy(device: int) -> None:
        to_device(block, threads, there[device])
        cuda.synchronize()

    def taken(some: int, parts: int) -> float:
        """Seconds for so many queries on each device, in so many parts."""
        queries = SequenceBatch(NUCLEOTIDE, reads[: some * number].reshape(-1),
                                np.arange(some * number + 1, dtype=np.int64) * length,
                                np.arange(some * number, dtype=np.int64))
        context = Context(queries=queries, targets=batch, threads=threads, indexes={KIND: index})
        strands, split = [strand_of(queries, 1, False)], Split("queries", 1, parts * number, 0.0, 0.0)
        return _least(lambda: look_up(context, strands, [part], split))

    few = max(2, count >> 3)  # as few as it is still worth calling threads for
    short, long, often = taken(few, 2), taken(count, 2), taken(count, 8)
    copied = _least(lambda: everywhere(copy)) / bytes_
    each = max(0.0, long - short) / ((count - few) * (length + 1 + query_bytes))
    return Costs(max(each, copied / 100), copied, max(0.0, often - long) / 6)


def _least(work: Callable[[], Any]) -> float:
    """Least wall seconds of some runs, the first of which may have to compile."""
    times = []
    for _ in range(2 if SIMULATED else 4):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times[1:])


_said: dict[str, int] = {}
"""Parts of the index that people have been told of, by slot."""


def _say(slot: str, split: Split, enough: tuple[int, float] | None) -> None:
    """Tell people how the index is cut and how many devices would hold it: once, however many batches there are."""
    if split.index_parts > 1 and _said.get(slot) != split.index_parts:
        _said[slot] = split.index_parts
        more = f"; {enough[0]:,} such devices would keep all of the index: {enough[1]:.3g} s" if enough else ""
        print(f"seqloom: {slot}: {split}{more}", file=sys.stderr)


__all__ = ["LEAST_RESIDUES", "MOST_ROWS", "SLACK", "IndexPart", "Lane", "PartSearch", "Partition", "QueryPart", "Room",
           "everywhere", "machine_costs", "room_of"]
