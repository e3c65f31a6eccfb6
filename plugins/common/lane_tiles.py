"""Rows of bytes turned into columns, tile by tile: how residues of many targets come to stand side by side."""

import numpy as np
from seqloom.core.kernels.jit import inline, kernel

TILE = 128
"""Most residues of each lane that are turned at a time: the tile of all lanes stays in the nearest cache, and residues
come from memory several cache lines at a time."""
_ROW = TILE // 8

_U64 = np.uint64


@inline
def _exchanged(upper, lower, shift, mask):
    """Two rows with every later part of the upper one and every earlier part of the lower one exchanged."""
    differ = ((upper >> shift) ^ lower) & mask
    return upper ^ (differ << shift), lower ^ differ


@inline
def lay(tile, place, residues, first, count):
    """Put ``residues[first : first + count]`` into the tile from ``place`` on; plain slices copy several at a time."""
    there, here = tile[place : place + count], residues[first : first + count]
    for k in range(len(there)):
        there[k] = here[k]


@kernel
def turn(tile, width, columns, begin, lanes):
    """Lay out the first ``width`` residues of every lane as columns of ``lanes`` residues.

    Eight by eight bytes are turned at a time, in eight registers: halves of them change places, then quarters, then
    single bytes.

    tile: u8[lanes · TILE], residues of lane l from l · TILE on. columns: u8[…], filled from ``begin`` on. ``width``, at
    most ``TILE``, ``begin`` and ``lanes`` are multiples of eight, as are the addresses where the arrays begin.
    """
    rows, out = tile.view(np.uint64), columns.view(np.uint64)
    step, first = lanes // 8, begin // 8
    for lane in range(step):
        for part in range(width // 8):
            at = lane * TILE + part
            r0, r1, r2, r3 = rows[at], rows[at + _ROW], rows[at + 2 * _ROW], rows[at + 3 * _ROW]
            at += 4 * _ROW
            r4, r5, r6, r7 = rows[at], rows[at + _ROW], rows[at + 2 * _ROW], rows[at + 3 * _ROW]
            r0, r4 = _exchanged(r0, r4, _U64(32), _U64(0x00000000FFFFFFFF))
            r1, r5 = _exchanged(r1, r5, _U64(32), _U64(0x00000000FFFFFFFF))
            r2, r6 = _exchanged(r2, r6, _U64(32), _U64(0x00000000FFFFFFFF))
            r3, r7 = _exchanged(r3, r7, _U64(32), _U64(0x00000000FFFFFFFF))
            r0, r2 = _exchanged(r0, r2, _U64(16), _U64(0x0000FFFF0000FFFF))
            r1, r3 = _exchanged(r1, r3, _U64(16), _U64(0x0000FFFF0000FFFF))
            r4, r6 = _exchanged(r4, r6, _U64(16), _U64(0x0000FFFF0000FFFF))
            r5, r7 = _exchanged(r5, r7, _U64(16), _U64(0x0000FFFF0000FFFF))
            r0, r1 = _exchanged(r0, r1, _U64(8), _U64(0x00FF00FF00FF00FF))
            r2, r3 = _exchanged(r2, r3, _U64(8), _U64(0x00FF00FF00FF00FF))
            r4, r5 = _exchanged(r4, r5, _U64(8), _U64(0x00FF00FF00FF00FF))
            r6, r7 = _exchanged(r6, r7, _U64(8), _U64(0x00FF00FF00FF00FF))
            at = first + 8 * part * step + lane
            out[at], out[at + step], out[at + 2 * step], out[at + 3 * step] = r0, r1, r2, r3
            at += 4 * step
            out[at], out[at + step], out[at + 2 * step], out[at + 3 * step] = r4, r5, r6, r7
