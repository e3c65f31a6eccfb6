# ruff: noqa: F821  (names in capitals in the kernel templates are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""``binned-hits``: hits in bins of diagonals, assembled, sorted and filtered (cuBLASTP sections 3.2 and 3.3).

Four kernels, as the paper has them. A warp takes targets, a thread a word of one; hits go to the bin of their diagonal,
of which each warp has its own, with counters in shared memory (algorithm 2). The bins are put together into one array,
each is sorted by a block of threads, and hits with no neighbour on their diagonal within the window are left out. A hit
is one number of 64 bits, as in figure 7, but with as many bits for query, target, diagonal and position as these take.

What differs from the paper: queries are many, so that a key begins with the query; a neighbour on either side keeps a
hit (``sort_diagonal_reference`` says why); a bin that overflows makes all of them larger in a second attempt; and
targets are taken in blocks for which bins find room. The few hits that are left, of all bins and blocks, are sorted
once more, by a radix sort, and stay on the device for who extends them there. Where keys of 63 bits don't hold all
queries and targets of a volume, those of each block are ordered on the host.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.context import Context
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.errors import BackendError
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.kernels.unroll import specialise
from seqloom.core.options import option
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.radix_cuda import DeviceWords
from seqloom.plugins.common.resident_cuda import Volume, device_memory
from seqloom.plugins.common.resident_index_cuda import brought_whole
from seqloom.plugins.protein_blast.index_reference import KIND
from seqloom.plugins.protein_blast.seed_reference import WordHits, seeds_of_words
from seqloom.plugins.protein_blast.sort_diagonal_reference import ORDER
from seqloom.plugins.protein_blast.words import HITS_PER_CELL, hits_footprint

cuda: Any = _cuda  # numba's types don't know what code on the device may do
WARPS_PER_PROCESSOR = 16
SORTING = 128
"""Threads that sort or filter a bin."""
SORTED_HERE = 1024
"""Hits of a bin, at most, that are sorted in shared memory; others are where they lie."""
SLOTS = 1 << 26
"""Hits that all bins together have room for, usually."""
LEAST_CAPACITY = 16
BYTES_PER_KEPT = 64
"""What a hit that is left takes while all of them are put in order."""
FULL = 0.25
"""Part of the room of bins that is used on average: they fill unevenly."""


def detect(residues, bounds, first, count, codes, symbols, size, starts, query, position, longest, target_shift,
           query_shift, diagonal_shift, bins, capacity, tops):
    """Kernel template: hits of the words of ``count`` targets from ``first`` on, binned by diagonal (algorithm 2).

    Args:
        residues, bounds: u1 and i8 of the volume.
        codes, symbols, size: of words, as of the index.
        starts, query, position: i8 and i4, the index.
        longest: added to diagonals, so that none is negative.
        target_shift, query_shift, diagonal_shift: of keys; targets are counted from ``first`` on.
        bins: i8[blocks · NUM_BINS · capacity]; tops: i4[blocks · NUM_BINS], hits of each, which may be more.
    """
    top = cuda.shared.array(NUM_BINS, int32)
    lane = int32(cuda.threadIdx.x)
    block = int32(cuda.blockIdx.x)
    for n in range(lane, int32(NUM_BINS), int32(32)):
        top[n] = int32(0)
    cuda.syncthreads()
    for target in range(block, count, int32(cuda.gridDim.x)):
        begin = int64(bounds[first + target])
        words = int32(bounds[first + target + 1] - begin - size + 1)
        for place in range(lane, words, int32(32)):
            word = int64(0)
            known = True
            for n in range(size):
                symbol = int64(codes[residues[begin + place + n]])
                known = known and symbol < symbols
                word = word * symbols + symbol
            if known:
                for entry in range(starts[word], starts[word + 1]):
                    diagonal = int32(place - position[entry] + longest)
                    chosen = int32(diagonal % int32(NUM_BINS))
                    number = int32(cuda.atomic.add(top, chosen, int32(1)))
                    if number < capacity:
                        bins[(int64(block) * NUM_BINS + chosen) * capacity + number] = (
                            (int64(query[entry]) << query_shift) | (int64(target) << target_shift)
                            | (int64(diagonal) << diagonal_shift) | int64(place))
    cuda.syncthreads()
    for n in range(lane, int32(NUM_BINS), int32(32)):
        tops[block * int32(NUM_BINS) + n] = top[n]


def assemble(bins, capacity, firsts, hits):
    """Kernel: the bins one behind the other, each by a block (figure 6a); bin n begins at ``firsts[n]`` i8."""
    number = int64(cuda.blockIdx.x)
    first = firsts[number]
    for n in range(int64(cuda.threadIdx.x), firsts[number + 1] - first, int64(cuda.blockDim.x)):
        hits[first + n] = bins[number * capacity + n]


def sort_bins(hits, firsts):
    """Kernel template: each bin sorted by a block, in shared memory where it fits (figure 6b).

    A bitonic network whose comparisons all rise: where a step begins, mirrored ones. So a bin of any size is as one
    that is filled up with numbers greater than all, which never move.
    """
    shared = cuda.shared.array(SORTED_HERE, int64)
    thread = int64(cuda.threadIdx.x)
    threads = int64(cuda.blockDim.x)
    first = firsts[cuda.blockIdx.x]
    size = int64(firsts[cuda.blockIdx.x + 1] - first)
    here = size <= SORTED_HERE
    if here:
        for n in range(thread, size, threads):
            shared[n] = hits[first + n]
    cuda.syncthreads()
    length = int64(2)
    while length < 2 * size:
        step = int64(length // 2)
        while step > 0:
            for n in range(thread, (size + 1) // 2 + step, threads):
                low = int64(n // step * 2 * step + n % step)
                high = int64(low + step)
                if step == length // 2:
                    high = int64(n // step * 2 * step + 2 * step - 1 - n % step)
                if high < size:
                    if here:
                        one = shared[low]
                        other = shared[high]
                        if one > other:
                            shared[low] = other
                            shared[high] = one
                    else:
                        one = hits[first + low]
                        other = hits[first + high]
                        if one > other:
                            hits[first + low] = other
                            hits[first + high] = one
            cuda.syncthreads()
            step = int64(step // 2)
        length = int64(length * 2)
    if here:
        for n in range(thread, size, threads):
            hits[first + n] = shared[n]


def near(one, other, window, diagonal_shift):
    """Whether two hits, the first one first, lie on one diagonal less than a window apart."""
    return one >> diagonal_shift == other >> diagonal_shift and other - one < window


def keep_near(hits, firsts, window, diagonal_shift, added, kept, count):
    """Kernel: hits with a neighbour within the window, or all if that is 0, each bin by a block (figure 6c).

    They are counted in shared memory, and room for them in ``kept`` u8 is taken at once: ``count[0]`` i8 are there.
    ``added`` is added to each.
    """
    found = cuda.shared.array(1, int32)
    begin = cuda.shared.array(1, int64)
    first = firsts[cuda.blockIdx.x]
    size = int64(firsts[cuda.blockIdx.x + 1] - first)
    base = int64(0)
    while base < size:
        if cuda.threadIdx.x == 0:
            found[0] = int32(0)
        cuda.syncthreads()
        n = base + int64(cuda.threadIdx.x)
        wanted = False
        place = int32(0)
        if n < size:
            hit = hits[first + n]
            wanted = window == 0
            if n > 0:
                wanted = wanted or are_near(hits[first + n - 1], hit, window, diagonal_shift)
            if n + 1 < size:
                wanted = wanted or are_near(hit, hits[first + n + 1], window, diagonal_shift)
            if wanted:
                place = int32(cuda.atomic.add(found, 0, int32(1)))
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            begin[0] = cuda.atomic.add(count, 0, int64(found[0]))
        cuda.syncthreads()
        if wanted:
            kept[begin[0] + place] = uint64(hits[first + n] + added)
        cuda.syncthreads()
        base += int64(cuda.blockDim.x)


def split_keys(keys, count, longest, query_shift, target_shift, diagonal_shift, queries, targets, size, query, target,
               query_pos, target_pos, length, frame):
    """Kernel: columns of ``Seeds`` of words of ``size``, of ``count`` keys u8 of places in ``queries`` and
    ``targets``, which are global numbers."""
    n = int64(cuda.grid(1))
    if n < count:
        key = int64(keys[n])
        place = int64(key & ((int64(1) << diagonal_shift) - 1))
        diagonal = int64((key >> diagonal_shift) & ((int64(1) << (target_shift - diagonal_shift)) - 1)) - longest
        query[n] = queries[key >> query_shift]
        target[n] = targets[(key >> target_shift) & ((int64(1) << (query_shift - target_shift)) - 1)]
        query_pos[n] = place - diagonal
        target_pos[n] = place
        length[n] = size
        frame[n] = 1


@cache
def split_kernel() -> Any:
    return kept_kernel()(split_keys)


@cache
def detect_kernel(bins: int) -> Any:
    return kept_kernel()(specialise(detect, NUM_BINS=bins))


@cache
def bin_kernels() -> tuple[Any, Any, Any]:
    """``assemble``, ``sort_bins`` and ``keep_near``."""
    filtered = specialise(keep_near, {"are_near": cuda.jit(device=True)(near)}, "near")
    return kept_kernel()(assemble), kept_kernel()(specialise(sort_bins, SORTED_HERE=SORTED_HERE)), kept_kernel()(
        filtered)


class KeyLayout(NamedTuple):
    """How many bits of a key stand behind those of the query, the target and the diagonal."""

    query: int
    target: int
    diagonal: int
    longest: int

    @classmethod
    def of(cls, queries: int, targets: int, longest_query: int, longest_target: int) -> "KeyLayout | None":
        """One for so many queries and targets; None where 63 bits don't hold that."""
        position = max(1, longest_target.bit_length())
        diagonal = max(1, (longest_query + longest_target).bit_length())
        target = max(1, targets.bit_length())
        layout = cls(position + diagonal + target, position + diagonal, position, longest_query)
        return layout if layout.query + queries.bit_length() <= 63 else None

    def parts(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Query, target, query position and target position of each key, counted as in the key."""
        position = keys & ((1 << self.diagonal) - 1)
        diagonal = (keys >> self.diagonal & ((1 << self.target - self.diagonal) - 1)) - self.longest
        target = keys >> self.target & ((1 << self.query - self.target) - 1)
        return keys >> self.query, target, position - diagonal, position


def blocks_of_targets(offsets: np.ndarray, residues: int) -> Iterator[tuple[int, int]]:
    """Runs of targets of so many residues at most, or one."""
    first = 0
    while first < len(offsets) - 1:
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + residues, "right")) - 1)
        yield first, last
        first = last


@dataclass(frozen=True)
class BinOptions:
    """Options of ``binned-hits``; no result depends on them."""

    num_bins: int = option(32, "bins of a warp, to which diagonals are dealt in turn", minimum=1, maximum=4096)


class Detector:
    """A volume and a word index on the device, and what the kernels take of them.

    Args:
        blocks: warps that detect hits.
    """

    def __init__(self, context: Context, volume: Volume, bins: int, blocks: int) -> None:
        index = context.index(KIND)
        self._size, self._symbols = index.parameters["word_size"], index.parameters["symbols"]
        self._codes, self._starts, self._query, self._position = (
            cuda.to_device(np.ascontiguousarray(index[name])) for name in ("codes", "starts", "query", "position"))
        self.start(context, volume, bins, blocks)

    def start(self, context: Context, volume: Volume, bins: int, blocks: int) -> None:
        """What doesn't depend on the kind of index."""
        self.volume, self.bins, self.blocks = volume, bins, blocks
        self._window = context.options.window()
        self.hits = 0

    def detect(self, first: int, count: int, layout: KeyLayout, capacity: int) -> tuple[Any, np.ndarray, int]:
        """Bins with the hits of some targets, how many each of them has, and its room."""
        while True:
            bins = cuda.device_array(self.blocks * self.bins * capacity, np.int64)
            tops = cuda.device_array(self.blocks * self.bins, np.int32)
            self.launch(first, count, layout, bins, capacity, tops)
            found = tops.copy_to_host()
            if (most := int(found.max(initial=0))) <= capacity:
                return bins, found, capacity
            capacity = most

    def launch(self, first: int, count: int, layout: KeyLayout, bins: Any, capacity: int, tops: Any) -> None:
        """Queue the kernel that fills bins."""
        detect_kernel(self.bins)[self.blocks, 32](
            self.volume.residues, self.volume.target_order.begins, np.int64(first), np.int32(count), self._codes,
            np.int64(self._symbols), np.int64(self._size), self._starts, self._query, self._position,
            np.int32(layout.longest), np.int64(layout.target), np.int64(layout.query), np.int64(layout.diagonal), bins,
            np.int64(capacity), tops)

    def assemble(self, bins: Any, tops: np.ndarray, capacity: int) -> tuple[Any, Any]:
        """The hits of all bins in one array, and where each bin begins in it."""
        begins = np.zeros(len(tops) + 1, np.int64)
        np.cumsum(tops, out=begins[1:])
        self.hits += int(begins[-1])
        firsts, hits = cuda.to_device(begins), cuda.device_array(max(1, int(begins[-1])), np.int64)
        bin_kernels()[0][len(tops), SORTING](bins, np.int64(capacity), firsts, hits)
        return hits, firsts

    def sort(self, hits: Any, firsts: Any) -> None:
        """Sort every bin."""
        bin_kernels()[1][len(firsts) - 1, SORTING](hits, firsts)

    def filter(self, hits: Any, firsts: Any, layout: KeyLayout, first: int = 0) -> Any:
        """u8 on the device: keys of the hits that have a neighbour, in whatever order, or None; targets of keys are
        counted ``first`` further on."""
        kept, count = cuda.device_array(len(hits), np.uint64), cuda.to_device(np.zeros(1, np.int64))
        bin_kernels()[2][len(firsts) - 1, SORTING](hits, firsts, np.int64(self._window), np.int64(layout.diagonal),
                                                   np.int64(first << layout.target), kept, count)
        total = int(count.copy_to_host()[0])
        if not total:
            return None
        exactly = cuda.device_array(total, np.uint64)
        exactly.copy_to_device(kept[:total])
        return exactly


def in_order(parts: list[Any], bits: int) -> Any:
    """u8 on the device: keys of several arrays, of so many bits, rising."""
    ends = np.cumsum([len(part) for part in parts]).tolist()
    words = DeviceWords(ends[-1])

    def fill(there: Any) -> None:
        for part, end in zip(parts, ends, strict=True):
            there[end - len(part) : end].copy_to_device(part)

    words.load(ends[-1], fill, numbered=True)
    words.sort(ends[-1], bits)
    return words.words


def seeds_there(context: Context, keys: Any, count: int, layout: KeyLayout, size: int) -> Seeds:
    """Seeds on the device of sorted keys of words of ``size``."""
    numbers = [cuda.to_device(np.ascontiguousarray(batch.ordinals, dtype)) for batch, dtype in (
        (context.queries, np.int32), (context.targets, np.int64))]
    columns = {"query": np.int32, "target": np.int64, "query_pos": np.int32, "target_pos": np.int32,
               "length": np.int32, "query_frame": np.int8}
    data = {name: cuda.device_array(count, dtype) for name, dtype in columns.items()}
    split_kernel()[-(-count // SORTING), SORTING](
        keys, np.int64(count), np.int64(layout.longest), np.int64(layout.query), np.int64(layout.target),
        np.int64(layout.diagonal), *numbers, np.int32(size), *data.values())
    return Seeds({**data, "target_frame": data["query_frame"]}, device="cuda")


class BinnedHits(WordHits):
    """Word hits by bins of diagonals on the device, sorted, without lone ones (cuBLASTP algorithm 2); as ``word-hits``.

    For comparison: ``--stage seed.words=binned-hits`` looks at all diagonals, without the scan before it. What it gives
    is in the order that extensions take: ``--set sort.diagonal.enabled=no``.
    """

    name: ClassVar[str] = "binned-hits"
    backend: ClassVar[str] = "cuda"
    records_on: ClassVar[str] = "host"
    takes = (None,)  # type: ignore[assignment]
    gives_order = ORDER  # type: ignore[assignment]
    index_kind: ClassVar[str] = KIND
    Options: ClassVar[type] = BinOptions
    options: BinOptions

    def footprint(self, shape: Shape) -> Footprint:
        hits = hits_footprint(shape).host
        return Footprint(host=hits // 4,
                         device=max(working_bytes(self.options.num_bins), hits // 8) + brought_whole(shape))

    def detector(self, context: Context, volume: Volume, blocks: int) -> Detector:
        """What finds hits in a volume, by so many warps at most."""
        return Detector(context, volume, self.options.num_bins, blocks)

    def run(self, context: Context, records: Records | None) -> Seeds:
        queries, targets = context.queries, context.targets
        memory, budget = device_memory(), context.device_memory
        size = context.index(self.index_kind).parameters["word_size"]
        blocks, bins = _blocks(), self.options.num_bins
        capacity = max(LEAST_CAPACITY, SLOTS // (blocks * bins))
        residues = int(FULL * capacity * blocks * bins / HITS_PER_CELL / max(1, queries.total_residues))
        longest = int(queries.lengths.max(initial=0))
        common = KeyLayout.of(len(queries), len(targets), longest, targets.longest)
        there, here = [], []
        with (memory.volume(targets, budget) as volume,
              memory.working_space(working_bytes(bins), budget, "word hits on the device")):
            volume.arrived([0])
            detector = self.detector(context, volume, blocks)
            for first, last in blocks_of_targets(targets.offsets, max(1, residues)):
                context.cancellation.check()
                layout = common or KeyLayout.of(len(queries), last - first, longest, targets.longest)
                if layout is None:
                    raise BackendError("word hits of such long targets don't fit the keys of binned-hits; take "
                                       "--stage seed.words=word-hits, or fewer queries at a time (--batch-residues)")
                found, tops, room = detector.detect(first, last - first, layout, capacity)
                hits, firsts = detector.assemble(found, tops, room)
                del found
                detector.sort(hits, firsts)
                keys = detector.filter(hits, firsts, layout, first if common else 0)
                del hits
                context.advance(last - first, len(targets))
                if keys is not None and common:
                    there.append(keys)
                elif keys is not None:
                    query, target, query_pos, target_pos = layout.parts(np.sort(keys.copy_to_host()).astype(np.int64))
                    here.append(seeds_of_words(size, queries.ordinals[query], targets.ordinals[target + first],
                                               query_pos, target_pos))
        if there and common:
            count = sum(map(len, there))
            with memory.working_space(BYTES_PER_KEPT * count, budget, "word hits on the device, in order"):
                keys = in_order(there, common.query + len(queries).bit_length())
                seeds = seeds_there(context, keys, count, common, size)
        else:
            seeds = Seeds.concat(here) if here else seeds_of_words(size, *(np.empty(0, np.int32),) * 4)
        context.count("hits", detector.hits)
        context.count("lone hits dropped", detector.hits - len(seeds))
        # Of one block of targets they are in order.
        return seeds if len(here) < 2 else seeds.take(np.argsort(seeds.query, kind="stable"))


def working_bytes(bins: int) -> int:
    """Bins, hits put together and those that are kept."""
    return 2 * 8 * max(SLOTS, LEAST_CAPACITY * _blocks() * bins) + (1 << 24)


@cache
def _blocks() -> int:
    """Warps that detect hits."""
    return 2 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * WARPS_PER_PROCESSOR
