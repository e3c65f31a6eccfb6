# ruff: noqa: F821  (names in capitals in the kernel template are constants filled in by ``specialise``)
# mypy: disable-error-code="name-defined"
"""MSV and SSV of sequences in columns on CUDA devices: a warp takes some of them, states of the model in registers.

A warp's lanes are S groups of L = 32 / S, each of which goes down a column of its own (``warp_blocks.py``), a residue
a step, and waits for no other thread: what a group's lanes tell each other goes by shuffles. States are striped over
the W numbers that the group's registers hold side by side, H registers a lane: node k is number (k − 1) div H of slot
(k − 1) mod H, so that the state a diagonal step before is in the slot before, and only at slot 0 one number on. The
loop over slots is written out, which keeps states in registers. S is the largest for which H suffices (equations 4 to
6); the paper takes one sequence a warp for SSV of longer models (section 3.4.2), which gains nothing here. Models that
are too long for one group of all lanes have their states in shared memory.

More than 32 sequences share lanes, each with its part of every register (S = 64, and 128 with four numbers in one).
A lane goes down two or four columns, no number moves on from one sequence to another, and what a slot adds is put
together of the scores of their residues, which the lanes of the warp hold, one code each, and tell each other
(algorithm 4).

A state is kept as what it is worth beyond entering the model, at least 0. In place of max(before, begin) + score a cell
of MSV is then max(0, before + score), as one of SSV is, since what entering is worth is the same for all states of a
row, and what is worth less is no better than entering anew. J makes it worth more when a score rises beyond what a
segment of some 25 bits has, which is rare. So a row asks no more than whether any score has passed a bound, or a
sequence ends; only then is the best score of all lanes put together. If J rises, all states of the sequence are worth
so much less; if a score overflows, they are taken back to nothing, and the sequence is known to overflow up to its end.
The bound is below all that overflows, so that numbers stay small: bytes carry nothing into those beside them, and
floating-point numbers are exact.

The paper has four numbers of eight bits in a register. Devices of today have no instructions for these any more, but
some for two numbers of sixteen bits. Both forms are here: for two cells a lane has a sum of two halves of floating
point that gives 0 for what is negative, half a maximum of three registers, and a fourth of a load of four slots'
scores; for four cells with bytes, fourteen instructions (``packed8.py``) and as much of a load. An end mark is a
residue with which no state keeps anything, so that states begin anew behind it without the paper's masks.

Results are those of ``msv_reference.py``. Where HMMER doesn't try SSV, J of a target that no residue gains anything
with is told by cells that are worth less than entering: its residues are then looked at again.

Source: Jiang, Ganesan & Yao 2018 (CUDAMPF++), sections 3.1, 3.3 and 3.4.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint64
from seqloom.core.classes import NamedTuple, dataclass
from seqloom.core.cuda.jit import kernel as kept_kernel
from seqloom.core.cuda.read_only import four_behind, place_in
from seqloom.core.kernels.packed8 import maximum4, subtract4
from seqloom.core.kernels.packed16 import (
    EXACT_HALVES,
    SIMULATED,
    SINGLE,
    Arithmetic,
    add_half_or_zero,
    any_of_warp,
    choose_bytes,
    from_lane,
    from_lane_before,
    from_partner,
    half_bits,
    packed_arithmetic,
    pair,
    signed_word,
)
from seqloom.core.kernels.unroll import specialise

from . import warp_blocks
from .profile import BYTE_BASE, ByteProfile
from .warp_blocks import CODES, END, PADDING, Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

cuda: Any = _cuda  # numba's types don't know what code on the device may do
LANES = 32
MOST_SEQUENCES = 32
"""Of a warp, unless more are asked for: a lane each. Several to a lane, 64 and 128, the paper has for models of up to
20 nodes alone (mₘᵢₙ of section 3.4.2)."""
WIDEST = 128
"""Sequences of a warp, at most: a number of eight bits each."""
MOST_ROWS = 48
"""Registers of states a lane, at most, unless others are asked for; with what else a lane needs it is half of what it
may have, so that warps enough are there to wait for memory."""
WARPS_PER_SM = 24
"""Warps that a multiprocessor is given a block of sequences for: it has room for so many, of 80 registers each. With
32 a second turn is for few of them: MSV of 2,405 nodes went at 9,781 · 10⁹ cells a second in place of 12,119."""
SHARED_BYTES = 48 << 10
"""Shared memory that every block may have."""
_WARPS = 1 if SIMULATED else 4
OVERFLOW = -1
_TOO_MUCH = 255
"""A score that overflows, with the bias."""
_NO_SSV = 127
"""Sum of costs from which HMMER doesn't try SSV."""
QUAD = 4
"""Slots whose scores a lane reads at a time."""
add = SINGLE.functions["add"]


def registers(count):  # pragma: no cover - names for the templates
    """Place holder; see ``core/kernels/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


# ---- numbers of a register, two or four; ``scores`` is what ``Form.words`` says


@cuda.jit(device=True)
def cell_of_pairs(before, scores, bias):
    return add_half_or_zero(before, scores)


@cuda.jit(device=True)
def halves_of(numbers):
    """Two whole numbers below 1,024, beside each other, as halves of floating point."""
    # With these bits above them they are the halves of 1,024 more.
    return add_half_or_zero(int32(numbers | int32(_BITS_1024)), int32(_LESS_1024))


@cuda.jit(device=True)
def numbers_of(halves):
    """Two whole numbers below 1,024 of their halves: ``halves_of`` the other way round."""
    return int32(add_half_or_zero(halves, int32(_BITS_1024)) & int32(_BELOW_1024))


@cuda.jit(device=True)
def less_of_pairs(halves, off):
    return add_half_or_zero(halves, int32(off ^ int32(_SIGNS)))


@cuda.jit(device=True)
def cell_of_bytes(before, scores, bias):
    return subtract4(add(before, bias), scores)


@cuda.jit(device=True)
def largest_of_bytes(a, b, c):
    return maximum4(maximum4(a, b), c)


@cuda.jit(device=True)
def same(word):
    return word


@dataclass(frozen=True, eq=False)
class Form:
    """How numbers stand in a register.

    Attributes:
        numbers: how many.
        functions: of the device, by the name that the kernel template uses: ``cell`` of the numbers a diagonal step
            before, ``less``, all numbers less others, at least 0, and ``whole`` and ``packed``, which make whole
            numbers of a register's and the other way round. ``larger`` and ``largest``, the larger ones of two and of
            three registers, are those of an ``Arithmetic`` where there are none.
        costs: whether scores are costs and bias, to be taken off with the bias given back.
        lost: the score with which nothing is kept.
        moved, spread, swapped: selectors of ``choose_bytes``: one number on, from the register of the lane before; the
            first number everywhere; and those that bring all numbers of a sequence beside each other. ``moved`` and
            ``swapped`` are by how many sequences share a register.
    """

    name: str
    numbers: int
    functions: dict[str, Any]
    costs: bool
    lost: int
    moved: dict[int, int]
    spread: int
    swapped: dict[int, tuple[int, ...]]

    def functions_by(self, arithmetic: Arithmetic) -> dict[str, Any]:
        """All functions of the kernel template."""
        made = arithmetic.functions
        return {"larger": made["maximum"], "largest": made["maximum3"]} | self.functions

    def constants(self, sharing: int) -> dict[str, Any]:
        """Constants of the kernel template where so many sequences share a register."""
        size = 4 // sharing  # bytes of each sequence
        bits = [((1 << 8 * size) - 1) << 8 * size * n for n in range(sharing)]
        return {"SHARING": sharing, "MASK": (1 << 32 // self.numbers) - 1, "MOVED": self.moved[sharing],
                "SPREAD": self.spread, "SWAPPED": self.swapped[sharing], "SWAPS": len(self.swapped[sharing]),
                "PART": 8 * size, "PARTS": tuple(signed_word(part) for part in bits),
                "OTHERS": tuple(signed_word(~part) for part in bits),
                # Bytes of the sequences up to one from the one register, all others from the other.
                "JOINED": tuple(sum((byte + 4 * (byte >= size * (n + 1))) << 4 * byte for byte in range(4))
                                for n in range(sharing - 1))}

    def words(self, profile: ByteProfile, sequences: int, rows: int) -> NDArray[np.int32]:
        """The numbers of each slot for each residue in each lane of a group, four slots beside each other: word
        ((slot div 4 · CODES + residue) · L + lane) · 4 + slot mod 4 is a register of them. Where several sequences
        share a lane, the same numbers are in the place of each. Behind them, i4[CODES]: what residues gain at most."""
        codes, length = profile.cost.shape
        width, quads = number_count(self.numbers, sequences), -(-rows // QUAD)
        cost = profile.cost.astype(np.int16)
        scores = np.int16(profile.bias) - cost
        kept = np.full((CODES, width * rows), self.lost, np.int16)
        kept[:codes, :length] = cost if self.costs else scores
        # A slot's numbers stand in the order of the lanes.
        striped = np.full((quads * QUAD, CODES, width), self.lost, np.int16)
        striped[:rows] = kept.reshape(CODES, width, rows).transpose(2, 0, 1)
        shared = np.tile(striped, max(1, sequences // LANES)).astype(np.float16 if self.numbers == 2 else np.uint8)
        words = shared.reshape(-1).view(np.int32).reshape(quads, QUAD, CODES, -1)
        gains = np.zeros(CODES, np.int32)
        gains[:codes] = scores.max(axis=1)
        return np.concatenate([words.transpose(0, 2, 3, 1).reshape(-1), gains])


_BITS_1024, _LESS_1024, _BELOW_1024, _SIGNS = pair(half_bits(1024)), pair(half_bits(-1024)), pair(1023), pair(1 << 15)
FORMS = {
    2: Form("pairs", 2, {"cell": cell_of_pairs, "less": less_of_pairs, "whole": numbers_of, "packed": halves_of},
            False, -EXACT_HALVES, {1: 0x5432, 2: 0}, 0x1010, {1: (0x1032,), 2: ()}),
    4: Form("bytes", 4, {"cell": cell_of_bytes, "less": subtract4, "whole": same, "packed": same, "larger": maximum4,
                         "largest": largest_of_bytes},
            True, 255, {1: 0x6543, 2: 0x6040, 4: 0}, 0, {1: (0x1032, 0x2301), 2: (0x2301,), 4: ()}),
}
"""By numbers in a register."""


class Layout(NamedTuple):
    """How a model lies in a warp.

    Attributes:
        sequences: S, that a warp takes side by side.
        rows: H, registers of states a lane.
        held: whether they are registers; else the states are in shared memory, and S is 1.
    """

    sequences: int
    rows: int
    held: bool


def number_count(numbers: int, sequences: int) -> int:
    """W: states that a group has side by side, with so many numbers in a register (equation 4)."""
    return LANES * numbers // sequences


def longest_held(numbers: int, sequences: int, most_rows: int = MOST_ROWS) -> int:
    """Nodes of the longest model whose states so many registers hold (equation 5)."""
    return number_count(numbers, sequences) * most_rows


def layout_of(length: int, numbers: int, most_rows: int = MOST_ROWS, most_sequences: int = MOST_SEQUENCES) -> Layout:
    """The layout of a model: as many sequences as its length allows, then as few rows (equations 5 and 6).

    Args:
        length: nodes of the model.
        most_rows: Hₘₐₓ. most_sequences: a power of two; 1 is the kernel of one sequence a warp. There are no more than
            a warp's registers have numbers.
    """
    sequences = min(most_sequences, LANES * numbers)
    while sequences > 1 and longest_held(numbers, sequences, most_rows) < length:
        sequences //= 2
    rows = max(2, -(-length // number_count(numbers, sequences)))
    return Layout(sequences, rows, rows <= max(2, most_rows))


def longest_model(numbers: int) -> int:
    """Nodes of the longest model whose states a block's shared memory holds."""
    return SHARED_BYTES // (4 * LANES) * number_count(numbers, 1)


def score_columns(residues, starts, stride, lengths, heights, firsts, costs, scores, rows, bias, entry, end, blocks,
                  results):
    """Kernel template: MSV or SSV of the sequences of blocks.

    Args:
        residues: u1; the n-th residue of column c is at ``starts[c] + n · stride``, and ``lengths[c]`` are read.
        heights: i4[blocks], of the longest column of each block.
        firsts: i4[columns], the number of each column's first sequence; others follow.
        costs: i4[sequences + 1], N, J, C → move of each, and one more.
        scores: i4, ``Form.words``.
        rows: H.
        bias, entry, end: of the profile.
        results: i2[sequences]. MSV: J behind the last residue, or OVERFLOW. SSV: best segment, at most
            255 − bias, with which a target passes whatever the threshold.
    """
    lane = int32(cuda.threadIdx.x & 31)
    group = int32(lane // int32(GROUP))
    own = int32(lane % int32(GROUP))
    # Of each sequence that a lane is at.
    place = registers(SHARING)
    length = registers(SHARING)
    member = registers(SHARING)
    residue = registers(SHARING)
    coming = registers(SHARING)
    begin = registers(SHARING)
    if HELD:
        state = registers(ROWS)
    else:
        state = cuda.shared.array(0, int32)
        base = int32(int32(cuda.threadIdx.x >> 5) * rows * int32(32) + lane)
    warps = int32(cuda.gridDim.x * cuda.blockDim.x >> 5)
    turns = int32(WIDTH // SEQUENCES)
    many_bias = choose_bytes(bias, bias, int32(SPREAD))
    work = int32((cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) >> 5)
    while work < blocks * turns:
        block = int32(work % blocks)
        column = int32(block * int32(WIDTH) + int32(work // blocks) * int32(SEQUENCES) + group * int32(SHARING))
        work = int32(work + warps)
        if HELD:
            for h in unrolled(ROWS):
                state[h] = int32(0)
        else:
            for h in range(rows):
                state[uint64(base + int32(h) * int32(32))] = int32(0)
        last = int32(0)
        best = int32(0)
        bounds = int32(0)
        any_sequence = False
        for n in unrolled(SHARING):
            place[n] = int64(starts[column + int32(n)])
            length[n] = int32(lengths[column + int32(n)])
            member[n] = int32(firsts[column + int32(n)])
            begin[n] = int32(0)
            bound = int32(int32(_TOO_MUCH - 1) - bias)
            if MULTIHIT:
                cost = int32(costs[member[n]] + entry)
                begin[n] = int32(max(int32(BYTE_BASE) - cost, int32(0)))
                bound = bound_of(cost, begin[n], bias, end)
            bounds = int32(bounds | int32(choose_bytes(bound, bound, int32(SPREAD)) & int32(PARTS[n])))
            coming[n] = int32(PADDING)
            if length[n] > int32(0):
                coming[n] = int32(residues[uint64(place[n])])
                any_sequence = True
        limits = packed(bounds)
        height = int32(0)
        if any_of_warp(any_sequence):  # the last block has columns without any sequence
            height = int32(heights[block])
        row = int32(0)
        while row < height:
            row = int32(row + int32(1))
            ends = False
            for n in unrolled(SHARING):
                residue[n] = coming[n]
                ends = ends or residue[n] == int32(END)
                # What comes next is asked for before it is needed.
                place[n] = int64(place[n] + int64(stride))
                coming[n] = int32(PADDING)
                if row < length[n]:
                    coming[n] = int32(residues[uint64(place[n])])
            if HELD:
                last = state[ROWS - 1]
            before = int32(0)
            if GROUP > 1:
                before = from_lane_before(last)
                if own == int32(0):
                    before = int32(0)
            before = choose_bytes(before, last, int32(MOVED))
            of_slot = int32(int32(residue[0] * int32(GROUP) + own) * int32(QUAD))
            if SHARING > 1:
                of_slot = int32(lane * int32(QUAD))
            if HELD:
                words = place_in(scores, of_slot)
                # From the last slot to the first, so that each is read before its new value comes there.
                for k in unrolled(ROWS):
                    if k == 0 or (ROWS - k) % QUAD == 0:
                        four = four_behind(words, int64((ROWS - 1 - k) // QUAD * QUAD * CODES * GROUP))
                    word = int32(four[(ROWS - 1 - k) % QUAD])
                    if SHARING > 1:
                        of_code = word
                        word = from_lane(of_code, residue[0])
                        for n in unrolled(SHARING - 1):
                            word = choose_bytes(word, from_lane(of_code, residue[n + 1]), int32(JOINED[n]))
                    if k < ROWS - 1:
                        state[ROWS - 1 - k] = cell(state[ROWS - 2 - k], word, many_bias)
                    else:
                        state[0] = cell(before, word, many_bias)
                    if k % 2 == 1:
                        best = largest(best, state[ROWS - 1 - k], state[ROWS - k])
                if ROWS % 2 == 1:
                    best = larger(best, state[0])
            else:
                at = uint64(base)
                for h in range(rows):
                    quad = int32(int32(h) >> int32(2))
                    word = scores[uint64(of_slot + quad * int32(QUAD * CODES * GROUP) + int32(int32(h) & int32(3)))]
                    new = cell(before, word, many_bias)
                    best = larger(best, new)
                    before = state[at]
                    state[at] = new
                    last = new
                    at = uint64(at + uint64(32))
            # A sequence ends, or a score rises to where it matters.
            if any_of_warp(ends or larger(best, limits) != limits):
                # The largest number of each sequence, wherever its numbers are.
                reached = best
                for bit in unrolled(BITS):
                    reached = larger(reached, from_partner(reached, int32(1 << bit)))
                for k in unrolled(SWAPS):
                    reached = larger(reached, choose_bytes(reached, reached, int32(SWAPPED[k])))
                reached = whole(reached)
                bounds = whole(limits)
                off = int32(0)
                for n in unrolled(SHARING):
                    top = int32(int32(reached >> int32(n * PART)) & int32(MASK))
                    bound = int32(int32(bounds >> int32(n * PART)) & int32(MASK))
                    if residue[n] == int32(END):
                        if MULTIHIT:
                            cost = int32(costs[member[n]] + entry)
                            if own == int32(0):
                                j = int32(OVERFLOW)
                                if begin[n] + top + bias < int32(_TOO_MUCH):
                                    gained = top
                                    if top == int32(0) and untried(cost, bias, end):
                                        gained = most_gained(residues, place[n] - int64(stride), stride, row,
                                                             scores, rows, GROUP)
                                    j = int32(max(first_j(cost, bias, end), begin[n] + gained - end))
                                results[member[n]] = j
                            member[n] = int32(member[n] + int32(1))
                            cost = int32(costs[member[n]] + entry)
                            begin[n] = int32(max(int32(BYTE_BASE) - cost, int32(0)))
                            bound = bound_of(cost, begin[n], bias, end)
                        else:
                            if own == int32(0):
                                results[member[n]] = int32(min(begin[n] + top, int32(255) - bias))
                            member[n] = int32(member[n] + int32(1))
                            begin[n] = int32(0)
                        best = int32(best & int32(OTHERS[n]))
                    elif top > bound:
                        fall = top
                        if MULTIHIT and begin[n] + top + bias < int32(_TOO_MUCH):
                            # J rises, and what entering the model is worth with it: others are worth less beside it.
                            cost = int32(costs[member[n]] + entry)
                            fall = int32(top - cost - end)
                            begin[n] = int32(begin[n] + fall)
                            bound = bound_of(cost, begin[n], bias, end)
                        else:
                            begin[n] = int32(_TOO_MUCH)  # which stays so to its end
                        off = int32(off | int32(choose_bytes(fall, fall, int32(SPREAD)) & int32(PARTS[n])))
                    bounds = int32(int32(bounds & int32(OTHERS[n]))
                                   | int32(choose_bytes(bound, bound, int32(SPREAD)) & int32(PARTS[n])))
                limits = packed(bounds)
                if off != int32(0):
                    off = packed(off)
                    best = less(best, off)
                    if HELD:
                        for h in unrolled(ROWS):
                            state[h] = less(state[h], off)
                    else:
                        last = less(last, off)
                        at = uint64(base)
                        for _ in range(rows):
                            state[at] = less(state[at], off)
                            at = uint64(at + uint64(32))


@cuda.jit(device=True)
def untried(cost, bias, end):
    """Whether HMMER doesn't try SSV, with what entering the model costs."""
    return cost + end + bias >= int32(_NO_SSV)


@cuda.jit(device=True)
def first_j(cost, bias, end):
    """Value of J before the first residue, as ``msv_reference.first_j``."""
    j = int32(max(int32(BYTE_BASE) - cost - end, int32(0)))
    if untried(cost, bias, end):
        j = int32(0)
    return j


@cuda.jit(device=True)
def bound_of(cost, begin, bias, end):
    """The highest score with which J makes entering the model worth no more, and with which nothing overflows."""
    return int32(min(int32(cost + end), int32(int32(_TOO_MUCH - 1) - bias - begin)))


@cuda.jit(device=True)
def most_gained(residues, place, stride, row, scores, rows, group):
    """What a residue of a sequence gains at most, where none gains anything.

    Args:
        place: of the end mark behind the sequence; so many rows of the column are up to it.
        group: L, which with ``rows`` tells where the gains are in ``scores``.
    """
    gains = int32(int32(int32(rows + int32(3)) >> int32(2)) * int32(group) * int32(QUAD * CODES))
    most = int32(-_TOO_MUCH)
    at = int64(place)
    left = int32(row)
    while left > int32(1):
        at = int64(at - int64(stride))
        code = int32(residues[uint64(at)])
        if code == int32(END):
            break
        most = int32(max(most, int32(scores[uint64(gains + code)])))
        left = int32(left - int32(1))
    return most


@cache
def template_of(model: str, numbers: int, sequences: int, rows: int, held: bool, arithmetic: Arithmetic) -> Any:
    """The kernel's function for a form and a layout; ``rows`` count where states are held in registers."""
    form, group, sharing = FORMS[numbers], max(1, LANES // sequences), max(1, sequences // LANES)
    return specialise(score_columns, form.functions_by(arithmetic), f"{form.name}, {arithmetic.name}", GROUP=group,
                      SEQUENCES=sequences, ROWS=rows, HELD=held, MULTIHIT=model == "msv", WIDTH=warp_blocks.WIDTH,
                      BITS=group.bit_length() - 1, QUAD=QUAD, CODES=CODES, END=END, PADDING=PADDING, OVERFLOW=OVERFLOW,
                      **form.constants(sharing))


@cache
def _kernel(model: str, numbers: int, sequences: int, rows: int, held: bool, arithmetic: Arithmetic) -> Any:
    return kept_kernel()(template_of(model, numbers, sequences, rows, held, arithmetic))


@cache
def warps_of_device() -> int:
    """Warps of the current device that are given blocks of sequences."""
    return 2 if SIMULATED else WARPS_PER_SM * int(cuda.get_current_device().MULTIPROCESSOR_COUNT)


class SentColumns:
    """Sequences on the current device, to be scored model by model.

    Args:
        columns: of ``in_blocks`` or ``in_sequence``.
        costs: i2, what the length of each sequence costs (N, J, C → move), by its number.
    """

    def __init__(self, columns: Columns, costs: NDArray[np.int16]) -> None:
        self._columns = columns
        ordered = np.zeros(len(columns.members) + 1, np.int32)
        ordered[:-1] = costs[columns.members]
        self._given = [cuda.to_device(part) for part in (columns.residues, columns.starts, columns.lengths,
                                                         columns.rows, columns.firsts[:-1], ordered)]
        self._results = cuda.device_array(len(columns.members), np.int16)

    @staticmethod
    def nbytes(columns: Columns) -> int:
        """Device memory of columns, with the largest model's table."""
        return columns.nbytes + 6 * len(columns.members) + CODES * (SHARED_BYTES + 4)

    def sent_model(self, profile: ByteProfile, form: Form, layout: Layout) -> Any:
        return cuda.to_device(form.words(profile, layout.sequences, layout.rows))

    def begin(self, profile: ByteProfile, model: str, numbers: int, layout: Layout, table: Any) -> None:
        """Start the kernel."""
        residues, starts, lengths, rows, firsts, costs = self._given
        blocks = len(self._columns.rows)
        works = blocks * (warp_blocks.WIDTH // layout.sequences)
        warps, bytes_of_warp = _WARPS, 0
        if not layout.held:
            bytes_of_warp = 4 * LANES * layout.rows
            warps = min(_WARPS, SHARED_BYTES // bytes_of_warp)
        made = _kernel(model, numbers, layout.sequences, layout.rows if layout.held else 0, layout.held,
                       packed_arithmetic())
        where = max(1, min(warps_of_device(), works) // warps), warps * LANES, 0, warps * bytes_of_warp
        made[where](
            residues, starts, np.int64(self._columns.stride), lengths, rows, firsts, costs, table,
            np.int32(layout.rows), np.int32(profile.bias), np.int32(profile.entry), np.int32(profile.end),
            np.int32(blocks), self._results)

    def scores(self, profile: ByteProfile, model: str, numbers: int, layout: Layout) -> NDArray[np.int16]:
        """What a model says of each sequence, by its number: ``score_columns``.

        Args:
            model: "msv" or "ssv".
            numbers: in a register.
        """
        found = np.empty(len(self._columns.members), np.int16)
        if len(found):
            self.begin(profile, model, numbers, layout, self.sent_model(profile, FORMS[numbers], layout))
            found[self._columns.members] = self._results.copy_to_host()
        return found


def takes(profile: ByteProfile) -> bool:
    """Whether kernels take a model: it isn't too long for shared memory, and entering it can't leave eight bits before
    any score has overflowed, which takes a bias that no alphabet here gives."""
    return profile.cost.shape[1] <= longest_model(2) and profile.bias + BYTE_BASE < _TOO_MUCH
