"""Nucleotides of a database as they are stored, at two bits each, and a few stretches of them unpacked."""

from itertools import groupby

import numpy as np

from ...core.engine.threads import run_tasks
from ...core.errors import DamagedError
from ...core.sequences import PackedResidues
from .database import MOST_READERS, SequenceDatabase
from .packed_image import turned
from .packing import RUN, unpack


def packed_stretch(database: SequenceDatabase, first: int, last: int, threads: int = 1) -> PackedResidues | None:
    """Nucleotides ``first`` … ``last`` − 1 of the row of all residues, from the image where there is one or one can be
    made; None where chunks don't have whole bytes.

    Args:
        threads: that may read chunks side by side.

    Raises:
        DamagedError: a chunk is missing or doesn't match its checksum.
    """
    size = database.chunk_residues
    if size % 4:
        return None
    mapped = database.mapped_bases(first, last)
    if mapped is not None:
        return mapped
    data, runs = np.zeros(-(-last // 4) - first // 4 + PackedResidues.SPARE, np.uint8), {}

    def read(chunk: int) -> None:
        residues, own, runs[chunk] = database.chunk(chunk)
        low, high = max(first, chunk * size), min(last, (chunk + 1) * size)
        if high - chunk * size > residues:
            raise DamagedError(f"{database.path}: chunk {chunk} has {residues:,} residues and more are needed; "
                               "run: seqloom db check")
        part = own[(low - chunk * size) // 4 : -(-(high - chunk * size) // 4)]
        place = low // 4 - first // 4
        data[place : place + len(part)] = turned(part)

    chunks = range(first // size, -(-last // size)) if last > first else range(0)
    run_tasks(min(threads, MOST_READERS), read, chunks, "read")
    found = np.concatenate([np.empty(0, RUN), *(runs[chunk] for chunk in chunks)])
    before = np.repeat(np.array(chunks, np.int64) * size - first, [len(runs[chunk]) for chunk in chunks])
    starts = found["start"] + before
    ends = np.minimum(starts + found["length"], last - first)
    starts = np.maximum(starts, 0)
    inside = starts < ends
    return PackedResidues(data, first % 4, starts[inside], (ends - starts)[inside],
                          found["code"][inside].astype(np.int64))


def unpack_stretches(database: SequenceDatabase, spans: np.ndarray, codes: np.ndarray) -> None:
    """Fill stretches of u8 ``codes`` with those of the row of all nucleotides.

    Args:
        spans: i8[s, 3], where each stretch begins in that row and in ``codes``, and its residues, in rising order, so
            that each chunk is read once.

    Raises:
        DamagedError: a chunk is missing or doesn't match its checksum.
    """
    if database.unpacked(spans, codes):
        return
    size = database.chunk_residues
    pieces = []
    for first, at, count in spans.tolist():
        last, out = first + count, codes[at : at + count]
        for chunk in range(first // size, -(-last // size)):
            low, high = max(first, chunk * size), min(last, (chunk + 1) * size)
            pieces.append((chunk, low - chunk * size, out[low - first : high - first]))
    for chunk, own in groupby(pieces, key=lambda piece: piece[0]):
        residues, data, runs = database.chunk(chunk)
        starts = runs["start"].astype(np.int64)
        ends = starts + runs["length"]
        for _, low, out in own:
            high = low + len(out)
            if high > residues:
                raise DamagedError(f"{database.path}: chunk {chunk} has {residues:,} residues and more are needed; "
                                   "run: seqloom db check")
            begin = low - low % 4
            codes = unpack(data[begin // 4 : -(-high // 4)], high - begin, runs[:0])
            out[:] = codes[low - begin :]
            for run in range(int(np.searchsorted(ends, low, "right")), int(np.searchsorted(starts, high, "left"))):
                out[max(0, starts[run] - low) : ends[run] - low] = runs["code"][run]
