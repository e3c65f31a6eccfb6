"""Whether the values of a stored index make sense, whatever its checksums say: kernels follow them without looking.

One pass over each array. That its residues are those of the targets isn't looked at: an index of other residues gives
other matches, but none outside of the targets. Every function gives what is wrong, for people; nothing if all is well.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch

from .fm_index import CODE, ODD, SMALLER, block_shape, row_type, symbol_codes
from .fm_search_cpu import count_bits
from .minimizers import table_bits, words_of
from .suffix_array import suffix_type
from .symbols import end, rejected, separator

_U64 = np.uint64
_EVEN_BITS = _U64(0x5555555555555555)
_FLAG = _U64(1 << 63)
_BLOCK = 1 << 20  # rows that are compared together


def wrong_fm_index(batch: SequenceBatch, index: Index, parameters: Mapping[str, Any]) -> str:
    """Of ``fm_index.Tables``: every row and place that look-ups come to lies inside, and they all end."""
    residues, rows = batch.alphabet, batch.total_residues + len(batch)
    codes, kind = symbol_codes(residues), row_type(rows)
    marked = parameters["sample"] > 1
    what = unlike(index, parameters, {
        "symbols": (np.dtype(np.int64), (len(codes), 3)),
        "blocks": (np.dtype(np.uint64), block_shape(rows, residues, parameters["bucket"])),
        "odd_rows": (kind, (-1,)), "samples": (kind, (-(-rows // parameters["sample"]),)),
        "marks": (np.dtype(np.uint64), (rows // 64 + 1 if marked else 0, 2))})
    if what:
        return what
    symbols, coded = index["symbols"], codes >= 0
    packed, counts, odd = bool(coded.any()), np.diff(symbols[:, SMALLER]), np.diff(symbols[:, ODD])
    if not (np.array_equal(symbols[:, CODE], codes) and symbols[0, SMALLER] == symbols[0, ODD] == 0
            and symbols[-1, SMALLER] == rows and symbols[-1, ODD] == len(index["odd_rows"]) and (counts >= 0).all()
            and np.array_equal(odd, np.where(coded[:-1] | (not packed), 0, counts))):
        return "its counts of symbols make no sense"
    shift = _U64(parameters["bucket"].bit_length() - 1)
    having = np.argsort(codes, kind="stable")[-4:] if packed else np.arange(len(codes) - 1)
    running = symbols[having, SMALLER].astype(np.uint64)
    if packed:
        begins, seen = symbols[:, ODD].astype(np.uint64), np.empty(max(1, parameters["bucket"] // 64), np.uint64)
        sound = _sound_bases(index["blocks"], shift, _U64(rows), index["odd_rows"], begins, begins[:-1].copy(), seen,
                             running)
    else:
        sound = _sound_bytes(index["blocks"], shift, _U64(rows), running)
    if not sound or not np.array_equal(running, symbols[having + 1, SMALLER].astype(np.uint64)):
        return "its counts of residues make no sense"
    if not sound_samples(index["samples"], index["marks"], _U64(rows), _U64(parameters["sample"])):
        return "its places make no sense"
    return ""


def wrong_minimizers(batch: SequenceBatch, index: Index, parameters: Mapping[str, Any]) -> str:
    """Of ``minimizer-index``: every word lies in the text, which ends no match elsewhere than the targets do."""
    text = batch.total_residues + len(batch) + 1
    kind, count = row_type(text), len(index.arrays.get("place", ()))
    bits, fine = table_bits(count)
    what = unlike(index, parameters, {
        "text": (np.dtype(np.uint8), (text,)), "starts": (np.dtype(np.int64), (len(batch),)),
        "head": (kind, ((1 << bits) + 1,)), "place": (kind, (-1,)), "sieve": (np.dtype(np.uint8), (1 << (fine - 3),)),
    }) or _wrong_text(batch, index["text"][1:], index["starts"] - 1)
    if what:
        return what
    if index["text"][0] != separator(batch.alphabet):
        return "its text makes no sense"
    head, places = index["head"], index["place"]
    last = text - words_of(batch.alphabet, parameters["length"]).residues
    if (head[0] or head[-1] != count or (head[1:] < head[:-1]).any() or int(places.max(initial=0)) > max(0, last)
            or (not count and index["sieve"].any())):
        return "its places make no sense"
    return ""


def wrong_suffix_array(batch: SequenceBatch, index: Index, parameters: Mapping[str, Any]) -> str:
    """Of ``suffix-array``: all of it is what its text gives."""
    rows, symbols = batch.total_residues + len(batch), end(batch.alphabet) + 1
    kind = suffix_type(rows)
    what = unlike(index, parameters, {
        "text": (np.dtype(np.uint8), (rows,)), "starts": (np.dtype(np.int64), (len(batch),)),
        "suffixes": (kind, (rows,)), "bwt": (np.dtype(np.uint8), (rows,)),
        "smaller": (np.dtype(np.int64), (symbols + 1,)),
        "counts": (np.dtype(np.int64), (rows // parameters["bucket"] + 1, symbols)),
    }) or _wrong_text(batch, index["text"], index["starts"])
    if what:
        return what
    text, suffixes, bwt = index["text"], index["suffixes"], index["bwt"]
    if suffixes.min() < 0 or suffixes.max() >= rows:
        return "its suffixes make no sense"
    rank = np.full(rows + 1, -1, kind)
    rank[suffixes] = np.arange(rows, dtype=kind)
    ordered = rank[:rows].min() >= 0
    for first in range(0, rows if ordered else 0, _BLOCK):
        some = suffixes[first : first + _BLOCK + 1]  # one more: the next block's first
        here, behind = text[some], rank[some + 1]
        ordered &= bool(((here[:-1] < here[1:]) | ((here[:-1] == here[1:]) & (behind[:-1] < behind[1:]))).all()
                        and (bwt[first : first + _BLOCK] == text[some[:_BLOCK] - 1]).all())
    if not ordered:
        return "its suffixes make no sense"
    running = np.zeros(symbols, np.int64)
    if not (_sound_counts(bwt, index["counts"], parameters["bucket"], running)
            and np.array_equal(np.cumsum(running), index["smaller"][1:]) and index["smaller"][0] == 0):
        return "its counts of symbols make no sense"
    return ""


def unlike(index: Index, parameters: Mapping[str, Any], layout: Mapping[str, Any]) -> str:
    """How parameters, arrays and their types differ from what they should be; empty if they don't."""
    if dict(index.parameters) != dict(parameters):
        return "it was made in another way than it says"
    return index.unlike(layout)


def _wrong_text(batch: SequenceBatch, text: np.ndarray, starts: np.ndarray) -> str:
    """Of u1[n] ``text``: it ends where the targets do, and nowhere else."""
    ends = batch.offsets[1:] + np.arange(len(batch))
    stops = text[ends]
    wanted = np.full(len(batch), separator(batch.alphabet), np.uint8)
    wanted[-1:] = end(batch.alphabet)
    inside = np.count_nonzero(text <= rejected(batch.alphabet)) == batch.total_residues
    begins = np.array_equal(starts, batch.offsets[:-1] + np.arange(len(batch)))
    return "" if inside and begins and np.array_equal(stops, wanted) else "its text makes no sense"


@kernel
def _sound_bases(blocks, shift, rows, odd_rows, odd, cursor, seen, running):
    """Whether counts and transform of two bits a residue agree, block by block, and rows without a code are in it as A.

    odd: u8[s + 1], where the rows of each symbol begin in ``odd_rows``; they end where those of the next do.
    cursor: the same but for the last, working space. seen: u8[rows of a block / 64], working space.
    running: u8[4], counts before the first block; ends as those of the whole.
    """
    for block in range(_U64(len(blocks))):
        first = block << shift
        for code in range(4):
            count = blocks[block, code] & ~_FLAG if code == 0 else blocks[block, code]
            if count != running[code]:
                return False
        flagged = False
        if len(odd_rows):
            for n in range(len(seen)):
                seen[n] = _U64(0)
            for symbol in range(len(cursor)):
                while cursor[symbol] < odd[symbol + 1] and _U64(odd_rows[cursor[symbol]]) < first + (_U64(1) << shift):
                    row = _U64(odd_rows[cursor[symbol]])
                    if row < first or row >= rows:
                        return False
                    inside = row - first
                    bit = _U64(1) << (inside & _U64(63))
                    word = blocks[block, _U64(4) + (inside >> _U64(5))]
                    if seen[inside >> _U64(6)] & bit or (word >> (_U64(2) * (inside & _U64(31)))) & _U64(3):
                        return False
                    seen[inside >> _U64(6)] |= bit
                    cursor[symbol] += _U64(1)
                    running[0] -= _U64(1)
                    flagged = True
        if flagged != (blocks[block, 0] & _FLAG != _U64(0)):
            return False
        for place in range(_U64(4), _U64(blocks.shape[1])):
            begin = first + (place - _U64(4)) * _U64(32)
            kept = ~_U64(0)
            if begin >= rows:
                kept = _U64(0)
            elif rows - begin < _U64(32):
                kept = (_U64(1) << (_U64(2) * (rows - begin))) - _U64(1)
            word = blocks[block, place]
            for code in range(4):
                differ = word ^ (_U64(code) * _EVEN_BITS)
                running[code] += count_bits(~(differ | (differ >> _U64(1))) & _EVEN_BITS & kept)
    for symbol in range(len(cursor)):  # noqa: SIM110 (a kernel has no generators)
        if cursor[symbol] != odd[symbol + 1]:
            return False
    return True


@kernel
def _sound_bytes(blocks, shift, rows, running):
    """The same for a byte a residue; u8[s] ``running``."""
    symbols = _U64(len(running))
    for block in range(_U64(len(blocks))):
        for symbol in range(symbols):
            if blocks[block, symbol] != running[symbol]:
                return False
        first = block << shift
        for row in range(first, min(rows, first + (_U64(1) << shift))):
            inside = row - first
            symbol = (blocks[block, symbols + (inside >> _U64(3))] >> (_U64(8) * (inside & _U64(7)))) & _U64(255)
            if symbol >= symbols:
                return False
            running[symbol] += _U64(1)
    return True


@kernel
def sound_samples(samples, marks, rows, sample):
    """Whether as many rows are marked as there are samples, which are the places that they should be, in any order."""
    found = _U64(len(samples))
    if len(marks):
        found = _U64(0)
        for n in range(_U64(len(marks))):
            left = rows - n * _U64(64)
            if marks[n, 0] != found or (left < _U64(64) and marks[n, 1] >> left):
                return False
            found += count_bits(marks[n, 1])
    total = _U64(0)
    for place in samples:
        if _U64(place) >= rows or _U64(place) % sample:
            return False
        total += _U64(place) // sample
    return found == _U64(len(samples)) and total == found * (found - _U64(1)) // _U64(2)


@kernel
def _sound_counts(bwt, counts, bucket, running):
    """Whether u1[n] ``bwt`` has the counts that are said; i8[s] ``running`` ends as those of the whole."""
    for row in range(len(bwt) + 1):
        if row % bucket == 0:
            for symbol in range(len(running)):
                if counts[row // bucket, symbol] != running[symbol]:
                    return False
        if row < len(bwt):
            running[bwt[row]] += 1
    return True


__all__ = ["sound_samples", "unlike", "wrong_fm_index", "wrong_minimizers", "wrong_suffix_array"]
