# ruff: noqa: F821  (names in capitals in the kernel template are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""Diagonals on which some segment may score well, by the tensor cores of a CUDA device, and which of them do.

The positions of queries stand on a circle, with three empty ones behind each query. A register stays on one diagonal:
with every residue of the target it comes to the next position, so that nothing is handed from lane to lane or from tile
to tile. A circle of more than ``COLUMNS`` positions is done in several passes, each of which takes other diagonals; so
it doesn't matter how long queries are. A step costs the tensor cores' product (``core/cuda/one_hot.py``), and for two
cells half an addition that saturates and a quarter of a maximum of three.

So little is done because sums are looked at and kept from falling below 0 after every other residue alone. A segment
that begins at the other residues has the score of the pair before as well, and one that ends there that of the pair
behind: with no score below −``lowest``, which lower ones count as, a segment of C or more shows C − 2 · ``lowest`` at
least. Of the empty positions the first and the last score nothing, and the middle one ends all segments; residues
behind the end of a target score nothing.

What shows is noted as in ``diagonal_scan_cuda.py``. There is more of it than of good diagonals, by a factor that is
smaller than what the scan gains; each is scored cell by cell by a second kernel, which notes those that are good.
"""

from bisect import bisect_left
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint32
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.one_hot import (
    CEILING as ONE,
)
from seqloom.core.cuda.one_hot import (
    CODES,
    GROUP_WARPS,
    ROWS,
    add_two_steps,
    get_registers,
    no_scores,
    put_registers,
    score_bytes,
    scores_are_there,
    scores_at,
)
from seqloom.core.cuda.transfer import clear, make_wait
from seqloom.core.kernels.packed8 import KEEP, TAKE
from seqloom.core.kernels.packed16 import SIMULATED, anew, first_lane, lanes_where, meet_warp
from seqloom.core.kernels.unroll import specialise

from .target_order_cuda import TargetOrder

cuda: Any = _cuda  # numba's types don't know what code on the device may do

PAD = CODES - 1
"""Residue before and behind a target."""
GAP = 3
"""Empty positions between the end of the query and its beginning."""
ENDED = -14336
"""Score that ends every segment."""
CEILING = 1024
"""Largest cutoff that is told from larger ones."""
SHAPES = ((16, 1, 64),) if SIMULATED else (
    (64, 24, 80), (112, 20, 96), (136, 20, 96), (184, 20, 96), (216, 16, 120), (256, 16, 120))
"""Columns of a pass, warps of a block and registers of a thread that go with them."""
_STEP_COLUMNS = 130
"""What a step costs beside its columns, in columns, as measured."""
ROOM = 1 << (8 if SIMULATED else 22)
"""Diagonals that there is room for between the two kernels."""
MOST_POSITIONS = 40 if SIMULATED else 6400
"""Of a circle, so that their scores fit in the shared memory of a block."""
LEAST_ROOM = 1 << 10
"""For small volumes."""
IN_SIMULATOR = False
"""Whether to sieve there: it takes long."""
_MOST_NOTES = 2e-5
"""Of a cell, of which more would take longer than the scan without tensor cores."""
_WAVES, _UNITS = 8, 4
"""Blocks of a sieve that each processor does in turn, at most, so that other kernels can go between; units of work of
each group of warps, at least."""
_LEAST_STEP, MOST_PIECES = 1 << 11, 1 << 13
"""From one piece of a target to the next, residues at least; pieces of a volume at most."""
_THREADS = 32 if SIMULATED else 128
_CONFIRM_BLOCKS = 2 if SIMULATED else 132 * 8
_LOWEST, _HIGHEST = np.arange(2, 9), 100
"""Of which each cell costs at most one, as suits the query; scores above the other one count as that for the choice."""
_ALIKE = 4
"""By how much limits of queries on a ring may differ."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


def sieve(table, first_word, circle, passes, residues, ranked, begins, ends, pieces, count, cut, piece_length,
          rank_first, rank_step, works, classes, limits, first_limit, noted, room):
    """Kernel template: note target, residue and position where a segment may score well.

    Args:
        table: i4; from ``first_word`` on are ``circle`` positions' scores (see ``positions_table``).
        passes: of all units of work: ``works`` targets of rank ``rank_first``, ``rank_first`` + ``rank_step``, …, a
            group of them at a time, and so many passes of each.
        residues, begins, ends, ranked, classes: as of ``diagonal_tiles_cuda.scan_tile``; none without CLASSED.
        pieces, count, cut, piece_length: i8, first residues of ``count`` pieces of that length, and the target of each,
            which rank first, in place of the first ``cut`` of ``ranked``.
        limits, first_limit: i4, of which from the second one on are halves in units of 1/2048, of each class: the
            least that is noted.
        noted, room: i8; the first one is the number of notes, behind it are so many of them at most: the target, or −1
            less the number of the piece, and 2³² · its residue + position on the circle.
    """
    shared = cuda.shared.array(0, int32)
    thread = int32(cuda.threadIdx.x)
    lane = int32(thread & int32(31))
    positions = int32(circle + int32(COLUMNS))
    # Bytes of residues 0 … 15 with all positions, then of the others: four words each.
    for word in range(thread, int32(positions * int32(CODES // 4)), int32(THREADS)):
        position = int32(word >> int32(3))
        part = int32(word & int32(7))
        shared[int32((int32(part >> int32(2)) * positions + position) * int32(4) + int32(part & int32(3)))] = table[
            first_word + int32(int32(position % circle) * int32(CODES // 4) + part)]
    scores_are_there()
    cuda.syncthreads()
    origin = scores_at(shared, positions)
    # Of each warp: a thread's registers, and what is seldom asked of its rows.
    rows = int32(positions * int32(CODES // 4) + int32(thread >> int32(5)) * int32(SCRATCH) + int32(SCRATCH - 4 * ROWS))
    mine = int32(int32(lane & int32(3)) * int32(0x20202020))
    own = int32(lane >> int32(2))
    row = int32(int32(int32(thread >> int32(5)) & int32(GROUP_WARPS - 1)) * int32(ROWS) + own)
    groups = int32((works + int32(GROUP_WARPS * ROWS - 1)) // int32(GROUP_WARPS * ROWS))
    unit = int32(int32(cuda.blockIdx.x) * int32(THREADS // 32 // GROUP_WARPS) + thread // int32(32 * GROUP_WARPS))
    while unit < groups * passes:
        group = int32(unit // passes)
        phase = int32(int32(int32(unit - group * passes) * int32(COLUMNS)) % circle)
        lead = int32(rank_first + int32(group * int32(GROUP_WARPS * ROWS)) * rank_step)
        longest = int64(piece_length)
        if lead >= count:
            leader = ranked[int32(lead - count + cut)]
            longest = int64(ends[leader] - begins[leader])
        words = int32((longest + int64(6)) >> int64(2))
        first = int32(0)
        first8 = int32(0)
        last = int32(0)
        last8 = int32(0)
        below = int32(0)
        below8 = int32(0)
        meet_warp()
        for half in range(int32(2)):
            rank = int32(group * int32(GROUP_WARPS * ROWS) + row + half * int32(8))
            place = int32(0)
            owner = int32(0)
            head = int32(0)
            length = int32(0)
            where = int32(0)
            if rank < works:
                at = int32(rank_first + rank * rank_step)
                if at < count:
                    place = int32(int32(-1) - at)
                    owner = int32(pieces[int32(count + at)])
                    begin = int64(pieces[at])
                    length = int32(piece_length)
                else:
                    place = int32(ranked[int32(at - count + cut)])
                    owner = place
                    begin = int64(begins[place])
                    length = int32(ends[place] - begin)
                where = int32(begin >> int64(2))
                head = int32(begin & int64(3))
            least = int32(limits[first_limit + (int32(classes[owner]) if CLASSED else int32(0))])
            shared[rows + int32(own + half * int32(8))] = place
            shared[rows + int32(own + half * int32(8)) + int32(ROWS)] = head
            shared[rows + int32(own + half * int32(8)) + int32(2 * ROWS)] = length
            shared[rows + int32(own + half * int32(8)) + int32(3 * ROWS)] = least
            if half == int32(0):
                first = int32(where)
                last = int32(max(int32(int32(head + length + int32(3)) >> int32(2)) - int32(1), int32(0)))
                below = int32(int32(least - int32(1)) * int32(0x00010001))
            else:
                first8 = int32(where)
                last8 = int32(max(int32(int32(head + length + int32(3)) >> int32(2)) - int32(1), int32(0)))
                below8 = int32(int32(least - int32(1)) * int32(0x00010001))
        meet_warp()
        sums = no_sums()
        coming = int32(residues[first])
        coming8 = int32(residues[first8])
        for step in range(words):
            word = coming
            word8 = coming8
            coming = int32(residues[int32(first + min(int32(step + int32(1)), last))])
            coming8 = int32(residues[int32(first8 + min(int32(step + int32(1)), last8))])
            if step == int32(0) or step >= last:
                told = int32(anew(rows) + (anew(lane) >> int32(2)))
                head = int32(shared[told + int32(ROWS)])
                length = int32(shared[told + int32(2 * ROWS)])
                padded = int32(PADS)
                for j in unrolled(4):
                    if uint32(int32(step * int32(4) + int32(j)) - head) < uint32(length):
                        padded = int32((padded & int32(KEEP[j])) | (word & int32(TAKE[j])))
                word = padded
            if step == int32(0) or step >= last8:
                told = int32(anew(rows) + (anew(lane) >> int32(2)))
                head = int32(shared[told + int32(ROWS + 8)])
                length = int32(shared[told + int32(2 * ROWS + 8)])
                padded = int32(PADS)
                for j in unrolled(4):
                    if uint32(int32(step * int32(4) + int32(j)) - head) < uint32(length):
                        padded = int32((padded & int32(KEEP[j])) | (word8 & int32(TAKE[j])))
                word8 = padded
            word = int32(int32(word << int32(3)) ^ mine)
            word8 = int32(int32(word8 << int32(3)) ^ mine)
            for two in range(int32(2)):
                sums, top, top8 = add_two_steps(
                    sums, int32(word & int32(255)), int32(word8 & int32(255)),
                    int32(int32(word >> int32(8)) & int32(255)), int32(int32(word8 >> int32(8)) & int32(255)), shared,
                    origin + int64(phase), below, below8)
                word = int32(word >> int32(16))
                word8 = int32(word8 >> int32(16))
                asked = lanes_where(top != below or top8 != below8)
                while asked != int32(0):
                    # All lanes look at what one of them holds.
                    here = int32(anew(lane))
                    told = int32(anew(rows))
                    kept = int32(told - int32(SCRATCH - 4 * ROWS))
                    who = int32(first_lane(asked))
                    asked = int32(asked ^ int32(int32(1) << who))
                    if here == who:
                        put_registers(shared, kept, sums)
                    meet_warp()
                    for register in range(here, int32(COLUMNS // 4), int32(32)):
                        halves = int32(shared[kept + register])
                        of = int32(told + int32(who >> int32(2)) + int32(register & int32(1)) * int32(8))
                        target = int64(shared[of])
                        column = int32(step * int32(4) + two * int32(2) + int32(1) - int32(shared[of + int32(ROWS)]))
                        least = int32(shared[of + int32(3 * ROWS)])
                        position = int32(phase + int32(1) + int32(register >> int32(1)) * int32(8)
                                         + int32(who & int32(3)) * int32(2))
                        for half in range(int32(2)):
                            if int32(int32(halves >> int32(int32(16) * half)) & int32(0xFFFF)) >= least:
                                halves = int32(halves & (int32(0xFFFF) if half else int32(-65536)))
                                number = cuda.atomic.add(noted, 0, int64(1))
                                if number < room:
                                    noted[2 * number + 1] = target
                                    noted[2 * number + 2] = int64(column) * int64(1 << 32) + int64(
                                        int32(position + half) % circle)
                        shared[kept + register] = halves
                    meet_warp()
                    if here == who:
                        sums = get_registers(shared, kept, sums)
                phase = int32(phase + int32(2))
            if phase >= circle:
                phase = int32(phase - circle)
        unit = int32(unit + int32(cuda.gridDim.x) * int32(THREADS // 32 // GROUP_WARPS))


def confirm(noted, room, table, first_score, residues, begins, ends, pieces, count, classes, classed, limits,
            first_query, queries, kinds, targets, span, shift, found, found_room):
    """Kernel: note (query · ``targets`` + target) · ``span`` + diagonal + ``shift`` of notes that are of good ones.

    A thread scores a diagonal cell by cell. What there was no room for in ``noted`` is told by a number in ``found``
    that is larger than any room.

    Args:
        table, first_score: i2; from ``first_score`` on are scores of all positions of queries with ``CODES`` residues.
        limits, first_query: i4; from ``first_query`` on are of each of ``queries`` queries its number, its first
            position on the circle, its first one in ``table``, its length, and its cutoffs for ``kinds`` classes.
        classed: whether targets have classes.
        found, found_room: i8; the number of diagonals noted, and that many of them at most.
    """
    notes = noted[0]
    if notes > room:
        if cuda.grid(1) == 0:
            cuda.atomic.add(found, 0, int64(TOO_MANY))
        notes = int64(0)
    size = int64(4 + kinds)
    for number in range(int64(cuda.grid(1)), notes, int64(cuda.gridsize(1))):
        place = noted[2 * number + 1]
        at = noted[2 * number + 2]
        position = int64(at & int64(0xFFFFFFFF))
        column = int64(at >> int64(32))
        if place < int64(0):
            piece = int64(int64(-1) - place)
            place = int64(pieces[count + piece])
            column += int64(pieces[piece] - begins[place])
        # The last query that begins at the position or before.
        query, other = int64(first_query), int64(queries)
        while other > 1:
            half = other // 2
            if limits[query + half * size + 1] <= position:
                query += half * size
                other -= half
            else:
                other = half
        diagonal = int64(column - position + int64(limits[query + 1]))
        cutoff = int32(limits[query + 4 + (int64(classes[place]) if classed else int64(0))])
        begin = int64(begins[place])
        row = int64(max(int64(0), -diagonal))
        behind = int64(min(int64(limits[query + 3]), ends[place] - begin - diagonal))
        scores = int64(first_score + int64(limits[query + 2]) * int64(CODES))
        ending = int32(0)
        while row < behind and ending < cutoff:
            ending = int32(max(int32(0), ending + int32(table[scores + row * int64(CODES)
                                                              + int64(residues[begin + diagonal + row])])))
            row += int64(1)
        if ending >= cutoff:
            free = cuda.atomic.add(found, 0, int64(1))
            if free < found_room:
                found[free + 1] = (int64(limits[query]) * targets + place) * span + diagonal + shift


TOO_MANY = 1 << 40
"""Added to the number of what was found where there was no room for what might have been."""


class Shape(NamedTuple):
    """Columns of a pass, warps of a block, registers of a thread, positions of the circle and passes."""

    columns: int
    warps: int
    registers: int
    circle: int
    passes: int

    @property
    def shared_bytes(self) -> int:
        """Of a block."""
        return CODES * (self.circle + self.columns) + 4 * scratch_words(self.columns) * self.warps

    @property
    def warpgroups(self) -> int:
        """Of a block."""
        return self.warps // GROUP_WARPS


def scratch_words(columns: int) -> int:
    """Of a warp: the registers of a thread, and four words for each row."""
    return -(-columns // 4 // 4) * 4 + 4 * ROWS


def shape_of(positions: int) -> Shape:
    """For so many positions of queries and gaps, what should take the least time."""
    circle = -(-positions // 4) * 4
    shapes = [Shape(*shape, circle, -(-circle // shape[0])) for shape in SHAPES]
    return min(shapes, key=lambda shape: shape.passes * (shape.columns + _STEP_COLUMNS))


@dataclass(frozen=True, eq=False)
class Sieve:
    """What is sieved with for a query.

    Attributes:
        positions: u1[m + GAP, CODES], bytes of the scores of its positions and of the gap behind.
        scores: i2[m, CODES], exact ones.
        limits: i8[c], of each class of targets, scores from which on diagonals are noted; ``limit`` is their mean.
        cutoffs: i8[c], from which on they are good.
    """

    positions: np.ndarray
    scores: np.ndarray
    limits: np.ndarray
    limit: float
    cutoffs: np.ndarray

    @property
    def words(self) -> int:
        """Of four bytes, that it takes on the device."""
        return (self.positions.size + 2 * self.scores.size) // 4


SIEVE_WORDS = 3 * CODES // 4
"""Of four bytes, that a position of a ring takes on the device: its bytes and its exact scores."""


def sieve_for(scores: np.ndarray, cutoffs: np.ndarray, shares: np.ndarray) -> Sieve | None:
    """How to sieve with a query; None where it is too long, or too much would be noted.

    Args:
        scores: i2[m, CODES] by position and residue.
        cutoffs: i8[c] of each class of targets, at least 1.
        shares: f8[c] of all residues that are in targets of each class.
    """
    if len(scores) > MOST_POSITIONS - GAP:
        return None
    cutoffs = np.minimum(cutoffs, CEILING)
    notes = _notes(scores, cutoffs, shares)
    if notes.min() > _MOST_NOTES:
        return None
    lowest = int(_LOWEST[notes.argmin()])
    table = np.zeros((len(scores) + GAP, CODES), np.int64)
    table[: len(scores), :PAD] = np.maximum(scores[:, :PAD], -lowest)
    table[len(scores) + 1] = ENDED
    limits = np.maximum(cutoffs - 2 * lowest, 1)
    return Sieve(score_bytes(table), scores, limits, float(limits @ shares), cutoffs)


def _notes(scores: np.ndarray, cutoffs: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """About how many diagonals are noted for each cell with each of ``_LOWEST``, if residues were random ones: f8[l].

    Segments of random residues reach a score s with a probability of exp(−λ · s), where the mean of exp(λ · score) is 1
    (Karlin and Altschul 1990).
    """
    known = scores[:, :PAD][:, scores[:, :PAD].max(axis=0) > 0]
    counts = np.bincount(np.clip(known, -_LOWEST[-1], _HIGHEST).reshape(-1) + _LOWEST[-1], minlength=1)
    values = np.maximum(np.arange(len(counts)) - _LOWEST[-1], -_LOWEST[:, None])
    often = counts / max(1, known.size)
    low, high = np.zeros(len(_LOWEST)), np.full(len(_LOWEST), 4.0)
    for _ in range(20):
        middle = (low + high) / 2
        above = np.exp(middle[:, None] * values) @ often > 1
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    low[values @ often >= 0] = 0
    reached = np.exp(-low[:, None] * np.maximum(cutoffs - 2 * _LOWEST[:, None], 0)) @ shares / 8
    return np.asarray(reached)


class Ring(NamedTuple):
    """Queries that stand on a circle together.

    Attributes:
        shape: of the work.
        table: i4, bytes of the scores of all positions, and behind them exact scores, i2.
        limits: i4, of each class of targets the half from which on diagonals are noted, and of each query what
            ``confirm`` reads.
        queries, classes: how many there are.
    """

    shape: Shape
    table: np.ndarray
    limits: np.ndarray
    queries: int
    classes: int


@lru_cache(8)
def rings_of(sieves: tuple[tuple[int, Sieve], ...]) -> list[Ring]:
    """Rings of queries, by their numbers, which come by rising limits; those of the last ones are kept, since every
    volume asks for them.

    Rings fit in shared memory and are of about the same size, unless limits differ much.
    """
    ends = np.cumsum([0, *(len(sieve.positions) for _, sieve in sieves)])
    size, made, first = ends[-1] / max(1, -(-ends[-1] // MOST_POSITIONS)), [], 0
    while first < len(sieves):
        last = first + 1
        while (last < len(sieves) and ends[last + 1] - ends[first] <= min(size + MOST_POSITIONS // 32, MOST_POSITIONS)
               and sieves[last][1].limit <= sieves[first][1].limit + _ALIKE):
            last += 1
        made.append(_ring(sieves[first:last]))
        first = last
    return made


def _ring(sieves: Sequence[tuple[int, Sieve]]) -> Ring:
    lengths = np.array([len(sieve.positions) for _, sieve in sieves])
    begins, shape = np.cumsum(lengths) - lengths, shape_of(int(lengths.sum()))
    positions = np.zeros((shape.circle, CODES), np.uint8)
    np.concatenate([sieve.positions for _, sieve in sieves], out=positions[: lengths.sum()])
    table = np.concatenate([positions.reshape(-1).view(np.int32),
                            *(sieve.scores.reshape(-1).view(np.int32) for _, sieve in sieves)])
    limits = np.min([sieve.limits for _, sieve in sieves], axis=0) / np.float64(ONE)
    told = [[number, begin, begin - GAP * n, len(sieve.scores), *sieve.cutoffs]
            for n, ((number, sieve), begin) in enumerate(zip(sieves, begins.tolist(), strict=True))]
    halves = limits.astype(np.float16).view(np.int16).astype(np.int32)
    return Ring(shape, table, np.concatenate([halves, np.array(told, np.int32).reshape(-1)]), len(sieves), len(limits))


@cache
def can_sieve() -> bool:
    """Whether the current device has the instructions, which those of compute capability 9.0 alone have."""
    return IN_SIMULATOR if SIMULATED else cuda.get_current_device().compute_capability[:2] == (9, 0)


def fills(positions: int, targets: int) -> bool:
    """Whether so many positions of queries and so many targets keep the current device busy."""
    shape = shape_of(min(positions, MOST_POSITIONS))
    return shape.passes * targets >= GROUP_WARPS * ROWS * shape.warpgroups * blocks()


@cache
def blocks() -> int:
    """Of the sieve on the current device: one for each of its processors."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def noted_words(targets: int, positions: int) -> int:
    """Of eight bytes, that notes of a circle of so many positions at most have room in between the two kernels."""
    return 2 * min(ROOM, max(LEAST_ROOM, 32 * targets * min(positions, MOST_POSITIONS) // MOST_POSITIONS)) + 1


@cache
def _kernel(columns: int, warps: int, registers: int, classed: bool) -> Any:
    functions = {"no_sums": no_scores(columns // 4), "scores_at": scores_at, "scores_are_there": scores_are_there,
                 "add_two_steps": add_two_steps, "put_registers": put_registers, "get_registers": get_registers,
                 "lanes_where": lanes_where, "first_lane": first_lane, "meet_warp": meet_warp}
    special = specialise(
        sieve, functions, "", COLUMNS=columns, THREADS=32 * warps, CLASSED=classed, SCRATCH=scratch_words(columns),
        GROUP_WARPS=GROUP_WARPS, ROWS=ROWS, CODES=CODES, PADS=PAD * 0x01010101, KEEP=KEEP, TAKE=TAKE)
    return kept_kernel(max_registers=registers)(special)


@cache
def _confirm() -> Any:
    return kept_kernel()(confirm)


class Room(NamedTuple):
    """Arrays on the device that a sieve reads and writes.

    Attributes:
        table: i4, in which tables of rings are.
        limits: i4, in which ``Ring.limits`` are.
        noted: i8, what goes from one kernel to the other; ``found`` is what is left, as ``diagonal_scan_cuda`` has it.
        classes: u1 of the targets, or none.
    """

    table: Any
    limits: Any
    noted: Any
    found: Any
    classes: Any


class TargetWindows(NamedTuple):
    """Overlapping pieces of one length, of the longest targets of a volume, which are looked at in place of these: a
    long target would keep some warps at work when all others are done.

    Attributes:
        cut: how many targets they are of.
        length: residues of each; no other target has more.
        begins, owners: i8[p], first residue and target of each.
    """

    cut: int
    length: int
    begins: np.ndarray
    owners: np.ndarray


def windows_of(order: TargetOrder, reach: int) -> TargetWindows:
    """Pieces of all targets that are much longer than ``reach``: whatever takes so many residues lies in one."""
    lengths, ranked = order.lengths, order.ranked
    step, most = max(_LEAST_STEP, reach), len(lengths)
    while True:
        cut = bisect_left(range(most), True, key=lambda rank: lengths[ranked[rank]] <= step + reach)
        owners = ranked[:cut].astype(np.int64)
        counts = -(-(lengths[owners] - reach) // step)
        if counts.sum() <= MOST_PIECES:
            break
        step, most = 2 * step, cut
    owners, firsts = np.repeat(owners, counts), np.repeat(np.cumsum(counts) - counts, counts)
    starts = np.minimum((np.arange(len(owners)) - firsts) * step, lengths[owners] - step - reach)
    firsts = order.firsts[owners] if cut else owners
    return TargetWindows(cut, step + reach, firsts + starts, owners)


class Ranked(NamedTuple):
    """Targets of a volume that are looked at: of ranks ``first``, ``first`` + ``step``, …, ``works`` of them.

    Attributes:
        pieces: which rank first.
        pieces_there: i8 on the device, ``begins`` and ``owners`` of them; anything of that type where there are none.
    """

    residues: Any
    order: TargetOrder
    pieces: TargetWindows
    pieces_there: Any
    first: int
    step: int

    def whole(self) -> "Ranked":
        """The same without pieces."""
        return self._replace(pieces=TargetWindows(0, 0, *np.empty((2, 0), np.int64)))

    @property
    def works(self) -> int:
        count = len(self.order) - self.pieces.cut + len(self.pieces.begins)
        return len(range(self.first, count, self.step))


class Keys(NamedTuple):
    """How a diagonal's key is made: (query · ``targets`` + target) · ``span`` + diagonal + ``shift``."""

    targets: int
    span: int
    shift: int


def queue(ring: Ring, begin: int, first_limit: int, targets: Ranked, keys: Keys, room: Room, stream: Any,
          patient: Any) -> None:
    """Queue both kernels for a ring whose table begins at ``begin``, and its limits at ``first_limit``.

    What comes before and after is queued on ``stream``; the sieve on ``patient``, where it lets others go before.
    """
    shape, order, pieces = ring.shape, targets.order, targets.pieces
    works, count = targets.works, len(pieces.begins)
    classed, classes = room.classes is not None, targets.residues if room.classes is None else room.classes
    notes = np.int64((len(room.noted) - 1) // 2)
    clear(room.noted, 1, stream)
    make_wait(stream, [patient])
    units = -(-works // (GROUP_WARPS * ROWS)) * shape.passes
    waves = max(1, min(_WAVES, units // (_UNITS * blocks() * shape.warpgroups)))
    made = _kernel(shape.columns, shape.warps, shape.registers, classed)
    made[blocks() * waves, 32 * shape.warps, patient, shape.shared_bytes](
        room.table, np.int32(begin), np.int32(shape.circle), np.int32(shape.passes), targets.residues.view(np.int32),
        order.ranked_there, order.begins, order.ends, targets.pieces_there, np.int32(count), np.int32(pieces.cut),
        np.int32(pieces.length), np.int32(targets.first), np.int32(targets.step), np.int32(works), classes, room.limits,
        np.int32(first_limit), room.noted, notes)
    make_wait(patient, [stream])
    _confirm()[_CONFIRM_BLOCKS, _THREADS, stream](
        room.noted, notes, room.table.view(np.int16), np.int64(2 * (begin + shape.circle * CODES // 4)),
        targets.residues, order.begins, order.ends, targets.pieces_there, np.int64(count), classes, classed,
        room.limits, np.int64(first_limit + ring.classes),
        np.int64(ring.queries), np.int64(ring.classes), np.int64(keys.targets), np.int64(keys.span),
        np.int64(keys.shift), room.found, np.int64(len(room.found) - 1))
