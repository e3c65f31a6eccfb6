"""Lines of mummer, compiled: headers of sections, and the matches behind each."""

import numpy as np
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.simd import load, store
from seqloom.plugins.common.cells_cpu import LANES, digits_of, write_digits

NUMBER = 22
"""Bytes that a number takes at most with the blanks before it."""
_BLANK, _END, _BEGIN = np.frombuffer(b" \n>", np.uint8)
_NONE, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)


@kernel
def _copy(text, place, texts, begin, end):
    """Write bytes begin … end − 1 of ``texts``, which has ``LANES`` more, to ``place``; where the next ones go."""
    behind = place + end - begin
    while place < behind:
        store(text, place, load(texts, begin, LANES))
        place += np.uint64(LANES)
        begin += np.uint64(LANES)
    return behind


@kernel
def _put_number(text, place, number, width, blanks):
    """Write ``blanks`` and a number filled with blanks to ``width``; where the next byte goes."""
    digits = digits_of(number)
    behind = place + blanks + max(width, digits)
    while place + digits < behind:
        text[place] = _BLANK
        place += _ONE
    write_digits(text, place, number, digits)
    return behind


@kernel
def write_lines(names, name_bounds, endings, ending_bounds, label, lengths, sections, numbers, targets, target_bounds,
                target, matched, matched_bounds, width, text):
    """Write the header of every section, a query and a strand, and the lines of its matches; gives the length of all.

    All texts are u1 with ``LANES`` bytes more at the end, their bounds u8[m, 2].

    Args:
        names: of the queries; endings: of the headers of each strand.
        label, lengths: u1, u8[k], what stands before the length of a query in its header; none without lengths.
        sections: i8[n], ascending: query · strands + strand of each match. numbers: u8[3, n].
        targets, target: what stands before the numbers of a line, and i8[n], which; none without.
        matched: what stands behind them; none without bounds.
        width: of a number.
    """
    place, row = _NONE, _NONE
    strands, rows = np.uint64(len(ending_bounds)), np.uint64(len(sections))
    for query in range(np.uint64(len(name_bounds))):
        for strand in range(strands):
            text[place], text[place + _ONE] = _BEGIN, _BLANK
            place = _copy(text, place + _TWO, names, name_bounds[query, 0], name_bounds[query, 1])
            place = _copy(text, place, endings, ending_bounds[strand, 0], ending_bounds[strand, 1])
            if len(lengths):
                for letter in label:
                    text[place] = letter
                    place += _ONE
                place = _put_number(text, place, lengths[query], _NONE, _NONE)
            text[place] = _END
            place += _ONE
            section = np.int64(query * strands + strand)
            while row < rows and sections[row] == section:
                if len(target):
                    which = np.uint64(target[row])
                    place = _copy(text, place, targets, target_bounds[which, 0], target_bounds[which, 1])
                place = _put_number(text, place, numbers[0, row], width, _NONE)
                place = _put_number(text, place, numbers[1, row], width, _TWO)
                place = _put_number(text, place, numbers[2, row], width, _TWO)
                if len(matched_bounds):
                    place = _copy(text, place, matched, matched_bounds[row, 0], matched_bounds[row, 1])
                text[place] = _END
                place += _ONE
                row += _ONE
    return place
