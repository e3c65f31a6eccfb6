"""Lines of output from blocks of queries: their columns side by side, their residues where a field wants them.

A line is an alignment, or a hit without alignments, which has no coordinates. Those of several queries are made
together.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.alphabet import PROTEIN, Alphabet, alphabet
from ...core.errors import OptionError
from ...core.ports import QueryBlock, Report
from ...core.records import MATCH, MISMATCH, Alignments, Column, Ragged, Records
from ..common.cells import Texts
from .aligned import PathCounts, count_path, covered, shown_path, uniquely_covered

_SHOWN = {"identities": MATCH, "mismatches": MISMATCH}
"""What counts say of pairs of residues, and the operation of a path that it is."""
_POSITION = 255
"""Code of a position of a model, which is shown as a residue of its own."""
LINES_AT_ONCE = 5000
"""From so many lines on, the lines of further queries are made apart: what they take should stay in the cache."""
RESIDUES_AT_ONCE = 1 << 22
"""Residues of queries, and of targets as far as they are aligned, up to which the lines of several queries are made
together."""


class Columns:
    """Columns of records that stand one behind the other, put together when they are first asked for.

    Args:
        order: i8[n], of the rows.
    """

    def __init__(self, parts: Sequence[Records], order: np.ndarray | None = None) -> None:
        self._parts = [part for part in parts if len(part)] or parts[:1]
        self._order = order
        self._made: dict[str, Any] = {}

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __contains__(self, name: str) -> bool:
        return any(name in part.data for part in self._parts)

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            column = next(part.schema[name] for part in self._parts if name in part.data)
            arrays: list[Any] = [part.data[name] if name in part.data else column.absent(len(part))
                                 for part in self._parts]
            whole: Any = arrays[0]
            if len(arrays) > 1:
                whole = Ragged.concat(arrays) if column.type == "path" else np.concatenate(arrays)
            if self._order is not None:
                whole = whole.take(self._order) if column.type == "path" else whole[self._order]
            self._made[name] = whole
        return self._made[name]


def by_letters(report: Report) -> bool:
    """Whether a format that shows residues has to count equal ones by them, as BLAST's do: what a hard mask of the
    databases hides counts as unequal otherwise."""
    return (report.run.get("options") or {}).get("db_hard_mask") is not None


class Lines:
    """All lines of some queries: alignments in order of report, and hits without alignments in their places.

    Attributes:
        rows: alignments, one per line; located: bool, whether it is one, and not a hit without alignments.
        hits: of all queries, one behind the other.
        hit, target, query: i8, place of each line's among ``hits``, the targets of the block, and its queries.
        texts: what text cells of the lines name.
    """

    def __init__(self, block: QueryBlock, kind: Alphabet, by_letters: bool = False) -> None:
        """by_letters: count equal residues as letters show them; see ``by_letters``."""
        self.block, self.alphabet, self.texts, self._by_letters = block, kind, Texts(), by_letters
        self.hits = hits = Columns([block.hits])
        children: list[Alignments] = [block.hits.alignments]
        of_hits = np.searchsorted(block.targets.numbers, block.hits.target)
        self.hit = owners(block, of_hits)
        self.located = np.ones(len(self.hit), bool)
        alone = np.ones(len(hits), bool)
        alone[self.hit] = False
        bare = np.flatnonzero(alone)
        order = None
        if len(bare):
            joined = np.concatenate([self.hit, bare])
            order = np.argsort(joined, kind="stable")
            self.located = order < len(self.hit)
            self.hit = joined[order]
            children.append(_without_place(hits, bare, block.hits.alignments.extra))
        self.rows = Columns(children, order)
        self.target = of_hits[self.hit]
        self.query = np.repeat(np.arange(len(block)), np.diff(block.first_hits))[self.hit]

    def __len__(self) -> int:
        return len(self.hit)

    @cached_property
    def ends(self) -> list[int]:
        """Where the lines of each query end."""
        return np.searchsorted(self.query, np.arange(len(self.block)), "right").tolist()

    @cached_property
    def turned(self) -> np.ndarray:
        """bool: query and target lie on different strands."""
        return self.rows["query_frame"] * self.rows["target_frame"] < 0

    @cached_property
    def counts(self) -> list[PathCounts | None]:
        """Counts from the paths; None for lines without one."""
        return [count_path(path) if len(path) else None for path in self.rows["path"]]

    def count(self, column: str, name: str) -> np.ndarray:
        """A column of counts; what it lacks is counted in the path, −1 where there is none."""
        values = self.rows[column]
        if self._by_letters and column in _SHOWN:
            paths: Ragged = self.rows["path"]
            shown = np.where(paths.values & 15 == _SHOWN[column], paths.values >> 4, 0)
            ends = np.concatenate([[0], np.cumsum(shown, dtype=np.int64)])[paths.offsets]
            values = np.where(np.diff(paths.offsets) > 0, np.diff(ends), values)
        if (values == -1).any():
            values = np.array([getattr(c, name) if v < 0 and c else v for v, c in zip(values.tolist(), self.counts)])
        return values

    @cached_property
    def lengths(self) -> np.ndarray:
        return self.count("length", "length")

    @cached_property
    def identities(self) -> np.ndarray:
        return self.count("identities", "identities")

    @cached_property
    def gap_columns(self) -> np.ndarray:
        return self.count("gaps", "gaps")

    @cached_property
    def positives(self) -> np.ndarray:
        values = self.rows["positives"]
        if self.alphabet is PROTEIN:
            return values
        if self._by_letters:
            return self.identities
        return np.where(values < 0, self.identities, values)

    @cached_property
    def query_lengths(self) -> np.ndarray:
        """i8: length of each line's query, or of what was searched of it."""
        return self.block.searched.astype(np.int64, copy=False)[self.query]

    @cached_property
    def _placed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Residues of queries and targets, and the bounds and frames that ``aligned_rows`` takes; None without them."""
        sequences, rows = self.block.sequences, self.rows
        if sequences is None:
            return None
        if self.block.residues is None:
            query, start = np.full(int(rows["query_end"].max(initial=0)), _POSITION, np.uint8), np.zeros(1, np.int64)
        else:
            query, start = self.block.residues.values, self.block.residues.offsets[:-1][self.query]
        base = sequences.offsets[sequences.locate(self.block.targets.numbers)][self.target]
        bounds = np.stack([start + rows["query_start"], start + rows["query_end"],
                           base + rows["target_start"], base + rows["target_end"]], axis=1)
        frames = np.stack([rows["query_frame"], rows["target_frame"]], axis=1)
        bounds = bounds.astype(np.int64)
        return query, sequences.around(bounds[:, 2], bounds[:, 3]), bounds, frames.astype(np.int64)

    @cached_property
    def _residues_of_codes(self) -> np.ndarray:
        """u1[2, 256]: residue of each code, and of its complement."""
        characters = self.alphabet.bytes.copy()
        characters[_POSITION] = ord("x")
        return np.stack([characters,
                         characters[self.alphabet.complement] if self.alphabet.complement_letters else characters])

    @cached_property
    def characters(self) -> tuple[Ragged, Ragged] | None:
        """Residues of query and target with gaps, no columns without a path; None without residues."""
        from .aligned_residues_cpu import aligned_rows

        return self._placed and aligned_rows(*self._placed, self.rows["path"], self._residues_of_codes)

    @property
    def operations(self) -> Ragged | None:
        """BLAST's traceback operations as u1, empty without a path; None without residues."""
        from .aligned_residues_cpu import btops

        if self._placed is None or self.block.residues is None:
            return None
        return btops(*self._placed, self.rows["path"], self._residues_of_codes)

    @cached_property
    def aligned(self) -> list[tuple[bytes, bytes] | None]:
        """Both rows of residues; None without path or residues."""
        if self.characters is None:
            return [None] * len(self)
        upper, lower = self.characters
        above, below, ends = upper.values.tobytes(), lower.values.tobytes(), upper.offsets.tolist()
        return [(above[a:b], below[a:b]) if b > a else None for a, b in pairwise(ends)]

    def covered(self) -> np.ndarray:
        """Residues of the query that the alignments of the line's hit cover together."""
        return covered(self.hit, self.rows["query_start"], self.rows["query_end"])

    def uniquely_covered(self) -> np.ndarray:
        """Residues of the query that the alignments of the line's hit cover with residues of the target of their
        own."""
        rows, values = self.rows, np.zeros(len(self), np.int64)
        columns = [rows[name].tolist() for name in ("query_start", "query_end", "target_start", "target_end")]
        paths = [shown_path(path, frame) for path, frame in zip(rows["path"], rows["query_frame"].tolist())]
        alignments = list(zip(*columns, self.turned.tolist(), paths))
        bounds = np.flatnonzero(np.diff(self.hit, prepend=-1, append=-1)).tolist()
        for start, end in pairwise(bounds):
            values[start:end] = uniquely_covered(alignments[start:end])
        return values

    def on_targets(self, values: Sequence[Any]) -> list[Any]:
        return [values[t] for t in self.target.tolist()]

    @cached_property
    def rank(self) -> np.ndarray:
        """Of the line's hit among those of its query, from 1."""
        return self.hit - self.block.first_hits[self.query] + 1


def lines_of(blocks: Iterable[QueryBlock], kind: Alphabet) -> Iterator[Lines]:
    """Lines of all queries, of many queries at a time if these have few lines."""
    return (Lines(part, kind) for part in parts_of(blocks))


def parts_of(blocks: Iterable[QueryBlock], times: int = 1) -> Iterator[QueryBlock]:
    """Blocks of all queries whose lines are made together: so many times ``LINES_AT_ONCE``, about."""
    for block in blocks:
        count = np.maximum(1, np.maximum(np.diff(block.first_hits), np.diff(block.first_alignments)))
        residues = np.zeros(len(block), np.int64)
        if block.sequences is not None:
            # Of targets only what is aligned: the block holds each of them once, however many lines it has.
            aligned = block.hits.alignments.target_end.astype(np.int64) - block.hits.alignments.target_start
            residues = block.lengths + np.diff(np.cumsum(np.append(0, np.maximum(aligned, 0)))[block.first_alignments])
        counts, residues = np.cumsum(np.append(0, count)), np.cumsum(np.append(0, residues))
        first = 0
        while first < len(block):
            # Queries are taken in until there are enough lines; with residues, as long as these are few enough.
            enough = int(np.searchsorted(counts, counts[first] + times * LINES_AT_ONCE, "left"))
            few = int(np.searchsorted(residues, residues[first] + RESIDUES_AT_ONCE, "right")) - 1
            last = min(max(first + 1, min(enough, few)), len(block))
            yield block.between(first, last)
            first = last


def owners(block: QueryBlock, of_hits: np.ndarray) -> np.ndarray:
    """i8[n]: place of the hit of each alignment; ``of_hits``: place of the target of each hit.

    Alignments stand in the order of the hits, so most often each pair has hits and alignments in the same order.
    """
    hits, children, targets = block.hits, block.hits.alignments, len(block.targets.numbers)
    if np.array_equal(children.query, hits.query) and np.array_equal(children.target, hits.target):
        return np.arange(len(hits))
    keys = hits.query.astype(np.int64) * targets + of_hits
    wanted = children.query.astype(np.int64) * targets + np.searchsorted(block.targets.numbers, children.target)
    order = np.argsort(keys, kind="stable")
    return order[np.searchsorted(keys[order], wanted)]


def _without_place(hits: Columns, bare: np.ndarray, extra: Sequence[Column]) -> Alignments:
    """Rows for hits without alignments: frames of 0 say that there is no place."""
    data: dict[str, Any] = {c.name: c.absent(len(bare)) for c in (*Alignments.columns, *extra)}
    for name in ("query", "target", "score", "bit_score", "evalue"):
        data[name] = hits[name][bare]
    data["query_frame"] = data["target_frame"] = np.zeros(len(bare), np.int8)
    return Alignments(data, extra)


def alphabet_of(run: Any, residues: bool = False) -> Alphabet:
    """Alphabet of the sequences of a run.

    Args:
        residues: residues of targets are to be shown.

    Raises:
        OptionError: they are to be shown, and the targets are models.
    """
    if residues and run.get("target_type") == "model":
        raise OptionError("the format shows residues of targets, and these are models; take fields without residues, "
                          "or --outfmt hmmer")
    kind = run.get("target_type") or "protein"
    return alphabet(run["query_type"] if kind == "model" else kind)
