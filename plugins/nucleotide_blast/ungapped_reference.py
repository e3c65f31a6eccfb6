"""Ungapped extension of word hits, one hit at a time along each diagonal.

The extension is first done approximately, four bases at a time as a two-bit database is stored, and again exactly when
the approximate score is promising. Words shorter than eleven bases are extended exactly at once. A hit inside the
part of its diagonal that an earlier hit has explored is passed over.

With a window the first hit on a diagonal is only remembered, and a second one near it is extended. A hit of contiguous
words that goes on for another word counts as two, and with a range of diagonals the first hit may lie on one nearby.

BLAST keeps its diagonals in a hash for long queries, where one can lose its state to another; then a region may be
extended twice, which the gapped stage undoes. Here every diagonal has a state of its own. BLAST also lays all queries
of a batch end to end, and its groups of four reach over the boundary: a short hit at the very start of a query can be
reported or not according to the query before it. Here every query is searched as if it were alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.index import Index
from seqloom.core.records import Column, Records, Seeds
from seqloom.core.stages import ExtendStage, Footprint, Shape
from seqloom.plugins.nucleotide_blast.index_reference import BASES, WIDEST_SMALL, WORDS
from seqloom.plugins.nucleotide_blast.pieces import CHUNK, GROUP, TargetPieces, pieces_of
from seqloom.plugins.nucleotide_blast.scoring import NucleotideScoring, QueryScoring
from seqloom.plugins.nucleotide_blast.seed_reference import CHUNK_COLUMN
from seqloom.plugins.nucleotide_blast.strands import SENTINEL, both_strands, mirrored, strand_start

SHORTEST_APPROXIMATE_WORD = 11

WORD_COLUMNS = (
    Column("word_query", "i4", "boundary before the first base of the word hit, in the direction of query_frame"),
    Column("word_target", "i4", "start of the word hit in the target"),
)


@dataclass(frozen=True)
class Segment:
    """An ungapped segment in strand coordinates: starts, length, raw score."""

    query: int
    target: int
    length: int
    score: int


class Extender:
    """Extends word hits between both strands of one query and one chunk of a target.

    strands: u8, ``both_strands`` of the query. bases: u8 (0..3) of the chunk. Query positions count from the start of
    ``strands``, which has a sentinel between the strands.
    """

    def __init__(self, strands: np.ndarray, bases: np.ndarray, scoring: NucleotideScoring) -> None:
        assert scoring.matrix is not None
        self.matrix = scoring.matrix.tolist()
        self.query = strands.tobytes() + bytes([SENTINEL])
        self.target = bases.tobytes()
        self.query_groups = packed(strands).tobytes()
        self.target_groups = packed(bases)[::GROUP].tobytes()
        self.group_scores = group_scores(scoring.reward, scoring.penalty)

    def extend(self, hit: WordHit, word_end: int, x_drop: int, reduced: int) -> Segment:
        """Segment around a word hit, exact if it is short or its approximate score reaches ``reduced``.

        word_end: see ``approximate``.
        """
        if hit.length >= SHORTEST_APPROXIMATE_WORD:
            segment = self.approximate(hit.query, hit.target, word_end, x_drop)
            if segment.score < reduced:
                return segment
        return self.exact(hit.query, hit.target, x_drop)

    def approximate(self, query: int, target: int, word_end: int, x_drop: int) -> Segment:
        """Segment of whole groups around a word hit; groups begin at multiples of four in the target.

        word_end: end in the target of the word, or of what it goes on to; the segment reaches at least as far.
        """
        shift = -target % GROUP
        query, target = query + shift, target + shift
        score, start = 0, query
        gain = 0
        for group in range(1, min(query, target) // GROUP + 1):
            gain += self._group_score(query - GROUP * group, target - GROUP * group)
            if gain > 0:
                score, start, gain = score + gain, query - GROUP * group, 0
            if gain < -x_drop:
                break
        end = query + 1
        gain = 0
        for group in range(min(len(self.query) - 1 - query, len(self.target) - target) // GROUP):
            gain += self._group_score(query + GROUP * group, target + GROUP * group)
            if gain > 0:
                score, end, gain = score + gain, query + GROUP * (group + 1), 0
            if gain < -x_drop:
                break
        target_start = target - (query - start)
        return Segment(start, target_start, max(word_end - target_start, end - start), score)

    def _group_score(self, query: int, target: int) -> int:
        return self.group_scores[self.query_groups[query] ^ self.target_groups[target // GROUP]]

    def exact(self, query: int, target: int, x_drop: int) -> Segment:
        """Best segment around a word hit, base by base: to the left of its start, then from its start to the right."""
        score, start = 0, query
        gain = 0
        for back in range(1, min(query, target) + 1):
            gain += self.matrix[self.query[query - back]][self.target[target - back]]
            if gain > 0:
                score, start, gain = score + gain, query - back, 0
            elif gain < -x_drop:
                break
        end, floor = query, -x_drop
        gain = 0
        for ahead in range(min(len(self.query) - query, len(self.target) - target)):
            gain += self.matrix[self.query[query + ahead]][self.target[target + ahead]]
            if gain > 0:
                score, end, gain = score + gain, query + ahead + 1, 0
                floor = max(-score, -x_drop)
            elif gain < floor:
                break
        return Segment(start, target - (query - start), end - start, score)


def packed(codes: np.ndarray) -> np.ndarray:
    """u8[n]: two bits each of the four u8 bases from every position on; codes above 3 spill over their neighbours.

    The last three positions, where no four bases are left, are filled up with A.
    """
    codes = np.pad(codes, (0, GROUP - 1))
    bits = np.zeros(len(codes) - GROUP + 1, np.uint8)
    for place in range(GROUP):
        bits |= codes[place : place + len(bits)] << np.uint8(2 * (GROUP - 1 - place))
    return bits


def group_scores(reward: int, penalty: int) -> list[int]:
    """Score of four pairs of bases by the exclusive or of their bits."""
    return [sum(penalty if bits >> shift & 3 else reward for shift in (0, 2, 4, 6)) for bits in range(256)]


class UngappedExtension(ExtendStage):
    """Ungapped extension of word hits; keeps the segments that are worth a gapped extension.

    A segment comes with the word hit that it grew from, where a gapped extension may start.
    """

    name = "nucleotide-ungapped"
    uses = ("window_size", "off_diagonal_range")
    takes = (Seeds,)
    gives = Seeds
    reads = (BASES,)
    columns = (CHUNK_COLUMN, *WORD_COLUMNS)
    scoring = NucleotideScoring
    takes_order = ("query", "target", "chunk", "query_frame", "diagonal", "target_pos")
    gives_order = ("query", "target", "chunk")

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=5 * min(CHUNK, shape.longest_target))

    def run(self, context: Context, records: Records) -> Seeds:
        assert isinstance(records, Seeds)
        rows: list[tuple[int, ...]] = []
        bases, offsets, pieces = context.index(BASES)["bases"], context.targets.offsets, pieces_of(context)
        names = ("query", "target", "chunk", "query_frame", "query_pos", "target_pos", "length", "shift")
        seeds = zip(*(records.data[name].tolist() for name in names), strict=True)
        for (query, target, chunk), group in groupby(seeds, key=lambda seed: seed[:3]):
            place, at = int(context.queries.locate(query)), int(context.targets.locate(target))
            strands = both_strands(searched_query(context, query))
            low = int(offsets[at]) + chunk
            high = int(pieces.ends(low))
            extender = Extender(strands, bases[low:high], context.scoring)
            hits = [WordHit.of(seed[3:], len(strands) // 2, chunk) for seed in group]
            scoring = context.scoring.query(place)
            context.advance(len(hits), len(records))
            pairing = Pairing.of(context, place, hits[0].length, opens_of(pieces, low))
            found = extend_hits(extender, hits, pairing, scoring)
            for hit, segment in sorted(found, key=lambda pair: (pair[0].diagonal, pair[0].target)):
                rows.append((query, target, chunk, *_forward(hit, segment, len(strands) // 2, chunk)))
            context.count("hits", len(hits))
        columns = (
            "query", "target", "chunk", "query_frame", "query_pos", "target_pos", "length", "score", "word_query",
            "word_target",
        )  # fmt: skip
        table = np.array(rows, np.int64).reshape(-1, len(columns))
        data = {name: table[:, place] for place, name in enumerate(columns)}
        data["target_frame"] = np.ones(len(table), np.int64)
        return Seeds(data, self.columns)


def opens_of(pieces: TargetPieces, low: int) -> np.ndarray | None:
    """i8[k, 2]: the stretches of the piece that begins at a place of the volume in which words may lie, from there on;
    None where its targets have no mask."""
    if not pieces.masked:
        return None
    number = int(pieces.numbers(low))
    opens: np.ndarray = pieces.opens[pieces.bounds[number] : pieces.bounds[number + 1]] - low
    return opens


def searched_query(context: Context, number: int) -> np.ndarray:
    """u8 codes of a query with hard masks applied."""
    place = int(context.queries.locate(number))
    return context.queries.searched()[context.queries.offsets[place] : context.queries.offsets[place + 1]]


@dataclass(frozen=True)
class WordHit:
    """A word hit: its start in ``both_strands`` of the query and in the chunk, its length, its shift and its frame."""

    query: int
    target: int
    length: int
    shift: int
    frame: int

    @property
    def diagonal(self) -> int:
        return self.target - self.query

    @classmethod
    def of(cls, row: tuple[int, ...], query_length: int, chunk: int) -> WordHit:
        """From the record columns query_frame, query_pos, target_pos, length, shift."""
        frame, query_pos, target_pos, length, shift = row
        start = mirrored(query_pos, query_pos + length, query_length, frame)[0]
        return cls(start + strand_start(frame, query_length), target_pos - chunk, length, shift, frame)


@dataclass(frozen=True)
class TableWords:
    """Where words of ``width`` bases of both strands of a query are in its word table, bool[2n + 1]."""

    indexed: np.ndarray
    width: int

    @classmethod
    def of(cls, index: Index, place: int) -> TableWords:
        """Of the query at a position of the batch."""
        return cls(index["indexed"][slice(*index["strand_offsets"][place : place + 2])], int(index["width"][place]))

    def goes_on(self, extender: Extender, hit: WordHit, behind: int | None = None) -> tuple[int, bool]:
        """How many bases behind a hit its table words go on for, a whole word at most, and whether they do so for one.

        They are looked at one behind the other, then base by base, before base ``behind`` of the target if it is given.
        """
        query, target = hit.query + hit.length, hit.target + hit.length
        size, behind = len(self.indexed) // 2, len(extender.target) if behind is None else behind
        room = min((size if hit.query < size else len(self.indexed)) - query, behind - target)
        most, bases = min(room, hit.length), 0
        while bases + self.width <= most and self._has(extender, query + bases, target + bases):
            bases += self.width
        while bases < most:
            back = bases - self.width + 1
            if not self._has(extender, query + back, target + back):
                return bases, False
            bases += 1
        return bases, room >= hit.length

    def _has(self, extender: Extender, query: int, target: int) -> bool:
        words = extender.query[query : query + self.width], extender.target[target : target + self.width]
        return bool(self.indexed[query]) and words[0] == words[1]


@dataclass(frozen=True)
class Pairing:
    """Which hits need another one before they are extended.

    Attributes:
        window: bases from the end of the first hit in which the second one must end; 0: every hit is extended.
        reach: diagonals to either side where the first one may lie, too.
        words: the query's table words, where these are narrower than a hit, so that a hit may count as two; else None.
        rising: whether hits at one place of the target come by their places in the query, else in reverse.
        first: places that count of the first of two templates, whose hits at one place come before the second's.
        opens: ``opens_of`` the piece.
    """

    window: int = 0
    reach: int = 0
    words: TableWords | None = None
    rising: bool = False
    first: Sequence[int] = ()
    opens: np.ndarray | None = None

    @classmethod
    def of(cls, context: Context, place: int, length: int, opens: np.ndarray | None = None) -> Pairing:
        """For hits of so many bases of the query at a position of the batch."""
        window = context.options.window_size
        index = context.indexes.get(WORDS) if window else None  # discontiguous words have none of this kind
        words = TableWords.of(index, place) if index else None
        return cls(window, pair_reach(window, context.options.off_diagonal_range, length),
                   words if words and words.width < length else None, words is not None and words.width <= WIDEST_SMALL,
                   first_template(context.options).tolist(), opens)

    def around(self, extender: Extender, hit: WordHit) -> tuple[int, int]:
        """Of the stretch that a hit lies in: a place to which table words have distances that are multiples of their
        stride, and the place behind its last base."""
        if self.opens is None:
            return 0, len(extender.target)
        first, behind = self.opens[np.searchsorted(self.opens[:, 1], hit.target, "right")].tolist()
        return first - 1, behind

    def scan_place(self, extender: Extender, hit: WordHit) -> tuple[int, bool, int]:
        """Key of the order in which the peer's scan of the target comes upon hits.

        Table words lie at multiples of a stride in the target; of those at one place narrow ones come by their places
        in the query, wide ones in reverse.
        """
        stride = hit.length - self.words.width + 1 if self.words else 1
        start = hit.target - hit.shift
        place = start + (self.around(extender, hit)[0] - start) % stride
        second = any(extender.query[hit.query + at] != extender.target[hit.target + at] for at in self.first)
        return place, second, place - hit.diagonal if self.rising else hit.diagonal - place


def first_template(options: Any) -> np.ndarray:
    """i64: places that count of the first of two templates; none where words have one, or are contiguous."""
    templates: Sequence[np.ndarray] = options.templates() if hasattr(options, "templates") else []
    return np.asarray(templates[0] if len(templates) > 1 else [], np.int64)


def pair_reach(window: int, diagonals: int, length: int) -> int:
    """How many diagonals to either side are looked at: so many that hits of ``length`` bases fit into the window."""
    return max(0, min(diagonals, window - length))


@dataclass
class Diagonal:
    """What is known of a diagonal: how far in the target it is explored, whether by an extension that was saved, and
    of how many bases the last hit was, 0 where it was extended."""

    explored: int
    saved: bool = False
    waiting: int = 0


def extend_hits(
    extender: Extender, hits: list[WordHit], pairing: Pairing, scoring: QueryScoring
) -> Iterator[tuple[WordHit, Segment]]:
    """Hits that grow to segments that reach their strand's cutoff, or have company nearby, with these segments."""
    window = pairing.window
    diagonals: dict[int, Diagonal] = {}
    for hit in sorted(hits, key=partial(pairing.scan_place, extender)):
        own = diagonals.setdefault(hit.diagonal, Diagonal(-window))
        start = hit.target - hit.shift
        if start < own.explored:
            continue
        end, alone, nearby = hit.target + hit.length, False, False
        if window and (own.saved or start + hit.length > own.explored + window):
            behind = pairing.around(extender, hit)[1]
            more, double = pairing.words.goes_on(extender, hit, behind) if pairing.words else (0, False)
            end += more
            nearby = not double and _has_company(diagonals, hit, end, pairing)
            alone = not double and not nearby
        found = False
        if not alone:
            strand = scoring.strand(hit.frame)
            segment = extender.extend(hit, end, strand.xdrop_ungapped, strand.reduced_cutoff)
            found = nearby or segment.score >= strand.ungapped_cutoff
            if found:
                yield hit, segment
                end = segment.target + segment.length
        own.explored, own.saved, own.waiting = end, found, 0 if found else end - start


def _has_company(diagonals: dict[int, Diagonal], hit: WordHit, end: int, pairing: Pairing) -> bool:
    """Whether a hit that waits on a diagonal nearby pairs with this one, which goes on to ``end``."""
    first = hit.target - hit.shift + hit.length - pairing.window
    last = end - 2 * hit.length
    for apart in range(-pairing.reach, pairing.reach + 1):
        other = diagonals.get(hit.diagonal + apart)
        if apart and other and other.waiting:
            begin = other.explored - other.waiting - min(apart, 0)
            if other.explored - max(apart, 0) >= first and begin <= last:
                return True
    return False


def _forward(hit: WordHit, segment: Segment, length: int, chunk: int) -> tuple[int, ...]:
    """Record columns: frame, query start, target start, length, score, word in query and target."""
    offset = strand_start(hit.frame, length)
    start = segment.query - offset
    query = mirrored(start, start + segment.length, length, hit.frame)[0]
    word = mirrored(hit.query - offset, hit.query - offset, length, hit.frame)[0]
    return (
        hit.frame, query, segment.target + chunk, segment.length, segment.score, word, hit.target + chunk,
    )  # fmt: skip
