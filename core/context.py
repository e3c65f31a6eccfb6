"""What every stage of a run may read: one immutable context per slot and unit."""

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import Cancelled, SeqloomError
from .index import Index
from .sequences import ModelBatch, SequenceBatch

if TYPE_CHECKING:
    from .ports import TargetCatalog
    from .stages import Sorter


@dataclass(frozen=True)
class SearchSpace:
    """Size of all databases of a run together, whatever part of them is at hand. Statistics depend on nothing else.

    Attributes:
        letters: residues.
        sequences: number of sequences.
        longest: length of the longest sequence.
    """

    letters: int
    sequences: int
    longest: int = 0


@dataclass(frozen=True)
class Scoring:
    """How letters and gaps are scored. Families add their statistics and per-query cutoffs in a subclass.

    Attributes:
        matrix: i4[a, a] over the codes of the alphabet, rows query letters, columns target letters.
        gap_open: cost of a gap beside its length; a gap of length k costs ``gap_open + k * gap_extend``.
        gap_extend: cost per letter of a gap.
    """

    matrix: np.ndarray | None = None
    gap_open: int = 0
    gap_extend: int = 0


class Cancellation:
    """A flag that a signal handler sets and long loops look at."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        self._event.set()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def check(self) -> None:
        """Raise ``Cancelled`` once cancellation was requested."""
        if self._event.is_set():
            raise Cancelled("interrupted")


@dataclass(frozen=True)
class Context:
    """Read-only surroundings of one stage at work.

    Attributes:
        slot: name of the slot that runs.
        queries: the query batch, masks applied to ``soft`` and ``hard``; None while a target-side index is built.
        targets: the volume at hand; None in the reduce scope and while a query-side index is built.
        scoring: of this query batch; a subclass of ``Scoring`` chosen by the family.
        options: the pipeline's options (an instance of the family's ``Options``).
        space: size of everything that is searched.
        indexes: indexes by kind, whichever slot makes them.
        catalog: names, descriptions and lengths of any target by its global number.
        sorters: sorters by name, for the back end of this slot.
        device: "host" or a CUDA device, where records are taken and given.
        threads: threads that this stage may use.
        memory, device_memory: bytes that this stage may use; None without a limit.
        cancellation: to be checked in long loops.
        counters: numbers that the stage wants kept with the run, by name.
    """

    slot: str = ""
    queries: Any = None
    targets: Any = None
    scoring: Any = None
    options: Any = None
    space: SearchSpace = SearchSpace(0, 0)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    catalog: "TargetCatalog | None" = None
    sorters: Mapping[str, "Sorter"] = field(default_factory=dict)
    device: str = "host"
    threads: int = 1
    memory: int | None = None
    device_memory: int | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)
    counters: Counter = field(default_factory=Counter)

    def index(self, kind: str) -> Index:
        """The index of this kind that an earlier slot made."""
        if kind in self.indexes:
            return self.indexes[kind]
        raise SeqloomError(f"slot '{self.slot}' needs an index of kind '{kind}', and no slot made one")

    def count(self, name: str, number: int = 1) -> None:
        """Add to one of the run's counters of this slot."""
        self.counters[name] += int(number)

    def query(self, number: int) -> Any:
        """Residues (u8) or model of the query with this global number."""
        return self.queries[int(self.queries.locate(number))]

    def target(self, number: int) -> np.ndarray:
        """u8 residues of the target with this global number; it must be in the volume at hand."""
        return self.targets[int(self.targets.locate(number))]


Queries = SequenceBatch | ModelBatch
