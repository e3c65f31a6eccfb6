"""What the engine needs from outside, and what writers are given. ``storage`` implements these; ``api`` joins them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from .alphabet import Alphabet
from .records import Hits, Records
from .sequences import SequenceBatch


@dataclass(frozen=True)
class Span:
    """A stretch of targets that is searched as one volume: global numbers first…last−1."""

    first: int
    last: int
    letters: int
    longest: int

    @property
    def sequences(self) -> int:
        return self.last - self.first


@dataclass(frozen=True)
class TargetInfo:
    """What is known of some targets without their residues: parallel lists."""

    numbers: np.ndarray
    names: list[str]
    descriptions: list[str]
    lengths: np.ndarray
    databases: np.ndarray
    ordinals: np.ndarray


class TargetCatalog(Protocol):
    """Names, descriptions and lengths of targets by global number."""

    def info(self, numbers: np.ndarray) -> TargetInfo:
        """Of the targets ``numbers`` (i8, any order), in that order."""


class VolumeSource(TargetCatalog, Protocol):
    """Everything that is searched in a run: one or several databases, seen as one row of targets."""

    alphabet: Alphabet
    sequences: int
    letters: int
    longest: int

    def fingerprints(self) -> list[dict[str, Any]]:
        """Per database: path, fingerprint, sequences, letters; what a resumed run compares."""

    def plan(self, letters: int) -> list[Span]:
        """All targets cut into volumes of at most ``letters`` residues (one sequence at least), in order."""

    def read(self, span: Span) -> SequenceBatch:
        """Residues of a volume."""

    def fetch(self, numbers: np.ndarray) -> SequenceBatch:
        """Residues, names and descriptions of single targets (i8, ascending global numbers)."""


@dataclass(frozen=True)
class UnitPlan:
    """How a run is cut up: query batches (first and last global number of a query) and volumes."""

    batches: tuple[tuple[int, int], ...]
    volumes: tuple[Span, ...]


@dataclass
class SlotStats:
    """What one slot did, over all units of a run so far."""

    seconds: float = 0.0
    records_in: int = 0
    records_out: int = 0
    counters: dict[str, int] = field(default_factory=dict)

    def add(self, other: "SlotStats") -> None:
        self.seconds += other.seconds
        self.records_in += other.records_in
        self.records_out += other.records_out
        for name, number in other.counters.items():
            self.counters[name] = self.counters.get(name, 0) + number


class ResultSink(Protocol):
    """Where partial and final results go. Every method either takes effect as a whole or not at all."""

    def plan(self) -> UnitPlan | None:
        """The plan of a run that was begun before, or None."""

    def begin(self, plan: UnitPlan) -> None:
        """Keep the plan before any work."""

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


@dataclass(frozen=True)
class QueryReport:
    """One query and its hits, as writers get them.

    Attributes:
        number: global number of the query.
        name, description, length: of the query.
        residues: u8 codes, or None for a model.
        hits: ranked, with children in order of report.
        targets: the targets of the hits, once each, by ascending number.
        sequences: residues of these and perhaps of other targets, by ordinal; only if the writer asked for them.
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


class Report(Protocol):
    """Results of one run in order of queries."""

    run: Mapping[str, Any]
    """Provenance: pipeline, command, version, options, databases, letters, sequences, alphabets."""

    scoring: Any
    """Scoring of the run where it doesn't depend on the query (matrix, gap costs), or None."""

    def queries(self, residues: bool = False) -> Iterator[QueryReport]:
        """Every query, also those without hits; with residues of queries and targets where asked for."""

    def target(self, number: int) -> np.ndarray:
        """u8 residues of any target of the run, with or without hits, by its global number."""
