"""What a page shows of one query: its hits in a table, as bars along the query, and their alignments."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple, dataclass

from ....core.alphabet import Alphabet, alphabet
from ....core.ports import QueryReport, Taxon
from ...common.numbers import bit_score_text, coverage_text, evalue_text, percent_text, score_text
from ..figures import Scale, ticks
from ..labels import of_query, of_target
from ..lines import Lines
from .alignments import LISTED, Alignment, alignments_of

TITLE = 80
"""Characters of a title in a table."""
FINEST = 0.002
"""Share of a figure's width that the smallest of its bars has."""


class Column(NamedTuple):
    """A column of a table: its key, heading, what it says, and how it is sorted."""

    key: str
    heading: str
    help: str
    numeric: bool


COLUMNS = (
    Column("rank", "#", "rank among the hits of this query", True),
    Column("target", "Target", "name; leads to the alignment", False),
    Column("title", "Title", "what the database says of it", False),
    Column("organism", "Organism", "scientific name", False),
    Column("score", "Score", "raw score", True),
    Column("bits", "Bits", "bit score", True),
    Column("evalue", "E-value", "hits as good that are expected by chance", True),
    Column("identity", "Identity", "of the first alignment", True),
    Column("coverage", "Coverage", "of the query by all alignments of the hit", True),
    Column("alignments", "Alignments", "HSPs, domains or matches", True),
)


@dataclass(frozen=True)
class Hit:
    """A hit as a row of the table; texts are "" for what isn't known."""

    id: str
    rank: str
    target: str
    title: str
    organism: str
    score: str
    bits: str
    evalue: str
    identity: str
    coverage: str
    alignments: str
    heading: str
    length: int
    numbers: tuple[float, float, float]
    """Score, bits and E-value as they are; NaN for what isn't there."""


class Bar(NamedTuple):
    """An alignment along the query, in per cent of it."""

    start: float
    width: float


class Track(NamedTuple):
    """A hit of the overview: its row, class of score, and bars."""

    hit: Hit
    shade: int
    bars: Sequence[Bar]

    @property
    def first(self) -> float:
        return min(bar.start for bar in self.bars)

    @property
    def last(self) -> float:
        return max(bar.start + bar.width for bar in self.bars)


class QueryView:
    """One query of a page.

    Args:
        query: with residues, if the databases are there.
        prefix: of the names of places on the page.
        kind: alphabet of targets.
        shown: hits that are listed, at most.
        scale: classes of scores.
    """

    def __init__(self, query: QueryReport, prefix: str, kind: Alphabet, shown: int, scale: Scale) -> None:
        self.id = f"{prefix}q{query.number + 1}"
        self.number, self.query, self.length = query.number, query, query.length
        label = of_query(query, kind)
        self.name, self.title = label.shown, label.title
        self.lines = Lines(query.block(), kind)
        self.total, self.scale = len(query.hits), scale
        self.places = self._places(min(shown, self.total))
        self.hits = self._hits(kind)

    def _places(self, shown: int) -> list[Sequence[int]]:
        """Lines of each hit that is listed."""
        ends = np.searchsorted(self.lines.hit, np.arange(shown + 1))
        return [range(*pair) for pair in zip(ends.tolist(), ends.tolist()[1:])]

    def _hits(self, kind: Alphabet) -> list[Hit]:
        query, lines, found = self.query, self.lines, []
        targets = query.targets
        covered = lines.covered().tolist() if len(lines) else []
        bits, scores, evalues = (query.hits.data[n].tolist() for n in ("bit_score", "score", "evalue"))
        located = lines.located.tolist()
        for rank, places in enumerate(self.places):
            row = places[0]
            target = int(lines.target[row])
            label = of_target(targets, target, kind)[0]
            taxon = targets.taxa[target] if targets.taxa else None
            identity = coverage = ""
            if located[row]:
                identity = _known(percent_text(int(lines.identities[row]), int(lines.lengths[row]), 1))
                coverage = _known(coverage_text(covered[row], int(lines.query_lengths[row])))
            found.append(Hit(
                f"{self.id}h{rank + 1}", str(rank + 1), label.shown, _cut(label.title), organism(taxon),
                _known(score_text(scores[rank])), _known(bit_score_text(bits[rank])).strip(),
                _known(evalue_text(evalues[rank])), identity, coverage,
                f"{sum(located[place] for place in places):,}", label.heading, int(targets.lengths[target]),
                (float(scores[rank]), bits[rank], evalues[rank])))
        return found

    @property
    def columns(self) -> list[Column]:
        """Those of ``COLUMNS`` that some hit has; raw scores only where there are no bit scores."""
        known = [c for c in COLUMNS if any(getattr(hit, c.key) for hit in self.hits)]
        return [c for c in known if c.key != "score" or all(c.key != "bits" for c in known)]

    def tracks(self, most: int) -> list[Track]:
        """The best hits along the query."""
        data, lines, found = self.lines.rows, self.lines, []
        shades = self.scale.classes(self.query.hits.bit_score, self.query.hits.score)
        starts, ends = data["query_start"], data["query_end"]
        for rank, (hit, places) in enumerate(zip(self.hits[:most], self.places)):
            own = [place for place in places if lines.located[place]]
            stretches = merged(starts[own], ends[own], self.length)
            if stretches:
                found.append(Track(hit, int(shades[rank]), stretches))
        return found

    def ticks(self) -> list[tuple[float, str]]:
        """Places along the query in per cent, and their names."""
        return [(100 * place / max(1, self.length), text) for place, text in ticks(self.length, 8)]

    def alignments(self, rank: int, similar: np.ndarray | None, masked: np.ndarray) -> list[Alignment]:
        """Of the hit of a rank, from 0."""
        return list(alignments_of(self.query, self.lines, self.places[rank], similar, masked))

    def left_out(self, rank: int) -> int:
        """Alignments of a hit that aren't listed."""
        return max(0, len(self.places[rank]) - LISTED)


def merged(starts: np.ndarray, ends: np.ndarray, length: int) -> list[Bar]:
    """Half-open stretches of a sequence in per cent; those that can't be told apart in a figure as one."""
    order = np.argsort(starts, kind="stable")
    found: list[list[float]] = []
    for start, end in zip((starts[order] / max(1, length)).tolist(), (ends[order] / max(1, length)).tolist()):
        end = max(end, start + FINEST)
        close = len(found) and start < found[-1][1] + FINEST / 2 and end - found[-1][0] < 20 * FINEST
        if close or (found and end <= found[-1][1]):
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    return [Bar(round(100 * start, 2), round(100 * (end - start), 2)) for start, end in found]


def kind_of(run: Mapping[str, Any]) -> Alphabet:
    """Alphabet of the sequences of a run, which are the queries where the targets are models."""
    side = "query_type" if run.get("target_type") == "model" else "target_type"
    return alphabet(run.get(side) or "protein")


def organism(taxon: Taxon | None) -> str:
    """Its name, or its number where it has none."""
    return "" if taxon is None else taxon.name or f"taxid {taxon.taxid}"


def by_rank(views: Sequence[QueryView]) -> Iterator[tuple[QueryView, int]]:
    """Hits of all queries: the first ones, then the second ones, …"""
    for rank in range(max((len(view.hits) for view in views), default=0)):
        yield from ((view, rank) for view in views if rank < len(view.hits))


def _known(text: Any) -> str:
    return "" if text == "*" else text


def _cut(text: str) -> str:
    return text if len(text) <= TITLE else text[: TITLE - 1] + "…"
