# ruff: noqa: F821  (names in capitals in the kernel template are constants filled in by ``specialise``)
# mypy: disable-error-code="name-defined"
"""MSV and SSV of sequences in columns on CUDA devices: a warp takes some of them, states of the model in registers.

A warp's lanes are S groups of L = 32 / S, each of which goes down a column of its own (``warp_blocks.py``), a residue
a step, and waits for no other thread: what a group's lanes tell each other goes by shuffles. States are striped over
the W numbers that the group's registers hold side by side, H registers a lane: node k is number (k − 1) div H of slot
(k − 1) mod H, so that the state a diagonal step before is in the slot before, and only at slot 0 one number on. The
loop over slots is written out, which keeps states in registers. S is the largest for which H suffices (equations 4 to
6), but 1 for SSV of models so long that several sequences a warp gain nothing (section 3.4.2); models that are too long
for one group of all lanes have their states in shared memory.

More than 32 sequences share lanes, each with its part of every register (S = 64, and 128 with four numbers in one).
A lane goes down two or four columns, no number moves on from one sequence to another, and what a slot adds is put
together of the scores of their residues, which the lanes of the warp hold, one code each, and tell each other
(algorithm 4).

The paper has four numbers of eight bits in a register. Devices of today have no instructions for these any more, but
since compute capability 9.0 some for two numbers of sixteen bits, a sum with a maximum among them. Both forms are here:
for a cell of MSV a lane has two instructions with pairs and five with bytes (``packed8.py``), for one of SSV 1.5 and
3.8, loads included. An end mark is a residue with which no state keeps anything, so that states begin anew behind it
without the paper's masks. J is needed in every row; SSV's best score is looked for in rows with an end mark only.

Results are those of ``msv_reference.py``. No sum saturates at 255: before a state can leave eight bits, the score has
overflowed, and what follows in the sequence says no more than that. Where other sequences share the register, states of
one that has overflowed are taken back to nothing after each row, so that bytes carry nothing into theirs.

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
from seqloom.core.cuda.jit import launch, launching
from seqloom.core.kernels.packed8 import maximum4, subtract4
from seqloom.core.kernels.packed16 import (
    PACKED,
    SIMULATED,
    SINGLE,
    any_of_warp,
    choose_bytes,
    from_lane,
    from_lane_before,
    from_partner,
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
ONE_FROM = {"ssv": 700}
"""Nodes of a model from which on a warp takes one sequence: m_max of section 3.4.2. On an H200 with two states in a
register SSV of 368, 735 and 1,440 nodes went at 4,573, 5,361 and 6,376 · 10⁹ cells a second with several, at 3,484,
5,597 and 7,016 with one. MSV of 1,440 nodes went at 6,041 and 5,337, and behind 1,536 equation 5 leaves one anyway."""
WARPS_PER_SM = 32
"""Warps that a multiprocessor is given a block of sequences for."""
SHARED_BYTES = 48 << 10
"""Shared memory that every block may have."""
_WARPS = 1 if SIMULATED else 4
OVERFLOW = -1
_NO_SSV = 127
"""Sum of costs from which HMMER doesn't try SSV."""
add = SINGLE.functions["add"]
add_maximum_zero, maximum = PACKED.functions["add_maximum_zero"], PACKED.functions["maximum"]


def registers(count):  # pragma: no cover - names for the templates
    """Place holder; see ``core/kernels/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/kernels/unroll.py``."""


# ---- cells: two or four numbers of a register; ``scores`` is what ``Form.scores`` says


@cuda.jit(device=True)
def msv_of_pairs(before, begin, scores, bias):
    return add_maximum_zero(maximum(before, begin), scores, int32(0))


@cuda.jit(device=True)
def ssv_of_pairs(before, begin, scores, bias):
    return add_maximum_zero(before, scores, int32(0))


@cuda.jit(device=True)
def msv_of_bytes(before, begin, scores, bias):
    return subtract4(add(maximum4(before, begin), bias), scores)


@cuda.jit(device=True)
def ssv_of_bytes(before, begin, scores, bias):
    return subtract4(add(before, bias), scores)


@dataclass(frozen=True, eq=False)
class Form:
    """How numbers stand in a register.

    Attributes:
        numbers: how many.
        cell, larger: of the device: a cell of the numbers a diagonal step before, and the larger ones of two registers.
        costs: whether scores are costs and bias, to be taken off with the bias given back.
        lost: the score with which nothing is kept.
        moved, spread, swapped: selectors of ``choose_bytes``: one number on, from the register of the lane before; the
            first number everywhere; and those that bring all numbers of a sequence beside each other. ``moved`` and
            ``swapped`` are by how many sequences share a register.
    """

    name: str
    numbers: int
    cell: Any
    larger: Any
    costs: bool
    lost: int
    moved: dict[int, int]
    spread: int
    swapped: dict[int, tuple[int, ...]]

    def constants(self, sharing: int) -> dict[str, Any]:
        """Constants of the kernel template where so many sequences share a register."""
        size = 4 // sharing  # bytes of each sequence
        bits = [((1 << 8 * size) - 1) << 8 * size * n for n in range(sharing)]
        return {"SHARING": sharing, "MASK": (1 << 32 // self.numbers) - 1, "MOVED": self.moved[sharing],
                "SPREAD": self.spread, "SWAPPED": self.swapped[sharing], "SWAPS": len(self.swapped[sharing]),
                "PART": 8 * size, "OTHERS": tuple(signed_word(~part) for part in bits),
                # Bytes of the sequences up to one from the one register, all others from the other.
                "JOINED": tuple(sum((byte + 4 * (byte >= size * (n + 1))) << 4 * byte for byte in range(4))
                                for n in range(sharing - 1)),
                "CARRIES": sharing > 1 and self.costs}

    def words(self, profile: ByteProfile, sequences: int, rows: int) -> NDArray[np.int32]:
        """i4[H · CODES · L], flat: the numbers of each slot for each residue in each lane of a group; where several
        sequences share a lane, the same numbers in the place of each."""
        codes, length = profile.cost.shape
        width = number_count(self.numbers, sequences)
        cost = profile.cost.astype(np.int16)
        scores = cost if self.costs else np.int16(profile.bias) - cost
        kept = np.full((CODES, width * rows), self.lost, np.int16)
        kept[:codes, :length] = scores
        striped = np.tile(kept.reshape(CODES, width, rows).transpose(2, 0, 1), max(1, sequences // LANES))
        return np.ascontiguousarray(striped).astype(np.int16 if self.numbers == 2 else np.uint8).reshape(-1).view(
            np.int32)


_PAIRS: dict[str, Any] = {"larger": maximum, "costs": False, "lost": -32768, "moved": {1: 0x5432, 2: 0},
                          "spread": 0x1010, "swapped": {1: (0x1032,), 2: ()}}
_BYTES: dict[str, Any] = {"larger": maximum4, "costs": True, "lost": 255, "moved": {1: 0x6543, 2: 0x6040, 4: 0},
                          "spread": 0, "swapped": {1: (0x1032, 0x2301), 2: (0x2301,), 4: ()}}
FORMS = {
    ("msv", 2): Form("msv of pairs", 2, msv_of_pairs, **_PAIRS),
    ("ssv", 2): Form("ssv of pairs", 2, ssv_of_pairs, **_PAIRS),
    ("msv", 4): Form("msv of bytes", 4, msv_of_bytes, **_BYTES),
    ("ssv", 4): Form("ssv of bytes", 4, ssv_of_bytes, **_BYTES),
}
"""By model and numbers in a register."""


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


def quickest_layout(model: str, length: int, numbers: int, most_rows: int = MOST_ROWS,
                    most_sequences: int = MOST_SEQUENCES) -> Layout:
    """``layout_of`` for MSV or SSV ("msv" or "ssv"), with one sequence a warp where that is quicker (section 3.4.2)."""
    one = numbers == 2 and model in ONE_FROM and length >= ONE_FROM[model]
    return layout_of(length, numbers, most_rows, 1 if one else most_sequences)


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
    begin_cost = registers(SHARING)
    begin = registers(SHARING)
    j = registers(SHARING)
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
        any_sequence = False
        for n in unrolled(SHARING):
            place[n] = int64(starts[column + int32(n)])
            length[n] = int32(lengths[column + int32(n)])
            member[n] = int32(firsts[column + int32(n)])
            begin_cost[n] = int32(costs[member[n]] + entry)
            j[n] = first_j(begin_cost[n], bias, end)
            begin[n] = begin_of(j[n], begin_cost[n])
            coming[n] = int32(PADDING)
            if length[n] > int32(0):
                coming[n] = int32(residues[uint64(place[n])])
                any_sequence = True
        height = int32(0)
        if any_of_warp(any_sequence):  # the last block has columns without any sequence
            height = int32(heights[block])
        for row in range(height):
            ends = False
            for n in unrolled(SHARING):
                residue[n] = coming[n]
                ends = ends or residue[n] == int32(END)
                # What comes next is asked for before it is needed.
                place[n] = int64(place[n] + int64(stride))
                coming[n] = int32(PADDING)
                if int32(row) + int32(1) < length[n]:
                    coming[n] = int32(residues[uint64(place[n])])
            before = int32(0)
            if GROUP > 1:
                before = from_lane_before(last)
                if own == int32(0):
                    before = int32(0)
            before = choose_bytes(before, last, int32(MOVED))
            begins = choose_bytes(begin[0], begin[0], int32(SPREAD))
            for n in unrolled(SHARING - 1):
                begins = choose_bytes(begins, choose_bytes(begin[n + 1], begin[n + 1], int32(SPREAD)), int32(JOINED[n]))
            of_slot = uint64(residue[0] * int32(GROUP) + own)
            if SHARING > 1:
                of_slot = uint64(lane)
            if HELD:
                for h in unrolled(ROWS):
                    word = scores[uint64(of_slot + uint64(h * CODES * GROUP))]
                    if SHARING > 1:
                        of_code = word
                        word = from_lane(of_code, residue[0])
                        for n in unrolled(SHARING - 1):
                            word = choose_bytes(word, from_lane(of_code, residue[n + 1]), int32(JOINED[n]))
                    new = cell(before, begins, word, many_bias)
                    best = larger(best, new)
                    before = state[h]
                    state[h] = new
                last = state[ROWS - 1]
            else:
                at = uint64(base)
                for _ in range(rows):
                    new = cell(before, begins, scores[of_slot], many_bias)
                    best = larger(best, new)
                    before = state[at]
                    state[at] = new
                    last = new
                    at = uint64(at + uint64(32))
                    of_slot = uint64(of_slot + uint64(CODES * GROUP))
            reached = int32(0)
            if MULTIHIT or CARRIES or any_of_warp(ends):
                # The largest number of each sequence, wherever its numbers are.
                reached = best
                for bit in unrolled(BITS):
                    reached = larger(reached, from_partner(reached, int32(1 << bit)))
                for k in unrolled(SWAPS):
                    reached = larger(reached, choose_bytes(reached, reached, int32(SWAPPED[k])))
            for n in unrolled(SHARING):
                top = int32(int32(reached >> int32(n * PART)) & int32(MASK))
                if MULTIHIT:
                    j[n] = int32(max(j[n], top - end))
                    begin[n] = begin_of(j[n], begin_cost[n])
                if CARRIES and top + bias >= int32(255):
                    begin[n] = int32(0)
                    for h in unrolled(ROWS):
                        state[h] = int32(state[h] & int32(OTHERS[n]))
                    last = state[ROWS - 1]
                if residue[n] == int32(END):
                    if own == int32(0):
                        if MULTIHIT:
                            results[member[n]] = int32(OVERFLOW) if top + bias >= int32(255) else j[n]
                        else:
                            results[member[n]] = int32(min(top, int32(255) - bias))
                    member[n] = int32(member[n] + int32(1))
                    best = int32(best & int32(OTHERS[n]))
                    if MULTIHIT:
                        begin_cost[n] = int32(costs[member[n]] + entry)
                        j[n] = first_j(begin_cost[n], bias, end)
                        begin[n] = begin_of(j[n], begin_cost[n])


@cuda.jit(device=True)
def first_j(begin_cost, bias, end):
    """Value of J before the first residue, as ``msv_reference.first_j``."""
    j = int32(max(int32(BYTE_BASE) - begin_cost - end, int32(0)))
    if begin_cost + end + bias >= int32(_NO_SSV):
        j = int32(0)
    return j


@cuda.jit(device=True)
def begin_of(j, begin_cost):
    """What entering the model is worth."""
    return int32(max(int32(max(int32(BYTE_BASE), j)) - begin_cost, int32(0)))


@cache
def template_of(model: str, numbers: int, sequences: int, rows: int, held: bool) -> Any:
    """The kernel's function for a form and a layout; ``rows`` count where states are held in registers."""
    form, group, sharing = FORMS[model, numbers], max(1, LANES // sequences), max(1, sequences // LANES)
    return specialise(score_columns, {"cell": form.cell, "larger": form.larger}, form.name, GROUP=group,
                      SEQUENCES=sequences, ROWS=rows, HELD=held, MULTIHIT=model == "msv", WIDTH=warp_blocks.WIDTH,
                      BITS=group.bit_length() - 1, CODES=CODES, END=END, PADDING=PADDING, OVERFLOW=OVERFLOW,
                      **form.constants(sharing))


@cache
def _kernel(model: str, numbers: int, sequences: int, rows: int, held: bool) -> Any:
    return kept_kernel()(template_of(model, numbers, sequences, rows, held))


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
        return columns.nbytes + 6 * len(columns.members) + CODES * SHARED_BYTES

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
        made = _kernel(model, numbers, layout.sequences, layout.rows if layout.held else 0, layout.held)
        where = max(1, min(warps_of_device(), works) // warps), warps * LANES, 0, warps * bytes_of_warp
        with launching:
            launch(made, where, (
                residues, starts, np.int64(self._columns.stride), lengths, rows, firsts, costs, table,
                np.int32(layout.rows), np.int32(profile.bias), np.int32(profile.entry), np.int32(profile.end),
                np.int32(blocks), self._results))

    def scores(self, profile: ByteProfile, model: str, numbers: int, layout: Layout) -> NDArray[np.int16]:
        """What a model says of each sequence, by its number: ``score_columns``.

        Args:
            model: "msv" or "ssv".
            numbers: in a register.
        """
        found = np.empty(len(self._columns.members), np.int16)
        if len(found):
            self.begin(profile, model, numbers, layout, self.sent_model(profile, FORMS[model, numbers], layout))
            found[self._columns.members] = self._results.copy_to_host()
        return found


def takes(profile: ByteProfile) -> bool:
    """Whether kernels take a model: it isn't too long for shared memory, and entering it can't leave eight bits before
    any score has overflowed, which takes a bias that no alphabet here gives."""
    return profile.cost.shape[1] <= longest_model(2) and profile.bias + BYTE_BASE <= 255
