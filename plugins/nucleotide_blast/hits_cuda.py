"""Word hits on CUDA devices: tables and pieces there, the passes of the scan, and hits that stay there.

A table is that of the CPU: presence bits with ranks, and the places of each word side by side, whatever the width of
its words. ``paper_tables_cuda.py`` has those of G-BLASTN.
"""

from __future__ import annotations

import math
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache, cached_property
from typing import Any

import numpy as np
from numba import cuda as _cuda
from seqloom.core.backends import on_device
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.sequences import offsets_of
from seqloom.plugins.common import radix_cuda
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.resident_cuda import PartSize, Volume, device_memory
from seqloom.plugins.common.workspace_cuda import rounded
from seqloom.plugins.nucleotide_blast import scan_cuda
from seqloom.plugins.nucleotide_blast.look_up_cuda import look_up_kernel, look_up_sampled_kernel
from seqloom.plugins.nucleotide_blast.packed_cuda import PackedTargets, packed_size
from seqloom.plugins.nucleotide_blast.pieces import chunks_of
from seqloom.plugins.nucleotide_blast.query_words_cpu import KEPT_SHARE
from seqloom.plugins.nucleotide_blast.scan_cuda import ALL_HITS, FOUND, KEPT, LOOKED_UP, scan_kernel
from seqloom.plugins.nucleotide_blast.scanned_cpu import BLOCK, Scanned, ScannedSeeds, places_of
from seqloom.plugins.nucleotide_blast.word_table_cpu import WordTable

cuda: Any = _cuda
KEY_BITS = 63
BYTES_PER_HIT = 2 * (8 + 4) + 4 + 4
"""Key and row, twice for the sort; place and shift."""
BYTES_PER_SEGMENT = 8 * 4 + 2 * (8 + 4) + 10 * 4
"""Numbers, what they are sorted by, and columns."""
BYTES_PER_PIECE = 4 * 8
BYTES_PER_PLACE = 1 + 1 + 1 + 1 + 1
"""Of the strands of the queries: base, base as it is compared, four bases, and what may begin there."""
BYTES_OF_COUNTERS = 1 << 20
"""Of the sort and of others."""
MOST_PLACES = 1 << 30
"""Scan places of a launch, for each template: they are numbers of 32 bits."""
SLACK = 1 << 16
"""Found places and hits that there is room for beyond those to be expected."""
_BLOCKS_PER_PROCESSOR = 8


class TargetChunks(NamedTuple):
    """Pieces of the targets of a volume that are searched one by one: targets, or chunks of long ones. None are masked.

    Attributes:
        targets: i8[p], places in the volume.
        chunks: i8[p], where each begins in its target.
        lows: i8[p], where in the volume.
        lengths: i8[p], bases.
    """

    targets: np.ndarray
    chunks: np.ndarray
    lows: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, offsets: np.ndarray, chunk: int, overlap: int) -> TargetChunks:
        """All pieces of targets that begin at i8[k + 1] ``offsets``: see ``pieces.chunks_of``."""
        lengths = np.diff(offsets)
        targets, chunks = chunks_of(lengths, chunk, overlap)
        return cls(targets, chunks, offsets[targets] + chunks, np.minimum(lengths[targets] - chunks, chunk))

    def part(self, first: int, last: int) -> TargetChunks:
        return TargetChunks(*(column[first:last] for column in self))


def expected_hits(places: int, entries: int, bits: int, more: int) -> int:
    """Room for hits: twice as many as chance makes, and those of relatives of the queries.

    Args:
        places: scan places.
        entries: words of the queries, of so many ``bits``.
        more: bases by which hits are longer.
    """
    by_chance = places * entries * (more + 1) >> min(bits + 2 * more, 4096)
    return rounded(2 * by_chance + 4 * entries // (more + 1) + SLACK)


class Cutoffs(NamedTuple):
    """What tells whether the extension of a single hit saves it; see ``look_up_cuda.look_up_sampled``.

    Attributes:
        widths: i4, of BLAST's words of each query.
        scores: i4[256]. eights: u8, of ``group_bytes``. limits: i8, flat.
    """

    widths: np.ndarray
    scores: np.ndarray
    eights: np.ndarray
    limits: np.ndarray


class Rooms(NamedTuple):
    """How much there is room for: what the scan notes, pairs of equal words where these are kept as such, and hits."""

    found: int
    pairs: int
    hits: int

    def grown(self, needed: Rooms) -> Rooms:
        """Room for what there turned out to be."""
        return Rooms(*(room if need <= room else rounded(need) for room, need in zip(self, needed, strict=True)))


class Kept:
    """Arrays on a device that parts of a volume have in common, which are gone through one after the other."""

    def __init__(self) -> None:
        self._made: dict[Any, tuple[int, Any]] = {}

    def of(self, what: Any, make: Callable[[int], Any], size: int = 0) -> Any:
        """What was made under that name, if it is of that size or larger; else what ``make`` makes of the size."""
        if what not in self._made or self._made[what][0] < size:
            self._made[what] = size, make(size)
        return self._made[what][1]


class Searched(NamedTuple):
    """What the passes of a scan are given on a device.

    Attributes:
        packed: u4, bases of the volume.
        lows, lengths, firsts, diagonals: i8[pieces], first base, bases, first scan place and first diagonal of each.
        tiles, total: i4[t + 1], as of ``scan_cuda.scan``; all scan places.
        strands: of the queries.
        bits: of a place in keys.
        keys, places, shifts: u8, i4, i4, for hits.
        counts: i8[4].
        kept: what words may keep for the next part.
    """

    packed: Any
    lows: Any
    lengths: Any
    firsts: Any
    diagonals: Any
    tiles: Any
    total: int
    strands: DeviceStrands
    bits: int
    keys: Any
    places: Any
    shifts: Any
    counts: Any
    kept: Kept


@dataclass(frozen=True)
class Words(ABC):
    """Words of one width that are looked for.

    Attributes:
        width, size: bases of a table word, or of the window that it is taken from; of a hit.
    """

    width: int
    size: int

    @property
    def templates(self) -> int:
        """How many words begin at a base."""
        return 1

    @property
    def saved_only(self) -> bool:
        """Whether hits that an extension wouldn't save needn't be kept."""
        return False

    @property
    def stride(self) -> int:
        return self.size - self.width + 1

    @property
    def most_places(self) -> int:
        """Scan places of a launch at most."""
        return MOST_PLACES // self.templates

    def scan_places(self, lengths: np.ndarray) -> np.ndarray:
        """How many words of each piece are looked at."""
        return np.maximum(0, (lengths - self.width) // self.stride + 1)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Of the table, on a device."""

    @abstractmethod
    def expected(self, places: int) -> Rooms:
        """For what so many scan places of unrelated sequences and of relatives of the queries have."""

    @abstractmethod
    def needed(self, counts: np.ndarray) -> Rooms:
        """For what counters say that there is."""

    @abstractmethod
    def held(self, rooms: Rooms) -> int:
        """Bytes for such room beside hits, for as long as these are there."""

    def passing(self, rooms: Rooms) -> int:
        """Bytes that are needed until the passes are done."""
        return 0

    @abstractmethod
    def launch(self, searched: Searched, rooms: Rooms) -> np.ndarray:
        """Carry out the passes; i8[4], counters."""


@dataclass(frozen=True)
class RankedWords(Words):
    """Words that are looked for in a table of the CPU.

    Attributes:
        table: places are those of ``laid_out_strands``.
        runs, bits: how words are taken from 32 bases: i8[templates, runs, 2] shifts and masks; bits of a word without
            the number of its template.
        cutoffs: where words are sampled ones, and hits that aren't saved needn't be kept.
    """

    table: WordTable
    runs: np.ndarray
    bits: int
    cutoffs: Cutoffs | None = None

    @property
    def templates(self) -> int:
        return len(self.runs)

    @property
    def saved_only(self) -> bool:
        return self.cutoffs is not None

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self.table)

    def expected(self, places: int) -> Rooms:
        found = places * (len(self.table.starts) - 1) >> self.bits
        hits = expected_hits(places, len(self.table.entries), self.bits, self.size - self.width)
        return Rooms(rounded(2 * found + SLACK), 0, rounded(hits // KEPT_SHARE) if self.cutoffs else hits)

    def needed(self, counts: np.ndarray) -> Rooms:
        return Rooms(int(counts[FOUND]), 0, int(counts[KEPT]))

    def held(self, rooms: Rooms) -> int:
        return 4 * rooms.found

    def launch(self, searched: Searched, rooms: Rooms) -> np.ndarray:
        there = searched.strands
        table = searched.kept.of(("table", id(self)), lambda _: [
            cuda.to_device(array) if len(array) else cuda.device_array(1, array.dtype) for array in self.table])
        runs = cuda.to_device(self.runs)
        found = searched.kept.of("found", lambda size: cuda.device_array(size, np.int32), max(1, rooms.found))
        stride, bits = np.int64(self.stride), np.int64(self.bits)
        tile = scan_cuda.THREADS * scan_cuda.PER_THREAD
        scan_kernel(self.templates)[block_count(-(-searched.total // tile)), scan_cuda.THREADS](
            searched.packed, searched.lows, searched.firsts, searched.tiles, np.int64(searched.total), stride, runs,
            bits, table[0], found, np.int64(rooms.found), searched.counts)
        blocks = block_count(-(-rooms.found // scan_cuda.THREADS))
        targets = (searched.packed, searched.lows, searched.lengths, searched.firsts, searched.diagonals, stride, runs,
                   bits)
        queries = there.compared, there.begins, there.blocks, np.int64(BLOCK), there.indexed, there.opens
        sizes = np.int64(self.width), np.int64(self.size)
        room_for = (found, np.int64(rooms.found), np.int64(searched.bits), searched.keys, searched.places,
                    searched.shifts, np.int64(rooms.hits), searched.counts)
        if self.cutoffs:
            widths, *cutoffs = searched.kept.of(("cutoffs", id(self)), lambda _: [
                cuda.to_device(array) for array in self.cutoffs or ()])
            look_up_sampled_kernel()[blocks, scan_cuda.THREADS](
                *targets, *table, *queries, widths, *sizes, *cutoffs, *room_for)
        else:
            look_up_kernel(self.templates, self.templates == 1 and self.width < self.size)[
                blocks, scan_cuda.THREADS](*targets, *table, *queries, *sizes, *room_for)
        result: np.ndarray = searched.counts.copy_to_host()
        return result


@dataclass(frozen=True)
class Strands:
    """Strands of the queries of a batch, laid out as by ``laid_out_strands``.

    Attributes:
        codes, begins: of these.
        compared: u1, codes as by ``compared_strands``; the same array where these are.
        groups: u1, ``ungapped_reference.packed`` of the codes.
        indexed, opens: bool, where table words begin, and as many open bases as a hit has.
    """

    codes: np.ndarray
    compared: np.ndarray
    begins: np.ndarray
    groups: np.ndarray
    indexed: np.ndarray
    opens: np.ndarray

    def on_device(self) -> DeviceStrands:
        codes = cuda.to_device(self.codes)
        compared = codes if self.compared is self.codes else cuda.to_device(self.compared)
        return DeviceStrands(codes, compared, *map(cuda.to_device, (self.groups, self.indexed, self.opens,
                                                                    *places_of(self.begins))))


class DeviceStrands(NamedTuple):
    """``Strands`` on a device, with the query at the first of every ``BLOCK`` places."""

    codes: Any
    compared: Any
    groups: Any
    indexed: Any
    opens: Any
    begins: Any
    blocks: Any


class KeyLayout(NamedTuple):
    """Where diagonals of pieces begin (i8[p + 1]), and the bits of a key behind them."""

    diagonals: np.ndarray
    bits: int

    @classmethod
    def of(cls, lengths: np.ndarray, everywhere: int, templates: int) -> KeyLayout:
        """everywhere: places of the strands of all queries."""
        return cls(offsets_of(lengths + everywhere + 1),
                   int(lengths.max(initial=0) * templates + templates).bit_length())

    @property
    def fits(self) -> bool:
        return int(self.diagonals[-1]).bit_length() + self.bits <= KEY_BITS


def runs_of_pieces(pieces: TargetChunks, words: Words, everywhere: int, most: int | None = None
                   ) -> list[tuple[int, int]]:
    """Pieces first … last − 1 of launches: as many as keys and numbers of places have bits for, of ``most`` bases."""
    waiting, runs = [(0, len(pieces.lengths))], []
    if most is not None:
        waiting = PartSize(most, len(pieces.lengths)).cut(offsets_of(pieces.lengths))[::-1]
    while waiting:
        first, last = waiting.pop()
        lengths = pieces.lengths[first:last]
        if last - first < 2 or (KeyLayout.of(lengths, everywhere, words.templates).fits
                                and int(words.scan_places(lengths).sum()) <= words.most_places):
            runs.append((first, last))
        else:
            middle = (first + last) // 2
            waiting += [(middle, last), (first, middle)]
    return runs


def bytes_of_hits(count: int) -> int:
    """Device memory for so many hits and the segments that they grow to."""
    return (BYTES_PER_HIT + BYTES_PER_SEGMENT // 4) * count


def bytes_of_room(words: Words, strands: Strands, pieces: int, places: int, rooms: Rooms) -> int:
    """Device memory for such rooms, the table and the strands beside them, where so many places are looked at."""
    return (BYTES_OF_COUNTERS + words.nbytes + strands.codes.size * BYTES_PER_PLACE + BYTES_PER_PIECE * pieces
            + 4 * places // scan_cuda.THREADS + words.held(rooms) + bytes_of_hits(rooms.hits))


def bases_with_room(words: Words, strands: Strands, pieces: TargetChunks, most: float) -> int:
    """Bases of targets for which, and for whose hits, there is room at a time in so many bytes."""
    bases = int(pieces.lengths.sum())
    while bases > 1:
        places = bases // words.stride
        rooms = words.expected(places)
        if packed_size(bases).nbytes + words.passing(rooms) + bytes_of_room(
                words, strands, len(pieces.lengths), places, rooms) <= most:
            break
        bases = 7 * bases // 8
    return bases


class Outgrown(Exception):
    """There turned out to be more hits than the turn of a device has room for."""


class DeviceHits:
    """Hits of some words in some pieces, on the device on which they were found, for as long as this lives.

    Args:
        kept: of parts whose hits go to the host when they have been found, so that others have the room; ``there``
            brings them back.
        most: bytes that may be taken, with the bases.
        extend: what is made of such hits while they are there, in place of bringing them back.

    Attributes:
        device: its number.
        pieces, layout: what was searched, and how keys are made.
        strands: of the queries, there.
        volume: the packed targets there.
        lows, lengths, diagonals: i8[pieces] there.
        words: keys, and once they are sorted the hits that they are of. places, shifts: i4, of the hits.
        count: hits that are there. total: with those that weren't kept.
        looked_up: pairs of equal words.
        extended: what ``extend`` has made.

    Raises:
        Outgrown: more bytes are needed.
    """

    words: radix_cuda.DeviceWords
    places: Any
    shifts: Any
    strands: DeviceStrands
    volume: Volume

    def __init__(self, device: int, words: Words, targets: PackedTargets, pieces: TargetChunks, strands: Strands,
                 budget: int | None, kept: Kept | None = None, most: float = math.inf,
                 extend: Callable[[DeviceHits], np.ndarray] | None = None) -> None:
        self.device, self.pieces, self._words, self._sorted = device, pieces, words, False
        self.layout = KeyLayout.of(pieces.lengths, len(strands.codes), words.templates)
        self._targets, self._searched, self._budget = targets, strands, budget
        self._aside: list[np.ndarray] | None = None
        self.extended: np.ndarray | None = None
        self._held = ExitStack()
        weakref.finalize(self, self._held.close)
        try:
            self._bring_bases(kept or Kept())
            self._room = self._held.enter_context(ExitStack())
            self._find(strands, budget, most)
            if extend:
                self.extended = extend(self)
        except BaseException:
            self._held.close()
            raise
        if kept:
            if self.extended is None:
                self._aside = self._fetched()
            self._leave()
        else:
            del self._kept  # what hits don't need

    def _bring_bases(self, kept: Kept) -> None:
        self._kept = kept
        self.volume = self._held.enter_context(self._targets.on_device(self._budget))
        self.packed = self.volume.residues.view(np.uint32)
        self.lows, self.lengths, self.diagonals = map(cuda.to_device, (
            self.pieces.lows, self.pieces.lengths, self.layout.diagonals[:-1]))
        self.strands = kept.of("strands", lambda _: self._searched.on_device())

    def _fetched(self) -> list[np.ndarray]:
        """Words, places and shifts of all hits on the host."""
        return [array[: self.count].copy_to_host() if self.count else np.empty(0, array.dtype)
                for array in (self.words.words, self.places, self.shifts)]

    def _leave(self) -> None:
        self._held.close()
        del self.volume, self.packed, self.lows, self.lengths, self.diagonals, self.strands
        del self.words, self.places, self.shifts, self._kept

    @property
    def _bytes_there(self) -> int:
        """Device memory for hits that come back, beside the bases that they are in."""
        return (BYTES_OF_COUNTERS + self._searched.codes.size * BYTES_PER_PLACE
                + BYTES_PER_PIECE * len(self.pieces.lengths) + bytes_of_hits(rounded(self.count)))

    @staticmethod
    @contextmanager
    def turn(parts: Sequence[DeviceHits]) -> Iterator[None]:
        """While hits of the current device may come back, of one part after the other, if they were set aside."""
        sizes = [part._bytes_there + part._targets.nbytes for part in parts if part._aside is not None]
        with device_memory().turn(max(sizes), parts[0]._budget) if sizes else nullcontext():
            yield

    @contextmanager
    def there(self, kept: Kept) -> Iterator[None]:
        """While hits are on the current device, which is theirs, and what they are in: those set aside come back.

        It is to be the ``turn`` of these. kept: of the device, for all of its parts.
        """
        if self._aside is None:
            yield
            return
        with device_memory().working_space(self._bytes_there, self._budget, "word hits on the device"):
            self._bring_bases(kept)
            words, places, shifts = self._aside
            self._make_room(rounded(self.count))
            for array, hits in ((self.words.words, words), (self.places, places), (self.shifts, shifts)):
                array[: self.count].copy_to_device(hits)
            self._sorted = False
            try:
                yield
            finally:
                self._leave()
                self._sorted = False

    def _find(self, strands: Strands, budget: int | None, most: float) -> None:
        places = self._words.scan_places(self.pieces.lengths)
        firsts = offsets_of(places)
        total = int(firsts[-1])
        rooms = self._words.expected(total)
        while True:
            size, passing = bytes_of_room(self._words, strands, len(places), total, rooms), self._words.passing(rooms)
            if self._targets.nbytes + size + passing > most:
                raise Outgrown
            self._room.close()
            self._room.enter_context(device_memory().working_space(size, budget, "word hits on the device"))
            with device_memory().working_space(passing, budget, "pairs of words on the device"):
                counts = self._launched(firsts, total, rooms)
            grown = rooms.grown(self._words.needed(counts))
            if grown == rooms:
                break
            del self.words, self.places, self.shifts
            rooms = grown
        self.count, self.looked_up = int(counts[KEPT]), int(counts[LOOKED_UP])
        self.total = int(counts[ALL_HITS]) if self._words.saved_only else self.count

    def _launched(self, firsts: np.ndarray, total: int, rooms: Rooms) -> np.ndarray:
        """Counters of all passes."""
        tile = scan_cuda.THREADS * scan_cuda.PER_THREAD
        tiles = np.searchsorted(firsts, np.append(np.arange(0, total, tile), max(0, total - 1)), "right") - 1
        begins, tiles_there = map(cuda.to_device, (firsts[:-1], tiles.astype(np.int32)))
        self._make_room(rooms.hits)
        return self._words.launch(Searched(
            self.packed, self.lows, self.lengths, begins, self.diagonals, tiles_there, total, self.strands,
            self.layout.bits, self.words.words, self.places, self.shifts, cuda.to_device(np.zeros(4, np.int64)),
            self._kept), rooms)

    def _make_room(self, hits: int) -> None:
        self.words = self._kept.of("words", radix_cuda.DeviceWords, hits)
        self.places, self.shifts = self._kept.of("places", lambda size: [
            cuda.device_array(max(1, size), np.int32) for _ in range(2)], hits)

    @property
    def expected_segments(self) -> int:
        """A sixteenth of all hits grow to segments; of those that are kept since they may, a quarter."""
        return self.count // 4 if self._words.saved_only else self.count // 16

    def sorted_keys(self) -> tuple[Any, Any]:
        """u8 and i4 on the device: keys by diagonal and place, and the hits that they are of."""
        if self.count and not self._sorted:
            radix_cuda.number_rows[radix_cuda.grid(self.count)](0, self.count, 0, self.words.rows)
            self.words.sort(self.count, self.layout.bits + int(self.layout.diagonals[-1]).bit_length())
            self._sorted = True
        return self.words.words, self.words.rows

    def rows(self, begins: np.ndarray) -> np.ndarray:
        """i8[n, 5] on the host: query, piece, place in the strands, place in the piece, shift of each hit.

        In the order of the CPU's scan: by query, piece, template, places of the table word in piece and strands.
        begins: of the strands.
        """
        with on_device(self.device):
            keys, places, shifts = self._aside or self._fetched()
            if self._sorted:
                of_keys = self.words.rows[: self.count].copy_to_host()
                places, shifts = places[of_keys], shifts[of_keys]
        places = places.astype(np.int64)
        in_piece = (keys & np.uint64((1 << self.layout.bits) - 1)).astype(np.int64)
        diagonal = (keys >> np.uint64(self.layout.bits)).astype(np.int64)
        piece = np.searchsorted(self.layout.diagonals, diagonal, "right") - 1
        query = np.searchsorted(begins, places, "right") - 1
        word, template = np.divmod(in_piece, self._words.templates)
        apart = diagonal - self.layout.diagonals[piece] - begins[-1]
        order = np.lexsort((word - apart, word, template, piece, query))
        return np.stack([query, piece, places, places + apart, shifts], axis=1)[order]


def block_count(most: int) -> int:
    """Blocks for so many that there is work for."""
    return max(1, min(most, 2 if SIMULATED else _BLOCKS_PER_PROCESSOR * _processors()))


@cache
def _processors() -> int:
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


class SeedsOnDevices(ScannedSeeds):
    """Makes seeds of hits that are on devices when somebody asks for them.

    Attributes:
        parts: hits of some pieces each, with the number of the first of these.
        strands: of the queries.
    """

    def __init__(self, parts: Sequence[tuple[int, DeviceHits]], strands: Strands, chunks: np.ndarray, length: int,
                 queries: np.ndarray, follow: bool, all_hits: Callable[[], Scanned] | None = None) -> None:
        """all_hits: finds them where parts don't have all."""
        self.parts, self.strands, self.chunks = parts, strands, chunks
        self.length, self.queries, self.follow = length, queries, follow
        self.begins = strands.begins - np.arange(len(strands.begins))  # ``ScannedSeeds`` has no sentinels at the ends
        self._all_hits = all_hits

    @property
    def kept(self) -> Scanned:  # type: ignore[override]
        return self.found

    @cached_property
    def found(self) -> Scanned:
        """Hits on the host, in the order of the CPU's scan."""
        if self._all_hits:
            return self._all_hits()
        parts = [part.rows(self.strands.begins) + np.array([0, first, 0, 0, 0]) for first, part in self.parts]
        rows = np.concatenate([np.empty((0, 5), np.int64), *parts])
        # Words of a query have one width, and parts have pieces of their own.
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        query, piece, place, opposite, shift = rows.T
        starts = group_starts(query, piece)
        hits = np.stack([place - query, opposite, shift], axis=1).astype(np.int32)
        return Scanned(hits, starts, np.stack([query, piece], axis=1)[starts[:-1]], self.chunks)
