"""What the engine needs from outside, and what writers are given. ``storage`` implements these; ``api`` joins them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from .alphabet import Alphabet
from .classes import NamedTuple, dataclass
from .distinct import distinct
from .records import Hits, Ragged, Records
from .sequences import Intervals, ModelBatch, SequenceBatch


@dataclass(frozen=True)
class Span:
    """A stretch of targets that is searched as one volume: global numbers first…last−1."""

    first: int
    last: int
    total_residues: int
    longest: int

    @property
    def sequences(self) -> int:
        return self.last - self.first


class Taxon(NamedTuple):
    """An organism, or a group of them; what isn't known of it is "".

    Attributes:
        taxid: its number in NCBI's taxonomy.
        name: scientific name.
        common_name: GenBank's.
        blast_name: BLAST's name for its group, such as "rodents".
        kingdom: its superkingdom, such as "Eukaryota".
    """

    taxid: int
    name: str = ""
    common_name: str = ""
    blast_name: str = ""
    kingdom: str = ""


class SourceFacts(NamedTuple):
    """What data of several sequences say of themselves as a whole.

    Attributes:
        title: "" where there is none.
        created: UTC.
        parsed_names: whether names are in NCBI's notation, of which reports show the accession; None where that isn't
            said.
        taxa: organisms by taxid.
    """

    title: str = ""
    created: datetime | None = None
    parsed_names: bool | None = None
    taxa: Mapping[int, Taxon] = MappingProxyType({})


@dataclass(frozen=True)
class TargetInfo:
    """What is known of some targets without their residues: parallel lists.

    Attributes:
        taxa: organisms; empty where none is known.
        parsed: whether names are in NCBI's notation, of which reports show the accession; empty where none is.
    """

    numbers: np.ndarray
    names: list[str]
    descriptions: list[str]
    lengths: np.ndarray
    databases: np.ndarray
    ordinals: np.ndarray
    taxa: Sequence[Taxon | None] = ()
    parsed: Sequence[bool] = ()

    def take(self, index: np.ndarray) -> "TargetInfo":
        """Those at ``index``, in that order."""
        places = index.tolist()
        return TargetInfo(
            self.numbers[index], [self.names[i] for i in places], [self.descriptions[i] for i in places],
            self.lengths[index], self.databases[index], self.ordinals[index],
            [self.taxa[i] for i in places] if self.taxa else (),
            [self.parsed[i] for i in places] if self.parsed else ())


class TaxaFound(NamedTuple):
    """Targets of some organisms.

    Attributes:
        numbers: i8[k], ascending.
        known: those of the taxids asked for that a taxonomy has, or a target.
        bare: what has no taxonomy, so that only targets of just these taxids were found in it.
    """

    numbers: np.ndarray
    known: frozenset[int]
    bare: tuple[str, ...] = ()


class TargetCatalog(Protocol):
    """What single targets are, by global number."""

    def info(self, numbers: np.ndarray) -> TargetInfo:
        """Names, descriptions and lengths of the targets ``numbers`` (i8, any order), in that order."""

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        """Residues, names and descriptions of single targets (i8, ascending global numbers)."""


class VolumeSource(TargetCatalog, Protocol):
    """Everything that is searched in a run: one or several databases, seen as one row of targets.

    Attributes:
        kind: what the targets are: the name of their alphabet, or "model".
    """

    kind: str
    alphabet: Alphabet
    sequences: int
    total_residues: int
    longest: int

    def fingerprints(self) -> list[dict[str, Any]]:
        """Per database: path, fingerprint, sequences, residues; what a resumed run compares. May read all residues."""

    def parsed_names(self) -> list[bool | None]:
        """Per database: whether its names are in NCBI's notation; None where that isn't said."""

    def plan(self, residues: int) -> list[Span]:
        """All targets cut into volumes of at most ``residues`` residues (one sequence at least), in order."""

    def read(self, span: Span) -> SequenceBatch:
        """Residues of a volume."""

    def find(self, names: Sequence[str]) -> dict[str, int]:
        """Global numbers of those of ``names`` that are there."""

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        """Targets of the organisms ``taxids`` and of what belongs to them; 0 stands for targets without a taxid."""


class SeenSource(ABC):
    """A ``VolumeSource`` that hands on another one's, whose targets stages see otherwise than they are.

    Volumes, names, descriptions and lengths are those of the other one; indexes that are stored with its targets aren't
    to be had.

    Args:
        source: the other one.
    """

    def __init__(self, source: VolumeSource) -> None:
        self._source = source
        self.alphabet, self.kind, self.sequences = source.alphabet, source.kind, source.sequences
        self.total_residues, self.longest = source.total_residues, source.longest

    @abstractmethod
    def seen(self, batch: SequenceBatch) -> SequenceBatch:
        """Targets as stages see them."""

    def fingerprints(self) -> list[dict[str, Any]]:
        return self._source.fingerprints()

    def parsed_names(self) -> list[bool | None]:
        return self._source.parsed_names()

    def plan(self, residues: int) -> list[Span]:
        return self._source.plan(residues)

    def read(self, span: Span) -> SequenceBatch:
        return self.seen(self._source.read(span))

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        return self.seen(self._source.fetch(numbers))

    def info(self, numbers: np.ndarray) -> TargetInfo:
        return self._source.info(numbers)

    def find(self, names: Sequence[str]) -> dict[str, int]:
        return self._source.find(names)

    def find_taxa(self, taxids: Sequence[int]) -> TaxaFound:
        return self._source.find_taxa(taxids)


@runtime_checkable
class MaskedTargets(Protocol):
    """A source whose databases may carry masks, each under a name."""

    def masks(self) -> list[tuple[str, Mapping[str, str]]]:
        """Path of each database, and digests of its masks by their names."""

    def stretches(self, name: str, numbers: np.ndarray) -> Intervals:
        """Stretches of a mask of the targets with i8[k] ascending numbers, by position in these; none touch."""


@dataclass(frozen=True)
class UnitPlan:
    """How a portion of a run's queries is cut up; one portion is all of them, unless there are many.

    Attributes:
        batches: first and last global number of the queries of each.
        volumes: what each batch is compared with.
        first_batch: number in the run of the first batch: how many the portions before this one have.
        more: whether queries may follow that weren't read when this portion was begun.
    """

    batches: tuple[tuple[int, int], ...]
    volumes: tuple[Span, ...]
    first_batch: int = 0
    more: bool = False

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.batches) * len(self.volumes)

    @property
    def numbered(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Batches with their numbers in the run."""
        return enumerate(self.batches, self.first_batch)


class Unit(NamedTuple):
    """A query batch against a volume.

    Attributes:
        batch: its number in the run.
        volume: its number in the plan.
        cells: query residues × target residues.
    """

    batch: int
    volume: int
    cells: int


@dataclass
class SlotStats:
    """What one slot did, over all units of a run so far."""

    seconds: float = 0.0
    records_in: int = 0
    records_out: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    passed: dict[int, int] = field(default_factory=dict)
    """Records that came out, by global number of the query; only of stages that ask for it."""

    def add(self, other: "SlotStats") -> None:
        self.seconds += other.seconds
        self.records_in += other.records_in
        self.records_out += other.records_out
        for name, number in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + number
        for query, number in other.passed.items():
            self.passed[query] = self.passed.get(query, 0) + number


@dataclass
class Trace:
    """Where followed targets were last seen and lost: (query batch, target) → slots that still had it."""

    seen: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    lost: dict[tuple[int, int], str] = field(default_factory=dict)


class UnitResult(NamedTuple):
    """How a unit ended.

    Attributes:
        records: what its last stage gave, on the host; None where it failed.
        stats: of its slots.
        error: why it failed; ``Cancelled`` where it was stopped.
        hits: of its batch, where the unit is all of it and the reduce stages have run as well, whose slots are in
            ``stats`` then.
    """

    unit: Unit
    records: Records | None = None
    stats: Mapping[str, SlotStats] = MappingProxyType({})
    error: BaseException | None = None
    hits: Hits | None = None


class Executor(Protocol):
    """Carries out units: on threads of this process, or on other machines. One thread uses it, inside ``with``.

    It looks at the run's cancellation by itself: then no further unit begins. Leaving the block through an exception
    ends what is under way.

    Attributes:
        idle: whether all its units have begun and another executor of the kind may have others begun beside them.
    """

    @property
    def idle(self) -> bool: ...

    def submit(self, units: Sequence[Unit]) -> None:
        """Take over all units of a run, in the order in which they had best begin."""

    def finished(self, timeout: float) -> list[UnitResult] | None:
        """Units that have ended since the last call, each once; waits for one of them, for some seconds at most.

        Returns:
            None when none is under way or, without a cancellation, waits to be begun.

        Raises:
            SeqloomError: what carries out units is lost.
        """


class ResultSink(Protocol):
    """Where partial and final results go. Every method either takes effect as a whole or not at all."""

    def plan(self) -> UnitPlan | None:
        """The plan of the last portion of queries that was begun, or None."""

    def begin(self, plan: UnitPlan, queries: SequenceBatch | ModelBatch | None = None) -> None:
        """Keep the plan of a portion of queries before anything that work on it gives.

        Args:
            queries: of the portion, where it isn't the first: those come with the run itself.
        """

    def done_units(self) -> set[tuple[int, int]]:
        """(batch, volume) of the units that are committed."""

    def done_batches(self) -> set[int]:
        """Batches whose reduce step is committed."""

    def commit_unit(self, batch: int, volume: int, records: Records, stats: Mapping[str, SlotStats]) -> None:
        """Keep a unit's partial result together with its done mark and the statistics of its slots."""

    def partials(self, batch: int) -> list[Records]:
        """Partial results of a batch in order of volumes."""

    def commit_batch(self, batch: int, hits: Hits, targets: TargetInfo, stats: Mapping[str, SlotStats]) -> None:
        """Keep a batch's final hits with the done mark, and drop its partial results."""


class Citation(NamedTuple):
    """What to cite: umlauts are HTML entities.

    Attributes:
        text: authors, year, title and place.
        pubmed: its number there.
        of: what it describes, where that isn't the whole search.
    """

    text: str
    pubmed: int
    of: str = ""


class Method(NamedTuple):
    """How was searched, in the terms of BLAST's reports.

    Attributes:
        program: whose kind of search it is, such as "blastp".
        release: of that program, whose answers these are.
        citations: what to cite, the search as a whole first.
        parameters: by BLAST's names with underscores, in its order: matrix, expect, gap_open, …
        settings: what ends a report for people, by BLAST's titles, in its order: Matrix, Gap Penalties, …
    """

    program: str
    release: str
    citations: Sequence[Citation]
    parameters: Mapping[str, Any]
    settings: Mapping[str, str]


class KarlinParameters(NamedTuple):
    """Statistics of one scoring system, per raw unit and in nats.

    Attributes:
        lambda_, k, h: of Karlin and Altschul.
        a, alpha, sigma: mean, variance and covariance of lengths by score; None where they aren't used.
    """

    lambda_: float
    k: float
    h: float
    a: float | None = None
    alpha: float | None = None
    sigma: float | None = None


class QueryStatistics(NamedTuple):
    """Statistics of one query in the whole search space.

    Attributes:
        length_adjustment: residues taken off each sequence for edge effects.
        search_space: effective, in pairs of residues.
        gapped, ungapped: of alignments with gaps (None in a search without) and of those without.
    """

    length_adjustment: int
    search_space: int
    gapped: KarlinParameters | None
    ungapped: KarlinParameters


@dataclass(frozen=True)
class QueryReport:
    """One query and its hits, as writers get them.

    Attributes:
        number: global number of the query.
        name, description, length: of the query.
        stretch: half-open, of the query that was searched; None for all of it.
        parsed: whether its name is in NCBI's notation, of which reports show the accession.
        residues: u8 codes, or None for a model.
        model: the object of its family, where ``residues`` is None and the writer asked for residues. One that has
            ``consensus``, its M residues as text, and ``favours(positions, codes)``, bool[n], is shown by these.
        hits: ranked, with children in order of report.
        targets: the targets of the hits, once each, by ascending number.
        sequences: residues of these and perhaps of other targets, by ordinal; only if the writer asked for them.
        passed: records of the query that came out of each slot that counts them, by slot; slots without any left out.
    """

    number: int
    name: str
    description: str
    length: int
    residues: np.ndarray | None
    hits: Hits
    targets: TargetInfo
    sequences: SequenceBatch | None = None
    accession: str = ""
    model: Any = None
    stretch: tuple[int, int] | None = None
    parsed: bool = False
    passed: Mapping[str, int] = field(default_factory=dict)

    @property
    def searched(self) -> int:
        """Residues of the query that were searched."""
        if self.stretch is None:
            return self.length
        return max(0, min(self.length, self.stretch[1]) - self.stretch[0])

    def block(self) -> "QueryBlock":
        """This query alone, as a block."""
        return QueryBlock(
            np.array([self.number]), [self.name], [self.description], [self.accession], np.array([self.length]),
            None if self.residues is None else Ragged.even(self.residues[None]), self.hits, self.targets,
            self.sequences, [] if self.model is None else [self.model], self.stretch, self.parsed)


@dataclass(frozen=True)
class QueryBlock:
    """Some queries, one behind the other, and all their hits: columns of what a ``QueryReport`` says of one.

    Attributes:
        numbers, lengths: i8[q].
        names, descriptions, accessions: q each.
        residues: rows of u1 codes; None where the queries are models, or the writer didn't ask for them.
        models: q of them, or none.
        hits: of all queries by query and rank; their children in the order of the hits.
        targets: the targets of all hits, once each, by ascending number.
        sequences, stretch, parsed: see ``QueryReport``. passed: by number of the query; queries without any left out.
    """

    numbers: np.ndarray
    names: Sequence[str]
    descriptions: Sequence[str]
    accessions: Sequence[str]
    lengths: np.ndarray
    residues: Ragged | None
    hits: Hits
    targets: TargetInfo
    sequences: SequenceBatch | None = None
    models: Sequence[Any] = ()
    stretch: tuple[int, int] | None = None
    parsed: bool = False
    passed: Mapping[int, Mapping[str, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def first_hits(self) -> np.ndarray:
        """i8[q + 1]: where the hits of each query begin, and the end."""
        return np.append(np.searchsorted(self.hits.query, self.numbers), len(self.hits))

    @cached_property
    def first_alignments(self) -> np.ndarray:
        """i8[q + 1]: where the alignments of each query begin, and the end."""
        return np.append(np.searchsorted(self.hits.alignments.query, self.numbers), len(self.hits.alignments))

    @property
    def searched(self) -> np.ndarray:
        """i8[q]: residues of each query that were searched."""
        if self.stretch is None:
            return self.lengths
        return np.maximum(np.minimum(self.lengths, self.stretch[1]) - self.stretch[0], 0)

    def between(self, first: int, last: int) -> "QueryBlock":
        """Queries ``first`` … ``last`` − 1 of this block."""
        if (first, last) == (0, len(self)):
            return self
        low, high = self.first_hits[[first, last]].tolist()
        hits = self.hits.cut(low, high, *self.first_alignments[[first, last]].tolist())
        return replace(
            self, numbers=self.numbers[first:last], names=self.names[first:last],
            descriptions=self.descriptions[first:last], accessions=self.accessions[first:last],
            lengths=self.lengths[first:last], hits=hits,
            residues=None if self.residues is None else self.residues.between(first, last),
            targets=self.targets.take(np.searchsorted(self.targets.numbers, distinct(hits.target))),
            models=self.models[first:last])

    def queries(self) -> Iterator[QueryReport]:
        """One after the other."""
        firsts, children = self.first_hits.tolist(), self.first_alignments.tolist()
        nothing = self.hits.cut(0, 0, 0, 0), self.targets.take(np.empty(0, np.int64))
        for n, (number, length) in enumerate(zip(self.numbers.tolist(), self.lengths.tolist(), strict=True)):
            hits, targets = nothing
            if firsts[n] < firsts[n + 1]:
                hits = self.hits.cut(firsts[n], firsts[n + 1], children[n], children[n + 1])
                targets = self.targets.take(np.searchsorted(self.targets.numbers, distinct(hits.target)))
            yield QueryReport(
                number, self.names[n], self.descriptions[n], length,
                None if self.residues is None else self.residues[n], hits, targets, self.sequences,
                self.accessions[n], self.models[n] if self.models else None, self.stretch, self.parsed,
                self.passed.get(number, {}))


class Report(Protocol):
    """Results of one run in order of queries."""

    run: Mapping[str, Any]
    """Provenance: pipeline, command, version, options, databases, residues, sequences, alphabets."""

    method: Method | None
    """What the family says of it; None where BLAST's reports have no words for it."""

    threads: int
    """That a writer may have at work on several blocks at a time."""

    def blocks(self, residues: bool = False) -> Iterator[QueryBlock]:
        """Every query in order, also those without hits, as many at a time as memory is made for.

        Args:
            residues: give residues of queries and of targets.
        """

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        """The same, one at a time: for writers that have much to say of each."""

    def masked_targets(self, numbers: np.ndarray) -> Intervals:
        """Stretches of the mask of the databases that held for i8[k] ascending numbers of targets, by position in
        these; none touch."""

    def target(self, number: int) -> np.ndarray:
        """u8 residues of any target of the run, with or without hits, by its global number."""

    def masked(self, number: int) -> np.ndarray:
        """i4[m, 2]: start and end of the stretches of a query that were masked, by its global number; apart, in order.
        """

    def statistics(self, number: int) -> QueryStatistics | None:
        """Of a query by its global number; None for one that nothing can be found with, or without such statistics."""

    def slots(self) -> Sequence[Mapping[str, Any]]:
        """What each slot did, in order: slot, plugin, backend, scope, seconds, records_in, records_out."""
