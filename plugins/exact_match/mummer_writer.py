"""MUMmer's own output: a header per query and strand, then one line per match."""

from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from typing import IO, ClassVar

import numpy as np
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.core.ports import QueryBlock, Report
from seqloom.core.records import Alignments
from seqloom.core.stages import Writer

from .mummer_lines import Sections, text_of
from .suffix_order import SuffixOrder
from .symbols import complement_table

_FLAGS = "cFLs"


class MummerWriter(Writer):
    """The lines of mummer 3, byte for byte; words after the name are its flags c, F, L and s.

    ``c``: positions of reverse matches count on the query as given; ``F``: the reference's name on every line even if
    there is one only; ``L``: lengths of queries in the headers; ``s``: the matched residues after each line.

    Lines stand in MUMmer's order, which is that of the reference suffixes for equal starts among all maximal matches.

    Source: the MUMmer 3 manual, mummer.
    """

    name: ClassVar[str] = "mummer"
    families: ClassVar[tuple[str, ...]] = ("exact-match", "exact-match-protein", "exact-query", "exact-query-protein")

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        flags = {field.lstrip("-") for field in fields}
        for flag in sorted(flags):
            if len(flag) != 1 or flag not in _FLAGS:
                raise UnknownNameError("flag", flag, list(_FLAGS), "of output format 'mummer'")
        options = report.run["options"]
        frames = (1, -1) if options.get("both") else (-1,) if options.get("reverse") else (1,)
        if "c" in flags and -1 not in frames:
            raise OptionError("flag c of output format 'mummer' needs matches of the reverse strand: give -b or -r")
        named = "F" in flags or int(report.run["sequences"]) > 1
        width = _name_width(report) if named else None
        mode = "mum" if options.get("mum") else "maxmatch" if options.get("maxmatch") else "mumreference"
        suffixes = SuffixOrder(report, bool(options.get("acgt_only")))
        for block in report.blocks(residues=mode == "maxmatch" or "s" in flags):
            stream.write(_block_text(block, frames, mode, suffixes, flags, width))


def _name_width(report: Report) -> int:
    """Length of the longest reference name; of those with matches where the run doesn't say."""
    known = report.run.get("longest_name")
    if known is not None:
        return int(known)
    return max((len(name) for block in report.blocks() for name in block.targets.names), default=0)


def _block_text(block: QueryBlock, frames: Sequence[int], mode: str, suffixes: SuffixOrder, flags: set[str],
                width: int | None) -> str:
    """All lines of some queries: of each and each of its strands a header, then the matches."""
    matches = block.hits.alignments
    query = np.searchsorted(block.numbers, matches.query)
    ends = block.lengths[query] - matches.query_end.astype(np.int64)
    starts = np.where(matches.query_frame > 0, matches.query_start, ends)
    # A section is a query and a strand.
    sections = query * len(frames) + np.where(matches.query_frame == frames[0], 0, 1)
    order = _line_order(block, matches, sections, starts, mode, suffixes)
    sections, starts, length, begin, end, strand = (column[order] for column in (
        sections, starts, matches.length, matches.target_start, matches.query_end, matches.query_frame))
    positions = np.where(strand < 0, end, starts + 1) if "c" in flags else starts + 1
    target, targets = None, []
    if width is not None:
        target = np.searchsorted(block.targets.numbers, matches.target[order])
        targets = [f"  {name:<{width}}  " for name in block.targets.names]
    return text_of(Sections(
        names=block.names, endings=[" Reverse" if frame < 0 else "" for frame in frames],
        lengths=block.lengths if "L" in flags else None, sections=sections,
        numbers=np.stack([begin.astype(np.int64) + 1, positions, length]), targets=targets, target=target,
        matched=[*_matched(block, frames, sections, starts, length)] if "s" in flags else None))


def _line_order(block: QueryBlock, matches: Alignments, sections: np.ndarray, starts: np.ndarray, mode: str,
                suffixes: SuffixOrder) -> np.ndarray:
    """Rows of ``matches`` in the order of their lines; ``starts`` are on the strand searched."""
    if mode == "mum":
        return np.lexsort([matches.target_start, matches.target, sections])
    keys = sections * (int(starts.max(initial=0)) + 1) + starts
    order = np.arange(len(keys)) if (keys[1:] >= keys[:-1]).all() else np.argsort(keys, kind="stable")
    if mode == "mumreference":
        return order
    same = (np.diff(starts[order]) == 0) & (np.diff(sections[order]) == 0)
    bounds = np.flatnonzero(np.diff(same.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    bounds[:, 1] += 1
    return _by_suffix(block, matches, order, bounds, suffixes) if len(bounds) else order


def _by_suffix(block: QueryBlock, matches: Alignments, order: np.ndarray, bounds: np.ndarray,
               suffixes: SuffixOrder) -> np.ndarray:
    """``order`` with each run i8[r, 2] of rows with the same start in the order of the references' suffixes.

    All of a run match the query as far as the shortest does, so what is behind tells them apart.
    """
    targets, sizes = block.sequences, bounds[:, 1] - bounds[:, 0]
    assert targets is not None
    firsts = np.concatenate([[0], np.cumsum(sizes)])
    run = np.repeat(np.arange(len(bounds)), sizes)
    places = np.arange(len(run)) - firsts[run] + bounds[run, 0]
    rows = order[places]
    shared = np.minimum.reduceat(matches.length[rows], firsts[:-1])[run].astype(np.int64)
    ranks, unsure = suffixes.sort(targets, matches.target[rows], matches.target_start[rows].astype(np.int64), firsts,
                                  shared)
    order = order.copy()
    order[places] = rows[ranks]

    def compare(one: int, other: int) -> int:
        return suffixes.compare(targets, *((int(matches.target[row]), int(matches.target_start[row]))
                                           for row in (one, other)))

    for first, last in bounds[unsure].tolist():
        order[first:last] = sorted(order[first:last].tolist(), key=cmp_to_key(compare))
    return order


def _matched(block: QueryBlock, frames: Sequence[int], sections: np.ndarray, starts: np.ndarray,
             lengths: np.ndarray) -> Iterator[str]:
    """Lower-case residues of each match, on the strand that was searched, on a line of their own."""
    former, text = -1, ""
    for section, start, length in zip(sections.tolist(), starts.tolist(), lengths.tolist(), strict=True):
        if section != former:
            former, text = section, _strand_text(block, section // len(frames), frames[section % len(frames)])
        yield f"\n{text[start : start + length]}"


def _strand_text(block: QueryBlock, query: int, frame: int) -> str:
    """Lower-case letters of a strand of a query."""
    assert block.residues is not None and block.sequences is not None
    alphabet, residues = block.sequences.alphabet, block.residues[query]
    return alphabet.decode(residues if frame > 0 else complement_table(alphabet)[residues][::-1]).lower()
