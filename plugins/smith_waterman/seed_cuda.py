# ruff: noqa: F821  (names in capitals in the kernel template are constants filled in by ``specialise``)
"""``sw-scores`` on a CUDA device: two targets per register, query rows over the lanes of a warp.

Two targets share one stream of 16-bit letters and every register holds a number of each (``core/packed16.py``).
``LANES`` neighbouring lanes own a query tile: lane g its rows g·ROWS … g·ROWS + ROWS − 1, in registers. Letters enter
at the first lane and move to the next one each step, together with the H and F values that cross the border between
their rows, so that all lanes work on one antidiagonal of blocks (Munekawa, Ino & Hagihara 2010, section 5, with
registers in the place of shared memory). Warps fetch pairs from a common counter, longest first. Queries longer than a
tile are taken tile by tile; what crosses the border between two tiles is kept in device memory.

Scores of 16 bits can overflow. A step adds at most the matrix's maximum, so the best score passes through the last
such stretch below 32,767 before anything wraps: pairs whose best is in it are scored again on the host, exactly.
"""

from functools import cache
from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32, int64, uint32
from seqloom.core.context import Context
from seqloom.core.packed16 import (
    SIMULATED,
    add2,
    add_maximum,
    add_maximum_zero,
    check_device,
    choose_bytes,
    from_lane,
    from_lane_before,
    from_partner,
    maximum2,
    maximum3,
    pair,
)
from seqloom.core.stages import Footprint, Shape
from seqloom.core.unroll import specialise
from seqloom.plugins.smith_waterman.recurrence import packed_chunks
from seqloom.plugins.smith_waterman.seed_reference import SmithWatermanScores, best_scores, strands

cuda: Any = _cuda  # numba's types don't know what code on the device may do
# Filled in by ``specialise``; see ``_kernel``.
ROWS: int
LANES: int
WORDS: int
THREADS: int
LOWEST: int
BORDERED: bool
CONTINUED: bool
OPENING: int
EXTENDING: int

PAD = 31
"""Letter behind the end of a target."""
LETTERS = 32
PAD_SCORE = -100
ROW_COUNTS = (1, 2, 3, *range(4, 32, 2), 33, 36, 40, 44, 48, 52, 56, 60, 63, 66)
"""Query rows per lane that kernels are compiled for: two registers each, few enough shapes to compile them all once."""
WARPS = 8
WORST = -12000
"""Start of gap scores: below all that can matter, and far enough from wrapping."""
LARGEST_COST = 4000
SELECT = tuple(k | (k | 8) << 4 | (4 + k) << 8 | (12 + k) << 12 for k in range(4))
"""Byte k of two words, each widened with its sign to 16 bits."""


def registers(count):  # pragma: no cover - names for the templates
    """Place holder; see ``core/unroll.py``."""


def unrolled(count):  # pragma: no cover
    """Place holder; see ``core/unroll.py``."""


def score_tile(profile, letters, offsets, lengths, pairs, counter, border_h, border_f, scores):
    """Kernel template: best scores of all pairs for the rows of one query tile.

    profile: i8[32 * WORDS * LANES], eight scores a word: word (letter * WORDS + w) * LANES + lane. letters: u2, two
    letters of five bits a step. offsets i8, lengths i4: steps of each pair in ``letters``. border_h, border_f: i4 like
    ``letters``: H and F of the row above the tile, replaced by those of its last row. scores: i4[pairs, 2], kept where
    larger.
    """
    shared = cuda.shared.array(WORDS * LANES * 32, int64)
    thread = int32(cuda.threadIdx.x)
    for word in range(thread, int32(WORDS * LANES * 32), int32(THREADS)):
        shared[word] = profile[word]
    cuda.syncthreads()
    h = registers(ROWS)
    e = registers(ROWS)
    lane = thread & int32(LANES - 1)
    ulane = uint32(lane)
    group = (thread & int32(31)) - lane
    while True:
        base = int32(0)
        if thread & int32(31) == int32(0):
            base = int32(cuda.atomic.add(counter, 0, int32(32 // LANES)))
        base = from_lane(base, int32(0))
        if base >= pairs:
            break
        place = base + (thread & int32(31)) // int32(LANES)
        length = int32(0)
        begin = int64(0)
        if place < pairs:
            length = int32(lengths[place])
            begin = int64(offsets[place])
        steps = length + int32(LANES - 1)
        if LANES < 32:
            steps = max(steps, from_partner(steps, int32(16)))
        if LANES < 16:
            steps = max(steps, from_partner(steps, int32(8)))
        if LANES < 8:
            steps = max(steps, from_partner(steps, int32(4)))
        for k in unrolled(ROWS):
            h[k] = int32(0)
            e[k] = int32(LOWEST)
        best = int32(0)
        before: Any
        last = int32(0)
        f = int32(LOWEST)
        above = int32(0)
        letter = int32(31 | 31 << 8)
        buffer = letter
        buffer_h = int32(0)
        buffer_f = int32(LOWEST)
        for step in range(steps):
            phase = step & int32(LANES - 1)
            if phase == int32(0):
                buffer = int32(31 | 31 << 8)
                buffer_h = int32(0)
                buffer_f = int32(LOWEST)
                if step + lane < length:
                    buffer = int32(letters[begin + step + lane])
                    if BORDERED:
                        buffer_h = int32(border_h[begin + step + lane])
                        buffer_f = int32(border_f[begin + step + lane])
            diagonal = above
            entering = from_lane(buffer, phase + group)
            if BORDERED:
                entering_h = from_lane(buffer_h, phase + group)
                entering_f = from_lane(buffer_f, phase + group)
            letter = from_lane_before(letter)
            above = from_lane_before(last)
            f = from_lane_before(f)
            if lane == int32(0):
                letter = entering
                if BORDERED:
                    above = entering_h
                    f = entering_f
                else:
                    above = int32(0)
                    f = int32(LOWEST)
            first = uint32(letter & int32(255)) * uint32(WORDS * LANES) + ulane
            second = uint32(letter >> int32(8)) * uint32(WORDS * LANES) + ulane
            for k in unrolled(ROWS):
                if k % 8 == 0:
                    word_a = shared[first + uint32((k // 8) * LANES)]
                    word_b = shared[second + uint32((k // 8) * LANES)]
                if k % 4 == 0:
                    four_a = int32(word_a >> int64(k % 8 * 8))
                    four_b = int32(word_b >> int64(k % 8 * 8))
                score = add_maximum_zero(diagonal, choose_bytes(four_a, four_b, int32(SELECT[k % 4])), e[k])
                diagonal = h[k]
                h[k] = maximum2(score, f)
                opened = add2(score, int32(OPENING))
                e[k] = add_maximum(e[k], int32(EXTENDING), opened)
                f = add_maximum(f, int32(EXTENDING), opened)
                if k % 2 == 1:
                    best = maximum3(best, before, score)
                before = score
            if ROWS % 2 == 1:
                best = maximum2(best, before)
            last = h[ROWS - 1]
            if CONTINUED:
                column = step - int32(LANES - 1)
                if lane == int32(LANES - 1) and column >= int32(0) and column < length:
                    border_h[begin + column] = last
                    border_f[begin + column] = f
        distance = int32(LANES // 2)
        while distance > int32(0):
            best = maximum2(best, from_partner(best, distance))
            distance = distance >> int32(1)
        if lane == int32(0) and place < pairs:
            scores[place, 0] = max(scores[place, 0], best & int32(0xFFFF))
            scores[place, 1] = max(scores[place, 1], (best >> int32(16)) & int32(0xFFFF))


@cache
def _kernel(rows: int, lanes: int, gap_open: int, gap_extend: int, bordered: bool, continued: bool) -> Any:
    """The compiled kernel for one shape of tile and one pair of gap costs."""
    special = specialise(
        score_tile, ROWS=rows, LANES=lanes, WORDS=-(-rows // 8), THREADS=32 * WARPS, LOWEST=pair(WORST),
        BORDERED=bordered, CONTINUED=continued, OPENING=pair(-gap_open - gap_extend), EXTENDING=pair(-gap_extend),
        SELECT=SELECT)
    return cuda.jit(special, cache=not SIMULATED)


def tile_shape(length: int) -> tuple[int, int, int]:
    """Rows per lane, lanes and number of tiles for ``length`` query letters: few lanes, since long ones idle less."""
    lanes = next((n for n in (4, 8, 16) if length <= n * ROW_COUNTS[-1]), 32)
    tiles = -(-length // (lanes * ROW_COUNTS[-1]))
    return next(rows for rows in ROW_COUNTS if rows * lanes * tiles >= length), lanes, tiles


def tile_profile(scores: np.ndarray, rows: int, lanes: int) -> np.ndarray:
    """i8 profile of one tile from scores[position, ``LETTERS``] of up to rows × lanes positions."""
    words = -(-rows // 8)
    laid = np.full((LETTERS, words, lanes, 8), PAD_SCORE, np.int8)
    lane, k = np.divmod(np.arange(len(scores)), rows)
    laid[:, k // 8, lane, k % 8] = np.maximum(scores, PAD_SCORE).T
    return laid.reshape(-1).view(np.int64)


def paired(residues: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Targets in pairs of like length, longest first, each pair one stream of two-letter steps.

    Returns:
        order i8[k] (positions in the batch; targets 2p and 2p + 1 of it are pair p), letters u2, offsets i8,
        lengths i4.
    """
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")
    count = -(-len(order) // 2)
    sizes = np.zeros(2 * count, np.int64)
    sizes[: len(order)] = lengths[order]
    steps = sizes[0::2]
    starts = np.concatenate([[0], np.cumsum(steps)])
    letters = np.full((starts[-1], 2), PAD, np.uint8)
    for half in (0, 1):
        own = order[half::2]
        span = lengths[own]
        ends = np.cumsum(span)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - span, span)
        letters[np.repeat(starts[: len(own)], span) + within, half] = residues[np.repeat(offsets[own], span) + within]
    return order, letters.reshape(-1).view(np.uint16), starts[:-1], steps.astype(np.int32)


class SmithWatermanScoresCuda(SmithWatermanScores):
    __doc__ = SmithWatermanScores.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=6 * shape.target_letters + 24 * shape.queries * shape.targets,
                         device=12 * shape.target_letters + 64 * shape.targets)

    def table(self, context: Context, query_places: np.ndarray, target_places: np.ndarray) -> np.ndarray:
        scoring, targets = context.scoring, context.targets
        matrix = scoring.matrix
        if scoring.gap_open + scoring.gap_extend > LARGEST_COST or matrix.max() > 127:
            return super().table(context, query_places, target_places)
        check_device()
        letters, offsets = packed_targets(targets.searched(), targets.offsets, target_places)
        volume = DeviceVolume(letters, offsets)
        scores = np.zeros((len(query_places), len(target_places)), np.int64)
        for n, q in enumerate(query_places):
            for strand in strands(context, int(q)):
                context.cancellation.check()
                context.count("cells", len(strand) * len(letters))
                found = volume.best_scores(strand, scoring)
                for place in np.flatnonzero(found > 32767 - int(matrix.max())).tolist():
                    context.count("scored again in full precision")
                    target = letters[offsets[place] : offsets[place + 1]]
                    (_, packed), = packed_chunks([target], scoring, len(target))
                    found[place] = best_scores(strand, packed)[0]
                np.maximum(scores[n], found, out=scores[n])
        return scores


def packed_targets(residues: np.ndarray, offsets: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """u8 letters and i8[k + 1] offsets of the targets at ``places``; the arrays as they are for all of them."""
    if len(places) == len(offsets) - 1:
        return residues, offsets
    parts = [residues[offsets[t] : offsets[t + 1]] for t in places]
    bounds = np.concatenate([[0], np.cumsum([len(p) for p in parts])]).astype(np.int64)
    return np.concatenate(parts) if parts else np.empty(0, np.uint8), bounds


class DeviceVolume:
    """A volume on the device, packed once for all queries.

    Args:
        letters, offsets: u8 codes and i8[k + 1] bounds of the targets.
    """

    def __init__(self, letters: np.ndarray, offsets: np.ndarray) -> None:
        self._count = len(offsets) - 1
        self._order, streams, starts, steps = paired(letters, offsets)
        self._pairs = len(steps)
        self._streams, self._starts, self._steps = (cuda.to_device(_some(a)) for a in (streams, starts, steps))
        self._border: tuple[Any, Any] | None = None
        self._size = len(streams)

    def best_scores(self, query: np.ndarray, scoring: Any) -> np.ndarray:
        """i8[k]: best local alignment score of u8[m] ``query`` with each target; sure up to 32,767 − matrix maximum."""
        if not len(query) or not self._pairs:
            return np.zeros(self._count, np.int64)
        rows, lanes, tiles = tile_shape(len(query))
        if tiles > 1 and self._border is None:
            self._border = cuda.device_array(self._size, np.int32), cuda.device_array(self._size, np.int32)
        border_h, border_f = self._border or (self._steps, self._steps)
        scores = cuda.to_device(np.zeros((self._pairs, 2), np.int32))
        profile_rows = np.full((len(query), LETTERS), PAD_SCORE, np.int64)
        profile_rows[:, : scoring.matrix.shape[1]] = scoring.matrix[query]
        for tile in range(tiles):
            part = profile_rows[tile * rows * lanes : (tile + 1) * rows * lanes]
            kernel = _kernel(rows, lanes, scoring.gap_open, scoring.gap_extend, tile > 0, tile < tiles - 1)
            kernel[_blocks(), 32 * WARPS](cuda.to_device(tile_profile(part, rows, lanes)), self._streams, self._starts,
                                          self._steps, np.int32(self._pairs), cuda.to_device(np.zeros(1, np.int32)),
                                          border_h, border_f, scores)
        found = scores.copy_to_host().reshape(-1)[: self._count]
        best = np.empty(self._count, np.int64)
        best[self._order] = found
        return best


def _some(array: np.ndarray) -> np.ndarray:
    """The array, or one element where it is empty: the device takes no empty arrays."""
    return array if len(array) else np.zeros(1, array.dtype)


@cache
def _blocks() -> int:
    """Blocks that fill the device; warps fetch their work, so the number changes no result."""
    if SIMULATED:
        return 1
    return int(cuda.get_current_device().MULTIPROCESSOR_COUNT) * 4
