"""What every stage of a run may read: one immutable context per slot and unit."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

import numpy as np

from .classes import dataclass
from .errors import SeqloomError
from .index import Index
from .ports import TargetCatalog
from .progress import Cancellation
from .sequences import ModelBatch, SequenceBatch
from .sorter import Sorter


@dataclass(frozen=True)
class SearchSpace:
    """Size of all databases of a run together, whatever part of them is in memory. Statistics depend on nothing else.

    Attributes:
        residues: residues.
        sequences: number of sequences.
        longest: length of the longest sequence.
        shortest: length of the shortest one of those that were picked out of the databases; 0 where all are searched.
        estimated_bases: of picked nucleotide sequences, as BLAST estimates them by the bytes that they take; else 0.
    """

    total_residues: int
    sequences: int
    longest: int = 0
    shortest: int = 0
    estimated_bases: int = 0


@dataclass(frozen=True)
class Scoring:
    """How residues and gaps are scored. Families add their statistics and per-query cutoffs in a subclass.

    Attributes:
        matrix: i4[a, a] over the codes of the alphabet, rows query residues, columns target residues.
        gap_open: cost of a gap beside its length; a gap of length k costs ``gap_open + k * gap_extend``.
        gap_extend: cost per residue of a gap.
    """

    matrix: np.ndarray | None = None
    gap_open: int = 0
    gap_extend: int = 0


@dataclass(frozen=True)
class Context:
    """Read-only surroundings of one stage at work.

    Attributes:
        slot: name of the slot that runs.
        queries: the query batch, masks applied to ``soft`` and ``hard``; None while a target-side index is built.
        targets: the current volume; None in the reduce scope and while a query-side index is built.
        scoring: of this query batch; a subclass of ``Scoring`` chosen by the family.
        options: the pipeline's options (an instance of the family's ``Options``).
        space: size of everything that is searched.
        indexes: indexes by kind, whichever slot makes them.
        catalog: names, lengths and residues of any target by its global number.
        sorters: sorters by name, for the back end of this slot.
        device: "host" or a CUDA device, where records are taken and given.
        devices: numbers of the CUDA devices that share this stage's work; all of them where it is empty.
        threads: threads that this stage may use.
        memory, device_memory: bytes that this stage may use; None without a limit.
        cancellation: to be checked in long loops, where ``advance`` isn't called.
        progress: what ``advance`` calls with the part of the stage's work that has been done.
        counters: numbers that the stage wants kept with the run, by name.
    """

    slot: str = ""
    queries: Any = None
    targets: Any = None
    scoring: Any = None
    options: Any = None
    space: SearchSpace = SearchSpace(0, 0)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    catalog: TargetCatalog | None = None
    sorters: Mapping[str, Sorter] = field(default_factory=dict)
    device: str = "host"
    devices: tuple[int, ...] = ()
    threads: int = 1
    memory: int | None = None
    device_memory: int | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)
    progress: Callable[[float], object] = lambda part: None
    counters: Counter = field(default_factory=Counter)

    def index(self, kind: str) -> Index:
        """The index of this kind that an earlier slot made."""
        if kind in self.indexes:
            return self.indexes[kind]
        raise SeqloomError(f"slot '{self.slot}' needs an index of kind '{kind}', and no slot made one")

    def count(self, name: str, number: int = 1) -> None:
        """Add to one of the run's counters of this slot."""
        self.counters[name] += int(number)

    def advance(self, part: float = 1.0, whole: float = 1.0) -> None:
        """Say that ``part`` of the ``whole`` of this stage's work on the unit has just been done, in any measure.

        Cheap, and any thread may call it; made for long loops, per query, target or chunk. The parts of a stage come to
        the whole at most.

        Raises:
            Cancelled: the work is to stop.
        """
        self.progress(part / whole if whole else 0.0)
        self.cancellation.check()

    def query(self, number: int) -> Any:
        """Residues (u8) or model of the query with this global number."""
        return self.queries[int(self.queries.locate(number))]

    def target(self, number: int) -> np.ndarray:
        """u8 residues of the target with this global number; it must be in the current volume."""
        return self.targets[int(self.targets.locate(number))]


Queries = SequenceBatch | ModelBatch
