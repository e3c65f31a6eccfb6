"""Forward and Backward in f32 probability space, in the exact order of HMMER's four-lane vector code.

f32 sums depend on their order, and the sampled domains and printed digits depend on the last bit, so the order is part
of the method: every row keeps four partial sums, match states come before delete states, and paths through delete
states are extended lane by lane (Farrar's striping; Eddy 2011). Rows are rescaled when they grow large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.subnormals import flushed

from .exact_math import F32, Array32, log, running_sum
from .profile import LANES, FloatProfile, LengthModel

if TYPE_CHECKING:
    from numpy.typing import NDArray

_RESCALE_ABOVE = F32(1.0e4)
_OWN_SCALES_ABOVE = F32(1.0e16)
_ZERO = F32(0.0)
_ONE = F32(1.0)
_NO_LANE_CHANGES_FROM = 100
"""Models from this length on stop extending deletions when a pass changes nothing; shorter ones do all passes."""


@dataclass
class DpMatrix:
    """One dynamic-programming matrix over the L residues of a target; row 0 stands before the first residue.

    Attributes:
        match, insert, delete: f32[L + 1, Q, 4], striped; f32[2, Q, 4] where only two rows are kept at a time.
        n, b, e, j, c: f32[L + 1], the states around the model.
        scale: f32[L + 1], by what each row was divided.
        log_scale: f32, sum of the logs of ``scale``.
        own_scales: Backward only: whether it had to leave Forward's scales.
    """

    match: Array32
    insert: Array32
    delete: Array32
    n: Array32
    b: Array32
    e: Array32
    j: Array32
    c: Array32
    scale: Array32
    log_scale: np.float32 = _ZERO
    own_scales: bool = False

    @classmethod
    def empty(cls, residues: int, slots: int) -> DpMatrix:
        """A matrix of zeros that keeps all rows."""
        return cls._of_rows(residues, slots, residues + 1)

    @classmethod
    def two_rows(cls, residues: int, slots: int) -> DpMatrix:
        """A matrix of zeros that keeps the states around the model for all rows, and those inside for two."""
        return cls._of_rows(residues, slots, 2)

    @classmethod
    def _of_rows(cls, residues: int, slots: int, kept: int) -> DpMatrix:
        match, insert, delete = np.zeros((3, kept, slots, LANES), F32)
        n, b, e, j, c = np.zeros((5, residues + 1), F32)
        return cls(match, insert, delete, n, b, e, j, c, scale=np.ones(residues + 1, F32))

    def cells(self, i: int) -> tuple[Array32, Array32, Array32]:
        """Match, insert and delete states of row i, f32[Q, 4] views."""
        place = i % len(self.match)
        return self.match[place], self.insert[place], self.delete[place]


@flushed()
def forward(profile: FloatProfile, lengths: LengthModel, target: NDArray[np.uint8]) -> tuple[np.float32, DpMatrix]:
    """Forward score in nats, f32, and the whole matrix.

    Args:
        profile: odds of the query.
        lengths: length model of the whole target, multihit or unihit.
        target: u8 residue codes, the whole target or a part of it, not empty.

    Raises:
        FloatingPointError: the score is not a finite number (f32 over- or underflow).
    """
    matrix = DpMatrix.empty(len(target), profile.slots)
    return _fill_forward(matrix, profile, lengths, target), matrix


@flushed()
def forward_parser(
    profile: FloatProfile, lengths: LengthModel, target: NDArray[np.uint8]
) -> tuple[np.float32, DpMatrix]:
    """``forward`` with a matrix that keeps only the states around the model, for long targets."""
    matrix = DpMatrix.two_rows(len(target), profile.slots)
    return _fill_forward(matrix, profile, lengths, target), matrix


def _fill_forward(
    matrix: DpMatrix, profile: FloatProfile, lengths: LengthModel, target: NDArray[np.uint8]
) -> np.float32:
    move, loop = lengths.move, lengths.loop
    matrix.n[0], matrix.b[0] = _ONE, move
    with np.errstate(all="ignore"):
        for i, code in enumerate(target, start=1):
            above = i - 1
            match, insert, delete = matrix.cells(i)
            match_above, insert_above, delete_above = matrix.cells(above)
            match[:] = matrix.b[above] * profile.entry
            match += _from_left(match_above) * profile.into_mm
            match += _from_left(insert_above) * profile.into_im
            match += _from_left(delete_above) * profile.into_dm
            match *= profile.match[code]
            insert[:] = match_above * profile.mi + insert_above * profile.ii
            _fill_delete(profile, match, delete)
            end = sum_over_lanes(running_sum(np.concatenate([match, delete]))[-1])
            n = matrix.n[above] * loop
            c = matrix.c[above] * loop + end * lengths.end_move
            j = matrix.j[above] * loop + end * lengths.end_loop
            b = j * move + n * move
            matrix.n[i], matrix.b[i], matrix.e[i], matrix.j[i], matrix.c[i] = n, b, end, j, c
            if end > _RESCALE_ABOVE:
                _rescale(matrix, i, end)
        final = matrix.c[-1] * move
    if not (np.isfinite(final) and final > 0.0):
        raise FloatingPointError("the Forward score leaves the range of single precision")
    return F32(float(matrix.log_scale) + log(final))


def _fill_delete(profile: FloatProfile, match: Array32, delete: Array32) -> None:
    """Delete states of a row from its match states, first within each lane, then from lane to lane."""
    opened = match * profile.md
    carry = _to_next_lane(opened[-1])
    delete[0] = carry
    carry = carry * profile.dd[0]
    for cell, from_match, dd in zip(delete[1:], opened[:-1], profile.dd[1:], strict=True):
        np.add(carry, from_match, out=cell)
        carry = cell * dd
    for _ in range(LANES - 1):
        carries = np.multiply.accumulate(np.concatenate([_to_next_lane(carry)[None], profile.dd]))
        extended = delete + carries[:-1]
        if profile.length >= _NO_LANE_CHANGES_FROM and not (extended > delete).any():
            break
        delete[:] = extended
        carry = carries[-1]


@flushed()
def backward(profile: FloatProfile, lengths: LengthModel, target: NDArray[np.uint8], scale: Array32) -> DpMatrix:
    """Whole Backward matrix of a target.

    Args:
        profile, lengths, target: as for ``forward``.
        scale: f32[L + 1], scales of the Forward matrix, used until they don't suffice.
    """
    matrix = DpMatrix.empty(len(target), profile.slots)
    _fill_backward(matrix, profile, lengths, target, scale)
    return matrix


@flushed()
def backward_parser(profile: FloatProfile, lengths: LengthModel, target: NDArray[np.uint8], scale: Array32) -> DpMatrix:
    """``backward`` with a matrix that keeps only the states around the model, for long targets."""
    matrix = DpMatrix.two_rows(len(target), profile.slots)
    _fill_backward(matrix, profile, lengths, target, scale)
    return matrix


def _fill_backward(
    matrix: DpMatrix, profile: FloatProfile, lengths: LengthModel, target: NDArray[np.uint8], scale: Array32
) -> None:
    residues = len(target)
    move, loop = lengths.move, lengths.loop
    matrix.c[residues] = move
    matrix.e[residues] = move * lengths.end_move
    match, insert, delete = matrix.cells(residues)
    match[:] = delete[:] = matrix.e[residues]
    with np.errstate(all="ignore"):
        _extend_delete_backward(profile, delete, _ZERO)
        match += _from_right(delete) * profile.md
        _rescale(matrix, residues, scale[residues])
        for i in range(residues - 1, 0, -1):
            below = i + 1
            match, insert, delete = matrix.cells(i)
            match_below, insert_below, _ = matrix.cells(below)
            emitted = match_below * profile.match[target[i]]
            b = sum_over_lanes(running_sum((emitted * profile.entry)[::-1])[-1])
            next_match = _from_right(emitted)
            delete[:] = next_match * _from_right(profile.into_dm)
            match[:] = insert_below * profile.mi + next_match * _from_right(profile.into_mm)
            insert[:] = insert_below * profile.ii + next_match * _from_right(profile.into_im)
            c = matrix.c[below] * loop
            j = b * move + matrix.j[below] * loop
            n = b * move + matrix.n[below] * loop
            e = c * lengths.end_move + j * lengths.end_loop
            _extend_delete_backward(profile, delete, e)
            match += e
            match += _from_right(delete) * profile.md
            matrix.n[i], matrix.b[i], matrix.e[i], matrix.j[i], matrix.c[i] = n, b, e, j, c
            matrix.own_scales |= bool(b > _OWN_SCALES_ABOVE)
            own = b if b > _RESCALE_ABOVE else _ONE
            _rescale(matrix, i, own if matrix.own_scales else scale[i])
        first_match = matrix.cells(1)[0]
        matrix.b[0] = sum_over_lanes(running_sum(first_match * profile.match[target[0]] * profile.entry)[-1])
        matrix.n[0] = matrix.b[0] * move + matrix.n[1] * loop


def _extend_delete_backward(profile: FloatProfile, delete: Array32, end: np.float32) -> None:
    """Add to the delete states of a row their way to E and through later delete states."""
    following = _to_previous_lane(delete[0] + end)
    for q in range(profile.slots - 1, -1, -1):
        step = following * profile.dd[q]
        following = delete[q] + (step + end)
        delete[q] = following
    for _ in range(LANES - 1):
        steps = np.multiply.accumulate(np.concatenate([_to_previous_lane(step)[None], profile.dd[::-1]]))[1:]
        delete += steps[::-1]
        step = steps[-1]


def _rescale(matrix: DpMatrix, i: int, scale: np.float32) -> None:
    """Divide row i by ``scale`` if that is above 1, and keep it."""
    matrix.scale[i] = scale
    if scale > _ONE:
        for special in (matrix.n, matrix.b, matrix.e, matrix.j, matrix.c):
            special[i] /= scale
        for cells in matrix.cells(i):
            np.multiply(cells, _ONE / scale, out=cells)
        matrix.log_scale = F32(float(matrix.log_scale) + log(scale))


def sum_over_lanes(lanes: Array32) -> Any:
    """f32[...]: sums of f32[..., 4] over the lanes in HMMER's order."""
    return (lanes[..., 0] + lanes[..., 1]) + (lanes[..., 2] + lanes[..., 3])


def _to_next_lane(values: Array32) -> Array32:
    """Each lane's value in the next lane, 0 in the first."""
    moved = np.zeros(LANES, F32)
    moved[1:] = values[:-1]
    return moved


def _to_previous_lane(values: Array32) -> Array32:
    """Each lane's value in the lane before, 0 in the last."""
    moved = np.zeros(LANES, F32)
    moved[:-1] = values[1:]
    return moved


def _from_left(row: Array32) -> Array32:
    """f32[Q, 4]: at node k the value of node k − 1."""
    moved = np.empty_like(row)
    moved[1:] = row[:-1]
    moved[0] = _to_next_lane(row[-1])
    return moved


def _from_right(row: Array32) -> Array32:
    """f32[Q, 4]: at node k the value of node k + 1."""
    moved = np.empty_like(row)
    moved[:-1] = row[1:]
    moved[-1] = _to_previous_lane(row[0])
    return moved
