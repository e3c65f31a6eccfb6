"""What a page shows of one run: its queries, figures of all hits, where the time went, and how it came about."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from seqloom.core.classes import NamedTuple

from ....core.alphabet import PROTEIN
from ....core.errors import StoreError
from ....core.ports import QueryReport, Report
from ...common.numbers import evalue_text
from ..figures import (
    Domain,
    DotLines,
    Histogram,
    Protein,
    Scale,
    Totals,
    architectures,
    dot_lines,
    evalue_histogram,
    identity_histogram,
)
from ..midline import similar_pairs
from .alignments import similar_letters
from .queries import QueryView, kind_of, organism

OVERVIEW, OVERVIEWS, LEAST = 60, 1200, 10
"""Hits in the overview of a query; those in all overviews of a run, about; and those of each query at least."""
PROTEINS = 100
"""Proteins whose domains are drawn."""
SEQUENCES = 300
"""Sequences on an axis of a dot plot, at most."""
ORGANISMS = 500
"""Organisms that are listed."""
NAMED = 1000
"""Queries in the list of queries, and those of the queries without hits that are named."""


class Organism(NamedTuple):
    """An organism and how often it was hit."""

    name: str
    common: str
    group: str
    kingdom: str
    taxid: str
    hits: int
    best: str
    share: float


class SlotTime(NamedTuple):
    """What a slot did; ``share`` of the time of all, in per cent."""

    slot: str
    plugin: str
    backend: str
    seconds: float
    share: float
    records_in: int
    records_out: int


class RunView:
    """One run of a page.

    Args:
        report: of the run.
        number: among the runs of the page, from 1.
        room: characters that the tables of hits may take, about.
        best: so many hits of the first query that has some, without residues, whatever the room is; 0 for all queries.
        several: whether the page has other runs, too.

    Attributes:
        of: what the names of its parts end with, so that they are told from those of other runs.
    """

    def __init__(self, report: Report, number: int, room: int, best: int = 0, several: bool = False) -> None:
        self.report, self.run, self.number, self.prefix = report, report.run, number, f"r{number}"
        self.of = f" of {self.name}" if several else ""
        self.models_are_targets, self.kind = self.run.get("target_type") == "model", kind_of(self.run)
        self.totals = Totals.of(report.blocks())
        self.scale = Scale.of(self.totals.bits, self.totals.scores)
        self.has_residues = not best
        self.views = self._views(*((best, 1) if best else share_of_room(self.totals.hits, room)))
        self.similar = None if best or self.models_are_targets else similar_pairs(report)
        of_sequences = self.run.get("query_type") != "model"
        self.similar_pairs = similar_letters(self.similar) if of_sequences else ""

    # ---- queries

    def _views(self, most: int, count: int) -> list[QueryView]:
        """The first ``count`` queries that have hits, with ``most`` of these."""
        found: list[QueryView] = []
        for query in self._queries() if count else ():
            if len(query.hits):
                found.append(QueryView(query, self.prefix, self.kind, most, self.scale))
                if len(found) >= count:
                    break
        return found

    def _queries(self) -> Iterator[QueryReport]:
        """With residues, or without where the databases aren't there."""
        try:
            yield from self.report.queries(residues=self.has_residues)
        except StoreError:
            self.has_residues = False
            yield from self.report.queries()

    @property
    def tracks(self) -> int:
        """Hits in the overview of each query, at most."""
        return max(LEAST, min(OVERVIEW, OVERVIEWS // max(1, len(self.views))))

    @property
    def listed(self) -> int:
        return sum(len(view.hits) for view in self.views)

    @property
    def hits(self) -> int:
        return int(self.totals.hits.sum())

    @cached_property
    def without_hits(self) -> list[str]:
        """Names of queries without hits; the first ``NAMED``."""
        return [f"{query.name}" for query in self._bare()]

    def _bare(self) -> Iterator[QueryReport]:
        left = min(NAMED, int((self.totals.hits == 0).sum()))
        for query in self.report.queries() if left else ():
            if not len(query.hits):
                yield query
                left -= 1
                if not left:
                    return

    # ---- figures

    @cached_property
    def evalues(self) -> Histogram | None:
        known = self.totals.evalues[~np.isnan(self.totals.evalues)]
        return evalue_histogram(known) if len(known) else None

    @cached_property
    def identities(self) -> Histogram | None:
        """None where all are whole, as of exact matches."""
        return identity_histogram(self.totals.identities) if (self.totals.identities < 1).any() else None

    @cached_property
    def proteins(self) -> tuple[list[Protein], int]:
        """Proteins with domains, and how many there are; none but of profile searches."""
        return architectures(self.report.blocks(), PROTEINS)

    def place_of(self, domain: Domain) -> str:
        """Where the page has the alignment of a domain, or its query if it has none."""
        return self._places.get((domain.query, domain.target), f"{self.prefix}q{domain.query + 1}")

    @cached_property
    def _places(self) -> dict[tuple[int, int], str]:
        """Names of the places of hits, by query and target."""
        return {(view.number, int(target)): hit.id for view in self.views
                for hit, target in zip(view.hits, view.query.hits.target.tolist())}

    @cached_property
    def dots(self) -> DotLines | None:
        """A dot plot of nucleotides; None of proteins, without alignments, and of more sequences than can be seen."""
        if (self.kind is PROTEIN and self.run.get("family") != "exact-match-protein") or self.proteins[0]:
            return None
        lines = dot_lines(self.report.blocks())
        some = len(lines.ends) > 0 and max(len(lines.queries.names), len(lines.targets.names)) <= SEQUENCES
        return lines if some else None

    @cached_property
    def organisms(self) -> list[Organism]:
        """Organisms by number of hits."""
        most = max(self.totals.taxa.values(), default=1)
        found = []
        for taxon, hits in self.totals.taxa.most_common(ORGANISMS):
            best = self.totals.best[taxon]
            found.append(Organism(
                organism(taxon) or "not known", taxon.common_name if taxon else "", taxon.blast_name if taxon else "",
                taxon.kingdom if taxon else "", str(taxon.taxid) if taxon else "", hits,
                evalue_text(best) if np.isfinite(best) else "", 100 * hits / most))
        return found

    @cached_property
    def slots(self) -> list[SlotTime]:
        slots = self.report.slots()
        whole = sum(slot["seconds"] or 0.0 for slot in slots) or 1.0
        return [SlotTime(slot["slot"], slot["plugin"] or "", slot["backend"] or "", slot["seconds"] or 0.0,
                         100 * (slot["seconds"] or 0.0) / whole, slot["records_in"] or 0, slot["records_out"] or 0)
                for slot in slots]

    # ---- what was run

    @property
    def name(self) -> str:
        return f"run {self.run['run']}" if self.run.get("run") else f"run {str(self.run.get('id') or '')[:13]}".strip()

    def facts(self) -> list[tuple[str, str]]:
        """What was run, for the head of the page."""
        run = self.run
        searched = (_number(run.get("sequences"), "model") if self.models_are_targets else
                    f"{_number(run.get('sequences'), 'sequence')}, {_number(run.get('letters'), 'residue')}")
        found = [("Command", run.get("command") or "from Python"),
                 ("Queries", f"{self.totals.queries:,}, {self.totals.with_hits:,} of them with hits"),
                 ("Database", ", ".join(_database(base) for base in run.get("databases", ()))),
                 ("Searched", searched),
                 ("Hits", f"{self.hits:,}, with {_number(self.totals.alignments, 'alignment')}"),
                 ("Begun", f"{run['started']:%Y-%m-%d %H:%M} UTC" if run.get("started") else ""),
                 ("Time", f"{run.get('seconds') or 0:.2f} s with {_number(run.get('threads') or 1, 'thread')} "
                  f"({run.get('backend') or 'auto'})")]
        return [(name, str(value)) for name, value in found if value]

    def provenance(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Tables of names and values: identity, options, databases, slots."""
        run = self.run
        identity = [(name, _plainly(run.get(name))) for name in (
            "id", "command", "version", "host", "started", "finished", "seconds", "backend", "threads", "query_files",
            "queries", "sequences", "letters")]
        options = [(name, _plainly(value)) for name, value in (run.get("options") or {}).items()]
        bases = [(str(base.get("path") or base.get("title") or ""), _plainly(
            {n: base.get(n) for n in ("title", "sequences", "letters", "fingerprint")}))
            for base in run.get("databases", ())]
        slots: Sequence[Mapping[str, Any]] = ()
        with suppress(KeyError, TypeError):
            slots = run["provenance"]["plan"]["slots"]
        settings = [(slot["slot"], " ".join((slot["plugin"], f"[{slot['backend']}]",
                                             _plainly(slot.get("options") or {})))) for slot in slots]
        packages = [(name, _plainly(value)) for name, value in ((run.get("provenance") or {}).get("packages")
                                                               or {}).items()]
        parts = [("Run", identity), ("Options", options), ("Databases", bases), ("Slots", settings),
                 ("Packages", packages)]
        return [(title, [(name, value) for name, value in rows if value]) for title, rows in parts if rows]


def share_of_room(sizes: np.ndarray, room: int) -> tuple[int, int]:
    """How many hits of each query, and how many queries with hits, a page shows.

    Args:
        sizes: i8[queries], hits of each.
        room: characters for all of them, about.
    """
    sizes = np.sort(sizes[sizes > 0])
    if not len(sizes):
        return 0, 0
    count = min(len(sizes), max(1, room // (OF_QUERY + min(10, int(sizes.max())) * OF_HIT)))
    low, high = 1, int(sizes.max())  # one hit of each query is there, however little room there is
    while low < high:
        middle = (low + high + 1) // 2
        fits = int(np.minimum(sizes, middle).sum()) * OF_HIT * count // len(sizes) + count * OF_QUERY <= room
        low, high = (middle, high) if fits else (low, middle - 1)
    return low, count


OF_QUERY, OF_HIT = 4000, 210
"""Characters that a query and a hit take on a page, about, with their figures and without alignments."""


def _number(count: int | None, what: str) -> str:
    """So many of something."""
    return f"{count or 0:,} {what}{'' if count == 1 else 's'}"


def _database(base: Mapping[str, Any]) -> str:
    name = str(base.get("title") or base.get("path") or "?")
    return name.rpartition("/")[2] or name


def _plainly(value: Any) -> str:
    """Plain data as words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_plainly(found)}" for key, found in value.items() if found not in (None, [], {}, ""))
    if isinstance(value, list | tuple):
        return ", ".join(_plainly(item) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
