"""Lines of mummer: a header for every query and strand, and the matches of each."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.text_rows import TextRows

WIDTH = 8
"""Of a column of numbers; longer ones make it wider."""
LENGTH = "  Len = "
FEW_MATCHES = 300
"""Fewer are written without the kernel, which takes longer to be loaded than these to be written."""


class Sections(NamedTuple):
    """What is printed of some queries, each searched on the same strands.

    Attributes:
        names: of the queries.
        endings: what the headers of each strand end with.
        lengths: i8[k], of queries, to be printed in their headers; None where they aren't.
        sections: i8[n], query · strands + strand of each match, ascending.
        numbers: i8[3, n], of each match.
        targets: texts that stand before the numbers of a line.
        target: i8[n], which of them; None without.
        matched: n texts behind the numbers; None without.
    """

    names: Sequence[str]
    endings: Sequence[str]
    lengths: np.ndarray | None
    sections: np.ndarray
    numbers: np.ndarray
    targets: Sequence[str]
    target: np.ndarray | None
    matched: Sequence[str] | None


def text_of(some: Sections) -> str:
    """All lines."""
    few = len(some.names) * len(some.endings) + len(some.sections) < FEW_MATCHES
    return (plain if few else compiled)(some)


def plain(some: Sections) -> str:
    """All lines, one after the other."""
    lines = []
    bounds = np.searchsorted(some.sections, np.arange(len(some.names) * len(some.endings) + 1)).tolist()
    for section, (first, last) in enumerate(pairwise(bounds)):
        query, strand = divmod(section, len(some.endings))
        length = "" if some.lengths is None else f"{LENGTH}{some.lengths[query]}"
        lines.append(f"> {some.names[query]}{some.endings[strand]}{length}\n")
        for row in range(first, last):
            before = "" if some.target is None else some.targets[some.target[row]]
            one, two, three = some.numbers[:, row].tolist()
            behind = "" if some.matched is None else some.matched[row]
            lines.append(f"{before}{one:{WIDTH}}  {two:{WIDTH}}  {three:{WIDTH}}{behind}\n")
    return "".join(lines)


def compiled(some: Sections) -> str:
    """All lines, by a kernel."""
    from .mummer_lines_cpu import LANES, NUMBER, write_lines  # which only many matches need

    texts = [_packed(texts, LANES) for texts in (some.names, some.endings, some.targets, some.matched or ())]
    nothing = np.empty(0, np.int64)
    lengths, target = (nothing if column is None else column for column in (some.lengths, some.target))
    label, strands, rows = LENGTH.encode(), len(some.endings), len(some.sections)
    names, endings, targets, matched = (bounds[:, 1] - bounds[:, 0] for _, bounds in texts)
    headers = strands * (int(names.sum()) + len(names) * (3 + len(label) + NUMBER)) + len(names) * int(endings.sum())
    most = headers + rows * (3 * NUMBER + 1 + int(targets.max(initial=0))) + int(matched.sum()) + LANES
    text = np.empty(most, np.uint8)
    (names_, bounds), (ends, end_bounds), (before, before_bounds), (behind, behind_bounds) = texts
    size = write_lines(names_, bounds, ends, end_bounds, np.frombuffer(label, np.uint8), lengths.astype(np.uint64),
                       some.sections, some.numbers.astype(np.uint64), before, before_bounds, target, behind,
                       behind_bounds, np.uint64(WIDTH), text)
    return str(text[:size].data, "utf-8", "surrogatepass")


def _packed(texts: Sequence[str], more: int) -> tuple[np.ndarray, np.ndarray]:
    """u1 bytes of all texts as UTF-8, and some more; u8[n, 2] where each begins and ends."""
    rows = TextRows.of(texts).rows
    bounds = np.stack([rows.offsets[:-1], rows.offsets[1:]], axis=1).astype(np.uint64)
    return np.append(rows.values, np.zeros(more, np.uint8)), bounds
