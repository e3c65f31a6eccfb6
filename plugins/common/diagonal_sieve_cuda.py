# ruff: noqa: F821  (names in capitals in the kernel template are constants, which ``specialise`` fills in)
# mypy: disable-error-code="name-defined"
"""Diagonals on which some segment may score well, by the tensor cores of a CUDA device, and which of them do.

The query's positions stand on a circle, with three empty ones between its end and its beginning. A register stays on
one diagonal: with every residue of the target it comes to the next position, so that nothing is handed from lane to
lane or from tile to tile, and a query longer than ``columns`` is done in several passes, each of which takes other
diagonals. What a step costs is the tensor cores' product (``core/cuda/one_hot.py``), half an addition that saturates
and half of a half of a maximum, for two cells.

So little is done because sums are looked at and kept from falling below 0 after every other residue alone. A segment
that begins at the other residues has the score of the pair before as well, and one that ends there that of the pair
behind: with no score below −``lowest``, which lower ones count as, a segment of C or more shows C − 2 · ``lowest`` at
least. Of the empty positions the first and the last score nothing, and the middle one ends all segments; residues
behind the end of a target score nothing.

What shows is noted as in ``diagonal_scan_cuda.py``. There is more of it than of good diagonals, by a factor that is
smaller than what the scan gains; each is scored cell by cell by a second kernel, which notes those that are good.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint32
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.jit import launch
from seqloom.core.cuda.one_hot import (
    CEILING as ONE,
)
from seqloom.core.cuda.one_hot import (
    CODES,
    GROUP_WARPS,
    ROWS,
    add_two_steps,
    first_lane,
    get_registers,
    lanes_where,
    meet_warp,
    no_scores,
    put_registers,
    score_bytes,
    scores_are_there,
    scores_at,
)
from seqloom.core.cuda.transfer import clear
from seqloom.core.kernels.packed16 import SIMULATED, anew
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
    (64, 32, 64), (104, 28, 72), (136, 24, 80), (176, 20, 96), (216, 16, 128), (256, 16, 128))
"""Columns of a pass, warps of a block and registers of a thread that go with them."""
_STEP_COLUMNS = 130
"""What a step costs beside its columns, in columns, as measured."""
ROOM = 1 << (8 if SIMULATED else 22)
"""Diagonals that there is room for between the two kernels."""
_SHARED = 220 << 10
"""Bytes of shared memory that a block may have."""
LEAST_ROOM = 1 << 10
"""For small volumes."""
IN_SIMULATOR = False
"""Whether to sieve there: it takes long."""
_MOST_NOTES = 2e-5
"""Of a cell, of which more would take longer than the scan without tensor cores."""
_THREADS = 32 if SIMULATED else 128
_CONFIRM_BLOCKS = 2 if SIMULATED else 132 * 8
KEEP = tuple((((-1 ^ 255 << 8 * j) & 0xFFFFFFFF) ^ 1 << 31) - (1 << 31) for j in range(4))
TAKE = tuple(-1 ^ keep for keep in KEEP)
"""Masks of all bytes of a word but one, and of that one."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


def sieve(table, first_word, circle, passes, residues, ranked, begins, ends, rank_first, rank_step, works, classes,
          limits, first_limit, base, span, shift, noted, room):
    """Kernel template: note (``base`` + target) · ``span`` + diagonal + ``shift`` where a segment may score well.

    Args:
        table: i4; from ``first_word`` on are ``circle`` positions' scores (see ``positions_table``).
        passes: of all units of work: ``works`` targets of rank ``rank_first``, ``rank_first`` + ``rank_step``, …, a
            group of them at a time, and so many passes of each.
        residues, begins, ends, ranked, classes: as of ``diagonal_scan_cuda.scan_tile``; without CLASSED there are none.
        limits, first_limit: i4, of which from the second one on are halves in units of 1/2048, of each class: the
            least that is noted.
        noted, room: i8; the first one is the number of diagonals noted, behind it are so many of them at most.
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
        leader = ranked[rank_first + int32(group * int32(GROUP_WARPS * ROWS)) * rank_step]
        words = int32((ends[leader] - begins[leader] + int64(6)) >> int64(2))
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
            head = int32(0)
            length = int32(0)
            word = int32(0)
            if rank < works:
                place = int32(ranked[rank_first + rank * rank_step])
                begin = int64(begins[place])
                length = int32(ends[place] - begin)
                word = int32(begin >> int64(2))
                head = int32(begin & int64(3))
            least = int32(limits[first_limit + (int32(classes[place]) if CLASSED else int32(0))])
            shared[rows + int32(own + half * int32(8))] = place
            shared[rows + int32(own + half * int32(8)) + int32(ROWS)] = head
            shared[rows + int32(own + half * int32(8)) + int32(2 * ROWS)] = length
            shared[rows + int32(own + half * int32(8)) + int32(3 * ROWS)] = least
            if half == int32(0):
                first = word
                last = int32(max(int32(int32(head + length + int32(3)) >> int32(2)) - int32(1), int32(0)))
                below = int32(int32(least - int32(1)) * int32(0x00010001))
            else:
                first8 = word
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
                                    diagonal = int32(column - int32(int32(position + half) % circle))
                                    noted[number + 1] = (base + target) * span + int64(diagonal + shift)
                        shared[kept + register] = halves
                    meet_warp()
                    if here == who:
                        sums = get_registers(shared, kept, sums)
                phase = int32(phase + int32(2))
            if phase >= circle:
                phase = int32(phase - circle)
        unit = int32(unit + int32(cuda.gridDim.x) * int32(THREADS // 32 // GROUP_WARPS))


def confirm(noted, room, table, first_score, length, residues, begins, ends, classes, classed, cutoffs, first_cutoff,
            base, span, shift, found, found_room):
    """Kernel: note again in ``found`` which of the diagonals in ``noted`` have a segment that scores well.

    A thread scores a diagonal cell by cell. What there was no room for in ``noted`` is told by a number in ``found``
    that is larger than any room.

    Args:
        table, first_score: i2; from ``first_score`` on are scores of ``length`` positions with ``CODES`` residues.
        classed: whether targets have classes.
        cutoffs, first_cutoff: i4, of each class.
    """
    count = noted[0]
    if count > room:
        if cuda.grid(1) == 0:
            cuda.atomic.add(found, 0, int64(TOO_MANY))
        count = int64(0)
    for number in range(int64(cuda.grid(1)), count, int64(cuda.gridsize(1))):
        key = noted[number + 1]
        pair = key // span
        place = int64(pair - base)
        diagonal = int64(key - pair * span - shift)
        begin = int64(begins[place])
        cutoff = int32(cutoffs[first_cutoff + (int32(classes[place]) if classed else int32(0))])
        row = int64(max(int64(0), -diagonal))
        behind = int64(min(int64(length), ends[place] - begin - diagonal))
        place_of = int64(begin + diagonal)
        ending = int32(0)
        while row < behind and ending < cutoff:
            ending = int32(max(int32(0), ending + int32(table[first_score + row * int64(CODES)
                                                              + int64(residues[place_of + row])])))
            row += int64(1)
        if ending >= cutoff:
            place_in = cuda.atomic.add(found, 0, int64(1))
            if place_in < found_room:
                found[place_in + 1] = key


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


@cache
def shape_of(length: int) -> Shape | None:
    """For ``length`` query residues, what should take the least time; None for too many."""
    circle = -(-(length + GAP) // 4) * 4
    shapes = [Shape(*shape, circle, -(-circle // shape[0])) for shape in SHAPES]
    fit = [shape for shape in shapes if shape.shared_bytes <= _SHARED]
    return min(fit, key=lambda shape: shape.passes * (shape.columns + _STEP_COLUMNS)) if fit else None


class Sieve(NamedTuple):
    """What is sieved with for a query.

    Attributes:
        shape: of the work.
        length: of the query.
        lowest: what a cell costs at most.
        table: i4, ``positions_table``, and behind it i2[m, CODES] exact scores.
        limits, cutoffs: i4[c], of each class of targets, halves from which on diagonals are noted, and scores from
            which on they are good.
    """

    shape: Shape
    length: int
    lowest: int
    table: np.ndarray
    limits: np.ndarray
    cutoffs: np.ndarray


def positions_table(scores: np.ndarray, circle: int, lowest: int) -> np.ndarray:
    """i4[circle · CODES / 4], bytes of the scores of all positions of a circle with all residues.

    Args:
        scores: whole numbers[m, CODES]. Residue ``PAD`` scores nothing.
        lowest: scores below −``lowest`` count as that.
    """
    length = len(scores)
    table = np.zeros((circle, CODES), np.int64)
    table[:length, :PAD] = np.maximum(scores[:, :PAD], -lowest)
    table[length + 1] = ENDED
    return score_bytes(table).reshape(-1).view(np.int32)


def sieve_for(scores: np.ndarray, cutoffs: np.ndarray) -> Sieve | None:
    """How to sieve with a query; None where it is too long, or too much would be noted.

    Args:
        scores: i2[m, CODES] by position and residue.
        cutoffs: i8[c] of each class of targets, at least 1.
    """
    shape = shape_of(len(scores))
    if shape is None:
        return None
    cutoffs = np.minimum(cutoffs, CEILING)
    rate, lowest = min((_notes(scores, cutoffs, lowest), lowest) for lowest in range(1, 9))
    if rate > _MOST_NOTES:
        return None
    limits = (np.maximum(cutoffs - 2 * lowest, 1) / np.float64(ONE)).astype(np.float16).view(np.int16)
    table = np.concatenate([positions_table(scores, shape.circle, lowest), scores.reshape(-1).view(np.int32)])
    return Sieve(shape, len(scores), lowest, table, limits.astype(np.int32), cutoffs.astype(np.int32))


def _notes(scores: np.ndarray, cutoffs: np.ndarray, lowest: int) -> float:
    """About how many diagonals are noted for each cell, if residues were random ones.

    Segments of random residues reach a score s with a probability of exp(−λ · s), where the mean of exp(λ · score) is 1
    (Karlin and Altschul 1990).
    """
    known = scores[:, :PAD][:, scores[:, :PAD].max(axis=0) > 0]
    values, counts = np.unique(np.maximum(known, -lowest), return_counts=True)
    shares = counts / max(1, known.size)
    if not known.size or values @ shares >= 0:
        return 1.0
    low, high = 0.0, 4.0
    for _ in range(24):
        middle = (low + high) / 2
        low, high = (low, middle) if np.exp(middle * values) @ shares > 1 else (middle, high)
    return float(np.exp(-low * np.maximum(cutoffs - 2 * lowest, 0)).mean() / 8)


@cache
def can_sieve() -> bool:
    """Whether the current device has the instructions, which those of compute capability 9.0 alone have."""
    return IN_SIMULATOR if SIMULATED else cuda.get_current_device().compute_capability[:2] == (9, 0)


def fills(shape: Shape, targets: int) -> bool:
    """Whether so many targets keep the current device busy."""
    return SIMULATED or shape.passes * targets >= GROUP_WARPS * ROWS * shape.warpgroups * blocks()


@cache
def blocks() -> int:
    """Of the sieve on the current device: one for each of its processors."""
    return 1 if SIMULATED else int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


def noted_room(targets: int) -> int:
    """Diagonals that there is room for between the two kernels."""
    return min(ROOM, max(LEAST_ROOM, 32 * targets))


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
        table: i4, in which tables of queries are.
        limits: i4, in which ``Sieve.limits`` and ``Sieve.cutoffs`` are, one behind the other.
        noted: i8, what goes from one kernel to the other; ``found`` is what is left, as ``diagonal_scan_cuda`` has it.
        classes: u1 of the targets, or none.
    """

    table: Any
    limits: Any
    noted: Any
    found: Any
    classes: Any


class Ranked(NamedTuple):
    """Those of a volume that are looked at: of ranks ``first``, ``first`` + ``step``, …, ``count`` of them."""

    residues: Any
    order: TargetOrder
    first: int
    step: int
    count: int


class Keys(NamedTuple):
    """How a diagonal's key is made: (``base`` + target) · ``span`` + diagonal + ``shift``."""

    base: int
    span: int
    shift: int


def queue(sieve: Sieve, begin: int, first_limit: int, targets: Ranked, keys: Keys, room: Room, stream: Any) -> None:
    """Queue both kernels for a query whose table begins at ``begin``, and its limits at ``first_limit``."""
    shape, order = sieve.shape, targets.order
    classed, classes = room.classes is not None, targets.residues if room.classes is None else room.classes
    clear(room.noted, 1, stream)
    made = _kernel(shape.columns, shape.warps, shape.registers, classed)
    launch(made, (blocks(), 32 * shape.warps, stream, shape.shared_bytes), (
        room.table, np.int32(begin), np.int32(shape.circle), np.int32(shape.passes), targets.residues.view(np.int32),
        order.ranked_there, order.begins, order.ends, np.int32(targets.first), np.int32(targets.step),
        np.int32(targets.count), classes, room.limits, np.int32(first_limit), np.int64(keys.base), np.int64(keys.span),
        np.int32(keys.shift), room.noted, np.int64(len(room.noted) - 1)))
    scores = 2 * (begin + shape.circle * CODES // 4)
    launch(_confirm(), (_CONFIRM_BLOCKS, _THREADS, stream, 0), (
        room.noted, np.int64(len(room.noted) - 1), room.table.view(np.int16), np.int64(scores), np.int32(sieve.length),
        targets.residues, order.begins, order.ends, classes, classed, room.limits,
        np.int32(first_limit + len(sieve.limits)), np.int64(keys.base), np.int64(keys.span), np.int64(keys.shift),
        room.found, np.int64(len(room.found) - 1)))
